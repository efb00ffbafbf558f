package compare

import (
	"context"
	"errors"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"joinbench/results"
)

// turns is an AB whose programs leave records that are there already.
func turns(t *testing.T, base, fresh *results.Record) *AB {
	t.Helper()
	dir := t.TempDir()
	var paths [2]string
	for i, rec := range []*results.Record{base, fresh} {
		rec.Cost.CPUNsPerB = new(*rec.Cost.NsPerB)
		paths[i] = filepath.Join(dir, []string{"base.json", "fresh.json"}[i])
		if err := results.Write(paths[i], rec); err != nil {
			t.Fatal(err)
		}
	}
	return &AB{Names: [2]string{"old", "new"}, Dir: t.TempDir(), Metric: "cost.cpu_ns_per_b", Budget: time.Minute, Seed: 1,
		Command: func(side int, out string, _ int) *exec.Cmd { return exec.Command("cp", paths[side], out) }}
}

// TestTurns: how a comparison of two programs ends, and after how many pairs.
func TestTurns(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*results.Record)
		verdict string
		pairs   int
		code    int
	}{
		"equal":       {func(*results.Record) {}, Pass, 8, 0},
		"slower":      {slower(1.2), Regression, 8, 5},
		"faster":      {slower(0.8), Improvement, 8, 0},
		"a lookup":    {func(r *results.Record) { r.Join.Lookups++ }, Regression, 0, 5},
		"allocations": {func(r *results.Record) { *r.Cost.AllocsPerProbe += 1.0 / 4096 }, Regression, 8, 5},
		"wrong": {func(r *results.Record) {
			r.Verdict = results.Verdict{Status: "incorrect", ExitCode: 4, Reasons: []string{"x"}}
		}, "incorrect", 0, 4},
		"other stream": {func(r *results.Record) { r.Run.WorkloadFingerprint = "x" }, Incomparable, 0, 0},
	} {
		got, err := turns(t, aRun(t), aRun(t, c.change)).Run(context.Background())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p := got.Candidates[0].Pairs; got.Verdict != c.verdict || got.ExitCode != c.code || len(p.Logs) != c.pairs {
			t.Errorf("%s: %s, code %d, %d pairs, want %+v: %v", name, got.Verdict, got.ExitCode, len(p.Logs), c, got.Reasons)
		}
	}
}

// TestTurnsByOtherMetrics: of a rate more is better, memory is judged once, and a metric that is not judged by itself has the limit of
// its class.
func TestTurnsByOtherMetrics(t *testing.T) {
	achieved := func(by float64) func(*results.Record) {
		return func(r *results.Record) { *r.Load.AchievedPerS *= by }
	}
	resident := func(by float64) func(*results.Record) {
		return func(r *results.Record) { *r.Cost.RSSMaxBytes = int64(float64(*r.Cost.RSSMaxBytes) * by) }
	}
	for _, c := range []struct {
		metric  string
		limit   string
		change  func(*results.Record)
		verdict string
	}{
		{"load.achieved_per_s", "time=5%", achieved(0.8), Regression},
		{"load.achieved_per_s", "time=5%", achieved(1.2), Improvement},
		{"load.achieved_per_s", "time=5%", achieved(1), Pass},
		{"load.achieved_per_s", "time=30%", achieved(0.8), Pass},
		{"cost.rss_max_bytes", "memory=5%", resident(1.2), Regression},
		{"cost.rss_max_bytes", "memory=5%", resident(0.8), Improvement},
		{"cost.rss_max_bytes", "memory=5%", resident(1.02), Pass},
	} {
		ab := turns(t, aRun(t), aRun(t, c.change))
		ab.Metric = c.metric
		var err error
		if ab.Options.Overrides, err = ParseOverrides([]string{c.limit}); err != nil {
			t.Fatal(err)
		}
		got, err := ab.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		judged := slices.DeleteFunc(got.Candidates[0].Metrics, func(m Result) bool { return m.Metric != c.metric })
		if got.Verdict != c.verdict || len(judged) != 1 || judged[0].Verdict != c.verdict {
			t.Errorf("%+v: %s, %+v", c, got.Verdict, judged)
		}
	}
	for metric, ok := range map[string]bool{"cost.ns_per_b": true, "cost.rss_max_bytes": true, "load.achieved_per_s": true, "join.lookups": false,
		"cost.allocs_per_probe": false, "cost.ns_per_bee": false} {
		if err := Decides(metric); (err == nil) != ok {
			t.Errorf("%s: %v", metric, err)
		}
	}
}

// TestTurnsOrder: the order is drawn, and the seed draws the same again.
func TestTurnsOrder(t *testing.T) {
	order := func(seed uint64) []int {
		ab := turns(t, aRun(t), aRun(t))
		ab.Seed = seed
		var sides []int
		run := ab.Command
		ab.Command = func(side int, out string, pair int) *exec.Cmd {
			sides = append(sides, side)
			return run(side, out, pair)
		}
		if _, err := ab.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		return sides
	}
	first := order(1)
	if !slices.Equal(first, order(1)) || slices.Equal(first, order(2)) {
		t.Errorf("orders: %v, %v, %v", first, order(1), order(2))
	}
	for i := 0; i < len(first); i += 2 {
		if first[i] == first[i+1] {
			t.Errorf("a pair of one side: %v", first)
		}
	}
}

// TestTurnsThatFail: a program without a record, a base that was wrong, an end from outside, a budget for one pair.
func TestTurnsThatFail(t *testing.T) {
	ab := turns(t, aRun(t), aRun(t))
	ab.Command = func(int, string, int) *exec.Cmd { return exec.Command("sh", "-c", "echo no space >&2; exit 1") }
	if c, err := ab.Run(context.Background()); c != nil || err == nil || !strings.Contains(err.Error(), "no space") {
		t.Errorf("%v, %v", c, err)
	}
	if err := results.Write(filepath.Join(ab.Dir, "a-001.json"), aRun(t)); err != nil {
		t.Fatal(err)
	}
	if err := results.Write(filepath.Join(ab.Dir, "b-001.json"), aRun(t)); err != nil {
		t.Fatal(err)
	}
	if c, err := ab.Run(context.Background()); c != nil || err == nil || !strings.Contains(err.Error(), "no space") {
		t.Errorf("the records of another comparison were taken: %v, %v", c, err)
	}
	var base *BaseError
	wrong := aRun(t, func(r *results.Record) { r.Verdict.Status = results.StatusIncorrect })
	if _, err := turns(t, wrong, aRun(t)).Run(context.Background()); !errors.As(err, &base) {
		t.Errorf("wrong base: %v", err)
	}
	for name, ending := range map[string]string{"a code of its own": "exit 3", "a signal": "kill -SEGV $$"} {
		ab = turns(t, aRun(t), aRun(t))
		leave := ab.Command
		ab.Command = func(side int, out string, pair int) *exec.Cmd {
			return exec.Command("sh", "-c", `cp "$0" "$1"; echo torn >&2; `+ending, leave(side, out, pair).Args[1], out)
		}
		if c, err := ab.Run(context.Background()); c != nil || err == nil || !strings.Contains(err.Error(), "torn") {
			t.Errorf("a record, and %s: %v, %v", name, c, err)
		}
	}
	said := turns(t, aRun(t), aRun(t, func(r *results.Record) {
		r.Verdict = results.Verdict{Status: "invalid", ExitCode: 3, Reasons: []string{"x"}}
	}))
	leave := said.Command
	said.Command = func(side int, out string, pair int) *exec.Cmd {
		return exec.Command("sh", "-c", `cp "$0" "$1"; exit `+[]string{"0", "3"}[side], leave(side, out, pair).Args[1], out)
	}
	if c, err := said.Run(context.Background()); err != nil || c.Verdict != "invalid" {
		t.Errorf("a program that says in its record why it fails: %v, %v", c, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ab = turns(t, aRun(t), aRun(t))
	ab.Progress = func(*Pairs) { cancel() }
	if c, err := ab.Run(ctx); c == nil || !errors.Is(err, context.Canceled) || c.Verdict != Inconclusive {
		t.Errorf("ended from outside: %v, %v", c, err)
	}
	ab = turns(t, aRun(t), aRun(t))
	ab.Budget = time.Nanosecond
	if c, err := ab.Run(context.Background()); err != nil || c.Verdict != Inconclusive || len(c.Candidates[0].Pairs.Logs) != 1 {
		t.Errorf("no budget: %v, %v", c, err)
	}
}

// apart takes the first pair of one and later ones of the other, which it changes.
func apart(wide, narrow *AB) *AB {
	narrow.Apart = true
	later := narrow.Command
	narrow.Command = func(side int, out string, pair int) *exec.Cmd {
		if pair == 1 {
			return wide.Command(side, out, pair)
		}
		return later(side, out, pair)
	}
	return narrow
}

// TestTurnsApart: the first pair is for allocations, which others do not change, and not for time.
func TestTurnsApart(t *testing.T) {
	procs := func(n int, change ...func(*results.Record)) *results.Record {
		return aRun(t, append(change, func(r *results.Record) { r.Environment.GOMAXPROCS = n })...)
	}
	more := func(r *results.Record) { *r.Cost.AllocsPerProbe += 1.0 / 4096 }
	for name, c := range map[string]struct {
		first, later *results.Record // of the fresh build; the base has neither
		verdict      string
	}{
		"equal":                  {procs(2), procs(1), Pass},
		"an allocation":          {procs(2, more), procs(1), Regression},
		"an allocation of later": {procs(2), procs(1, more), Pass},
		"slower at first":        {procs(2, slower(1.5)), procs(1), Pass},
		"slower":                 {procs(2), procs(1, slower(1.5)), Regression},
		"wrong later": {procs(2), procs(1, func(r *results.Record) {
			r.Verdict = results.Verdict{Status: "incorrect", ExitCode: 4, Reasons: []string{"x"}}
		}), "incorrect"},
	} {
		got, err := apart(turns(t, procs(2), c.first), turns(t, procs(1), c.later)).Run(context.Background())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.Verdict != c.verdict || c.verdict == Pass && (len(got.Candidates[0].Pairs.Logs) != 8 || len(got.Base.Runs) != 9) {
			t.Errorf("%s: %s, %d pairs: %v", name, got.Verdict, len(got.Candidates[0].Pairs.Logs), got.Reasons)
		}
	}
}

// TestTurnsShort: where later runs end early, what is counted is that of the first pair, in either direction.
func TestTurnsShort(t *testing.T) {
	short := func(r *results.Record) {
		r.Join.Probes, r.Join.Matches, r.Join.Outputs, r.Join.Lookups = r.Join.Probes/2, r.Join.Matches/2, r.Join.Outputs/2, r.Join.Lookups/2
		*r.Cost.AllocsPerProbe *= 2
	}
	for name, c := range map[string]struct {
		first, later func(*results.Record)
		verdict      string
		metric       string // that says so
	}{
		"equal":         {func(*results.Record) {}, func(*results.Record) {}, Pass, ""},
		"a lookup":      {func(r *results.Record) { r.Join.Lookups++ }, func(*results.Record) {}, Regression, "join.lookups"},
		"a lookup less": {func(r *results.Record) { r.Join.Lookups-- }, func(*results.Record) {}, Improvement, "join.lookups"},
		"a match less":  {func(r *results.Record) { r.Join.Matches-- }, func(*results.Record) {}, Regression, "join.matches"},
		"an allocation": {func(r *results.Record) { *r.Cost.AllocsPerProbe += 1.0 / 4096 }, func(*results.Record) {}, Regression, "cost.allocs_per_probe"},
		"bytes":         {func(*results.Record) {}, func(r *results.Record) { *r.Cost.AllocBytesPerProbe *= 2 }, Pass, "cost.alloc_bytes_per_probe"},
		"slower":        {func(*results.Record) {}, slower(1.2), Regression, PartsMetric},
		"wrong later": {func(*results.Record) {}, func(r *results.Record) {
			r.Verdict = results.Verdict{Status: "incorrect", ExitCode: 4, Reasons: []string{"x"}}
		}, "incorrect", ""},
	} {
		ab := apart(turns(t, aRun(t), aRun(t, c.first)), turns(t, aRun(t, short), aRun(t, short, c.later)))
		ab.Options.Short = true
		got, err := ab.Run(context.Background())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		said := slices.ContainsFunc(got.Candidates[0].Metrics, func(m Result) bool { return m.Metric == c.metric && m.Verdict == c.verdict })
		if got.Verdict != c.verdict || c.metric != "" && !said {
			t.Errorf("%s: %s, want %s of %s: %v", name, got.Verdict, c.verdict, c.metric, got.Reasons)
		}
	}
}

// TestTurnsByThresholds: they are for the first pair, where later ones are cut down and lack what it knows.
func TestTurnsByThresholds(t *testing.T) {
	cut := func(r *results.Record) { r.Cost.UnitNs = nil }
	for bound, want := range map[string]string{"<=1e6": Pass, "<=1e-6": results.StatusThreshold} {
		ab := apart(turns(t, aRun(t), aRun(t)), turns(t, aRun(t, cut), aRun(t, cut)))
		var err error
		if ab.Options.Limits, err = results.ParseThresholds([]string{"cost.ns_per_b/cost.unit_ns" + bound}); err != nil {
			t.Fatal(err)
		}
		if got, err := ab.Run(context.Background()); err != nil || got.Verdict != want {
			t.Errorf("%s: %v %+v, want %s", bound, err, got, want)
		}
	}
}

// TestTurnsWithAFloor: it counts as what it is of the first run's figure.
func TestTurnsWithAFloor(t *testing.T) {
	was := *aRun(t).Cost.NsPerB // turns has it for CPU time too
	for by, want := range map[float64]string{1.1: Pass, 1.4: Regression} {
		ab := turns(t, aRun(t), aRun(t, slower(by)))
		ab.Options.Overrides = []Override{{PartsMetric, Limit{Ratio: 0.01, Floor: 0.2 * was}}}
		if got, err := ab.Run(context.Background()); err != nil || got.Verdict != want || math.Abs(got.Candidates[0].Pairs.Limit-0.2) > 1e-9 {
			t.Errorf("%v times: %v %+v, want %s", by, err, got, want)
		}
	}
}

// TestWrongLater: a verdict of a run that ends the turns does not say that nobody had looked.
func TestWrongLater(t *testing.T) {
	ab := varied(t, func(side, run int) *results.Record {
		rec := aRun(t)
		rec.Cost.CPUNsPerB = new(30 + 9*float64((side+run)%2))
		if side == 1 && run == 9 {
			rec.Verdict = results.Verdict{Status: "incorrect", ExitCode: 4, Reasons: []string{"x"}}
		}
		return rec
	})
	got, err := ab.Run(context.Background())
	if err != nil || got.Verdict != "incorrect" {
		t.Fatal(got, err)
	}
	if p := got.Candidates[0].Pairs; p.Looks == 0 || strings.Contains(p.Reason, "not asked") {
		t.Errorf("%+v", p)
	}
}
