package core

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"joinbench/buckets"
	"joinbench/fusefilter"
)

// errEnd is what a store says from the moment on at which its process is taken to have ended, and what the other
// faults of these tests say.
var errEnd = errors.New("ended by the test")

// fuse counts what all stores of an engine write, and makes one of the writes fail: with forAll that one and all that
// follow, which is a crash, else that one alone, which is a disk that was full for a moment.
type fuse struct {
	left   atomic.Int64 // writes until then
	forAll bool
}

func (f *fuse) burn() error {
	if n := f.left.Add(-1); n == -1 || n < 0 && f.forAll {
		return errEnd
	}
	return nil
}

// mortal is a store with a fuse. What is behind it afterwards is what the end leaves.
type mortal struct {
	buckets.Backend
	fuse *fuse
}

func (m *mortal) Write(w *buckets.Write) error {
	if err := m.fuse.burn(); err != nil {
		return err
	}
	return m.Backend.Write(w)
}

func (m *mortal) WriteRun(name buckets.RunName, rows buckets.RunSource) (buckets.Family, buckets.RunStats, error) {
	if err := m.fuse.burn(); err != nil {
		return nil, buckets.RunStats{}, err
	}
	return m.Backend.WriteRun(name, rows)
}

func (m *mortal) DropFamily(f buckets.Family) error {
	if err := m.fuse.burn(); err != nil {
		return err
	}
	return m.Backend.DropFamily(f)
}

func mortals(stores []buckets.Backend, writes int64, forAll bool) []buckets.Backend {
	f := &fuse{forAll: forAll}
	f.left.Store(writes)
	out := make([]buckets.Backend, len(stores))
	for i, s := range stores {
		out[i] = &mortal{s, f}
	}
	return out
}

// life is how a life of an engine ends.
type life uint8

const (
	stopped     life = iota // by its context, between two batches
	crashed                 // at a write: nothing is written from there on
	writeFailed             // one write fails, and all goes on as well as it can to a proper end
	sinkFailed              // Results fails
	stateFailed             // State fails, when the results are out
	lives
)

// liveOnce runs an engine over stores until it ends in the given way after about n steps, or until the input ends: then
// it returns true.
func liveOnce(t *testing.T, cfg *Config, stores []buckets.Backend, src *script, sink *joined, how life, n int) bool {
	t.Helper()
	sink.batches, sink.fail, sink.failState = 0, nil, nil
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	failAt := func(batch int) error {
		if batch == n+1 {
			return errEnd
		}
		return nil
	}
	switch how {
	case crashed, writeFailed:
		stores = mortals(stores, int64(n), how == crashed)
	case sinkFailed:
		sink.fail = func(batch int, _ *Output) error { return failAt(batch) }
	case stateFailed:
		sink.failState = failAt
	}
	e, err := tryOpen(cfg, stores, src, sink)
	if err != nil {
		if !errors.Is(err, errEnd) {
			t.Fatal(err)
		}
		return false
	}
	if how == stopped {
		e.Observe = watch(func(e *Engine) {
			if sink.batches >= n {
				cancel()
			}
		})
	}
	err = e.Run(ctx)
	if err == nil {
		err = e.Quiesce()
	}
	done := err == nil
	if !done && !errors.Is(err, errEnd) && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil && !errors.Is(err, errEnd) {
		t.Fatal(err)
	}
	return done
}

// TestRestartAnywhere: a join that is ended again and again, in every way and at any moment, puts out what an unbroken
// one does, and counts the same.
func TestRestartAnywhere(t *testing.T) { restartAnywhere(t, 150, randomLoad) }

// TestRule14WaitRestarts is TestRestartAnywhere with B that wait.
func TestRule14WaitRestarts(t *testing.T) { restartAnywhere(t, 100, waitingLoad) }

func restartAnywhere(t *testing.T, seeds int, random func(r *rand.Rand, n int) *load) {
	eachSeed(t, seeds, func(t *testing.T, r *rand.Rand) {
		l := random(r, 20+r.IntN(600))
		t.Log(l.desc)
		src := newScript(t, l.chunk, l.a, l.b)
		want := expect(&l.cfg, src)
		stores, sink := memStores(l.tasks), &joined{}
		src.rewind = r.IntN(2) * r.IntN(20)
		far := 1 + r.IntN(100)
		var story []string
		for done := false; !done; {
			how, n := life(r.IntN(int(lives))), 1+r.IntN(far)
			if len(story) > 40 {
				n = 1 << 40 // rather few records a life: come to an end
			}
			story = append(story, []string{"stopped", "crashed", "write failed", "sink failed", "state failed"}[how])
			done = liveOnce(t, &l.cfg, stores, src.again(), sink, how, n)
			l.cfg.Inline = r.IntN(2) == 0 // may change between lives, as may the filter
		}
		t.Log(story)
		e := open(t, &l.cfg, stores, src.again(), sink)
		c := e.Counters()
		must(t, e.Close())
		if src.rewind > 0 { // what comes again is turned away again
			forgetRedelivered(sink, want, &c)
		}
		checkOutputs(t, sink, want)
		if c.Fates != want.fates {
			t.Fatalf("fates\n got %v\nwant %v", c.Fates, want.fates)
		}
		checkEarlyCounts(t, &c, sink)
		if c.Matches != want.matchCount(&l.cfg) || c.UnmatchedA != uint64(len(want.unmatchedA)) || c.UnmatchedB != uint64(len(want.unmatchedB)) ||
			c.Tasks.Probes != want.fates[B][Accepted] {
			t.Fatalf("%d matches, %d and %d unmatched, %d probes are counted", c.Matches, c.UnmatchedA, c.UnmatchedB, c.Tasks.Probes)
		}
	})
}

func forgetRedelivered(sink *joined, want *expected, c *Counters) {
	again := func(s string) bool { return strings.HasSuffix(s, " redelivered") }
	sink.rejects, want.rejects = slices.DeleteFunc(sink.rejects, again), slices.DeleteFunc(want.rejects, again)
	for s := range c.Fates {
		c.Fates[s][Redelivered], want.fates[s][Redelivered] = 0, 0
	}
}

// TestFailedCommitIsNotFoldedIn: a seal that ends after a failed commit must not take the batch of that commit into
// the state, neither its own task's (what the sink keeps could not be said) nor that of a task that had committed when
// another one could not.
func TestFailedCommitIsNotFoldedIn(t *testing.T) {
	for name, c := range map[string]struct {
		tasks int
		how   life
	}{"the sink's state": {1, stateFailed}, "another task's journal": {2, writeFailed}} {
		t.Run(name, func(t *testing.T) {
			const n = 50
			cfg := &Config{Before: 100, After: 100, MaxSpread: 14000, Width: 1000, Slots: 16, Filter: fusefilter.Fuse16, BatchSize: n + 1, Drain: true}
			a, b := make([]event, 0, n+1), make([]event, 0, n)
			for i := range n {
				a, b = append(a, ev(fmt.Sprint("k", i), int64(i))), append(b, ev(fmt.Sprint("k", i), int64(i)))
			}
			a = append(a, ev("far", 5000)) // seals bucket 0 behind the first batch
			src := newScript(t, n, []scriptPart{part(0, a...)}, []scriptPart{part(0, b...)})
			stores, sink := memStores(c.tasks), &joined{}
			mem := stores[c.tasks-1]
			disk := &mortal{mem, &fuse{}}
			disk.fuse.left.Store(1 << 40)
			stores[c.tasks-1] = disk
			e := open(t, cfg, stores, src, sink)
			hold := make(chan struct{})
			for _, task := range e.tasks {
				task.help.builder.Before = func(fusefilter.Kind, int) error { <-hold; return nil }
			}
			sink.fail = func(batch int, o *Output) error {
				if batch == 2 && len(o.Matches) != n {
					t.Errorf("%d pairs in the second batch", len(o.Matches))
				}
				if batch == 2 && c.how == writeFailed {
					disk.fuse.left.Store(0)
				}
				return nil
			}
			sink.failState = func(batch int) error {
				if batch == 2 && c.how == stateFailed {
					return errEnd
				}
				return nil
			}
			if err := e.Run(context.Background()); !errors.Is(err, errEnd) {
				t.Fatal(err)
			}
			close(hold)
			must(t, e.Close())

			sink.fail, sink.failState = nil, nil
			stores[c.tasks-1] = mem
			e = open(t, cfg, stores, src.again(), sink)
			must(t, e.Run(context.Background()))
			must(t, e.Close())
			if len(sink.pairs) != n {
				t.Fatalf("%d pairs, want %d", len(sink.pairs), n)
			}
		})
	}
}
