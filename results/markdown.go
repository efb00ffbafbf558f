package results

import (
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown writes the figures that a pull request is judged by as one table, a column for each record. The records are
// only read.
func WriteMarkdown(w io.Writer, recs ...*Record) error {
	var b strings.Builder
	for _, rec := range recs {
		markdownVerdict(&b, rec)
	}
	head, line := "| |", "|---|"
	for _, rec := range recs {
		name := " "
		if len(recs) > 1 {
			name = " " + cell(shortTitle(rec)) + " "
		}
		head, line = head+name+"|", line+"---:|"
	}
	b.WriteString(head + "\n" + line + "\n")
	for _, f := range figures(recs) {
		b.WriteString("| " + f.name + " |")
		for _, rec := range recs {
			b.WriteString(" " + cell(f.text(rec)) + " |")
		}
		b.WriteByte('\n')
	}
	for _, rec := range recs {
		if len(rec.Arms) > 0 {
			markdownArms(&b, rec, len(recs) > 1)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func markdownVerdict(b *strings.Builder, rec *Record) {
	v := &rec.Verdict
	fmt.Fprintf(b, "### joinbench: %s (%s)\n\n", statusName(v), cell(runTitle(rec)))
	for _, t := range rec.Thresholds {
		mark := "✓"
		if !t.OK {
			mark = "✗"
		}
		fmt.Fprintf(b, "- %s `%s`: %s\n", mark, cell(t.Expr), cell(t.shown()))
	}
	for _, r := range otherReasons(rec) {
		fmt.Fprintf(b, "- ✗ %s\n", cell(r))
	}
	for _, r := range v.Warnings {
		fmt.Fprintf(b, "- ⚠ %s\n", cell(r))
	}
	if len(v.Reasons)+len(v.Warnings)+len(rec.Thresholds) > 0 {
		b.WriteByte('\n')
	}
}

func markdownArms(b *strings.Builder, rec *Record, named bool) {
	b.WriteByte('\n')
	if named {
		fmt.Fprintf(b, "Arms of %s:\n\n", cell(shortTitle(rec)))
	}
	head, rows := armTable(rec.Arms)
	fmt.Fprintf(b, "| %s |\n|---|%s\n", strings.Join(head, " | "), strings.Repeat("---:|", len(head)-1))
	for _, row := range rows {
		for i := range row {
			row[i] = cell(row[i])
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
	}
}

// cell keeps a text inside its table cell and on its line.
func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "\r", " ").Replace(text)
}
