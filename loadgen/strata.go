package loadgen

import "math/bits"

// Fixed point of shares: share·2^48. 48 bits leave 16 for the index in one
// 64-bit half, and a share is hit to 1 in 10^14.
const (
	oneBits = 48
	one     = uint64(1) << oneBits
)

// strata chooses a share of the indexes 0, 1, 2, …: exactly one in each block of
// 1/share indexes (blocks are as equal as whole numbers allow), at a place that a
// hash says. The chosen ones are numbered 0, 1, 2, … (their ordinals); so are the
// others (their rest numbers), so that another strata can choose among these.
//
// Block k holds the indexes j with floor(j·share) = k, so it starts at
// ceil(k/share). All four directions cost one division:
//
//	at(j)       chosen? and the ordinal or rest number of j
//	slot(k)     index of the chosen one with ordinal k
//	restSlot(u) index of the other one with rest number u
//
// The zero value chooses nothing: every index is its own rest number.
type strata struct {
	p    uint64 // share·2^48, 0..2^48
	quo  uint64 // one / p
	rem  uint64 // one % p
	salt uint64
}

func newStrata(p, salt uint64) strata {
	s := strata{p: p, salt: salt}
	if p > 0 {
		s.quo, s.rem = one/p, one%p
	}
	return s
}

// block returns the first index of block k and the number of its indexes.
func (s *strata) block(k uint64) (start, size uint64) {
	// ceil(k·2^48/p) = floor((k·2^48 + p-1)/p); the remainder tells, without a
	// second division, whether the next block starts quo or quo+1 later.
	lo, carry := bits.Add64(k<<oneBits, s.p-1, 0)
	start, r := bits.Div64(k>>(64-oneBits)+carry, lo, s.p)
	size = s.quo
	if r+s.rem >= s.p {
		size++
	}
	return start, size
}

// slot returns the index of the chosen one with ordinal k. The share must not be 0.
func (s *strata) slot(k uint64) uint64 {
	start, size := s.block(k)
	if size == 1 {
		return start
	}
	off, _ := bits.Mul64(mix(k^s.salt), size)
	return start + off
}

// at says whether index j is chosen. n is its ordinal if it is, else its rest
// number.
func (s *strata) at(j uint64) (n uint64, chosen bool) {
	var m slotMemo
	return s.atMemo(j, &m)
}

// slotMemo remembers the slot of one block. Neighbouring indexes lie in one block, and the slot is the division.
type slotMemo struct {
	block uint64 // and one; 0: nothing is remembered
	slot  uint64
}

// atMemo is at with what the last call found.
func (s *strata) atMemo(j uint64, m *slotMemo) (n uint64, chosen bool) {
	if s.p == 0 {
		return j, false
	}
	k := s.blockOf(j)
	if m.block != k+1 {
		m.block, m.slot = k+1, s.slot(k)
	}
	switch {
	case m.slot == j:
		return k, true
	case m.slot < j:
		return j - k - 1, false
	default:
		return j - k, false
	}
}

// blockOf returns the block of index j, which is the number of blocks before it.
func (s *strata) blockOf(j uint64) uint64 {
	hi, lo := bits.Mul64(j, s.p)
	return hi<<(64-oneBits) | lo>>oneBits
}

// count returns how many of the indexes 0..n-1 are chosen.
func (s *strata) count(n uint64) uint64 {
	if s.p == 0 || n == 0 {
		return 0
	}
	k := s.blockOf(n)
	if s.slot(k) < n {
		k++
	}
	return k
}

// restSlot returns the index of the other one with rest number u. The share must
// be less than one.
func (s *strata) restSlot(u uint64) uint64 {
	if s.p == 0 {
		return u
	}
	// Before block k lie ceil(k/share) - k others; the block of u is the last k
	// for which that is not more than u: k = floor(u·share/(1-share)).
	hi, lo := bits.Mul64(u, s.p)
	k, _ := bits.Div64(hi, lo, one-s.p)
	j := u + k // = start + (u - (start - k))
	if j >= s.slot(k) {
		j++
	}
	return j
}

// mix is the finalizer of splitmix64: a bijection of 64 bits in which every input
// bit moves every output bit.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// below maps a hash to 0..n-1 without division.
func below(h, n uint64) uint64 {
	hi, _ := bits.Mul64(h, n)
	return hi
}
