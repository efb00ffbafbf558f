package core

import (
	"context"
	"testing"
)

// TestRule15IdleAdvance: case B06. An A, then silence: with idle_advance its null row comes that much after its window; at the end with a
// drain; without either it waits, and is counted as pending.
func TestRule15IdleAdvance(t *testing.T) {
	for _, timeout := range []int64{0, 500, 30_000} {
		c := leftJoin(10_000, 1000)
		c.IdleAdvance, c.IdleTimeout, c.Width, c.Slots = 2000, timeout, 5000, 64
		src := newLive(t, parts1(ev("k", 0)), []scriptPart{part(0), part(1)}, [2][][]int64{{{7}}, {nil, nil}})
		sink := &joined{}
		out := whenOut(src, sink)
		e := live(t, src.config(c), memStores(1), src, sink, 100_000)
		const due = 7 + 10_000 + 1000 + 2000
		if at := out["a0.0"]; at <= due || at > due+2000/8 {
			t.Errorf("idle_timeout %d: the null row came at %d, want soon after %d", timeout, at, due)
		}
		if last := src.waits[len(src.waits)-1]; last > due+40_000 {
			t.Errorf("the engine wakes up although nothing waits: at %d", last)
		}
		must(t, e.Close())
	}
	c := leftJoin(10_000, 1000)
	src := newLive(t, parts1(ev("k", 0)), parts1(), [2][][]int64{{{7}}, {nil}})
	sink := &joined{}
	e := live(t, src.config(c), memStores(1), src, sink, 100_000)
	if len(sink.unmatchedA) > 0 || e.Levels(false).Pending != 1 {
		t.Errorf("neither: %v came out, %d pending", sink.unmatchedA, e.Levels(false).Pending)
	}
	must(t, e.Close())
	c.Drain = true
	sink, _ = runAll(t, &c, 1, newScript(t, 1, parts1(ev("k", 0)), parts1()))
	wantList(t, "drained", sink.unmatchedA, "a0.0")
}

// TestRule15IdleAdvanceFrees: a B that is held back for A that do not come is freed as time goes on, and pairs.
func TestRule15IdleAdvanceFrees(t *testing.T) {
	c := leftJoin(100, 10)
	c.IdleAdvance, c.WantB = 2000, true
	src := newLive(t, parts1(ev("k", 1000)), parts1(ev("k", 1050), ev("y", 1060)), [2][][]int64{{{1000}}, {{1050, 1060}}})
	sink := &joined{}
	out := whenOut(src, sink)
	e := live(t, src.config(c), memStores(1), src, sink, 10_000)
	wantList(t, "pairs", sink.pairs, "a0.0+b0.0")
	if at := out["b0.1"]; at <= 1060+110+2000 || at > 1060+110+2000+250 {
		t.Errorf("the B without a partner came at %d", at)
	}
	must(t, e.Close())

	// A that was never seen: time is that of the B.
	src = newLive(t, parts1(), parts1(ev("y", 1060)), [2][][]int64{{nil}, {{1060}}})
	sink = &joined{}
	out = whenOut(src, sink)
	e = live(t, src.config(c), memStores(1), src, sink, 10_000)
	if at := out["b0.0"]; at <= 1060+110+2000 || at > 1060+110+2000+250 {
		t.Errorf("the B came at %d although A was never seen", at)
	}
	must(t, e.Close())
}

// TestRule15IdleAdvanceWaitsForSilence: as long as records come in time nothing moves by the clock, on either side; and partitions that
// speak at different times all count from their own last record.
func TestRule15IdleAdvanceWaitsForSilence(t *testing.T) {
	c := leftJoin(100, 0)
	c.IdleAdvance, c.MaxSpread, c.Slots = 2000, 100_000, 64
	c.Width = leastWidth(&c)
	var bs []event
	var at []int64
	for i := range int64(20) { // time of B stands still, records come
		bs, at = append(bs, ev("x", 800)), append(at, 1000+1900*i)
	}
	a := []scriptPart{times(0, "k", 950), times(1, "k", 990)}
	src := newLive(t, a, parts1(bs...), [2][][]int64{{{950}, {990}}, {at}})
	sink := &joined{}
	out := whenOut(src, sink)
	e := live(t, src.config(c), memStores(1), src, sink, 36_000)
	if len(sink.unmatchedA) > 0 {
		t.Fatalf("%v came out while records of B came", sink.unmatchedA)
	}
	if wm := e.gate.wm; wm != [2]int64{950, 800} {
		t.Fatalf("watermarks %v while records of B came, want 950 and 800", wm)
	}
	src.until = 60_000
	must(t, ignore(e.Run(context.Background()), errUntil))
	last := at[len(at)-1] // B stands at 800 + (now − last) − 2000
	for id, due := range map[string]int64{"a0.0": last + 2000 + 250, "a1.0": last + 2000 + 290} {
		if got := out[id]; got <= due || got > due+250 {
			t.Errorf("%s came out at %d, want soon after %d", id, got, due)
		}
	}
	must(t, e.Close())
}

// TestRule15IdleAdvanceOfMany: a partition counts from its own last record, so that a sparse one holds nothing back; one that is idle is
// left out, however far back it is, and if all are the one furthest ahead speaks.
func TestRule15IdleAdvanceOfMany(t *testing.T) {
	c := leftJoin(100, 0)
	c.IdleAdvance, c.Slots = 2000, 64
	c.Width = 10_000
	as := parts1(ev("k", 5000))
	run := func(b []scriptPart, comes [][]int64, timeout int64) map[string]int64 {
		c.IdleTimeout = timeout
		src := newLive(t, as, b, [2][][]int64{[][]int64{{5000}, {5000}}[:len(as)], comes})
		sink := &joined{}
		out := whenOut(src, sink)
		e := live(t, src.config(c), memStores(1), src, sink, 40_000)
		must(t, e.Close())
		return out
	}
	// Both stand at now − 2000, though one said nothing for 3 s.
	if at := run([]scriptPart{times(0, "x", 5000), times(1, "x", 2000)}, [][]int64{{5000}, {2000}}, 0)["a0.0"]; at <= 7100 || at > 7350 {
		t.Errorf("a sparse partition: it came out at %d, want soon after 7100", at)
	}
	// Partition 1 is 4 s behind the clock. It holds back until it is idle.
	back := []scriptPart{times(0, "x", 5000), times(1, "x", 1000)}
	if at := run(back, [][]int64{{5000}, {5000}}, 0)["a0.0"]; at <= 11_100 || at > 11_350 {
		t.Errorf("a partition behind: it came out at %d, want soon after 11100", at)
	}
	for _, a := range [][]scriptPart{parts1(ev("k", 5000)), {times(0, "k", 5000), times(1, "x", 1000)}} { // of one side, of both
		as = a
		if at := run(back, [][]int64{{5000}, {5000}}, 1000)["a0.0"]; at <= 7100 || at > 7350 {
			t.Errorf("a partition behind that is idle: it came out at %d, want soon after 7100", at)
		}
	}
}
