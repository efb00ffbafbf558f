package fusefilter

import "slices"

// peeling finds an order in which the keys of a fuse filter can be settled: each key has three places; a place that only
// one key has left can be given whatever makes that key's three cells come out right, once all keys after it in the order
// have theirs. So keys are taken off, one lonely place after another, and settled in the reverse order (Botelho, Pagh and
// Ziviani, "Simple and Space-Efficient Minimal Perfect Hash Functions", 2007).
//
// Its memory, 45 to 50 bytes a key, is kept for the next bucket.
type peeling struct {
	g      *geometry
	mixed  []uint64 // of the keys, ordered by their first place
	starts []uint32
	places []peelPlace
	taken  []peeled
	lonely []uint32 // places
}

// peelPlace sums up the keys that have a place: how many, the xor of their mixed hashes, and of which of their three
// places it is (0, 1, 2). With one key left the sums are that key's.
type peelPlace struct {
	mixed uint64
	which uint32
	n     uint32
}

// peeled is a key and the place that is its own.
type peeled struct {
	mixed uint64
	which uint32
}

// order says whether there is an order for these distinct hashes. Then assign walks it.
func (p *peeling) order(g *geometry, hashes []uint64) bool {
	p.g = g
	p.sort(hashes)
	p.places = zeroed(p.places, g.size())
	for _, m := range p.mixed {
		for which, at := range p.of(m) {
			s := &p.places[at]
			s.mixed ^= m
			s.which ^= uint32(which)
			s.n++
		}
	}
	p.lonely, p.taken = p.lonely[:0], p.taken[:0]
	for at := range p.places {
		if p.places[at].n == 1 {
			p.lonely = append(p.lonely, uint32(at))
		}
	}
	for len(p.lonely) > 0 {
		at := p.lonely[len(p.lonely)-1]
		p.lonely = p.lonely[:len(p.lonely)-1]
		if p.places[at].n == 1 {
			p.take(p.places[at])
		}
	}
	return len(p.taken) == len(p.mixed)
}

// twice says whether a hash was given to order twice: then no seed helps. Afterwards order has to be called again.
func (p *peeling) twice() bool {
	slices.Sort(p.mixed) // mix takes no two hashes to one
	for i := 1; i < len(p.mixed); i++ {
		if p.mixed[i] == p.mixed[i-1] {
			return true
		}
	}
	return false
}

// take takes a key off its three places.
func (p *peeling) take(own peelPlace) {
	p.taken = append(p.taken, peeled{own.mixed, own.which})
	for which, at := range p.of(own.mixed) {
		s := &p.places[at]
		s.mixed ^= own.mixed
		s.which ^= uint32(which)
		s.n--
		if s.n == 1 {
			p.lonely = append(p.lonely, at)
		}
	}
}

func (p *peeling) of(m uint64) [3]uint32 {
	a, b, c := p.g.places(m)
	return [3]uint32{a, b, c}
}

// assign calls set for each key in the order in which they are to be settled, with its own place first.
func (p *peeling) assign(set func(mixed uint64, own, other, another uint32)) {
	for i := len(p.taken) - 1; i >= 0; i-- {
		t := &p.taken[i]
		at := p.of(t.mixed)
		set(t.mixed, at[t.which], at[(t.which+1)%3], at[(t.which+2)%3])
	}
}

// sort mixes the hashes and orders them by segment: what follows then walks through memory in step with them.
func (p *peeling) sort(hashes []uint64) {
	// The first place is the high part of mixed × span, so the segment is in the top bits of mixed.
	const sortBits = 10
	const shift = 64 - sortBits
	p.starts = zeroed(p.starts, 1<<sortBits+1)
	for _, h := range hashes {
		p.starts[mix(h, p.g.seed)>>shift+1]++
	}
	for i := 1; i <= 1<<sortBits; i++ {
		p.starts[i] += p.starts[i-1]
	}
	if cap(p.mixed) < len(hashes) {
		p.mixed = make([]uint64, len(hashes))
	}
	p.mixed = p.mixed[:len(hashes)]
	for _, h := range hashes {
		m := mix(h, p.g.seed)
		at := &p.starts[m>>shift]
		p.mixed[*at] = m
		*at++
	}
}

func zeroed[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}
