package compare

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
		if r.stop(); r.err == nil || state(t, os.Getpid()) == "T" {
			t.Errorf("run %d: %v", i, r.err)
		}
	}
}

// TestTakeTurnsToTheEnd: both come to their end, the second one behind the first too.
func TestTakeTurnsToTheEnd(t *testing.T) {
	runs := started(t, "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")
	takeTurns(context.Background(), runs, time.Millisecond)
	for i, r := range runs {
		select {
		case <-r.ended:
		case <-time.After(time.Minute):
			t.Fatalf("run %d stands still", i)
		}
		if r.err != nil {
			t.Errorf("run %d: %v", i, r.err)
		}
	}
}
