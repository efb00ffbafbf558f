package projection

import "unicode/utf8"

// The tags of typed keys: the type is part of the key, so 5 and "5" are two keys, in hash and check alike.
const (
	tagString = 's' // then the decoded bytes of the string
	tagNumber = 'n' // then the text of the number as written
)

// AppendKey appends a typed key, as Rows hold it, as JSON: a string quoted and escaped, a number as written,
// null for the empty slice (no key). Record keys may be invalid UTF-8; each bad byte prints as U+FFFD.
func AppendKey(dst, typedKey []byte) []byte {
	switch {
	case len(typedKey) == 0:
		return append(dst, "null"...)
	case typedKey[0] == tagNumber:
		return append(dst, typedKey[1:]...)
	}
	return appendQuoted(dst, typedKey[1:])
}

const hexDigits = "0123456789abcdef"

// appendQuoted appends raw as a JSON string. Only what must be escaped is.
func appendQuoted(dst, raw []byte) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(raw); {
		end := skipPlain(raw, i)
		dst = append(dst, raw[i:end]...)
		if i = end; i == len(raw) {
			break
		}
		c := raw[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRune(raw[i:])
			dst = utf8.AppendRune(dst, r) // RuneError is U+FFFD
			i += n
			continue
		}
		i++
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(dst, '"')
}

// appendUnquoted decodes the inside of a valid JSON string.
func appendUnquoted(dst, inside []byte) []byte {
	for i := 0; i < len(inside); {
		if inside[i] != '\\' {
			start := i
			for i < len(inside) && inside[i] != '\\' {
				i++
			}
			dst = append(dst, inside[start:i]...)
			continue
		}
		c := inside[i+1]
		i += 2
		switch c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r := hex4(inside, i)
			i += 4
			if isHigh(r) {
				r = 0x10000 + (r-0xd800)<<10 + (hex4(inside, i+2) - 0xdc00)
				i += 6
			}
			dst = utf8.AppendRune(dst, r)
			continue
		}
		dst = append(dst, c)
	}
	return dst
}
