package loadgen

import (
	"math/rand/v2"
	"testing"
	"time"
)

// newSeed returns a seed that a failing test prints.
func newSeed(t *testing.T) uint64 {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return seed
}

// TestStrataDirectionsAgree walks the indexes one by one and counts what is chosen
// itself: every closed form must say the same.
func TestStrataDirectionsAgree(t *testing.T) {
	rnd := rand.New(rand.NewPCG(newSeed(t), 1))
	shares := []float64{1, 0.999, 0.9, 0.75, 0.5, 1.0 / 3, 0.1, 0.01, 0.0007}
	for range 20 {
		shares = append(shares, rnd.Float64())
	}
	const n = 20_000
	for _, x := range shares {
		s := newStrata(share(x), rnd.Uint64())
		var chosen, rest uint64
		for j := range uint64(n) {
			if got := s.count(j); got != chosen {
				t.Fatalf("share %g: count(%d) = %d, want %d", x, j, got, chosen)
			}
			num, is := s.at(j)
			if is {
				if num != chosen || s.slot(chosen) != j {
					t.Fatalf("share %g: %d is number %d at slot %d, want number %d", x, j, num, s.slot(chosen), chosen)
				}
				chosen++
				continue
			}
			if num != rest || s.restSlot(rest) != j {
				t.Fatalf("share %g: other %d is number %d at slot %d, want number %d", x, j, num, s.restSlot(rest), rest)
			}
			rest++
		}
		if want := x * n; float64(chosen) < want-1.01 || float64(chosen) > want+1.01 {
			t.Errorf("share %g: %d of %d chosen", x, chosen, n)
		}
	}
}

func TestStrataZeroChoosesNothing(t *testing.T) {
	s := newStrata(0, 7)
	for j := range uint64(100) {
		if num, is := s.at(j); is || num != j || s.restSlot(j) != j || s.count(j) != 0 {
			t.Fatalf("at(%d) = %d, %v", j, num, is)
		}
	}
}

// TestStrataPlacesVary guards against a constant place inside the blocks.
func TestStrataPlacesVary(t *testing.T) {
	s := newStrata(share(1.0/8), 3)
	var places [8]int
	for k := range uint64(8000) {
		places[s.slot(k)%8]++
	}
	for i, n := range places {
		if n < 850 || n > 1150 {
			t.Errorf("place %d was taken %d times of 8000, want about 1000", i, n)
		}
	}
}

func TestPermutationsInvert(t *testing.T) {
	rnd := rand.New(rand.NewPCG(newSeed(t), 2))
	for bits := range uint(13) {
		p := pairing{n: 1, bits: bits, salt: rnd.Uint64()}
		seen := make(map[uint64]bool)
		size := uint64(1) << bits
		for chunk := range uint64(3) {
			for x := chunk * size; x < (chunk+1)*size; x++ {
				y := p.permute(x)
				if y>>bits != chunk || seen[y] || p.unpermute(y) != x {
					t.Fatalf("bits %d: %d -> %d -> %d, seen %v", bits, x, y, p.unpermute(y), seen[y])
				}
				seen[y] = true
			}
		}
	}
}

func TestStepTimes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(newSeed(t), 3))
	for _, rate := range []float64{0.001, 0.37, 1, 347.2222, 1000, 1e5, 3.3e6, 1e9} {
		st := step(rate)
		for range 2000 {
			i := rnd.Uint64N(uint64(min(1e9, 1e9*rate)) + 1)
			at := stepTime(i, st)
			if exact := float64(i) * 1000 / rate; abs(float64(at)-exact) > 1+exact*1e-6 {
				t.Fatalf("rate %g: record %d at %d ms, want %g", rate, i, at, exact)
			}
			if stepTime(i+1, st) < at {
				t.Fatalf("rate %g: record %d is before record %d", rate, i+1, i)
			}
			last := stepIndex(at, st)
			if stepTime(uint64(last), st) > at || stepTime(uint64(last)+1, st) <= at {
				t.Fatalf("rate %g: %d is not the last record at %d ms", rate, last, at)
			}
		}
	}
}

func abs(x float64) float64 { return max(x, -x) }
