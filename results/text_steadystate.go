package results

// steadyState shows whether what was measured had settled, where a run asked for that or was long enough to say.
func (p *page) steadyState(s *SteadyState) {
	if s == nil || !s.Required && s.Samples < steadySamples {
		return
	}
	p.title("STEADY STATE")
	answer := "attained"
	if !s.Attained {
		answer = "not attained"
	}
	if s.Required {
		answer += ", and required"
	}
	p.row("over the measured phase", answer)
	for _, reason := range s.Reasons {
		p.row("", reason)
	}
	p.row("buckets while measuring", Count(s.BucketsSealed)+" sealed, "+Count(s.BucketsDropped)+" dropped")
	var rows [][]string
	for i := range s.Criteria {
		c := &s.Criteria[i]
		rows = append(rows, []string{c.Metric, orDash(c.Slope, signed), orDash(c.Deviation, Percent), orDash(c.Limit, Percent)})
	}
	p.table([]string{"  of the median", "drift", "departs", "allowed"}, rows)
}

// rotation shows what a batch costs while a bucket rotates.
func (p *page) rotation(r *Rotation) {
	if r == nil || r.P99InsideNs == nil || r.P99OutsideNs == nil {
		return
	}
	p.title("ROTATION")
	p.row("buckets sealed", Count(r.Rotations))
	p.row("p99 of a batch", nanos(*r.P99InsideNs)+" while one rotates ("+Count(r.BatchesInside)+" batches), "+
		nanos(*r.P99OutsideNs)+" otherwise ("+Count(r.BatchesOutside)+"): "+orDash(r.P99Ratio, plain)+" ×")
}
