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

	empty    uint64 // slots that are *no*
	filtered uint64 // slots with a filter; what is in neither is *maybe*
	filters  [MaxSlots]*Filter
	epoch    [MaxSlots]uint64 // raised whenever a slot's bucket may be another one, or have other keys

	// What Probe reads: the tables of the filters side by side. Only the array of the set's kind is used.
	t8  [MaxSlots]table[uint8]
	t16 [MaxSlots]table[uint16]
	t32 [MaxSlots]table[uint32]

	summarise bool
	sum       *Filter // nil without a summary
	covered   uint64  // slots that a *no* of sum clears; always a part of filtered

	probes Stats
	work   scratch
}

// NewSet makes a set of 1 to MaxSlots slots for filters of one kind. Every slot is *maybe* until it is
// told otherwise: after a restart the buckets are there before their filters are. With summary false no
// summary is ever installed.
func NewSet(kind Kind, slots int, summary bool) *Set {
	if slots < 1 || slots > MaxSlots {
		panic(fmt.Sprintf("fusefilter: a set of %d slots (1 to %d)", slots, MaxSlots))
	}
	if int(kind) >= len(kindNames) {
		panic(fmt.Sprintf("fusefilter: a set of %s", kind))
	}
	return &Set{kind: kind, slots: slots, summarise: summary}
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

// Clear says that the slot's bucket was dropped and there is none: the slot answers *no*, the filter's
// memory is released, and no summary covers the slot from now on.
func (s *Set) Clear(slot int) { s.SetEmpty(slot) }

// Install gives the slot the filter of its sealed bucket: of all its keys. The filter is shared, not
// copied. A nil filter, or one of a kind that is not in RAM, is *maybe*; one without keys is *no*. The slot is not covered
// by the summary, which was built before this bucket was sealed.
func (s *Set) Install(slot int, f *Filter) {
	s.reset(slot)
	s.place(slot, f)
}

// Replace gives the slot a new filter of the same bucket, rebuilt over those of its keys that still wait.
// The summary goes on covering the slot: it was built with these keys and more. The slot must have a
// filter already.
func (s *Set) Replace(slot int, f *Filter) {
	if s.State(slot) != Filtered {
		panic(fmt.Sprintf("fusefilter: replace in slot %d, which has no filter", slot))
	}
	s.release(slot)
	s.place(slot, f)
	if s.State(slot) != Filtered {
		s.uncover(slot)
	}
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
	s.t8[slot], s.t16[slot], s.t32[slot] = f.t8, f.t16, f.t32
	s.filtered |= 1 << slot
}

// reset makes a slot *maybe*, for what may be another bucket.
func (s *Set) reset(slot int) {
	s.check(slot)
	s.release(slot)
	s.uncover(slot)
}

// release makes a slot *maybe* and lets go of its filter.
func (s *Set) release(slot int) {
	bit := uint64(1) << slot
	s.empty &^= bit
	s.filtered &^= bit
	s.filters[slot] = nil
	s.t8[slot], s.t16[slot], s.t32[slot] = table[uint8]{}, table[uint16]{}, table[uint32]{}
}

// uncover takes a slot out of the cover of the summary that is installed, and of any that is being built.
func (s *Set) uncover(slot int) {
	s.epoch[slot]++
	s.covered &^= 1 << slot
	if s.covered == 0 {
		s.sum = nil // it could clear nothing any more
	}
}

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

// Filter is the filter of the slot, nil where there is none.
func (s *Set) Filter(slot int) *Filter {
	s.check(slot)
	return s.filters[slot]
}

// Filtered is the mask of the slots with a filter.
func (s *Set) Filtered() uint64 { return s.filtered }

// Bytes is the memory of all fingerprints, the summary's included.
func (s *Set) Bytes() int {
	n := 0
	for m := s.filtered; m != 0; m &= m - 1 {
		n += s.filters[bits.TrailingZeros64(m)].Bytes()
	}
	if s.sum != nil {
		n += s.sum.Bytes()
	}
	return n
}

// Predict is the probability that a probe of this mask finds a filter that says *maybe*, for a hash that
// is in no sealed bucket: Predict or PredictSummary of the filters that the mask asks now. Slots without a
// filter count for nothing, they are no false positives.
//
// A set of a kind that is not in RAM has no filters to count. There every slot of the mask that is not empty
// counts as one bucket, so the mask must have sealed buckets only: with None each is looked up for certain,
// with Bloom the store's own filter turns most of the lookups away.
func (s *Set) Predict(mask uint64) float64 {
	if !s.kind.InRAM() {
		return Predict(s.kind, bits.OnesCount64(mask&(1<<s.slots-1)&^s.empty))
	}
	asked := mask & s.filtered
	covered := bits.OnesCount64(asked & s.covered)
	alone := bits.OnesCount64(asked) - covered
	if s.sum == nil {
		return Predict(s.kind, alone)
	}
	return PredictSummary(s.kind, alone, s.sum.kind, covered)
}
