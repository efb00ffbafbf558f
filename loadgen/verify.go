package loadgen

import "math/bits"

// Verifier compares the pairs that a join made with the truth. It belongs to one goroutine.
//
// It remembers a bit for each B, in pages, and forgets a page as soon as every pair of it was
// seen: from then on each of these pairs is one too many. So a right join of any length
// costs it the few pages that are being filled, and a wrong one a bit for each B.
type Verifier struct {
	g     *Gen
	seen  int64           // expected pairs, each counted once
	done  int64           // every pair of the pages below was seen
	full  map[int64]bool  // the same of pages above
	pages map[int64]*page // pages in which some pairs were seen
	// wrongA holds the A of spurious pairs. That of an expected pair is its B's partner.
	wrongA     map[int64]*[pageWords]uint64
	spurious   int64
	duplicated int64
	reused     int64
}

const (
	pageBits  = 14 // 2 KiB
	pageWords = 1 << pageBits / 64
)

// page is a bit for each of 2^pageBits B.
type page struct {
	bits [pageWords]uint64 // B whose expected pair was seen
	left int64             // expected pairs not seen
}

// Verdict is what a verifier found. A right join has Missing, Spurious and Duplicated 0.
type Verdict struct {
	Expected   int64 // pairs that the truth holds
	Matches    int64 // of these, the pairs seen, each counted once
	Missing    int64 // of these, the pairs not seen
	Spurious   int64 // pairs seen that the truth does not hold, each B and A that do not exist included
	Duplicated int64 // times that an expected pair was seen again
	Reused     int64 // one-to-one: pairs whose A had been in a pair before (all are Spurious or Duplicated too)
	Beyond     int64 // of the Spurious, the pairs that are right but for their B, which lies beyond those asked about
}

// Right says whether the join made exactly the pairs of the truth.
func (v Verdict) Right() bool { return v.Missing == 0 && v.Spurious == 0 && v.Duplicated == 0 }

// NewVerifier returns a verifier that has seen nothing.
func (g *Gen) NewVerifier() *Verifier {
	return &Verifier{g: g, full: map[int64]bool{}, pages: map[int64]*page{}, wrongA: map[int64]*[pageWords]uint64{}}
}

// Match records that the join made a pair of B j and A i, by index (see IndexA, IndexB).
// An index that does not exist makes the pair spurious.
func (v *Verifier) Match(j, i int64) {
	if j < 0 || j >= v.g.nB || i < 0 || i >= v.g.nA {
		v.spurious++
		return
	}
	if !v.g.cfg.OneToMany && v.paired(i) {
		v.reused++
	}
	switch want, ok := v.g.Expected(j); {
	case !ok || want != i:
		v.spurious++
		v.setWrongA(i)
	case v.see(j):
		v.duplicated++
	}
}

// paired says whether A i was in a pair, where each has at most one partner.
func (v *Verifier) paired(i int64) bool {
	if w := v.wrongA[i>>pageBits]; w != nil && w[i>>6%pageWords]>>(i&63)&1 != 0 {
		return true
	}
	j, ok := v.g.PartnerOf(i)
	return ok && v.saw(j)
}

func (v *Verifier) setWrongA(i int64) {
	w := v.wrongA[i>>pageBits]
	if w == nil {
		w = new([pageWords]uint64)
		v.wrongA[i>>pageBits] = w
	}
	w[i>>6%pageWords] |= 1 << (i & 63)
}

// saw says whether the pair of B j, which has one, was seen.
func (v *Verifier) saw(j int64) bool {
	n := j >> pageBits
	if n < v.done || v.full[n] {
		return true
	}
	p := v.pages[n]
	return p != nil && p.bits[j>>6%pageWords]>>(j&63)&1 != 0
}

// see notes that the pair of B j, which has one, was seen, and says whether it had been before.
func (v *Verifier) see(j int64) (was bool) {
	if v.saw(j) {
		return true
	}
	n := j >> pageBits
	p := v.pages[n]
	if p == nil {
		p = &page{left: v.expectedIn(n, v.g.nB)}
		v.pages[n] = p
	}
	p.bits[j>>6%pageWords] |= 1 << (j & 63)
	p.left--
	v.seen++
	if p.left == 0 {
		delete(v.pages, n)
		v.full[n] = true
		v.advance()
	}
	return false
}

// advance moves done over the pages that have all their pairs, if only for having none.
func (v *Verifier) advance() {
	for len(v.full) > 0 {
		switch {
		case v.full[v.done]:
			delete(v.full, v.done)
		case v.pages[v.done] != nil || v.expectedIn(v.done, v.g.nB) > 0:
			return
		}
		v.done++
	}
}

// expectedIn counts the pairs of the B of page n that are below an index.
func (v *Verifier) expectedIn(n, below int64) int64 {
	return v.g.ExpectedIn(n<<pageBits, min((n+1)<<pageBits, below))
}

// Result returns the verdict over all B.
func (v *Verifier) Result() Verdict { return v.ResultFor(v.g.nB) }

// ResultFor returns the verdict of a join that was given only the B below n (a run that
// was ended by time). A pair seen of a B at or above n is spurious. It visits every pair
// below n (see ExpectedIn).
func (v *Verifier) ResultFor(n int64) Verdict {
	n = max(0, min(n, v.g.nB))
	below := v.g.ExpectedIn(0, min(n, v.done<<pageBits))
	r := Verdict{Expected: below + v.g.ExpectedIn(v.done<<pageBits, n), Matches: below, Duplicated: v.duplicated, Reused: v.reused}
	for p := range v.full {
		r.Matches += v.expectedIn(p, n)
	}
	for p, live := range v.pages {
		r.Matches += live.count(n - p<<pageBits)
	}
	r.Beyond = v.seen - r.Matches
	r.Spurious = v.spurious + r.Beyond
	r.Missing = r.Expected - r.Matches
	return r
}

// count returns the number of bits set below n.
func (p *page) count(n int64) (set int64) {
	for w, x := range p.bits {
		switch start := int64(w) << 6; {
		case start+64 <= n:
			set += int64(bits.OnesCount64(x))
		case start < n:
			set += int64(bits.OnesCount64(x & (1<<(n-start) - 1)))
		}
	}
	return set
}
