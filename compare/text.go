package compare

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"joinbench/results"
)

// Formats lists what Write can write.
func Formats() []string { return []string{"text", "md", "json", "bench", "gab", "bmf", "junit"} }

// CheckFormat says whether Write knows format. The error wraps results.ErrFormat, a usage error.
func CheckFormat(format string) error {
	if slices.Contains(Formats(), format) {
		return nil
	}
	return fmt.Errorf("%w: %q is not known (supported: %s)", results.ErrFormat, format, strings.Join(Formats(), ", "))
}

// Write renders c in one of Formats.
func Write(w io.Writer, c *Comparison, format string) error {
	var out strings.Builder
	var err error
	switch format {
	case "text":
		c.text(&out)
	case "md":
		c.markdown(&out)
	case "json":
		err = indented(&out, c)
	case "bench":
		err = c.bench(&out)
	case "gab":
		err = indented(&out, c.gab())
	case "bmf":
		err = indented(&out, c.bmf())
	case "junit":
		err = c.junit(&out)
	default:
		err = CheckFormat(format)
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, out.String())
	return err
}

func indented(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// number writes a value with the digits that two runs differ in; whole numbers in full.
func number(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return results.Count(int64(v))
	}
	return strconv.FormatFloat(v, 'g', 5, 64)
}

// percent writes a ratio as a change: +1.20 %. A change never reads as none.
func percent(ratio float64) string {
	p := 100 * (ratio - 1)
	if p == 0 {
		return "±0 %"
	}
	digits := 2
	if math.Abs(p) < 0.01 {
		digits = 6
	}
	return fmt.Sprintf("%+.*f %%", digits, p)
}

func show(v *float64, f func(float64) string) string {
	if v == nil {
		return "–"
	}
	return f(*v)
}

// room says what a metric may do.
func (m *Result) room() string {
	text := strconv.FormatFloat(100*m.Limit, 'g', 4, 64) + " %"
	if m.Limit == 0 {
		text = "exact"
	}
	if m.Floor > 0 {
		text = strings.TrimPrefix(text+" and ", "exact and ") + strconv.FormatFloat(m.Floor, 'g', 3, 64)
	}
	return text
}

func (m *Result) row() []string {
	name := m.Metric
	if m.Unit {
		name += " / unit"
	}
	verdict := m.Verdict
	if m.Reason != "" && m.Verdict != Pass {
		verdict += ": " + m.Reason
	}
	return []string{name, show(m.Base, number), show(m.New, number), show(m.Ratio, percent), m.room(), verdict}
}

var head = []string{"metric", "base", "new", "change", "limit", "verdict"}

func (c *Comparison) text(w *strings.Builder) {
	fmt.Fprintf(w, "%s  (base %s, %s)\n", strings.ToUpper(c.Verdict), c.Base.Name(), runs(&c.Base))
	for _, r := range c.Reasons {
		fmt.Fprintf(w, "  %s\n", r)
	}
	for _, r := range c.Warnings {
		fmt.Fprintf(w, "  warning: %s\n", r)
	}
	for i := range c.Candidates {
		n := &c.Candidates[i]
		fmt.Fprintf(w, "\n%s, %s: %s\n", n.Name(), runs(&n.Build), n.Verdict)
		n.Pairs.text(w)
		rows := [][]string{head}
		for j := range n.Metrics {
			rows = append(rows, n.Metrics[j].row())
		}
		if len(rows) > 1 {
			table(w, rows)
		}
	}
}

func runs(b *Build) string {
	if len(b.Runs) == 1 {
		return "1 run"
	}
	return strconv.Itoa(len(b.Runs)) + " runs"
}

// table writes columns, the first and the last to the left.
func table(w *strings.Builder, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for _, row := range rows {
		w.WriteString("  ")
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-len([]rune(cell)))
			switch i {
			case 0:
				w.WriteString(cell + pad)
			case len(row) - 1:
				w.WriteString("  " + cell)
			default:
				w.WriteString("  " + pad + cell)
			}
		}
		w.WriteByte('\n')
	}
}

var marks = map[string]string{Pass: "✓", Improvement: "✓", Regression: "✗", Unjudged: "·"}

func mark(verdict string) string {
	if m, ok := marks[verdict]; ok {
		return m
	}
	return "?"
}

func (c *Comparison) markdown(w *strings.Builder) {
	cell := strings.NewReplacer("|", "\\|", "\n", " ", "\r", " ").Replace
	fmt.Fprintf(w, "### joinbench: %s\n\n", c.Verdict)
	for _, r := range c.Reasons {
		fmt.Fprintf(w, "- ✗ %s\n", cell(r))
	}
	for _, r := range c.Warnings {
		fmt.Fprintf(w, "- ⚠ %s\n", cell(r))
	}
	for i := range c.Candidates {
		n := &c.Candidates[i]
		fmt.Fprintf(w, "\n**%s** (%s) against **%s** (%s): %s\n", cell(n.Name()), runs(&n.Build), cell(c.Base.Name()), runs(&c.Base), n.Verdict)
		if n.Pairs != nil {
			var lines strings.Builder
			n.Pairs.text(&lines)
			fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(lines.String()))
		}
		if len(n.Metrics) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n| | %s |\n|---|---|---:|---:|---:|---:|---|\n", strings.Join(head, " | "))
		for j := range n.Metrics {
			row := n.Metrics[j].row()
			for k := range row {
				row[k] = cell(row[k])
			}
			fmt.Fprintf(w, "| %s | %s |\n", mark(n.Metrics[j].Verdict), strings.Join(row, " | "))
		}
	}
}

// bench writes all runs in the Go benchmark format, told apart by the key side: benchstat -col side -ignore commit,host.
func (c *Comparison) bench(w *strings.Builder) error {
	side := func(name string, recs []*results.Record) error {
		fmt.Fprintf(w, "side: %s\n", name)
		return results.WriteBench(w, recs...)
	}
	err := side("base", c.Base.records)
	for i := range c.Candidates {
		name := "new"
		if len(c.Candidates) > 1 {
			name += strconv.Itoa(i + 1)
		}
		if err == nil {
			err = side(name, c.Candidates[i].records)
		}
	}
	return err
}

// gabEntry is a line of github-action-benchmark's form customSmallerIsBetter.
type gabEntry struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
	Range string  `json:"range,omitempty"`
	Extra string  `json:"extra,omitempty"`
}

// smaller are the metrics of which less is better: those that a tool with one direction can watch.
func (n *Candidate) smaller() []*Result {
	var out []*Result
	for i := range n.Metrics {
		if m := &n.Metrics[i]; m.New != nil && !moreIsBetter(m.Metric) {
			out = append(out, m)
		}
	}
	return out
}

func (c *Comparison) gab() []gabEntry {
	out := []gabEntry{}
	for i := range c.Candidates {
		n := &c.Candidates[i]
		for _, m := range n.smaller() {
			e := gabEntry{Name: n.Profile + "/" + m.Metric, Unit: unitName(m.Metric), Value: *m.New, Extra: m.Verdict}
			if *m.High > *m.Low {
				e.Range = "± " + strconv.FormatFloat((*m.High-*m.Low)/2, 'g', 3, 64)
			}
			out = append(out, e)
		}
	}
	return out
}

func unitName(path string) string {
	m := mustMetric(path)
	switch {
	case m.IsTime():
		return "ns"
	case m.IsBytes():
		return "bytes"
	case strings.HasSuffix(path, "cpu_s_per_million"):
		return "s"
	}
	return "count"
}

// bmfMeasure is a measure of Bencher's metric format.
type bmfMeasure struct {
	Value float64 `json:"value"`
	Lower float64 `json:"lower_value"`
	Upper float64 `json:"upper_value"`
}

func (c *Comparison) bmf() map[string]map[string]bmfMeasure {
	out := map[string]map[string]bmfMeasure{}
	for i := range c.Candidates {
		n := &c.Candidates[i]
		name := "joinbench/" + n.Profile
		if len(c.Candidates) > 1 {
			name += "/" + n.Name()
		}
		out[name] = map[string]bmfMeasure{}
		for j := range n.Metrics {
			if m := &n.Metrics[j]; m.New != nil {
				out[name][m.Metric] = bmfMeasure{*m.New, *m.Low, *m.High}
			}
		}
	}
	return out
}

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string    `xml:"classname,attr"`
	Name    string    `xml:"name,attr"`
	Failure *junitWhy `xml:"failure"`
	Skipped *junitWhy `xml:"skipped"`
	Out     string    `xml:"system-out,omitempty"`
}

type junitWhy struct {
	Message string `xml:"message,attr"`
}

// junit has a case for each metric, and one for the whole of each candidate, which fails with what else went wrong.
func (c *Comparison) junit(w io.Writer) error {
	all := junitSuites{}
	for i := range c.Candidates {
		n := &c.Candidates[i]
		s := junitSuite{Name: "joinbench " + n.Name()}
		whole := junitCase{Class: "joinbench." + n.Profile, Name: "verdict", Out: n.Verdict}
		switch {
		case len(n.failed) > 0:
			whole.Failure = &junitWhy{strings.Join(n.failed, "; ")}
		case n.Verdict == Inconclusive || n.Verdict == Incomparable:
			whole.Skipped = &junitWhy{strings.Join(n.Reasons, "; ")}
		}
		s.add(whole)
		for j := range n.Metrics {
			m := &n.Metrics[j]
			k := junitCase{Class: "joinbench." + n.Profile, Name: m.Metric, Out: m.sentence()}
			switch m.Verdict {
			case Regression:
				k.Failure = &junitWhy{m.sentence()}
			case Inconclusive, Unjudged:
				k.Skipped = &junitWhy{m.Verdict + ": " + m.sentence()}
			}
			s.add(k)
		}
		all.Tests, all.Failures, all.Skipped = all.Tests+s.Tests, all.Failures+s.Failures, all.Skipped+s.Skipped
		all.Suites = append(all.Suites, s)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *junitSuite) add(c junitCase) {
	s.Tests++
	if c.Failure != nil {
		s.Failures++
	}
	if c.Skipped != nil {
		s.Skipped++
	}
	s.Cases = append(s.Cases, c)
}
