package results

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// ErrFormat is in the error of Render for a format that it does not know: a usage error, exit code 2.
var ErrFormat = errors.New("unsupported report format")

// laterFormats are the forms that joinbench is going to have, so that asking for one is not called a mistake.
var laterFormats = []string{"csv", "html", "bench", "bmf", "gab", "openmetrics", "hdr"}

// Formats lists what Render can write.
func Formats() []string { return []string{"text", "json", "md"} }

// TextOptions are the surroundings of a text report. Width 0 stands for 100 columns.
type TextOptions struct {
	Width int
	Color bool
}

// CheckFormat says whether Render knows format; callers ask before a long run, not after it. The error wraps ErrFormat.
func CheckFormat(format string) error {
	supported := strings.Join(Formats(), ", ")
	switch {
	case slices.Contains(Formats(), format):
		return nil
	case slices.Contains(laterFormats, format):
		return fmt.Errorf("%w: %q is not supported by this build yet (supported: %s)", ErrFormat, format, supported)
	}
	return fmt.Errorf("%w: %q is not known (supported: %s)", ErrFormat, format, supported)
}

// Render writes rec to w in one of Formats. With "json" rec is normalised as by Marshal; the others only read it.
func Render(w io.Writer, rec *Record, format string, opt TextOptions) error {
	if err := CheckFormat(format); err != nil {
		return err
	}
	switch format {
	case "json":
		data, err := Marshal(rec)
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	case "md":
		return WriteMarkdown(w, rec)
	}
	if opt.Width == 0 {
		opt.Width = 100
	}
	return WriteText(w, rec, opt.Width, opt.Color)
}

// WriteMarkdown writes the figures that a pull request is judged by as one table. rec is only read.
func WriteMarkdown(w io.Writer, rec *Record) error {
	var b strings.Builder
	v, j, c := &rec.Verdict, &rec.Join, &rec.Cost
	fmt.Fprintf(&b, "### joinbench: %s (%s)\n\n", statusName(v), cell(runTitle(rec)))
	for _, r := range v.Reasons {
		fmt.Fprintf(&b, "- ✗ %s\n", cell(r))
	}
	for _, r := range v.Warnings {
		fmt.Fprintf(&b, "- ⚠ %s\n", cell(r))
	}
	for _, t := range rec.Thresholds {
		mark := "✓"
		if !t.OK {
			mark = "✗"
		}
		fmt.Fprintf(&b, "- %s `%s`: %s\n", mark, cell(t.Expr), orDash(t.Value, plain))
	}
	if len(v.Reasons)+len(v.Warnings)+len(rec.Thresholds) > 0 {
		b.WriteByte('\n')
	}
	b.WriteString("| | |\n|---|---:|\n")
	row := func(name, value string) { fmt.Fprintf(&b, "| %s | %s |\n", name, cell(value)) }
	ns := func(v float64) string { return Nanoseconds(v) }
	if t := j.Truth; t != nil {
		row("pairs expected", Count(t.ExpectedMatches))
		row("missing / spurious / duplicated", Count(t.Missing)+" / "+Count(t.Spurious)+" / "+Count(t.Duplicated))
	}
	row("pairs found", Count(j.Matches)+", "+orDash(j.MatchRatio, Percent)+" of B")
	row("time per B", orDash(c.NsPerB, ns)+timesUnit(c))
	row("time per A", orDash(c.NsPerA, ns))
	row("time per B from raw JSON", orDash(c.RecordNsPerB, ns))
	if rec.Load != nil {
		row("B per second", orDash(rec.Load.AchievedPerS, Rate))
	}
	row("filter", filterName(&j.Filter))
	row("false positives per absent B", fpSentence(&j.Filter))
	row("lookups per B", orDash(j.LookupsPerProbe, plain))
	row("lookup reduction", orDash(j.LookupReduction, times))
	row("memory, peak (anonymous / mapped files)", orDash(c.RSSMaxBytes, Bytes)+" / "+orDash(c.RSSFileMaxBytes, Bytes))
	row("disk, peak", orDash(c.DiskMaxBytes, Bytes))
	row("CPU per million B", orDash(c.CPUSPerMillion, func(v float64) string { return significant(v, 3) + " s" }))
	row("machine", fmt.Sprintf("%s, %d cores", rec.Environment.CPU, rec.Environment.Cores))
	_, err := io.WriteString(w, b.String())
	return err
}

// timesUnit sets the time per B in relation to the machine's unit.
func timesUnit(c *Cost) string {
	if c.NsPerB == nil || c.UnitNs == nil || *c.UnitNs <= 0 {
		return ""
	}
	return fmt.Sprintf(" (%s × unit)", significant(*c.NsPerB / *c.UnitNs, 3))
}

// cell keeps a text inside its table cell and on its line.
func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "\r", " ").Replace(text)
}
