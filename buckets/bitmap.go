package buckets

import (
	"encoding/binary"
	"math/bits"
)

// bitmap has a bit for each row of a bucket. Rows beyond its end are not set: one that is rarely needed is made at the first
// set.
type bitmap []uint64

func (m bitmap) has(row uint32) bool {
	i := int(row >> 6)
	return i < len(m) && m[i]&(1<<(row&63)) != 0
}

// set sets the bit of a row; words is the length that the bitmap should have by now.
func (m *bitmap) set(row uint32, words int) {
	for len(*m) < words {
		*m = append(*m, 0)
	}
	(*m)[row>>6] |= 1 << (row & 63)
}

func (m bitmap) clear(row uint32) { m[row>>6] &^= 1 << (row & 63) }

// words is how many words a bitmap of so many rows has.
func words(rows uint32) int { return int((int64(rows) + 63) / 64) }

// appendBits adds the first rows bits of a bitmap, which may be shorter, in whole words; other bits are 0.
func appendBits(dst []byte, m bitmap, rows uint32) []byte {
	for i := range words(rows) {
		w := uint64(0)
		if i < len(m) {
			w = m[i]
		}
		if rest := rows - uint32(i)*64; rest < 64 {
			w &= 1<<rest - 1
		}
		dst = binary.LittleEndian.AppendUint64(dst, w)
	}
	return dst
}

// readBits is a bitmap that appendBits wrote, and how many bits of it are set.
func readBits(b []byte) (m bitmap, set int64) {
	for ; len(b) > 0; b = b[8:] {
		w := binary.LittleEndian.Uint64(b)
		m, set = append(m, w), set+int64(bits.OnesCount64(w))
	}
	return m, set
}
