package fusefilter

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// newRand is a random source whose seed is printed. FUSEFILTER_SEED=n repeats a run.
func newRand(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if v := os.Getenv("FUSEFILTER_SEED"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatalf("FUSEFILTER_SEED: %v", err)
		}
		seed = n
	}
	t.Logf("FUSEFILTER_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0x6a6f696e))
}

// distinct hashes, random ones and a few that have special bits.
func distinctHashes(rng *rand.Rand, n int) []uint64 {
	seen := make(map[uint64]bool, n)
	h := make([]uint64, 0, n)
	for _, special := range []uint64{0, ^uint64(0), 1} {
		if len(h) < n && rng.IntN(2) == 0 {
			seen[special] = true
			h = append(h, special)
		}
	}
	for len(h) < n {
		if x := rng.Uint64(); !seen[x] {
			seen[x] = true
			h = append(h, x)
		}
	}
	return h
}

func mustBuild(t testing.TB, b *Builder, kind Kind, hashes []uint64) *Filter {
	t.Helper()
	f, err := b.Build(kind, hashes)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// fiveSigma is the range in which a count of n trials of probability p falls but once in 1.7 million runs.
func fiveSigma(n int, p float64) (lo, hi float64) {
	mean := float64(n) * p
	dev := 5 * math.Sqrt(mean*(1-p))
	if mean > 30 {
		return mean - dev, mean + dev
	}
	// So few are not spread evenly about the mean: take in outcomes from 0 on until no more than one run in 3.5
	// million lies beyond.
	term := math.Exp(-mean)
	for rest := 1 - term; rest > 2.9e-7; hi++ {
		term *= mean / (hi + 1)
		rest -= term
	}
	return 0, hi
}

// fewer is n, or a tenth of it under the race detector: enough to see two goroutines at one place, which is what
// that looks for.
func fewer(n int) int {
	if raceEnabled {
		return n / 10
	}
	return n
}

// mustPanic wants a panic whose text contains what.
func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if text := fmt.Sprint(recover()); !strings.Contains(text, what) {
			t.Errorf("panic %q, want one about %q", text, what)
		}
	}()
	f()
}

// probeMasks probes each hash for the slots of its own mask and leaves in it those that may hold the hash.
func probeMasks(s *Set, hashes, masks []uint64) {
	var ask uint64
	for _, m := range masks[:len(hashes)] {
		ask |= m
	}
	answers := make([]uint64, len(hashes))
	for _, h := range s.Probe(hashes, ask, nil) {
		answers[h.Pos] |= h.Mask
	}
	for i, m := range answers {
		masks[i] &= m
	}
}

// lay builds lanes of the slots of a mask, of the keys given, and installs them.
func lay(t testing.TB, s *Set, mask uint64, keys [][]uint64) *Lanes {
	t.Helper()
	cover := s.Cover(mask)
	l, _, err := new(Builder).NewLanes(s.Kind(), s.Slots(), partsOf(cover.Mask(), keys), cover)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.InstallLanes(l); got != mask {
		t.Fatalf("the lanes cover %b, want %b", got, mask)
	}
	return l
}

func partsOf(mask uint64, keys [][]uint64) (parts []Part) {
	for m := mask; m != 0; m &= m - 1 {
		slot := bits.TrailingZeros64(m)
		parts = append(parts, Part{slot, keys[slot]})
	}
	return parts
}
