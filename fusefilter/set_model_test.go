package fusefilter

import (
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// setModel drives a Set as a task does (open, insert, seal, drop, reuse; lanes that are built while the ring moves on, out
// of lanes that stand or anew) and knows from plain maps what each slot holds.
type setModel struct {
	t       *testing.T
	rng     *rand.Rand
	set     *Set
	builder Builder
	pool    []uint64 // few enough that buckets share keys
	slots   []modelSlot
	waiting []waitingLanes
	history []string

	// What the run was able to show.
	falsePositives, absentAsked int
	installed, partly, refused  int
	added, tooLarge, left       int
	failed                      int
}

type modelSlot struct {
	state State
	open  bool // takes inserts
	keys  map[uint64]bool
	known map[uint64]bool // keys that the filter was built with: those and some that are gone since
}

// waitingLanes are some that a helper is still building.
type waitingLanes struct {
	base  *Lanes
	keep  uint64 // of base
	cover Cover
	known [MaxSlots]map[uint64]bool // what the lanes will know
}

func (m *setModel) log(format string, args ...any) {
	m.history = append(m.history, fmt.Sprintf(format, args...))
}

// fatal fails with the operations that led here.
func (m *setModel) fatal(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("%s\nafter: %v", fmt.Sprintf(format, args...), m.history[max(0, len(m.history)-30):])
}

// keysOf is in order, so that a seed repeats the run whatever the order of the map.
func keysOf(set map[uint64]bool) []uint64 { return slices.Sorted(maps.Keys(set)) }

// step does one random operation on one random slot.
func (m *setModel) step() {
	slot := m.rng.IntN(len(m.slots))
	b := &m.slots[slot]
	switch op := m.rng.IntN(10); {
	case op <= 2 && !b.open: // a new bucket takes the slot
		m.log("open %d", slot)
		*b = modelSlot{state: Maybe, open: true, keys: map[uint64]bool{}}
		if m.rng.IntN(2) == 0 {
			m.set.Clear(slot)
		}
		m.set.SetMaybe(slot)
		m.insert(b)
	case op <= 2:
		m.insert(b)
	case op <= 5 && b.open:
		m.seal(slot)
	case op == 6:
		m.log("drop %d", slot)
		*b = modelSlot{state: Empty}
		if m.rng.IntN(2) == 0 {
			m.set.Clear(slot)
		} else {
			m.set.SetEmpty(slot)
		}
	case op == 7 && b.state == Filtered:
		m.rebuild(slot)
	case op == 8:
		m.startLanes()
	case op == 9:
		m.finishLanes()
	}
}

func (m *setModel) insert(b *modelSlot) {
	for range m.rng.IntN(150) {
		b.keys[m.pool[m.rng.IntN(len(m.pool))]] = true
	}
}

// seal builds the filter of an open bucket; one build in six fails.
func (m *setModel) seal(slot int) {
	b := &m.slots[slot]
	b.open = false
	fail := m.rng.IntN(6) == 0
	m.builder.Before = func(Kind, int) error {
		if fail {
			return errors.New("injected")
		}
		return nil
	}
	f, err := m.builder.Build(m.set.Kind(), keysOf(b.keys))
	m.builder.Before = nil
	m.log("seal %d of %d keys: %v", slot, len(b.keys), err)
	if err != nil {
		m.failed++
		m.set.SetMaybe(slot)
		return
	}
	m.set.Install(slot, f)
	b.state, b.known = Filtered, maps.Clone(b.keys)
	if len(b.keys) == 0 {
		b.state = Empty
	}
}

// rebuild drops some keys that were consumed and replaces the filter.
func (m *setModel) rebuild(slot int) {
	b := &m.slots[slot]
	for _, h := range keysOf(b.keys) {
		if m.rng.IntN(3) == 0 {
			delete(b.keys, h)
		}
	}
	m.log("rebuild %d of %d keys", slot, len(b.keys))
	m.set.Replace(slot, mustBuild(m.t, &m.builder, m.set.Kind(), keysOf(b.keys)))
	b.known = maps.Clone(b.keys)
	if len(b.keys) == 0 {
		b.state = Empty
	}
}

// startLanes takes down what lanes are to be built of, as a task does: some of the lanes that stand are to be kept.
func (m *setModel) startLanes() {
	w := waitingLanes{}
	base, laned := m.set.Lanes()
	if base != nil && m.rng.IntN(4) > 0 {
		w.base, w.keep = base, laned&(m.rng.Uint64()|m.rng.Uint64())
	}
	w.cover = m.set.Cover(w.keep | m.rng.Uint64())
	for c := w.cover.Mask(); c != 0; c &= c - 1 {
		slot := bits.TrailingZeros64(c)
		w.known[slot] = maps.Clone(m.slots[slot].keys)
		if w.keep>>slot&1 == 1 {
			w.known[slot] = m.slots[slot].known
		}
	}
	if w.cover.Mask() != 0 {
		m.log("cover %b, keep %b", w.cover.Mask(), w.keep)
		m.waiting = append(m.waiting, w)
	}
}

// build makes the lanes; if they do not fit beside the ones that stand, all of them anew.
func (m *setModel) build(w *waitingLanes) *Lanes {
	parts := func(mask uint64) (list []Part) {
		for ; mask != 0; mask &= mask - 1 {
			slot := bits.TrailingZeros64(mask)
			list = append(list, Part{slot, keysOf(w.known[slot])})
		}
		return list
	}
	if w.base != nil {
		l, _, err := m.builder.AddLanes(w.base, w.keep, parts(w.cover.Mask()&^w.keep), w.cover)
		switch {
		case err == nil:
			m.added++
			return l
		case !errors.Is(err, ErrNoFit):
			m.fatal("adding lanes: %v", err)
		}
		m.tooLarge++
	}
	l, _, err := m.builder.NewLanes(m.set.Kind(), m.set.Slots(), parts(w.cover.Mask()), w.cover)
	if err != nil {
		m.fatal("lanes: %v", err)
	}
	return l
}

// finishLanes builds and installs some of those waiting, not always the newest.
func (m *setModel) finishLanes() {
	if len(m.waiting) == 0 {
		return
	}
	i := m.rng.IntN(len(m.waiting))
	w := m.waiting[i]
	m.waiting = slices.Delete(m.waiting, i, i+1)
	l := m.build(&w)
	_, before := m.set.Lanes()
	got := m.set.InstallLanes(l)
	switch {
	case got == 0:
		m.refused++
	case got != w.cover.Mask():
		m.partly++
	default:
		m.installed++
	}
	_, laned := m.set.Lanes()
	m.log("lanes of %b cover %b, are %b", w.cover.Mask(), got, laned)
	if want := got; got != 0 && laned != want || got == 0 && laned != before {
		m.fatal("lanes of %b that cover %b, then %b", before, got, laned)
	}
	for slot := range m.slots {
		switch b := &m.slots[slot]; {
		case got>>slot&1 == 1:
			b.known = w.known[slot]
		case got != 0 && before>>slot&1 == 1: // its lane went
			b.state = Maybe
			m.left++
		}
	}
}

// check probes hashes that are somewhere and hashes that are nowhere, each with a mask of its own.
func (m *setModel) check() {
	var hashes, before []uint64
	for range 60 {
		h := m.pool[m.rng.IntN(len(m.pool))]
		if m.rng.IntN(4) == 0 {
			h = m.rng.Uint64()
		}
		mask := uint64(1)<<len(m.slots) - 1
		if m.rng.IntN(2) == 0 {
			mask &= m.rng.Uint64()
		}
		hashes, before = append(hashes, h), append(before, mask)
	}
	masks := slices.Clone(before)
	probeMasks(m.set, hashes, masks)
	for slot := range m.slots {
		if got := m.set.State(slot); got != m.slots[slot].state {
			m.fatal("slot %d is in state %d, want %d", slot, got, m.slots[slot].state)
		}
	}
	for i, h := range hashes {
		if masks[i]&^before[i] != 0 {
			m.fatal("bits %b came out, %b went in", masks[i], before[i])
		}
		for slot := range m.slots {
			if before[i]>>slot&1 == 1 {
				m.checkBit(h, slot, masks[i]>>slot&1 == 1)
			}
		}
	}
}

func (m *setModel) checkBit(h uint64, slot int, maybe bool) {
	b := &m.slots[slot]
	switch {
	case b.keys[h] && !maybe:
		m.fatal("false negative: slot %d holds %#x and was cleared", slot, h)
	case b.state == Maybe && !maybe:
		m.fatal("slot %d is maybe and was cleared for %#x", slot, h)
	case b.state == Empty && maybe:
		m.fatal("slot %d is empty and was not cleared for %#x", slot, h)
	case b.state == Filtered && b.known[h] && !maybe:
		m.fatal("false negative: the filter of slot %d was built with %#x", slot, h)
	case b.state == Filtered && !b.known[h]:
		m.absentAsked++
		if maybe {
			m.falsePositives++
		}
	}
}

// Lanes never cause a false negative, whatever happens to the buckets while they are built and after; nor does anything
// else. Random histories against plain maps.
func TestSetModel(t *testing.T) {
	rng := newRand(t)
	for _, kind := range filterKinds {
		total := &setModel{}
		for range max(8, fewer(40)) {
			slots := 1 + rng.IntN(20)
			m := &setModel{t: t, rng: rng, set: NewSet(kind, slots), pool: distinctHashes(rng, 1500), slots: make([]modelSlot, slots)}
			for range 200 {
				m.step()
				m.check()
			}
			total.falsePositives += m.falsePositives
			total.absentAsked += m.absentAsked
			total.installed += m.installed
			total.partly += m.partly
			total.refused += m.refused
			total.added += m.added
			total.tooLarge += m.tooLarge
			total.left += m.left
			total.failed += m.failed
		}
		// The same filter is asked for the same hash again and again, so the allowance is wide.
		if got := float64(total.falsePositives); got > 20+2*PerFilter(kind)*float64(total.absentAsked) {
			t.Errorf("%s: %.0f false positives of %d", kind, got, total.absentAsked)
		}
		t.Logf("%s: %d false positives of %d; lanes: %d whole, %d partly, %d refused; %d added, %d did not fit, %d slots left out; %d failed builds",
			kind, total.falsePositives, total.absentAsked, total.installed, total.partly, total.refused, total.added, total.tooLarge, total.left, total.failed)
		if total.installed == 0 || total.partly == 0 || total.refused == 0 || total.added == 0 || total.tooLarge == 0 || total.left == 0 || total.failed == 0 {
			t.Errorf("%s: the histories did not come to every case", kind)
		}
	}
}
