package loadgen

import (
	"fmt"
	"math"
	"sort"
	"time"
)

// A steady start. A stream that has run for long has, at any moment, two kinds of A that wait: those that nothing will
// ever ask for, over a whole window, and those whose B is still to come, over as long as matches take. Without Steady all A
// before B 0 are sent, and those whose B would have come before it wait for nothing till their window ends: with
// 1,330 A/s of which 1,000 pair after five minutes, that is three quarters of what a window holds, and in the first
// window of the run it all goes away again.
//
// With Steady these are left out: their indexes exist, so that everything else is computed as ever, but no record has
// them, and offsets have gaps as those of a compacted topic have. How many indexes lie before B 0 follows from Pending,
// the number of records there. A join one-to-many keeps what has paired, so there nothing is left out.

// leavesOut says whether some A are left out.
func (c Config) leavesOut() bool { return c.Steady && !c.OneToMany && c.primaryShare() > 0 }

// meanAge of a match in seconds.
func (c Config) meanAge() float64 {
	var sum time.Duration
	ages := c.ages()
	for _, a := range ages {
		sum += a
	}
	return sum.Seconds() / float64(len(ages))
}

// steadyRateA is the A rate at which Pending A wait: those that nothing asks for over After, the others over the
// mean age. Without a B rate half of the in-time A find a partner.
func (c Config) steadyRateA() float64 {
	after, age := c.After.Seconds(), c.meanAge()
	if c.BEventsPerSec > 0 {
		asked := c.primaryShare() * c.BEventsPerSec
		return max(asked+max(0, float64(c.Pending)-asked*age)/after, asked/(1-c.LateShareA))
	}
	half := (1 - c.LateShareA) / 2
	return float64(c.Pending) / (half*age + (1-half)*after)
}

// beforeB estimates how many A indexes lie before B 0; +Inf when no number of them holds Pending records.
func (c Config) beforeB() float64 {
	pending := float64(c.Pending)
	if !c.leavesOut() {
		return pending
	}
	asked := c.primaryShare() * c.BEventsPerSec
	waits := asked * c.meanAge() // for a B still to come
	if waits >= pending {
		return pending
	}
	if c.AEventsPerSec <= asked {
		return math.Inf(1)
	}
	return max(pending, (pending-waits)*c.AEventsPerSec/(c.AEventsPerSec-asked))
}

// tooFewWait is the error of a Pending that no length of history reaches.
func (c Config) tooFewWait() error {
	found := c.primaryShare() * c.BEventsPerSec
	return fmt.Errorf("loadgen: a steady start with %d pending is not possible: of %g A/s %g/s find a partner after %.0f s, and too few are left to wait (set a_events_per_sec higher, or leave it to be derived)",
		c.Pending, c.AEventsPerSec, found, c.meanAge())
}

// begin finds how many A indexes lie before B 0, and how many of these are left out.
func (g *Gen) begin() error {
	c := &g.cfg
	if !c.leavesOut() {
		g.startAt(c.Pending)
		return nil
	}
	// Each further index adds one record or none, so the least that has Pending before it can be searched.
	n := sort.Search(int(MaxRecords-c.Pending), func(n int) bool {
		g.startAt(c.Pending + int64(n))
		return g.first-g.left >= c.Pending
	})
	g.startAt(c.Pending + int64(n))
	if g.first-g.left != c.Pending {
		return c.tooFewWait()
	}
	g.a.gone = &g.pairs[0]
	return nil
}

// startAt has B 0 come with A index first.
func (g *Gen) startAt(first int64) {
	g.first = first
	for m := range g.pairs {
		g.pairs[m].origin = int64(g.a.matched.blockOf(uint64(first))) / (g.as * g.b.lanes)
	}
	if g.left = 0; g.cfg.leavesOut() {
		g.left = g.pairs[0].countBefore()
	}
}

// countBefore returns the number of strides from 0 on whose matched B would come before B 0. With a class c these are
// s = origin + c - delay - n, then n less each: one in n of those below origin + c - delay.
func (p *pairing) countBefore() (count int64) {
	for class, delay := range p.delay {
		count += max(0, p.origin+int64(class)-delay) / p.n
	}
	return count
}

// leftOut says whether index i is no record: its partner would have come before B 0.
func (s *side) leftOut(i int64) bool {
	if s.gone == nil {
		return false
	}
	n, matched := s.matched.at(uint64(i))
	if !matched {
		return false
	}
	_, comes := s.gone.ordinalOf(int64(n))
	return !comes
}

// HasA says whether there is an A record with index i. Only with Config.Steady, and below DueA(0), are there indexes
// without one.
func (g *Gen) HasA(i int64) bool { return i >= g.first || !g.a.leftOut(i) }

// LeftOut returns how many indexes below ACount have no record.
func (g *Gen) LeftOut() int64 { return g.left }

// Waiting visits the A that wait when B record j asks, which may be BCount, in the order of their indexes: records in
// time that are due, whose time is not over (rule 10), and that no B before j has consumed.
func (g *Gen) Waiting(j int64, visit func(i int64)) {
	now := g.b.base(j)
	over := now - g.after - g.a.grace
	for i := max(0, stepIndex(max(0, over-g.a.base0), g.a.step)); i < g.DueA(j); i++ {
		if t, late := g.a.lateness(i); late || t < over || !g.HasA(i) {
			continue
		}
		if by, paired := g.PartnerOf(i); paired && by < j && !g.cfg.OneToMany {
			continue
		}
		visit(i)
	}
}
