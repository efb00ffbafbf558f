package core

import (
	"joinbench/buckets"
	"joinbench/fusefilter"
)

// openIndexes find the rows of a ring that are in RAM.
type openIndexes struct {
	// index of the rows in arenas, by slot, and of those that are being written as a run; nil where there are none.
	index [buckets.MaxSlots]*fusefilter.OpenIndex
	part  [buckets.MaxSlots]partIndex
	spare []*fusefilter.OpenIndex
	first int // for how many rows the next index is made, by what the last bucket had
}

// partIndex is the index of a part of a bucket: its row 0 is row base of the bucket.
type partIndex struct {
	*fusefilter.OpenIndex
	base uint32
}

// indexOf is the index of an open bucket's arena; it is made if there is none.
func (o *openIndexes) indexOf(b *buckets.Bucket) *fusefilter.OpenIndex {
	x := o.index[b.Slot]
	if x == nil {
		if n := len(o.spare); n > 0 {
			x, o.spare = o.spare[n-1], o.spare[:n-1]
		} else {
			x = fusefilter.NewOpenIndex(0)
		}
		x.Reset(max(o.first, len(b.Hashes())))
		o.index[b.Slot] = x
	}
	return x
}

// fillIndexes adds the rows of arenas that their indexes lack: all at a start, and those that were applied.
func (o *openIndexes) fillIndexes(ring *buckets.Ring) {
	for slot := range ring.Slots() {
		b := ring.AtSlot(slot)
		if b == nil || len(b.Hashes()) == 0 {
			continue
		}
		x := o.indexOf(b)
		for row := x.Len(); row < len(b.Hashes()); row++ {
			x.Insert(b.Hashes()[row], uint32(row))
		}
	}
}

// setApart has an index go with rows that are to be written.
func (o *openIndexes) setApart(b *buckets.Bucket, seal *buckets.SealJob) {
	o.part[b.Slot] = partIndex{o.index[b.Slot], seal.Base()}
	o.index[b.Slot] = nil
}

// freePart forgets the index of rows that were set apart; a run that is being written reads none.
func (o *openIndexes) freePart(slot int) {
	o.free(o.part[slot].OpenIndex)
	o.part[slot] = partIndex{}
}

// freeBoth forgets what a bucket has.
func (o *openIndexes) freeBoth(slot int) {
	o.free(o.index[slot])
	o.index[slot] = nil
	o.freePart(slot)
}

// free keeps an index that is no longer needed for the next bucket.
func (o *openIndexes) free(x *fusefilter.OpenIndex) {
	if x != nil && len(o.spare) == 0 {
		o.spare = append(o.spare, x)
	}
}

// undoRing takes a ring back to the last commit, and the indexes with it.
func (o *openIndexes) undoRing(ring *buckets.Ring) {
	for slot := range ring.Slots() {
		b, x := ring.AtSlot(slot), o.index[slot]
		if b != nil && x != nil && b.CommittedRows() < x.Len() {
			x.Undo(uint32(b.CommittedRows()), b.Hashes())
		}
	}
	ring.Undo()
	for slot := range ring.Slots() {
		if x := o.index[slot]; x != nil && x.Len() == 0 {
			o.free(x)
			o.index[slot] = nil
		}
	}
}

// bytes are what the indexes take.
func (o *openIndexes) bytes() (n int) {
	for slot := range o.index {
		if x := o.index[slot]; x != nil {
			n += x.Bytes()
		}
		if x := o.part[slot].OpenIndex; x != nil {
			n += x.Bytes()
		}
	}
	return n
}
