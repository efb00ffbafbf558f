package fusefilter

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// What kernel.c answers is what the same functions in Go answer, and those answer cell by cell what a filter says that
// stands alone.

// batchSizes lie about the distance over which the kernels fetch ahead.
var batchSizes = []int{0, 1, 2, 15, 16, 17, 31, 32, 33, 1000}

// askOf mixes keys and absent hashes into a batch.
func askOf(rng *rand.Rand, n int, keys [][]uint64) []uint64 {
	ask := make([]uint64, n)
	for i := range ask {
		ask[i] = rng.Uint64()
		if k := keys[rng.IntN(len(keys))]; rng.IntN(2) == 0 && len(k) > 0 {
			ask[i] = k[rng.IntN(len(k))]
		}
	}
	return ask
}

// laneOf is one lane as a table of its own.
func laneOf[T fingerprint](l *Lanes, slot int) table[T] {
	t := table[T]{l.geometry, make([]T, l.size())}
	width := l.kind.cellBits()
	for i := range t.cells {
		t.cells[i] = T(l.rows[i*l.words+slot*width/64] >> (slot * width % 64))
	}
	return t
}

func checkLanes[T fingerprint](t *testing.T, rng *rand.Rand, kind Kind, slots int) {
	s, keys := sealedSet(t, kind, slots, 1, rng.Uint64)
	for slot := range keys {
		keys[slot] = distinctHashes(rng, rng.IntN(1+rng.IntN(100)))
	}
	all := ^uint64(0) >> (MaxSlots - slots)
	l := lay(t, s, all, keys)
	var lane []table[T]
	for slot := range slots {
		lane = append(lane, laneOf[T](l, slot))
	}
	for _, n := range batchSizes {
		hashes := askOf(rng, n, keys)
		for _, ask := range []uint64{all, all & rng.Uint64(), 1 << rng.IntN(slots)} {
			var want []Hit
			for i, h := range hashes {
				hit := Hit{Pos: uint32(i)}
				for slot := range lane {
					if lane[slot].residue(mix(h, l.seed)) == 0 {
						hit.Mask |= 1 << slot & ask
					}
				}
				if hit.Mask != 0 {
					want = append(want, hit)
				}
			}
			got := make([]Hit, n+1)
			for name, probe := range map[string]func(*Lanes, uint64, []uint64, []Hit) int{"C": probeLanes, "Go": goProbeLanes} {
				guard := Hit{^uint32(0), 42}
				got[n] = guard
				if n == 0 && name == "C" {
					continue // Probe does not call it then
				}
				if k := probe(l, ask, hashes, got); !slices.Equal(got[:k], want) || got[n] != guard {
					t.Fatalf("%s, %s of %d slots, %d hashes, ask %b:\n got %v\nwant %v", name, kind, slots, n, ask, got[:k], want)
				}
			}
		}
	}
}

func TestKernelLanes(t *testing.T) {
	rng := newRand(t)
	for slots := 1; slots <= MaxSlots; slots++ {
		checkLanes[uint8](t, rng, Fuse8, slots)
		checkLanes[uint16](t, rng, Fuse16, slots)
		checkLanes[uint32](t, rng, Fuse32, slots)
	}
}

func checkTable[T fingerprint](t *testing.T, rng *rand.Rand, f *Filter, tab *table[T], keys []uint64) {
	t.Helper()
	for _, n := range batchSizes {
		hashes := askOf(rng, n, [][]uint64{keys})
		var want []Hit
		mask := uint64(1) << rng.IntN(MaxSlots)
		for i, h := range hashes {
			if f.Contains(h) {
				want = append(want, Hit{uint32(i), mask})
			}
		}
		guard := Hit{^uint32(0), 42}
		got := make([]Hit, n+1)
		got[n] = guard
		if k := goProbeTable(tab, mask, hashes, got); !slices.Equal(got[:k], want) || got[n] != guard {
			t.Fatalf("Go, %s of %d: got %v, want %v", f.kind, n, got[:k], want)
		}
		if n == 0 {
			continue
		}
		if k := probeTable(tab, f.kind.cellBits(), mask, hashes, got); !slices.Equal(got[:k], want) || got[n] != guard {
			t.Fatalf("C, %s of %d: got %v, want %v", f.kind, n, got[:k], want)
		}
	}
}

func TestKernelTables(t *testing.T) {
	rng := newRand(t)
	for range 30 {
		for _, kind := range filterKinds {
			keys := distinctHashes(rng, 1+rng.IntN(1+rng.IntN(2000)))
			f := mustBuild(t, new(Builder), kind, slices.Clone(keys))
			switch kind {
			case Fuse8:
				checkTable(t, rng, f, &f.t8, keys)
			case Fuse16:
				checkTable(t, rng, f, &f.t16, keys)
			case Fuse32:
				checkTable(t, rng, f, &f.t32, keys)
			}
		}
	}
}

// Well spread hashes and ones that crowd into a few groups, in which searches go from group to group, and over the
// table's end to its beginning; all sizes, and with rows undone.
func TestKernelOpenIndex(t *testing.T) {
	rng := newRand(t)
	sources := hashSources(rng)
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		for _, rows := range []int{1, 8, 9, 100, 3000} {
			x := NewOpenIndex(rng.IntN(2) * rows)
			var hashes []uint64
			for len(hashes) < rows {
				x.tries = maxTries // stays with its multiplier: long runs of full groups
				x.Insert(last(&hashes, sources[name]()), uint32(len(hashes)-1))
			}
			x.Undo(uint32(rows-rng.IntN(rows)/3), hashes)
			for _, n := range batchSizes[1:] {
				ask := askOf(rng, n, [][]uint64{hashes})
				for i := range ask {
					if rng.IntN(3) == 0 {
						ask[i] = sources[name]() // of the same kind; may be absent
					}
				}
				guard := Found{^uint32(0), 42}
				got, want := make([]Found, n+1), make([]Found, n+1)
				got[n], want[n] = guard, guard
				k, m := findOpen(x, ask, got), goFindOpen(x, ask, want)
				if !slices.Equal(got[:k], want[:m]) || got[n] != guard || want[n] != guard {
					t.Fatalf("%s, %d rows, %d hashes:\n   C %v\n  Go %v", name, rows, n, got[:k], want[:m])
				}
			}
		}
	}
}

// last appends to a list and returns what it appended.
func last(list *[]uint64, h uint64) uint64 {
	*list = append(*list, h)
	return h
}
