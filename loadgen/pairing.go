package loadgen

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// maxChunkBits bounds the chunks in which ages are permuted: a million partners
// of one age are enough to scatter look-ups over a bucket.
const maxChunkBits = 20

// pairing is the bijection between matched-B ordinals k and A strides s. Both are
// counted at the same rate in event time (one stride of A holds as many A as come
// in per matched B), so the partner of age a is a fixed number of strides back:
//
//	s = origin + k - delay(class),  class = k mod n,  n = number of ages
//
// Delays are multiples of n, so s - origin and k have the same class and the map
// has an inverse. Inside a class, k is first permuted within its chunk, so that ages
// vary around the mean and neighbouring B ask for A far apart.
type pairing struct {
	n      int64   // classes
	delay  []int64 // strides back, by class; multiples of n
	origin int64   // stride of the A that comes with B 0
	bits   uint    // log2 of the chunk length within a class
	salt   uint64
}

// newPairing plans delays and chunks. perMs is matched B per ms of event time.
// origin, the stride of the first A that comes with a B, is still to be set.
//
// How far an age may stray: (chunk-1)·n slots by the permutation, n/2 by rounding
// its delay to a multiple of n, 1 each by the place inside a block of A and of B, by
// the cut of block borders to whole records (A and B) and of origin, together
// below n·chunk + n/2 + 5 slots; then Disorder, and 3 ms for cutting times to ms.
//
// A family's members, the strides of its A and the lanes of a row each add a slot more: extra.
func newPairing(c Config, member int, perMs, extra float64, salt uint64) (pairing, error) {
	n := int64(len(c.Ages))
	p := pairing{n: n, salt: salt, delay: make([]int64, n)}
	fixed := (float64(n)/2+5+extra)/perMs + float64(ms(c.Disorder)) + 3
	room := math.Inf(1) // ms by which the permutation may move an age
	for i := range c.Ages {
		a, end := c.Ages[(i+member)%len(c.Ages)], c.After
		age := float64(ms(a))
		p.delay[i] = n * int64(math.Round(age*perMs/float64(n)))
		if a < 0 { // the same before the A
			age, end = -age, c.Before
		}
		early := age - fixed - 1                                 // tA <= tB - 1
		late := float64(ms(end)-2*ms(c.Grace)) - age - fixed - 1 // tB <= tA + After - 2*Grace
		if need := float64(n) / perMs; min(early, late) < need {
			return p, c.strayError(a, end, perMs, time.Duration((fixed+1+need)*float64(time.Millisecond)))
		}
		// Half of the age at most, so that an age keeps its meaning.
		room = min(room, max(float64(n)/perMs, min(age/2, early)), late)
	}
	for p.bits < maxChunkBits && float64(n)*float64(int64(2)<<p.bits)/perMs <= room {
		p.bits++
	}
	return p, nil
}

// newPairings plans a pairing for each B of a key. perMs is matched B per ms of event time.
func newPairings(c Config, perMs float64, salt uint64) ([]pairing, error) {
	n, extra := c.Family.bs(), 0.0
	if n > 1 || c.Family.as() > 1 {
		extra = 3
	}
	perMs /= float64(n) * float64(c.lanes())
	all := make([]pairing, n)
	for m := range all {
		if m > 0 {
			salt = mix(salt + uint64(m))
		}
		var err error
		if all[m], err = newPairing(c, m, perMs, extra, salt); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (c Config) strayError(age, end time.Duration, perMs float64, stray time.Duration) error {
	if stray = stray.Round(time.Millisecond); age > 0 {
		return fmt.Errorf("loadgen: match age %v cannot be kept between 0 and after - 2*grace = %v: with %g matches per second of event time and disorder %v ages stray by %v",
			age, end-2*c.Grace, perMs*1000, c.Disorder, stray)
	}
	return fmt.Errorf("loadgen: match age %v cannot be kept between 0 and 2*grace - before = %v: with %g matches per second of event time and disorder %v ages stray by %v",
		age, 2*c.Grace-end, perMs*1000, c.Disorder, stray)
}

// strideOf returns the stride of the partner of matched-B ordinal k; negative when
// it lies before the first A.
func (p *pairing) strideOf(k uint64) int64 {
	class := int64(k % uint64(p.n))
	return p.origin + p.n*int64(p.permute(k/uint64(p.n))) + class - p.delay[class]
}

// ordinalOf is the inverse of strideOf; ok is false when the stride's partner would
// be before the first B.
func (p *pairing) ordinalOf(s int64) (k uint64, ok bool) {
	d := s - p.origin
	class := d % p.n
	if class < 0 {
		class += p.n
	}
	q := (d - class + p.delay[class]) / p.n // exact: n divides both
	if q < 0 {
		return 0, false
	}
	return uint64(p.n)*p.unpermute(uint64(q)) + uint64(class), true
}

// permute moves x within its chunk of 2^bits: an affine map with constants drawn
// for the chunk, then a xor-shift by at least half the bits, which is its own inverse.
func (p *pairing) permute(x uint64) uint64 {
	if p.bits == 0 {
		return x
	}
	chunk, mask := x>>p.bits, uint64(1)<<p.bits-1
	h := mix(chunk ^ p.salt)
	y := (x*(h|1) + h>>32) & mask
	y ^= y >> ((p.bits + 1) / 2)
	return chunk<<p.bits | y
}

func (p *pairing) unpermute(x uint64) uint64 {
	if p.bits == 0 {
		return x
	}
	chunk, mask := x>>p.bits, uint64(1)<<p.bits-1
	h := mix(chunk ^ p.salt)
	y := x & mask
	y ^= y >> ((p.bits + 1) / 2)
	return chunk<<p.bits | (y-h>>32)*inverse(h|1)&mask
}

// inverse returns the inverse of odd a modulo 2^64 by Newton's iteration: a itself is
// right to 3 bits, each step doubles them.
func inverse(a uint64) uint64 {
	x := a
	for range 5 {
		x *= 2 - a*x
	}
	return x
}

// Event time in fixed point: ms·2^40 per record.
const stepBits = 40

// step returns the distance of two records at a rate, in ms·2^40.
func step(perSec float64) uint64 {
	return uint64(math.Round(1000 / perSec * (1 << stepBits)))
}

// stepTime returns floor(i·step) in ms.
func stepTime(i, step uint64) int64 {
	hi, lo := bits.Mul64(i, step)
	return int64(hi<<(64-stepBits) | lo>>stepBits)
}

// stepIndex returns the greatest i with stepTime(i, step) <= t; t >= 0.
func stepIndex(t int64, step uint64) int64 {
	// i·step < (t+1)·2^40
	u := uint64(t) + 1
	lo, borrow := bits.Sub64(u<<stepBits, 1, 0)
	q, _ := bits.Div64(u>>(64-stepBits)-borrow, lo, step)
	return int64(q)
}
