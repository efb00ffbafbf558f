package fusefilter

import (
	"fmt"
	"math/bits"
	"slices"
)

// NoRow is the row number that stands for "no row".
const NoRow = ^uint32(0)

// groupSize is the number of entries that one 64-bit word of tags describes.
const groupSize = 8

// maxLoad entries of a group are used on average when the table doubles. At four, one group in twenty is
// full and a search goes beyond it; after doubling it is one in a thousand.
const maxLoad = groupSize / 2

// maxWalk is how many groups beyond its own a new entry may lie. Of well spread hashes, a million of them,
// none lies further than three or four. Hashes that do are a set that the multiplier draws together, such as
// multiples of a number that it nearly cancels: they make one long run of full groups, through which every
// insert walks, so that n of them take n² steps. The index then goes over to another multiplier, which does
// not draw the same hashes together.
const maxWalk = 16

// maxTries is how often it may do so before the table doubles again: the work stays proportional to that of
// doubling.
const maxTries = 4

// The first multiplier, and what leads from one to the next. Both are odd, so all of them are.
const (
	firstMultiplier = 0x9E3779B97F4A7C15
	nextMultiplier  = 0xD6E8FEB86659FD93
)

// OpenIndex is the exact index of an open bucket: from a hash to its rows, the newest first. Rows are
// numbered 0, 1, 2 … in the order of insertion.
//
// The entries of the table (one for each distinct hash) lie in groups of eight. Eight one-byte tags, a
// word, say what is in a group: 0 is free, anything else comes from the hash. A search compares all
// eight at once and then, nearly always, knows: no tag equal means absent unless the group is full. So
// an absent hash costs one load from a small array (1 byte an entry, where hashes would be 8) and no
// branch that is hard to guess. Entries fill a group from the front; one that finds its group full goes
// to the next.
//
// One goroutine owns an OpenIndex and makes every call to it.
type OpenIndex struct {
	tags    []uint64 // a word for each group; the number of groups is a power of two
	entries []entry  // groupSize for each group
	shift   uint     // 64 - log2(groups)
	mult    uint64   // the multiplier, odd
	tries   int      // multipliers given up since the table doubled
	used    int      // entries in use: distinct hashes
	next    []uint32 // for each row the next older one of its hash, NoRow at the end
}

// entry is a hash and its newest row in twelve bytes side by side: a hit costs one cache miss for both
// (measured against an array of each: hits 15 to 35 % faster, absent hashes the same).
type entry struct{ low, high, head uint32 }

func newEntry(hash uint64, head uint32) entry { return entry{uint32(hash), uint32(hash >> 32), head} }

func (e *entry) hash() uint64 { return uint64(e.high)<<32 | uint64(e.low) }

// NewOpenIndex makes an index that takes capHint rows before it grows. 0 is allowed.
func NewOpenIndex(capHint int) *OpenIndex {
	x := &OpenIndex{mult: firstMultiplier}
	x.Reset(capHint)
	return x
}

// Reset empties the index for another bucket of about capHint rows. The memory is kept, unless it is more
// than four times what capHint needs, and so is the multiplier: the next bucket has hashes of the same kind.
func (x *OpenIndex) Reset(capHint int) {
	capHint = max(capHint, 0)
	groups := groupsFor(capHint)
	if have := len(x.tags); groups <= have && have <= 4*groups {
		clear(x.tags)
	} else {
		x.alloc(groups)
	}
	x.used, x.tries = 0, 0
	if have := cap(x.next); capHint <= have && have <= 4*max(capHint, 1024) {
		x.next = x.next[:0]
	} else {
		x.next = make([]uint32, 0, capHint)
	}
}

// groupsFor is the smallest power of two of groups that holds n entries.
func groupsFor(n int) int {
	groups := 2 // at least two, so that shift is below 64
	for groups*maxLoad < n {
		groups *= 2
	}
	return groups
}

func (x *OpenIndex) alloc(groups int) {
	x.tags = make([]uint64, groups)
	x.entries = make([]entry, groups*groupSize)
	x.shift = uint(64 - bits.TrailingZeros(uint(groups)))
}

// Len is the number of rows, Keys that of distinct hashes.
func (x *OpenIndex) Len() int { return len(x.next) }

// Keys is the number of distinct hashes.
func (x *OpenIndex) Keys() int { return x.used }

// Bytes is the memory of the index.
func (x *OpenIndex) Bytes() int {
	return 8*cap(x.tags) + 12*cap(x.entries) + 4*cap(x.next)
}

// place is where a hash belongs: its group and its tag (2 to 255) repeated eight times.
func (x *OpenIndex) place(hash uint64) (group uint64, tags uint64) {
	return place(hash, x.mult, x.shift)
}

// The product spreads weak hashes, small integers for example, over groups and tags.
func place(hash, mult uint64, shift uint) (group uint64, tags uint64) {
	p := hash * mult
	tag := max(p>>24&0xff, 2) // 0 means free, 1 is left out (see equalTags)
	return p >> (shift & 63), tag * 0x0101010101010101
}

// equalTags has the top bit of every byte set in which the two words are equal. Above an equal byte a
// borrow may set the bit of a byte that differs by 1. That is never a free entry, whose old hash could
// be the one that is looked for, because no tag is 1; of entries in use the caller compares the hash.
func equalTags(word, tags uint64) uint64 {
	d := word ^ tags
	return (d - 0x0101010101010101) &^ d & 0x8080808080808080
}

// full says whether a group has no free entry: they fill from the front, so the last tag tells.
func full(word uint64) bool { return word>>56 != 0 }

// count is the number of entries of a group.
func count(word uint64) int { return (bits.Len64(word) + 7) / 8 }

// find is the entry of the hash, or -1 and the group in which it would be put.
func (x *OpenIndex) find(hash uint64) (entry int, group uint64) {
	group, tags := x.place(hash)
	for {
		word := x.tags[group]
		for eq := equalTags(word, tags); eq != 0; eq &= eq - 1 {
			e := int(group)*groupSize + bits.TrailingZeros64(eq)/8
			if x.entries[e].hash() == hash {
				return e, group
			}
		}
		if !full(word) {
			return -1, group
		}
		group = (group + 1) & uint64(len(x.tags)-1)
	}
}

// Insert adds a row with this hash in front of the earlier rows of the hash. row is the number of the
// next row, Len(); it is below NoRow. It allocates only when the table or the list of rows grows, or
// when the hashes call for another multiplier.
func (x *OpenIndex) Insert(hash uint64, row uint32) {
	if int64(row) != int64(len(x.next)) || row == NoRow {
		panic(fmt.Sprintf("fusefilter: row %d inserted into an index of %d rows", row, len(x.next)))
	}
	e, group := x.find(hash)
	if e >= 0 {
		x.next = append(x.next, x.entries[e].head)
		x.entries[e].head = row
		return
	}
	if x.used == len(x.tags)*maxLoad {
		x.tries = 0
		x.rebuild(2 * len(x.tags))
		_, group = x.find(hash)
	}
	x.next = append(x.next, NoRow)
	if !x.add(group, hash, row) {
		x.nextTry()
		x.rebuild(len(x.tags))
	}
}

// add puts a new entry into a group that has room. It says no if that is so far from the entry's own group
// that another multiplier is to be tried; the entry is in all the same.
func (x *OpenIndex) add(group, hash uint64, row uint32) bool {
	home, tags := x.place(hash)
	n := count(x.tags[group])
	x.tags[group] |= tags & (0xff << (8 * n))
	e := int(group)*groupSize + n
	x.entries[e] = newEntry(hash, row)
	x.used++
	return (group-home)&uint64(len(x.tags)-1) <= maxWalk || x.tries == maxTries
}

func (x *OpenIndex) nextTry() {
	x.tries++
	x.mult *= nextMultiplier
}

// rebuild makes a new table of so many groups. The task's goroutine pays for it at once: give capHint.
func (x *OpenIndex) rebuild(groups int) {
	tags, entries := x.tags, x.entries
	x.alloc(groups)
	for !x.fill(tags, entries) {
		x.nextTry()
		clear(x.tags)
	}
}

// fill puts the entries of another table into this empty one. It says no and stops if the multiplier is not
// good for them.
func (x *OpenIndex) fill(tags []uint64, entries []entry) bool {
	x.used = 0
	for g, word := range tags {
		for e := g * groupSize; e < g*groupSize+count(word); e++ {
			hash := entries[e].hash()
			_, group := x.find(hash)
			if !x.add(group, hash, entries[e].head) {
				return false
			}
		}
	}
	return true
}

// Find is the newest row with this hash.
func (x *OpenIndex) Find(hash uint64) (row uint32, ok bool) {
	e, _ := x.find(hash)
	if e < 0 {
		return NoRow, false
	}
	return x.entries[e].head, true
}

// Next is the next older row with the same hash as row.
func (x *OpenIndex) Next(row uint32) (older uint32, ok bool) {
	older = x.next[row]
	return older, older != NoRow
}

// Found says that hash Pos of a batch is there, and its newest row. kernel.h has the same struct.
type Found struct{ Pos, Head uint32 }

// FindBatch appends to out which of the hashes are there, in their order. It allocates nothing but room in out.
func (x *OpenIndex) FindBatch(hashes []uint64, out []Found) []Found {
	if len(hashes) == 0 || x.used == 0 {
		return out
	}
	out = slices.Grow(out, len(hashes)+1)
	n := findOpen(x, hashes, out[len(out):cap(out)])
	return out[:len(out)+n]
}

// Undo takes the rows from fromRow on out again, as if they had never been inserted. hashes[i] is the hash
// of row i; only those from fromRow on are read. The table does not shrink.
func (x *OpenIndex) Undo(fromRow uint32, hashes []uint64) {
	for len(x.next) > int(fromRow) {
		row := uint32(len(x.next) - 1)
		e, group := x.find(hashes[row])
		if e < 0 || x.entries[e].head != row {
			panic(fmt.Sprintf("fusefilter: undo of row %d with a hash that is not its own", row))
		}
		older := x.next[row]
		x.next = x.next[:row]
		if older != NoRow {
			x.entries[e].head = older
		} else {
			x.remove(group, e)
		}
	}
}

// remove frees the entry e of a group. The group's last entry takes its place. If the group was full,
// entries may have gone past it; one of them comes back, so that a search still stops at the first group
// that is not full, and then that one's own group has a free entry in turn.
func (x *OpenIndex) remove(group uint64, e int) {
	x.used--
	for {
		last := int(group)*groupSize + count(x.tags[group]) - 1
		x.copyEntry(e, last)
		x.tags[group] &^= 0xff << (8 * (last % groupSize))
		if last%groupSize != groupSize-1 {
			return // was not full: nobody went past
		}
		from, at := x.passedBy(group)
		if from < 0 {
			return
		}
		x.copyEntry(last, from)
		group, e = at, from
	}
}

// copyEntry writes an entry over another one, or over a free one.
func (x *OpenIndex) copyEntry(to, from int) {
	tag := x.tags[from/groupSize] >> (8 * (from % groupSize)) & 0xff
	word, at := &x.tags[to/groupSize], 8*(to%groupSize)
	*word = *word&^(0xff<<at) | tag<<at
	x.entries[to] = x.entries[from]
}

// passedBy finds an entry behind the group that belongs to it or before it and went on because it was
// full. -1 when there is none. Such entries end at the first group that is not full.
func (x *OpenIndex) passedBy(group uint64) (entry int, at uint64) {
	mask := uint64(len(x.tags) - 1)
	for at = (group + 1) & mask; at != group; at = (at + 1) & mask {
		word := x.tags[at]
		for e := int(at) * groupSize; e < int(at)*groupSize+count(word); e++ {
			home, _ := x.place(x.entries[e].hash())
			if (at-home)&mask >= (at-group)&mask {
				return e, at
			}
		}
		if !full(word) {
			break
		}
	}
	return -1, 0
}
