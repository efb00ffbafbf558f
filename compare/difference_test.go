package compare

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestDifferences: medians and ranks are those of the pairs that know a part, the base's runs shifted.
func TestDifferences(t *testing.T) {
	inf := math.Inf(1)
	p := parts{base: [][]float64{{1, 5, 0}, {2, inf, 0}, {3, 5, 0}}, fresh: [][]float64{{3, 6, 1}, {2.5, 7, inf}, {2, 9, 1}}}
	d := p.differences(0) // by part: 2, 0.5, −1; 1, 4; 1, 1
	if got := d.ratio(); math.Abs(got-(0.5+2.5+1)/3) > 1e-12 {
		t.Errorf("ratio %v", got)
	}
	third := 1.0 / 3
	if got, want := d.ranks(3), []float64{1 + 0.5 + 0.75, third, -2*third + 1 + 0.75}; !near(got, want) {
		t.Errorf("ranks %v, want %v", got, want)
	}
	d = p.differences(1) // 1, −0.5, −2; 0, 3; 0, 0
	if got, want := d.ranks(3), []float64{2 * third, -third, -1 + 1}; !near(got, want) || math.Abs(d.ratio()-(-0.5+1.5+0)/3) > 1e-12 {
		t.Errorf("shifted: ranks %v, want %v; ratio %v", got, want, d.ratio())
	}
}

func near(got, want []float64) bool {
	return slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })
}

// TestRanksTurnRound: the two runs of a pair that change places say the opposite, and no other pair says anything else.
func TestRanksTurnRound(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for range 100 {
		p := parts{}
		for range 1 + r.IntN(9) {
			var logs [2][]float64
			for s := range logs {
				for range 20 {
					logs[s] = append(logs[s], float64(r.IntN(7))) // some are equal
				}
			}
			p.base, p.fresh = append(p.base, logs[0]), append(p.fresh, logs[1])
		}
		want := p.differences(0).ranks(len(p.base))
		i := r.IntN(len(p.base))
		p.base[i], p.fresh[i] = p.fresh[i], p.base[i]
		want[i] = -want[i]
		if got := p.differences(0).ranks(len(p.base)); !near(got, want) {
			t.Fatalf("ranks %v, want %v", got, want)
		}
	}
}
