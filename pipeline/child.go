package pipeline

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"joinbench/internal/procgroup"
)

// childProc is a process of this program that tells how it goes, line by line, in its file 3.
type childProc struct {
	name  string
	cmd   *exec.Cmd
	said  lastWords // its standard error
	ended chan struct{}
	err   error // why it ended, once it has
}

// childPatience is how long a child may take to end when it is told to.
const childPatience = 30 * time.Second

// startChild starts a process. Each line that it writes is handed to line, by a goroutine that has ended when ended is closed. Like an
// arm it has a process group of its own; it ends when its parent dies.
func startChild(name string, cmd *exec.Cmd, line func([]byte)) (*childProc, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c := &childProc{name: name, cmd: cmd, ended: make(chan struct{})}
	cmd.ExtraFiles, cmd.Stderr = []*os.File{w}, &c.said
	cmd.SysProcAttr = procgroup.New(syscall.SIGTERM)
	err = cmd.Start()
	_ = w.Close() // the child has its own
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", name, err), r.Close())
	}
	go func() {
		defer close(c.ended)
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			line(lines.Bytes())
		}
		_, _ = io.Copy(io.Discard, r) // after a line that is too long
		_ = r.Close()
		c.err = cmd.Wait()
	}()
	return c, nil
}

// wait waits for the process to come to its end. If the context is done first, it ends the process.
func (c *childProc) wait(ctx context.Context) error {
	select {
	case <-c.ended:
		return c.failure()
	case <-ctx.Done():
		c.stop()
		return ctx.Err()
	}
}

// cancelOn ends a context when the process ends before it is done.
func (c *childProc) cancelOn(ctx context.Context, cancel context.CancelCauseFunc) {
	select {
	case <-c.ended:
		cancel(errors.Join(c.failure(), fmt.Errorf("%s ended before it was told to", c.name)))
	case <-ctx.Done():
	}
}

// stop tells the process to end, and sees to it.
func (c *childProc) stop() {
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	select {
	case <-c.ended:
	case <-time.After(childPatience):
		_ = c.cmd.Process.Kill()
		<-c.ended
	}
}

// failure says what became of a process that has ended; nil if it ended well.
func (c *childProc) failure() error {
	if c.err == nil {
		return nil
	}
	if said := c.said.text(); said != "" {
		return fmt.Errorf("%s: %w: %s", c.name, c.err, said)
	}
	return fmt.Errorf("%s: %w", c.name, c.err)
}
