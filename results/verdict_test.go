package results

import (
	"strings"
	"testing"
)

// Each kind of failure has its code, and of several the most serious decides.
func TestVerdictCodes(t *testing.T) {
	f := func(status string) Finding { return Finding{Status: status, Reason: "because " + status} }
	spoil := func(change func(*Record)) *Record {
		rec := exampleRecord()
		change(rec)
		return rec
	}
	for _, c := range []struct {
		name   string
		rec    *Record
		found  []Finding
		status string
		code   int
		reason string // of the first reason
	}{
		{"all well", exampleRecord(), nil, StatusOK, 0, ""},
		{"missing", spoil(func(r *Record) { r.Join.Missing = 1 }), nil, StatusIncorrect, 4, "missing: 1"},
		{"spurious", spoil(func(r *Record) { r.Join.Spurious = 1 }), nil, StatusIncorrect, 4, "not expected: 1"},
		{"duplicated", spoil(func(r *Record) { r.Join.Duplicated = 1 }), nil, StatusIncorrect, 4, "too often: 1"},
		{"false negative", spoil(func(r *Record) { r.Join.Filter.FalseNegatives = 1 }), nil, StatusIncorrect, 4, "false negatives"},
		{"a record lost", spoil(func(r *Record) { r.Join.A.Accepted-- }), nil, StatusIncorrect, 4, "A: 1,250,000 records were read and 1,249,999"},
		{"a record twice", spoil(func(r *Record) { r.Join.B.Accepted++ }), nil, StatusIncorrect, 4, "B: 5,000,000 records were read and 5,000,001"},
		{"no truth", spoil(func(r *Record) { r.Join.Truth = nil }), nil, StatusOK, 0, ""},
		{"not steady", spoil(func(r *Record) { r.SteadyState.Attained = false }), nil, StatusInvalid, 3, "steady state"},
		{"not steady, not asked for", spoil(func(r *Record) { *r.SteadyState = SteadyState{} }), nil, StatusOK, 0, ""},
		{"threshold", spoil(func(r *Record) { r.Thresholds[0].OK = false }), nil, StatusThreshold, 99, "join.filter.fp_ratio<0.0005 failed: 0.000244"},
		{"incomplete", spoil(func(r *Record) { r.Run.Complete = false }), nil, StatusInterrupted, 130, "did not come to its end"},
		{"incomplete and missing", spoil(func(r *Record) { r.Run.Complete = false; r.Join.Missing = 9; r.Join.A.Accepted-- }), nil,
			StatusInterrupted, 130, "did not come to its end"},
		{"incomplete and spurious", spoil(func(r *Record) { r.Run.Complete = false; r.Join.Spurious = 9 }), nil, StatusIncorrect, 4, "not expected: 9"},
		{"terminated", spoil(func(r *Record) { r.Run.Complete = false }), []Finding{{StatusInterrupted, ExitTerminated, "SIGTERM"}},
			StatusInterrupted, 143, "SIGTERM"},
		{"failed", spoil(func(r *Record) { r.Run.Complete = false }), []Finding{f(StatusFailed)}, StatusFailed, 1, "because failed"},
		{"regression", exampleRecord(), []Finding{f(StatusRegression)}, StatusRegression, 5, "because regression"},
		{"inconclusive", exampleRecord(), []Finding{f(StatusInconclusive)}, StatusInconclusive, 6, "because inconclusive"},
		{"warning", exampleRecord(), []Finding{f(StatusWarning)}, StatusOK, 0, ""},
		{"misspelt", exampleRecord(), []Finding{f("regresion")}, StatusFailed, 1, "because regresion"},
		{"4 before 3", spoil(func(r *Record) { r.Join.Missing = 1 }), []Finding{f(StatusInvalid)}, StatusIncorrect, 4, "missing"},
		{"3 before 5", exampleRecord(), []Finding{f(StatusRegression), f(StatusInvalid)}, StatusInvalid, 3, "because invalid"},
		{"5 before 99", spoil(func(r *Record) { r.Thresholds[0].OK = false }), []Finding{f(StatusRegression)}, StatusRegression, 5, "because regression"},
		{"99 before 6", spoil(func(r *Record) { r.Thresholds[0].OK = false }), []Finding{f(StatusInconclusive)}, StatusThreshold, 99, "failed"},
	} {
		v := Judge(c.rec, c.found...)
		if v.Status != c.status || v.ExitCode != c.code {
			t.Errorf("%s: %s (%d), want %s (%d)", c.name, v.Status, v.ExitCode, c.status, c.code)
		}
		switch {
		case c.reason == "" && len(v.Reasons) > 0:
			t.Errorf("%s: reasons %q", c.name, v.Reasons)
		case c.reason != "" && (len(v.Reasons) == 0 || !strings.Contains(v.Reasons[0], c.reason)):
			t.Errorf("%s: reasons %q, the first should say %q", c.name, v.Reasons, c.reason)
		}
	}
}

func TestWarnings(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Record)
		want   string // "" = no warning
	}{
		{"none", func(*Record) {}, ""},
		{"chance", func(r *Record) { r.Join.Filter.FalsePositives += 2 * 35 }, ""}, // two standard deviations
		{"too many false positives", func(r *Record) { r.Join.Filter.FalsePositives += 5 * 35 }, "errs more often than predicted"},
		{"fewer is no worry", func(r *Record) { r.Join.Filter.FalsePositives = 1 }, ""},
		{"builds failed", func(r *Record) { r.Join.Filter.BuildFailed = 2 }, "asked without a filter: 2"},
		{"matches off", func(r *Record) { r.Join.ExpectedMatchRatio = Known(0.0121) }, "more than 0.1 points off"},
		{"matches near", func(r *Record) { r.Join.ExpectedMatchRatio = Known(0.0109) }, ""},
		{"assertions", func(r *Record) { r.Tool.RocksDBAssertions = true }, "compiled with assertions"},
	} {
		rec := exampleRecord()
		c.change(rec)
		rec.Join.Derive()
		v := Judge(rec)
		got := strings.Join(v.Warnings, "; ")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) || v.ExitCode != 0 {
			t.Errorf("%s: %q (exit code %d), want %q", c.name, got, v.ExitCode, c.want)
		}
	}
}
