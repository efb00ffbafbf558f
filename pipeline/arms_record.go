package pipeline

import (
	"slices"
	"time"

	"joinbench/results"
)

// merged is the record of the first arm that has one, with what all arms gave.
func (r *armsRun) merged(runErr error) *results.Record {
	at := slices.IndexFunc(r.runs, func(a *armRun) bool { return a.record != nil || a.killed != nil })
	if at < 0 {
		return nil
	}
	main := r.runs[at]
	rec := main.whole()
	rec.Run.Argv, rec.Run.Complete = r.Argv, runErr == nil
	rec.Run.StartedAt, rec.Run.EndedAt = r.started.UTC().Format(time.RFC3339), time.Now().UTC().Format(time.RFC3339)
	if p, err := main.profile(r.Profile); err == nil {
		var set map[string]string
		rec.Run.Config, set = configOf(p)
		_, rec.Run.ConfigOrigin = configOf(r.Profile)
		for key, origin := range set {
			if origin == armOrigin {
				rec.Run.ConfigOrigin[key] = origin
			}
		}
	}
	for _, a := range r.runs {
		rec.Arms = append(rec.Arms, a.result(r.runs[0]))
	}
	if without := r.lookupsPerProbe("none"); without != nil && rec.Join.LookupsPerProbe != nil {
		rec.Join.VsArm = ratio(*without, *rec.Join.LookupsPerProbe)
	}
	rec.SetThresholds(r.Thresholds)
	rec.Verdict = results.Judge(rec, r.findings(main, runErr)...)
	rec.Verdict.Reasons = unique(rec.Verdict.Reasons) // what the arm found, the record may say too
	return rec
}

// unique leaves out what was said before.
func unique(list []string) []string {
	kept := []string{}
	for _, s := range list {
		if !slices.Contains(kept, s) {
			kept = append(kept, s)
		}
	}
	return kept
}

// lookupsPerProbe of an arm, nil if that is not known.
func (r *armsRun) lookupsPerProbe(name string) *float64 {
	for _, a := range r.runs {
		if a.Name == name && a.lastRecord() != nil {
			return a.whole().Join.LookupsPerProbe
		}
	}
	return nil
}

// lastRecord is that of the last life that told one.
func (a *armRun) lastRecord() *results.Record {
	if a.record != nil {
		return a.record
	}
	return a.killed
}

// whole puts the lives of an arm together: what was measured and counted is that of the first, in which all slices lie (the
// second reads every bucket for each B until its filters are back); the truth is that of both.
func (a *armRun) whole() *results.Record {
	if a.killed == nil || a.record == nil {
		return a.lastRecord()
	}
	rec := *a.killed
	rec.Recovery = a.record.Recovery
	rec.Join.Filter.FalseNegatives = a.record.Join.Filter.FalseNegatives
	if t := a.record.Join.Truth; t != nil {
		both := *t
		both.SealedPartnerProbes, both.ExpectedMatchRatio = rec.Join.SealedPartnerProbes, nil
		// Those of the B that had asked. The first life cannot say how many these were to the last one, but if none of its
		// pairs was wrong, and of all B none is missing, they were what it found.
		both.ExpectedMatches = rec.Join.Matches + t.Missing - t.Spurious - t.Duplicated
		rec.Join.Truth = &both
		rec.Join.Derive()
	}
	c, o := &rec.Cost, &a.record.Cost
	c.RSSMaxBytes, c.RSSFileMaxBytes = larger(c.RSSMaxBytes, o.RSSMaxBytes), larger(c.RSSFileMaxBytes, o.RSSFileMaxBytes)
	c.GoHeapBytes, c.DiskMaxBytes = larger(c.GoHeapBytes, o.GoHeapBytes), larger(c.DiskMaxBytes, o.DiskMaxBytes)
	if c.UnitNs != nil && o.UnitNs != nil {
		c.UnitNs = results.Known((*c.UnitNs + *o.UnitNs) / 2) // before measuring, and after
	}
	return &rec
}

func larger(a, b *int64) *int64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// result is the arm's line in the record.
func (a *armRun) result(first *armRun) results.Arm {
	out := results.Arm{Name: a.Name, Note: a.note, Slices: a.slices}
	if a.first != nil {
		out.NsPerB, out.Turns = a.nsPerB(), a.turns
		out.SetRatio(first.nsPerB(), first.slices)
		if a.Name != armNull { // it stores nothing
			out.SetRatioA(a.slicesA, first.slicesA)
		}
		if !a.onState() && a.Name != armNull { // it keeps nothing
			out.RestartNs, out.Lost = &a.first.ReadyNs, new(int64(a.last.Pending))
		}
	}
	if a.lastRecord() == nil {
		return out
	}
	rec := a.whole()
	if a.Name == armNull && rec.Load != nil && rec.Load.AchievedPerS != nil {
		out.Note += ": " + results.Rate(*rec.Load.AchievedPerS) + " is what generator, decoders and gate give"
	}
	j, c := &rec.Join, &rec.Cost
	if a.Name != armNull {
		out.NsPerA, out.BackgroundNsPerA = c.NsPerA, c.BackgroundNsPerA
	}
	out.CPUSPerMillion = c.CPUSPerMillion
	out.RSSMaxBytes, out.DiskMaxBytes, out.UnitNs = c.RSSMaxBytes, c.DiskMaxBytes, c.UnitNs
	out.Probes, out.Matches, out.Lookups, out.LookupsPerProbe = j.Probes, j.Matches, j.Lookups, j.LookupsPerProbe
	out.FPRatio = j.Filter.FPRatio
	out.Complete = a.record != nil && a.record.Run.Complete
	if t := j.Truth; t != nil {
		out.Missing, out.Spurious, out.Duplicated = &t.Missing, &t.Spurious, &t.Duplicated
		if a.killed != nil && out.Complete {
			out.Lost = &t.Missing
		}
	}
	if rec.Recovery != nil {
		out.RestartNs = rec.Recovery.ReadyNs
	}
	return out
}

func (a *armRun) nsPerB() *float64 {
	if a.first == nil || a.last.AskNs == a.first.AskNs { // an engine that does nothing takes no time
		return nil
	}
	return ratio(float64(a.last.AskNs-a.first.AskNs), float64(a.last.Probes-a.first.Probes))
}

// findings are what the record of the main arm does not say by itself.
func (r *armsRun) findings(main *armRun, runErr error) []results.Finding {
	var found []results.Finding
	switch {
	case runErr == nil:
	case interrupted(runErr):
		found = append(found, results.Finding{Status: results.StatusInterrupted, Reason: "interrupted"})
	default:
		found = append(found, results.Finding{Status: results.StatusFailed, Reason: runErr.Error()})
	}
	if r.alone != "" {
		found = append(found, results.Finding{Status: results.StatusWarning, Reason: r.alone})
	}
	for _, a := range r.runs {
		if a.record == nil {
			continue
		}
		v, prefix := &a.record.Verdict, "arm "+a.Name+": "
		if a == main {
			prefix = ""
		}
		status := v.Status
		switch {
		case status == results.StatusInvalid && a != main: // its own figures alone
			status = results.StatusWarning
		case status != results.StatusIncorrect && status != results.StatusFailed && status != results.StatusInvalid:
			continue
		}
		for _, reason := range v.Reasons {
			found = append(found, results.Finding{Status: status, Reason: prefix + reason})
		}
	}
	return found
}
