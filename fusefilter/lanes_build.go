package fusefilter

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"
)

// Part is one bucket of a Lanes to be built: the distinct hashes of all its keys, in any order, and the slot. Hashes are
// only read.
type Part struct {
	Slot   int
	Hashes []uint64
}

// ErrNoFit is in the chain of the error when a bucket does not fit beside the lanes that stand: it has more keys than
// they were made for, or its keys cannot be settled with their seed. Building all of them anew helps. It is an ErrBuild.
var ErrNoFit = fmt.Errorf("%w: a bucket does not fit into the lanes", ErrBuild)

// slack: lanes take one key in so many more than their largest bucket has. Buckets of one stream differ a little.
const slack = 256

// laneSeeds is how many seeds are tried when all lanes are built anew. Each suits a bucket with a probability of 0.965 to
// 0.997 (headroom has more), so it suits 16 buckets of the usual size in seven of eight cases, but 64 small ones perhaps in
// one of ten, where a try costs next to nothing.
func laneSeeds(keys int) uint64 { return 32 + 1<<21/uint64(keys+1) }

// AddLanes makes new Lanes out of those of a Set that still cover a slot (base and its slots of keep) and more
// buckets. base itself is only read.
func (b *Builder) AddLanes(base *Lanes, keep uint64, parts []Part, cover Cover) (*Lanes, time.Duration, error) {
	start := time.Now()
	if err := b.before(base.kind, parts); err != nil {
		return nil, 0, err
	}
	l := *base
	l.cover, l.keys = cover, [MaxSlots]int{}
	for m := keep; m != 0; m &= m - 1 {
		slot := bits.TrailingZeros64(m)
		l.keys[slot] = base.keys[slot]
	}
	if keep&^base.cover.mask != 0 {
		return nil, 0, fmt.Errorf("%w: lanes %b are to be kept, there are %b", ErrBuild, keep, base.cover.mask)
	}
	if err := l.check(keep, parts); err != nil {
		return nil, 0, err
	}
	l.split &= keep
	if err := l.assign(keep, parts); err != nil {
		return nil, 0, err
	}
	l.rows = append(make([]uint64, 0, len(base.rows)), base.rows...)
	if err := b.fill(&l, parts); err != nil {
		return nil, 0, err
	}
	return &l, time.Since(start), nil
}

// NewLanes makes Lanes for sets of so many slots out of nothing, with room for buckets of the size of the largest part.
func (b *Builder) NewLanes(kind Kind, slots int, parts []Part, cover Cover) (*Lanes, time.Duration, error) {
	start := time.Now()
	if !kind.InRAM() || len(parts) == 0 {
		return nil, 0, fmt.Errorf("%w: lanes of %s for %d buckets", ErrBuild, kind, len(parts))
	}
	if err := b.before(kind, parts); err != nil {
		return nil, 0, err
	}
	l := Lanes{kind: kind, words: rowWords(kind, slots), cover: cover}
	if err := l.check(0, parts); err != nil {
		return nil, 0, err
	}
	l.capacity = capacityFor(parts, l.lanes())
	if err := l.assign(0, parts); err != nil {
		return nil, 0, err
	}
	l.geometry = geometryFor(l.capacity)
	l.rows = make([]uint64, l.size()*l.words)
	var err error
	for try := range laneSeeds(l.capacity * len(parts)) {
		l.seed = mix(try, 0x9e3779b97f4a7c15)
		if err = b.fill(&l, parts); err == nil {
			return &l, time.Since(start), nil
		}
		if !errors.Is(err, ErrNoFit) {
			break
		}
	}
	return nil, 0, err
}

// lanes is how many a row has.
func (l *Lanes) lanes() int { return 64 * l.words / l.kind.cellBits() }

// capacityFor is room for the largest bucket, or for the second largest where a lane is free and halves of the largest
// are no larger than that.
func capacityFor(parts []Part, lanes int) int {
	first, second := 0, 0
	for _, p := range parts {
		n := len(p.Hashes)
		first, second = max(first, n), max(second, min(first, n))
	}
	room := second + second/slack
	if len(parts) < lanes && len(parts) > 1 && first > room && halves(first) <= room {
		return room
	}
	return first + first/slack
}

// halves is how many keys the larger half of a bucket has but in one of a million cases: the mean and five deviations.
func halves(n int) int { return n/2 + int(2.5*math.Sqrt(float64(n))) }

// assign gives each part that is too large a second lane.
func (l *Lanes) assign(keep uint64, parts []Part) error {
	used := l.lanesOf(keep)
	for _, p := range parts {
		if used>>p.Slot&1 != 0 {
			return fmt.Errorf("%w: the lane of slot %d is the second of another", ErrNoFit, p.Slot)
		}
	}
	for _, p := range parts {
		used |= 1 << p.Slot
	}
	for _, p := range parts {
		if len(p.Hashes) <= l.capacity {
			continue
		}
		free := bits.TrailingZeros64(^used)
		if free >= l.lanes() || halves(len(p.Hashes)) > l.capacity {
			return fmt.Errorf("%w: %d keys in lanes for %d", ErrNoFit, len(p.Hashes), l.capacity)
		}
		used |= 1 << free
		l.split |= 1 << p.Slot
		l.second[p.Slot] = uint8(free)
	}
	return nil
}

// check refuses what would make wrong lanes: a slot that has no lane in a row or gets two, and one that is covered while
// nobody fills its lane, which would then deny every key.
func (l *Lanes) check(keep uint64, parts []Part) error {
	filled := keep
	for _, p := range parts {
		if p.Slot < 0 || p.Slot >= l.lanes() || filled>>p.Slot&1 != 0 {
			return fmt.Errorf("%w: slot %d is given twice or has no lane", ErrBuild, p.Slot)
		}
		filled |= 1 << p.Slot
	}
	if bare := l.cover.mask &^ filled; bare != 0 {
		return fmt.Errorf("%w: lanes without keys for the slots %b that they are to cover", ErrBuild, bare)
	}
	return nil
}

// before is the tests' hook.
func (b *Builder) before(kind Kind, parts []Part) error {
	if b.Before == nil {
		return nil
	}
	keys := 0
	for _, p := range parts {
		keys += len(p.Hashes)
	}
	if err := b.Before(kind, keys); err != nil {
		return fmt.Errorf("%w: lanes of %d hashes: %w", ErrBuild, keys, err)
	}
	return nil
}

// fill writes the lanes of the parts.
func (b *Builder) fill(l *Lanes, parts []Part) error {
	for _, p := range parts {
		l.keys[p.Slot] = len(p.Hashes)
		if l.split>>p.Slot&1 == 0 {
			if err := b.fillOne(l, p); err != nil {
				return err
			}
			continue
		}
		for which, lane := range []int{p.Slot, int(l.second[p.Slot])} {
			b.half = b.half[:0]
			for _, h := range p.Hashes {
				if h&1 == uint64(which) {
					b.half = append(b.half, h)
				}
			}
			if len(b.half) > l.capacity {
				return fmt.Errorf("%w: half a bucket of %d keys in lanes for %d", ErrNoFit, len(b.half), l.capacity)
			}
			if err := b.fillOne(l, Part{lane, b.half}); err != nil {
				return err
			}
		}
	}
	return nil
}

// fillOne writes one lane.
func (b *Builder) fillOne(l *Lanes, p Part) error {
	switch l.kind {
	case Fuse8:
		return fillLane(l, p, &b.peel, &b.cells8)
	case Fuse16:
		return fillLane(l, p, &b.peel, &b.cells16)
	default:
		return fillLane(l, p, &b.peel, &b.cells32)
	}
}

// fillLane settles the keys of one bucket and writes its cells. Every key is asked for before the lane counts as built.
func fillLane[T fingerprint](l *Lanes, p Part, work *peeling, cells *[]T) error {
	if !work.order(&l.geometry, p.Hashes) {
		if work.twice() {
			return fmt.Errorf("%w: slot %d was given a hash twice", ErrBuild, p.Slot)
		}
		return fmt.Errorf("%w: %d keys with seed %x", ErrNoFit, len(p.Hashes), l.seed)
	}
	n := l.size()
	if cap(*cells) < n {
		*cells = make([]T, n)
	}
	t := table[T]{l.geometry, (*cells)[:n]}
	clear(t.cells)
	work.assign(func(m uint64, a, b, c uint32) {
		t.cells[a] = T(m^m>>32) ^ t.cells[b] ^ t.cells[c]
	})
	var wrong T
	for _, h := range p.Hashes {
		wrong |= t.residue(mix(h, l.seed))
	}
	if wrong != 0 {
		return fmt.Errorf("%w: a lane denies a hash that it was built with", ErrBuild)
	}
	setLane(l, p.Slot, t.cells)
	return nil
}
