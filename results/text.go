package results

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// WriteText writes rec as a report for people, at most width columns wide (80 at least): thresholds, the verdict and why, then speed,
// matches, filter, memory, disk, buckets, input, and the machine. Sections of which the run knows nothing are left out.
// color asks for ANSI colours; a NO_COLOR that is set and not empty overrides it. rec is only read.
func WriteText(w io.Writer, rec *Record, width int, color bool) error {
	p := &page{width: max(width, minWidth), color: color && os.Getenv("NO_COLOR") == ""}
	p.thresholds(rec)
	p.verdict(rec)
	p.speed(rec)
	p.matches(rec)
	p.latency(rec)
	p.filter(rec)
	p.kafka(rec.Kafka)
	p.arms(rec)
	p.memory(rec)
	p.steadyState(rec.SteadyState)
	p.rotation(rec.Rotation)
	p.steadiness(rec.Steady)
	p.recovery(rec.Recovery)
	p.disk(rec)
	p.buckets(rec)
	p.input(rec)
	p.phases(rec)
	p.environment(rec)
	_, err := io.WriteString(w, p.b.String())
	return err
}

// statusName is what the verdict is called where people read it.
func statusName(v *Verdict) string {
	if v.Status == "" {
		return "NO VERDICT"
	}
	return strings.ToUpper(v.Status)
}

func (p *page) verdict(rec *Record) {
	v := &rec.Verdict
	style := styleRed
	switch v.Status {
	case StatusOK:
		style = styleGreen
	case StatusInvalid, StatusInconclusive, StatusInterrupted, "":
		style = styleYellow
	}
	p.line(p.styled(style, statusName(v)) + fmt.Sprintf("  (exit code %d)", v.ExitCode))
	p.bullet(" ", runTitle(rec))
	p.bullet(" ", truthSentence(rec))
	for _, r := range v.Reasons {
		p.bullet("✗", r)
	}
	for _, r := range v.Warnings {
		p.bullet("!", r)
	}
}

// runTitle names the run on one line: profile, label, when, seed, id.
func runTitle(rec *Record) string {
	r := &rec.Run
	parts := []string{r.Profile}
	if r.Label != "" {
		parts = append(parts, r.Label)
	}
	parts = append(parts, r.StartedAt, fmt.Sprintf("seed %d", r.Seed), "run "+r.ID)
	if !r.Complete {
		parts = append(parts, "not complete")
	}
	kept := parts[:0]
	for _, part := range parts {
		if part != "" && part != "run " {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, " · ")
}

// truthSentence says in words whether the matches are right; rightly in the same words for good and bad, so that two
// reports can be laid side by side.
func truthSentence(rec *Record) string {
	t := rec.Join.Truth
	if t == nil {
		return fmt.Sprintf("%s pairs; not checked, for no truth is known of this input", Count(rec.Join.Matches))
	}
	return fmt.Sprintf("%s expected: %s missing, %s spurious, %s duplicated; %s false negatives of the filter",
		expectedLines(t), Count(t.Missing), Count(t.Spurious), Count(t.Duplicated), Count(rec.Join.Filter.FalseNegatives))
}

// expectedLines names the pairs, and of other lines those that there are to be.
func expectedLines(t *Truth) string {
	text := Count(t.ExpectedMatches) + " pairs"
	if n := t.ExpectedUnmatchedA + t.ExpectedUnmatchedB; n > 0 {
		text += ", " + Count(n) + " null rows"
	}
	if t.ExpectedGroups > 0 {
		text += ", " + Count(t.ExpectedGroups) + " groups"
	}
	return text
}

func (p *page) thresholds(rec *Record) {
	if len(rec.Thresholds) == 0 {
		return
	}
	p.line(p.styled(styleBold, "THRESHOLDS"))
	defer p.blank()
	for _, t := range rec.Thresholds {
		mark, style := "✓", styleGreen
		if !t.OK {
			mark, style = "✗", styleRed
		}
		p.line("  " + p.styled(style, mark) + " " + clip(pad(clip(t.Expr, 48), 48, false)+"  "+t.shown(), p.width-4))
	}
}

func (p *page) speed(rec *Record) {
	c := &rec.Cost
	if *c == (Cost{}) && rec.Load == nil || rec.Kafka != nil {
		return
	}
	p.title("SPEED")
	p.offered(rec.Load)
	var rows [][]string
	add := func(label string, ns *float64) {
		if ns == nil {
			return
		}
		rate, units := "–", "–"
		if *ns > 0 {
			rate = Rate(1e9 / *ns)
		}
		if c.UnitNs != nil && *c.UnitNs > 0 {
			units = fixed(*ns / *c.UnitNs, 2) + " ×"
		}
		rows = append(rows, []string{label, fixed(*ns, 1), units, rate})
	}
	add("B, join alone", c.NsPerB)
	add("A, join alone", c.NsPerA)
	add("A, sealing and filters", c.BackgroundNsPerA)
	add("B, from its JSON", c.RecordNsPerB)
	add("generator, per B", c.GeneratorNsPerB)
	add("unit: xxh3 + one filter", c.UnitNs)
	if len(rows) > 0 {
		p.table([]string{"", "ns each", "of unit", "per core"}, rows)
	}
	if c.CPUSPerMillion != nil {
		p.row("CPU, all threads", significant(*c.CPUSPerMillion, 3)+" s per million B")
	}
	if c.AllocsPerProbe != nil {
		p.row("allocations", significant(*c.AllocsPerProbe, 3)+" per B")
	}
}

func (p *page) offered(l *Load) {
	if l == nil {
		return
	}
	text := orDash(l.AchievedPerS, Rate)
	if l.OfferedPerS != nil {
		text += fmt.Sprintf(" of %s offered, %s dropped", Rate(*l.OfferedPerS), Count(l.Dropped))
		if l.QueueMax != nil {
			text += ", " + Count(*l.QueueMax) + " waiting at most"
		}
	}
	mode := []string{}
	for _, m := range []string{l.Mode, l.Arrival, l.CatchUp} {
		if m != "" {
			mode = append(mode, m)
		}
	}
	p.row("B achieved", text+when(len(mode) > 0, " ("+strings.Join(mode, ", ")+")"))
	if g := l.Generator; g.CeilingPerS != nil {
		text := Rate(*g.CeilingPerS) + ", CPU " + orDash(g.CPURatio, Percent)
		if g.LagP99Ns != nil {
			text += ", lag p99 " + nanos(*g.LagP99Ns)
		}
		if g.BlockedRatio != nil {
			text += ", B not ready " + Percent(*g.BlockedRatio) + " of the time"
		}
		p.row("generator's ceiling", text)
	}
}

func (p *page) matches(rec *Record) {
	j := &rec.Join
	rows := [][]string{{"B that asked", Count(j.Probes), ""}}
	if t := j.Truth; t != nil {
		rows = append(rows, []string{"pairs expected", Count(t.ExpectedMatches), orDash(t.ExpectedMatchRatio, Percent)})
		for _, line := range []struct {
			name string
			n    int64
		}{{"null rows of A expected", t.ExpectedUnmatchedA}, {"null rows of B expected", t.ExpectedUnmatchedB}, {"groups expected", t.ExpectedGroups},
			{"pairs missed, A came later", t.Missed}} {
			if line.n > 0 {
				rows = append(rows, []string{line.name, Count(line.n), ""})
			}
		}
	}
	rows = append(rows, []string{"pairs found", Count(j.Matches), orDash(j.MatchRatio, Percent)})
	if t := j.Truth; t != nil {
		rows = append(rows, []string{"  missing", Count(t.Missing), ""}, []string{"  spurious", Count(t.Spurious), ""},
			[]string{"  duplicated", Count(t.Duplicated), ""})
	}
	rows = append(rows, []string{"results written", Count(j.Outputs), ""})
	p.table([]string{"MATCHES", "count", "of B"}, rows)
	var rest []string
	for _, r := range []struct {
		n    int64
		what string
	}{{j.UnmatchedA, "A unmatched"}, {j.UnmatchedB, "B unmatched"}, {j.Early, "early"}, {j.Corrected, "corrected"},
		{j.Retracted, "retracted"}, {j.Oversize, "over the size limit"}} {
		if r.n != 0 {
			rest = append(rest, Count(r.n)+" "+r.what)
		}
	}
	if len(rest) > 0 {
		p.row("other outcomes", strings.Join(rest, ", "))
	}
}

func (p *page) latency(rec *Record) {
	l := rec.Latency
	if l == nil {
		return
	}
	var rows [][]string
	for _, s := range []struct {
		label string
		*Summary
	}{{"response", l.Response}, {"service", l.Service}, {"schedule lag", l.ScheduleLag}, {"end to end", l.E2E}} {
		if s.Summary != nil {
			rows = append(rows, []string{s.label, nanos(s.P50Ns), nanos(s.P90Ns), nanos(s.P99Ns), nanos(s.P999Ns), nanos(s.MaxNs)})
		}
	}
	if len(rows) > 0 {
		if rec.Load != nil && rec.Load.Mode == "closed" && l.Response == nil {
			rows[0][0] = "service only" // from when a B was taken, not from when it would have come: B wait for the join here
		}
		p.table([]string{"LATENCY", "p50", "p90", "p99", "p99.9", "max"}, rows)
	}
}
