package pipeline

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestSchedule: times rise, due is the inverse of at, any order of questions gives the same answers, and the rate is kept
// however far away.
func TestSchedule(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	for range 200 {
		arrival := Uniform
		if r.IntN(2) == 1 {
			arrival = Poisson
		}
		rate := math.Exp(r.Float64()*22 - 2) // 0.1 to 500 M/s
		first := r.Int64N(1e12)
		s := schedule{arrival: arrival, rate: rate, seed: r.Uint64(), first: first, start: r.Int64N(1e15)}
		other := schedule{arrival: arrival, rate: rate, seed: s.seed, first: first, start: s.start}
		for range 20 {
			most := min(1e9, int64(rate*1e6))
			j := first + r.Int64N(most+1)
			at := s.at(j)
			if again := other.at(j); again != at {
				t.Fatalf("%s, %g/s: B %d at %d, and asked in another order at %d", arrival, rate, j-first, at, again)
			}
			if next := s.at(j + 1); next < at {
				t.Fatalf("%s, %g/s: B %d at %d, the next at %d", arrival, rate, j-first, at, next)
			}
			if due := s.due(at); due <= j || s.at(due-1) > at {
				t.Fatalf("%s, %g/s: B %d comes at %d, and due then is all below %d", arrival, rate, j-first, at, due-first)
			}
			if due := s.due(at - 1); due > j && s.at(j) > at-1 {
				t.Fatalf("%s, %g/s: B %d is due before its time", arrival, rate, j-first)
			}
			slack := 2.0
			if arrival == Poisson {
				slack = poissonBlock
			}
			if ideal := float64(j-first) / rate * 1e9; math.Abs(float64(at-s.start)-ideal) > slack/rate*1e9+10 {
				t.Fatalf("%s, %g/s: B %d is %g ns off", arrival, rate, j-first, float64(at-s.start)-ideal)
			}
		}
		if due := s.due(s.start - 1); due != first {
			t.Fatalf("%d B are due before the start", due-first)
		}
	}
}

// TestPoissonGaps: gaps are exponentially distributed: mean and standard deviation are one over the rate, and one in e gaps
// is longer than that.
func TestPoissonGaps(t *testing.T) {
	const n, rate = 1 << 17, 1000.0
	s := schedule{arrival: Poisson, rate: rate, seed: 42}
	var sum, squares, longer float64
	for j := range int64(n) {
		gap := float64(s.at(j+1)-s.at(j)) / 1e9 * rate
		sum += gap
		squares += gap * gap
		if gap > 1 {
			longer++
		}
	}
	mean := sum / n
	deviation := math.Sqrt(squares/n - mean*mean)
	// The standard errors are 0.003, 0.004 and 0.0013; the seed is fixed.
	if math.Abs(mean-1) > 0.01 || math.Abs(deviation-1) > 0.02 || math.Abs(longer/n-1/math.E) > 0.006 {
		t.Errorf("mean %.4f, deviation %.4f, longer than the mean %.4f; want 1, 1, %.4f", mean, deviation, longer/n, 1/math.E)
	}
}

// TestFalling: what is counted in runs is what counting one by one gives, but for the precision of the histogram.
func TestFalling(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 2))
	t.Logf("seed %d", seed)
	for range 200 {
		s := schedule{arrival: Uniform, rate: math.Exp(r.Float64()*14 + 2), seed: seed}
		if r.IntN(2) == 1 {
			s.arrival = Poisson
		}
		j, step, n := r.Int64N(1e6), 1+r.Int64N(8), 1+r.Int64N(20_000)
		end := s.at(j+n*step) + int64(float64(r.Int64N(n+1))/s.rate*1e9) - int64(float64(r.Int64N(n+1))/s.rate*1e9)
		f := newFalling()
		f.fall(&s, j, step, n, end)
		f.fold()
		one := newHistogram()
		for k := range n {
			_ = one.RecordValue(min(max(0, end-s.at(j+k*step)), mostNs))
		}
		if f.total.TotalCount() != n || f.recent.TotalCount() != 0 {
			t.Fatalf("%d of %d are recorded", f.total.TotalCount(), n)
		}
		for _, p := range []float64{0, 10, 50, 90, 99, 99.9, 100} {
			got, want := f.total.ValueAtPercentile(p), one.ValueAtPercentile(p)
			if math.Abs(float64(got-want)) > 0.005*float64(want)+1 {
				t.Fatalf("%s, %g/s, %d B in steps of %d: p%g is %d, one by one %d", s.arrival, s.rate, n, step, p, got, want)
			}
		}
	}
}

// BenchmarkFalling is what recording costs a B, in a batch of 4,096 that built up while the one before was joined.
func BenchmarkFalling(b *testing.B) {
	for _, arrival := range []Arrival{Uniform, Poisson} {
		b.Run(string(arrival), func(b *testing.B) {
			const n = 4096
			s := schedule{arrival: arrival, rate: 2e6}
			f := newFalling()
			b.ReportAllocs()
			j := int64(0)
			for b.Loop() {
				f.fall(&s, j, 1, n, s.start+s.after(j+2*n))
				j += n
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/n, "ns/B")
		})
	}
}
