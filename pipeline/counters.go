package pipeline

import (
	"joinbench/core"
	"joinbench/results"
)

// counters puts what the engine counted into the names that all reports share.
func counters(e *core.Engine, from *compiled, outputs uint64) results.Counters {
	c, l := e.Counters(), e.Levels(false)
	t, cfg := &c.Tasks, &from.core
	out := results.Counters{
		Unvalidated: from.lenient,
		A:           side(&c, core.A), B: side(&c, core.B),
		Outputs: int64(outputs), Matches: int64(c.Matches), UnmatchedA: int64(c.UnmatchedA), UnmatchedB: int64(c.UnmatchedB),
		Early: int64(c.Early), Corrected: int64(c.Corrected), Retracted: int64(c.Retracted),
		Probes: int64(t.Probes), Lookups: int64(t.Lookups), BucketsConsulted: int64(t.FilterQueries),
		Filter: results.Filter{
			Kind: cfg.Filter.String(), Summary: cfg.Summary,
			PresentQueries: int64(t.Queries - t.Absent), AbsentQueries: int64(t.Absent), FalsePositives: int64(t.FalsePositives), StalePositives: int64(t.Stale),
			FilterQueries: int64(t.FilterQueries), FilterFalsePositives: int64(t.FilterFalse),
			BuildNs: int64(t.BuildTime), BuildFailed: int64(t.BuildFailed), Rebuilt: int64(t.FiltersRebuilt),
		},
		Buckets: results.Buckets{Open: int64(l.Open), Sealed: int64(l.Sealed), SealedTotal: int64(t.SealedTotal),
			DroppedTotal: int64(t.DroppedTotal), DropMaxNs: int64(t.DropMax),
			Spills: int64(t.Spills)},
	}
	// All rows with null count: early ones (rule 17), and each record without a key if its side comes out unmatched (rule 4).
	out.UnmatchedA += out.Early
	if from.nulls[core.A] {
		out.UnmatchedA += out.A.NullKey
	}
	if from.nulls[core.B] {
		out.UnmatchedB += out.B.NullKey
	}
	out.A.Pending, out.B.Pending = int64(l.Pending), int64(l.PendingB)
	out.Filter.BitsPerKey = ratio(float64(t.FilterBytes)*8, float64(t.FilterKeys))
	out.Filter.FPPredicted = ratio(t.Predicted, float64(t.Queries))
	out.Derive()
	return out
}

func side(c *core.Counters, s core.Side) results.Side {
	f := c.Fates[s]
	n := func(fate core.Fate) int64 { return int64(f[fate]) }
	return results.Side{Read: int64(c.Read(s)), Accepted: n(core.Accepted), NullKey: n(core.NullKey), BadKey: n(core.BadKey),
		Malformed: n(core.Malformed), BadTime: n(core.BadTime), Late: n(core.Late), LateIdle: n(core.LateIdle),
		Redelivered: n(core.Redelivered), Behind: int64(c.Behind[s])}
}

// ratio is nil where there is nothing to divide by.
func ratio(a, b float64) *float64 {
	if b == 0 {
		return nil
	}
	v := a / b
	return &v
}

// perBucket is what the buckets that went were asked.
func perBucket(e *core.Engine) []results.PerBucket {
	var out []results.PerBucket
	for _, d := range e.Drops() {
		if d.Rows == 0 && d.BucketBook == (core.BucketBook{}) {
			continue // a run that was still being written when its bucket went
		}
		out = append(out, results.PerBucket{Epoch: d.Epoch, Rows: d.Rows, Left: d.Left, Lookups: int64(d.Lookups),
			FalsePositives: int64(d.FalsePositives), StalePositives: int64(d.Stale)})
	}
	return out
}
