package core

import (
	"context"
	"strconv"
	"testing"

	"joinbench/buckets"
	"joinbench/fusefilter"
)

// TestNoIteratorForAnEvent: B07. What found no partner is looked for when its bucket closes, and then once: 200,000 A without a
// match make no more iterators than buckets are closed, and none at all if nobody wants to hear of them. Lanes that have to be
// built anew read the buckets that stand, beside the join: that makes a few for a bucket, however many events it has.
func TestNoIteratorForAnEvent(t *testing.T) {
	n := 200_000
	if testing.Short() {
		n = 20_000
	}
	for _, c := range []struct{ wanted, lanes bool }{{true, false}, {false, false}, {true, true}, {false, true}} {
		wanted := c.wanted
		a, b := make([]event, 0, n), make([]event, 0, n/10)
		for i := range n {
			a = append(a, ev(seqKey(i), int64(i)*500/int64(n)*100)) // 50 s of event time, in steps of 0.1 s
		}
		for i := range n / 10 {
			b = append(b, ev("sabsent"+seqKey(i), int64(i)*10*500/int64(n)*100))
		}
		cfg := &Config{Before: 1000, After: 1000, MaxSpread: 10_000, Width: 1000, Slots: 32, Filter: fusefilter.Fuse16, Summary: c.lanes, BatchSize: 4096,
			WantA: wanted, WantB: wanted, Drain: true}
		stores := []buckets.Backend{buckets.NewMemBackend()}
		sink := &joined{}
		e := open(t, cfg, stores, newScript(t, 1024, []scriptPart{part(0, a...)}, []scriptPart{part(0, b...)}), sink)
		must(t, e.Run(context.Background()))
		must(t, e.Quiesce())
		k := e.Counters()
		made := int64(stores[0].Iterators())
		must(t, e.Close())
		closed := int64(k.Tasks.DroppedTotal)
		if k.Matches != 0 || wanted && len(sink.unmatchedA) != n || closed < 40 {
			t.Fatalf("%d pairs, %d A unmatched, %d buckets closed: not what this test is about", k.Matches, len(sink.unmatchedA), closed)
		}
		limit := map[bool]int64{true: closed}[wanted]
		if c.lanes {
			limit += 4 * closed
		}
		if made > limit {
			t.Errorf("unmatched wanted: %v, lanes: %v: %d iterators, %d buckets closed", wanted, c.lanes, made, closed)
		}
	}
}

func seqKey(i int) string { return "s" + strconv.Itoa(i) }
