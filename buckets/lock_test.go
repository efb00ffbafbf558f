package buckets

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"joinbench/internal/leak"
)

// childEnv tells a child process of a test, which is this test binary again, what it should do.
const childEnv = "BUCKETS_TEST_CHILD"

// children are the things that a child process can do with a directory, until it is killed.
var children = map[string]func(dir string) error{
	"lock": func(dir string) error {
		if _, err := LockDir(dir, "joinbench run orders.yaml"); err != nil {
			return err
		}
		fmt.Println("locked")
		select {}
	},
}

func TestMain(m *testing.M) {
	if what := os.Getenv(childEnv); what != "" {
		if err := children[what](os.Args[len(os.Args)-1]); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(leak.Check(m.Run(), LiveObjects()))
}

// startChild starts this test binary as a child; lines are what it prints.
func startChild(t *testing.T, what, dir string) (cmd *exec.Cmd, lines *bufio.Scanner) {
	t.Helper()
	cmd = exec.Command(os.Args[0], dir)
	cmd.Env = append(os.Environ(), childEnv+"="+what)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { kill(cmd) })
	return cmd, bufio.NewScanner(out)
}

// kill ends a child as the kernel's OOM killer would.
func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "lock")
	child, lines := startChild(t, "lock", dir)
	if !lines.Scan() || lines.Text() != "locked" {
		t.Fatalf("the child said %q", lines.Text())
	}
	for range 2 { // the second time too: the first must not have overwritten the holder's name
		_, err := LockDir(dir, "another")
		if !errors.Is(err, ErrInUse) {
			t.Fatalf("error %v, expected ErrInUse", err)
		}
		holder := fmt.Sprintf("process %d (joinbench run orders.yaml)", child.Process.Pid)
		if !strings.Contains(err.Error(), holder) || !strings.Contains(err.Error(), dir) {
			t.Fatalf("error %q names neither %q nor the directory", err, holder)
		}
	}
	kill(child)
	lock, err := LockDir(dir, "a long name that is shortened by the next holder")
	must(t, err)
	if _, err := LockDir(dir, "again"); !errors.Is(err, ErrInUse) {
		t.Fatalf("the same process got it twice: %v", err)
	}
	must(t, lock.Unlock())
	lock, err = LockDir(dir, "x")
	must(t, err)
	text, err := os.ReadFile(filepath.Join(dir, "LOCK"))
	must(t, err)
	if want := fmt.Sprintf("process %d (x)\n", os.Getpid()); string(text) != want {
		t.Errorf("LOCK holds %q, expected %q", text, want)
	}
	must(t, lock.Unlock())
}
