package pipeline

import (
	"context"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"joinbench/config"
	"joinbench/core"
	"joinbench/results"
)

// pacedBench runs the whole benchmark at a rate, with hooks.
func pacedBench(t *testing.T, pace Pace, bEvents int64, batch int, h func(*bench)) *results.Record {
	t.Helper()
	profile, err := config.ParseProfile([]byte(pacedProfile), "paced")
	if err != nil {
		t.Fatal(err)
	}
	profile.Load.BEvents, profile.Load.Batch, profile.Load.Partitions = bEvents, batch, 2
	b, err := newBench(BenchConfig{Profile: profile, Name: "paced", Pace: &pace, Summary: true})
	if err != nil {
		t.Fatal(err)
	}
	h(b)
	rec, err := b.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.close(); err != nil {
		t.Fatal(err)
	}
	if tr := rec.Join.Truth; tr.Missing+tr.Spurious+tr.Duplicated != 0 || tr.ExpectedMatches == 0 {
		t.Errorf("truth %+v", tr)
	}
	if rec.Latency == nil || rec.Latency.Response.Count != bEvents || rec.Latency.Service.Count != bEvents || rec.Latency.ScheduleLag.Count != bEvents {
		t.Errorf("latency is not that of all %d B: %+v", bEvents, rec.Latency)
	}
	return rec
}

// hookedSink calls something before each batch's results are handed on.
type hookedSink struct {
	core.Sink
	before func()
}

func (h *hookedSink) Results(out *core.Output) error {
	h.before()
	return h.Sink.Results(out)
}

func beforeResults(fn func()) func(core.Sink) core.Sink {
	return func(s core.Sink) core.Sink { return &hookedSink{s, fn} }
}

// TestThrottledGenerator: a generator that makes fewer B than are asked for is no join that cannot keep up: invalid.
func TestThrottledGenerator(t *testing.T) {
	const rate, bEvents = 50_000, 16_384
	rec := pacedBench(t, Pace{rate, Uniform, Queue}, bEvents, 1024, func(b *bench) {
		b.hooks.read = func(side core.Side, records int) {
			if side == core.B && b.pace != nil { // not while the ceiling is measured
				time.Sleep(time.Duration(records) * time.Second / (rate / 5)) // two partitions: 0.4 of the rate
			}
		}
	})
	l := rec.Load
	if rec.Verdict.Status != results.StatusInvalid || rec.Verdict.ExitCode != results.ExitInvalid ||
		!strings.Contains(strings.Join(rec.Verdict.Reasons, "\n"), "generator-bound") {
		t.Errorf("verdict %+v, load %+v", rec.Verdict, l)
	}
	if *l.AchievedPerS > rate/2 || *l.Generator.BlockedRatio < 0.5 || *l.Generator.CeilingPerS < *l.AchievedPerS {
		t.Errorf("achieved %g, blocked %g, ceiling %g", *l.AchievedPerS, *l.Generator.BlockedRatio, *l.Generator.CeilingPerS)
	}
	if rec.Latency.ScheduleLag.P99Ns < int64(100*time.Millisecond) {
		t.Errorf("lag p99 %v: what the generator was late for is not response alone", time.Duration(rec.Latency.ScheduleLag.P99Ns))
	}
}

// TestLowCeiling: a rate above what the generator makes with nothing behind it is invalid whatever came of it.
func TestLowCeiling(t *testing.T) {
	rec := pacedBench(t, Pace{50_000, Uniform, Queue}, 8192, 1024, func(b *bench) {
		b.hooks.read = func(side core.Side, records int) {
			if side == core.B && b.pace == nil {
				time.Sleep(time.Duration(records) * time.Second / 10_000) // two partitions: 20,000/s at most
			}
		}
	})
	if c := *rec.Load.Generator.CeilingPerS; c <= 0 || c > 50_000 {
		t.Errorf("ceiling %g", c)
	}
	if rec.Verdict.ExitCode != results.ExitInvalid || !strings.Contains(strings.Join(rec.Verdict.Reasons, "\n"), "makes") {
		t.Errorf("verdict %+v", rec.Verdict)
	}
}

// TestSlowEngine: a join that cannot keep up is a result, not an invalid run: the generator was ready. Response grows, and
// the drop policy keeps it bounded.
func TestSlowEngine(t *testing.T) {
	const rate, bEvents, batch = 20_000, 16_384, 512
	slow := func(b *bench) { // at most 5,120 B a second
		b.hooks.sink = beforeResults(func() {
			if b.pace.running {
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
	rec := pacedBench(t, Pace{rate, Poisson, Queue}, bEvents, batch, slow)
	l := rec.Load
	for _, reason := range rec.Verdict.Reasons {
		if strings.Contains(reason, "generator") {
			t.Errorf("the generator is blamed: %s; %+v", reason, l.Generator)
		}
	}
	if *l.OfferedPerS != rate || *l.AchievedPerS > 5500 || l.Dropped != 0 || *l.QueueMax < bEvents/2 {
		t.Errorf("load %+v", l)
	}
	if !strings.Contains(strings.Join(rec.Verdict.Warnings, "\n"), "did not keep up") {
		t.Errorf("verdict %+v", rec.Verdict)
	}
	if r, s := rec.Latency.Response.P50Ns, rec.Latency.Service.P50Ns; r < int64(time.Second)/2 || s > int64(r) || s < int64(100*time.Millisecond) {
		t.Errorf("response p50 %v, service p50 %v", time.Duration(r), time.Duration(s))
	}
	sampled := false
	for _, i := range rec.Intervals {
		sampled = sampled || i.ResponseP99Ns != nil && *i.ResponseP99Ns > int64(time.Second)/2
	}
	if !sampled {
		t.Error("no interval says how response times grew")
	}
}

// TestFrozenForReal is TestFrozenEngine on the real clock, with threads, decoders and RocksDB: 5 s, 1 of them frozen. Where
// something else stops the process for long, theory does not hold: such an attempt counts for nothing.
func TestFrozenForReal(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 6 s")
	}
	const rate = 4_000
	for attempt := range 4 {
		stalls := watchStalls(t.Context())
		var from time.Time
		frozen := false
		rec := pacedBench(t, Pace{rate, Uniform, Queue}, 5*rate, 4096, func(b *bench) {
			b.hooks.sink = beforeResults(func() {
				if b.pace.running && from.IsZero() {
					from = time.Now()
				}
				if !frozen && b.pace.running && time.Since(from) > 2*time.Second {
					frozen = true
					time.Sleep(time.Second)
				}
			})
		})
		longest := stalls()
		right := true
		for _, p := range []struct {
			name      string
			got, want float64
		}{{"p90", float64(rec.Latency.Response.P90Ns), 0.5e9}, {"p95", float64(rec.Latency.Response.P95Ns), 0.75e9}, {"p99", float64(rec.Latency.Response.P99Ns), 0.95e9}} {
			t.Logf("attempt %d: %s %.3f s, in theory %.3f; longest stall of the machine %v", attempt, p.name, p.got/1e9, p.want/1e9, longest)
			right = right && math.Abs(p.got-p.want) <= 0.05*p.want
		}
		if right {
			return
		}
		if longest < 10*time.Millisecond {
			t.Fatal("theory does not hold, and nothing else stopped the process")
		}
	}
	t.Skip("the machine is too busy for this")
}

// watchStalls looks for times in which goroutines that should run do not; the function ends that and says how long the longest
// was.
func watchStalls(ctx context.Context) (longest func() time.Duration) {
	ctx, stop := context.WithCancel(ctx)
	var most atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for last := time.Now(); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				now := time.Now()
				most.Store(max(most.Load(), int64(now.Sub(last))))
				last = now
			}
		}
	}()
	return func() time.Duration {
		stop()
		<-done
		return time.Duration(most.Load())
	}
}
