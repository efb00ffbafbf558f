package results

import (
	"fmt"
	"slices"
	"strings"
)

// figure is one line of the tables that Markdown and HTML show: what a pull request is judged by.
type figure struct {
	name string
	text func(rec *Record) string
}

// figures lists them. Those of a truth that no record knows are left out.
func figures(recs []*Record) []figure {
	var out []figure
	add := func(name string, text func(*Record) string) { out = append(out, figure{name, text}) }
	truth := func(name string, text func(*Truth) string) {
		for _, rec := range recs {
			if rec.Join.Truth != nil {
				add(name, func(rec *Record) string {
					if rec.Join.Truth == nil {
						return "–"
					}
					return text(rec.Join.Truth)
				})
				return
			}
		}
	}
	truth("pairs expected", func(t *Truth) string { return Count(t.ExpectedMatches) })
	truth("missing / spurious / duplicated", func(t *Truth) string {
		return Count(t.Missing) + " / " + Count(t.Spurious) + " / " + Count(t.Duplicated)
	})
	add("pairs found", func(r *Record) string {
		return Count(r.Join.Matches) + ", " + orDash(r.Join.MatchRatio, Percent) + " of B"
	})
	add("time per B", func(r *Record) string { return orDash(r.Cost.NsPerB, Nanoseconds) + timesUnit(&r.Cost, r.Cost.NsPerB) })
	add("time per A", func(r *Record) string { return orDash(r.Cost.NsPerA, Nanoseconds) + timesUnit(&r.Cost, r.Cost.NsPerA) })
	add("sealing and filters per A, beside it", func(r *Record) string { return orDash(r.Cost.BackgroundNsPerA, Nanoseconds) })
	add("time per B from raw JSON", func(r *Record) string { return orDash(r.Cost.RecordNsPerB, Nanoseconds) })
	add("B per second", func(r *Record) string {
		if r.Load == nil {
			return "–"
		}
		return orDash(r.Load.AchievedPerS, Rate)
	})
	add("response p50 / p99 / max", func(r *Record) string {
		if r.Latency == nil || r.Latency.Response == nil {
			return "–"
		}
		s := r.Latency.Response
		return nanos(s.P50Ns) + " / " + nanos(s.P99Ns) + " / " + nanos(s.MaxNs)
	})
	add("filter", func(r *Record) string { return filterName(&r.Join.Filter) })
	add("false positives per absent B", func(r *Record) string { return fpSentence(&r.Join.Filter) })
	add("lookups per B", func(r *Record) string { return orDash(r.Join.LookupsPerProbe, plain) })
	add("lookup reduction", func(r *Record) string { return orDash(r.Join.LookupReduction, times) })
	add("memory, peak (anonymous / mapped files)", func(r *Record) string {
		return orDash(r.Cost.RSSMaxBytes, Bytes) + " / " + orDash(r.Cost.RSSFileMaxBytes, Bytes)
	})
	add("disk, peak", func(r *Record) string { return orDash(r.Cost.DiskMaxBytes, Bytes) })
	add("CPU per million B", func(r *Record) string {
		return orDash(r.Cost.CPUSPerMillion, func(v float64) string { return significant(v, 3) + " s" })
	})
	add("machine", func(r *Record) string { return fmt.Sprintf("%s, %d cores", r.Environment.CPU, r.Environment.Cores) })
	return dropEmpty(out, recs)
}

// dropEmpty leaves out the figures that no record has.
func dropEmpty(all []figure, recs []*Record) []figure {
	var out []figure
	for _, f := range all {
		for _, rec := range recs {
			if strings.Trim(f.text(rec), "– /") != "" {
				out = append(out, f)
				break
			}
		}
	}
	return out
}

// otherReasons are those of the verdict that no failed threshold gave: these are shown with the thresholds.
func otherReasons(rec *Record) []string {
	shown := failedThresholds(rec)
	return slices.DeleteFunc(slices.Clone(rec.Verdict.Reasons), func(reason string) bool {
		return slices.ContainsFunc(shown, func(f Finding) bool { return f.Reason == reason })
	})
}

// timesUnit sets a time in relation to the machine's unit.
func timesUnit(c *Cost, ns *float64) string {
	if ns == nil || c.UnitNs == nil || *c.UnitNs <= 0 {
		return ""
	}
	return fmt.Sprintf(" (%s × unit)", significant(*ns / *c.UnitNs, 3))
}

// shortTitle tells records apart in the head of a table: the label or the profile, and the run's id.
func shortTitle(rec *Record) string {
	name := rec.Run.Label
	if name == "" {
		name = rec.Run.Profile
	}
	return strings.TrimSpace(name + " " + rec.Run.ID)
}

func floatOf(n *int64) *float64 {
	if n == nil {
		return nil
	}
	return new(float64(*n))
}
