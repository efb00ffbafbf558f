package core

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// leftJoin is a left join with W = before = after and grace g, of which nothing else is out of the ordinary.
func leftJoin(w, g int64) Config {
	return Config{Before: w, After: w, Grace: g, MaxSpread: 10 * (w + g + 1), Width: 3 * (w + g + 1), Slots: 16, Cardinality: ManyToMany, WantA: true, BatchSize: 7}
}

// parts1 is a side of one partition.
func parts1(events ...event) []scriptPart { return []scriptPart{part(0, events...)} }

// TestRule07IdlePartition: case B19. Partition 1 of both sides is silent. What waits in partition 0 comes out as soon as it is idle;
// then it sends what is long over: that is counted, and nothing stands still.
func TestRule07IdlePartition(t *testing.T) {
	c := leftJoin(10, 5)
	c.IdleTimeout = 1000
	var tick []event // partition 0 of either side: each 100 ms of clock, and of event time
	for at := int64(0); at < 6000; at += 100 {
		tick = append(tick, ev("tick", at))
	}
	a := []scriptPart{part(0, append([]event{ev("alone", 0)}, tick...)...), part(1, ev("old", 50), ev("old", 60), ev("new", 4500))}
	b := []scriptPart{part(0, tick...), part(1)}
	comes := asTheyAre(a, b)
	comes[A][1] = []int64{4001, 4001, 4501}
	src := newLive(t, a, b, comes)
	sink := &joined{}
	out := whenOut(src, sink)
	// Seen when it was decided: WM stood at −∞ until 1000, and afterwards it is where partition 0 is.
	e := live(t, src.config(c), memStores(1), src, sink, 4400)
	if at := out["a0.0"]; at != 1000 {
		t.Errorf("the A that waits came out at %d, want when partition 1 is idle, at 1000", at)
	}
	wantList(t, "rejects", sink.rejects, "a1.0 late_idle a1.1 late_idle")
	if wm := e.gate.wm; wm != [2]int64{4400, 4400} {
		t.Errorf("watermarks %v, want that of partition 0: what is over does not wake", wm)
	}
	must(t, e.Close())

	// What takes part does: it holds the watermark again, until it is idle.
	stores, src2, sink2 := memStores(1), src.again(), &joined{}
	*src2.clock = 0
	e = live(t, src2.config(c), stores, src2, sink2, 5400)
	if wm := e.gate.wm; wm != [2]int64{4500, 4500} {
		t.Errorf("watermarks %v, want 4500 of both: partition 1 of A is back, and B wait for it", wm)
	}
	src2.until = 5900
	must(t, ignore(e.Run(context.Background()), errUntil))
	if wm := e.gate.wm; wm[A] != 5900 {
		t.Errorf("WM_A %d, want 5900: partition 1 is idle again", wm[A])
	}
	must(t, e.Close())
}

func ignore(err, expected error) error {
	if err == expected {
		return nil
	}
	return err
}

// TestRule07NeverSeen: a partition that was never seen counts as minus infinity until it is idle, and without idle_timeout for ever.
func TestRule07NeverSeen(t *testing.T) {
	for _, timeout := range []int64{0, 500} {
		c := leftJoin(10, 0)
		c.IdleTimeout = timeout
		src := newLive(t, []scriptPart{times(0, "k", 0, 5000), part(1)}, []scriptPart{times(0, "k", 1000, 6000)}, [2][][]int64{{{0, 1}, nil}, {{2, 3}}})
		sink := &joined{}
		e := live(t, src.config(c), memStores(1), src, sink, 499)
		if e.gate.wm[A] != minTime {
			t.Errorf("idle_timeout %d: WM_A %d before it is over", timeout, e.gate.wm[A])
		}
		src.until = 10_000
		must(t, ignore(e.Run(context.Background()), errUntil))
		if want := map[bool]int64{true: minTime, false: 6000}[timeout == 0]; e.gate.wm[A] != want { // idle as a whole, with B at 6000
			t.Errorf("idle_timeout %d: WM_A %d, want %d", timeout, e.gate.wm[A], want)
		}
		must(t, e.Close())
	}
}

// TestRule07StoppedProcess: a process that was stopped for an hour did not listen: nobody is idle for that who speaks soon after it
// runs again, whether it was stopped in a wait or in a batch. Who goes on being silent is idle in the end.
func TestRule07StoppedProcess(t *testing.T) {
	const hour = 3_600_000
	for _, waits := range []bool{true, false} {
		c := leftJoin(10, 0)
		c.IdleTimeout = 1000
		a := []scriptPart{times(0, "k", 100, 300, 900, 901), times(1, "k", 100, 200, 300)}
		src := newLive(t, a, []scriptPart{times(0, "k", 100)}, [2][][]int64{{{100, 300, hour + 310, hour + 2000}, {100, 200, hour + 500}}, {{100}}})
		sink := &joined{}
		stopped := false
		stop := func() {
			if !stopped && *src.clock == 300 {
				stopped = true
				*src.clock += hour
			}
		}
		if waits {
			src.trace = stop
		} else {
			src.work = stop
		}
		e := live(t, src.config(c), memStores(1), src, sink, hour+600)
		if wm := e.gate.wm[A]; !stopped || wm != 300 {
			t.Errorf("stopped in a wait %v: WM_A %d, want that of partition 1, 300, which was never idle", waits, wm)
		}
		src.until = hour + 3000
		must(t, ignore(e.Run(context.Background()), errUntil))
		if wm := e.gate.wm[A]; wm != 901 {
			t.Errorf("stopped in a wait %v: WM_A %d, want 901: partition 1 is silent", waits, wm)
		}
		must(t, e.Close())
	}
}

// TestRule08Late: cases B04 and B05, and by side: an event is late by its own partition's M alone, and at equality in time.
func TestRule08Late(t *testing.T) {
	c := leftJoin(10, 20) // B04: behind the end of its window, inside the grace
	c.Drain = true
	sink, _ := runAll(t, &c, 1, newScript(t, 3, parts1(ev("z", 100), ev("k", 85)), parts1(ev("k", 88))))
	wantList(t, "B04: pairs", sink.pairs, "a0.1+b0.0")
	wantList(t, "B04: unmatched", sink.unmatchedA, "a0.0")

	c = leftJoin(10, 5)
	c.Drain = true
	far := times(1, "k", 90_000) // in another partition: changes nothing
	sink, n := runAll(t, &c, 1, newScript(t, 3, []scriptPart{part(0, ev("z", 100), ev("k", 80), ev("k", 95)), far}, nil))
	wantList(t, "B05: rejects", sink.rejects, "a0.1 late")
	slices.Sort(sink.unmatchedA)
	wantList(t, "B05: unmatched", sink.unmatchedA, "a0.0 a0.2 a1.0")
	if n.Fates[A][Late] != 1 || n.Fates[B][Late] != 0 {
		t.Errorf("B05: late by side %d and %d, want 1 and 0", n.Fates[A][Late], n.Fates[B][Late])
	}
}

// wakingA is an A partition that is idle as a whole until 2000, while B goes on to 1000 of event time, and then sends these.
func wakingA(t *testing.T, events ...event) *liveScript {
	a := parts1(append([]event{ev("x", 0)}, events...)...)
	b := parts1(ev("x", 0), ev("x", 500), ev("k", 1000), ev("k", 1040), ev("x", 3000))
	return newLive(t, a, b, [2][][]int64{{append([]int64{0}, slices.Repeat([]int64{2000}, len(events))...)}, {{0, 1000, 1500, 3000, 4000}}})
}

// TestRule08Behind: while A is idle as a whole, B do not wait for it. An A that wakes behind is accepted if tA + after + G ≥ WM_B, is counted,
// joins from then on, and waits in the oldest open bucket: it pairs with a B in time, comes out by its own time if it does not, and is
// still all of that after a restart.
func TestRule08Behind(t *testing.T) {
	c := leftJoin(100, 10)
	c.Width, c.IdleTimeout = 40, 300
	// WM_B is 1000 when A wakes: 890 is the last that is not over, and its bucket, 22, is sealed: 24 is the oldest that takes events.
	events := []event{ev("k", 890), ev("y", 890), ev("k", 940), ev("k", 995)}
	for _, restart := range []bool{false, true} {
		src := wakingA(t, events...)
		stores, sink := memStores(1), &joined{}
		out := whenOut(src, sink)
		e := live(t, src.config(c), stores, src, sink, 2500)
		if n := e.Counters(); n.Behind[A] != 3 || n.Fates[A][Accepted] != 5 { // 995 is not behind by more than the grace
			t.Fatalf("%d behind, %d accepted, want 3 and 5", n.Behind[A], n.Fates[A][Accepted])
		}
		wantList(t, "pairs before", sink.pairs, "a0.0+b0.0")
		if got := fmt.Sprint(e.gate.back[A]); got != "map[24:2]" {
			t.Errorf("what waits in later buckets: %s, want 2 buckets back in bucket 24", got)
		}
		if restart {
			must(t, e.Close())
			src = src.again()
			out = whenOut(src, sink)
			e = live(t, src.config(c), stores, src, sink, 2500)
		}
		src.until = 3500
		must(t, ignore(e.Run(context.Background()), errUntil))
		slices.Sort(sink.pairs)
		wantList(t, "pairs", sink.pairs, "a0.0+b0.0 a0.3+b0.3 a0.4+b0.3") // 940 and 995 with 1040; 890 is too early
		slices.Sort(sink.unmatchedA)
		wantList(t, "unmatched", sink.unmatchedA, "a0.1 a0.2") // WM_B 1040 > 890 + 110
		if out["a0.1"] != 3000 || out["a0.2"] != 3000 {
			t.Errorf("came out at %v, want at 3000 with the B that passes them", out)
		}
		must(t, e.Close())
	}
}

// TestRule08LateIdle: one that wakes when its window is over is late_idle, does not move M, and at equality it is not over. For a B
// that is when every A that it could pair with is closed.
func TestRule08LateIdle(t *testing.T) {
	c := leftJoin(100, 10)
	c.Width, c.IdleTimeout = 40, 300
	src := wakingA(t, ev("k", 889), bad(NullKey, 889), ev("k", 890))
	sink := &joined{}
	e := live(t, src.config(c), memStores(1), src, sink, 2500)
	wantList(t, "rejects", sink.rejects, "a0.1 late_idle a0.2 late_idle")
	if n := e.Counters(); n.Behind[A] != 1 || n.Fates[A] != [fates]uint64{Accepted: 2, LateIdle: 2} {
		t.Errorf("%d behind, fates %v", n.Behind[A], n.Fates[A])
	}
	if m := e.gate.parts[A][0].m; m != 890 {
		t.Errorf("M is %d, want 890", m)
	}
	must(t, e.Close())

	// B is idle as a whole, A goes on to 1000: an A of 890 waits, one of 889 is closed. A B of 789 can pair with no A that waits, one of
	// 790 could with 890.
	src = newLive(t, parts1(ev("x", 0), ev("k", 850), ev("k", 890), ev("k", 1000)), parts1(ev("x", 0), ev("k", 789), ev("k", 790)),
		[2][][]int64{{{0, 1000, 1000, 1500}}, {{0, 2000, 2000}}})
	sink = &joined{}
	e = live(t, src.config(c), memStores(1), src, sink, 2500)
	wantList(t, "rejects of B", sink.rejects, "b0.1 late_idle")
	wantList(t, "pairs of B", sink.pairs, "a0.0+b0.0 a0.2+b0.2")
	wantList(t, "unmatched", sink.unmatchedA, "a0.1") // although 790 could pair with it by its time: it is out
	if n := e.Counters(); n.Behind[B] != 1 {
		t.Errorf("%d B behind, want 1", n.Behind[B])
	}
	must(t, e.Close())
}

// TestRule09BadTimes: case B21. What has no good time moves nothing and is passed over: the place to read on is the end.
func TestRule09BadTimes(t *testing.T) {
	var tail []event
	for range 10 {
		tail = append(tail, bad(BadTime, -1))
	}
	tail = append(tail, ev("k", 0), bad(BadTime, 1<<62))
	c := leftJoin(10, 5)
	src := newScript(t, 5, parts1(append([]event{ev("k", 100)}, tail...)...), parts1(ev("k", 100)))
	sink := &joined{}
	e := open(t, &c, memStores(1), src, sink)
	must(t, e.Run(context.Background()))
	if n := e.Counters(); n.Fates[A] != [fates]uint64{Accepted: 1, BadTime: 11, Late: 1} || e.Place(A, 0) != 13 {
		t.Errorf("fates %v, place %d", n.Fates[A], e.Place(A, 0))
	}
	if e.gate.wm[A] != 100 {
		t.Errorf("WM_A %d, want 100", e.gate.wm[A])
	}
	must(t, e.Close())
}

// TestRule12Immediate: B that ask at once and never again do not wait for the watermark of A, and miss what comes later; aligned ones
// and those that wait have it.
func TestRule12Immediate(t *testing.T) {
	for probe, want := range map[Probe]string{ProbeAligned: "a0.0+b0.0 a0.1+b0.0", ProbeWait: "a0.0+b0.0 a0.1+b0.0", ProbeImmediate: "a0.0+b0.0"} {
		c := leftJoin(100, 0)
		c.Probe, c.WantB = probe, true
		src := newLive(t, parts1(ev("k", 10), ev("k", 60), ev("z", 1000)), parts1(ev("k", 50), ev("z", 2000)), [2][][]int64{{{0, 10, 20}}, {{5, 30}}})
		sink := &joined{}
		e := live(t, src.config(c), memStores(1), src, sink, 100)
		wantList(t, fmt.Sprintf("probe %d", probe), slices.Sorted(slices.Values(sink.pairs)), want)
		must(t, e.Close())
	}
}

// TestRule13BothSides: B that ask at once are held back by max_spread as A are, at equality not, and only while A has data to read.
func TestRule13BothSides(t *testing.T) {
	for _, probe := range []Probe{ProbeWait, ProbeImmediate} {
		c := gateConfig() // spread 100
		c.Probe = probe
		b := []scriptPart{times(0, "k", 150, 500, 501)}
		// 400 waits for the B at 150; then 500 may go, and 501 only when 400 went.
		for max, want := range map[int][2]string{3: {"a0.0", "b0.0 b0.1"}, 4: {"a0.0 a0.1", "b0.0 b0.1"}, 6: {"a0.0 a0.1 a0.2", "b0.0 b0.1 b0.2"}} {
			g := newGate(c, newScript(t, 2, []scriptPart{times(0, "k", 60, 400, 401)}, b))
			var batch batch
			must(t, g.fill(&batch, max))
			x := &taken{}
			x.add(&batch)
			wantList(t, fmt.Sprintf("the first %d, A", max), x.a, want[A])
			wantList(t, fmt.Sprintf("the first %d, B", max), x.b, want[B])
		}
		x := fillAll(t, newGate(c, newScript(t, 2, []scriptPart{part(0)}, b)), 100, false)
		wantList(t, "B when A has nothing to read", x.b, "b0.0 b0.1 b0.2")
	}
}

// TestRule14TimeReturns: what time has come to is stored: after a restart watermarks are what they were, and what is over stays over.
func TestRule14TimeReturns(t *testing.T) {
	c := leftJoin(100, 10)
	c.Width, c.IdleTimeout = 40, 300
	src := wakingA(t, ev("k", 889), ev("k", 940))
	stores, sink := memStores(2), &joined{}
	e := live(t, src.config(c), stores, src, sink, 1900) // A is idle as a whole
	wm, closed := e.gate.wm, e.gate.closed
	if wm != [2]int64{1000, 1000} {
		t.Fatalf("watermarks %v", wm)
	}
	must(t, e.Close())
	src = src.again()
	e = live(t, src.config(c), stores, src, sink, 1900)
	if e.gate.wm != wm || e.gate.closed != closed || e.gate.idle[A] {
		t.Errorf("watermarks %v, closed %v, idle %v: were %v and %v", e.gate.wm, e.gate.closed, e.gate.idle, wm, closed)
	}
	src.until = 2500
	must(t, ignore(e.Run(context.Background()), errUntil))
	if got := strings.Join(sink.rejects, " "); got != "a0.1 late_idle" || e.Counters().Behind[A] != 1 {
		t.Errorf("%s; %d behind", got, e.Counters().Behind[A])
	}
	must(t, e.Close())
}

// TestRule13UnseenPartition: nothing was known of a partition, and meanwhile another one of A has taken the slot of its bucket: its
// event waits in a later bucket, since no B has passed it.
func TestRule13UnseenPartition(t *testing.T) {
	c := leftJoin(100, 0)
	c.Width, c.Slots, c.MaxSpread = 100, 4, 150
	a := []scriptPart{times(0, "z", 900), times(1, "k", 110, 1200)} // buckets 9 and 1 share a slot
	src := newLive(t, a, parts1(ev("k", 150), ev("z", 1150)), [2][][]int64{{{0}, {10, 30}}, {{20, 40}}})
	sink := &joined{}
	e := live(t, src.config(c), memStores(1), src, sink, 1000)
	wantList(t, "pairs", sink.pairs, "a1.0+b0.0")
	wantList(t, "unmatched", sink.unmatchedA, "a0.0")
	must(t, e.Close())
}

// TestRule07EndedSide: B have ended, and A are idle: that moves no time of A, so that what comes then is no less in time.
func TestRule07EndedSide(t *testing.T) {
	c := leftJoin(10, 5)
	c.Drain, c.IdleTimeout = true, 100
	src := newLive(t, parts1(ev("k", 100), ev("k", 200)), parts1(ev("k", 100)), [2][][]int64{{{0, 5000}}, {{0}}})
	src.ends = true
	sink := &joined{}
	e := open(t, src.config(c), memStores(1), src, sink)
	must(t, e.Run(context.Background()))
	wantList(t, "pairs", sink.pairs, "a0.0+b0.0")
	wantList(t, "unmatched", sink.unmatchedA, "a0.1")
	wantList(t, "rejects", sink.rejects, "")
	must(t, e.Close())
}
