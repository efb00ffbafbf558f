package compare

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"joinbench/results"
)

// varied is an AB whose programs leave a record of their own each time.
func varied(t *testing.T, record func(side, run int) *results.Record) *AB {
	t.Helper()
	ab, dir := turns(t, aRun(t), aRun(t)), t.TempDir()
	var runs [2]int
	ab.Command = func(side int, out string, _ int) *exec.Cmd {
		path := filepath.Join(dir, filepath.Base(out))
		if err := results.Write(path, record(side, runs[side])); err != nil {
			t.Fatal(err)
		}
		runs[side]++
		return exec.Command("cp", path, out)
	}
	return ab
}

// clocked is an AB whose programs take as much CPU time as one another, and by the clock what a list says for each pair.
func clocked(t *testing.T, ns [2][]float64) *AB {
	t.Helper()
	return varied(t, func(side, run int) *results.Record {
		rec := aRun(t)
		rec.Cost.CPUNsPerB, rec.Cost.NsPerB, rec.Cost.UnitNs = new(30.0), new(ns[side][run%len(ns[side])]), nil
		return rec
	})
}

// TestTurnsWithNoisyMemory: memory that cannot be told apart ends nothing, and time decides.
func TestTurnsWithNoisyMemory(t *testing.T) {
	mb := [2][]int64{{36, 37, 36, 44, 44}, {37, 43, 44, 44, 36}}
	ab := varied(t, func(side, run int) *results.Record {
		rec := aRun(t)
		*rec.Cost.RSSMaxBytes, rec.Cost.CPUNsPerB = mb[side][run%5]*1e6, new(30.0)
		return rec
	})
	got, err := ab.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if p := got.Candidates[0].Pairs; p.Verdict != Pass || len(p.Logs) != 8 {
		t.Errorf("%s after %d pairs: %v", p.Verdict, len(p.Logs), got.Reasons)
	}
}

// TestTurnsByClock: what takes no CPU time and makes a build slower is seen when it is much, and noise of the clock is no verdict.
func TestTurnsByClock(t *testing.T) {
	for name, c := range map[string]struct {
		base, fresh []float64
		limit       string
		whole, of   string // verdicts
	}{
		"equal":           {[]float64{72, 75, 78}, []float64{78, 75, 72}, "", Pass, Pass},
		"waits":           {[]float64{70, 75, 80}, []float64{91, 98, 104}, "", Regression, Regression},
		"waits a little":  {[]float64{70, 71, 72}, []float64{73, 74, 75}, "", Pass, Pass},
		"waits less":      {[]float64{91, 98, 104}, []float64{70, 75, 80}, "", Improvement, Improvement},
		"noise":           {[]float64{70, 150, 80}, []float64{160, 75, 100}, "", Pass, Unjudged},
		"a limit":         {[]float64{70, 71, 72}, []float64{75, 76, 77}, clockMetric + "=3%", Regression, Regression},
		"a wide limit":    {[]float64{70, 75, 80}, []float64{91, 98, 104}, clockMetric + "=90%", Pass, Pass},
		"the class's":     {[]float64{70, 71, 72}, []float64{75, 76, 77}, "time=3%", Pass, Pass},
		"the last of two": {[]float64{70, 71, 72}, []float64{75, 76, 77}, clockMetric + "=1%," + clockMetric + "=20%", Pass, Pass},
	} {
		ab := clocked(t, [2][]float64{c.base, c.fresh})
		if c.limit != "" {
			var err error
			if ab.Options.Overrides, err = ParseOverrides(strings.Split(c.limit, ",")); err != nil {
				t.Fatal(err)
			}
		}
		got, err := ab.Run(context.Background())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		metrics := got.Candidates[0].Metrics
		at := slices.IndexFunc(metrics, func(m Result) bool { return m.Metric == clockMetric })
		if at < 0 || got.Verdict != c.whole || metrics[at].Verdict != c.of {
			t.Errorf("%s: %s, want %s and %s: %+v", name, got.Verdict, c.whole, c.of, metrics)
		}
	}
}

// TestTurnsByClockAlone: where the clock decides it is not asked a second time, a first pair that is apart does not count,
// and after too few pairs it is not judged.
func TestTurnsByClockAlone(t *testing.T) {
	byClock := func(ab *AB) Result {
		t.Helper()
		got, err := ab.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		metrics := got.Candidates[0].Metrics
		at := slices.IndexFunc(metrics, func(m Result) bool { return m.Metric == clockMetric })
		if at < 0 {
			t.Fatalf("not asked: %+v", metrics)
		}
		return metrics[at]
	}
	ab := clocked(t, [2][]float64{{70, 71}, {91, 92}})
	ab.Budget = 1
	if m := byClock(ab); m.Verdict != Unjudged || m.Unit {
		t.Errorf("one pair: %+v", m)
	}
	first := []float64{500, 70, 71, 72, 70, 71, 72, 70, 71, 72, 70}
	ab = clocked(t, [2][]float64{first, first})
	ab.Apart = true
	if m := byClock(ab); m.Verdict != Pass || *m.High > 72 {
		t.Errorf("the first pair, which is apart: %+v, up to %v", m, *m.High)
	}
	ab = turns(t, aRun(t), aRun(t))
	ab.Metric = clockMetric
	if m := byClock(ab); m.Verdict != Pass || !m.Unit {
		t.Errorf("where it decides: %+v", m)
	}
}

// TestTurnsByClockSliced: runs that stand still now and then are judged by what their batches took.
func TestTurnsByClockSliced(t *testing.T) {
	ab := varied(t, func(side, run int) *results.Record {
		rec := aRun(t)
		rec.Cost.CPUNsPerB, rec.Cost.NsPerB = new(30.0), new(float64(100+900*side)) // so it stood still
		rec.Cost.CPUParts = &results.CPUParts{Probes: 4096, NsPerB: []*float64{new(30.0)}, ClockNsPerB: new([]float64{35, 50}[side])}
		return rec
	})
	ab.Slice = time.Millisecond
	got, err := ab.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, m := range got.Candidates[0].Metrics {
		seen[m.Metric] = m.Verdict
	}
	if _, ok := seen[clockMetric]; ok || seen[slicedMetric] != Regression || seen[PartsMetric] != Pass || got.Verdict != Regression {
		t.Errorf("%s: %v", got.Verdict, seen)
	}
}
