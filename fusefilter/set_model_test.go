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

// setModel drives a Set as a task does (open, insert, seal, drop, reuse; summaries that are built while
// the ring moves on) and knows from plain maps what each slot holds.
type setModel struct {
	t       *testing.T
	rng     *rand.Rand
	set     *Set
	builder Builder
	pool    []uint64 // few enough that buckets share keys
	slots   []modelSlot
	waiting []waitingSummary
	history []string

	// What the run was able to show.
	falsePositives, absentAsked int
	installed, partly, refused  int
	failed                      int
}

type modelSlot struct {
	state State
	open  bool // takes inserts
	keys  map[uint64]bool
}

// waitingSummary is one that a helper is still building.
type waitingSummary struct {
	cover Cover
	union map[uint64]bool
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
		m.startSummary()
	case op == 9:
		m.finishSummary()
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
	b.state = Filtered
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
	if len(b.keys) == 0 {
		b.state = Empty
	}
}

func (m *setModel) startSummary() {
	w := waitingSummary{cover: m.set.Cover(m.rng.Uint64()), union: map[uint64]bool{}}
	for c := w.cover.Mask(); c != 0; c &= c - 1 {
		for h := range m.slots[bits.TrailingZeros64(c)].keys {
			w.union[h] = true
		}
	}
	if len(w.union) > 0 {
		m.log("cover %b", w.cover.Mask())
		m.waiting = append(m.waiting, w)
	}
}

// finishSummary builds and installs one of those waiting, not always the newest.
func (m *setModel) finishSummary() {
	if len(m.waiting) == 0 {
		return
	}
	i := m.rng.IntN(len(m.waiting))
	w := m.waiting[i]
	m.waiting = slices.Delete(m.waiting, i, i+1)
	sum, err := m.builder.BuildSummary(filterKinds[m.rng.IntN(len(filterKinds))], keysOf(w.union), w.cover)
	if err != nil {
		m.fatal("summary: %v", err)
	}
	switch got := m.set.InstallSummary(sum); {
	case got == 0:
		m.refused++
	case got != w.cover.Mask():
		m.partly++
	default:
		m.installed++
	}
	_, covered := m.set.Summary()
	m.log("summary of %b covers %b", w.cover.Mask(), covered)
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
	m.set.Probe(hashes, masks)
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
	case b.state == Filtered && !b.keys[h]:
		m.absentAsked++
		if maybe {
			m.falsePositives++
		}
	}
}

// A summary never causes a false negative, whatever happens to the buckets while it is built and after; nor
// does anything else. Random histories against plain maps.
func TestSetModel(t *testing.T) {
	rng := newRand(t)
	for _, kind := range filterKinds {
		total := &setModel{}
		for range max(8, fewer(40)) {
			slots := 1 + rng.IntN(20)
			m := &setModel{t: t, rng: rng, set: NewSet(kind, slots, true), pool: distinctHashes(rng, 1500), slots: make([]modelSlot, slots)}
			for range 200 {
				m.step()
				m.check()
			}
			total.falsePositives += m.falsePositives
			total.absentAsked += m.absentAsked
			total.installed += m.installed
			total.partly += m.partly
			total.refused += m.refused
			total.failed += m.failed
		}
		// The summary only takes false positives away: at most those of the filters alone, give or take. The
		// same filter is asked for the same hash again and again, so the allowance is wide.
		if got := float64(total.falsePositives); got > 20+2*PerFilter(kind)*float64(total.absentAsked) {
			t.Errorf("%s: %.0f false positives of %d", kind, got, total.absentAsked)
		}
		t.Logf("%s: %d false positives of %d; summaries: %d whole, %d partly, %d refused; %d failed builds",
			kind, total.falsePositives, total.absentAsked, total.installed, total.partly, total.refused, total.failed)
		if total.installed == 0 || total.partly == 0 || total.refused == 0 || total.failed == 0 {
			t.Errorf("%s: the histories did not come to every case", kind)
		}
	}
}
