package fusefilter

import (
	"fmt"
	"math/bits"
)

// MaxSlots is the largest number of slots of a Set: the bits of a mask.
const MaxSlots = 64

// Set holds the filters of a task's ring of buckets, one slot for each, and answers Probe. A slot is in
// one of three states:
//
//	maybe    open, sealing, loading, or its filter failed: the mask bit stays
//	empty    the bucket holds nothing, or there is none: the bit is cleared
//	filter   sealed, and the filter of all its keys decides
//
// One goroutine owns a Set and makes every call to it.
type Set struct {
	kind  Kind
	slots int

	empty    uint64            // slots that are *no*
	filtered uint64            // slots with a filter, alone or in a lane; what is in neither is *maybe*
	laned    uint64            // of these, the ones whose filter is a lane of lanes
	lanes    *Lanes            // nil without
	filters  [MaxSlots]*Filter // of the others
	epoch    [MaxSlots]uint64  // raised whenever a slot's bucket may be another one, or have other keys

	hashes, hits uint64 // see Stats
}

// NewSet makes a set of 1 to MaxSlots slots for filters of one kind. Every slot is *maybe* until it is
// told otherwise: after a restart the buckets are there before their filters are.
func NewSet(kind Kind, slots int) *Set {
	if slots < 1 || slots > MaxSlots {
		panic(fmt.Sprintf("fusefilter: a set of %d slots (1 to %d)", slots, MaxSlots))
	}
	if int(kind) >= len(kindNames) {
		panic(fmt.Sprintf("fusefilter: a set of %s", kind))
	}
	return &Set{kind: kind, slots: slots}
}

// Kind is the kind of the filters.
func (s *Set) Kind() Kind { return s.kind }

// Slots is the number of slots.
func (s *Set) Slots() int { return s.slots }

// SetMaybe says that the slot's bucket holds what the set does not know: it is open, being sealed or
// loaded, or its filter could not be built.
func (s *Set) SetMaybe(slot int) { s.reset(slot) }

// SetEmpty says that the slot's bucket holds nothing. Before the first key goes in, the slot must be
// SetMaybe.
func (s *Set) SetEmpty(slot int) {
	s.reset(slot)
	s.empty |= 1 << slot
}

// Clear says that the slot's bucket was dropped and there is none: the slot answers *no*, and no lanes that are being
// built cover it.
func (s *Set) Clear(slot int) { s.SetEmpty(slot) }

// Install gives the slot the filter of its sealed bucket: of all its keys. The filter is shared, not
// copied. A nil filter, or one of a kind that is not in RAM, is *maybe*; one without keys is *no*. It stands alone until
// lanes are installed that cover it.
func (s *Set) Install(slot int, f *Filter) {
	s.reset(slot)
	s.place(slot, f)
}

// Replace gives the slot a new filter of the same bucket, rebuilt over those of its keys that still wait. Lanes that are
// being built with all of its keys may still take its place. The slot must have a filter already.
func (s *Set) Replace(slot int, f *Filter) {
	if s.State(slot) != Filtered {
		panic(fmt.Sprintf("fusefilter: replace in slot %d, which has no filter", slot))
	}
	s.release(slot)
	s.place(slot, f)
}

// place puts a filter into a slot that was reset.
func (s *Set) place(slot int, f *Filter) {
	switch {
	case f == nil:
		return
	case f.keys == 0:
		s.empty |= 1 << slot
		return
	case !f.kind.InRAM():
		return
	case f.kind != s.kind:
		panic(fmt.Sprintf("fusefilter: a filter of %s in a set of %s", f.kind, s.kind))
	}
	s.filters[slot] = f
	s.filtered |= 1 << slot
}

// reset makes a slot *maybe*, for what may be another bucket.
func (s *Set) reset(slot int) {
	s.check(slot)
	s.release(slot)
	s.epoch[slot]++
}

// release makes a slot *maybe* and lets go of its filter.
func (s *Set) release(slot int) {
	bit := uint64(1) << slot
	s.empty &^= bit
	s.filtered &^= bit
	s.filters[slot] = nil
	s.laned &^= bit
	if s.laned == 0 {
		s.lanes = nil
	}
}

// Cover takes down those slots of the mask that lanes could have now: the ones with a filter, whose buckets are sealed and
// will get no more keys.
func (s *Set) Cover(mask uint64) Cover {
	return Cover{set: s, mask: mask & s.filtered, epoch: s.epoch}
}

// InstallLanes puts lanes in place of those before, and of the filters of the slots that they cover. It returns these
// slots: those of the cover whose bucket is still the same. 0 means that the lanes were not installed: none is left, or the
// cover was taken from another set.
func (s *Set) InstallLanes(l *Lanes) uint64 {
	if l.cover.set != s {
		return 0
	}
	if l.kind != s.kind {
		panic(fmt.Sprintf("fusefilter: lanes of %s in a set of %s", l.kind, s.kind))
	}
	covered := l.cover.mask & s.filtered
	for m := covered; m != 0; m &= m - 1 {
		slot := bits.TrailingZeros64(m)
		if l.cover.epoch[slot] != s.epoch[slot] {
			covered &^= 1 << slot
		}
	}
	if covered == 0 {
		return 0
	}
	s.filtered &^= s.laned &^ covered // *maybe* again: their lanes are gone
	s.lanes, s.laned = l, covered
	for m := covered; m != 0; m &= m - 1 {
		s.filters[bits.TrailingZeros64(m)] = nil
	}
	return covered
}

// Lanes are the lanes installed and the slots that they answer for, nil and 0 without.
func (s *Set) Lanes() (*Lanes, uint64) { return s.lanes, s.laned }

func (s *Set) check(slot int) {
	if uint(slot) >= uint(s.slots) {
		panic(fmt.Sprintf("fusefilter: slot %d of a set of %d", slot, s.slots))
	}
}

// State is what a slot answers by.
type State uint8

// The states of a slot.
const (
	Maybe    State = iota // the mask bit stays
	Empty                 // the bit is cleared
	Filtered              // the filter decides
)

// State is the state of the slot.
func (s *Set) State(slot int) State {
	s.check(slot)
	bit := uint64(1) << slot
	switch {
	case s.filtered&bit != 0:
		return Filtered
	case s.empty&bit != 0:
		return Empty
	}
	return Maybe
}

// Filter is the filter of a slot where it stands alone, else nil.
func (s *Set) Filter(slot int) *Filter {
	s.check(slot)
	return s.filters[slot]
}

// Keys is how many keys the filter of a slot has, 0 where there is none.
func (s *Set) Keys(slot int) int {
	s.check(slot)
	switch {
	case s.filters[slot] != nil:
		return s.filters[slot].keys
	case s.laned>>slot&1 != 0:
		return s.lanes.keys[slot]
	}
	return 0
}

// Filtered is the mask of the slots with a filter.
func (s *Set) Filtered() uint64 { return s.filtered }

// Bytes is the memory of all fingerprints.
func (s *Set) Bytes() int {
	n := 0
	for m := s.filtered &^ s.laned; m != 0; m &= m - 1 {
		n += s.filters[bits.TrailingZeros64(m)].Bytes()
	}
	if s.lanes != nil {
		n += s.lanes.Bytes()
	}
	return n
}

// Predict is the probability that a probe of this mask finds a filter that says *maybe*, for a hash that
// is in no sealed bucket (the function Predict, of the filters that the mask asks now). Slots without a
// filter count for nothing, they are no false positives.
//
// A set of a kind that is not in RAM has no filters to count. There every slot of the mask that is not empty
// counts as one bucket, so the mask must have sealed buckets only: with None each is looked up for certain,
// with Bloom the store's own filter turns most of the lookups away.
func (s *Set) Predict(mask uint64) float64 {
	if !s.kind.InRAM() {
		return Predict(s.kind, bits.OnesCount64(mask&(1<<s.slots-1)&^s.empty))
	}
	return Predict(s.kind, bits.OnesCount64(mask&s.filtered))
}
