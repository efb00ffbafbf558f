package compare

import (
	"errors"
	"strings"
	"testing"

	"joinbench/results"
)

// aRun is a run of profile ci, new for each caller.
func aRun(t testing.TB, change ...func(*results.Record)) *results.Record {
	t.Helper()
	rec, err := results.Read("testdata/ci.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		c(rec)
	}
	return rec
}

func slower(by float64) func(*results.Record) {
	return func(r *results.Record) { *r.Cost.NsPerB *= by }
}

func commit(name string) func(*results.Record) {
	return func(r *results.Record) { r.Tool.Commit = name }
}

func list(recs ...*results.Record) []*results.Record { return recs }

// TestVerdicts: what one change of a record makes of the comparison, by one run each.
func TestVerdicts(t *testing.T) {
	batches := 4195800.0 / 4096
	for name, c := range map[string]struct {
		change  func(*results.Record)
		strict  bool
		verdict string
		code    int
		metric  string // that decides
	}{
		"nothing":                    {func(*results.Record) {}, false, Pass, 0, ""},
		"a lookup per million":       {func(r *results.Record) { r.Join.Lookups += 4 }, false, Regression, 5, "join.lookups"},
		"one lookup":                 {func(r *results.Record) { r.Join.Lookups++ }, false, Regression, 5, "join.lookups"},
		"one lookup less":            {func(r *results.Record) { r.Join.Lookups-- }, false, Improvement, 0, "join.lookups"},
		"a pair less":                {func(r *results.Record) { r.Join.Matches-- }, false, Regression, 5, "join.matches"},
		"a byte of filters":          {func(r *results.Record) { *r.Cost.FilterBytes++ }, false, Regression, 5, "cost.filter_bytes"},
		"an allocation a batch":      {func(r *results.Record) { *r.Cost.AllocsPerProbe += batches / 4195800 }, false, Regression, 5, "cost.allocs_per_probe"},
		"a third of one a batch":     {func(r *results.Record) { *r.Cost.AllocsPerProbe += batches / 4195800 / 3 }, false, Pass, 0, ""},
		"9 % of memory":              {func(r *results.Record) { *r.Cost.RSSMaxBytes = *r.Cost.RSSMaxBytes * 109 / 100 }, false, Pass, 0, ""},
		"11 % of memory":             {func(r *results.Record) { *r.Cost.RSSMaxBytes = *r.Cost.RSSMaxBytes * 111 / 100 }, false, Regression, 5, "cost.rss_max_bytes"},
		"a count that is not told":   {func(r *results.Record) { r.Cost.FilterBytes = nil }, true, Inconclusive, 6, "cost.filter_bytes"},
		"memory that is not told":    {func(r *results.Record) { r.Cost.RSSMaxBytes = nil }, true, Pass, 0, ""},
		"wrong without a reason":     {func(r *results.Record) { r.Verdict = results.Verdict{Status: "incorrect", ExitCode: 4} }, false, "incorrect", 4, ""},
		"slower in one run":          {slower(1.3), false, Inconclusive, 0, "cost.ns_per_b"},
		"slower in one run, strict":  {slower(1.3), true, Inconclusive, 6, "cost.ns_per_b"},
		"slower on a slower machine": {func(r *results.Record) { *r.Cost.NsPerB *= 1.3; *r.Cost.NsPerA *= 1.3; *r.Cost.UnitNs *= 1.3 }, true, Pass, 0, ""},
		"another workload":           {func(r *results.Record) { r.Run.WorkloadFingerprint = "x" }, false, Incomparable, 0, ""},
		"another workload, strict":   {func(r *results.Record) { r.Run.WorkloadFingerprint = "x" }, true, Incomparable, 6, ""},
		"wrong": {func(r *results.Record) {
			r.Verdict = results.Verdict{Status: "incorrect", ExitCode: 4, Reasons: []string{"1 missing"}}
		}, false, "incorrect", 4, ""},
		"wrong and worse": {func(r *results.Record) {
			r.Join.Lookups++
			r.Verdict = results.Verdict{Status: "incorrect", ExitCode: 4, Reasons: []string{"1 missing"}}
		}, false, "incorrect", 4, "join.lookups"},
		"invalid and worse": {func(r *results.Record) {
			r.Join.Lookups++
			r.Verdict = results.Verdict{Status: "invalid", ExitCode: 3, Reasons: []string{"x"}}
		}, false, "invalid", 3, "join.lookups"},
		"a threshold and worse": {func(r *results.Record) {
			r.Join.Lookups++
			r.Verdict = results.Verdict{Status: "threshold", ExitCode: 99, Reasons: []string{"x"}}
		}, false, Regression, 5, "join.lookups"},
		"a threshold and inconclusive": {func(r *results.Record) {
			slower(1.3)(r)
			r.Verdict = results.Verdict{Status: "threshold", ExitCode: 99, Reasons: []string{"x"}}
		}, true, "threshold", 99, "cost.ns_per_b"},
		"slower on another machine":  {func(r *results.Record) { slower(2)(r); r.Environment.HostID = "other" }, true, Pass, 0, ""},
		"allocations of another Go":  {func(r *results.Record) { *r.Cost.AllocsPerProbe *= 2; r.Tool.Go = "go2" }, true, Pass, 0, ""},
		"lookups on another machine": {func(r *results.Record) { r.Join.Lookups++; r.Environment.HostID = "other" }, false, Regression, 5, "join.lookups"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Records(list(aRun(t)), list(aRun(t, c.change)), Options{Strict: c.strict})
			if err != nil {
				t.Fatal(err)
			}
			if got.Verdict != c.verdict || got.ExitCode != c.code {
				t.Errorf("%s, exit code %d, want %s and %d: %v", got.Verdict, got.ExitCode, c.verdict, c.code, got.Reasons)
			}
			if c.metric == "" {
				return
			}
			for _, m := range got.Candidates[0].Metrics {
				if decided := m.Verdict != Pass && m.Verdict != Unjudged; decided != (m.Metric == c.metric) {
					t.Errorf("%s: %s", m.Metric, m.Verdict)
				}
			}
			if !strings.Contains(strings.Join(got.Candidates[0].Reasons, " "), c.metric) {
				t.Errorf("no reason names %s: %v", c.metric, got.Candidates[0].Reasons)
			}
		})
	}
}

// several runs of one build, each by another factor of time.
func several(t *testing.T, name string, factors ...float64) []*results.Record {
	var out []*results.Record
	for _, f := range factors {
		out = append(out, aRun(t, slower(f), commit(name)))
	}
	return out
}

// TestTimesByRuns: with runs enough a time is told apart or passed, and what lies between is inconclusive.
func TestTimesByRuns(t *testing.T) {
	base := []float64{1, 1.005, 0.995, 1.01, 0.99, 1.0025}
	for name, c := range map[string]struct {
		fresh   []float64
		verdict string
	}{
		"same":     {base, Pass},
		"20 %":     {[]float64{1.2, 1.21, 1.19, 1.22, 1.18, 1.205}, Regression},
		"faster":   {[]float64{0.8, 0.81, 0.79, 0.82, 0.78, 0.805}, Improvement},
		"2 %":      {[]float64{1.02, 1.025, 1.015, 1.03, 1.01, 1.022}, Pass},
		"by luck":  {[]float64{0.8, 1.3, 1.02, 0.85, 1.2, 1.01}, Inconclusive}, // the median is within the limit, and shows nothing
		"all over": {[]float64{0.7, 1.5, 0.9, 1.4, 0.8, 1.3}, Inconclusive},
	} {
		got, err := Records(several(t, "a", base...), several(t, "b", c.fresh...), Options{Overrides: []Override{{"time", Limit{Ratio: 0.05}}}})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Candidates) != 1 || len(got.Candidates[0].Runs) != 6 {
			t.Fatalf("%s: runs of one build are not pooled: %+v", name, got.Candidates)
		}
		for _, m := range got.Candidates[0].Metrics {
			if m.Metric == "cost.ns_per_b" && m.Verdict != c.verdict {
				t.Errorf("%s: %s (p %v), want %s", name, m.Verdict, *m.P, c.verdict)
			}
		}
	}
}

// TestMemoryByRuns: with runs enough memory is told apart by a test, however far single runs lie apart; with few the spread of the base
// has to do.
func TestMemoryByRuns(t *testing.T) {
	base := []float64{36, 44, 40, 37, 43, 39} // MB, as peaks of profile gate are
	for name, c := range map[string]struct {
		base, fresh []float64
		verdict     string
	}{
		"same":                     {base, base, Pass},
		"by luck":                  {[]float64{36, 37, 36, 44, 44}, []float64{37, 43, 44, 44, 36}, Inconclusive},
		"15 %":                     {base, []float64{46, 45, 47, 51, 46.5, 49}, Regression},
		"15 % less":                {[]float64{46, 45, 47, 51, 46.5, 49}, []float64{36, 44, 40, 37, 43, 39}, Improvement},
		"8 %":                      {[]float64{40, 40.1, 40.2, 40.3, 40.4}, []float64{43.2, 43.3, 43.4, 43.5, 43.6}, Pass},
		"few runs, 15 %":           {base[:3], []float64{46, 45, 47}, Inconclusive},
		"few runs, 40 %":           {base[:3], []float64{57, 58, 59}, Regression},
		"one run, 15 %":            {base[:1], []float64{42}, Regression},
		"few quiet runs, 15 %":     {[]float64{40, 40.5, 41}, []float64{46, 46.5, 47}, Regression},
		"few quiet runs, 15% less": {[]float64{46, 46.5, 47}, []float64{39, 39.5, 40}, Improvement},
	} {
		of := func(label string, all []float64) (out []*results.Record) {
			for _, v := range all {
				out = append(out, aRun(t, func(r *results.Record) { *r.Cost.RSSMaxBytes, r.Run.Label = int64(v*1e6), label }))
			}
			return out
		}
		got, err := Records(of("a", c.base), of("b", c.fresh), Options{SkipTime: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range got.Candidates[0].Metrics {
			if m.Metric == "cost.rss_max_bytes" && m.Verdict != c.verdict {
				t.Errorf("%s: %s (%s, p %v), want %s", name, m.Verdict, m.Reason, m.P, c.verdict)
			}
		}
	}
}

// TestFewestRuns: the fewest runs that the test takes are enough for it to decide, and with one fewer it is not made.
func TestFewestRuns(t *testing.T) {
	quick, slow := []float64{1, 1.005, 0.995, 1.01, 0.99, 1.002}, []float64{1.2, 1.21, 1.19, 1.22, 1.18, 1.201}
	for runs, want := range map[[2]int]struct{ slower, equal string }{
		{5, 5}: {Regression, Pass},
		{4, 6}: {Regression, Pass},
		{4, 5}: {Inconclusive, Unjudged},
		{4, 4}: {Inconclusive, Unjudged},
		{1, 6}: {Inconclusive, Unjudged},
	} {
		for verdict, fresh := range map[string][]float64{want.slower: slow, want.equal: quick} {
			got, err := Records(several(t, "a", quick[:runs[0]]...), several(t, "b", fresh[:runs[1]]...), Options{Overrides: []Override{{"time", Limit{Ratio: 0.05}}}})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range got.Candidates[0].Metrics {
				if m.Metric != "cost.ns_per_b" {
					continue
				}
				if needs := strings.Contains(m.Reason, "a test needs 5 and 5"); m.Verdict != verdict || needs != (want.equal == Unjudged) {
					t.Errorf("%d runs: %s (%s), want %s", runs, m.Verdict, m.Reason, verdict)
				}
			}
		}
	}
}

// TestCandidates: builds are told apart by label and commit, and the worst makes the whole.
func TestCandidates(t *testing.T) {
	bad := aRun(t, commit("bad"), func(r *results.Record) { r.Join.Lookups += 7 })
	labelled := aRun(t, commit("good"), func(r *results.Record) { r.Run.Label = "x" })
	got, err := Records(list(aRun(t)), list(aRun(t, commit("good")), bad, aRun(t, commit("good")), labelled), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, c := range got.Candidates {
		said = append(said, c.Name()+"="+c.Verdict)
	}
	if s := strings.Join(said, " "); s != "good=pass bad=regression x good=pass" || got.ExitCode != 5 {
		t.Errorf("%s, exit code %d", s, got.ExitCode)
	}
}

// TestBaselines: a baseline whose figures mean nothing is none.
func TestBaselines(t *testing.T) {
	for name, base := range map[string][]*results.Record{
		"none":        nil,
		"cut short":   list(aRun(t, func(r *results.Record) { r.Run.Complete = false })),
		"wrong":       list(aRun(t, func(r *results.Record) { r.Verdict.Status = results.StatusIncorrect })),
		"invalid":     list(aRun(t, func(r *results.Record) { r.Verdict.Status = results.StatusInvalid })),
		"failed":      list(aRun(t, func(r *results.Record) { r.Verdict.Status = results.StatusFailed })),
		"of two kind": list(aRun(t), aRun(t, func(r *results.Record) { r.Run.WorkloadFingerprint = "x" })),
	} {
		var want *BaseError
		if _, err := Records(base, list(aRun(t)), Options{}); !errors.As(err, &want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPoolOfMachines: of runs that are pooled one of another machine, or of another Go, is enough to leave times and memory, or
// allocations, unjudged.
func TestPoolOfMachines(t *testing.T) {
	worse := func(r *results.Record) {
		slower(2)(r)
		*r.Cost.RSSMaxBytes *= 2
		*r.Cost.AllocsPerProbe *= 2
	}
	elsewhere := func(r *results.Record) { r.Environment.HostID = "x" }
	newer := func(r *results.Record) { r.Tool.Go = "go2" }
	for name, c := range map[string]struct {
		base, fresh func(*results.Record)
		judged      string
	}{
		"alike":                           {func(*results.Record) {}, func(*results.Record) {}, "cost.allocs_per_probe cost.rss_max_bytes cost.ns_per_b"},
		"of another machine, in the base": {elsewhere, func(*results.Record) {}, "cost.allocs_per_probe"},
		"of another machine":              {func(*results.Record) {}, elsewhere, "cost.allocs_per_probe"},
		"of another Go, in the base":      {newer, func(*results.Record) {}, "cost.rss_max_bytes cost.ns_per_b"},
		"of another Go":                   {func(*results.Record) {}, newer, "cost.rss_max_bytes cost.ns_per_b"},
	} {
		got, err := Records(list(aRun(t), aRun(t, c.base)), list(aRun(t, worse), aRun(t, worse, c.fresh)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		var judged []string
		for _, m := range got.Candidates[0].Metrics {
			if m.Verdict == Regression || m.Verdict == Inconclusive {
				judged = append(judged, m.Metric)
			}
		}
		if s := strings.Join(judged, " "); s != c.judged {
			t.Errorf("%s: %q are worse, want %q", name, s, c.judged)
		}
		if said := strings.Contains(strings.Join(got.Warnings, " "), "several machines"); said != strings.Contains(name, "machine") {
			t.Errorf("%s: warnings %v", name, got.Warnings)
		}
	}
}

// TestCountsOfBase: what varies among the runs of the base is no regression, what lies beyond it is.
func TestCountsOfBase(t *testing.T) {
	lookups := func(n int64) func(*results.Record) { return func(r *results.Record) { r.Join.Lookups = n } }
	base := list(aRun(t, lookups(100)), aRun(t, lookups(105)))
	for n, want := range map[int64]string{99: Improvement, 100: Pass, 103: Pass, 105: Pass, 106: Regression} {
		got, err := Records(base, list(aRun(t, lookups(n))), Options{SkipTime: true})
		if err != nil || got.Verdict != want {
			t.Errorf("%d: %v %v, want %s", n, got.Verdict, err, want)
		}
	}
}

// TestUnlikeSettings are warned of.
func TestUnlikeSettings(t *testing.T) {
	for want, change := range map[string]func(*results.Record){
		"another machine": func(r *results.Record) { r.Environment.HostID = "x" },
		"Go: ":            func(r *results.Record) { r.Tool.Go = "x" },
		"RocksDB: ":       func(r *results.Record) { r.Tool.RocksDB = "x" },
		"version of join": func(r *results.Record) { r.Tool.Version = "x" },
		"version of the":  func(r *results.Record) { r.SchemaVersion = "1.0.0" },
		"filter: ":        func(r *results.Record) { r.Join.Filter.Kind = "bloom" },
	} {
		got, err := Records(list(aRun(t)), list(aRun(t, change)), Options{})
		if err != nil || !strings.Contains(strings.Join(got.Warnings, "\n"), want) {
			t.Errorf("%s: %v, warnings %v", want, err, got.Warnings)
		}
	}
	got, err := Records(list(aRun(t)), list(aRun(t)), Options{})
	if err != nil || len(got.Warnings) > 0 {
		t.Errorf("like and like: %v", got.Warnings)
	}
}

// TestOverrides: limits of flags win over those of the profile, those of metrics over those of classes.
func TestOverrides(t *testing.T) {
	memory := func(by int64) func(*results.Record) {
		return func(r *results.Record) { *r.Cost.RSSMaxBytes += by }
	}
	profile := func(text string) func(*results.Record) {
		return func(r *results.Record) {
			r.Run.Config = []byte(strings.Replace(string(r.Run.Config), `{`, `{"load.limits":"`+text+`",`, 1))
		}
	}
	for name, c := range map[string]struct {
		profile string
		flags   []string
		change  func(*results.Record)
		want    string
	}{
		"ratio of a class":           {"[]", []string{"memory=1%"}, memory(2 << 20), Regression},
		"floor":                      {"[]", []string{"cost.rss_max_bytes=1%+4MiB"}, memory(2 << 20), Pass},
		"beyond the floor":           {"[]", []string{"cost.rss_max_bytes=1%+4MiB"}, memory(5 << 20), Regression},
		"of the profile":             {"[memory=1%]", nil, memory(2 << 20), Regression},
		"flag over profile":          {"[memory=1%]", []string{"memory=20%"}, memory(2 << 20), Pass},
		"metric over class":          {"[]", []string{"memory=1%", "cost.rss_max_bytes=20%"}, memory(2 << 20), Pass},
		"counts with room":           {"[]", []string{"count=0.1%"}, func(r *results.Record) { r.Join.Lookups += 10 }, Pass},
		"another metric":             {"[]", []string{"join.b.late=0%"}, func(r *results.Record) { r.Join.B.Late++ }, Regression},
		"one that was zero":          {"[]", []string{"join.b.malformed=0%"}, func(r *results.Record) { r.Join.B.Malformed += 5 }, Regression},
		"another metric, equal":      {"[]", []string{"join.b.late=0%"}, func(*results.Record) {}, Pass},
		"one that nobody knows":      {"[]", []string{"arms.memroy.ns_per_b=5%"}, func(*results.Record) {}, Inconclusive},
		"a count on another machine": {"[]", []string{"join.b.late=0%"}, func(r *results.Record) { r.Join.B.Late++; r.Environment.HostID = "x" }, Regression},
		"a ratio is no count":        {"[]", []string{"join.filter.fp_ratio=0%"}, func(r *results.Record) { *r.Join.Filter.FPRatio *= 2; r.Environment.HostID = "x" }, Pass},
	} {
		over, err := ParseOverrides(c.flags)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Records(list(aRun(t, profile(c.profile))), list(aRun(t, c.change)), Options{Overrides: over})
		if err != nil || got.Verdict != c.want {
			t.Errorf("%s: %v %v, want %s", name, got, err, c.want)
		}
	}
	for _, bad := range []string{"", "time", "time=", "time=x", "time=-1%", "time=5%+1ms", "tmie=5%", "cost.rss_max_bytes=5%+4ms", "cost=1%"} {
		if o, err := ParseOverride(bad); !errors.Is(err, results.ErrThreshold) {
			t.Errorf("%q: %+v, %v", bad, o, err)
		}
	}
}

// TestFloorOfATime: a floor in ns is one of ns, though what is compared is in units of the machine.
func TestFloorOfATime(t *testing.T) {
	was := *aRun(t).Cost.NsPerB
	for by, want := range map[float64]string{1.4: Pass, 1.9: Regression} {
		limit := Override{"cost.ns_per_b", Limit{Ratio: 0.05, Floor: 0.6 * was}}
		got, err := Records(several(t, "a", 1, 1.01, 0.99, 1.02, 0.98), several(t, "b", by, 1.01*by, 0.99*by, 1.02*by, 0.98*by), Options{Overrides: []Override{limit}})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range got.Candidates[0].Metrics {
			if m.Metric == "cost.ns_per_b" && (m.Verdict != want || m.Floor != 0.6*was) {
				t.Errorf("%v times: %+v, want %s", by, m, want)
			}
		}
	}
}
