package results

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestThresholds(t *testing.T) {
	example := exampleRecord()
	units := *example.Cost.NsPerB / *example.Cost.UnitNs
	for _, c := range []struct {
		expr   string
		ok     bool
		value  float64
		reason string // of a value that is not there
	}{
		{"join.filter.fp_ratio<0.0005", true, 1208.0 / 4_949_987, ""},
		{"join.filter.fp_ratio < 0.05 %", true, 1208.0 / 4_949_987, ""},
		{"join.filter.fp_ratio<0.0001", false, 1208.0 / 4_949_987, ""},
		{"join.filter.fp_ci95.1<0.001", true, exampleRecord().Join.Filter.FPCI95[1], ""},
		{"cost.ns_per_b<81.04", false, 81.04, ""},
		{"cost.ns_per_b<=81.04", true, 81.04, ""},
		{"cost.ns_per_b>81.04", false, 81.04, ""},
		{"cost.ns_per_b>=81.04", true, 81.04, ""},
		{"cost.ns_per_b==81.04", true, 81.04, ""},
		{"cost.ns_per_b==81.05", false, 81.04, ""},
		{"cost.ns_per_b<0.1us", true, 81.04, ""},
		{"cost.rss_max_bytes<600MiB", true, 412<<20 + 345_678, ""},
		{"cost.rss_max_bytes<400MiB", false, 412<<20 + 345_678, ""},
		{"cost.rss_max_bytes<412.5 MiB", true, 412<<20 + 345_678, ""},
		{"cost.ns_per_b/cost.unit_ns<=2.5", false, units, ""},
		{"cost.ns_per_b / cost.unit_ns <= 2.9", true, units, ""},
		{"arms.none.ns_per_b/arms.fuse16.ns_per_b>300", true, *example.Arms[1].NsPerB / *example.Arms[0].NsPerB, ""},
		{"arms.none.fp_ratio<1", false, 0, "arms.none.fp_ratio is null"},
		{"arms.memory-projection.ns_per_b<1ms", false, 0, `arms has none of the name "memory-projection"`},
		{"steady.max_gap_ns<150ms", true, 141_000_000, ""},
		{"steady.max_gap_ns<0.1s", false, 141_000_000, ""},
		{"phases.measure.duration_ns>27s", true, 27_400_000_000, ""},
		{"steady_state.criteria.probes_per_s.slope<1%", true, 0.0012, ""},
		{"latency.service.p99_ns<10ms", true, float64(exampleRecord().Latency.Service.P99Ns), ""},
		{"latency.response.p99_ns<10ms", false, 0, "latency.response is null: this run did not measure it"},
		{"join.missing==0", true, 0, ""},
		{"join.probes>=4.9M", true, 4_999_990, ""},
		{"load.achieved_per_s>100k/s", true, 182_481.7, ""},
		{"load.offered_per_s>1", false, 0, "load.offered_per_s is null"},
		{"cost.ns_per_b/storage.pending_compaction_bytes<1", false, 0, "storage.pending_compaction_bytes is 0"},
		{"run.seed==42", true, 42, ""},
	} {
		l, err := ParseThreshold(c.expr)
		if err != nil {
			t.Errorf("%s: %v", c.expr, err)
			continue
		}
		got := l.Check(exampleRecord())
		switch {
		case got.Expr != c.expr || got.OK != c.ok:
			t.Errorf("%s: %+v", c.expr, got)
		case c.reason != "" && (got.Value != nil || !strings.Contains(got.Reason, c.reason)):
			t.Errorf("%s: reason %q, want %q", c.expr, got.Reason, c.reason)
		case c.reason == "" && (got.Value == nil || *got.Value != c.value):
			t.Errorf("%s: value %v, want %v", c.expr, orDash(got.Value, plain), c.value)
		}
	}
	l, err := ParseThreshold("join.missing==0")
	if err != nil {
		t.Fatal(err)
	}
	if got := l.Check(&Record{}); got.OK || got.Value != nil || !strings.Contains(got.Reason, "does not know") {
		t.Errorf("without truth: %+v", got)
	}
}

func TestThresholdsThatAreNone(t *testing.T) {
	for expr, want := range map[string]string{
		"":                                 "not of the form metric op bound",
		"cost.ns_per_b":                    "not of the form",
		"<5":                               "not of the form",
		"cost.ns_per_b<":                   "not of the form",
		"cost.ns_per_b=5":                  "not of the form",
		"cost.ns_per_b!=5":                 "not of the form",
		"cost.ns_per_b<5<6":                "not of the form",
		"a/b/c<5":                          "not of the form",
		"cost.ns_per_b<five":               `"five" is not a number`,
		"cost.ns_per_b<NaN":                `"NaN" is not a number`,
		"cost.ns_per_b<1e999":              "too large",
		"cost.ns_per_b<5MiB":               `the unit "MiB" does not fit the metric: it is in nanoseconds`,
		"cost.rss_max_bytes<5ms":           "it is in bytes",
		"cost.ns_per_b/cost.unit_ns<5ns":   `the unit "ns" does not fit`,
		"join.filter.fp_ratios<1":          `unknown metric "join.filter.fp_ratios" (did you mean "join.filter.fp_ratio"?)`,
		"fp_ratio<1":                       `(did you mean "join.filter.fp_ratio"?)`,
		"cost.nsperb<1":                    `(did you mean "cost.ns_per_b"?)`,
		"join.fliter.fp_predicted<1":       `(did you mean "join.filter.fp_predicted"?)`,
		"arms.memory.ns_per_bee<1":         `(did you mean "arms.memory.ns_per_b"?)`,
		"latency.responce.p99_ns<1ms":      `(did you mean "latency.response.p99_ns"?)`,
		"cost.ns_per_b/cost.unitns<1":      `(did you mean "cost.unit_ns"?)`,
		"cost.ns_per_b.x<1":                `(did you mean "cost.ns_per_b"?)`,
		"cost<1":                           "cost is a group, not a number (its metrics: cost.ns_per_b",
		"run.complete<1":                   "run.complete is not a number",
		"intervals.0.pending<1":            "unknown metric",
		"join.filter.fp_ci95.2<1":          "unknown metric",
		"arms.<1":                          "unknown metric",
		"environment.cgroup.memry_bytes<1": `(did you mean "environment.cgroup.memory_bytes"?)`,
	} {
		_, err := ParseThreshold(expr)
		if err == nil || !errors.Is(err, ErrThreshold) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", expr, err, want)
		}
	}
}

// Every number of a record can be named, and every path that is listed is one.
func TestMetrics(t *testing.T) {
	all := Metrics()
	for _, path := range all {
		if _, err := ParseMetric(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{"cost.ns_per_b", "join.a.read", "join.filter.fp_ci95.0", "arms.<name>.ns_per_b", "join.missing",
		"latency.response.p99_9_ns", "steady.rss.max_bytes", "verdict.exit_code"} {
		if !slices.Contains(all, path) {
			t.Errorf("%s is not listed", path)
		}
	}
}

func TestSetThresholdsAndRejudge(t *testing.T) {
	limits := func(exprs ...string) []*Limit { return must(ParseThresholds(exprs)) }
	rec := exampleRecord()
	rec.Rejudge(limits("cost.ns_per_b<100", "cost.ns_per_a<1000"))
	if rec.Verdict.ExitCode != 0 || len(rec.Thresholds) != 3 {
		t.Errorf("all hold: %+v %+v", rec.Verdict, rec.Thresholds)
	}
	rec.Rejudge(limits("cost.ns_per_a<1"))
	if v := rec.Verdict; v.Status != StatusThreshold || v.ExitCode != 99 || len(v.Reasons) != 1 || !strings.Contains(v.Reasons[0], "cost.ns_per_a<1 failed: 312.6") {
		t.Errorf("one fails: %+v", v)
	}
	rec.Rejudge(limits("cost.ns_per_b<2"))
	if v := rec.Verdict; len(v.Reasons) != 2 {
		t.Errorf("two fail, and each is said once: %+v", v)
	}
	for status, code := range map[string]int{StatusIncorrect: 4, StatusInvalid: 3, StatusRegression: 5, StatusInterrupted: 130, StatusFailed: 1} {
		rec := exampleRecord()
		rec.Verdict = Judge(rec, Finding{Status: status, Reason: "so"})
		rec.Rejudge(limits("cost.ns_per_b<2"))
		if v := rec.Verdict; v.ExitCode != code || !slices.Contains(v.Reasons, "so") || len(v.Reasons) != 2 {
			t.Errorf("%s and a threshold: %+v", status, v)
		}
	}
	rec = exampleRecord()
	rec.Verdict = Judge(rec, Finding{Status: StatusInconclusive, Reason: "so"})
	rec.Rejudge(limits("cost.ns_per_b<2"))
	if rec.Verdict.ExitCode != 99 {
		t.Errorf("99 comes before 6: %+v", rec.Verdict)
	}
}

func TestWorst(t *testing.T) {
	with := func(status string, code int) *Record {
		return &Record{Verdict: Verdict{Status: status, ExitCode: code}}
	}
	ok, invalid, wrong, limit := with(StatusOK, 0), with(StatusInvalid, 3), with(StatusIncorrect, 4), with(StatusThreshold, 99)
	for _, c := range []struct {
		recs []*Record
		want int
	}{{[]*Record{ok, ok}, 0}, {[]*Record{ok, limit}, 99}, {[]*Record{limit, invalid, ok}, 3}, {[]*Record{limit, wrong, invalid}, 4},
		{[]*Record{ok, with("great", -7)}, -7}} {
		if got := Worst(c.recs); got != c.want {
			t.Errorf("worst is %d, want %d", got, c.want)
		}
	}
}
