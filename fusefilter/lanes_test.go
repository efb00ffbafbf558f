package fusefilter

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

// mustAdd adds parts to lanes. One part in a hundred or so does not fit with the seed of the lanes; the caller's keys are
// random, so that others do.
func mustAdd(t testing.TB, b *Builder, base *Lanes, keep uint64, parts func() []Part, cover Cover) *Lanes {
	t.Helper()
	for range 20 {
		l, took, err := b.AddLanes(base, keep, parts(), cover)
		switch {
		case err == nil && took > 0:
			return l
		case !errors.Is(err, ErrNoFit):
			t.Fatalf("adding lanes: %v, took %v", err, took)
		}
	}
	t.Fatal("no keys fit into these lanes")
	return nil
}

// has wants every key in its slot of lanes, by the answer of the lanes themselves, and by that of a set if there is one.
func has(t *testing.T, what string, s *Set, l *Lanes, mask uint64, keys [][]uint64) {
	t.Helper()
	for m := mask; m != 0; m &= m - 1 {
		slot := bits.TrailingZeros64(m)
		for _, h := range keys[slot] {
			if l.merge(h, l.maybes(h), 1<<slot) == 0 {
				t.Fatalf("%s: lane %d denies its key %#x", what, slot, h)
			}
		}
		if s == nil {
			continue
		}
		left := 0
		for _, h := range s.Probe(keys[slot], 1<<slot, nil) {
			left += int(h.Mask >> slot & 1)
		}
		if left != len(keys[slot]) {
			t.Fatalf("%s: %d of %d keys of slot %d pass", what, left, len(keys[slot]), slot)
		}
	}
}

// Lanes deny no key: parts of all sizes, none of them included, of all kinds and numbers of slots; then some buckets go
// and new ones come into their lanes, beside those that are kept, again and again.
func TestLanesNeverDenyAKey(t *testing.T) {
	rng := newRand(t)
	var b Builder // one for all: nothing of an earlier build may be left over
	for _, kind := range filterKinds {
		for range max(4, fewer(24)) {
			slots := 1 + rng.IntN(MaxSlots)
			s, keys := sealedSet(t, kind, slots, 1, rng.Uint64)
			largest := 1 + rng.IntN(2000)
			for slot := range keys { // distinct within a bucket; buckets share some
				keys[slot] = distinctHashes(rng, rng.IntN(largest+1))
				if slot > 0 && len(keys[slot]) > 0 && len(keys[slot-1]) > 0 {
					keys[slot][0] = keys[slot-1][0]
					keys[slot] = slices.Compact(slices.Sorted(slices.Values(keys[slot])))
				}
			}
			mask := ^uint64(0) >> (MaxSlots - slots) & (rng.Uint64() | rng.Uint64() | 1)
			cover := s.Cover(mask)
			l, _, err := b.NewLanes(kind, slots, partsOf(mask, keys), cover)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.InstallLanes(l); got != mask {
				t.Fatalf("covers %b, want %b", got, mask)
			}
			has(t, "all new", s, l, mask, keys)
			for range 5 {
				base, laned := s.Lanes()
				fresh := (rng.Uint64() | base.Split()) & (1<<slots - 1)
				for m := fresh; m != 0; m &= m - 1 {
					slot := bits.TrailingZeros64(m)
					s.Install(slot, mustBuild(t, &b, kind, []uint64{1}))
				}
				if fresh == 0 {
					continue
				}
				l := mustAdd(t, &b, base, laned&^fresh, func() []Part {
					for m := fresh; m != 0; m &= m - 1 {
						keys[bits.TrailingZeros64(m)] = distinctHashes(rng, rng.IntN(base.Capacity()+1))
					}
					return partsOf(fresh, keys)
				}, s.Cover(laned|fresh))
				if got := s.InstallLanes(l); got != laned|fresh {
					t.Fatalf("covers %b, want %b", got, laned|fresh)
				}
				has(t, "added", s, l, laned|fresh, keys)
				for slot := range slots {
					if want := len(keys[slot]); (laned|fresh)>>slot&1 == 1 && s.Keys(slot) != want {
						t.Fatalf("slot %d has %d keys, want %d", slot, s.Keys(slot), want)
					}
				}
			}
		}
	}
}

// New lanes share nothing with those that they were made from.
func TestAddLanesLeavesTheBase(t *testing.T) {
	rng := newRand(t)
	for _, kind := range filterKinds {
		s, keys := sealedSet(t, kind, 7, 700, rng.Uint64)
		base := lay(t, s, 0b0111111, keys)
		before, was := slices.Clone(base.rows), *base
		fresh := slices.Clone(keys)
		var b Builder
		l := mustAdd(t, &b, base, 0b0111011, func() []Part {
			fresh[2], fresh[6] = distinctHashes(rng, 500), distinctHashes(rng, 700)
			return partsOf(0b1000100, fresh)
		}, s.Cover(^uint64(0)))
		has(t, "new", nil, l, 0b1111111, fresh)
		has(t, "base", nil, base, 0b0111111, keys)
		if fewer := mustAdd(t, &b, l, 0b1, func() []Part { return nil }, s.Cover(0b1)); fewer.MostKeys(^uint64(1)) != 0 || fewer.MostKeys(1) != 700 {
			t.Errorf("%s: lanes that are not kept still count %d keys", kind, fewer.MostKeys(^uint64(1)))
		}
		clear(l.rows)
		if !slices.Equal(base.rows, before) || base.keys != was.keys || base.cover != was.cover || base.capacity != was.capacity {
			t.Errorf("%s: the base changed", kind)
		}
		if base.MostKeys(^uint64(0)) != 700 || base.MostKeys(0b1000000) != 0 || l.MostKeys(0b0000100) != 500 || l.MostKeys(0b0000101) != 700 {
			t.Errorf("%s: most keys %d and %d", kind, base.MostKeys(^uint64(0)), l.MostKeys(0b100))
		}
	}
}

// Only sealed buckets can be covered, and a bucket that changes leaves the lanes.
func TestLanesCover(t *testing.T) {
	rng := newRand(t)
	s, keys := sealedSet(t, Fuse16, 4, 100, rng.Uint64)
	s.SetMaybe(3)
	if c := s.Cover(^uint64(0)); c.Mask() != 0b0111 {
		t.Fatalf("a cover of %b; only sealed buckets can be covered", c.Mask())
	}
	lay(t, s, 0b0111, keys)
	for slot, ended := range []func(){
		func() { s.Clear(0) },
		func() { s.SetMaybe(1) },
		func() { s.Install(2, mustBuild(t, new(Builder), Fuse16, []uint64{1})) },
	} {
		_, before := s.Lanes()
		ended()
		if l, after := s.Lanes(); after != before&^(1<<slot) || (l == nil) != (after == 0) {
			t.Errorf("lanes of %b became %b, lanes %v", before, after, l != nil)
		}
	}
	if s.Keys(0) != 0 || s.Keys(1) != 0 || s.Keys(2) != 1 || s.Keys(3) != 0 || s.Filtered() != 0b0100 {
		t.Errorf("keys %d %d %d %d, filters %b", s.Keys(0), s.Keys(1), s.Keys(2), s.Keys(3), s.Filtered())
	}
}

// A slot that was used again while its lane was being built is not covered by it.
func TestLanesOfABucketThatIsGone(t *testing.T) {
	rng := newRand(t)
	s, keys := sealedSet(t, Fuse16, 2, 1000, rng.Uint64)
	cover := s.Cover(0b11)
	l, _, err := new(Builder).NewLanes(Fuse16, 2, partsOf(0b11, keys), cover)
	if err != nil {
		t.Fatal(err)
	}
	s.Clear(1)
	s.SetMaybe(1)
	fresh := distinctHashes(rng, 1000)
	s.Install(1, mustBuild(t, new(Builder), Fuse16, slices.Clone(fresh)))
	if got := s.InstallLanes(l); got != 0b01 {
		t.Fatalf("covered %b, want only the bucket that is still there", got)
	}
	if s.Filter(0) != nil || s.Filter(1) == nil {
		t.Error("the filter of a lane stays, or that of another bucket went")
	}
	for _, h := range fresh {
		if probeOne(s, h, 0b11)&0b10 == 0 {
			t.Fatalf("hash %#x of the new bucket was denied", h)
		}
	}
	has(t, "the old bucket", s, l, 0b01, keys)
	s.Clear(0)
	if got := s.InstallLanes(l); got != 0 {
		t.Errorf("lanes of buckets that are all gone cover %b", got)
	}
}

// A slot that was a lane and is not one of the new lanes is maybe: nothing is left that knows its keys.
func TestLanesThatLeaveOneOut(t *testing.T) {
	rng := newRand(t)
	s, keys := sealedSet(t, Fuse16, 5, 300, rng.Uint64)
	lay(t, s, 0b01111, keys)
	lay(t, s, 0b01101, keys)
	for slot, want := range []State{Filtered, Maybe, Filtered, Filtered, Filtered} {
		if s.State(slot) != want {
			t.Errorf("slot %d is in state %d, want %d", slot, s.State(slot), want)
		}
	}
	if _, laned := s.Lanes(); laned != 0b01101 || s.Filter(4) == nil || s.Keys(1) != 0 {
		t.Errorf("lanes %b, slot 1 of %d keys", laned, s.Keys(1))
	}
	for slot := range keys {
		for _, h := range keys[slot] {
			if got := probeOne(s, h, ^uint64(0)); got&(1<<slot|1<<1) != 1<<slot|1<<1 {
				t.Fatalf("a key of slot %d gets %b", slot, got)
			}
		}
	}
}

// A filter that is built anew stands alone; lanes that were begun before with all of its keys may still take its place.
func TestReplaceALane(t *testing.T) {
	rng := newRand(t)
	s, keys := sealedSet(t, Fuse16, 2, 1000, rng.Uint64)
	l := lay(t, s, 0b11, keys)
	var b Builder
	s.Replace(0, mustBuild(t, &b, Fuse16, slices.Clone(keys[0][:10])))
	if _, laned := s.Lanes(); laned != 0b10 || s.Filter(0).Keys() != 10 || s.Keys(0) != 10 || s.Keys(1) != 1000 {
		t.Errorf("lanes %b, filters of %d and %d keys after Replace", laned, s.Keys(0), s.Keys(1))
	}
	if got := s.InstallLanes(l); got != 0b11 || s.Keys(0) != 1000 || s.Filter(0) != nil {
		t.Errorf("the lanes cover %b, slot 0 has %d keys", got, s.Keys(0))
	}
	s.Replace(0, mustBuild(t, &b, Fuse16, nil)) // nothing waits in it any more
	if got := s.InstallLanes(l); got != 0b10 || s.State(0) != Empty {
		t.Errorf("the lanes cover %b, state %d after Replace with nothing", got, s.State(0))
	}
	mustPanic(t, "slot 0, which has no filter", func() { s.Replace(0, nil) })
}

func TestLanesRefused(t *testing.T) {
	rng := newRand(t)
	s, keys := sealedSet(t, Fuse8, 4, 100, rng.Uint64)
	var b Builder
	cover := s.Cover(0b11)
	both := partsOf(0b11, keys)
	base, _, err := b.NewLanes(Fuse8, 4, both, cover)
	if err != nil {
		t.Fatal(err)
	}
	failing := &Builder{Before: func(_ Kind, keys int) error {
		if keys != 200 {
			t.Errorf("the hook sees %d keys", keys)
		}
		return errInjected
	}}
	newLanes := func(b *Builder, kind Kind, slots int, parts []Part) func() (*Lanes, error) {
		return func() (*Lanes, error) { l, _, err := b.NewLanes(kind, slots, parts, cover); return l, err }
	}
	addLanes := func(b *Builder, keep uint64, parts []Part) func() (*Lanes, error) {
		return func() (*Lanes, error) { l, _, err := b.AddLanes(base, keep, parts, cover); return l, err }
	}
	large := []Part{{0, both[0].Hashes}, {1, distinctHashes(rng, 2*base.Capacity()+1)}}
	for what, c := range map[string]struct {
		build func() (*Lanes, error)
		want  string
		err   error
	}{
		"kind none":         {newLanes(&b, None, 4, both), "none", ErrBuild},
		"kind bloom":        {newLanes(&b, Bloom, 4, both), "bloom", ErrBuild},
		"no such kind":      {newLanes(&b, Kind(77), 4, both), "Kind(77)", ErrBuild},
		"no buckets":        {newLanes(&b, Fuse8, 4, nil), "0 buckets", ErrBuild},
		"one is missing":    {newLanes(&b, Fuse8, 4, both[:1]), "the slots 10", ErrBuild},
		"twice":             {newLanes(&b, Fuse8, 4, append(both[:2:2], both[0])), "slot 0 is given twice", ErrBuild},
		"no such slot":      {newLanes(&b, Fuse8, 4, append(both[:2:2], Part{8, nil})), "slot 8", ErrBuild},
		"negative slot":     {newLanes(&b, Fuse8, 4, append(both[:2:2], Part{-1, nil})), "slot -1", ErrBuild},
		"injected":          {newLanes(failing, Fuse8, 4, both), "200 hashes", errInjected},
		"added, injected":   {addLanes(failing, 0, both), "200 hashes", errInjected},
		"added, missing":    {addLanes(&b, 0b01, nil), "the slots 10", ErrBuild},
		"added, kept too":   {addLanes(&b, 0b11, both[1:]), "slot 1 is given twice", ErrBuild},
		"added, not there":  {addLanes(&b, 0b111, nil), "kept", ErrBuild},
		"added, no such":    {addLanes(&b, 0b11, []Part{{64, nil}}), "slot 64", ErrBuild},
		"added, too large":  {addLanes(&b, 0, large), fmt.Sprintf("%d keys in lanes for %d", 2*base.Capacity()+1, base.Capacity()), ErrNoFit},
		"a hash twice":      {newLanes(&b, Fuse8, 4, repeated(both, 2)), "slot 1 was given a hash twice", ErrBuild},
		"a hash four times": {newLanes(&b, Fuse8, 4, repeated(both, 4)), "slot 1 was given a hash twice", ErrBuild},
		"added, twice":      {addLanes(&b, 0, repeated(both, 2)), "slot 1 was given a hash twice", ErrBuild},
		"added, thrice":     {addLanes(&b, 0, repeated(both, 3)), "slot 1 was given a hash twice", ErrBuild},
	} {
		l, err := c.build()
		if l != nil || !errors.Is(err, c.err) || !errors.Is(err, ErrBuild) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v", what, l != nil, err)
		}
		if errors.Is(err, ErrNoFit) != errors.Is(c.err, ErrNoFit) {
			t.Errorf("%s: whether all new lanes would help is not said right: %v", what, err)
		}
	}
	again := mustAdd(t, &b, base, 0b10, func() []Part { return both[:1] }, cover) // the same keys fit
	has(t, "after the refused ones", nil, again, 0b11, keys)

	other, _ := sealedSet(t, Fuse8, 4, 100, rng.Uint64)
	if got := other.InstallLanes(base); got != 0 {
		t.Errorf("another set took the lanes for %b", got)
	}
	if got := s.InstallLanes(base); got != 0b11 {
		t.Errorf("covered %b", got)
	}
	wide, _, err := b.NewLanes(Fuse16, 4, both, cover)
	if err != nil {
		t.Fatal(err)
	}
	mustPanic(t, "lanes of fuse16 in a set of fuse8", func() { s.InstallLanes(wide) })
}

// repeated has one hash of the second part n times, so that the part has as many as before.
func repeated(parts []Part, n int) []Part {
	h := slices.Clone(parts[1].Hashes)
	for i := range n {
		h[7*i] = h[0]
	}
	return []Part{parts[0], {parts[1].Slot, h}}
}

// The task probes lanes while its helper makes new ones out of them, which the race detector watches.
func TestLanesAreReadWhileOthersAreBuiltFromThem(t *testing.T) {
	rng := newRand(t)
	s, keys := sealedSet(t, Fuse16, 16, fewer(20_000), rng.Uint64)
	base := lay(t, s, 0xffff, keys)
	var wg sync.WaitGroup
	built := make([]*Lanes, 3)
	for i := range built {
		rng := rand.New(rand.NewPCG(rng.Uint64(), 0))
		cover := s.Cover(0xffff)
		wg.Go(func() {
			var b Builder
			fresh := slices.Clone(keys)
			for range 3 {
				var l *Lanes
				for l == nil {
					fresh[i] = distinctHashes(rng, len(keys[i]))
					var err error
					if l, _, err = b.AddLanes(base, 0xffff&^(1<<i), []Part{{i, fresh[i]}}, cover); err != nil && !errors.Is(err, ErrNoFit) {
						t.Error(err)
						return
					}
				}
				for range 100 { // a reader, too
					slot := rng.IntN(16)
					if h := fresh[slot][rng.IntN(len(fresh[slot]))]; l.merge(h, l.maybes(h), 1<<slot) == 0 {
						t.Errorf("lane %d denies %#x", slot, h)
					}
				}
				built[i] = l
			}
		})
	}
	for range 5 {
		has(t, "while others are built", s, base, 0xffff, keys)
	}
	wg.Wait()
	if got := s.InstallLanes(built[1]); got != 0xffff {
		t.Errorf("covers %b", got)
	}
}
