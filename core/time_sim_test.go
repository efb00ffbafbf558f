package core

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// liveLoad is a random live input: partitions that fall silent and wake, with what they missed or with new events.
func liveLoad(r *rand.Rand) (Config, func(testing.TB) *liveScript) {
	c := Config{Before: r.Int64N(3) * r.Int64N(60), After: r.Int64N(300), Grace: r.Int64N(2) * r.Int64N(40), Width: 40 + r.Int64N(40), Slots: 64,
		Cardinality: ManyToMany, Probe: []Probe{ProbeAligned, ProbeAligned, ProbeWait, ProbeImmediate}[r.IntN(4)], WantA: true, WantB: true,
		BatchSize: []int{1, 3, 1000}[r.IntN(3)]}
	c.MaxSpread = c.Before + c.Grace + 1 + r.Int64N(300)
	c.IdleTimeout = r.Int64N(4) * (95 + 10*r.Int64N(60)) // never at a moment at which a record comes
	moments := r.Perm(40_000)
	side := func(first int32) (parts []scriptPart, comes [][]int64) {
		for i := range 1 + r.IntN(3) {
			p, at := livePart(r, &c, first+int32(i), &moments)
			parts, comes = append(parts, p), append(comes, at)
		}
		return parts, comes
	}
	a, ca := side(0)
	b, cb := side(3)
	return c, func(t testing.TB) *liveScript { return newLive(t, a, b, [2][][]int64{ca, cb}) }
}

// livePart makes one partition. Its event times follow the clock, but for times of silence, after which it goes on where it was, or now.
func livePart(r *rand.Rand, c *Config, id int32, moments *[]int) (scriptPart, []int64) {
	n := r.IntN(40)
	comes := make([]int64, 0, n)
	from, silence := r.IntN(20_000), r.IntN(20_000)
	for len(comes) < n && len(*moments) > 0 { // moments of its own, out of a piece of the day, and mostly not in its silence
		at := (*moments)[0]
		*moments = (*moments)[1:]
		if gone := at > silence && at < silence+15_000; at >= from && (!gone || r.IntN(20) == 0) {
			comes = append(comes, 10*int64(at))
		}
	}
	slices.Sort(comes)
	n = len(comes)
	events := make([]event, 0, n)
	lag := int64(0)
	for i, at := range comes {
		if r.IntN(8) == 0 {
			lag = r.Int64N(2) * r.Int64N(900)
		}
		e := event{time: max(0, at/200-lag-r.Int64N(2)*r.Int64N(2*c.Grace+2)), key: fmt.Sprintf("k%d", r.IntN(4)), offset: int64(i)}
		switch r.IntN(30) {
		case 0:
			e.fate = NullKey
		case 1:
			e.fate = []Fate{BadTime, BadKey, Malformed}[r.IntN(3)]
		case 2:
			e.offset = max(0, e.offset-r.Int64N(3))
		}
		events = append(events, e)
	}
	return part(id, events...), comes
}

// TestRule07Simulation: what partitions that fall silent and wake give is what the rules say event by event, whatever the batches,
// also when the join is stopped and goes on (rule 14).
func TestRule07Simulation(t *testing.T) {
	var total [2]struct{ behind, lateIdle uint64 }
	eachSeed(t, 400, func(t *testing.T, r *rand.Rand) {
		c, script := liveLoad(r)
		src := script(t)
		cfg := src.config(c)
		t.Logf("%+v", c)
		model := newTimeModel(cfg, src)
		stores, sink := memStores(1+r.IntN(2)), &joined{}
		var ends []int64
		for range r.IntN(4) {
			ends = append(ends, 10*r.Int64N(40_000)+3)
		}
		ends = append(ends, 450_003)
		slices.Sort(ends)
		var counted Counters
		for _, end := range ends {
			life := src.again()
			e := live(t, cfg, stores, life, sink, end)
			model.playTo(end)
			if e.gate.wm != model.wm {
				t.Fatalf("at %d: watermarks %v, the rules say %v", end, e.gate.wm, model.wm)
			}
			checkLevels(t, e)
			counted = e.Counters()
			must(t, e.Close())
			*src.clock, model.now = end, end
			model.forget()
		}
		checkOutputs(t, sink, &model.expected)
		if counted.Behind != model.behind || counted.Fates != model.fates {
			t.Fatalf("behind %v, fates %v; the rules say %v and %v", counted.Behind, counted.Fates, model.behind, model.fates)
		}
		for s := range total {
			total[s].behind += counted.Behind[s]
			total[s].lateIdle += counted.Fates[s][LateIdle]
		}
	})
	t.Logf("%+v", total)
	if !testing.Short() && *runsFlag == 0 && (min(total[A].behind, total[B].behind) < 100 || min(total[A].lateIdle, total[B].lateIdle) < 100) {
		t.Errorf("the loads are too tame: %+v", total)
	}
}
