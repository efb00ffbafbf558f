package loadgen

// Endless returns a generator whose streams go on after BEvents at the same rates, as far as the limits of a workload
// allow: years of event time. Its records below BEvents are those of g, and its fingerprint and Config too. (A B that asks
// for a late A beyond the end of g, where ages are shorter than late A are apart, has a key of its own in g.)
//
// What visits all of its B (ExpectedMatches, Verifier.Result) would take hours: ask about the B that were made (ExpectedIn,
// Verifier.ResultFor).
func (g *Gen) Endless() *Gen {
	if g.finite != nil {
		return g
	}
	c := g.cfg
	c.BEvents = c.mostB()
	e, err := newPlan(c)
	if err != nil {
		panic(err) // nothing that can fail depends on BEvents
	}
	e.cfg, e.finite = g.cfg, g
	e.keys, e.tmplA, e.tmplB, e.lateDecoys = g.keys, g.tmplA, g.tmplB, g.lateDecoys
	return e
}

// mostB is the greatest BEvents that Validate allows, a little less for rounding.
func (c Config) mostB() int64 {
	before := c.beforeB() + float64(c.leadA())
	seconds := min(float64(MaxRecords)/c.BEventsPerSec, MaxSpan.Seconds()-before/c.AEventsPerSec,
		(float64(MaxRecords)-before)/c.AEventsPerSec)
	return max(c.BEvents, int64(seconds*c.BEventsPerSec*(1-1e-6)))
}
