package loadgen

import "math/bits"

// ledger ticks off numbered lines that are expected. It remembers a bit for each, in pages, and forgets a page as soon as
// all of it was seen: from then on each of its lines is one too many. So a right join of any length costs it the few pages
// that are being filled, and a wrong one a bit for each line.
type ledger struct {
	expected func(from, to int64) int64 // how many of the numbers are expected
	seen     int64                      // lines, each counted once
	below    int64                      // of these, those of the pages below done
	done     int64                      // every line of the pages below was seen
	full     map[int64]int64            // the same of pages above, and how many lines they have
	pages    map[int64]*page            // pages in which some lines were seen
}

const (
	pageBits  = 14 // 2 KiB
	pageWords = 1 << pageBits / 64
)

// page is a bit for each of 2^pageBits numbers.
type page struct {
	bits pageSet
	left int64 // expected lines not seen
	want int64 // expected lines
}

type pageSet [pageWords]uint64

func (p *pageSet) has(n int64) bool { return p[n>>6%pageWords]>>(n&63)&1 != 0 }
func (p *pageSet) add(n int64)      { p[n>>6%pageWords] |= 1 << (n & 63) }

func newLedger(expected func(from, to int64) int64) ledger {
	return ledger{expected: expected, full: map[int64]int64{}, pages: map[int64]*page{}}
}

// saw says whether the line with a number, which is expected, was seen.
func (l *ledger) saw(n int64) bool {
	at := n >> pageBits
	if at < l.done {
		return true
	}
	if _, ok := l.full[at]; ok {
		return true
	}
	p := l.pages[at]
	return p != nil && p.bits.has(n)
}

// see notes that the line with a number, which is expected, was seen, and says whether it had been before.
func (l *ledger) see(n int64) (was bool) {
	if l.saw(n) {
		return true
	}
	at := n >> pageBits
	p := l.pages[at]
	if p == nil {
		p = &page{want: l.expectedIn(at)}
		p.left = p.want
		l.pages[at] = p
	}
	p.bits.add(n)
	p.left--
	l.seen++
	if p.left == 0 {
		delete(l.pages, at)
		l.full[at] = p.want
		l.advance()
	}
	return false
}

// advance moves done over the pages that have all their lines, if only for having none.
func (l *ledger) advance() {
	for len(l.full) > 0 {
		if want, ok := l.full[l.done]; ok {
			l.below += want
			delete(l.full, l.done)
		} else if l.pages[l.done] != nil || l.expectedIn(l.done) > 0 {
			return
		}
		l.done++
	}
}

// expectedIn counts the lines of a page.
func (l *ledger) expectedIn(at int64) int64 { return l.expected(at<<pageBits, (at+1)<<pageBits) }

// expectedBelow counts the lines below a number. What was seen is not counted again.
func (l *ledger) expectedBelow(n int64) int64 {
	if n < l.done<<pageBits {
		return l.expected(0, n)
	}
	return l.below + l.expected(l.done<<pageBits, n)
}

// seenBelow counts the lines that were seen with numbers below n.
func (l *ledger) seenBelow(n int64) int64 {
	if n < l.done<<pageBits {
		return l.expected(0, n)
	}
	seen := l.below
	for at, want := range l.full {
		switch start := at << pageBits; {
		case start+1<<pageBits <= n:
			seen += want
		case start < n:
			seen += l.expected(start, n)
		}
	}
	for at, p := range l.pages {
		seen += p.bits.count(n - at<<pageBits)
	}
	return seen
}

// count returns the number of bits set below n.
func (p *pageSet) count(n int64) (set int64) {
	for w, x := range p {
		switch start := int64(w) << 6; {
		case start+64 <= n:
			set += int64(bits.OnesCount64(x))
		case start < n:
			set += int64(bits.OnesCount64(x & (1<<(n-start) - 1)))
		}
	}
	return set
}

// strays are lines that are right only if the run ends where it does: a byte for each, in pages, which none but the records
// that wait in the end have.
type strays struct {
	pages map[int64]*[1 << pageBits]uint8
	n     int64 // lines
}

// put notes one, by a code other than 0, and returns the code that was there before.
func (s *strays) put(n int64, code uint8) (was uint8) {
	p := s.pages[n>>pageBits]
	if p == nil {
		p = new([1 << pageBits]uint8)
		s.pages[n>>pageBits] = p
	}
	at := &p[n&(1<<pageBits-1)]
	if was = *at; was == 0 {
		*at = code
		s.n++
	}
	return was
}

func (s *strays) code(n int64) uint8 {
	if p := s.pages[n>>pageBits]; p != nil {
		return p[n&(1<<pageBits-1)]
	}
	return 0
}
