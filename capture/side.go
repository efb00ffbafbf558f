package capture

import (
	"strconv"
	"unicode/utf8"

	"joinbench/projection"
)

// AppendSide appends the line of a side output (late, dead, unmatched), newline included: the record as
// `kcat -J` prints it, then "reason". It can be read again in format kcat. A record whose time is -1 has no
// tstype and ts, as in kcat. A Damaged record prints its raw line as payload and its "line" in the file
// (a line that was over the length limit: its beginning). Bytes that are not UTF-8 become U+FFFD. Headers
// and the kind of time are no part of a Record and are not printed; tstype is "create".
func AppendSide(dst []byte, topic string, rec *projection.Record, reason string) []byte {
	dst = append(dst, `{"topic":`...)
	dst = appendString(dst, topic)
	dst = append(dst, `,"partition":`...)
	dst = strconv.AppendInt(dst, int64(rec.Partition), 10)
	dst = append(dst, `,"offset":`...)
	dst = strconv.AppendInt(dst, rec.Offset, 10)
	if rec.Timestamp != -1 {
		dst = append(dst, `,"tstype":"create","ts":`...)
		dst = strconv.AppendInt(dst, rec.Timestamp, 10)
	}
	dst = append(dst, `,"key":`...)
	dst = appendNullable(dst, rec.Key)
	dst = append(dst, `,"payload":`...)
	dst = appendNullable(dst, rec.Value)
	if rec.Damaged {
		dst = append(dst, `,"line":`...)
		dst = strconv.AppendInt(dst, rec.Place, 10)
	}
	dst = append(dst, `,"reason":`...)
	dst = appendString(dst, reason)
	return append(dst, '}', '\n')
}

func appendNullable(dst, b []byte) []byte {
	if b == nil {
		return append(dst, "null"...)
	}
	return appendString(dst, b)
}

// appendString appends b as a JSON string. What needs no escape is copied in stretches.
func appendString[T string | []byte](dst []byte, b T) []byte {
	dst = append(dst, '"')
	plain := 0 // from here to i nothing needs an escape
	for i := 0; i < len(b); {
		c := b[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			dst = append(dst, b[plain:i]...)
			dst = appendEscape(dst, c)
			i++
			plain = i
			continue
		}
		var n int
		if n = runeLen(b, i); n == 0 {
			dst = append(dst, b[plain:i]...)
			dst = append(dst, "\ufffd"...)
			i++
			plain = i
			continue
		}
		i += n
	}
	dst = append(dst, b[plain:]...)
	return append(dst, '"')
}

// runeLen is the length of the rune at b[i], 0 if the byte there starts none.
func runeLen[T string | []byte](b T, i int) int {
	var four [utf8.UTFMax]byte
	r, n := utf8.DecodeRune(four[:copy(four[:], b[i:])])
	if r == utf8.RuneError && n == 1 {
		return 0
	}
	return n
}

func appendEscape(dst []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	}
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}
