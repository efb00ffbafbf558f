package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"joinbench/buckets"
	"joinbench/fusefilter"
)

// joinAll runs a script in several sizes of batch, tasks and rings, and wants the same pairs of each.
func joinAll(t *testing.T, cfg Config, a, b []scriptPart, want ...string) {
	t.Helper()
	for _, slots := range []int{2, 16} {
		for _, batch := range []int{1, 1000} {
			for tasks := 1; tasks <= 2; tasks++ {
				c := cfg
				c.Slots, c.BatchSize, c.Inline, c.Drain = slots, batch, true, true
				c.MaxSpread = max(c.MaxSpread, c.Before+c.Grace+1)
				c.Width = leastWidth(&c)
				sink, _ := runAll(t, &c, tasks, newScript(t, 3, a, b))
				sameList(t, fmt.Sprintf("%d slots, batches of %d, %d tasks", slots, batch, tasks), sink.pairs, want)
			}
		}
	}
}

// TestRule01WindowEnds: rule 1, both ends inclusive, whoever is alone at which end.
func TestRule01WindowEnds(t *testing.T) {
	cfg := Config{Before: 10, After: 20, Cardinality: OneToMany}
	joinAll(t, cfg, []scriptPart{times(0, "k", 100)}, []scriptPart{times(0, "k", 89, 90, 91, 119, 120, 121)}, "a0.0+b0.1", "a0.0+b0.2", "a0.0+b0.3", "a0.0+b0.4")
	// The widest windows reach over bucket borders too.
	cfg = Config{Before: 1000, After: 0}
	joinAll(t, cfg, []scriptPart{times(0, "k", 1000, 2000)}, []scriptPart{times(0, "k", 0, 999, 1000, 2000)}, "a0.0+b0.0", "a0.1+b0.2")
	cfg = Config{}
	joinAll(t, cfg, []scriptPart{times(0, "k", 5, 6)}, []scriptPart{times(0, "k", 4, 5, 7)}, "a0.0+b0.1")
}

// TestRule01AsymmetricWindow: B02. The window is not mirrored, in whatever order the sides arrive: the grace lets A come
// behind B inside their partitions, chunks and batches cut the rest.
func TestRule01AsymmetricWindow(t *testing.T) {
	at := []int64{99, 100, 200, 201}
	for _, order := range permutations(len(at)) {
		var events []event
		var want []string
		for _, i := range order {
			if at[i] == 100 || at[i] == 200 {
				want = append(want, idOf(B, 0, int64(len(events))))
			}
			events = append(events, ev("k", at[i]))
		}
		b := []scriptPart{part(0, events...)}
		for name, cfg := range map[string]Config{
			"before 0, after 100": {After: 100, Grace: 150, Cardinality: OneToMany},
			"before 100, after 0": {Before: 100, Grace: 150, Cardinality: OneToMany},
		} {
			t.Run(fmt.Sprint(name, order), func(t *testing.T) {
				a := int64(100)
				if cfg.Before > 0 {
					a = 200 // sees 100 to 200 as well
				}
				// Alone; behind and before one that is far ahead in time, within the grace.
				for n, parts := range [][]scriptPart{{times(0, "k", a)}, {part(0, ev("z", a+140), ev("k", a))}, {part(0, ev("k", a), ev("z", a+140))}} {
					id := idOf(A, 0, 0)
					if n == 1 {
						id = idOf(A, 0, 1)
					}
					joinAll(t, cfg, parts, b, id+"+"+want[0], id+"+"+want[1])
				}
			})
		}
	}
}

func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{{}}
	}
	var all [][]int
	for _, p := range permutations(n - 1) {
		for i := range n {
			all = append(all, slices.Insert(slices.Clone(p), i, n-1))
		}
	}
	return all
}

// TestRule02EarliestA: rule 2. The earliest A by time, partition number and offset, whether its bucket is open, sealing or
// sealed and in whatever order they came; one-to-one goes on to the next, one-to-many keeps to it.
func TestRule02EarliestA(t *testing.T) {
	// Partition numbers are not in the order of their places, and offsets not in that of the times.
	a := []scriptPart{
		times(7, "k", 500, 300, 300),
		times(3, "k", 300, 450, 320),
		times(5, "k", 300, 310),
		times(1, "other", 200, 300),
	}
	b := []scriptPart{times(0, "k", 600, 601, 602, 603, 604, 605, 606, 607, 608)}
	cfg := Config{After: 1000, Grace: 250}
	order := []string{"a3.0", "a5.0", "a7.1", "a7.2", "a5.1", "a3.2", "a3.1", "a7.0"}
	var one, many []string
	for i := range 9 {
		if i < len(order) {
			one = append(one, fmt.Sprintf("%s+b0.%d", order[i], i))
		}
		many = append(many, fmt.Sprintf("%s+b0.%d", order[0], i))
	}
	joinAll(t, cfg, a, b, one...)
	cfg.Cardinality = OneToMany
	joinAll(t, cfg, a, b, many...)
}

// TestEarliestAcrossStates: one B finds A in an open bucket, in one that is being sealed and in a sealed one, and takes
// the earliest; then the next one.
func TestEarliestAcrossStates(t *testing.T) {
	for _, c := range []struct {
		cardinality Cardinality
		want        []string
	}{
		{OneToOne, []string{"a0.0+b0.0", "a0.2+b0.1", "a0.4+b0.2"}},
		{OneToMany, []string{"a0.0+b0.0", "a0.0+b0.1", "a0.0+b0.2", "a0.0+b0.3"}},
	} {
		cfg := &Config{Before: 300, After: 1000, Cardinality: c.cardinality, MaxSpread: 400, Width: 100, Slots: 18, Filter: fusefilter.Fuse16,
			BatchSize: 1, WantA: true, WantB: true}
		a := part(0, ev("k", 120), ev("x", 200), ev("k", 250), ev("x", 330), ev("k", 640), ev("x", 690))
		b := times(0, "k", 350, 360, 370, 380)
		sink := &joined{}
		e := open(t, cfg, memStores(1), newScript(t, 1, []scriptPart{a}, []scriptPart{b}), sink)
		task := e.tasks[0]
		hold, held, builds := make(chan struct{}), make(chan struct{}), 0
		task.help.builder.Before = func(fusefilter.Kind, int) error {
			if builds++; builds == 2 { // that of bucket 2
				close(held)
				<-hold
			}
			return nil
		}
		var states []buckets.State // of the buckets of 120, 250 and 640 when the first B had asked
		sealing, let := false, false
		e.Observe = watch(func(e *Engine) {
			if !sealing && e.gate.wm[A] >= 300 { // bucket 2 is on its way, so the seal of bucket 1 is there to be taken in
				sealing = true
				<-held
				must(t, task.collect(false))
			}
			if len(sink.pairs) == 1 && states == nil {
				for _, epoch := range []int64{1, 2, 6} {
					states = append(states, task.ring.At(epoch).State())
				}
			}
		})
		sink.fail = func(int, *Output) error {
			if !let && (len(sink.pairs) > 2 || len(sink.unmatchedB) > 0) {
				let = true
				close(hold)
			}
			return nil
		}
		must(t, e.Run(context.Background()))
		must(t, e.Close())
		if !slices.Equal(states, []buckets.State{buckets.Sealed, buckets.Sealing, buckets.Open}) {
			t.Errorf("the buckets were %v, want sealed, sealing, open", states)
		}
		if !slices.Equal(sink.pairs, c.want) {
			t.Errorf("pairs %v, want %v", sink.pairs, c.want)
		}
	}
}

// TestRule03ManyOfOneKey: a key with more entries than a chunk holds, sealed, is walked chunk by chunk: one-to-one uses all
// of them up in order, past the used ones; an entry of a later chunk is good until the sink returns.
func TestRule03ManyOfOneKey(t *testing.T) {
	const n = 200 // chunks hold 64
	var as, bs []event
	var want []string
	for i := range n {
		as, bs = append(as, ev("k", 100+int64(i)%7)), append(bs, ev("k", 1500))
	}
	for tm := range int64(7) { // by time, then by offset
		for i := range n {
			if int64(i)%7 == tm {
				want = append(want, fmt.Sprintf("a0.%d+b0.%d", i, len(want)))
			}
		}
	}
	as, bs = append(as, ev("x", 2000)), append(bs, ev("k", 1501))
	for _, batch := range []int{1, 64, n + 1, 1000} {
		cfg := &Config{After: 2000, Grace: 10, MaxSpread: 2000, Width: 1000, Slots: 8, Filter: fusefilter.Fuse16, BatchSize: batch, Inline: true}
		sink, c := runAll(t, cfg, 1, newScript(t, 50, []scriptPart{part(0, as...)}, []scriptPart{part(0, bs...)}))
		if !slices.Equal(sink.pairs, want) {
			t.Fatalf("batches of %d: %d pairs, want %d in the order of the A", batch, len(sink.pairs), len(want))
		}
		if batch == n+1 && c.Tasks.Lookups < n*2 {
			t.Errorf("%d lookups: the key was not sealed before its B asked", c.Tasks.Lookups)
		}
		if batch == n+1 && (c.Tasks.Stale != 1 || c.Tasks.Present != n+1) {
			t.Errorf("%d stale and %d present, want 1 and %d", c.Tasks.Stale, c.Tasks.Present, n+1)
		}
	}
}

// TestWeakHash: keys of one hash are told apart by their bytes, in open and in sealed buckets.
func TestWeakHash(t *testing.T) {
	cfg := Config{After: 100, Hash: func([]byte) uint64 { return 7 }}
	a := []scriptPart{part(0, ev("k1", 10), ev("k2", 11), ev("k3", 12), ev("k1", 50), ev("k", 60), ev("", 61))}
	b := []scriptPart{part(0, ev("k2", 20), ev("k1", 20), ev("k4", 20), ev("k3", 112), ev("k1", 120), ev("k", 130), ev("", 131))}
	joinAll(t, cfg, a, b, "a0.1+b0.0", "a0.0+b0.1", "a0.2+b0.3", "a0.3+b0.4", "a0.4+b0.5", "a0.5+b0.6")
}

// TestRule16Unmatched: with WantA and WantB every event that had no partner comes out once: those that are stored when their
// bucket is over, those that come for a bucket that is over at once; without Drain the others stay.
func TestRule16Unmatched(t *testing.T) {
	a := []scriptPart{part(0, ev("k1", 10), ev("k2", 20), ev("k3", 700), bad(NullKey, 701)), part(1, ev("k9", 690))}
	b := []scriptPart{part(0, ev("k1", 15), ev("k1", 16), ev("z", 400), ev("k3", 800), bad(NullKey, 801))}
	for _, drain := range []bool{true, false} {
		cfg := &Config{Before: 5, After: 150, MaxSpread: 300, Width: 50, Slots: 16, BatchSize: 1, WantA: true, WantB: true, Inline: true, Drain: drain}
		src, sink := newScript(t, 1, a, b), &joined{}
		e := open(t, cfg, memStores(1), src, sink)
		must(t, e.Run(context.Background()))
		pending := e.Levels(false).Pending
		must(t, e.Close())
		if drain {
			sameList(t, "pairs", sink.pairs, []string{"a0.0+b0.0", "a0.2+b0.3"})
			sameList(t, "unmatched A", sink.unmatchedA, []string{"a0.1", "a1.0"})
			sameList(t, "unmatched B", sink.unmatchedB, []string{"b0.1", "b0.2"})
		} else { // A ends with 690 in one partition: 800 does not ask, and counts in WM_B
			sameList(t, "pairs", sink.pairs, []string{"a0.0+b0.0"})
			sameList(t, "unmatched A", sink.unmatchedA, []string{"a0.1"})
			sameList(t, "unmatched B", sink.unmatchedB, []string{"b0.1", "b0.2"})
		}
		if want := map[bool]int{true: 0, false: 2}[drain]; pending != want {
			t.Errorf("drain=%v: %d pending, want %d", drain, pending, want)
		}
	}
}

// TestPending: an A that was used up no longer waits, and if that was before its bucket was sealed it is in no family; in
// one-to-many it stays.
func TestPending(t *testing.T) {
	for _, c := range []struct {
		cardinality     Cardinality
		pending, sealed int
	}{{OneToOne, 3, 3}, {OneToMany, 5, 4}} {
		cfg := &Config{After: 100, MaxSpread: 60, Width: 100, Slots: 16, BatchSize: 1, Inline: true, Cardinality: c.cardinality}
		sink := &joined{}
		// k1 asks as soon as 120 is seen, which waits for it; bucket 0 is sealed behind that batch.
		e := open(t, cfg, memStores(1), newScript(t, 1, []scriptPart{part(0, ev("k1", 10), ev("k2", 20), ev("k3", 30), ev("x", 99), ev("x", 120))},
			[]scriptPart{part(0, ev("k1", 40), ev("k3", 50), ev("k3", 51))}), sink)
		must(t, e.Run(context.Background()))
		if l := e.Levels(false); l.Pending != c.pending || l.SealedRows != c.sealed || l.Sealed != 1 || l.Open != 1 {
			t.Errorf("cardinality %d: %+v, want %d pending and %d sealed rows", c.cardinality, l, c.pending, c.sealed)
		}
		must(t, e.Close())
	}
}

// TestStaysPending: B06. Without Drain an A whose B side never says anything waits on.
func TestStaysPending(t *testing.T) {
	for name, b := range map[string][]scriptPart{"no partition": nil, "an empty partition": {part(0)}} {
		cfg := &Config{After: 10, MaxSpread: 20, Width: 10, Slots: 4, BatchSize: 10, WantA: true, WantB: true, Inline: true}
		sink := &joined{}
		e := open(t, cfg, memStores(1), newScript(t, 1, []scriptPart{times(0, "k", 5)}, b), sink)
		must(t, e.Run(context.Background()))
		if n := e.Levels(false).Pending; n != 1 || len(sink.unmatchedA) > 0 {
			t.Errorf("%s: %d pending and %v unmatched, want 1 and none", name, n, sink.unmatchedA)
		}
		must(t, e.Close())
	}
}

// TestSourceFails: an error of the source ends the run with it; what was committed stays, and the next life goes on.
func TestSourceFails(t *testing.T) {
	cfg := &Config{After: 10, MaxSpread: 20, Width: 10, Slots: 4, BatchSize: 1, Inline: true, Drain: true}
	src := newScript(t, 1, []scriptPart{times(0, "k", 5, 6, 7)}, []scriptPart{times(0, "k", 8, 9, 10)})
	stores, sink := memStores(1), &joined{}
	e := open(t, cfg, stores, &failing{script: src, left: 4}, sink)
	if err := e.Run(context.Background()); !errors.Is(err, errEnd) {
		t.Fatal(err)
	}
	must(t, e.Close())
	e = open(t, cfg, stores, src.again(), sink)
	must(t, e.Run(context.Background()))
	must(t, e.Close())
	sameList(t, "pairs", sink.pairs, []string{"a0.0+b0.0", "a0.1+b0.1", "a0.2+b0.2"})
}

// failing is a source that breaks.
type failing struct {
	*script
	left int
}

func (f *failing) Next(side Side, part int) (*Chunk, error) {
	if f.left--; f.left < 0 {
		return nil, errEnd
	}
	return f.script.Next(side, part)
}

// TestRule10Closes: an A is over when the watermark of B is past its window and grace, not at equality, whatever the
// width of the buckets.
func TestRule10Closes(t *testing.T) {
	for _, width := range []int64{7, 100, 1000} {
		for at, want := range map[int64]int{125: 0, 126: 1} { // 100 + after + grace = 125
			cfg := &Config{After: 20, Grace: 5, MaxSpread: 2000, Width: width, Slots: 64, BatchSize: 4, WantA: true, Inline: true}
			sink := &joined{}
			e := open(t, cfg, memStores(1), newScript(t, 1, []scriptPart{part(0, ev("k", 100), ev("z", 400))}, []scriptPart{times(0, "x", at)}), sink)
			must(t, e.Run(context.Background()))
			if len(sink.unmatchedA) != want {
				t.Errorf("width %d, WM_B %d: %v came out, want %d", width, at, sink.unmatchedA, want)
			}
			must(t, e.Close())
		}
	}
}
