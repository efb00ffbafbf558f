package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/aclements/go-moremath/mathx"
	"github.com/aclements/go-moremath/stats"
	"golang.org/x/perf/benchmath"

	"joinbench/results"
)

// alpha is the share of comparisons of equal builds that may be called worse or better by time, over all such metrics. Memory has its own.
const alpha = 0.05

// canTell says whether the rank test of so many runs can be significant at all: its least p is that of the two orders, among all,
// in which each run of one build lies before each of the other.
func canTell(old, fresh int, alpha float64) bool {
	return 2/mathx.Choose(old+fresh, old) < alpha
}

// fewest is how many runs of each build can tell.
func fewest(alpha float64) int {
	n := 1
	for !canTell(n, n, alpha) {
		n++
	}
	return n
}

// Result is the verdict on a metric. Base and New are medians over the runs, in the unit of the metric; Ratio is of what
// was compared, which Unit divides by cost.unit_ns.
type Result struct {
	Metric  string   `json:"metric"`
	Class   Class    `json:"class"`
	Unit    bool     `json:"by_unit"`
	Base    *float64 `json:"base"`
	New     *float64 `json:"new"`
	Low     *float64 `json:"new_low"` // the range of the new build's runs
	High    *float64 `json:"new_high"`
	Ratio   *float64 `json:"ratio"`
	Limit   float64  `json:"limit_ratio"`
	Floor   float64  `json:"limit_floor"`
	Noise   float64  `json:"noise_ratio"` // the spread among the base's runs
	P       *float64 `json:"p"`           // of the test, null where none was made
	Verdict string   `json:"verdict"`
	Reason  string   `json:"reason"`
}

// values are the metric's in each run that knows it; compared are those divided by the unit.
func (b *Build) values(r Rule) (plain, compared []float64) {
	for _, rec := range b.records {
		v, _ := r.Metric.Value(rec)
		if v == nil {
			continue
		}
		w := *v
		if r.Unit {
			u, _ := unitMetric.Value(rec)
			if u == nil || *u <= 0 {
				continue
			}
			w /= *u
		}
		plain, compared = append(plain, *v), append(compared, w)
	}
	return plain, compared
}

// unit is the median of cost.unit_ns over the runs that know it.
func (b *Build) unit() float64 {
	_, units := b.values(Rule{Metric: unitMetric})
	return median(units)
}

// measure fills in what the runs say, without a verdict.
func measure(base, b *Build, r Rule) Result {
	m := Result{Metric: r.Metric.String(), Class: r.Class, Unit: r.Unit, Limit: r.Limit.Ratio, Floor: r.Limit.Floor}
	oldPlain, old := base.values(r)
	freshPlain, fresh := b.values(r)
	if len(old) > 0 {
		m.Base = new(median(oldPlain))
		m.Noise = spread(old)
	}
	if len(fresh) > 0 {
		m.New = new(median(freshPlain))
		low, high := stats.Bounds(freshPlain)
		m.Low, m.High = &low, &high
	}
	if len(old) > 0 && len(fresh) > 0 {
		m.Ratio = results.RatioF(median(fresh), median(old))
		if m.Ratio == nil && median(fresh) == 0 {
			m.Ratio = new(1.0) // 0 and 0
		}
	}
	return m
}

func (m *Result) decide(base, b *Build, r Rule, alpha float64) {
	_, old := base.values(r)
	_, fresh := b.values(r)
	if r.Higher {
		negate(old)
		negate(fresh)
	}
	if r.Unit && r.Limit.Floor > 0 { // what is compared is in units of the machine, and the floor in ns
		r.Limit.Floor /= base.unit()
	}
	switch r.Class {
	case Count, Allocs:
		m.exact(old, fresh, r)
	case Memory:
		m.byRatio(old, fresh, r)
	default:
		m.byTest(old, fresh, r, alpha)
	}
}

// exact: beyond what the runs of the base have among themselves, and beyond the limit if there is one, anything more is
// worse. Each run of the new build counts, not their median.
func (m *Result) exact(old, fresh []float64, r Rule) {
	lowOld, highOld := stats.Bounds(old)
	low, high := stats.Bounds(fresh)
	room := max(r.Limit.Ratio*math.Abs(median(old)), r.Limit.Floor)
	if r.Class == Allocs { // a little noise on either side must not add up
		low, high = median(fresh), median(fresh)
		lowOld, highOld = median(old), median(old)
		room = max(room, highOld*m.Noise)
	}
	switch {
	case high > highOld+room:
		m.Verdict, m.Reason = Regression, "more than before"
	case low < lowOld-room && r.Same:
		m.Verdict, m.Reason = Regression, "not what the same workload gave before"
	case low < lowOld-room:
		m.Verdict = Improvement
	default:
		m.Verdict = Pass
	}
}

// memoryAlpha is how unlikely by chance a difference of memory must be where there are runs enough to say. Peaks depend on when the garbage
// collector ran: 480 runs of one build in profile gate had 36 to 44 MB, and medians of eight differed by up to 7 %.
const memoryAlpha = 0.01

// byRatio: the medians differ by more than the limit, and chance does not explain it; of too few runs to say that, by more than twice the
// spread of the base, which a single run does not have.
func (m *Result) byRatio(old, fresh []float64, r Rule) {
	mid, now := median(old), median(fresh)
	room := max(r.Limit.Ratio*math.Abs(mid), r.Limit.Floor)
	m.Verdict = Pass
	if math.Abs(now-mid) <= room {
		return
	}
	noise := math.Abs(now-mid) <= 2*m.Noise*math.Abs(mid)
	if canTell(len(old), len(fresh), memoryAlpha) {
		m.P = new(chance(old, fresh, memoryAlpha))
		noise = *m.P >= memoryAlpha
	}
	if noise {
		m.Verdict, m.Reason = Inconclusive, "beyond the limit, but the runs differ as much among themselves"
		return
	}
	m.Verdict = Improvement
	if now > mid {
		m.Verdict, m.Reason = Regression, "beyond the limit"
	}
}

// chance is the p of a U test of two samples.
func chance(old, fresh []float64, alpha float64) float64 {
	sample := func(v []float64) *benchmath.Sample {
		return benchmath.NewSample(slices.Clone(v), &benchmath.Thresholds{CompareAlpha: alpha})
	}
	return benchmath.AssumeNothing.Compare(sample(old), sample(fresh)).P
}

// byTest: worse is what the U test tells apart from the base and what differs by more than the limit; passed is what the
// test tells apart from a build that is worse by the limit.
func (m *Result) byTest(old, fresh []float64, r Rule, alpha float64) {
	mid, now := median(old), median(fresh)
	room := max(r.Limit.Ratio*math.Abs(mid), r.Limit.Floor)
	if !canTell(len(old), len(fresh), alpha) {
		need := fewest(alpha)
		m.Verdict, m.Reason = Unjudged, fmt.Sprintf("%d and %d runs, and a test needs %d and %d", len(old), len(fresh), need, need)
		if now > mid+room {
			m.Verdict = Inconclusive
			m.Reason = "beyond the limit, but " + m.Reason + " (or use ab)"
		}
		return
	}
	m.P = new(chance(old, fresh, alpha))
	apart := *m.P < alpha
	atLimit := make([]float64, len(old))
	for i, v := range old {
		atLimit[i] = v + max(r.Limit.Ratio*math.Abs(v), r.Limit.Floor)
	}
	switch {
	case apart && now > mid+room:
		m.Verdict, m.Reason = Regression, "beyond the limit, and chance does not explain it"
	case apart && now < mid-room:
		m.Verdict = Improvement
	case now <= mid+room && chance(atLimit, fresh, alpha) < alpha:
		m.Verdict = Pass
	default:
		m.Verdict, m.Reason = Inconclusive, "the runs differ too much among themselves to tell"
	}
}

// sentence says what a metric did.
func (m *Result) sentence() string {
	text := m.Metric
	if m.Base != nil && m.New != nil {
		text += fmt.Sprintf(": %s → %s", number(*m.Base), number(*m.New))
	}
	if m.Ratio != nil {
		text += " (" + percent(*m.Ratio) + change(m.Unit) + ")"
	}
	if m.Reason != "" {
		text += ": " + m.Reason
	}
	return text
}

func change(unit bool) string {
	if unit {
		return " of its multiple of the machine's unit"
	}
	return ""
}

func negate(v []float64) {
	for i := range v {
		v[i] = -v[i]
	}
}

func median(v []float64) float64 {
	return (&stats.Sample{Xs: v}).Quantile(0.5)
}

// spread is the range among the runs in relation to their median, 0 of one run.
func spread(v []float64) float64 {
	low, high := stats.Bounds(v)
	if s := results.RatioF(high-low, math.Abs(median(v))); s != nil {
		return *s
	}
	return 0
}
