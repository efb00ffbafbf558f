package results

import (
	"strings"
	"unicode/utf8"
)

// page lays out a text report: titles at the left edge, everything else indented by two, labels in a column of fixed width so
// that the values of all sections stand below each other.
type page struct {
	b     strings.Builder
	width int
	color bool
}

const (
	minWidth   = 80 // the tables need that much; narrower terminals wrap
	labelWidth = 24
)

// ANSI styles; empty ones where colour is off.
const (
	styleReset  = "\x1b[0m"
	styleBold   = "\x1b[1m"
	styleRed    = "\x1b[1;31m"
	styleGreen  = "\x1b[1;32m"
	styleYellow = "\x1b[1;33m"
)

func (p *page) styled(style, text string) string {
	if !p.color || text == "" || style == "" {
		return text
	}
	return style + text + styleReset
}

func (p *page) line(text string) {
	p.b.WriteString(strings.TrimRight(text, " "))
	p.b.WriteByte('\n')
}

func (p *page) blank() { p.b.WriteByte('\n') }

// title opens a section.
func (p *page) title(name string) {
	p.blank()
	p.line(p.styled(styleBold, name))
}

// row writes a label and its value; what does not fit goes on below the value. Without a value there is no row.
func (p *page) row(label, value string) {
	if value == "" {
		return
	}
	indent := 2 + labelWidth + 2
	for i, part := range wrap(value, p.width-indent) {
		if i > 0 {
			label = ""
		}
		p.line("  " + pad(label, labelWidth, false) + "  " + part)
	}
}

// bullet writes a wrapped paragraph with a mark in front.
func (p *page) bullet(mark, text string) {
	for i, part := range wrap(text, p.width-2-utf8.RuneCountInString(mark)-1) {
		if i > 0 {
			mark = strings.Repeat(" ", utf8.RuneCountInString(mark))
		}
		p.line("  " + mark + " " + part)
	}
}

// table writes rows whose first cell is a label and whose other cells are figures, aligned to the right. The head's first
// cell is the title of a new section; without one the table goes on with the section above it. Labels that a user chose
// and that would push the figures off the page are cut.
func (p *page) table(head []string, rows [][]string) {
	widths := make([]int, len(head))
	for _, row := range append([][]string{head}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	figures := 2
	for _, w := range widths[1:] {
		figures += 2 + w
	}
	label := max(labelWidth, min(widths[0], p.width-figures))
	line := func(indent, style string, row []string) {
		text := clip(indent+pad(clip(row[0], label), label+2-len(indent), false)+cells(row, widths), p.width)
		p.line(p.styled(style, strings.TrimRight(text, " ")))
	}
	if head[0] != "" {
		p.blank()
	}
	line("", styleBold, head)
	for _, row := range rows {
		line("  ", "", row)
	}
}

// wideTable is a table of which the columns that do not fit go on below, under the same labels.
func (p *page) wideTable(head []string, rows [][]string) {
	for from := 1; from < len(head); {
		used, to := 2+labelWidth, from
		for ; to < len(head); to++ {
			w := utf8.RuneCountInString(head[to])
			for _, row := range rows {
				w = max(w, utf8.RuneCountInString(row[to]))
			}
			if used += 2 + w; used > p.width && to > from {
				break
			}
		}
		if to < len(head) && head[to] == "×" && to-1 > from { // a ratio stays beside its figure
			to--
		}
		part := [][]string{}
		for _, row := range rows {
			part = append(part, append([]string{row[0]}, row[from:to]...))
		}
		p.table(append([]string{head[0]}, head[from:to]...), part)
		from = to
	}
}

// clip cuts text that is wider than width and says so with an ellipsis.
func clip(text string, width int) string {
	if r := []rune(text); len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return text
}

func cells(row []string, widths []int) string {
	var b strings.Builder
	for i := 1; i < len(row); i++ {
		b.WriteString("  " + pad(row[i], widths[i], true))
	}
	return b.String()
}

// pad fills text with blanks to width characters, on its left side if right is set.
func pad(text string, width int, right bool) string {
	fill := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
	if right {
		return fill + text
	}
	return text + fill
}

// wrap breaks text between words into lines of at most width characters. A longer word is cut, so that nothing ever is
// wider. It returns at least one line.
func wrap(text string, width int) []string {
	width = max(width, 8)
	var lines []string
	line := []rune{}
	for _, word := range strings.Split(text, " ") {
		next := []rune(word)
		if len(line) > 0 && len(line)+1+len(next) <= width {
			line = append(append(line, ' '), next...)
			continue
		}
		if len(line) > 0 {
			lines = append(lines, string(line))
		}
		for len(next) > width {
			lines = append(lines, string(next[:width]))
			next = next[width:]
		}
		line = next
	}
	return append(lines, string(line))
}
