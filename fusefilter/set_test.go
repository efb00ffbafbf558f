package fusefilter

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"testing"
)

// sealedSet has n slots with filters of `each` keys, and gives their keys too.
func sealedSet(t *testing.T, kind Kind, n, each int, next func() uint64) (*Set, [][]uint64) {
	t.Helper()
	var b Builder
	s := NewSet(kind, n)
	keys := make([][]uint64, n)
	for slot := range keys {
		for range each {
			keys[slot] = append(keys[slot], next())
		}
		s.Install(slot, mustBuild(t, &b, kind, slices.Clone(keys[slot])))
	}
	return s, keys
}

// probeOne is the slots of a mask that may hold a hash.
func probeOne(s *Set, hash, mask uint64) uint64 {
	m := []uint64{mask}
	probeMasks(s, []uint64{hash}, m)
	return m[0]
}

// Sixteen filters multiply the false positives (B53), by as much as Predict says; whether they stand alone, in lanes, or
// some of them so and some so.
func TestFalsePositivesOfSixteenSlots(t *testing.T) {
	rng := newRand(t)
	const slots = 16
	figures := map[Kind]float64{Fuse8: 0.0607, Fuse16: 0.000244, Fuse32: 3.725e-9}
	for _, kind := range filterKinds {
		for _, laned := range []uint64{0, 1<<slots - 1, 1<<12 - 1} {
			s, keys := sealedSet(t, kind, slots, fewer(20_000), rng.Uint64)
			if laned != 0 {
				lay(t, s, laned, keys)
			}
			if p := Predict(kind, slots); math.Abs(p-figures[kind]) > 0.01*figures[kind] || p != s.Predict(^uint64(0)) {
				t.Fatalf("%s: predicted %v for %d filters, by the set %v", kind, p, slots, s.Predict(^uint64(0)))
			}
			checkFalsePositives(t, s, fewer(1_000_000), rng.Uint64)
		}
	}
}

// checkFalsePositives asks all slots of a set for absent hashes and compares what passes with the prediction.
func checkFalsePositives(t *testing.T, s *Set, ask int, next func() uint64) {
	t.Helper()
	hashes := make([]uint64, 5000)
	passed, yes := 0, 0 // hashes with some slot left; slots left
	var hits []Hit
	masks := make([]uint64, len(hashes))
	for done := 0; done < ask; done += len(hashes) {
		for i := range hashes {
			hashes[i] = next()
		}
		clear(masks)
		hits = s.Probe(hashes, ^uint64(0), hits[:0])
		for _, h := range hits {
			masks[h.Pos] |= h.Mask
		}
		for _, m := range masks {
			yes += bits.OnesCount64(m)
			if m != 0 {
				passed++
			}
		}
	}
	l, laned := s.Lanes()
	name := fmt.Sprintf("%s, %d of %d in lanes", s.Kind(), bits.OnesCount64(laned), s.Slots())
	p := Predict(s.Kind(), s.Slots())
	t.Logf("%s: %d of %d, %.4f %%, predicted %.4f %%", name, passed, ask, 100*float64(passed)/float64(ask), 100*p)
	for what, c := range map[string]struct {
		got, n int
		p      float64
	}{
		"absent hashes": {passed, ask, p},
		"questions":     {yes, ask * s.Slots(), PerFilter(s.Kind())},
	} {
		if lo, hi := fiveSigma(c.n, c.p); float64(c.got) < lo || float64(c.got) > hi {
			t.Errorf("%s: %d of %d %s pass, predicted %.0f to %.0f", name, c.got, c.n, what, lo, hi)
		}
	}
	st := s.Stats()
	if least, most := uint64(passed), uint64(yes); st.Hashes != uint64(ask) || st.Hits < least || st.Hits > most || l == nil && st.Hits != most {
		t.Errorf("%s: %+v, want %d hashes and %d to %d hits", name, st, ask, least, most)
	}
}

func TestPredict(t *testing.T) {
	close := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-12+1e-9*want {
			t.Errorf("%s = %v, want %v", what, got, want)
		}
	}
	close("fuse8, 16", Predict(Fuse8, 16), 1-math.Pow(255.0/256, 16))
	close("fuse16, 1", Predict(Fuse16, 1), 1.0/65536)
	close("none, 1", Predict(None, 1), 1)
	close("fuse8, 0", Predict(Fuse8, 0), 0)
	close("fuse32, 2", Predict(Fuse32, 2), 2*math.Pow(2, -32)-math.Pow(2, -64))
	// Sets whose filters are not here predict what the sealed buckets of the mask will say.
	s := NewSet(Bloom, 5)
	s.SetEmpty(2)
	close("a set of bloom", s.Predict(0b1_0111), Predict(Bloom, 3))
	close("a set of bloom, beyond its slots", s.Predict(^uint64(0)), Predict(Bloom, 4))
	s = NewSet(None, 5)
	close("a set of none", s.Predict(0b11), 1)
	close("a set of none, nothing asked", s.Predict(0), 0)
}

// B49: what a set says before anyone told it about its buckets, and in each state after.
func TestSlotStates(t *testing.T) {
	for _, kind := range allKinds {
		var b Builder
		s := NewSet(kind, 5)
		const all = 0b11111
		if got := probeOne(s, 1, all); got != all {
			t.Errorf("%s: a new set answers %b; what is not known is maybe", kind, got)
		}
		s.SetEmpty(0)
		s.SetMaybe(1)
		s.Install(2, mustBuild(t, &b, kind, []uint64{1, 2, 3}))
		s.Install(3, nil) // the build failed
		s.Install(4, mustBuild(t, &b, kind, nil))
		if got := probeOne(s, 1, all); got != 0b01110 {
			t.Errorf("%s: hash 1 gets %b", kind, got)
		}
		if got := probeOne(s, 1, 0b00101); got != 0b00100 {
			t.Errorf("%s: bits that were not asked came back: %b", kind, got)
		}
		filtered := Maybe
		if kind.InRAM() {
			filtered = Filtered
		}
		for slot, want := range []State{Empty, Maybe, filtered, Maybe, Empty} {
			if got := s.State(slot); got != want {
				t.Errorf("%s: slot %d is in state %d, want %d", kind, slot, got, want)
			}
		}
		s.Clear(2)
		if got := probeOne(s, 1, all); got != 0b01010 || s.Filter(2) != nil || s.Bytes() != 0 {
			t.Errorf("%s: after Clear %b, filter %v, %d bytes", kind, got, s.Filter(2), s.Bytes())
		}
		s.SetMaybe(2)
		if got := probeOne(s, 1, all); got != 0b01110 {
			t.Errorf("%s: a slot that is used again says %b", kind, got)
		}
		if got := probeOne(s, 1, 1<<5|1<<63); got != 0 {
			t.Errorf("%s: slots that are not there answer %b", kind, got)
		}
	}
}

func TestSetMisuse(t *testing.T) {
	mustPanic(t, "0 slots", func() { NewSet(Fuse8, 0) })
	mustPanic(t, "65 slots", func() { NewSet(Fuse8, 65) })
	mustPanic(t, "Kind(7)", func() { NewSet(Kind(7), 2) })
	s := NewSet(Fuse8, 2)
	mustPanic(t, "slot 2 of a set of 2", func() { s.SetEmpty(2) })
	mustPanic(t, "slot -1 of a set of 2", func() { s.Clear(-1) })
	f := mustBuild(t, new(Builder), Fuse16, []uint64{1})
	mustPanic(t, "fuse16 in a set of fuse8", func() { s.Install(0, f) })
}

// Neither a probe nor a question to the open index needs memory, once the caller's list has room.
func TestProbeAllocatesNothing(t *testing.T) {
	rng := newRand(t)
	for _, kind := range filterKinds {
		s, keys := sealedSet(t, kind, 16, 1000, rng.Uint64)
		hashes := append(distinctHashes(rng, 3000), keys[3]...)
		var hits []Hit
		probe := func() { hits = s.Probe(hashes, 1<<16-1, hits[:0]) }
		if got := testing.AllocsPerRun(10, probe); got != 0 {
			t.Errorf("%s alone: %v allocations", kind, got)
		}
		lay(t, s, 0xfff, keys)
		if got := testing.AllocsPerRun(10, probe); got != 0 {
			t.Errorf("%s with lanes: %v allocations", kind, got)
		}
	}
}
