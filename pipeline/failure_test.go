package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"joinbench/config"
)

// TestFailuresReadWell: whatever was joined together, the text is one line and says each thing once; a full disk is named,
// with what to do; what the error is stays.
func TestFailuresReadWell(t *testing.T) {
	log := func(task int) error {
		return fmt.Errorf("state is read-only from here: IO error: No space left on device: While appending to file: d/task-%03d/9.log: No space left on device", task)
	}
	broken := fmt.Errorf("sealing bucket 7: %w", errors.New("corruption"))
	writing := func(path string) error {
		return fmt.Errorf("output %s after 7 bytes: %w; mend that", path, &fs.PathError{Op: "write", Path: path, Err: syscall.ENOSPC})
	}
	faults := &config.Error{Faults: []config.Fault{{Key: "a", Message: "one"}, {Key: "b", Message: "two"}}}
	kept, temporary := JoinConfig{StateDir: "d", Out: "results", Late: "late"}, JoinConfig{Out: "results"}
	const goesOn = "free space and start the same command again: it goes on where it last committed"
	for _, c := range []struct {
		jc   JoinConfig
		err  error
		want string
	}{
		{kept, broken, broken.Error()},
		{kept, errors.Join(broken, nil, errors.Join(broken, fs.ErrClosed)), broken.Error() + "; file already closed"},
		{kept, fmt.Errorf("task 1: %w", errors.Join(fs.ErrClosed, fs.ErrExist)), "task 1: file already closed; file already exists"},
		{kept, errors.Join(log(0), log(1), log(2)), "the disk of the state directory d is full: " + goesOn + " (" + log(0).Error() + ")"},
		{kept, errors.Join(broken, log(0)), "the disk of the state directory d is full: " + goesOn + " (" + log(0).Error() + "); " + broken.Error()},
		{temporary, log(0), "the disk of the temporary state directory d is full: free space, or name a directory on a larger disk with --state-dir, and start the same command again (" + log(0).Error() + ")"},
		{kept, errors.Join(writing("late"), log(0)), "the disk of output late is full: " + goesOn + " (write late: no space left on device)"},
		{temporary, writing("results"), "the disk of output results is full: free space and start the same command again (write results: no space left on device)"},
		{kept, writing("/dev/stdout"), "the disk of standard output is full: free space and start the same command again: it goes on behind what it printed (write /dev/stdout: no space left on device)"},
		{kept, writing("d/LOCK"), "the disk of the state directory d is full: " + goesOn + " (" + writing("d/LOCK").Error() + ")"},
		{kept, faults, faults.Error()},
		{kept, errors.Join(context.Canceled, log(1)), errors.Join(context.Canceled, log(1)).Error()},
	} {
		got := c.jc.advice("d").readable(c.err)
		if got.Error() != c.want {
			t.Errorf("%q\n got %s\nwant %s", c.err, got, c.want)
		}
		if !errors.Is(got, c.err) {
			t.Errorf("%q is lost in %q", c.err, got)
		}
	}
	if err := kept.advice("d").readable(nil); err != nil {
		t.Errorf("no failure is %v", err)
	}
}

// TestFailedLockLeavesNothing: a temporary directory that cannot be used is removed. A child process fails at it: the limit
// is one for all files of a process, and the testing package writes to one of its own at any time.
func TestFailedLockLeavesNothing(t *testing.T) {
	tmp := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), lockVariable+"=1", "TMPDIR="+tmp)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "LOCK") {
		t.Errorf("%v, output %q: want the failure to name LOCK", err, out)
	}
	if left, _ := filepath.Glob(filepath.Join(tmp, "*")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := os.Stat(tmp); err != nil {
		t.Error(err)
	}
}

// lockVariable makes this binary lock a state whose files can be made and take nothing, and print the error.
const lockVariable = "JOINBENCH_TEST_LOCK"

func failToLock() {
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit)
	if limit.Cur = 0; err == nil {
		err = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
	}
	if err == nil {
		_, err = lockState("", "a test")
	}
	fmt.Println(err)
}
