package core

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// gateConfig is a gate whose ring is long enough for what these tests do unless they say otherwise.
func gateConfig() *Config {
	return &Config{Before: 10, After: 20, Grace: 5, MaxSpread: 100, Width: 1000, Slots: 8}
}

// taken is what a gate let through, in words: ids of rows and "id fate".
type taken struct {
	a, b, rejects, nulls, closed []string
	wm                           [2]int64
}

func (x *taken) add(b *batch) {
	for s, list := range []*[]string{&x.a, &x.b} {
		for _, sl := range b.rows[s] {
			for _, row := range sl.rows {
				*list = append(*list, string(sl.chunk.BodyOf(row)))
			}
		}
	}
	for _, r := range b.rejects {
		x.rejects = append(x.rejects, string(r.Chunk.BodyOf(r.Row))+" "+r.Fate.String())
	}
	for _, r := range b.nulls {
		x.nulls = append(x.nulls, string(r.Chunk.BodyOf(r.Row)))
	}
	for _, r := range b.closed {
		x.closed = append(x.closed, string(r.Chunk.BodyOf(r.Row)))
	}
	x.wm = b.wm
}

// fillAll fills batches of at most max records until the gate gives no more, or for good with drop: then the floor
// moves between them as the engine moves it.
func fillAll(t *testing.T, g *Gate, max int, drop bool) *taken {
	t.Helper()
	x := &taken{}
	var b batch
	for range 10000 {
		must(t, g.fill(&b, max))
		if b.n > max {
			t.Fatalf("%d records in a batch of at most %d", b.n, max)
		}
		x.add(&b)
		before := g.floor
		if drop {
			g.advance(g.cfg.bounds(b.wm))
		}
		moved := g.floor[A] != before[A]
		if b.n == 0 && !moved {
			return x
		}
	}
	t.Fatal("the gate does not come to an end")
	return nil
}

func wantList(t *testing.T, what string, got []string, want string) {
	t.Helper()
	if g := strings.Join(got, " "); g != want {
		t.Errorf("%s: %q, want %q", what, g, want)
	}
}

// TestRule09Fates: rule 8 and rule 9, on either side, in every size of batch. Each case is one partition; another one is
// far ahead in time, which changes nothing.
func TestRule09Fates(t *testing.T) {
	cases := []struct {
		name   string
		events []event
		want   string // fates of the records
	}{
		{"at equality in time, one beyond late", []event{ev("k", 100), ev("k", 95), ev("k", 94)}, "accepted accepted late"},
		{"a late one does not move M", []event{ev("k", 100), ev("k", 94), ev("k", 95)}, "accepted late accepted"},
		{"an earlier one does not move M back", []event{ev("k", 100), ev("k", 96), ev("k", 94)}, "accepted accepted late"},
		{"null_key moves M", []event{ev("k", 1), bad(NullKey, 100), ev("k", 94), ev("k", 95)}, "accepted null_key late accepted"},
		{"bad_key does not move M", []event{bad(BadKey, 900), ev("k", 1)}, "bad_key accepted"},
		{"bad_time does not move M", []event{bad(BadTime, 900), ev("k", 1)}, "bad_time accepted"},
		{"malformed does not move M", []event{bad(Malformed, 900), ev("k", 1)}, "malformed accepted"},
		{"late comes before null_key", []event{ev("k", 100), bad(NullKey, 94), bad(NullKey, 95)}, "accepted late null_key"},
		{"malformed, bad_key and bad_time come before late", []event{ev("k", 100), bad(Malformed, 1), bad(BadKey, 1), bad(BadTime, 1)},
			"accepted malformed bad_key bad_time"},
		{"redelivered comes first", []event{ev("k", 100), {time: 1, key: "k"}, {fate: Malformed}, {fate: BadKey}, {fate: BadTime}, {fate: NullKey}},
			"accepted redelivered redelivered redelivered redelivered redelivered"},
		{"redelivered does not move M", []event{ev("k", 1), {time: 900, key: "k"}, ev("k", 2)}, "accepted redelivered accepted"},
		{"what was turned away counts as read", []event{{offset: 7, fate: Malformed}, {offset: 7, time: 5, key: "k"}, {offset: 8, time: 5, key: "k"}},
			"malformed redelivered accepted"},
		{"offsets may have holes", []event{{offset: 3, time: 1}, {offset: 900, time: 2}, {offset: 899, time: 3}}, "accepted accepted redelivered"},
	}
	for _, side := range []Side{A, B} {
		for _, c := range cases {
			for _, max := range []int{1, 2, 100} {
				t.Run(fmt.Sprintf("%s/%s/%d", side, c.name, max), func(t *testing.T) {
					cfg := gateConfig()
					cfg.Drain, cfg.MaxSpread = true, 1<<40
					var parts [2][]scriptPart
					parts[side] = []scriptPart{part(0, c.events...), times(1, "k", 5000)}
					g := newGate(cfg, newScript(t, 2, parts[A], parts[B]))
					var b batch
					got := make([]string, len(c.events))
					seen := 0
					for {
						must(t, g.fill(&b, max))
						if b.n == 0 {
							break
						}
						for _, list := range [][]Reject{b.rejects, b.nulls} {
							for _, r := range list {
								got[r.Chunk.Place[r.Row]], seen = r.Fate.String(), seen+1
							}
						}
						for _, sl := range b.rows[side] {
							for _, row := range sl.rows {
								if sl.chunk.Partition == 0 {
									got[sl.chunk.Place[row]], seen = "accepted", seen+1
								}
							}
						}
					}
					wantList(t, "fates", got, c.want)
					if seen != len(c.events) {
						t.Errorf("%d records have a fate, of %d", seen, len(c.events))
					}
				})
			}
		}
	}
}

// TestRule07Watermarks: rule 7. What A has said when nothing more moves; partitions end only in the draining cases.
func TestRule07Watermarks(t *testing.T) {
	timeless := part(-1, bad(Malformed, 0))
	timeless.Timeless = true
	cases := []struct {
		name  string
		drain bool
		parts []scriptPart
		want  int64
	}{
		{"the least of the partitions", false, []scriptPart{times(0, "k", 300), times(1, "k", 200)}, 200},
		{"the greatest time of a partition", false, []scriptPart{times(0, "k", 300, 296)}, 300},
		{"a partition never seen is minus infinity", false, []scriptPart{times(0, "k", 300), part(1)}, minTime},
		{"a partition that only sent bad records was never seen", false, []scriptPart{times(0, "k", 300), part(1, bad(BadTime, 7))}, minTime},
		{"null_key counts", false, []scriptPart{part(0, bad(NullKey, 70))}, 70},
		{"what has no partition holds nothing back", false, []scriptPart{timeless, times(0, "k", 300)}, 300},
		{"an ended partition is left out", true, []scriptPart{times(0, "k", 10, 300), part(1)}, maxTime},
		{"a side of no partition never said anything", false, nil, minTime},
		{"a side that is nothing but damage never said anything", false, []scriptPart{timeless}, minTime},
		{"a side of no partition has ended", true, nil, maxTime},
	}
	for _, side := range []Side{A, B} {
		for _, c := range cases {
			t.Run(fmt.Sprintf("%s/%s", side, c.name), func(t *testing.T) {
				cfg := gateConfig()
				cfg.Drain, cfg.MaxSpread = c.drain, 1<<40
				var parts [2][]scriptPart
				parts[side] = c.parts
				if side == B { // so that no B waits for A
					parts[A] = []scriptPart{times(0, "k", 900)}
				}
				x := fillAll(t, newGate(cfg, newScript(t, 3, parts[A], parts[B])), 3, false)
				if x.wm[side] != c.want {
					t.Errorf("watermark %d, want %d", x.wm[side], c.want)
				}
			})
		}
	}
}

// TestRule07NeverBack: rule 7, they never go back: a restart brings them with the commit record, and the heads that
// they counted are not there before they are read again.
func TestRule07NeverBack(t *testing.T) {
	g := newGate(gateConfig(), newScript(t, 1, []scriptPart{times(0, "k", 100), times(1, "k", 200)}, []scriptPart{times(0, "k", 100)}))
	g.wm = [2]int64{150, 170}
	var b batch
	must(t, g.fill(&b, 1))
	if b.wm != [2]int64{150, 170} {
		t.Errorf("watermarks %v after one record of 100, want 150 and 170 as before", b.wm)
	}
}

// TestRule12HeldBack: the first record that is held back counts in the watermark and not in M(p) (rule 7), and a B
// asks when WM_A > tB + before + G, not before (rule 12).
func TestRule12HeldBack(t *testing.T) {
	cfg := gateConfig() // before 10, grace 5, spread 100
	// B's next is 50, so A may go up to 150; 151 is held back, and counts.
	src := newScript(t, 1, []scriptPart{times(0, "k", 64, 151)}, []scriptPart{times(0, "k", 50, 120)})
	g := newGate(cfg, src)
	var b batch
	// 64 and the head B at 50 wait for each other: 50 + 10 + 5 is not below 64.
	must(t, g.fill(&b, 1))
	x := &taken{}
	x.add(&b)
	wantList(t, "A", x.a, "a0.0")
	must(t, g.fill(&b, 100))
	x = &taken{}
	x.add(&b)
	// The head 151 of A counts: 50 asks (65 < 151), then B's head is 120, A may go up to 220, 151 enters; 120 asks (135 < 151).
	wantList(t, "B", x.b, "b0.0 b0.1")
	wantList(t, "A", x.a, "a0.1")

	src = newScript(t, 1, []scriptPart{times(0, "k", 64, 1000)}, []scriptPart{times(0, "k", 50, 984, 985, 986)})
	g = newGate(cfg, src)
	x = fillAll(t, g, 100, false)
	// A has ended at 1000, and nothing drains: 984 + 15 < 1000, 985 + 15 is not.
	wantList(t, "B that are due", x.b, "b0.0 b0.1")
	if p := &g.parts[B][0]; p.m != 984 || p.watermark() != 985 || x.wm[B] != 985 || !p.settled {
		t.Errorf("M(p) %d, its watermark %d, the side's %d: want 984, 985, 985", p.m, p.watermark(), x.wm[B])
	}
	if x.wm[A] != 1000 {
		t.Errorf("WM_A %d, want 1000", x.wm[A])
	}
}

// TestRule07HeadIsNoLateness: while the head waits its time is in the watermark, and not yet in M(p): what is stored of
// the partition is what was accepted.
func TestRule07HeadIsNoLateness(t *testing.T) {
	cfg := gateConfig()
	// Partition 0 holds WM_A at 60, so that B at 50 stays, so that the head 700 of partition 1 waits.
	g := newGate(cfg, newScript(t, 1, []scriptPart{times(0, "k", 60), times(1, "k", 140, 700)}, []scriptPart{times(0, "k", 50)}))
	x := fillAll(t, g, 100, false)
	wantList(t, "A", x.a, "a0.0 a1.0")
	if p := &g.parts[A][1]; p.m != 140 || p.watermark() != 700 {
		t.Errorf("M(p) %d and watermark %d, want 140 and 700", p.m, p.watermark())
	}
}

// TestRule13Spread: rule 13 at equality and one beyond, and as long as B has data to read.
func TestRule13Spread(t *testing.T) {
	a := []scriptPart{times(0, "k", 60), times(1, "k", 150, 151, 900)} // partition 0 ends and holds WM_A at 60
	g := newGate(gateConfig(), newScript(t, 2, a, []scriptPart{times(0, "k", 50), times(1, "k", 800)}))
	x := fillAll(t, g, 100, false)
	wantList(t, "A up to the spread", x.a, "a0.0 a1.0")
	wantList(t, "B", x.b, "")

	g = newGate(gateConfig(), newScript(t, 2, a, []scriptPart{part(0)}))
	x = fillAll(t, g, 100, false)
	wantList(t, "A when B has nothing to read", x.a, "a0.0 a1.0 a1.1 a1.2")

	// A null key moves time, so it waits as well.
	a[1] = part(1, ev("k", 150), bad(NullKey, 151))
	g = newGate(gateConfig(), newScript(t, 2, a, []scriptPart{times(0, "k", 50)}))
	x = fillAll(t, g, 100, false)
	wantList(t, "null keys", x.nulls, "")
}

// TestRule13Displacement: an A whose bucket would displace one that is not due to drop waits, data or not (rule 13).
func TestRule13Displacement(t *testing.T) {
	cfg := gateConfig()
	cfg.Width, cfg.Slots, cfg.MaxSpread = 100, 2, 1<<40
	// Buckets 0 and 1 are taken, 250 needs the slot of bucket 0. B stands at 50: nothing drops.
	a := []scriptPart{times(0, "k", 10, 110, 250, 260), times(1, "k", 20)}
	g := newGate(cfg, newScript(t, 2, a, []scriptPart{times(0, "k", 50)}))
	x := fillAll(t, g, 100, true)
	wantList(t, "A that fit", x.a, "a0.0 a0.1 a1.0")
	if len(x.closed) > 0 {
		t.Errorf("closed: %v", x.closed)
	}
	// Also when B has no data to read and may come back: it has not passed bucket 0.
	g = newGate(cfg, newScript(t, 2, a, []scriptPart{part(0)}))
	x = fillAll(t, g, 100, true)
	wantList(t, "A that fit without B", x.a, "a0.0 a0.1 a1.0")

	// Bucket 0 is over when WM_B > 99 + after + G, which is 124: at 124 it holds, at 125 it is gone.
	for wm, want := range map[int64]string{124: "a0.0 a0.1 a1.0", 125: "a0.0 a0.1 a1.0 a0.2 a0.3"} {
		g = newGate(cfg, newScript(t, 2, a, []scriptPart{times(0, "k", wm)}))
		x = fillAll(t, g, 100, true)
		wantList(t, fmt.Sprintf("A when B is at %d", wm), x.a, want)
	}
}

// TestRule11Jump: a jump in time drops what it passes, in order, and never lands on a live bucket (rule 11); what comes
// for a bucket that is over is accepted, closed, and stored nowhere.
func TestRule11Jump(t *testing.T) {
	cfg := gateConfig()
	cfg.Width, cfg.Slots, cfg.MaxSpread = 200, 2, 100
	a := []scriptPart{times(0, "k", 10, 250, 900_010, 900_250), times(1, "k", 30, 900_260)}
	b := []scriptPart{times(0, "k", 20, 260, 900_030, 900_200)}
	for _, max := range []int{1, 3, 100} {
		g := newGate(cfg, newScript(t, 1, a, b))
		x := fillAll(t, g, max, true)
		slices.Sort(x.a)
		wantList(t, "A", x.a, "a0.0 a0.1 a0.2 a0.3 a1.0 a1.1")
		wantList(t, "closed", x.closed, "")
	}

	// Partition 1 of A comes back from long ago. By its own clock it is in time; every B has passed it. 100 finds its
	// bucket dropped, 900_010 a live one.
	cfg.Drain = true
	a = []scriptPart{times(0, "k", 900_010), times(1, "k", 100, 900_010)}
	g := newGate(cfg, newScript(t, 1, a, []scriptPart{times(0, "k", 900_000, 900_001)}))
	g.advance([2]Bounds{{Floor: 4500}})
	x := fillAll(t, g, 100, true)
	wantList(t, "closed on arrival", x.closed, "a1.0")
	slices.Sort(x.a)
	wantList(t, "A", x.a, "a0.0 a1.1")

	// Without a drop before, partition 0 waits for the slot that partition 1 may still need, and takes it after the drop.
	cfg.Drain = false
	ahead := func() *Gate {
		return newGate(cfg, newScript(t, 1, []scriptPart{times(0, "k", 900_010), times(1, "k", 100)}, []scriptPart{times(0, "k", 900_000)}))
	}
	x = fillAll(t, ahead(), 100, false)
	wantList(t, "A before the drop", x.a, "a1.0")
	x = fillAll(t, ahead(), 100, true)
	wantList(t, "A", x.a, "a1.0 a0.0")
	wantList(t, "closed", x.closed, "")

	// So it does when B has ended and says nothing of what is over: the A of partition 1 may still find a B.
	a = []scriptPart{times(0, "k", 615), times(1, "k", 0, 12, 212)} // 615 has the slot of 212
	g = newGate(cfg, newScript(t, 1, a, []scriptPart{times(0, "k", 0)}))
	x = fillAll(t, g, 100, true)
	wantList(t, "A after the end of B", x.a, "a1.0 a1.1 a1.2")
	wantList(t, "closed", x.closed, "")
}

// TestRule15Ends: a partition that has ended is left out of the watermark, one after the other; without Drain it stays.
func TestRule15Ends(t *testing.T) {
	a := []scriptPart{times(0, "k", 100), times(1, "k", 100, 200), times(2, "k", 300)}
	b := []scriptPart{times(0, "k", 84, 85, 184, 185, 284, 285, 999)}
	for _, c := range []struct {
		drain bool
		want  string
		left  int
	}{{true, "b0.0 b0.1 b0.2 b0.3 b0.4 b0.5 b0.6", 0}, {false, "b0.0", 6}} {
		cfg := gateConfig()
		cfg.Drain, cfg.MaxSpread = c.drain, 500
		g := newGate(cfg, newScript(t, 1, a, b))
		x := fillAll(t, g, 2, false)
		wantList(t, fmt.Sprintf("B with drain=%v", c.drain), x.b, c.want)
		if g.finished() != (c.left == 0) {
			t.Errorf("drain=%v: finished is %v", c.drain, g.finished())
		}
	}
}

// TestRule14Places: a partition's place is where the record after the last one taken would be read again, and its next
// offset what is read for the first time.
func TestRule14Places(t *testing.T) {
	p := part(0, event{offset: 5, time: 10, key: "k"}, event{offset: 9, time: 900, key: "k"}, event{offset: 10, time: 901, key: "k"})
	g := newGate(gateConfig(), newScript(t, 2, []scriptPart{times(0, "k", 12), p}, []scriptPart{times(0, "k", 0)}))
	fillAll(t, g, 100, false) // 900 is beyond the spread, and B waits for it
	if q := &g.parts[A][1]; q.place != 1 || q.next != 6 || q.m != 10 {
		t.Errorf("place %d, next offset %d, M %d: want 1, 6, 10", q.place, q.next, q.m)
	}
}

// TestRule11Bounds: when a bucket is dropped and sealed, at equality and one beyond (rules 10 and 11).
func TestRule11Bounds(t *testing.T) {
	cfg := gateConfig() // width 1000, after 20, grace 5
	for _, c := range []struct{ wmA, wmB, floor, sealable int64 }{
		{minTime, minTime, -1, -1}, // anything below zero: no event has a negative time
		{1004, 2024, 1, 0},         // newest of bucket 1 is 1999: it closes when WM_B > 2024
		{1005, 2025, 2, 1},         // nothing in time enters bucket 0 when WM_A − 5 ≥ 1000
		{maxTime, maxTime, (maxTime - 25) / 1000, (maxTime - 5) / 1000},
	} {
		got := cfg.bounds([2]int64{c.wmA, c.wmB})[A]
		if c.wmA == minTime {
			if got.Floor >= 0 || got.Sealable >= 0 {
				t.Errorf("before anything came: %+v", got)
			}
			continue
		}
		if got != (Bounds{Floor: c.floor, Sealable: c.sealable}) {
			t.Errorf("WM_A %d, WM_B %d: %+v, want floor %d, sealable %d", c.wmA, c.wmB, got, c.floor, c.sealable)
		}
	}
}
