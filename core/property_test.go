package core

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestPropertyEqualsNestedLoop: whatever the batches, tasks, slots, filters and hashes, the outputs are those of the
// naive join over what the rules accept, and the books balance.
func TestPropertyEqualsNestedLoop(t *testing.T) {
	eachSeed(t, 250, func(t *testing.T, r *rand.Rand) {
		l := randomLoad(r, 20+r.IntN(1500))
		t.Log(l.desc)
		src := newScript(t, l.chunk, l.a, l.b)
		want := expect(&l.cfg, src)
		sink := &joined{}
		e := open(t, &l.cfg, memStores(l.tasks), src, sink)
		e.Observe = watch(func(e *Engine) { checkLevels(t, e) })
		must(t, e.Run(context.Background()))
		must(t, e.Quiesce())
		if !e.Finished() {
			t.Fatal("stopped before the end of its input")
		}
		checkOutputs(t, sink, want)
		checkBooks(t, e, sink, want)
		must(t, e.Close())
		if len(src.out) > 0 {
			t.Fatalf("%d chunks were never given back", len(src.out))
		}
	})
}

func checkOutputs(t *testing.T, got *joined, want *expected) {
	t.Helper()
	sameList(t, "pairs", got.pairs, want.pairs)
	sameList(t, "early rows", got.early, want.early)
	sameList(t, "rejects", got.rejects, want.rejects)
	sameList(t, "null keys", got.nulls, want.nulls)
	sameList(t, "unmatched A", got.unmatchedA, want.unmatchedA)
	sameList(t, "unmatched B", got.unmatchedB, want.unmatchedB)
}

// checkEarlyCounts holds the counters of rule 17 against what came.
func checkEarlyCounts(t *testing.T, c *Counters, sink *joined) {
	t.Helper()
	count := func(list []string, suffix string) (n uint64) {
		for _, s := range list {
			if strings.HasSuffix(s, suffix) {
				n++
			}
		}
		return n
	}
	if early, corrected, retracted := count(sink.early, " early"), count(sink.pairs, " corrected"), count(sink.early, " retract"); c.Early != early ||
		c.Corrected != corrected || c.Retracted != retracted {
		t.Fatalf("%d early, %d corrected, %d retracted are counted, %d, %d and %d came", c.Early, c.Corrected, c.Retracted, early, corrected, retracted)
	}
}

// checkBooks holds the counters of a drained join against its outputs and against each other.
func checkBooks(t *testing.T, e *Engine, sink *joined, want *expected) {
	t.Helper()
	c, l := e.Counters(), e.Levels(true)
	if c.Fates != want.fates {
		t.Fatalf("fates\n got %v\nwant %v", c.Fates, want.fates)
	}
	for _, s := range []Side{A, B} {
		n := 0
		for _, p := range e.source.(*script).parts[s] {
			n += len(p.events)
		}
		if c.Read(s) != uint64(n) {
			t.Fatalf("side %s: read %d of %d records", s, c.Read(s), n)
		}
	}
	checkEarlyCounts(t, &c, sink)
	if c.Matches != want.matchCount(e.cfg) || c.UnmatchedA != uint64(len(sink.unmatchedA)) || c.UnmatchedB != uint64(len(sink.unmatchedB)) {
		t.Fatalf("%d matches, %d and %d unmatched are counted, %d, %d and %d came", c.Matches, c.UnmatchedA, c.UnmatchedB,
			len(sink.pairs), len(sink.unmatchedA), len(sink.unmatchedB))
	}
	k := &c.Tasks
	if k.Probes != c.Fates[B][Accepted] || k.Stored > c.Fates[A][Accepted] {
		t.Fatalf("%d stored and %d probes of %d and %d accepted", k.Stored, k.Probes, c.Fates[A][Accepted], c.Fates[B][Accepted])
	}
	if l.Pending != 0 || l.Open != 0 || l.Sealed != 0 || k.SealedTotal > k.DroppedTotal {
		t.Fatalf("after a drain: %+v, %d buckets sealed, %d dropped", l, k.SealedTotal, k.DroppedTotal)
	}
	if k.FalsePositives > k.Absent || k.Absent > k.Queries || k.FilterFalse > k.FilterQueries || k.Present > k.Lookups || k.BuildFailed > 0 {
		t.Fatalf("the filters' books: %+v", *k)
	}
	if e.cfg.Inline && k.Absent+k.Present != k.Queries { // beside the join some filter may be missing for a while
		t.Fatalf("%d absent and %d present are not the %d that asked", k.Absent, k.Present, k.Queries)
	}
}

// checkLevels looks at the state between two batches.
func checkLevels(t *testing.T, e *Engine) {
	for i, task := range e.tasks {
		live := 0
		for slot := range e.cfg.Slots {
			b := task.ring.AtSlot(slot)
			if b == nil {
				if task.index[slot] != nil || task.part[slot].OpenIndex != nil {
					t.Errorf("task %d, slot %d: an index without a bucket", i, slot)
				}
				continue
			}
			live += b.Live()
			if b.Epoch < e.gate.floor[A] || e.gate.live[A][slot] != b.Epoch {
				t.Errorf("task %d, slot %d: bucket %d, the gate has floor %d and bucket %d", i, slot, b.Epoch, e.gate.floor, e.gate.live[slot])
			}
			if x := task.index[slot]; x != nil && x.Len() != len(b.Hashes()) {
				t.Errorf("task %d, slot %d: %d rows in the index, %d in the arena", i, slot, x.Len(), len(b.Hashes()))
			}
			if p := task.part[slot]; p.OpenIndex != nil && (!b.Writing() || p.base+uint32(p.Len()) != b.Base()) {
				t.Errorf("task %d, slot %d: an index of rows %d to %d, the arena begins at %d", i, slot, p.base, p.base+uint32(p.Len()), b.Base())
			}
		}
		if live != task.ring.Pending() {
			t.Errorf("task %d: %d live rows, %d pending", i, live, task.ring.Pending())
		}
	}
}

// TestPropertyOrder: the pairs of one B partition come in the order of its B, whatever the number of tasks.
func TestPropertyOrder(t *testing.T) {
	eachSeed(t, 20, func(t *testing.T, r *rand.Rand) {
		l := randomLoad(r, 800)
		l.b = l.b[:1]
		l.cfg.Hash, l.cfg.BatchSize, l.cfg.Collect = nil, 50+r.IntN(500), CollectEager
		var first []string
		for tasks := 1; tasks <= 4; tasks++ {
			sink, _ := runAll(t, &l.cfg, tasks, newScript(t, l.chunk, l.a, l.b))
			pairs := sink.pairs
			if l.cfg.Cardinality == ManyToMany { // the A of a B have no order
				for i, p := range pairs {
					pairs[i] = p[strings.IndexByte(p, '+'):]
				}
			}
			if tasks == 1 {
				first = pairs
			} else if !slices.Equal(first, pairs) {
				t.Fatalf("%d tasks hand the pairs over in another order than one", tasks)
			}
		}
	})
}

// TestPropertyNoDrain: without a drain the join stops when nothing more can move, at the same place whatever the
// batches and tasks; the pairs so far are those of the B that asked. Going on with a drain gives the rest.
func TestPropertyNoDrain(t *testing.T) {
	eachSeed(t, 80, func(t *testing.T, r *rand.Rand) {
		l := randomLoad(r, 20+r.IntN(800))
		t.Log(l.desc)
		src := newScript(t, l.chunk, l.a, l.b)
		want := expect(&l.cfg, src)
		var places []int64
		for life := range 3 {
			cfg := l.cfg
			cfg.Drain = false
			cfg.BatchSize = []int{l.cfg.BatchSize, 1, 1000}[life]
			tasks := []int{l.tasks, 1, 3}[life]
			stores, sink := memStores(tasks), &joined{}
			e := open(t, &cfg, stores, src.again(), sink)
			must(t, e.Run(context.Background()))
			var here []int64
			asked := map[string]bool{}
			for _, s := range []Side{A, B} {
				for p := range src.parts[s] {
					here = append(here, e.Place(s, p))
					for _, ev := range src.parts[s][p].events[:e.Place(s, p)] {
						asked[idOf(s, src.parts[s][p].ID, ev.offset)] = true
					}
				}
			}
			if life == 0 {
				places = here
			} else if !slices.Equal(places, here) {
				t.Fatalf("batches of %d, %d tasks: stopped at %v, others at %v", cfg.BatchSize, tasks, here, places)
			}
			if cfg.Collect == CollectEager { // what groups have so far is the oracle's to say
				so := slices.DeleteFunc(slices.Clone(want.pairs), func(p string) bool { return !asked[strings.TrimSuffix(p[strings.IndexByte(p, '+')+1:], " corrected")] })
				sameList(t, "pairs so far", sink.pairs, so)
			}
			must(t, e.Close())

			cfg.Drain = true
			e = open(t, &cfg, stores, src.again(), sink)
			must(t, e.Run(context.Background()))
			must(t, e.Quiesce())
			checkOutputs(t, sink, want)
			must(t, e.Close())
		}
	})
}
