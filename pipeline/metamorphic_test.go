package pipeline

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

var (
	metaSeed    = flag.Uint64("meta.seed", 1, "first seed of the metamorphic test")
	metaN       = flag.Int("meta.n", 2000, "cases of the metamorphic test")
	metaWorkers = flag.Int("meta.workers", 0, "cases at the same time; 0: one for each processor")
	metaShrink  = flag.Duration("meta.shrink", time.Minute, "how long a failing case may be shrunk")
	metaKeep    = flag.String("meta.keep", "", "directory for shrunk cases; empty: that for temporary files")
	metaReplay  = flag.String("meta.replay", "", "run the case of a directory that a failure left instead of random ones")
)

// TestMetamorphic runs random workloads in random ways: whatever the way, the outputs are those of the nested-loop join, and
// what was counted adds up.
//
// A case is lived by another process (metamorphic_life_test.go), since one may be killed and points of failure belong to a
// whole process. A seed says all about a case. One that fails is shrunk, and written to a directory that can be replayed.
func TestMetamorphic(t *testing.T) {
	if *metaReplay != "" {
		replayCase(t, *metaReplay)
		return
	}
	n := *metaN
	if testing.Short() {
		n = min(n, 60)
	}
	run := metaRun{t: t, n: n, report: newMetaReport()}
	workers := *metaWorkers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	start := time.Now()
	var wg sync.WaitGroup
	for range min(workers, n) {
		wg.Go(run.work)
	}
	wg.Wait()
	t.Logf("seeds from %d, %.1f s: %s", *metaSeed, time.Since(start).Seconds(), run.report)
	if f := run.failed; f != nil {
		f.explain(t, run.report.cases)
		return
	}
	for _, v := range run.report.missing() {
		t.Errorf("never came up in %d cases: %s", run.report.cases, v)
	}
}

// metaRun hands out the cases of one run.
type metaRun struct {
	t      *testing.T
	n      int
	mu     sync.Mutex // guards what follows
	next   int
	report *metaReport
	failed *metaFailure // the first one; no case is started after it
}

type metaFailure struct {
	in    metaInput
	fault error
}

func (r *metaRun) work() {
	c := child{deadline: lifeDeadline}
	defer c.close()
	for {
		r.mu.Lock()
		i := r.next
		r.next++
		over := i >= r.n || r.failed != nil
		r.mu.Unlock()
		if over {
			return
		}
		in := drawInput(*metaSeed + uint64(i))
		res := runCase(&c, &in)
		r.mu.Lock()
		switch fault := errors.Join(res.invalid, res.fault); {
		case fault == nil:
			r.report.add(&in, &res)
		case r.failed == nil:
			r.failed = &metaFailure{in, fault}
		}
		r.mu.Unlock()
	}
}

// explain fails the test: the case in words, how to run it again, and what is left of it when it is shrunk.
func (f *metaFailure) explain(t *testing.T, passed int) {
	seed := f.in.Case.Seed
	t.Errorf("%d cases passed, then: %v\n%s\nagain: go test ./pipeline -run TestMetamorphic -meta.seed=%d -meta.n=1", passed, f.fault, &f.in.Case, seed)
	if *metaShrink <= 0 {
		return
	}
	c := child{deadline: min(lifeDeadline, *metaShrink)}
	defer c.close()
	start, fault := time.Now(), f.fault
	small := shrink(f.in, func(in *metaInput) bool {
		for range tries(&in.Case) {
			if r := runCase(&c, in); r.invalid == nil && r.fault != nil {
				fault = r.fault
				return true
			}
		}
		return false
	}, func() bool { return time.Since(start) > *metaShrink })
	parent := *metaKeep
	if parent == "" {
		parent = systemTemp
	}
	dir, err := os.MkdirTemp(parent, fmt.Sprintf("metamorphic-%d-", seed))
	if err == nil {
		err = small.save(dir)
	}
	if err != nil {
		t.Errorf("the shrunk case could not be kept: %v", err)
	}
	t.Errorf("shrunk to %d and %d lines: %v\n%s\nfiles and join.yaml: %s\nagain: go test ./pipeline -run TestMetamorphic -meta.replay=%s\na:\n%s\nb:\n%s",
		len(splitLines(small.A)), len(splitLines(small.B)), fault, &small.Case, dir, dir, atMost(small.A, 2000), atMost(small.B, 2000))
}

// tries is how often a case is run before it counts as passed: with goroutines beside it a fault may hide.
func tries(c *metaCase) int {
	for _, l := range c.Lives {
		if !l.Inline {
			return 3
		}
	}
	return 1
}

func atMost(text []byte, n int) []byte {
	if len(text) > n {
		return append(append([]byte{}, text[:n]...), "…"...)
	}
	return text
}

// save writes a case into a directory: its files, the configuration of its first life for `joinbench join`, and all of it
// for -meta.replay.
func (in *metaInput) save(dir string) error {
	text, err := json.MarshalIndent(&in.Case, "", "  ")
	if err != nil {
		return err
	}
	conf, err := in.Case.config(&in.Case.Lives[0])
	if err != nil {
		return err
	}
	yaml, err := os.Create(filepath.Join(dir, "join.yaml"))
	if err != nil {
		return err
	}
	write := func(name string, data []byte) error { return os.WriteFile(filepath.Join(dir, name), data, 0o644) }
	return errors.Join(conf.Print(yaml), yaml.Close(), write("case.json", text), write("a.ndjson", in.A), write("b.ndjson", in.B))
}

// loadInput reads what save wrote.
func loadInput(dir string) (in metaInput, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "case.json"))
	if err == nil {
		err = json.Unmarshal(text, &in.Case)
	}
	if err == nil {
		in.A, err = os.ReadFile(filepath.Join(dir, "a.ndjson"))
	}
	if err == nil {
		in.B, err = os.ReadFile(filepath.Join(dir, "b.ndjson"))
	}
	return in, err
}

func replayCase(t *testing.T, dir string) {
	in, err := loadInput(dir)
	if err != nil {
		t.Fatal(err)
	}
	c := child{deadline: lifeDeadline}
	defer c.close()
	for range tries(&in.Case) {
		res := runCase(&c, &in)
		if err := errors.Join(res.invalid, res.fault); err != nil {
			t.Fatalf("%v\n%s", err, &in.Case)
		}
	}
	t.Logf("passed:\n%s", &in.Case)
}
