package loadgen

import (
	"math"
	"slices"
	"testing"
	"time"
)

// TestZipf compares the ranks drawn with the distribution, rank by rank where there are enough and in decades else.
func TestZipf(t *testing.T) {
	const draws = 2_000_000
	for _, s := range []float64{0.5, 0.99, 1, 2} {
		for _, n := range []uint64{1, 2, 63, 64, 65, 1000, 100_000} {
			z := newZipf(s, n)
			counts := make([]float64, n)
			for i := range uint64(draws) {
				counts[z.rank(mix(i+77))]++
			}
			total := 0.0
			for r := range n {
				total += math.Pow(float64(r+1), -s)
			}
			check := func(from, to uint64) {
				want, got := 0.0, 0.0
				for r := from; r < to; r++ {
					want, got = want+math.Pow(float64(r+1), -s)/total*draws, got+counts[r]
				}
				if d := got - want; math.Abs(d) > 5*math.Sqrt(want)+1 { // a right one departs so far once in a million
					t.Errorf("s %g, n %d: ranks %d to %d drawn %.0f times, expected %.0f", s, n, from, to-1, got, want)
				}
			}
			for r := range min(n, 20) {
				check(r, r+1)
			}
			for from := uint64(20); from < n; from *= 3 {
				check(from, min(3*from, n))
			}
		}
	}
	if z := newZipf(0.99, uint64(MaxRecords)); len(z.below) > 2000 || z.rank(math.MaxUint64) >= uint64(MaxRecords) {
		t.Errorf("%d bins for %d ranks", len(z.below), MaxRecords)
	}
}

// TestHotKeys: a few keys get a great part of what is asked, of absent and of repeated keys, in both cardinalities.
func TestHotKeys(t *testing.T) {
	for _, many := range []bool{false, true} {
		c := Config{Seed: 5, Pending: 20_000, BEvents: 200_000, MatchRate: 0.1, Duplicates: 0.05, Grace: time.Second, After: 10 * time.Minute,
			PartitionsB: 4, OneToMany: many, BEventsPerSec: 200, Zipf: 0.99, Ages: []time.Duration{time.Minute, 3 * time.Minute}}
		g := mustNew(t, c)
		absent, again := map[string]int{}, map[string]int{}
		for j := range g.BCount() {
			key := string(g.AppendBKey(nil, j))
			switch g.KindB(j) {
			case KindAbsent:
				absent[key]++
			case KindDuplicate:
				again[key]++
			}
		}
		for what, c := range map[string]struct {
			asks map[string]int
			top  float64 // share of the hottest key
			one  float64 // of the hottest hundredth
			all  int
		}{"absent": {absent, 0.085, 0.4, 160_000}, "duplicates": {again, 0.003, 0.1, 9000}} { // those are of 13 stretches
			var list []int
			sum := 0
			for _, n := range c.asks {
				list, sum = append(list, n), sum+n
			}
			slices.Sort(list)
			slices.Reverse(list)
			hundredth := 0
			for _, n := range list[:len(list)/100+1] {
				hundredth += n
			}
			if sum < c.all || float64(list[0]) < c.top*float64(sum) || float64(hundredth) < c.one*float64(sum) {
				t.Errorf("one-to-many %v, %s: %d asks for %d keys, %d for the hottest, %d for the hottest hundredth", many, what, sum, len(list), list[0], hundredth)
			}
		}
	}
}
