package results

// steadyShown is how long a measured phase is of which the report says whether it was steady.
const steadyShown = 60_000_000_000 // ns

// steadiness shows how memory, disk and pace fared over a long measured phase.
func (p *page) steadiness(s *Steady) {
	if s == nil || s.MeasuredNs < steadyShown {
		return
	}
	var rows [][]string
	for _, l := range []struct {
		label string
		*SteadyLevel
	}{{"anonymous memory", &s.RSS}, {"Go heap", &s.GoHeap}, {"arenas", &s.Arenas}, {"filters", &s.Filters}, {"RocksDB", &s.RocksDB}, {"disk", &s.Disk}} {
		slope := orDash(l.SlopePer10Min, func(v float64) string { return signed(v) })
		rows = append(rows, []string{l.label, Bytes(l.MinBytes), Bytes(l.MedianBytes), Bytes(l.MaxBytes), slope})
	}
	p.table([]string{"OVER TIME", "least", "median", "most", "per 10 min"}, rows)
	p.row("measured", nanos(s.MeasuredNs)+", of which the first "+nanos(s.WarmUpNs)+" are left out here; "+Count(s.Samples)+" samples")
	p.row("longest without a batch", nanos(s.MaxGapNs)+", "+nanos(s.MaxGapEngineNs)+" of it in the engine")
	p.row("longest in the engine", nanos(s.MaxEngineNs))
	if s.WriteStalls != nil {
		p.row("write stalls", Count(*s.WriteStalls))
	}
}

// signed is a share in per cent with its sign.
func signed(v float64) string {
	text := fixed(100*v, 2) + " %"
	if v > 0 {
		text = "+" + text
	}
	return text
}

// recovery shows how a resumed run came back.
func (p *page) recovery(r *Recovery) {
	if r == nil {
		return
	}
	p.title("RECOVERY")
	p.row("A waiting on disk", Count(r.Pending)+", filters to build "+Count(r.Unfiltered))
	p.row("state open", "after "+nanos(r.OpenedNs)+", of which opening took "+nanos(r.OpenNs))
	after := func(ns *int64) string {
		if ns == nil {
			return "not before the run ended"
		}
		return "after " + nanos(*ns)
	}
	ready := after(r.ReadyNs)
	if r.ReadyAfterOpenNs != nil {
		ready += ", " + nanos(*r.ReadyAfterOpenNs) + " after the opening"
	}
	p.row("first batch done", ready)
	p.row("all filters back", after(r.FiltersReadyNs))
	p.row("lookups per B", "as before ("+orDash(r.LookupsPerProbeBefore, plain)+") "+after(r.LookupsSettledNs))
}
