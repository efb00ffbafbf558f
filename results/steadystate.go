package results

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// SteadyState says whether what was measured had settled: no metric drifts or departs from its median by more than its
// limit, and buckets came and went.
type SteadyState struct {
	Required       bool              `json:"required"`
	Attained       bool              `json:"attained"`
	Criteria       []SteadyCriterion `json:"criteria"`
	Samples        int64             `json:"samples"`
	BucketsSealed  int64             `json:"buckets_sealed"` // while measuring
	BucketsDropped int64             `json:"buckets_dropped"`
	Rotations      *float64          `json:"rotations"` // of the ring: buckets that were sealed and dropped, of all it has
	Reasons        []string          `json:"reasons"`   // why it was not attained
}

// SteadyCriterion is one metric's test: its slope and its deviation must stay within Limit. All three are shares of the
// median. Slope is the rise of the line through the samples over the whole phase, Deviation the greatest distance between the
// median of an eighth of the phase and that of all of it. Null is what could not be said, and not attained; with a null Limit
// the metric is told and not judged.
type SteadyCriterion struct {
	Metric    string   `json:"metric"`
	Slope     *float64 `json:"slope"`
	Deviation *float64 `json:"deviation"`
	Limit     *float64 `json:"limit"`
}

// Held says whether the metric kept within its limit.
func (c *SteadyCriterion) Held() bool {
	within := func(v *float64) bool { return v != nil && math.Abs(*v) <= *c.Limit }
	return c.Limit == nil || within(c.Slope) && within(c.Deviation)
}

// SteadySeries is one metric over the measured phase: values at times in seconds, one each, in order.
type SteadySeries struct {
	Metric          string
	Seconds, Values []float64
	Limit           float64 // share of the median; 0: not judged
}

const (
	// steadyParts is how many parts a phase is looked at in, steadySamples how many samples it must have: three a part.
	steadyParts   = 8
	steadySamples = 3 * steadyParts
	// steadyBuckets is how many buckets must be sealed, and dropped, while measuring.
	steadyBuckets = 3
)

// TestSteadyState judges the series of a measured phase in which buckets were sealed and dropped, of a ring of some slots.
func TestSteadyState(required bool, series []SteadySeries, sealed, dropped int64, slots int) *SteadyState {
	s := &SteadyState{Required: required, BucketsSealed: sealed, BucketsDropped: dropped,
		Rotations: Ratio(min(sealed, dropped), int64(slots)), Reasons: []string{}}
	if len(series) > 0 {
		s.Samples = int64(len(series[0].Values))
	}
	if s.Samples < steadySamples {
		s.fault("%s samples of the measured phase, %d are needed: measure longer", Count(s.Samples), steadySamples)
	}
	for i := range series {
		c := series[i].test()
		s.Criteria = append(s.Criteria, c)
		if s.Samples >= steadySamples && !c.Held() {
			s.fault("%s drifts by %s and departs from its median by %s, of which %s is allowed", c.Metric, orDash(c.Slope, signed), orDash(c.Deviation, Percent),
				Percent(*c.Limit))
		}
	}
	if min(sealed, dropped) < steadyBuckets {
		s.fault("%s buckets were sealed and %s dropped while measuring, %d are needed: measure more B", Count(sealed), Count(dropped), steadyBuckets)
	}
	s.Attained = len(s.Reasons) == 0
	return s
}

// why is what the verdict says behind it.
func (s *SteadyState) why() string {
	if len(s.Reasons) == 0 {
		return ""
	}
	return ": " + strings.Join(s.Reasons, "; ")
}

func (s *SteadyState) fault(format string, args ...any) {
	s.Reasons = append(s.Reasons, fmt.Sprintf(format, args...))
}

func (s *SteadySeries) test() SteadyCriterion {
	c := SteadyCriterion{Metric: s.Metric}
	if s.Limit > 0 {
		c.Limit = Known(s.Limit)
	}
	n := len(s.Values)
	if n < steadySamples {
		return c
	}
	mid := median(slices.Clone(s.Values))
	if slope, ok := TheilSen(s.Seconds, s.Values); ok {
		c.Slope = RatioF(slope*(s.Seconds[n-1]-s.Seconds[0]), mid)
	}
	far := 0.0
	for part := range steadyParts {
		values := s.Values[n*part/steadyParts : n*(part+1)/steadyParts]
		far = max(far, math.Abs(median(slices.Clone(values))-mid))
	}
	c.Deviation = RatioF(far, mid)
	return c
}

// Rotation is what batches cost the task's goroutine while a bucket rotated (from the start of its seal until its final
// filter was in) and otherwise. All of it is of the measured phase; of several tasks the times are added.
type Rotation struct {
	Rotations      int64    `json:"rotations"` // buckets sealed
	BatchesInside  int64    `json:"batches_inside"`
	BatchesOutside int64    `json:"batches_outside"`
	P99InsideNs    *int64   `json:"p99_inside_ns"` // of a batch; null without one
	P99OutsideNs   *int64   `json:"p99_outside_ns"`
	P99Ratio       *float64 `json:"p99_ratio"` // inside ÷ outside
	Inside         *Summary `json:"inside"`
	Outside        *Summary `json:"outside"`
}

// NewRotation makes one of both summaries, which may be nil.
func NewRotation(rotations int64, inside, outside *Summary) *Rotation {
	r := &Rotation{Rotations: rotations, Inside: inside, Outside: outside}
	if inside != nil {
		r.BatchesInside, r.P99InsideNs = inside.Count, &inside.P99Ns
	}
	if outside != nil {
		r.BatchesOutside, r.P99OutsideNs = outside.Count, &outside.P99Ns
	}
	if inside != nil && outside != nil {
		r.P99Ratio = Ratio(inside.P99Ns, outside.P99Ns)
	}
	return r
}
