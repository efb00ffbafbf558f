//go:build linux

package procgroup

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const asParent = "JOINBENCH_TEST_PARENT"

// children end by SIGKILL, or when their standard input does, if SIGCONT wakes them.
var children = map[string]struct {
	end  syscall.Signal
	args []string
}{
	"killed": {syscall.SIGKILL, []string{"sleep", "600"}},
	"woken":  {syscall.SIGCONT, []string{"cat"}},
}

// TestMain is the parent too: it starts two children, prints their numbers, and waits.
func TestMain(m *testing.M) {
	c, ok := children[os.Getenv(asParent)]
	if !ok {
		os.Exit(m.Run())
	}
	for range 2 {
		cmd := exec.Command(c.args[0], c.args[1:]...)
		cmd.SysProcAttr = New(c.end)
		_, err := cmd.StdinPipe()
		if err := errors.Join(err, cmd.Start()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(cmd.Process.Pid)
	}
	time.Sleep(10 * time.Minute)
}

// TestNew: children are in groups of their own, and none is there any more when the parent was killed, though one stood still.
func TestNew(t *testing.T) {
	for name := range children {
		t.Run(name, func(t *testing.T) {
			for range 30 { // without a signal one of five that are about to stop stays
				if testNew(t, name); t.Failed() {
					return
				}
			}
		})
	}
}

func testNew(t *testing.T, name string) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), asParent+"="+name)
	parent.Stderr = os.Stderr
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for lines := bufio.NewScanner(out); len(pids) < 2 && lines.Scan(); {
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
		defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
		if group, err := syscall.Getpgid(pid); err != nil || group != pid {
			t.Errorf("process %d is in group %d: %v", pid, group, err)
		}
	}
	if len(pids) == 2 {
		if err := syscall.Kill(pids[0], syscall.SIGSTOP); err != nil {
			t.Error(err)
		}
	}
	_ = parent.Process.Kill()
	_ = parent.Wait()
	if len(pids) < 2 {
		t.Fatalf("children %v", pids)
	}
	for _, pid := range pids {
		for end := time.Now().Add(30 * time.Second); lives(pid); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("process %d of %v is still there", pid, pids)
			}
		}
	}
}

// lives is false of one whose end nobody has taken note of, too.
func lives(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(data), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z")
}
