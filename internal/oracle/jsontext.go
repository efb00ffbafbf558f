package oracle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// value is a parsed JSON value that remembers its text as written, and all members of an object, duplicates too.
type value struct {
	kind    byte // '{' '[' '"' '0' (number) 't' 'f' 'n'
	raw     string
	text    string // '"': the decoded string; '0': the number as written
	members []member
	items   []value
}

type member struct {
	name  string // decoded
	value value
}

var (
	errInvalid   = errors.New("not one whole valid JSON value in valid UTF-8")
	errSurrogate = errors.New("lone surrogate")
)

// parseJSON reads one whole JSON value (rules 4 and 5): anything before or after it, invalid UTF-8 and lone surrogates,
// wherever they are, make it an error.
func parseJSON(src []byte) (value, error) {
	if !utf8.Valid(src) || !json.Valid(src) {
		return value{}, errInvalid
	}
	r := reader{src: string(src)}
	v := r.value()
	return v, r.err
}

// reader walks over text that is known to be valid JSON, so it need not check the grammar again.
type reader struct {
	src string
	pos int
	err error // lone surrogates are the only thing left to find
}

func (r *reader) space() {
	for r.pos < len(r.src) && strings.IndexByte(" \t\r\n", r.src[r.pos]) >= 0 {
		r.pos++
	}
}

func (r *reader) value() value {
	r.space()
	start := r.pos
	v := value{kind: r.src[start]}
	switch v.kind {
	case '{':
		r.object(&v)
	case '[':
		r.array(&v)
	case '"':
		v.text = r.string()
	case 't', 'n':
		r.pos += len("true")
	case 'f':
		r.pos += len("false")
	default:
		v.kind = '0'
		for r.pos < len(r.src) && strings.IndexByte("+-.0123456789eE", r.src[r.pos]) >= 0 {
			r.pos++
		}
		v.text = r.src[start:r.pos]
	}
	v.raw = r.src[start:r.pos]
	return v
}

func (r *reader) object(v *value) {
	for r.next('}') {
		name := r.string()
		r.space()
		r.pos++ // the colon
		v.members = append(v.members, member{name, r.value()})
	}
}

func (r *reader) array(v *value) {
	for r.next(']') {
		v.items = append(v.items, r.value())
	}
}

// next steps over the opening bracket or a comma; false at the closing bracket, which is stepped over too.
func (r *reader) next(closing byte) bool {
	r.space()
	if r.src[r.pos] != closing {
		r.pos++ // the opening bracket or a comma
		r.space()
	}
	if r.src[r.pos] == closing {
		r.pos++
		return false
	}
	return true
}

// string decodes the string that starts here.
func (r *reader) string() string {
	var out strings.Builder
	r.pos++ // the opening quote
	for {
		c := r.src[r.pos]
		r.pos++
		switch {
		case c == '"':
			return out.String()
		case c != '\\':
			out.WriteByte(c)
		case r.src[r.pos] == 'u':
			out.WriteRune(r.unicodeEscape())
		default:
			out.WriteByte("\"\\/\b\f\n\r\t"[strings.IndexByte(`"\/bfnrt`, r.src[r.pos])])
			r.pos++
		}
	}
}

// unicodeEscape decodes uXXXX, or a surrogate pair uXXXX\uXXXX, from the u on.
func (r *reader) unicodeEscape() rune {
	unit := func() rune {
		n, _ := strconv.ParseUint(r.src[r.pos+1:r.pos+5], 16, 16)
		r.pos += 5
		return rune(n)
	}
	c := unit()
	if !utf16.IsSurrogate(c) {
		return c
	}
	if strings.HasPrefix(r.src[r.pos:], `\u`) {
		r.pos++
		if pair := utf16.DecodeRune(c, unit()); pair != utf8.RuneError {
			return pair
		}
	}
	r.err = errSurrogate
	return utf8.RuneError
}

// compact is the value's text as written without insignificant whitespace.
func (v value) compact() string {
	var out bytes.Buffer
	if err := json.Compact(&out, []byte(v.raw)); err != nil {
		panic("oracle: compact of a valid value failed: " + err.Error())
	}
	return out.String()
}

// member finds the first member of that name, as of duplicates the first counts (rule 4).
func (v value) member(name string) (value, bool) {
	for _, m := range v.members {
		if m.name == name {
			return m.value, true
		}
	}
	return value{}, false
}

// step is one element of a path: a member's name, or an index if name is not set.
type step struct {
	name    string
	index   int
	isIndex bool
}

type path []step

// parsePath reads $.x.y[0]["odd.name"]; "$" alone is the whole value.
func parsePath(s string) (path, error) {
	rest, ok := strings.CutPrefix(s, "$")
	if !ok {
		return nil, fmt.Errorf("path %q does not start with $", s)
	}
	p := path{}
	for rest != "" {
		end := len(rest)
		switch {
		case rest[0] == '.':
			if i := strings.IndexAny(rest[1:], ".["); i >= 0 {
				end = 1 + i
			}
			if end == 1 {
				return nil, fmt.Errorf("path %q: empty name", s)
			}
			p = append(p, step{name: rest[1:end]})
		case strings.HasPrefix(rest, `["`):
			end = strings.Index(rest, `"]`) + len(`"]`)
			var name string
			if end < len(`[""]`) || json.Unmarshal([]byte(rest[1:end-1]), &name) != nil {
				return nil, fmt.Errorf("path %q: bad quoted name", s)
			}
			p = append(p, step{name: name})
		case rest[0] == '[':
			end = strings.IndexByte(rest, ']') + 1
			if end < len("[0]") {
				return nil, fmt.Errorf("path %q: bad index", s)
			}
			n, err := strconv.ParseUint(rest[1:end-1], 10, 31)
			if err != nil {
				return nil, fmt.Errorf("path %q: bad index", s)
			}
			p = append(p, step{index: int(n), isIndex: true})
		default:
			return nil, fmt.Errorf("path %q: unexpected %q", s, rest)
		}
		rest = rest[end:]
	}
	return p, nil
}

// at follows a path; false if it leads nowhere (a JSON null is somewhere).
func (v value) at(p path) (value, bool) {
	for _, s := range p {
		switch {
		case s.isIndex && v.kind == '[' && s.index < len(v.items):
			v = v.items[s.index]
		case !s.isIndex && v.kind == '{':
			next, ok := v.member(s.name)
			if !ok {
				return value{}, false
			}
			v = next
		default:
			return value{}, false
		}
	}
	return v, true
}

// quote prints a string as JSON: only what must be escaped is (quote, backslash, control characters), short forms first.
func quote(s string) string {
	var out strings.Builder
	out.WriteByte('"')
	for i := range len(s) {
		c := s[i]
		if short := strings.IndexByte("\"\\\b\f\n\r\t", c); short >= 0 {
			out.WriteByte('\\')
			out.WriteByte(`"\bfnrt`[short])
		} else if c < 0x20 {
			fmt.Fprintf(&out, `\u%04x`, c)
		} else {
			out.WriteByte(c)
		}
	}
	out.WriteByte('"')
	return out.String()
}
