package fusefilter

import (
	"errors"
	"math/bits"
	"slices"
	"testing"
)

// add adds lanes to those of base and keep. One bucket in thirty or more cannot be settled with the seed that is there (laneSeeds),
// so others are drawn then; that none of twenty can is no chance.
func add(t *testing.T, b *Builder, s *Set, base *Lanes, keep, mask uint64, draw func() []Part) *Lanes {
	t.Helper()
	var err error
	for range 20 {
		parts := draw()
		var l *Lanes
		if l, _, err = b.AddLanes(base, keep, parts, s.Cover(mask)); err == nil {
			return l
		}
		if !errors.Is(err, ErrNoFit) {
			break
		}
	}
	t.Fatalf("%s: %v", s.Kind(), err)
	return nil
}

// A bucket of up to twice the capacity takes its own lane and a free one: no key of it is denied, absent hashes pass as
// rarely as with one lane, and the slot whose lane is borrowed says nothing by it.
func TestSplitBucket(t *testing.T) {
	rng := newRand(t)
	for _, kind := range filterKinds {
		const slots, each = 16, 2000
		s := NewSet(kind, slots)
		keys := make([][]uint64, slots)
		var b Builder
		for slot := range slots - 2 { // 14 is to be split, 15 is open
			keys[slot] = distinctHashes(rng, each)
			s.Install(slot, mustBuild(t, &b, kind, slices.Clone(keys[slot])))
		}
		s.SetEmpty(15)
		base := lay(t, s, 1<<14-1, keys)
		install := func(slot, n int) {
			keys[slot] = distinctHashes(rng, n)
			s.SetMaybe(slot)
			s.Install(slot, mustBuild(t, &b, kind, slices.Clone(keys[slot])))
		}
		l := add(t, &b, s, base, 1<<14-1, 1<<15-1, func() []Part {
			install(14, each*18/10)
			return []Part{{14, keys[14]}}
		})
		if l.Split() != 1<<14 || l.Capacity() != base.Capacity() || l.Bytes() != base.Bytes() {
			t.Fatalf("%s: slots %b have two lanes, capacity %d", kind, l.Split(), l.Capacity())
		}
		if got := s.InstallLanes(l); got != 1<<15-1 || s.Keys(14) != len(keys[14]) {
			t.Fatalf("%s: the lanes cover %b", kind, got)
		}
		for slot, list := range keys {
			for _, h := range list {
				if probeOne(s, h, 1<<16-1)>>slot&1 == 0 {
					t.Fatalf("%s: slot %d denies %#x", kind, slot, h)
				}
			}
		}
		ask := fewer(400_000)
		hashes, masks := randomHashes(rng, ask), slices.Repeat([]uint64{1<<16 - 1}, ask)
		probeMasks(s, hashes, masks)
		wrong := 0
		for _, m := range masks {
			if m>>15 != 0 {
				t.Fatalf("%s: the borrowed lane answers for its slot: %b", kind, m)
			}
			wrong += int(m >> 14 & 1)
		}
		if lo, hi := fiveSigma(ask, PerFilter(kind)); float64(wrong) < lo || float64(wrong) > hi {
			t.Errorf("%s: %d of %d absent hashes pass the split bucket, want %.0f to %.0f", kind, wrong, ask, lo, hi)
		}
		// The next bucket takes the borrowed lane's slot: the split one is built anew, of what is left in it.
		install(15, each)
		if _, _, err := b.AddLanes(l, 1<<15-1, []Part{{15, keys[15]}}, s.Cover(1<<16-1)); !errors.Is(err, ErrNoFit) {
			t.Fatalf("%s: a bucket took the lane of another: %v", kind, err)
		}
		var left []uint64
		next := add(t, &b, s, l, 1<<14-1, 1<<16-1, func() []Part {
			rng.Shuffle(len(keys[14]), func(i, j int) { keys[14][i], keys[14][j] = keys[14][j], keys[14][i] })
			left = keys[14][:each/2]
			install(15, each)
			return []Part{{14, left}, {15, keys[15]}}
		})
		if next.Split() != 0 {
			t.Fatalf("%s: slots %b have two lanes", kind, next.Split())
		}
		if got := s.InstallLanes(next); got != 1<<16-1 {
			t.Fatalf("%s: the lanes cover %b", kind, got)
		}
		for slot, list := range [][]uint64{14: left, 15: keys[15]} {
			for _, h := range list {
				if probeOne(s, h, 1<<16-1)>>slot&1 == 0 {
					t.Fatalf("%s: slot %d denies %#x after that", kind, slot, h)
				}
			}
		}
	}
}

// Without a free lane, or with more than twice the keys, it does not fit; and lanes that are built anew are made for the
// second largest bucket if halves of the largest fit.
func TestSplitRefused(t *testing.T) {
	rng := newRand(t)
	const slots, each = 4, 1000
	s := NewSet(Fuse16, slots)
	keys := make([][]uint64, slots)
	var b Builder
	for slot := range slots {
		keys[slot] = distinctHashes(rng, each)
		s.Install(slot, mustBuild(t, &b, Fuse16, slices.Clone(keys[slot])))
	}
	base := lay(t, s, 0b0111, keys)
	large := distinctHashes(rng, each*3/2)
	if _, _, err := b.AddLanes(base, 0b0111, []Part{{3, large}}, s.Cover(0b1111)); !errors.Is(err, ErrNoFit) {
		t.Errorf("four lanes, all taken: %v", err)
	}
	if l := add(t, &b, s, base, 0b0011, 0b1011, func() []Part {
		large = distinctHashes(rng, each*3/2)
		return []Part{{3, large}}
	}); l.Split() != 0b1000 {
		t.Errorf("one lane free: two lanes for %b", l.Split())
	}
	if _, _, err := b.AddLanes(base, 0b0011, []Part{{3, distinctHashes(rng, each*5/2)}}, s.Cover(0b1011)); !errors.Is(err, ErrNoFit) {
		t.Errorf("two and a half times the keys: %v", err)
	}
	keys[3] = large
	if l, _, err := b.NewLanes(Fuse16, slots, partsOf(0b1011, keys), s.Cover(0b1011)); err != nil || l.Split() != 0b1000 || l.Capacity() > each+each/slack {
		t.Errorf("built anew with a lane free: %v, two lanes for %b", err, l.Split())
	}
	if l, _, err := b.NewLanes(Fuse16, slots, partsOf(0b1111, keys), s.Cover(0b1111)); err != nil || l.Split() != 0 || l.Capacity() < len(large) {
		t.Errorf("built anew without one: %v", err)
	}
	// All hashes in one half: it is said, and nothing is built.
	odd := make([]uint64, 0, each*3/2)
	for len(odd) < cap(odd) {
		odd = append(odd, rng.Uint64()|1)
	}
	if _, _, err := b.AddLanes(base, 0b0011, []Part{{3, odd}}, s.Cover(0b1011)); !errors.Is(err, ErrNoFit) {
		t.Errorf("all keys in one half: %v", err)
	}
	if bits.OnesCount64(base.Split()) != 0 {
		t.Error("the lanes that stood were changed")
	}
}
