package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/aclements/go-moremath/stats"

	"joinbench/results"
)

// Pairs is a sequential test of time on pairs of runs that took turns: one of each build a pair, in an order drawn for each.
//
// What is looked at is the logarithm of the new build's figure to that of the base: of CPU time per B part by part (see parts), where
// the runs know it, or else of any metric, one number a pair. The tests, in both directions and against the limit, are permutation tests
// of the parts or sign tests of the pairs. Either asks of the noise only that equal builds are as likely to have it, which drawing the order
// sees to. Noise of shared machines has outliers that make means useless.
//
// It may be looked at again and again because each look has a share of its own of the error, and the shares add up to Alpha over however
// many looks there are (alpha spending after Lan and DeMets, Biometrika 70, 1983, with the union bound in place of the joint
// distribution, which costs some power and needs no plan of how many looks there will be).
// So a build that equals the base is called worse in at most Alpha of comparisons, and one that is worse by the limit passes in
// at most Alpha of them.
type Pairs struct {
	Metric  string    `json:"metric"`
	Unit    bool      `json:"by_unit"`
	Higher  bool      `json:"more_is_better"`
	Limit   float64   `json:"limit_ratio"`
	Alpha   float64   `json:"alpha"` // of each direction
	Logs    []float64 `json:"logs"`  // of the metric's ratio in each pair
	Parts   int       `json:"parts"` // of which each run has a figure of its own; 0: the pairs are tested by their logs
	Looks   int       `json:"looks"`
	Ratio   *float64  `json:"ratio"` // new to base: of the pairs' the median, of the parts' the trimmed mean
	Low     *float64  `json:"ratio_low"`
	High    *float64  `json:"ratio_high"` // at the confidence that the last look had left
	Level   float64   `json:"confidence"`
	P       *float64  `json:"p"` // of the last look: that builds of equal speed differ so much
	Verdict string    `json:"verdict"`
	Reason  string    `json:"reason"`
	Seed    uint64    `json:"seed"`
	TookNs  int64     `json:"took_ns"`
	// NeedNs is what budget would have decided, from the differences seen, after inconclusive.
	NeedNs *int64 `json:"need_ns"`

	parts  parts
	random *rand.Rand // of ways
	last   *test      // what the last look asked
}

// minPairs is from how many pairs on a look is worth its share of the error: fewer cannot be that sure. Eight pairs can change places in
// 256 ways, and a sign test needs eight heads in a row.
const minPairs = 8

// PartsMetric is the metric that records know part by part. It is best measured in runs with one processor.
const PartsMetric = "cost.cpu_ns_per_b"

// pairsAlpha is the error of each direction, whatever the limit.
const pairsAlpha = 0.02

// NewPairs begins a test of the metric of a rule. Its limit is the ratio by which a build must be worse to be called so.
func NewPairs(r Rule, seed uint64) *Pairs {
	return &Pairs{Metric: r.Metric.String(), Unit: r.Unit, Higher: r.Higher, Limit: r.Limit.Ratio, Alpha: pairsAlpha, Seed: seed,
		Verdict: Inconclusive, Reason: "no look yet", Logs: []float64{}, random: rand.New(rand.NewPCG(seed, 1))}
}

// Add takes a pair.
func (p *Pairs) Add(base, fresh *results.Record) error {
	r := Rule{Metric: mustMetric(p.Metric), Unit: p.Unit}
	_, x := (&Build{records: []*results.Record{base}}).values(r)
	_, y := (&Build{records: []*results.Record{fresh}}).values(r)
	if len(x) == 0 || len(y) == 0 || x[0] <= 0 || y[0] <= 0 {
		return fmt.Errorf("a run does not know %s or its unit: is that build too old?", p.Metric)
	}
	if p.Metric == PartsMetric && (len(p.Logs) == 0 || p.Parts > 0) && p.parts.add(base, fresh) {
		p.Parts = len(p.parts.base[0])
	} else {
		p.Parts, p.parts = 0, parts{}
	}
	p.Logs = append(p.Logs, math.Log(y[0]/x[0]))
	return nil
}

// Due says whether the pairs so far are worth a look: 8, 12, 18, 27, 40 … Looks cost error, and a pair more rarely decides.
func (p *Pairs) Due() bool {
	for n := minPairs; n <= len(p.Logs); n = n * 3 / 2 {
		if n == len(p.Logs) {
			return true
		}
	}
	return false
}

// Look takes a look, which spends a share of the error, and says whether the question is decided.
func (p *Pairs) Look() bool {
	n := len(p.Logs)
	if n == 0 {
		return false
	}
	p.Looks++
	share := p.share(p.Looks)
	t := p.test(share)
	p.last = t
	mid := t.middle
	p.Level = 1 - 2*share
	p.Ratio, p.Low, p.High = results.Known(math.Exp(p.turned(mid))), nil, nil
	worse, better := t.chances(0)
	p.P = new(min(1, 2*min(worse, better)))
	p.Verdict, p.Reason = Inconclusive, ""
	limit := math.Log1p(p.Limit)
	switch {
	case worse < share && mid >= limit:
		p.Verdict, p.Reason = Regression, "worse by more than the limit"
	case better < share && mid <= -limit:
		p.Verdict = Improvement
	case mid > -limit && t.below(limit) < share:
		p.Verdict = Pass
	case n < minPairs:
		p.Reason = fmt.Sprintf("%d pairs, and %d are the least that can tell", n, minPairs)
	default:
		p.Reason = "the pairs differ too much among themselves to tell"
	}
	return p.Verdict != Inconclusive
}

// share is that of a look: a fifth of Alpha for each of the first four, then half of the one before. A fifth is what eight pairs can just be
// that sure of, if no way to change their places gives as much.
func (p *Pairs) share(look int) float64 { return p.Alpha / 5 / math.Exp2(float64(max(0, look-4))) }

// turned turns a logarithm round where more is better: so that above 0 is worse, and back.
func (p *Pairs) turned(log float64) float64 {
	if p.Higher {
		return -log
	}
	return log
}

// test is what one look asks: chances are how likely as much above, and as much below, is if the fresh build is exp(shift) times the base,
// and interval bounds the middle with that chance at either end, as far as so few pairs can.
type test struct {
	middle   float64
	chances  func(shift float64) (above, below float64)
	interval func(share float64) (low, high float64)
}

func (t *test) below(shift float64) float64 {
	_, b := t.chances(shift)
	return b
}

// test of the pairs so far, that can be as sure as share.
func (p *Pairs) test(share float64) *test {
	if p.Parts == 0 {
		return signTest(p.worse())
	}
	const finer = 5 // the least chance of drawn ways is a fifth of what decides
	now := p.parts  // what is asked later is of these pairs, though more have come
	ways := now.ways(p.random, int(math.Ceil(finer/share)))
	t := &test{middle: now.differences(0).ratio()}
	t.chances = func(shift float64) (float64, float64) { return now.ask(ways, shift) }
	t.interval = t.search
	return t
}

// search finds the interval: the shifts with which what was seen is likely enough.
func (t *test) search(share float64) (low, high float64) {
	const nearest, farthest, steps = 1.0 / 64, 1.0, 6 // to a 64th of the interval's half
	edge := func(sign float64, unlikely func(shift float64) bool) float64 {
		in, out := 0.0, nearest
		for !unlikely(t.middle + sign*out) {
			if in, out = out, 2*out; out > farthest {
				return sign * math.Inf(1)
			}
		}
		for range steps {
			if mid := (in + out) / 2; unlikely(t.middle + sign*mid) {
				out = mid
			} else {
				in = mid
			}
		}
		return t.middle + sign*out
	}
	low = edge(-1, func(shift float64) bool { above, _ := t.chances(shift); return above < share })
	high = edge(1, func(shift float64) bool { return t.below(shift) < share })
	return low, high
}

// signTest is of one logarithm a pair; the interval is that of the median by order statistics.
func signTest(logs []float64) *test {
	return &test{
		middle:  median(logs),
		chances: func(shift float64) (float64, float64) { return above(logs, shift), below(logs, shift) },
		interval: func(share float64) (float64, float64) {
			ci := stats.QuantileCI(len(logs), 0.5, 1-2*share)
			_, low, high := ci.SampleCI(stats.Sample{Xs: slices.Sorted(slices.Values(logs)), Sorted: true})
			return low, high
		},
	}
}

// worse are the logarithms, turned round where more is better: what lies above 0 is worse.
func (p *Pairs) worse() []float64 {
	logs := slices.Clone(p.Logs)
	if p.Higher {
		negate(logs)
	}
	return logs
}

// above is the p of a one-sided sign test: how likely so many pairs lie above centre if either side of it is as likely. What lies
// on it says nothing.
func above(logs []float64, centre float64) float64 {
	over, n := 0, 0
	for _, l := range logs {
		if l != centre {
			n++
		}
		if l > centre {
			over++
		}
	}
	return stats.BinomialDist{N: n, P: 0.5}.CDF(float64(n - over)) // as many or more over is as many or fewer under
}

// below is above turned round.
func below(logs []float64, centre float64) float64 {
	turned := slices.Clone(logs)
	negate(turned)
	return above(turned, -centre)
}

// End notes how long the pairs took, how sure the ratio is and, if they have not decided, how long they would have had to go on: until
// the distance of what was seen to the nearest verdict is what the test sees in four of five times. What seems better by the limit, and may
// be by chance, passes now: it is surely not worse.
func (p *Pairs) End(took time.Duration) {
	p.TookNs = int64(took)
	t, share := p.last, p.share(p.Looks)
	if t == nil {
		return
	}
	low, high := t.interval(share)
	if !math.IsInf(low, 0) && !math.IsInf(high, 0) { // a few pairs bound nothing
		p.Low, p.High = results.Known(math.Exp(min(p.turned(low), p.turned(high)))), results.Known(math.Exp(max(p.turned(low), p.turned(high))))
	}
	mid, limit := t.middle, math.Log1p(p.Limit)
	if p.Verdict == Inconclusive && mid <= -limit && t.below(limit) < share {
		p.Verdict, p.Reason = Pass, ""
	}
	if p.Verdict != Inconclusive || len(p.Logs) < 3 {
		return
	}
	distance := limit - mid // to pass, below the limit
	if mid >= limit {
		distance = mid // to be worse
	} else if mid <= -limit {
		distance = -mid
	}
	z := stats.InvCDF(stats.StdNormal)
	need := math.Pow((z(1-p.share(p.Looks+1))+z(0.8))*p.deviation(low, high, z(1-share))/distance, 2)
	need = max(math.Ceil(need), float64(len(p.Logs)+1))
	if each := float64(took) / float64(len(p.Logs)); need*each < math.MaxInt64/2 {
		p.NeedNs = new(int64(need * each))
	}
}

// deviation is that of one pair's part in the middle, as if noise were normal: from the interval, which is z deviations of the middle to
// either side, or from the quartiles of the pairs, as outliers do not count. A median of normal noise varies by sqrt(π/2) more than a mean.
func (p *Pairs) deviation(low, high, z float64) float64 {
	if p.Parts > 0 && !math.IsInf(high-low, 0) {
		return (high - low) / 2 / z * math.Sqrt(float64(len(p.Logs)))
	}
	return math.Sqrt(math.Pi/2) * stats.Sample{Xs: p.Logs}.IQR() / 1.349
}

// text writes what the pairs say; nothing without pairs.
func (p *Pairs) text(w *strings.Builder) {
	if p == nil {
		return
	}
	name := p.Metric
	if p.Unit {
		name += " / unit"
	}
	fmt.Fprintf(w, "  %s: %s", name, p.Verdict)
	if p.Reason != "" {
		fmt.Fprintf(w, " (%s)", p.Reason)
	}
	if p.Ratio != nil && p.Low != nil && p.High != nil {
		fmt.Fprintf(w, "\n  %s, between %s and %s with a confidence of %.1f %%, p = %.2g, limit %s", percent(*p.Ratio), percent(*p.Low), percent(*p.High), 100*p.Level, *p.P, percent(1+p.Limit))
	}
	if p.Parts > 0 {
		fmt.Fprintf(w, "\n  by how the two of a pair differ in each of %d parts", p.Parts)
	}
	fmt.Fprintf(w, "\n  %d pairs, %d looks, %s, seed %d\n", len(p.Logs), p.Looks, results.Nanoseconds(float64(p.TookNs)), p.Seed)
	if p.NeedNs != nil {
		fmt.Fprintf(w, "  with this noise --budget %s would decide in four of five times\n", budget(*p.NeedNs))
	}
}

// budget rounds a time up to what a flag takes.
func budget(ns int64) string {
	d := time.Duration(ns)
	if d > 10*time.Minute {
		return fmt.Sprintf("%dm", int64(math.Ceil(d.Minutes())))
	}
	return fmt.Sprintf("%ds", int64(math.Ceil(d.Seconds())))
}

// Decided puts a test's verdict in place of what Records says of its metric.
func (c *Comparison) Decided(p *Pairs, strict bool) {
	for i := range c.Candidates {
		n := &c.Candidates[i]
		n.Pairs = p
		m := measure(&c.Base, &n.Build, Rule{Metric: mustMetric(p.Metric), Class: Time, Limit: Limit{Ratio: p.Limit}, Unit: p.Unit})
		m.P, m.Verdict, m.Reason = p.P, p.Verdict, p.Reason
		if p.Ratio != nil {
			m.Ratio = p.Ratio
		}
		n.add(m)
	}
	c.Weigh(strict)
}

// add puts a verdict on a metric in place of what else is said of it.
func (c *Comparison) add(m Result, strict bool) {
	for i := range c.Candidates {
		c.Candidates[i].add(m)
	}
	c.Weigh(strict)
}

func (n *Candidate) add(m Result) {
	if n.Verdict == Incomparable {
		return
	}
	n.Metrics = append(slices.DeleteFunc(n.Metrics, func(o Result) bool { return o.Metric == m.Metric }), m)
	n.Weigh()
}
