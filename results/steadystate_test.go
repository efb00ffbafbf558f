package results

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// madeUp is a series of n samples half a second apart, around 1000, whose value f(x) tells with x from 0 to 1, with noise.
func madeUp(rnd *rand.Rand, n int, noise float64, f func(x float64) float64) SteadySeries {
	s := SteadySeries{Metric: "made_up", Limit: 0.1}
	for i := range n {
		s.Seconds = append(s.Seconds, 20+float64(i)/2)
		s.Values = append(s.Values, 1000*f(float64(i)/float64(n-1))*(1+noise*(2*rnd.Float64()-1)))
	}
	return s
}

// TestSteadyStateOfMadeUpSamples: what is steady is called so, noise, teeth and a hiccup included; a leak, a slope, a cliff,
// a step and a wave are not.
func TestSteadyStateOfMadeUpSamples(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	saw := func(x float64) float64 { return 1 + 0.03*(2*(4*x-math.Floor(4*x))-1) }
	for _, c := range []struct {
		name   string
		noise  float64
		f      func(x float64) float64
		steady bool
	}{
		{"flat", 0, func(float64) float64 { return 1 }, true},
		{"noise", 0.15, func(float64) float64 { return 1 }, true},
		{"four teeth of 6 %", 0.01, saw, true},
		{"a hiccup", 0.02, func(x float64) float64 {
			if x > 0.4 && x < 0.44 {
				return 0.05
			}
			return 1
		}, true},
		{"a small drift", 0.02, func(x float64) float64 { return 1 + 0.06*x }, true},
		{"a leak", 0.02, func(x float64) float64 { return 1 + 0.15*x }, false},
		{"a slope", 0.02, func(x float64) float64 { return 1 - 0.15*x }, false},
		{"a cliff near the end", 0.02, func(x float64) float64 {
			if x > 0.85 {
				return 0.5
			}
			return 1
		}, false},
		{"a slow start", 0.02, func(x float64) float64 {
			if x < 0.15 {
				return 0.7
			}
			return 1
		}, false},
		{"one great wave", 0.02, func(x float64) float64 { return 1 + 0.2*math.Sin(2*math.Pi*x) }, false},
		{"nothing at all", 0, func(float64) float64 { return 0 }, false},
	} {
		for _, n := range []int{steadySamples, 200, 601} {
			s := TestSteadyState(true, []SteadySeries{madeUp(rnd, n, c.noise, c.f)}, 3, 4, 16)
			if n == steadySamples && c.noise > 0.1 {
				continue // of three samples a part chance makes what it likes
			}
			if s.Attained != c.steady || s.Attained != s.Criteria[0].Held() || s.Attained != (len(s.Reasons) == 0) || s.Samples != int64(n) {
				t.Errorf("%s, %d samples: attained %v, %v, slope %s, deviation %s", c.name, n, s.Attained, s.Reasons, orDash(s.Criteria[0].Slope, plain),
					orDash(s.Criteria[0].Deviation, plain))
			}
		}
	}
}

// TestSteadyStateNeedsSamplesAndBuckets: too short a phase says nothing, and one in which no bucket came and went neither.
func TestSteadyStateNeedsSamplesAndBuckets(t *testing.T) {
	flat := func(n int) []SteadySeries {
		return []SteadySeries{madeUp(rand.New(rand.NewPCG(1, 1)), n, 0, func(float64) float64 { return 1 })}
	}
	for _, c := range []struct {
		samples         int
		sealed, dropped int64
		want            string
	}{
		{steadySamples, 3, 3, ""},
		{steadySamples - 1, 3, 3, "23 samples of the measured phase, 24 are needed"},
		{0, 3, 3, "0 samples"},
		{steadySamples, 2, 3, "2 buckets were sealed and 3 dropped while measuring, 3 are needed"},
		{steadySamples, 20, 2, "20 buckets were sealed and 2 dropped"},
	} {
		s := TestSteadyState(true, flat(c.samples), c.sealed, c.dropped, 16)
		if text := strings.Join(s.Reasons, "; "); s.Attained != (c.want == "") || !strings.Contains(text, c.want) {
			t.Errorf("%d samples, %d sealed, %d dropped: %v, %s; want %q", c.samples, c.sealed, c.dropped, s.Attained, text, c.want)
		}
		if want := float64(min(c.sealed, c.dropped)) / 16; *s.Rotations != want {
			t.Errorf("%v rotations, want %v", *s.Rotations, want)
		}
		rec := exampleRecord()
		rec.SteadyState = s
		if v := Judge(rec); (v.ExitCode == ExitInvalid) != (c.want != "") || c.want != "" && !strings.Contains(v.Reasons[0], c.want) {
			t.Errorf("verdict %+v, want %q", v, c.want)
		}
		if s.Required = false; Judge(rec).Status != StatusOK {
			t.Errorf("not required, and the verdict is %+v", Judge(rec))
		}
	}
}
