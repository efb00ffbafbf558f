package core

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"joinbench/fusefilter"
)

// waitingLoad is a random load for B that wait: many-to-many, whose pairs do not depend on who comes first, or with each key
// at most once a side, so that rule 2's exception does not apply.
func waitingLoad(r *rand.Rand, n int) *load {
	l := randomLoad(r, n)
	c := &l.cfg
	c.Probe, c.Early, c.Retract, c.CompleteOn, c.Collect = ProbeWait, 0, false, EndNever, CollectEager
	if c.Cardinality == ManyToMany {
		return l
	}
	for _, side := range [][]scriptPart{l.a, l.b} {
		at := 0
		keys := r.Perm(n)
		for p := range side {
			last := int64(-1)
			for i := range side[p].events {
				e := &side[p].events[i]
				if e.offset <= last {
					continue // comes again, as what it was
				}
				last = e.offset
				if e.fate == Accepted {
					e.key = fmt.Sprintf("k%05d", keys[at%n])
					at++
				}
			}
		}
	}
	return l
}

// TestRule12WaitEqualsAligned: probe: wait gives what aligned gives, and so whatever is fetched first: B that wait for their A, A
// that wait for their B, null rows of both sides.
func TestRule12WaitEqualsAligned(t *testing.T) {
	eachSeed(t, 200, func(t *testing.T, r *rand.Rand) {
		l := waitingLoad(r, 20+r.IntN(1000))
		t.Log(l.desc)
		src := newScript(t, l.chunk, l.a, l.b)
		want := expect(&l.cfg, src)
		stores, sink := memStores(l.tasks), &joined{}
		e := open(t, &l.cfg, stores, src, sink)
		must(t, e.Run(context.Background()))
		must(t, e.Quiesce())
		if c, lv := e.Counters(), e.Levels(true); c.Matches != uint64(len(sink.pairs)) || c.UnmatchedB != uint64(len(sink.unmatchedB)) || lv.Pending+lv.PendingB != 0 {
			t.Errorf("%+v %+v: not what came", c, lv)
		}
		checkOutputs(t, sink, want)
		must(t, e.Close())
	})
}

// TestRule14RestartsReadAsFar: an input that is not drained is read up to the same record whatever ends came between. Here a slot
// is taken for a bucket of which nothing is stored, since its only B paired at once; the B a ring later goes on waiting for it.
func TestRule14RestartsReadAsFar(t *testing.T) {
	cfg := &Config{Grace: 10, MaxSpread: 11, Width: 2, Slots: 16, Probe: ProbeWait, Filter: fusefilter.None, BatchSize: 1, Inline: true}
	src := newScript(t, 1, []scriptPart{times(0, "k", 1001)}, []scriptPart{part(0, ev("x", 997), ev("k", 1001), ev("y", 1032))})
	for ends := range 5 {
		stores, sink := memStores(1), &joined{}
		for n := 1; n <= ends; n++ {
			liveOnce(t, cfg, stores, src.again(), sink, stopped, 1)
		}
		if !liveOnce(t, cfg, stores, src.again(), sink, stopped, 1<<40) {
			t.Fatal("it did not come to rest")
		}
		e := open(t, cfg, stores, src.again(), sink)
		if c := e.Counters(); c.Read(A) != 1 || c.Read(B) != 2 || c.Matches != 1 {
			t.Errorf("%d ends: %d A and %d B read, %d pairs; want 1, 2, 1", ends, c.Read(A), c.Read(B), c.Matches)
		}
		must(t, e.Close())
	}
}
