package loadgen

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// steadySmall is the reference case a thousand times smaller: of 1.33 A/s one finds a partner, after 5 minutes on average.
func steadySmall() Config {
	return Config{Seed: 3, Pending: 5000, AEventsPerSec: 1.33, BEventsPerSec: 100, MatchRate: 0.01, BEvents: 600_000,
		Grace: 10 * time.Second, Disorder: time.Second, After: 4 * time.Hour, PartitionsA: 3, PartitionsB: 2, Steady: true,
		Ages: []time.Duration{30 * time.Second, 2 * time.Minute, 4 * time.Minute, 13*time.Minute + 30*time.Second}}
}

// waits counts, by the texts' times and the pairs alone, the A that wait when B j asks.
func waits(g *Gen, as []row, found map[int64]int64, j int64) (n int64) {
	c := g.Config()
	consumed := map[int64]bool{}
	for b, i := range found {
		consumed[i] = consumed[i] || b < j && !c.OneToMany
	}
	now := Epoch + stepTime(uint64(g.first), g.a.step) + stepTime(uint64(j), g.b.step)
	for i := range g.DueA(j) {
		if a := &as[i]; !a.gone && !a.late && !consumed[i] && a.TS+ms(c.After)+ms(c.Grace) >= now {
			n++
		}
	}
	return n
}

// TestSteadyStart: as many A wait when the first B asks as Pending says, and as many at any later moment, where a start with
// all A would begin with four times as many.
func TestSteadyStart(t *testing.T) {
	for _, rate := range []float64{0, 1.33} { // derived: as long as a window; given: as long as it takes
		c := steadySmall()
		c.AEventsPerSec = rate
		g, as, bs := generate(t, c)
		found := map[int64]int64{}
		oracleOf(c).join(as, bs, func(j, i int64) { found[j] = i })
		if sent := g.DueA(0) - g.LeftOut(); sent != c.Pending {
			t.Fatalf("%d records before the first B, want %d", sent, c.Pending)
		}
		for _, j := range []int64{0, 1, c.BEvents / 7, c.BEvents / 2, c.BEvents} {
			want := waits(g, as, found, j)
			if d := float64(want)/float64(c.Pending) - 1; d < -0.02 || d > 0.02 || j == 0 && rate == 0 && d < -0.005 {
				t.Errorf("rate %g: %d A wait when B %d asks, %d were asked for", rate, want, j, c.Pending)
			}
			var got int64
			g.Waiting(j, func(i int64) { got++ })
			if got != want {
				t.Errorf("rate %g: Waiting visits %d A when B %d asks, %d wait", rate, got, j, want)
			}
		}
		history := time.Duration(stepTime(uint64(g.first), g.a.step)) * time.Millisecond
		if d := history - c.After; rate == 0 && (d < -time.Minute || d > time.Minute) {
			t.Errorf("%v of history before the first B, want %v", history, c.After)
		}
	}
}

// TestSteadyLeavesOutExactlyTheJoined: with B to the end of time every A before B 0 that some B was meant for has that
// B still to come, and those left out are older than the others by as much as ages allow.
func TestSteadyLeavesOutExactlyTheJoined(t *testing.T) {
	c := steadySmall()
	g := mustNew(t, c)
	var kept, gone int64
	b0 := g.b.base(0)
	for i := range g.DueA(0) {
		_, meant := g.a.matched.at(uint64(i))
		j, paired := g.PartnerOf(i)
		age := b0 - g.TimeA(i)
		switch {
		case !meant:
			if !g.HasA(i) {
				t.Fatalf("A %d, for which no B was meant, is left out", i)
			}
		case g.HasA(i):
			kept++
			if !paired || j < 0 || age > 2*ms(c.Ages[3]) {
				t.Fatalf("A %d waits since %d ms for B %d, %v", i, age, j, paired)
			}
		default:
			gone++
			if paired || age < ms(c.Ages[0])/2-2*ms(c.Disorder) {
				t.Fatalf("A %d of %d ms before B 0 is left out, paired %v", i, age, paired)
			}
		}
	}
	// 1 match a second, after 300 s on average.
	if kept < 295 || kept > 305 || gone != g.LeftOut() {
		t.Errorf("%d A wait for a B to come, want 300; %d are left out, LeftOut says %d", kept, gone, g.LeftOut())
	}
}

// TestSteadyOneToManyKeepsAll: what has paired goes on waiting.
func TestSteadyOneToManyKeepsAll(t *testing.T) {
	c := steadySmall()
	c.OneToMany = true
	g := mustNew(t, c)
	if g.LeftOut() != 0 || g.DueA(0) != c.Pending {
		t.Errorf("%d of %d left out", g.LeftOut(), g.DueA(0))
	}
}

// TestSteadyGoesOn: the endless stream is the finite one, and its B have partners beyond its end.
func TestSteadyGoesOn(t *testing.T) {
	c := steadySmall()
	c.BEvents = 1000
	g := mustNew(t, c)
	e := g.Endless()
	if e.DueA(0) != g.DueA(0) || e.LeftOut() != g.LeftOut() || e.BCount() < 1<<35 {
		t.Fatalf("%d before B 0, %d left out, %d B", e.DueA(0), e.LeftOut(), e.BCount())
	}
	for i := range g.ACount() {
		if g.HasA(i) != e.HasA(i) || g.HasA(i) && !bytes.Equal(g.AppendA(nil, i), e.AppendA(nil, i)) {
			t.Fatalf("A %d differs", i)
		}
	}
	if n := e.ExpectedIn(1<<34, 1<<34+100_000); n < 999 || n > 1001 {
		t.Errorf("%d matches of 100,000 B", n)
	}
}

func TestSteadyThatCannotBe(t *testing.T) {
	c := steadySmall()
	c.AEventsPerSec = 1 // all of them find a partner
	if _, err := New(c); err == nil || !strings.Contains(err.Error(), "steady start with 5000 pending is not possible") {
		t.Errorf("error %v", err)
	}
	c.Pending = 250 // fewer than 1 match a second and 300 s: that many wait at any moment
	if g, err := New(c); err != nil || g.DueA(0)-g.LeftOut() != 250 {
		t.Errorf("error %v", err)
	}
}

// TestPutAgain: writing a record over any other one of its side gives what writing it anew gives.
func TestPutAgain(t *testing.T) {
	rnd := rand.New(rand.NewPCG(newSeed(t), 11))
	for _, size := range []int{0, 150, 256, 1024} {
		c := small()
		c.RecordBytes = max(size, smallestRecord(20, false))
		g := mustNew(t, c)
		w, again := g.NewWriter(), g.NewWriter()
		a, b, fresh := make([]byte, c.RecordBytes), make([]byte, c.RecordBytes), make([]byte, c.RecordBytes)
		y := int64(0)
		for n := range 3000 {
			x := rnd.Int64N(g.ACount())
			key, at := w.PutA(a, x, n > 0)
			if keyFresh, time := again.PutA(fresh, x, false); !bytes.Equal(a, fresh) || !bytes.Equal(key, keyFresh) || at != time || at != g.TimeA(x) ||
				!bytes.Equal(a, g.AppendA(nil, x)) || !bytes.Equal(key, g.AppendAKey(nil, x)) {
				t.Fatalf("A %d: %s, anew %s", x, a, fresh)
			}
			if x = y; rnd.IntN(50) == 0 { // mostly neighbours
				x = rnd.Int64N(g.BCount())
			}
			y = (x + 1 + rnd.Int64N(3)) % g.BCount()
			key, at = w.PutB(b, x, n > 0)
			if keyFresh, time := again.PutB(fresh, x, false); !bytes.Equal(b, fresh) || !bytes.Equal(key, keyFresh) || at != time || at != g.TimeB(x) ||
				!bytes.Equal(b, g.AppendB(nil, x)) || !bytes.Equal(key, g.AppendBKey(nil, x)) {
				t.Fatalf("B %d: %s, anew %s", x, b, fresh)
			}
		}
	}
}
