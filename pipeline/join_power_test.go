package pipeline

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"joinbench/internal/oracle"
)

// TestTaskOfAnEarlierMoment: a power cut that took the end of one task's log leaves the directory of an earlier moment. The
// join is refused, says what is missing and what to do, and does so again; nothing is joined without the lost rows.
func TestTaskOfAnEarlierMoment(t *testing.T) {
	v := variant{tasks: 3, buckets: 4, batch: 5, filter: "fuse16", inline: true}
	s := newScene(t, busyScene, oracle.OneToOne, v)
	jc := s.join("run", v)
	jc.StateDir = s.path("state")
	stop := func(at int64) {
		t.Helper()
		if _, err := interruptedJoin(jc, at); !errors.Is(err, context.Canceled) {
			t.Fatalf("interrupted: error %v", err)
		}
	}
	stop(30)
	task := filepath.Join(jc.StateDir, "task-001")
	if err := os.CopyFS(s.path("earlier"), os.DirFS(task)); err != nil {
		t.Fatal(err)
	}
	stop(60)
	files := s.snapshot()
	if err := errors.Join(os.RemoveAll(task), os.CopyFS(task, os.DirFS(s.path("earlier")))); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := Join(context.Background(), jc)
		if err == nil {
			t.Fatal("a join went on without what a task had lost")
		}
		for _, text := range []string{jc.StateDir + ": ", "took the last ", " batches of task 1 away", "start anew"} {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("the error lacks %q: %v", text, err)
			}
		}
		for path, data := range files {
			if string(readFile(t, path)) != string(data) {
				t.Errorf("%s was changed", path)
			}
		}
	}

	// Starting anew is what it says.
	if err := os.RemoveAll(jc.StateDir); err != nil {
		t.Fatal(err)
	}
	if _, err := Join(context.Background(), jc); err != nil {
		t.Fatal(err)
	}
	if err := s.want.CheckReachable(s.lines(jc.Out)); err != nil {
		t.Fatal(err)
	}
}

// busyScene is a workload with more than a hundred records, in which something is found.
const busyScene = 5002
