package fusefilter

import (
	"math"
	"math/bits"
)

// Lanes are the filters of many sealed buckets side by side: all have the same seed and the same geometry, so that one
// hash has the same three places in each of them. What is stored at a place is a row, which holds the fingerprint of
// every bucket there: 16 buckets of 16 bits are 32 bytes, half a cache line. A probe reads three rows, where 16 filters
// one after another read 48 lines, and the answer is the mask of all buckets.
//
// Each bucket keeps a false-positive rate of its own, that of its kind. A bucket with fewer keys than the geometry was
// made for wastes the difference. One with more, up to twice as many, takes a second lane if one is free: of a slot whose
// bucket is open, for example. The lowest bit of a hash says in which of the two it is.
//
// Lanes are immutable and own their memory; they may be used from any goroutine. They come from a LaneBuilder.
type Lanes struct {
	geometry
	kind     Kind
	words    int      // 64-bit words of a row, a power of two: no row lies on two lines that could lie on one
	rows     []uint64 // words for each place
	capacity int      // keys that a bucket may have
	keys     [MaxSlots]int
	second   [MaxSlots]uint8 // of the slots of split, their other lane
	split    uint64          // slots with two lanes
	cover    Cover
}

// lanesOf is the lanes that hold what the slots of a mask hold.
func (l *Lanes) lanesOf(slots uint64) uint64 {
	lanes := slots
	for m := slots & l.split; m != 0; m &= m - 1 {
		lanes |= 1 << l.second[bits.TrailingZeros64(m)]
	}
	return lanes
}

// merge turns the lanes in which a hash may be into the slots of a mask that may hold it.
func (l *Lanes) merge(hash, lanes, slots uint64) uint64 {
	for m := slots & l.split; m != 0; m &= m - 1 {
		if slot := bits.TrailingZeros64(m); hash&1 != 0 {
			lanes = lanes&^(1<<slot) | lanes>>l.second[slot]&1<<slot
		}
	}
	return lanes & slots
}

// Split is the slots of those covered that have two lanes. Whoever adds a bucket builds them anew: its lane may be the
// second of another.
func (l *Lanes) Split() uint64 { return l.split }

// Cover names buckets as they are at this moment. It is a value: the task takes it from its Set and hands it to the
// goroutine that builds. When the lanes are installed later, a slot whose bucket has changed in between is left out: its
// keys are not in its lane, and a *no* would be wrong.
type Cover struct {
	set   *Set // only compared, never read
	mask  uint64
	epoch [MaxSlots]uint64
}

// Mask has the bits of the slots that are covered.
func (c *Cover) Mask() uint64 { return c.mask }

// Without is the cover of one slot less.
func (c Cover) Without(slot int) Cover {
	c.mask &^= 1 << slot
	return c
}

// Capacity is how many keys a bucket may have to fit in.
func (l *Lanes) Capacity() int { return l.capacity }

// MostKeys is how many keys the largest bucket has of the slots of a mask.
func (l *Lanes) MostKeys(mask uint64) (most int) {
	for slot, n := range l.keys {
		if mask>>slot&1 != 0 {
			most = max(most, n)
		}
	}
	return most
}

// Bytes is the memory of the rows.
func (l *Lanes) Bytes() int { return 8 * len(l.rows) }

// size is the number of cells, or of rows of lanes.
func (g *geometry) size() int { return int(g.span) + 2*int(g.seg) }

// headroom is how many segments lanes have more than a filter of its own would, which is built with whatever seed suits it
// and tries up to a hundred: one seed has to suit all lanes. xorfilter's size alone depends on what rounding up to whole
// segments adds. Where that is least, 99 % of the builds fail of 11,521 keys (14 segments), 94 % of 37,453, 38 % of 126,130,
// 20 % of 452,629. With one segment more no build failed for want of room, of some thousand at such sizes
// (TestLaneGeometry); a second changes nothing.
//
// What remains, and no headroom helps against, are two keys of a bucket with the same three places: keys²/(2·span·seg²) of
// them are to be expected, so that 0.3 to 3.5 % of all builds fail, by size: 1.8 % of 3,000 keys, 0.8 % of 312,500. Other
// seeds help (laneSeeds). Segments of twice the length would make it a quarter of that and need more room: all 400 builds of
// 101,562 keys failed then with 1.17 cells a key, where 2 % did with the segments as they are.
const headroom = 1

// geometryFor is the geometry for so many keys: that of xorfilter's binary fuse filters with three places (Graf and Lemire,
// "Binary Fuse Filters: Fast and Smaller Than Xor Filters", 2022), a little roomier.
func geometryFor(keys int) geometry { return geometryWith(keys, headroom) }

func geometryWith(keys int, headroom uint32) geometry {
	n := float64(max(keys, 16))
	seg := uint32(1) << min(int(math.Log(n)/math.Log(3.33)+2.25), 18)
	factor := max(1.125, 0.875+0.25*math.Log(1e6)/math.Log(n))
	segments := max(uint32(math.Ceil(n*factor/float64(seg))), 3) + headroom
	return geometry{span: (segments - 2) * seg, seg: seg, mask: seg - 1}
}

// rowWords is the size of a row of so many slots.
func rowWords(kind Kind, slots int) int {
	words := (slots*kind.cellBits() + 63) / 64
	return 1 << bits.Len(uint(words-1))
}

// setLane writes the cells of one bucket.
func setLane[T fingerprint](l *Lanes, slot int, cells []T) {
	width := l.kind.cellBits()
	word, shift := slot*width/64, slot*width%64
	lane := (uint64(1)<<width - 1) << shift
	for i, c := range cells {
		w := &l.rows[i*l.words+word]
		*w = *w&^lane | uint64(c)<<shift
	}
}
