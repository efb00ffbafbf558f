package results

import (
	"fmt"
	"time"
)

// Load is what was offered and what was taken, in B per second over the measured phase. OfferedPerS is null in a run without
// a schedule (mode "closed": as fast as it goes). QueueMax is the greatest number of B that were due and not taken.
type Load struct {
	Mode         string    `json:"mode"`     // open, closed
	Arrival      string    `json:"arrival"`  // uniform, poisson; "" in a closed loop
	CatchUp      string    `json:"catch_up"` // queue, drop; "" in a closed loop
	OfferedPerS  *float64  `json:"offered_per_s"`
	AchievedPerS *float64  `json:"achieved_per_s"`
	Dropped      int64     `json:"dropped"`
	QueueMax     *int64    `json:"queue_max"` // null in a closed loop
	Generator    Generator `json:"generator"`
}

// Generator tells whether the instrument itself was the limit. CeilingPerS is what it makes, decodes and hands over with no
// join behind it and all cores to itself. CPURatio is the share of the cores that making and decoding records took while
// measuring. LagP99Ns is that of latency.schedule_lag. BlockedRatio is the share of the measured phase in which the join
// waited for B that were due and not made yet. The last two are null in a closed loop.
type Generator struct {
	CeilingPerS  *float64 `json:"ceiling_per_s"`
	CPURatio     *float64 `json:"cpu_ratio"`
	LagP99Ns     *int64   `json:"lag_p99_ns"`
	BlockedRatio *float64 `json:"blocked_ratio"`
}

// Bounds of an open loop. A run that achieves less than AchievedLeast of what was offered is invalid if the join waited
// for the generator for more than BlockedMost of the time; otherwise the join itself was the limit, which is a result.
// LagMost is for the 99th percentile of schedule lag: Go moves a goroutine that computes aside after 10 ms.
const (
	AchievedLeast = 0.99
	BlockedMost   = 0.02
	LagMost       = 20 * time.Millisecond
)

// generatorBound: in an open loop the instrument was the limit, or could not keep its schedule.
func generatorBound(l *Load) []Finding {
	if l == nil || l.OfferedPerS == nil {
		return nil
	}
	var out []Finding
	invalid := func(format string, args ...any) {
		out = append(out, Finding{Status: StatusInvalid, Reason: fmt.Sprintf(format, args...)})
	}
	g, offered := &l.Generator, *l.OfferedPerS
	if g.CeilingPerS != nil && offered > *g.CeilingPerS {
		invalid("%s offered, and the generator makes %s at most with no join behind it: ask for a lower --rate, smaller records, or use more cores",
			Rate(offered), Rate(*g.CeilingPerS))
	}
	if l.behind() && g.BlockedRatio != nil && *g.BlockedRatio > BlockedMost {
		invalid("generator-bound: %s achieved of %s offered, and the join waited %s of the time for B that were due: ask for a lower --rate, or use more cores",
			Rate(*l.AchievedPerS), Rate(offered), Percent(*g.BlockedRatio))
	}
	if g.LagP99Ns != nil && time.Duration(*g.LagP99Ns) > LagMost {
		invalid("the schedule was not kept: 1 B in 100 could be handed over only %s and more after it was due (limit %s): ask for a lower --rate, or keep other work off this machine",
			nanos(*g.LagP99Ns), nanos(int64(LagMost)))
	}
	return out
}

// behind says whether less was taken than was offered. What was dropped on purpose counts as taken: it is reported as such.
func (l *Load) behind() bool {
	return l.OfferedPerS != nil && l.AchievedPerS != nil && *l.AchievedPerS < AchievedLeast**l.OfferedPerS
}

// overload is what to know of an open loop in which the join did not keep up.
func overload(l *Load) []Finding {
	if l == nil || !l.behind() || len(generatorBound(l)) > 0 {
		return nil
	}
	text := fmt.Sprintf("the join did not keep up: %s achieved of %s offered", Rate(*l.AchievedPerS), Rate(*l.OfferedPerS))
	if l.Dropped > 0 {
		text += fmt.Sprintf(", %s dropped", Count(l.Dropped))
	} else {
		text += "; B queue up, and response times tell how long the run was"
	}
	return []Finding{{Status: StatusWarning, Reason: text}}
}
