package compare

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// sequence lets a test go on for up to n pairs whose logarithms draw gives, and says how it ended.
func sequence(limit float64, n int, draw func() float64) *Pairs {
	p := NewPairs(Rule{Metric: mustMetric("cost.ns_per_b"), Unit: true, Limit: Limit{Ratio: limit}}, 0)
	for range n {
		p.Logs = append(p.Logs, draw())
		if (p.Due() || len(p.Logs) == n) && p.Look() {
			break
		}
	}
	p.End(time.Duration(len(p.Logs)) * time.Second)
	return p
}

func rate(limit float64, n int, draw func() float64) map[string]float64 {
	const times = 2000
	out := map[string]float64{}
	for range times {
		out[sequence(limit, n, draw).Verdict] += 1.0 / times
	}
	return out
}

// TestErrorRates: equal builds are called worse, or better, in at most 2 % however often one looks, also with noise that
// now and then is large; what is worse by the limit passes in at most 2 %; what is far from it is found.
func TestErrorRates(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const sure = 0.02 + 0.007 // and what 2,000 draws may lie beside it
	for name, noise := range map[string]func() float64{
		"normal": func() float64 { return 0.05 * r.NormFloat64() },
		"outliers": func() float64 {
			if r.IntN(10) == 0 {
				return 0.4 * r.NormFloat64()
			}
			return 0.03 * r.NormFloat64()
		},
	} {
		by := func(ratio float64) func() float64 { return func() float64 { return math.Log1p(ratio) + noise() } }
		// A limit of 0 is the hardest: then the ratio itself does not hold a false alarm back.
		if got := rate(0, 60, by(0)); got[Regression] > sure || got[Improvement] > sure {
			t.Errorf("%s, equal: %v", name, got)
		}
		if got := rate(0.05, 60, by(0.05)); got[Pass] > sure {
			t.Errorf("%s, at the limit: %v", name, got)
		}
	}
	normal := func(ratio, sd float64) func() float64 {
		return func() float64 { return math.Log1p(ratio) + sd*r.NormFloat64() }
	}
	if got := rate(0.05, 25, normal(0.2, 0.05)); got[Regression] < 0.99 {
		t.Errorf("20 %% slower: %v", got)
	}
	if got := rate(0.05, 25, normal(0, 0.02)); got[Pass] < 0.99 {
		t.Errorf("equal, with little noise: %v", got)
	}
	if got := rate(0.05, 25, normal(-0.2, 0.05)); got[Improvement] < 0.99 {
		t.Errorf("faster: %v", got)
	}
}

// budgetOf is the median of the pairs that End says would decide, over several tests that were not.
func budgetOf(tests int, end func() *Pairs) int {
	var needs []int
	for range tests {
		if p := end(); p.NeedNs != nil {
			needs = append(needs, int(*p.NeedNs/int64(time.Second)))
		}
	}
	slices.Sort(needs)
	return needs[len(needs)/2]
}

// TestBudgetThatDecides: what End says decides in most cases (four of five, if noise were normal and looks cost nothing), and a quarter of it
// does not.
func TestBudgetThatDecides(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	draw := func() float64 { return 0.1 * r.NormFloat64() }
	need := budgetOf(200, func() *Pairs { return sequence(0.05, 18, draw) })
	if enough, quarter := rate(0.05, need, draw), rate(0.05, need/4, draw); enough[Inconclusive] > 0.4 || quarter[Inconclusive] < 0.6 {
		t.Errorf("with %d pairs %v, with a quarter %v", need, enough, quarter)
	}
}

// TestBudgetOfParts: the same where parts are tested.
func TestBudgetOfParts(t *testing.T) {
	const times = 50
	m := &noisy{r: rand.New(rand.NewPCG(13, 14)), parts: 16, own: 0.1, disturbed: 1 << 40}
	need := budgetOf(times, func() *Pairs {
		p := m.turns(t, 0.05, 1, 18)
		p.End(time.Duration(len(p.Logs)) * time.Second)
		return p
	})
	open := func(pairs int) (n int) {
		for range times {
			if m.turns(t, 0.05, 1, pairs).Verdict == Inconclusive {
				n++
			}
		}
		return n
	}
	if enough, quarter := open(need), open(need/4); enough > times*4/10 || quarter < times*6/10 {
		t.Errorf("with %d pairs %d of %d are open, with a quarter %d", need, enough, times, quarter)
	}
}

// TestSignTest: the probabilities are those of coins, and what lies on the centre is no throw.
func TestSignTest(t *testing.T) {
	for _, c := range []struct {
		logs         []float64
		centre       float64
		above, below float64
	}{
		{[]float64{1, 1, 1, 1, 1, 1, 1}, 0, 1. / 128, 1},
		{[]float64{0, 1, 1, 1, 1, 0, 1, 1, 1, 0}, 0, 1. / 128, 1},
		{[]float64{1, 1, 1, -1, 1, 1, 1}, 0, 8. / 128, 127. / 128},
		{[]float64{1, 1, 1, -1, 1, 1, 1}, 2, 1, 1. / 128},
		{[]float64{0, 0}, 0, 1, 1},
	} {
		if a, b := above(c.logs, c.centre), below(c.logs, c.centre); math.Abs(a-c.above) > 1e-12 || math.Abs(b-c.below) > 1e-12 {
			t.Errorf("%+v: above %v, below %v", c, a, b)
		}
	}
}

// TestEqualLogs: numbers without any spread are on one side or are none.
func TestEqualLogs(t *testing.T) {
	for ratio, want := range map[float64]string{0: Pass, 0.2: Regression, -0.2: Improvement, 0.02: Pass} {
		if p := sequence(0.05, 10, func() float64 { return math.Log1p(ratio) }); p.Verdict != want {
			t.Errorf("%v: %s, want %s", ratio, p.Verdict, want)
		}
	}
}

// TestSurelyNotWorse: what seems better by the limit, and may be by chance, passes in the end, but not while pairs can still come.
func TestSurelyNotWorse(t *testing.T) {
	p := NewPairs(Rule{Metric: mustMetric("cost.ns_per_b"), Limit: Limit{Ratio: 0.04}}, 0)
	p.Logs = []float64{-0.08, -0.08, -0.08, -0.08, -0.08, -0.08, -0.08, 0.01}
	if p.Look() {
		t.Errorf("decided: %+v", p)
	}
	if p.End(time.Minute); p.Verdict != Pass || p.Reason != "" || p.NeedNs != nil {
		t.Errorf("%+v", p)
	}
	p.Logs, p.last, p.Verdict = []float64{-0.08, -0.08, -0.08, -0.08, -0.08, 0.09, 0.09, 0.09}, nil, Inconclusive // as likely worse
	p.Look()
	if p.End(time.Minute); p.Verdict != Inconclusive {
		t.Errorf("%+v", p)
	}
}
