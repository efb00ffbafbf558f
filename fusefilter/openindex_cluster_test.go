package fusefilter

import (
	"fmt"
	"math"
	"math/bits"
	"testing"
)

// farthest is how many groups beyond its own the farthest entry lies: what a search may have to walk.
func (x *OpenIndex) farthest() int {
	mask := uint64(len(x.tags) - 1)
	walk := uint64(0)
	for g, word := range x.tags {
		for e := g * groupSize; e < g*groupSize+count(word); e++ {
			home, _ := x.place(x.entries[e].hash())
			walk = max(walk, (uint64(g)-home)&mask)
		}
	}
	return int(walk)
}

// Hashes with a pattern do not make long runs of full groups, in which inserts would be quadratic: no entry is ever
// much farther than maxWalk from its group, and the multiplier changes a few times at most. Nothing here looks at a
// clock.
func TestOpenIndexClusteredHashes(t *testing.T) {
	rng := newRand(t)
	rows := fewer(100_000)
	stride := func(s uint64) func(uint64) uint64 { return func(k uint64) uint64 { return k * s } }
	patterns := map[string]func(k uint64) uint64{
		"8 bits":        func(k uint64) uint64 { return k & 0xff },
		"low bits":      stride(1),
		"top bits":      stride(1 << (64 - 17)),
		"two ends":      func(k uint64) uint64 { return k&0x1ff | k>>9<<55 },
		"twice":         func(k uint64) uint64 { return k | k<<32 },
		"reversed":      bits.Reverse64,
		"bytes":         bits.ReverseBytes64,
		"floats":        func(k uint64) uint64 { return math.Float64bits(float64(k)) },
		"nanoseconds":   func(k uint64) uint64 { return 1_700_000_000e9 + k*1e6 },
		"multiplier":    stride(firstMultiplier),
		"inverse":       stride(inverseOf(firstMultiplier)),
		"inverse high":  stride(inverseOf(firstMultiplier) << 20),
		"second":        stride(inverseOf(uint64ProductOf(firstMultiplier, nextMultiplier))),
		"both inverses": func(k uint64) uint64 { return bothInverses(k, uint64(rows)) },
		"random stride": stride(rng.Uint64()),
	}
	for n, a, b := 1, uint64(1), uint64(2); n < 90; n, a, b = n+1, b, a+b {
		patterns[fmt.Sprintf("fibonacci %d", n)] = stride(a) // golden ratio times these is nearly whole
	}
	moved := 0
	for name, f := range patterns {
		for _, hint := range []int{0, rows} {
			x := NewOpenIndex(hint)
			changes := 0
			for k := range uint32(rows) {
				before := x.mult
				x.Insert(f(uint64(k)), k)
				if x.mult != before {
					changes++
				}
				if int(k+1)%(rows/4) == 0 && x.tries < maxTries && x.farthest() > maxWalk {
					t.Errorf("%s, hint %d: an entry is %d groups from its own after %d rows", name, hint, x.farthest(), k+1)
				}
			}
			if x.tries == maxTries || changes > maxTries {
				t.Errorf("%s, hint %d: %d multipliers given up, %d since the table doubled", name, hint, changes, x.tries)
			}
			if changes > 0 {
				moved++
			}
			for k := range uint32(rows) {
				if row, ok := x.Find(f(uint64(k))); !ok || f(uint64(row)) != f(uint64(k)) {
					t.Fatalf("%s, hint %d: row %d is not found", name, hint, k)
				}
			}
		}
	}
	if moved == 0 {
		t.Error("no pattern made the index change its multiplier")
	}
}

func uint64ProductOf(a, b uint64) uint64 { return a * b }

// bothInverses are hashes that the first multiplier draws together, then ones that the second does.
func bothInverses(k, rows uint64) uint64 {
	if k < rows/2 {
		return k * inverseOf(firstMultiplier)
	}
	return k * inverseOf(uint64ProductOf(firstMultiplier, nextMultiplier))
}

// Random hashes never make the index change its multiplier, at any load.
func TestOpenIndexKeepsItsMultiplier(t *testing.T) {
	rng := newRand(t)
	x := NewOpenIndex(0)
	for row := range uint32(fewer(400_000)) {
		x.Insert(rng.Uint64(), row)
	}
	if x.mult != firstMultiplier || x.farthest() > 6 {
		t.Errorf("multiplier %#x, an entry %d groups from its own", x.mult, x.farthest())
	}
}
