package core

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"joinbench/fusefilter"
)

// TestSwapAfter: with SwapAfter the counts of every batch are the same however fast the helpers are: once each has finished
// before the batch ends, once they build slowly.
func TestSwapAfter(t *testing.T) {
	rotating, differ := 0, 0
	eachSeed(t, 40, func(t *testing.T, r *rand.Rand) {
		l := randomLoad(r, 500+r.IntN(1000))
		l.cfg.Inline, l.cfg.BatchSize = false, 5+r.IntN(30)
		l.cfg.Filter, l.cfg.SwapAfter = fusefilter.Fuse8, 1+r.IntN(6)
		t.Log(l.desc, "swap after", l.cfg.SwapAfter)
		run := func(early bool, after int) (counts []string) {
			cfg := l.cfg
			cfg.SwapAfter = after
			if !early {
				cfg.BuildFault = func(fusefilter.Kind, int) error {
					for range 50 {
						runtime.Gosched()
					}
					return nil
				}
			}
			e := open(t, &cfg, memStores(l.tasks), newScript(t, l.chunk, l.a, l.b), &joined{})
			e.Observe = watch(func(e *Engine) {
				for _, task := range e.tasks {
					for early && len(task.help.results) < task.help.open {
						runtime.Gosched()
					}
				}
				k, v := e.Counters().Tasks, e.Levels(false)
				counts = append(counts, fmt.Sprint(k.Lookups, k.Present, k.Absent, k.FalsePositives, k.FilterQueries, k.Stale, k.SealedTotal,
					k.DroppedTotal, k.FiltersBuilt, k.FilterKeys, k.Spills, v.Open, v.Sealed, v.Unfiltered, v.Rotating, v.FilterBytes))
				rotating += v.Rotating
			})
			must(t, e.Run(context.Background()))
			must(t, e.Close())
			return counts
		}
		first, second := run(true, l.cfg.SwapAfter), run(false, l.cfg.SwapAfter)
		for i := range min(len(first), len(second)) {
			if first[i] != second[i] {
				t.Fatalf("batch %d of %d: with fast helpers %s, with slow ones %s", i, len(first), first[i], second[i])
			}
		}
		if len(first) != len(second) {
			t.Fatalf("%d batches with fast helpers, %d with slow ones", len(first), len(second))
		}
		if !slices.Equal(run(true, 0), run(false, 0)) {
			differ++
		}
	})
	if rotating == 0 {
		t.Error("nothing was sealed beside the join")
	}
	if *runsFlag == 0 && !testing.Short() && differ == 0 {
		t.Error("without SwapAfter fast and slow helpers count the same too: the test shows nothing")
	}
}
