package compare

// clockMetric is what sees a build that waits: for a lock, a helper, a disk, or because it sleeps. CPU time does not.
const clockMetric = "cost.ns_per_b"

// slicedMetric is the same of runs that stand still now and then, without the batches in which they did.
const slicedMetric = "cost.cpu_parts.clock_ns_per_b"

const (
	// clockLimit is how much longer a B may take by the clock where CPU time decides. The clock's time of a run of profile gate varies by a
	// tenth and more, and a part of it is waiting for helpers whatever the build does, so this is a coarse question; it is there because a
	// build that sleeps passed.
	clockLimit = 0.10
	// clockAlpha is that of a test in both directions, so half of it are equal builds called worse, and that beyond the limit. Five runs of
	// each build can just be that sure, when all of one took longer than all of the other.
	clockAlpha = 0.01
)

// byClock judges the clock's time of runs that took turns for their CPU time, by one test when they have ended. What it cannot tell weighs
// nothing: the question was another.
func byClock(base, fresh *Build, r Rule) Result {
	m := measure(base, fresh, r)
	if m.Base == nil || m.New == nil {
		m.Verdict, m.Reason = Unjudged, "one of the two does not know it"
		return m
	}
	m.decide(base, fresh, r, clockAlpha)
	switch m.Verdict {
	case Regression:
		m.Reason = "by the clock, of which CPU time is a part: does it wait?"
	case Inconclusive:
		m.Verdict, m.Reason = Unjudged, "not told by so few runs; --metric "+clockMetric+" asks"
	}
	return m
}
