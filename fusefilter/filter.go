package fusefilter

import (
	"time"

	"github.com/FastFilter/xorfilter"
)

// fingerprint is the cell of a table.
type fingerprint interface{ uint8 | uint16 | uint32 }

// table is a binary fuse filter laid out for asking: the same content as xorfilter's, in memory of its
// own. It asks what xorfilter's Contains asks, in two steps, so that a batch can share the first between
// filters of one seed (TestSameAnswerAsLibrary holds the two together).
type table[T fingerprint] struct {
	geometry
	cells []T
}

// geometry is where a key's three cells lie. kernel.h has the same struct.
type geometry struct {
	seed uint64 // that hashes are mixed with
	span uint32 // the first of the three segments starts somewhere in [0, span)
	seg  uint32 // segment length, a power of two
	mask uint32 // seg - 1
}

// mix is the hash that a filter of this seed works with (murmur3's finalizer, as xorfilter has it).
func mix(hash, seed uint64) uint64 {
	h := hash + seed
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// residue is 0 for every mixed hash that the table was built with, and for one in 2^8, 2^16 or 2^32
// others, by the bits of a cell. One of the three places lies in each of three neighbouring segments.
func (t *table[T]) residue(m uint64) T {
	a, b, c := t.places(m)
	return T(m^m>>32) ^ t.cells[a] ^ t.cells[b] ^ t.cells[c]
}

// take copies what the library built. The copy is what makes a Filter own its memory: the library's result
// lives in its builder and is overwritten by the next build.
func (t *table[T]) take(f *xorfilter.BinaryFuse[T]) {
	*t = table[T]{
		geometry: geometry{f.Seed, f.SegmentCountLength, f.SegmentLength, f.SegmentLengthMask},
		cells:    append(make([]T, 0, len(f.Fingerprints)), f.Fingerprints...),
	}
}

// Filter is a set of hashes that answers *no* or *maybe*, never a wrong *no*. It is immutable, owns its
// memory, and may be used from any goroutine. Filters come from a Builder.
type Filter struct {
	kind Kind
	keys int
	took time.Duration
	t8   table[uint8]  // kind Fuse8
	t16  table[uint16] // kind Fuse16
	t32  table[uint32] // kind Fuse32
}

// Contains says whether the hash may be in the set. A filter of a kind that is not in RAM says true, unless it
// was built with no hashes at all; then every kind says false.
func (f *Filter) Contains(hash uint64) bool {
	switch {
	case f.keys == 0:
		return false
	case f.kind == Fuse8:
		return f.t8.residue(mix(hash, f.t8.seed)) == 0
	case f.kind == Fuse16:
		return f.t16.residue(mix(hash, f.t16.seed)) == 0
	case f.kind == Fuse32:
		return f.t32.residue(mix(hash, f.t32.seed)) == 0
	}
	return true
}

// Kind is the kind the filter was built as.
func (f *Filter) Kind() Kind { return f.kind }

// Keys is the number of hashes the filter was built with.
func (f *Filter) Keys() int { return f.keys }

// Bytes is the memory of the fingerprints.
func (f *Filter) Bytes() int { return len(f.t8.cells) + 2*len(f.t16.cells) + 4*len(f.t32.cells) }

// BitsPerKey is the memory of the fingerprints in bits for each hash, 0 when there are no hashes.
func (f *Filter) BitsPerKey() float64 {
	if f.keys == 0 {
		return 0
	}
	return 8 * float64(f.Bytes()) / float64(f.keys)
}

// BuildTime is the wall time that building took, the check of every hash included.
func (f *Filter) BuildTime() time.Duration { return f.took }
