package fusefilter

import (
	"math/bits"
	"slices"
)

// Hit says that hash Pos of a batch may be in the buckets of Mask. kernel.h has the same struct.
type Hit struct {
	Pos  uint32
	Mask uint64
}

// Stats counts what Probe asked and heard since the set was made. Differences of two snapshots are the
// counts of the time between.
type Stats struct {
	Hashes uint64 // hashes that were probed
	Hits   uint64 // answers that were not *no*
}

// Stats is a snapshot of the counts.
func (s *Set) Stats() Stats { return Stats{s.hashes, s.hits} }

// Probe asks the slots of a mask for a whole batch of hashes and appends to out which of them may hold which: the *maybe*
// slots and the ones whose filter does not deny the hash. A slot that holds the hash is always among them. A hash may
// have several hits, of different slots; hits come filter by filter, each time in the order of the hashes. Repeated hashes
// are allowed, a batch has less than 2^32. It allocates nothing but room in out, whose memory is the caller's.
//
// Filter by filter, because each table then stays in the caches while it is asked. An answer costs no memory but for the
// one hash in a hundred that is not denied.
func (s *Set) Probe(hashes []uint64, ask uint64, out []Hit) []Hit {
	s.hashes += uint64(len(hashes))
	from := len(out)
	ask &= ^uint64(0) >> (MaxSlots - s.slots) &^ s.empty
	if len(hashes) == 0 || ask == 0 {
		return out
	}
	if unsure := ask &^ s.filtered; unsure != 0 {
		for i := range hashes {
			out = append(out, Hit{uint32(i), unsure})
		}
	}
	if m := ask & s.laned; m != 0 {
		out = slices.Grow(out, len(hashes)+1)
		n := probeLanes(s.lanes, s.lanes.lanesOf(m), hashes, out[len(out):cap(out)])
		at := len(out)
		out = out[:at+n]
		if s.lanes.split&m != 0 {
			out = out[:at+s.mergeLanes(hashes, m, out[at:])]
		}
	}
	for m := ask & s.filtered &^ s.laned; m != 0; m &= m - 1 {
		out = s.probeAlone(bits.TrailingZeros64(m), hashes, out)
	}
	s.hits += uint64(len(out) - from)
	return out
}

// mergeLanes makes hits of slots out of hits of lanes, and says how many are left.
func (s *Set) mergeLanes(hashes []uint64, slots uint64, hits []Hit) (n int) {
	for _, h := range hits {
		if h.Mask = s.lanes.merge(hashes[h.Pos], h.Mask, slots); h.Mask != 0 {
			hits[n] = h
			n++
		}
	}
	return n
}

// probeAlone asks the filter of one slot.
func (s *Set) probeAlone(slot int, hashes []uint64, out []Hit) []Hit {
	out = slices.Grow(out, len(hashes)+1)
	f, room, n := s.filters[slot], out[len(out):cap(out)], 0
	switch s.kind {
	case Fuse8:
		n = probeTable(&f.t8, 8, 1<<slot, hashes, room)
	case Fuse16:
		n = probeTable(&f.t16, 16, 1<<slot, hashes, room)
	case Fuse32:
		n = probeTable(&f.t32, 32, 1<<slot, hashes, room)
	}
	return out[:len(out)+n]
}
