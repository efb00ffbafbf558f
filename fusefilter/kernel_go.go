package fusefilter

import "math/bits"

// The kernels in Go: what kernel.c does, without fetching ahead. Builds without C use them, and tests.

func goProbeLanes(l *Lanes, ask uint64, hashes []uint64, out []Hit) int {
	n := 0
	for i, h := range hashes {
		if m := l.maybes(h) & ask; m != 0 {
			out[n] = Hit{uint32(i), m}
			n++
		}
	}
	return n
}

// maybes is which lanes do not deny a hash, those that nobody filled included.
func (l *Lanes) maybes(hash uint64) (mask uint64) {
	width := l.kind.cellBits()
	m := mix(hash, l.seed)
	a, b, c := l.places(m)
	lane := uint64(1)<<width - 1
	f := (m ^ m>>32) & lane
	perWord := 64 / width
	for w := range l.words {
		t := l.rows[int(a)*l.words+w] ^ l.rows[int(b)*l.words+w] ^ l.rows[int(c)*l.words+w]
		for i := range perWord {
			if t>>(i*width)&lane == f {
				mask |= 1 << (w*perWord + i)
			}
		}
	}
	return mask
}

func goProbeTable[T fingerprint](t *table[T], mask uint64, hashes []uint64, out []Hit) int {
	n := 0
	for i, h := range hashes {
		if t.residue(mix(h, t.seed)) == 0 {
			out[n] = Hit{uint32(i), mask}
			n++
		}
	}
	return n
}

func goFindOpen(x *OpenIndex, hashes []uint64, out []Found) int {
	n := 0
	for i, h := range hashes {
		if e, _ := x.find(h); e >= 0 {
			out[n] = Found{uint32(i), x.entries[e].head}
			n++
		}
	}
	return n
}

// places are the three cells of a mixed hash, one in each of three neighbouring segments.
func (g *geometry) places(m uint64) (a, b, c uint32) {
	hi, _ := bits.Mul64(m, uint64(g.span))
	a = uint32(hi)
	b = a + g.seg
	c = b + g.seg
	b ^= uint32(m>>18) & g.mask
	c ^= uint32(m) & g.mask
	return a, b, c
}
