package pipeline

import (
	"fmt"
	"math"
	"testing"
	"time"

	"joinbench/core"
)

// TestFrozenEngine: an engine that stands still for a second in five makes B wait from 0 to 1 s in equal parts, a fifth of
// all: so the 90th percentile is 0.5 s, the 95th 0.75 s, the 99th 0.95 s. A loop that waits for the engine would hide that.
func TestFrozenEngine(t *testing.T) {
	const rate, seconds = 8_000, 5
	for _, arrival := range []Arrival{Uniform, Poisson} {
		for _, partitions := range []int{1, 3, 8} {
			for _, batch := range []int{256, 16384} {
				t.Run(fmt.Sprintf("%s/%d/%d", arrival, partitions, batch), func(t *testing.T) {
					t.Parallel()
					r := newPlayedRun(t, Pace{rate, arrival, Queue}, rate*seconds, partitions, batch)
					frozen := false
					r.before = func(r *playedRun) {
						if !frozen && r.started && r.clock.now() > r.pace.plan.start+2e9 {
							frozen = true
							r.clock.pass(time.Second)
						}
					}
					r.run()
					h := r.pace.lat.response.total
					for p, want := range map[float64]float64{90: 0.5, 95: 0.75, 99: 0.95} {
						if got := float64(h.ValueAtPercentile(p)) / 1e9; math.Abs(got-want) > 0.05*want {
							t.Errorf("p%g: %.3f s, in theory %.3f", p, got, want)
						}
					}
					// Half of all must not have felt it, and whoever looks at service alone sees one bad batch.
					if p50, service := h.ValueAtPercentile(50), r.pace.lat.service.ValueAtPercentile(99); p50 > 2e6 || service > 5e7 {
						t.Errorf("response p50 %v, service p99 %v", time.Duration(p50), time.Duration(service))
					}
					if lag := r.pace.lat.lag.total.ValueAtPercentile(99); lag > 1e6 {
						t.Errorf("lag p99 %v: the source was not to blame", time.Duration(lag))
					}
				})
			}
		}
	}
}

// TestDroppedWhileFrozen: with a queue of one batch, what arrives in a second's freeze beyond that is dropped, counted, and
// missed by nobody.
func TestDroppedWhileFrozen(t *testing.T) {
	const rate, batch = 20_000, 4096
	for _, partitions := range []int{1, 3} {
		r := newPlayedRun(t, Pace{rate, Uniform, Drop}, 3*rate, partitions, batch)
		frozen := false
		r.before = func(r *playedRun) {
			if !frozen && r.started && r.clock.now() > r.pace.plan.start+1e9 {
				frozen = true
				r.clock.pass(time.Second)
			}
		}
		r.run()
		if want := int64(rate - batch); r.pace.dropped < want-100 || r.pace.dropped > want+100 {
			t.Errorf("%d partitions: %d dropped, %d come in a second and %d may wait", partitions, r.pace.dropped, rate, batch)
		}
		if len(r.pace.skipped.list) == 0 {
			t.Error("no B with a partner was dropped: the test shows nothing")
		}
		if longest := r.pace.lat.response.total.Max(); longest > 1.1e9 {
			t.Errorf("longest response %v", time.Duration(longest))
		}
	}
}

// TestRateFromTheFirstSecond: the first second has the rate, and no B is taken before its time.
func TestRateFromTheFirstSecond(t *testing.T) {
	const rate = 20_000
	for _, arrival := range []Arrival{Uniform, Poisson} {
		r := newPlayedRun(t, Pace{rate, arrival, Queue}, 2*rate, 3, 4096)
		var inFirst int64
		observe := r.engine.Observe
		r.engine.Observe = func(e *core.Engine) error {
			err := observe(e)
			for i, q := range r.pace.parts[core.B] {
				if k := e.Place(core.B, i); k > 0 && r.started {
					if at := r.pace.plan.at(q.index(k - 1)); at > r.clock.now() {
						t.Fatalf("B %d was taken %v too soon", q.index(k-1), time.Duration(at-r.clock.now()))
					}
				}
			}
			if r.started && r.clock.now() <= r.pace.plan.start+1e9 {
				inFirst = r.pace.committed
			}
			return err
		}
		r.run()
		if math.Abs(float64(inFirst)-rate) > rate/100 {
			t.Errorf("%s: %d B in the first second, %d asked for", arrival, inFirst, rate)
		}
	}
}

// TestBeginAnew: a run that warms up empties its queue before it is measured, and the schedule that begins then owes
// nothing: no burst, whatever happened before and between.
func TestBeginAnew(t *testing.T) {
	const rate = 20_000
	for _, catchUp := range []CatchUp{Queue, Drop} {
		r := newPlayedRun(t, Pace{rate, Uniform, catchUp}, 2*rate, 2, 1024)
		r.warm = rate
		r.before = func(r *playedRun) {
			if r.started && r.clock.now() > r.pace.plan.start+9e8 && r.pace.pauseAt != never {
				r.clock.pass(time.Second) // so that many are due when warming ends
			}
		}
		anew := false
		r.warmed = func() error {
			anew = true
			c := r.engine.Counters()
			if n := int64(c.Read(core.B)) + r.pace.dropped; n != r.warm {
				t.Errorf("%s: %d B were read or dropped, %d were to warm up", catchUp, n, r.warm)
			}
			r.clock.pass(time.Second) // for which nobody asks
			r.pace.begin(0)
			return nil
		}
		if err := r.engine.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.pace.lat.response.fold()
		measured := r.pace.lat.response.total
		if n := measured.TotalCount(); !anew || n != rate {
			t.Errorf("%s: %d of %d B were measured", catchUp, n, rate)
		}
		if worst := measured.Max(); worst > 2e6 || r.pace.dropped > 0 {
			t.Errorf("%s: response up to %v, %d dropped: a burst", catchUp, time.Duration(worst), r.pace.dropped)
		}
		if (catchUp == Drop) != (r.pace.earlier > 0) {
			t.Errorf("%s: %d were dropped while warming up", catchUp, r.pace.earlier)
		}
		r.judge()
	}
}

// TestAwaitComesBack: the wait for B that are due later ends after the time that the engine gives it, with nothing to hand over, and goes
// on from there to the next B if it gives more.
func TestAwaitComesBack(t *testing.T) {
	r := newPlayedRun(t, Pace{Rate: 100, Arrival: Uniform, CatchUp: Queue}, 4096, 1, 64)
	for _, err := range []error{r.still(), r.pace.Await(t.Context(), false, -1)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		most, until time.Duration // of the clock
		has         bool
	}{{4 * time.Millisecond, 4 * time.Millisecond, false}, {3 * time.Millisecond, 7 * time.Millisecond, false},
		{time.Hour, 10 * time.Millisecond, true}, {-1, 20 * time.Millisecond, true}} {
		for { // everything that is due
			chunk, err := r.pace.Next(core.B, 0)
			if err != nil {
				break
			}
			r.pace.Done(chunk)
		}
		if err := r.pace.Await(t.Context(), true, c.most); err != nil {
			t.Fatal(err)
		}
		if now := time.Duration(r.clock.now()); now != c.until {
			t.Errorf("at most %v: it came back at %v, want %v", c.most, now, c.until)
		}
		if _, err := r.pace.Next(core.B, 0); (err == nil) != c.has {
			t.Errorf("at most %v: Next says %v", c.most, err)
		}
	}
}
