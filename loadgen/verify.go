package loadgen

import "math/bits"

// Verifier compares the pairs that a join made with the truth. It belongs to one
// goroutine and takes one bit for each B and one for each A.
type Verifier struct {
	g          *Gen
	seenB      bitset // B whose expected pair was seen
	seenA      bitset // A of any pair
	spurious   int64
	duplicated int64
	reused     int64
}

// Verdict is what a verifier found. A right join has Missing, Spurious and Duplicated 0.
type Verdict struct {
	Expected   int64 // pairs that the truth holds
	Matches    int64 // of these, the pairs seen, each counted once
	Missing    int64 // of these, the pairs not seen
	Spurious   int64 // pairs seen that the truth does not hold, each B and A that do not exist included
	Duplicated int64 // times that an expected pair was seen again
	Reused     int64 // one-to-one: pairs whose A had been in a pair before (all are Spurious or Duplicated too)
}

// Right says whether the join made exactly the pairs of the truth.
func (v Verdict) Right() bool { return v.Missing == 0 && v.Spurious == 0 && v.Duplicated == 0 }

// NewVerifier returns a verifier that has seen nothing.
func (g *Gen) NewVerifier() *Verifier {
	return &Verifier{g: g, seenB: newBitset(g.nB), seenA: newBitset(g.nA)}
}

// Match records that the join made a pair of B j and A i, by index (see IndexA, IndexB).
// An index that does not exist makes the pair spurious.
func (v *Verifier) Match(j, i int64) {
	if j < 0 || j >= v.g.nB || i < 0 || i >= v.g.nA {
		v.spurious++
		return
	}
	if v.seenA.set(i) && !v.g.cfg.OneToMany {
		v.reused++
	}
	switch want, ok := v.g.Expected(j); {
	case !ok || want != i:
		v.spurious++
	case v.seenB.set(j):
		v.duplicated++
	}
}

// Result returns the verdict over all B.
func (v *Verifier) Result() Verdict { return v.ResultFor(v.g.nB) }

// ResultFor returns the verdict of a join that was given only the B below n (a run that
// was ended by time). A pair seen of a B at or above n is spurious.
func (v *Verifier) ResultFor(n int64) Verdict {
	n = max(0, min(n, v.g.nB))
	expected := v.g.ExpectedMatches
	if n < v.g.nB {
		expected = func() int64 { return v.g.ExpectedIn(0, n) }
	}
	inside, outside := v.seenB.count(n)
	r := Verdict{Expected: expected(), Matches: inside, Spurious: v.spurious + outside, Duplicated: v.duplicated, Reused: v.reused}
	r.Missing = r.Expected - r.Matches
	return r
}

// bitset is one bit for each of 0..n-1.
type bitset []uint64

func newBitset(n int64) bitset { return make(bitset, (n+63)/64) }

// set sets bit i and says whether it was set.
func (b bitset) set(i int64) (was bool) {
	w, m := &b[i>>6], uint64(1)<<(i&63)
	was = *w&m != 0
	*w |= m
	return was
}

// count returns the number of bits set below n, and at or above n.
func (b bitset) count(n int64) (below, above int64) {
	for w, x := range b {
		switch start := int64(w) << 6; {
		case start+64 <= n:
			below += int64(bits.OnesCount64(x))
		case start >= n:
			above += int64(bits.OnesCount64(x))
		default:
			m := uint64(1)<<(n-start) - 1
			below += int64(bits.OnesCount64(x & m))
			above += int64(bits.OnesCount64(x &^ m))
		}
	}
	return below, above
}
