package config

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"joinbench/internal/near"
)

// Error says what is wrong with a configuration; find it with errors.As. Commands answer it with ExitCode.
type Error struct {
	Faults []Fault // at least one, in the order in which they were met
}

// Fault is one thing that is wrong.
type Fault struct {
	Key     string // the dotted key, "" if it has none
	Place   string // "join.yaml:7", or the origin that Set was given; "" for a default
	Message string // names the key
	Excerpt string // the faulty line and its neighbour with a caret below; "" if the value is from no file
}

// String is the fault as a person reads it: place, message, excerpt below.
func (f Fault) String() string {
	s := f.Message
	if f.Place != "" {
		s = f.Place + ": " + s
	}
	if f.Excerpt != "" {
		s += "\n" + f.Excerpt
	}
	return s
}

// Error has one paragraph for each fault.
func (e *Error) Error() string {
	parts := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		parts[i] = f.String()
	}
	return strings.Join(parts, "\n")
}

// ExitCode is 2: usage and configuration.
func (e *Error) ExitCode() int { return 2 }

// asError turns collected faults into an error, nil if there are none.
func asError(faults []Fault) error {
	if len(faults) == 0 {
		return nil
	}
	return &Error{Faults: faults}
}

// source is a file that was parsed, kept for excerpts.
type source struct {
	name  string
	lines []string
	hide  map[int]bool // lines that are in no excerpt
}

func newSource(name, text string) *source {
	lines := strings.Split(text, "\n")
	return &source{name: name, lines: lines, hide: secretLines(lines)}
}

const excerptWidth = 120 // runes of a line that an excerpt shows: what a terminal shows without wrapping twice

// excerpt shows line (from 1) with the line before it and a caret under column col (from 1, in runes).
func (s *source) excerpt(line, col int) string {
	if s == nil || line < 1 || line > len(s.lines) || s.hide[line] {
		return ""
	}
	var b strings.Builder
	if line > 1 && !s.hide[line-1] {
		text, _ := clip(s.lines[line-2], 0)
		fmt.Fprintf(&b, "  %4d | %s\n", line-1, text)
	}
	text, skipped := clip(s.lines[line-1], col-1)
	fmt.Fprintf(&b, "> %4d | %s\n", line, text)
	caret := min(max(col-1-skipped, 0), utf8.RuneCountInString(text))
	b.WriteString("       | " + strings.Repeat(" ", caret) + "^")
	return b.String()
}

// clip makes a line fit for an excerpt: one column a rune, and of a long line the part round the place at.
// It also returns how many runes it left out in front.
func clip(line string, at int) (string, int) {
	runes := []rune(strings.TrimRight(line, " \t\r"))
	for i, r := range runes {
		if !unicode.IsPrint(r) { // a tab or an escape would put the caret in the wrong place
			runes[i] = ' '
		}
	}
	from := 0
	if at >= excerptWidth {
		from = min(at-excerptWidth/2, len(runes))
	}
	return string(runes[from:min(len(runes), from+excerptWidth)]), from
}

// nearest is near.Word: the candidate that word most likely stood for.
func nearest(word string, candidates []string, taken map[string]bool) string {
	return near.Word(word, candidates, taken)
}
