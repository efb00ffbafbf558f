package pipeline

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzRunMark: any bytes as run.json are refused, or read as a mark that reads back as itself. That of a join is no harm to
// a benchmark's reader, and the other way round.
func FuzzRunMark(f *testing.F) {
	mark, err := json.Marshal(runMark{Config: 1<<64 - 1, Tasks: 2})
	if err != nil {
		f.Fatal(err)
	}
	bench, err := json.Marshal(benchMark{Workload: "xxh3:9f86d081884c7d65", Config: 7, Tasks: 1})
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{string(mark), string(bench), "{}", "", "null", "[]", "1", `"x"`, `{"Tasks":-1}`, `{"Tasks":1e3}`, `{"Tasks":99999999999999999999}`,
		`{"Tasks":1000000}`, `{"Config":-1}`, `{"A":{"Size":-1}}`, `{"A":null,"B":[]}`, `{"tasks":2,"TASKS":3}`, string(mark[:len(mark)-1]), string(mark) + "x", "\xff", "\x00"} {
		f.Add([]byte(text))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &state{dir: dir}
		if err := os.WriteFile(filepath.Join(dir, runMarkFile), data, 0o644); err != nil {
			t.Fatal(err)
		}
		var join runMark
		if checkMark(t, s, &join) {
			var again runMark
			if err := s.writeMark(join); err != nil {
				t.Fatal(err)
			}
			if ok, err := s.readMark(&again); !ok || err != nil || again != join {
				t.Fatalf("%+v came back as %+v, %v, %v", join, again, ok, err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, runMarkFile), data, 0o644); err != nil {
			t.Fatal(err)
		}
		var bench benchMark
		if checkMark(t, s, &bench) {
			var again benchMark
			if err := s.writeMark(bench); err != nil {
				t.Fatal(err)
			}
			// What is no UTF-8 in the workload's name comes back as U+FFFD, so that it is another workload: refused.
			if ok, err := s.readMark(&again); !ok || err != nil || again.Config != bench.Config || again.Tasks != bench.Tasks {
				t.Fatalf("%+v came back as %+v, %v, %v", bench, again, ok, err)
			}
		}
	})
}

// checkMark reads the mark: it is there, so the answer is yes or an error.
func checkMark(t *testing.T, s *state, mark any) bool {
	t.Helper()
	ok, err := s.readMark(mark)
	if ok != (err == nil) {
		t.Fatalf("read: %v and error %v", ok, err)
	}
	return ok
}

// TestMarkWithOtherTasks: a mark with more tasks than there are, or with a number that is none, does not make the join create
// databases by the thousand, nor take the state for nothing and remove it. One with fewer does not hide the others.
func TestMarkWithOtherTasks(t *testing.T) {
	v := variant{tasks: 2, buckets: 4, batch: 7, filter: "none", inline: true}
	for _, mark := range []string{`{"Tasks":-1}`, `{"Tasks":1000000}`, `{"Tasks":3}`, `{"Tasks":1}`} {
		s, jc := half(t, v)
		good := readFile(t, s.path("state/run.json"))
		writeFile(t, s.path("state/run.json"), []byte(mark))
		if _, err := Join(context.Background(), jc); err == nil || !strings.Contains(err.Error(), s.path("state")) {
			t.Errorf("mark %s: error %v, want one that names the directory", mark, err)
		}
		if tasks, _ := filepath.Glob(s.path("state/task-*")); len(tasks) != 2 {
			t.Errorf("mark %s: %d databases", mark, len(tasks))
		}
		writeFile(t, s.path("state/run.json"), good)
		if _, err := Join(context.Background(), jc); err != nil {
			t.Errorf("mark %s, mended: %v", mark, err)
			continue
		}
		if err := s.want.CheckReachable(s.lines(jc.Out)); err != nil {
			t.Errorf("mark %s, mended: %v", mark, err)
		}
	}
}
