package fusefilter

import (
	"math/bits"
	"testing"
)

// Lanes of all slots, alone and with others beside: each hash of a batch keeps exactly its own slot, but for false
// positives, and what is in the list of hits already stays.
func TestProbeManySlots(t *testing.T) {
	rng := newRand(t)
	for _, laned := range []uint64{0, ^uint64(0), 0x00ff_00f0_f000_0001} {
		s, keys := sealedSet(t, Fuse16, MaxSlots, 300, rng.Uint64)
		if laned != 0 {
			lay(t, s, laned, keys)
		}
		s.SetMaybe(7)
		s.SetEmpty(40)
		for _, n := range []int{0, 1, 15, 16, 17, 3000} {
			hashes, slots := make([]uint64, n), make([]int, n)
			for i := range hashes {
				slots[i] = rng.IntN(MaxSlots)
				hashes[i] = keys[slots[i]][rng.IntN(300)]
			}
			ask := rng.Uint64() | 1<<7 | 1<<40
			first := Hit{77, 0xabc}
			hits := s.Probe(hashes, ask, []Hit{first})
			if hits[0] != first {
				t.Fatal("a hit that was in the list changed")
			}
			masks, extra := make([]uint64, n), 0
			for _, h := range hits[1:] {
				if h.Mask == 0 || masks[h.Pos]&h.Mask != 0 {
					t.Fatalf("hit %+v after %b: nothing, or the same again", h, masks[h.Pos])
				}
				masks[h.Pos] |= h.Mask
			}
			for i, slot := range slots {
				want := (uint64(1)<<slot | 1<<7) & ask &^ (1 << 40)
				if masks[i]&want != want || masks[i]&^ask != 0 || masks[i]>>40&1 != 0 {
					t.Fatalf("a batch of %d asks %b: hash %d of slot %d gets %b", n, ask, i, slot, masks[i])
				}
				extra += bits.OnesCount64(masks[i] &^ want)
			}
			if extra > 20+n/50 {
				t.Errorf("batch of %d: %d slots too many", n, extra)
			}
		}
	}
}
