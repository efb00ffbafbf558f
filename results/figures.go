package results

import (
	"fmt"
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

// armColumn is one column of the table of arms. Those with a ratio are set in relation to the first arm.
type armColumn struct {
	name  string // of the field
	head  string
	value func(*Arm) *float64
	text  func(float64) string
	ratio bool
}

func armColumns() []armColumn {
	count := func(n func(*Arm) int64) func(*Arm) *float64 {
		return func(a *Arm) *float64 { return Known(float64(n(a))) }
	}
	return []armColumn{
		{"ns_per_b", "ns per B", func(a *Arm) *float64 { return a.NsPerB }, func(v float64) string { return fixed(v, 1) }, true},
		{"rss_max_bytes", "memory", func(a *Arm) *float64 { return floatOf(a.RSSMaxBytes) }, func(v float64) string { return Bytes(int64(v)) }, true},
		{"lookups_per_probe", "lookups/B", func(a *Arm) *float64 { return a.LookupsPerProbe }, plain, false},
		{"fp_ratio", "FP of B", func(a *Arm) *float64 { return a.FPRatio }, Percent, false},
		{"matches", "pairs", count(func(a *Arm) int64 { return a.Matches }), func(v float64) string { return Count(int64(v)) }, false},
		{"probes", "B", count(func(a *Arm) int64 { return a.Probes }), func(v float64) string { return Count(int64(v)) }, false},
	}
}

// armTable is the table of arms: head and rows. Columns of which no arm knows anything are left out.
func armTable(arms []Arm) (head []string, rows [][]string) {
	head = []string{"arm"}
	rows = make([][]string, len(arms))
	for i := range arms {
		rows[i] = []string{arms[i].Name}
	}
	for _, c := range armColumns() {
		known := false
		for i := range arms {
			known = known || c.value(&arms[i]) != nil
		}
		if !known {
			continue
		}
		head = append(head, c.head)
		if c.ratio {
			head = append(head, "×")
		}
		for i := range arms {
			rows[i] = append(rows[i], orDash(c.value(&arms[i]), c.text))
			if c.ratio {
				rows[i] = append(rows[i], orDash(armRatio(arms, i, c.value), func(v float64) string { return significant(v, 3) }))
			}
		}
	}
	return head, rows
}

// armRatio sets an arm's value in relation to that of the first.
func armRatio(arms []Arm, i int, value func(*Arm) *float64) *float64 {
	v, first := value(&arms[i]), value(&arms[0])
	if v == nil || first == nil {
		return nil
	}
	return RatioF(*v, *first)
}

func floatOf(n *int64) *float64 {
	if n == nil {
		return nil
	}
	return new(float64(*n))
}
