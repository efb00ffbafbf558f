package capture

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a tolerated field; deeper is Damaged. The same bound as encoding/json's.
const maxDepth = 10000

// scanner walks over one line of JSON once. Every string it passes is decoded to the end of out, whether
// it is wanted or not: checking a string costs the same as decoding it, and one way of doing it is one way
// of being wrong. Who does not want it cuts out back.
//
// The caller gives out room for slack bytes more than the line's length. Decoded text is never longer than
// its source, so no append below can grow or overrun.
type scanner struct {
	b   []byte
	i   int
	out []byte
}

// slack is the room behind out that lets str store eight bytes where fewer count.
const slack = 8

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\r', '\n':
			s.i++
		default:
			return
		}
	}
}

// peek gives the byte at hand, 0 at the end of the line (no JSON token starts with 0).
func (s *scanner) peek() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

// take steps over c, after white space.
func (s *scanner) take(c byte) bool {
	s.space()
	if s.peek() != c {
		return false
	}
	s.i++
	return true
}

func (s *scanner) literal(word string) bool {
	if len(s.b)-s.i < len(word) || string(s.b[s.i:s.i+len(word)]) != word {
		return false
	}
	s.i += len(word)
	return true
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// specials marks, by its high bit, the first byte of w that a JSON string cannot hold as it is: a quote, a
// backslash, a control character, and what is not ASCII and must be checked. Only the lowest mark is exact
// (a subtraction may borrow from the byte above a true mark), and only that one is used.
func specials(w uint64) uint64 {
	quote := w ^ ones*'"'
	slash := w ^ ones*'\\'
	return (w | (w-ones*0x20)&^w | (quote-ones)&^quote | (slash-ones)&^slash) & highs
}

// str decodes the string that starts at hand to the end of out. Payloads are JSON in JSON, so an escape
// comes every few bytes: eight bytes are stored at once and as many counted as were plain.
func (s *scanner) str() bool {
	if s.peek() != '"' {
		return false
	}
	b, i := s.b, s.i+1
	out, j := s.out[:cap(s.out)], len(s.out)
	for {
		if i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			binary.LittleEndian.PutUint64(out[j:], w)
			m := specials(w)
			if m == 0 {
				i, j = i+8, j+8
				continue
			}
			k := bits.TrailingZeros64(m) >> 3
			i, j = i+k, j+k
		} else if i >= len(b) {
			return false
		}
		switch c := b[i]; {
		case c == '"':
			s.i, s.out = i+1, out[:j]
			return true
		case c == '\\':
			if i+1 >= len(b) {
				return false
			}
			if e := escapes[b[i+1]]; e != 0 {
				out[j] = e
				i, j = i+2, j+1
				continue
			}
			r, n := unicodeEscape(b[i:])
			if n == 0 {
				return false
			}
			i, j = i+n, j+utf8.EncodeRune(out[j:], r)
		case c < ' ':
			return false
		case c < utf8.RuneSelf: // the last bytes of the line, fewer than eight
			out[j] = c
			i, j = i+1, j+1
		default:
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n == 1 {
				return false
			}
			j += copy(out[j:], b[i:i+n])
			i += n
		}
	}
}

// escapes maps the letter after a backslash to its byte, 0 where there is no such short escape.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unicodeEscape reads \uXXXX, or a pair of them for a rune beyond the basic plane, and says how many bytes
// that took; 0 for anything else, a lone surrogate among it.
func unicodeEscape(b []byte) (rune, int) {
	r, ok := hex4(b)
	if !ok || r >= 0xdc00 && r < 0xe000 {
		return 0, 0
	}
	if r < 0xd800 || r >= 0xe000 {
		return r, 6
	}
	low, ok := hex4(b[6:])
	if !ok || low < 0xdc00 || low >= 0xe000 {
		return 0, 0
	}
	return (r-0xd800)<<10 | (low - 0xdc00) + 0x10000, 12
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// integer reads a JSON number that is written as an integer and fits 64 bits.
func (s *scanner) integer() (int64, bool) {
	start := s.i
	if !s.number() {
		return 0, false
	}
	text := s.b[start:s.i]
	negative := text[0] == '-'
	if negative {
		text = text[1:]
	}
	if len(text) > 19 { // the least number of 20 digits is beyond 64 bits
		return 0, false
	}
	var v uint64
	for _, c := range text {
		if c < '0' || c > '9' { // a fraction or an exponent
			return 0, false
		}
		v = v*10 + uint64(c-'0')
	}
	if negative {
		return -int64(v), v <= math.MaxInt64+1
	}
	return int64(v), v <= math.MaxInt64
}

// number steps over a JSON number of any form.
func (s *scanner) number() bool {
	if s.peek() == '-' {
		s.i++
	}
	if s.peek() == '0' {
		s.i++
	} else if !s.digits() {
		return false
	}
	if s.peek() == '.' {
		s.i++
		if !s.digits() {
			return false
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.i++
		if c := s.peek(); c == '+' || c == '-' {
			s.i++
		}
		return s.digits()
	}
	return true
}

func (s *scanner) digits() bool {
	start := s.i
	for c := s.peek(); c >= '0' && c <= '9'; c = s.peek() {
		s.i++
	}
	return s.i > start
}

// skip steps over one value of any kind and checks all of it.
func (s *scanner) skip(depth int) bool {
	if depth > maxDepth {
		return false
	}
	switch s.peek() {
	case '{':
		return s.skipObject(depth)
	case '[':
		return s.skipArray(depth)
	case '"':
		mark := len(s.out)
		ok := s.str()
		s.out = s.out[:mark]
		return ok
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	}
	return s.number()
}

func (s *scanner) skipObject(depth int) bool {
	s.i++
	if s.take('}') {
		return true
	}
	for {
		s.space()
		if s.peek() != '"' || !s.skip(depth+1) || !s.take(':') {
			return false
		}
		s.space()
		if !s.skip(depth + 1) {
			return false
		}
		if s.take('}') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

func (s *scanner) skipArray(depth int) bool {
	s.i++
	if s.take(']') {
		return true
	}
	for {
		s.space()
		if !s.skip(depth + 1) {
			return false
		}
		if s.take(']') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}
