package compare

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// state of a process as /proc has it: T of one that stands still.
func state(t *testing.T, pid int) string {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Skip("no /proc here")
	}
	return string(data[strings.LastIndexByte(string(data), ')')+2])
}

func started(t *testing.T, script string) [2]*run {
	t.Helper()
	ab := &AB{Names: [2]string{"old", "new"}}
	var runs [2]*run
	for side := range runs {
		var err error
		if runs[side], err = ab.start(exec.Command("sh", "-c", script), side, filepath.Join(t.TempDir(), "r.json")); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(runs[side].stop)
	}
	return runs
}

// TestTakeTurns: of two runs one stands still, in turn, and both go on when somebody wants them to end.
func TestTakeTurns(t *testing.T) {
	runs := started(t, "while :; do :; done")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		takeTurns(ctx, runs, 20*time.Millisecond)
		close(done)
	}()
	still := [2]int{}
	for range 100 {
		for i, r := range runs {
			if state(t, r.cmd.Process.Pid) == "T" {
				still[i]++
			}
		}
		time.Sleep(3 * time.Millisecond)
	}
	if still[0] < 15 || still[1] < 15 || still[0]+still[1] < 70 || still[0]+still[1] > 130 {
		t.Errorf("of 100 looks %v saw one stand still", still)
	}
	cancel()
	<-done
	for i, r := range runs {
		r.stop() // one that still stood would not see it, and be killed in the end
		if s := r.cmd.ProcessState.Sys().(syscall.WaitStatus); s.Signal() != syscall.SIGINT {
			t.Errorf("run %d ended by %v", i, s.Signal())
		}
	}
}

// TestTakeTurnsToTheEnd: both come to their end, the second one behind the first too.
func TestTakeTurnsToTheEnd(t *testing.T) {
	runs := started(t, "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	takeTurns(ctx, runs, time.Millisecond)
	for i, r := range runs {
		select {
		case <-r.ended:
		case <-ctx.Done():
			t.Fatalf("run %d stands still", i)
		}
		if r.err != nil {
			t.Errorf("run %d: %v", i, r.err)
		}
	}
}

// TestTurnsTogether: behind the first pair, where there are slices, the two of a pair run at the same time: each waits for the other's sign.
func TestTurnsTogether(t *testing.T) {
	for _, c := range []struct {
		slice time.Duration
		runs  int // of either that left a record
	}{{time.Millisecond, 9}, {0, 1}} {
		ab := turns(t, aRun(t), aRun(t))
		ab.Slice, ab.Apart = c.slice, true
		copies := ab.Command
		ab.Command = func(side int, out string, pair int) *exec.Cmd {
			cmd := copies(side, out, pair)
			if pair == 1 {
				return cmd
			}
			sign := func(side int) string { return filepath.Join(ab.Dir, fmt.Sprint("sign", pair, "-", side)) }
			return exec.Command("sh", "-c", `touch "$0"; for i in 1 2 3 4 5 6 7 8 9 10; do test -e "$1" && exec cp "$2" "$3"; sleep 0.1; done; exit 1`,
				sign(side), sign(1-side), cmd.Args[1], out)
		}
		got, err := ab.Run(context.Background())
		if (err == nil) != (c.runs > 1) || got == nil || len(got.Base.Runs) != c.runs {
			t.Errorf("slices of %v: %v, %+v", c.slice, err, got)
		}
	}
}

// TestStopsWhatAScriptStarted: signals reach the program behind a script.
func TestStopsWhatAScriptStarted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pid")
	runs := started(t, `sh -c 'echo $$ > `+path+`.new; mv `+path+`.new `+path+`; exec sleep 600'; true`)
	pid := 0
	for pid == 0 {
		if text, err := os.ReadFile(path); err == nil {
			if pid, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Millisecond)
	}
	for _, r := range runs { // one of them wrote it last
		r.stop()
	}
	if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && !strings.Contains(string(data), ") Z") {
		t.Errorf("it goes on: %s", data)
	}
}
