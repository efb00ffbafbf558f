package projection

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Path is one compiled way into a JSON value: "$.customer.id", "$.lines[0]", `$["odd.name"]`. It is
// immutable.
type Path struct {
	text  string
	steps []step
}

// step is one element of a path: a member name, or (index >= 0) an array index.
type step struct {
	name  string
	index int
}

// String gives the path as it was written.
func (p Path) String() string { return p.text }

// Last is the name under which a kept field comes out unless it is given another: the last element (an
// index as its digits). The path "$" has none, and the answer is "".
func (p Path) Last() string {
	if len(p.steps) == 0 {
		return ""
	}
	if last := p.steps[len(p.steps)-1]; last.index < 0 {
		return last.name
	} else {
		return strconv.Itoa(last.index)
	}
}

// PathError is a path that cannot be read, with the place of the fault.
type PathError struct {
	Path   string
	Column int // from 1, in characters
	Reason string
}

func (e *PathError) Error() string {
	return fmt.Sprintf("path %q, column %d: %s", e.Path, e.Column, e.Reason)
}

// ParsePath reads a path: "$", then any number of .name, ["name"] (or ['name'], both with the escapes of
// JSON strings) and [index]. A plain name is any text without dots, brackets, quotes, asterisks and white
// space. Wildcards, slices, filters and negative indexes are refused: a path stands for one value. "@key"
// is no path. Errors are *PathError.
func ParsePath(text string) (Path, error) {
	p := pathParser{text: text}
	if text == "" || text[0] != '$' {
		return Path{}, p.fail(0, `a path starts with "$"`)
	}
	for p.at = 1; p.at < len(text); {
		var s step
		var err error
		if text[p.at] == '.' {
			s, err = p.plainName()
		} else {
			s, err = p.bracket()
		}
		if err != nil {
			return Path{}, err
		}
		p.steps = append(p.steps, s)
	}
	return Path{text: text, steps: p.steps}, nil
}

type pathParser struct {
	text  string
	at    int
	steps []step
}

func (p *pathParser) fail(at int, format string, args ...any) error {
	column := utf8.RuneCountInString(p.text[:min(at, len(p.text))]) + 1
	return &PathError{Path: p.text, Column: column, Reason: fmt.Sprintf(format, args...)}
}

// plainName reads ".name".
func (p *pathParser) plainName() (step, error) {
	start := p.at + 1
	end := start
	for end < len(p.text) && p.text[end] != '.' && p.text[end] != '[' {
		switch c := p.text[end]; {
		case c == '*':
			return step{}, p.fail(end, "wildcards are not supported")
		case c <= ' ', c == 0x7f, c == '"', c == '\'', c == ']':
			return step{}, p.fail(end, "%q cannot stand in a plain name: write [\"…\"]", c)
		}
		end++
	}
	switch {
	case end == start && end < len(p.text) && p.text[end] == '.':
		return step{}, p.fail(end, `".." is not supported`)
	case end == start:
		return step{}, p.fail(end, "a name is missing")
	case !utf8.ValidString(p.text[start:end]):
		return step{}, p.fail(start, "not UTF-8")
	}
	p.at = end
	return step{name: p.text[start:end], index: -1}, nil
}

// bracket reads [index] or ["name"].
func (p *pathParser) bracket() (step, error) {
	if p.text[p.at] != '[' {
		return step{}, p.fail(p.at, `expected "." or "["`)
	}
	start := p.at + 1
	if start < len(p.text) && (p.text[start] == '"' || p.text[start] == '\'') {
		return p.quotedName(start)
	}
	end := start
	for end < len(p.text) && p.text[end] != ']' {
		if c := p.text[end]; c < '0' || c > '9' {
			return step{}, p.fail(end, "expected a quoted name or an index from 0")
		}
		end++
	}
	switch {
	case end == len(p.text):
		return step{}, p.fail(end, `"]" is missing`)
	case end == start:
		return step{}, p.fail(end, "expected a quoted name or an index from 0")
	case end > start+1 && p.text[start] == '0':
		return step{}, p.fail(start, "an index has no leading zeros")
	}
	n, err := strconv.ParseInt(p.text[start:end], 10, 32)
	if err != nil {
		return step{}, p.fail(start, "the index is too large")
	}
	p.at = end + 1
	return step{index: int(n)}, nil
}

// quotedName reads the name that opens with the quote at start, and the bracket after it. The name is
// brought into the form of a JSON string, and then read like one.
func (p *pathParser) quotedName(start int) (step, error) {
	quote := p.text[start]
	raw := []byte{'"'}
	i := start + 1
	for ; i < len(p.text) && p.text[i] != quote; i++ {
		switch c := p.text[i]; {
		case c == '\\' && i+1 < len(p.text) && p.text[i+1] == '\'':
			i++
			raw = append(raw, '\'')
		case c == '\\' && i+1 < len(p.text):
			raw = append(raw, c, p.text[i+1])
			i++
		case c == '"':
			raw = append(raw, '\\', '"')
		default:
			raw = append(raw, c)
		}
	}
	if i >= len(p.text) {
		return step{}, p.fail(start, "the quote is not closed")
	}
	raw = append(raw, '"')
	if end, _ := skipString(raw, 1); end != len(raw) {
		return step{}, p.fail(start, "the quoted name is no valid JSON string")
	}
	if i+1 >= len(p.text) || p.text[i+1] != ']' {
		return step{}, p.fail(i+1, `"]" is missing`)
	}
	p.at = i + 2
	return step{name: string(appendUnquoted(nil, raw[1:len(raw)-1])), index: -1}, nil
}
