package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"joinbench/capture"
	"joinbench/config"
	"joinbench/internal/oracle"
)

// TestInterruptedJoinGoesOn: interrupted between batches, once or several times, and started again with the same state
// directory, a join leaves the same files and counters as one that was never interrupted.
func TestInterruptedJoinGoesOn(t *testing.T) {
	n := 16
	if testing.Short() {
		n = 8
	}
	all := variants()
	for i := range n {
		seed := *oracleSeed + 2000 + uint64(i)
		cardinality := []string{oracle.OneToOne, oracle.OneToMany}[i%2]
		v := all[i*variantStride%len(all)]
		if v.batch == 1000 {
			v.batch = 40 // or the first batch is the last
		}
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			s := newScene(t, seed, cardinality, v)
			want, err := Join(context.Background(), s.join("whole", v))
			if err != nil {
				t.Fatalf("%s: %v", v, err)
			}
			rng := rand.New(rand.NewPCG(seed, 1))
			jc := s.join("parts", v)
			jc.StateDir = s.path("state")
			total := want.A.Read + want.B.Read
			at := int64(0)
			for range 1 + rng.IntN(3) {
				at += 1 + rng.Int64N(max(1, (total-at)*2/3))
				if at >= total {
					break
				}
				if _, err := interruptedJoin(jc, at); !errors.Is(err, context.Canceled) {
					t.Fatalf("%s: stopped after %d of %d records: error %v, want one of the context", v, at, total, err)
				}
			}
			got, err := Join(context.Background(), jc)
			if err != nil {
				t.Fatalf("%s: going on after %d records: %v", v, at, err)
			}
			what := fmt.Sprintf("%s, last stopped after %d of %d records", v, at, total)
			same(t, what, got, want)
			s.sameFiles(what, "parts", "whole")
			if err := s.want.CheckReachable(s.lines(jc.Out)); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		})
	}
}

// TestResumedJoinRemembersPartitions: where each partition stands in time and offset outlives an interruption, wherever it
// comes: what is late stays late, and what was read before is redelivered.
func TestResumedJoinRemembersPartitions(t *testing.T) {
	conf := keyConf(t, 1)
	for _, s := range []*config.Side{&conf.A, &conf.B} {
		s.Key, s.Time, s.Keep = []string{"@key"}, "@timestamp", nil
	}
	conf.Grace = time.Second
	var lines []string
	for i, r := range [][3]int64{{0, 5, 100}, {1, 5, 30}, {0, 6, 50}, {1, 5, 30}, {1, 6, 29}, {0, 5, 100}, {1, 7, 200}, {1, 8, 30}, {0, 7, 99}, {0, 7, 99}} {
		lines = append(lines, fmt.Sprintf(`{"topic":"t","partition":%d,"offset":%d,"ts":%d,"key":"k%d","payload":"{}"}`, r[0], r[1], r[2]*1000, i))
	}
	s := &scene{t: t, dir: t.TempDir(), conf: conf, format: capture.Kcat}
	for _, name := range []string{"a.ndjson", "b.ndjson"} {
		writeFile(t, s.path(name), []byte(strings.Join(lines, "\n")+"\n"))
	}
	v := variant{batch: 1, inline: true}
	want, err := Join(context.Background(), s.join("whole", v))
	if err != nil {
		t.Fatal(err)
	}
	if want.A.Late != 2 || want.A.Redelivered != 3 || want.A.Accepted != 5 || want.Matches != 5 {
		t.Fatalf("counters %+v", want)
	}
	for at := int64(1); at < want.A.Read+want.B.Read; at++ {
		what := fmt.Sprintf("stopped after %d records", at)
		run := fmt.Sprintf("run%d", at)
		jc := s.join(run, v)
		jc.StateDir = s.path(run + "state")
		if _, err := interruptedJoin(jc, at); !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: error %v", what, err)
		}
		got, err := Join(context.Background(), jc)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		same(t, what, got, want)
		s.sameFiles(what, run, "whole")
	}
}

// half makes a scene whose join was interrupted half way, with its state directory.
func half(t *testing.T, v variant) (*scene, JoinConfig) {
	t.Helper()
	s := newScene(t, 7, oracle.OneToOne, v)
	jc := s.join("run", v)
	jc.StateDir = s.path("state")
	if _, err := interruptedJoin(jc, 20); !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted: error %v", err)
	}
	return s, jc
}

// TestUnfinishedStateTakesItsOwnRunOnly: what belongs to other files, another configuration or other flags is refused,
// says why, and changes neither state nor outputs.
func TestUnfinishedStateTakesItsOwnRunOnly(t *testing.T) {
	v := variant{tasks: 2, buckets: 4, batch: 5, filter: "fuse16", inline: true}
	for name, c := range map[string]struct {
		change func(t *testing.T, s *scene, jc *JoinConfig)
		want   string
	}{
		"another A": {func(t *testing.T, s *scene, jc *JoinConfig) {
			jc.A = s.path("a2.ndjson")
			writeFile(t, jc.A, append(readFile(t, s.path("a.ndjson")), "{}\n"...))
		}, "other files"},
		"same size, another byte": {func(t *testing.T, s *scene, jc *JoinConfig) {
			data := readFile(t, jc.B)
			data[len(data)/2] ^= 1
			writeFile(t, jc.B, data)
		}, "other files"},
		"sides changed over": {func(t *testing.T, _ *scene, jc *JoinConfig) { jc.A, jc.B = jc.B, jc.A }, "other files"},
		"window": {func(t *testing.T, _ *scene, jc *JoinConfig) {
			conf := *jc.Config
			conf.Window.Before++
			jc.Config = &conf
		}, "another configuration"},
		"tasks": {func(t *testing.T, _ *scene, jc *JoinConfig) {
			conf := *jc.Config
			conf.State.Tasks = 3
			jc.Config = &conf
		}, "another configuration"},
		"no drain":      {func(_ *testing.T, _ *scene, jc *JoinConfig) { jc.NoDrain = true }, "other flags"},
		"no late file":  {func(_ *testing.T, _ *scene, jc *JoinConfig) { jc.Late = "" }, "other flags"},
		"no dead file":  {func(_ *testing.T, _ *scene, jc *JoinConfig) { jc.Dead = "" }, "other flags"},
		"no unmatched":  {func(_ *testing.T, _ *scene, jc *JoinConfig) { jc.Unmatched = "" }, "other flags"},
		"another batch": {func(_ *testing.T, _ *scene, jc *JoinConfig) { jc.Batch = 11 }, ""},
		"output cut": {func(t *testing.T, s *scene, jc *JoinConfig) {
			if err := os.Truncate(s.path("run-unmatched"), 1); err != nil {
				t.Fatal(err)
			}
		}, "it was changed"},
		"output gone": {func(t *testing.T, s *scene, jc *JoinConfig) {
			if err := os.Remove(s.path("run-unmatched")); err != nil {
				t.Fatal(err)
			}
		}, "is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			s, jc := half(t, v)
			if n := len(readFile(t, s.path("run-unmatched"))); n < 2 {
				t.Fatalf("the interrupted run left %d bytes in the unmatched file: too few for this test", n)
			}
			original, files := jc, s.snapshot()
			c.change(t, s, &jc)
			_, err := Join(context.Background(), jc)
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want one with %q", err, c.want)
			}
			// The refusal must not have harmed the run that is to be finished.
			s.restore(files)
			if _, err := Join(context.Background(), original); err != nil {
				t.Fatalf("finishing the original: %v", err)
			}
			if err := s.want.CheckReachable(s.lines(original.Out)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// snapshot and restore keep the files of a scene, but for the state.
func (s *scene) snapshot() map[string][]byte {
	files := map[string][]byte{}
	list, err := filepath.Glob(s.path("*-*"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, path := range append(list, s.path("a.ndjson"), s.path("b.ndjson")) {
		files[path] = readFile(s.t, path)
	}
	return files
}

func (s *scene) restore(files map[string][]byte) {
	for path, data := range files {
		writeFile(s.t, path, data)
	}
}

// TestDrainedStateStartsAnew: the same command on the directory of a finished run does everything again, and so does one
// with other files.
func TestDrainedStateStartsAnew(t *testing.T) {
	v := variant{tasks: 3, buckets: 4, batch: 7, filter: "fuse8"}
	s := newScene(t, 11, oracle.OneToMany, v)
	jc := s.join("run", v)
	jc.StateDir = s.path("state")
	first, err := Join(context.Background(), jc)
	if err != nil {
		t.Fatal(err)
	}
	kept := s.path("state/task-notes")
	writeFile(t, kept, []byte("mine"))
	for range 2 {
		again, err := Join(context.Background(), jc)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "again", again, first)
		if err := s.want.CheckReachable(s.lines(jc.Out)); err != nil {
			t.Fatal(err)
		}
	}
	conf := *jc.Config
	conf.State.Tasks = 1
	jc.Config, jc.A, jc.B = &conf, jc.B, jc.A
	if _, err := Join(context.Background(), jc); err != nil {
		t.Fatalf("other files after a finished run: %v", err)
	}
	if tasks, _ := filepath.Glob(s.path("state/task-0*")); len(tasks) != 1 {
		t.Errorf("databases %q, want one: those of the run with three tasks should be gone", tasks)
	}
	if string(readFile(t, kept)) != "mine" {
		t.Error("a file that joinbench did not make was removed with the databases")
	}
}

// TestKilledWhileWiping: a process that died while it removed an earlier run's databases leaves some of them. The next one
// must not take them for its own.
func TestKilledWhileWiping(t *testing.T) {
	v := variant{tasks: 3, buckets: 4, batch: 7, filter: "fuse16", inline: true}
	for seed := uint64(4000); seed < 4002; seed++ {
		s := newScene(t, seed, oracle.OneToOne, v)
		want, err := Join(context.Background(), s.join("whole", v))
		if err != nil {
			t.Fatal(err)
		}
		jc := s.join("run", v)
		jc.StateDir = s.path("state") // of a run that has sealed buckets, and some that were dropped
		if _, err := interruptedJoin(jc, (want.A.Read+want.B.Read)*3/4); !errors.Is(err, context.Canceled) {
			t.Fatalf("interrupted: error %v", err)
		}
		writeFile(t, s.path("state/run.json"), []byte("{}"))
		if err := os.RemoveAll(s.path("state/task-000")); err != nil {
			t.Fatal(err)
		}
		got, err := Join(context.Background(), jc)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		what := fmt.Sprintf("seed %d, after a half removed state", seed)
		same(t, what, got, want)
		s.sameFiles(what, "run", "whole")
	}
}

// TestForeignStateIsLeftAlone: databases without joinbench's mark are somebody else's.
func TestForeignStateIsLeftAlone(t *testing.T) {
	v := variant{tasks: 1, buckets: 4, batch: 7, filter: "none", inline: true}
	for name, mark := range map[string]string{"no mark": "", "not JSON": "x", "another's": `{"Tasks":"many"}`} {
		t.Run(name, func(t *testing.T) {
			s, jc := half(t, v)
			if mark == "" {
				if err := os.Remove(s.path("state/run.json")); err != nil {
					t.Fatal(err)
				}
			} else {
				writeFile(t, s.path("state/run.json"), []byte(mark))
			}
			_, err := Join(context.Background(), jc)
			if err == nil || !strings.Contains(err.Error(), "no join made") || !strings.Contains(err.Error(), s.path("state")) {
				t.Fatalf("error %v, want one that names the directory", err)
			}
			if _, err := os.Stat(s.path("state/task-000/CURRENT")); err != nil {
				t.Fatalf("the databases were touched: %v", err)
			}
		})
	}
}
