package core

import (
	"context"
	"fmt"
	"testing"

	"joinbench/buckets"
	"joinbench/fusefilter"
)

// TestSpill: a bucket that does not fit is written in parts while it fills. The arenas stay below their limit after each
// batch, whatever the helper's pace, the outputs are those of a join that holds everything, and after a restart with
// parts on disk and parts in the journal too.
func TestSpill(t *testing.T) {
	const n, limit = 20_000, 512 << 10
	var as, bs []event
	for i := range n {
		as = append(as, ev(fmt.Sprintf("k%d", i%(n/2)), int64(i))) // each key twice, far apart
	}
	as = append(as, ev("far", 3*n))
	for i := range n {
		bs = append(bs, ev(fmt.Sprintf("k%d", i*7%n), n+int64(i)))
	}
	a, b := []scriptPart{part(0, as...)}, []scriptPart{part(0, bs...)}
	for name, cfg := range map[string]Config{
		"inline":      {Inline: true, Filter: fusefilter.Fuse16},
		"helper":      {Filter: fusefilter.Fuse16, Summary: true},
		"no filter":   {Inline: true, Filter: fusefilter.None},
		"one-to-many": {Inline: true, Filter: fusefilter.Fuse8, Cardinality: OneToMany},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.After, cfg.MaxSpread, cfg.Width, cfg.Slots, cfg.BatchSize, cfg.WantA, cfg.WantB = 3*n, 3*n, 5*n, 4, 256, true, true
			right, whole := runAll(t, &cfg, 1, newScript(t, 512, a, b))
			cfg.ArenaBytes = limit
			stores, sink := memStores(1), &joined{}
			e := open(t, &cfg, stores, newScript(t, 512, a, b), sink)
			batches, spilled := 0, 0
			check := func(e *Engine) error {
				batches++
				task := e.tasks[0]
				open, writing, _, _ := task.arenas()
				if room := max(limit-task.filterBytes(), limit/8); open+writing > room {
					t.Errorf("batch %d: arenas of %d + %d bytes, the limit leaves them %d", batches, open, writing, room)
				}
				if b := task.ring.At(0); b != nil && b.State() == buckets.Open {
					spilled = max(spilled, b.Runs())
				}
				return nil
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			e.Observe = func(e *Engine) error {
				if batches == 2*n/256*3/4 { // in the middle of the B
					cancel()
				}
				return check(e)
			}
			if err := e.Run(ctx); err == nil {
				t.Fatal("it ended before it was stopped")
			}
			must(t, e.Close())
			e = open(t, &cfg, stores, newScript(t, 512, a, b), sink)
			e.Observe = check
			must(t, e.Run(context.Background()))
			must(t, e.Quiesce())
			k := e.Counters()
			must(t, e.Close())
			sameList(t, "pairs", sink.pairs, right.pairs)
			sameList(t, "unmatched B", sink.unmatchedB, right.unmatchedB)
			if spilled < 3 || k.Tasks.Spills < 3 || whole.Tasks.Spills != 0 {
				t.Errorf("an open bucket had %d runs at most; %d spills are counted, and %d without a limit", spilled, k.Tasks.Spills, whole.Tasks.Spills)
			}
		})
	}
}
