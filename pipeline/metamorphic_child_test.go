package pipeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// lifeDeadline is for hangs alone: a life takes well under a second. A process that hangs gets stackTime to say where.
const (
	lifeDeadline = 2 * time.Minute
	stackTime    = 10 * time.Second
)

// child is the parent's end of a process that lives lives. It starts one when it needs one.
type child struct {
	deadline time.Duration
	cmd      *exec.Cmd
	in       io.WriteCloser
	out      *json.Decoder
	stderr   tail
}

// errKilled: the process was killed by SIGKILL.
var errKilled = errors.New("the process was killed")

// live has the child live one life. errKilled says that it was killed; any other error is a fault, a panic for one.
func (c *child) live(req *lifeRequest) (reply lifeReply, err error) {
	if c.cmd == nil {
		if err := c.start(); err != nil {
			return reply, err
		}
	}
	process := c.cmd.Process
	hung := time.AfterFunc(c.deadline, func() {
		_ = process.Signal(syscall.SIGQUIT) // where does it stand?
		time.AfterFunc(min(stackTime, c.deadline), func() { _ = process.Kill() })
	})
	err = json.NewEncoder(c.in).Encode(req)
	if err == nil {
		err = c.out.Decode(&reply)
	}
	inTime := hung.Stop()
	if err == nil {
		return reply, nil
	}
	_ = c.in.Close()
	ended := c.cmd.Wait()
	c.cmd = nil
	var exit *exec.ExitError
	switch {
	case !inTime:
		return reply, fmt.Errorf("no end after %v:\n%s", c.deadline, c.stderr.String())
	case errors.As(ended, &exit) && exit.Sys().(syscall.WaitStatus).Signaled() && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL:
		return reply, errKilled
	default:
		return reply, fmt.Errorf("the process ended: %v (%w):\n%s", ended, err, c.stderr.String())
	}
}

func (c *child) start() error {
	c.cmd = exec.Command(os.Args[0])
	c.cmd.Env = append(os.Environ(), childVariable+"=1")
	c.stderr = tail{}
	c.cmd.Stderr = &c.stderr
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	c.in, c.out = in, json.NewDecoder(out)
	return c.cmd.Start()
}

// close ends the process.
func (c *child) close() {
	if c.cmd != nil {
		_ = c.in.Close()
		_ = c.cmd.Wait()
		c.cmd = nil
	}
}

// tail keeps the beginning of what a process says of its end: a panic names its cause first.
type tail struct {
	mu  sync.Mutex // guards buf: the process writes while the parent may read
	buf bytes.Buffer
}

const tailBytes = 16 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(p[:min(len(p), tailBytes-t.buf.Len())])
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}

// TestChildThatDies: a process that dies unasked, or does not end, is a fault of its case, and the next case has a new one.
func TestChildThatDies(t *testing.T) {
	in := drawInput(1)
	in.Case.Lives = in.Case.Lives[len(in.Case.Lives)-1:]
	for _, how := range []struct {
		signal   syscall.Signal
		deadline time.Duration
		want     string
	}{
		{syscall.SIGKILL, lifeDeadline, errKilled.Error()},
		{syscall.SIGQUIT, lifeDeadline, "SIGQUIT: quit"}, // as a panic: with the stacks
		{syscall.SIGSTOP, 200 * time.Millisecond, "no end after 200ms"},
	} {
		c := child{deadline: lifeDeadline}
		if r := runCase(&c, &in); r.fault != nil || r.invalid != nil { // from here on it runs, and waits for the next case
			t.Fatal(r.fault, r.invalid)
		}
		c.deadline = how.deadline
		if err := c.cmd.Process.Signal(how.signal); err != nil {
			t.Fatal(err)
		}
		if r := runCase(&c, &in); r.fault == nil || !strings.Contains(r.fault.Error(), how.want) {
			t.Errorf("%v: fault %v, want one with %q", how.signal, r.fault, how.want)
		}
		c.deadline = lifeDeadline
		if r := runCase(&c, &in); r.fault != nil || r.invalid != nil {
			t.Errorf("after %v: %v %v", how.signal, r.fault, r.invalid)
		}
		c.close()
	}
}
