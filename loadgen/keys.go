package loadgen

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// bKeys sets the key numbers of B without partner apart from A indexes, which are below
// MaxRecords.
const bKeys = uint64(1) << 62

// keyMaker prints the key of a key number: an A index, or bKeys + a B index. The number
// goes through a bijection of 64 bits, all 64 of which are printed: two numbers never
// share a key.
type keyMaker struct {
	shape Shape
	salt  uint64
	blank []byte // a key whose digits are still to be written
	front int    // where the 16 hex or 20 decimal digits begin
}

func newKeyMaker(c Config, salt uint64) keyMaker {
	m := keyMaker{shape: c.KeyShape, salt: salt}
	m.blank = bytes.Repeat([]byte{'0'}, c.KeyBytes)
	switch c.KeyShape {
	case ShapeText:
		m.front = c.KeyBytes - 16
		copy(m.blank[:m.front], "PAY-")
	case ShapeDigits:
		m.front = c.KeyBytes - 20
	}
	return m
}

// put writes the digits of the key of number x over dst, which begins with a copy of
// blank.
func (m *keyMaker) put(dst []byte, x uint64) {
	// Bijection: add, mix; its two steps keep distinct numbers distinct.
	h := mix(x + m.salt)
	switch m.shape {
	case ShapeText:
		putHex(dst[m.front:], h)
	case ShapeDigits:
		putDec20(dst[m.front:], h)
	case ShapeUUID:
		putUUID(dst, h, mix(h))
	}
}

// putUUID writes hi and lo as 8-4-4-4-12 hex digits.
func putUUID(dst []byte, hi, lo uint64) {
	var b [32]byte
	putHex(b[:16], hi)
	putHex(b[16:], lo)
	copy(dst[0:8], b[0:8])
	copy(dst[9:13], b[8:12])
	copy(dst[14:18], b[12:16])
	copy(dst[19:23], b[16:20])
	copy(dst[24:36], b[20:32])
	dst[8], dst[13], dst[18], dst[23] = '-', '-', '-', '-'
}

// The digit writers below work on 8 digits at once in the bytes of a word, the first digit
// in the lowest byte: three times as fast as a digit or two at a time, and half of the
// cost of a record is digits.

const (
	each8  = 0x0101010101010101 // 1 in each byte
	ascii0 = '0' * each8
)

// hex8 returns the 8 hex digits of x.
func hex8(x uint32) uint64 {
	y := uint64(bits.ReverseBytes32(x))
	y = (y | y<<16) & 0x0000ffff0000ffff
	y = (y | y<<8) & 0x00ff00ff00ff00ff
	y = y>>4&0x000f000f000f000f | y<<8&0x0f000f000f000f00 // a nibble in each byte
	letters := (y + 6*each8) >> 4 & each8                 // 1 where the nibble is above 9
	return y + ascii0 + letters*('a'-'0'-10)
}

// dec8 returns the 8 decimal digits of x < 10^8.
func dec8(x uint64) uint64 {
	y := x/10_000 | x%10_000<<32              // 4 digits in each half
	q := y * 5243 >> 19 & 0x0000007f_0000007f // y/100 for y < 10^4
	y = q | (y-q*100)<<16                     // 2 digits in each quarter
	q = y * 103 >> 10 & 0x000f_000f_000f_000f // y/10 for y < 10^2
	return (q | (y-q*10)<<8) + ascii0
}

// putHex writes the 16 hex digits of x.
func putHex(dst []byte, x uint64) {
	dst = dst[:16]
	binary.LittleEndian.PutUint64(dst, hex8(uint32(x>>32)))
	binary.LittleEndian.PutUint64(dst[8:], hex8(uint32(x)))
}

// putDec8 writes the 8 decimal digits of x < 10^8.
func putDec8(dst []byte, x uint64) { binary.LittleEndian.PutUint64(dst[:8], dec8(x)) }

// dec4 returns the 4 decimal digits of x < 10^4.
func dec4(x uint64) uint32 {
	q := x / 100
	y := q | (x-q*100)<<16
	q = y * 103 >> 10 & 0x000f_000f
	return uint32((q | (y-q*10)<<8) + ascii0)
}

// putDec12 writes the 12 decimal digits of x < 10^12.
func putDec12(dst []byte, x uint64) {
	dst = dst[:12]
	high := x / 1e8
	binary.LittleEndian.PutUint32(dst, dec4(high))
	putDec8(dst[4:], x-high*1e8)
}

// putDec13 writes the 13 decimal digits of x < 10^13.
func putDec13(dst []byte, x uint64) {
	dst = dst[:13]
	high := x / 1e12
	dst[0] = byte('0' + high)
	putDec12(dst[1:], x-high*1e12)
}

// putDec20 writes the 20 decimal digits of x.
func putDec20(dst []byte, x uint64) {
	dst = dst[:20]
	putDec8(dst, x/1e12)
	putDec8(dst[4:], x/1e8%1e8)
	putDec8(dst[12:], x%1e8)
}

// putCount writes x < 1000 with spaces in front.
func putCount(dst []byte, x int) {
	dst = dst[:3]
	dst[0], dst[1], dst[2] = ' ', ' ', byte('0'+x%10)
	if x >= 10 {
		dst[1] = byte('0' + x/10%10)
	}
	if x >= 100 {
		dst[0] = byte('0' + x/100)
	}
}

// putPrice writes 100.00 to 999.99, by a hash h < 2^24: always 6 characters, and no leading
// zero, which JSON does not allow.
func putPrice(dst []byte, h uint64) {
	dst = dst[:6]
	d := dec8(10_000 + h*90_000>>24) // the last 5 digits count
	binary.LittleEndian.PutUint32(dst, uint32(d>>24)&0xffffff|'.'<<24)
	binary.LittleEndian.PutUint16(dst[4:], uint16(d>>48))
}
