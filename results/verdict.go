package results

import (
	"fmt"
	"slices"
	"strings"
)

// Statuses of a verdict. StatusWarning is for findings only: it never is a verdict's status.
const (
	StatusOK           = "ok"
	StatusIncorrect    = "incorrect"    // 4: a missed or wrong match, a lost or duplicate record
	StatusFailed       = "failed"       // 1: the run or its I/O failed
	StatusInterrupted  = "interrupted"  // 130 or 143
	StatusInvalid      = "invalid"      // 3: what was measured is not the join
	StatusRegression   = "regression"   // 5
	StatusThreshold    = "threshold"    // 99
	StatusIncomparable = "incomparable" // 6, as inconclusive
	StatusInconclusive = "inconclusive" // 6
	StatusWarning      = "warning"
)

// Exit codes of joinbench. 2 (usage, configuration, schema) has no status: such a run leaves no record.
const (
	ExitOK           = 0
	ExitFailed       = 1
	ExitUsage        = 2
	ExitInvalid      = 3
	ExitIncorrect    = 4
	ExitRegression   = 5
	ExitInconclusive = 6
	ExitThreshold    = 99
	ExitInterrupted  = 130
	ExitTerminated   = 143
)

// ranked lists the statuses from the one that wins when several apply. A wrong result comes before everything, because
// no other figure of such a run means anything; a run that did not finish comes before what is said about its measurement.
var ranked = []struct {
	status string
	code   int
}{
	{StatusIncorrect, ExitIncorrect},
	{StatusFailed, ExitFailed},
	{StatusInterrupted, ExitInterrupted},
	{StatusInvalid, ExitInvalid},
	{StatusRegression, ExitRegression},
	{StatusThreshold, ExitThreshold},
	{StatusIncomparable, ExitInconclusive},
	{StatusInconclusive, ExitInconclusive},
}

// Finding is one thing that somebody found out about the run. ExitCode 0 stands for the status's own code; a run that
// SIGTERM ended says ExitTerminated.
type Finding struct {
	Status   string
	ExitCode int
	Reason   string
}

// Judge gives the verdict on rec: what the record shows by itself and the findings of the caller. Of several statuses the
// most serious wins (4, 1, 130, 3, 5, 99, 6); the reasons of all are listed, its own first. A status that is none of ours
// counts as failed. rec is only read.
func Judge(rec *Record, found ...Finding) Verdict {
	all := slices.Concat(incorrectness(rec), invalidity(rec), failedThresholds(rec), doubts(rec), found)
	if !rec.Run.Complete && !slices.ContainsFunc(found, func(f Finding) bool {
		return f.Status == StatusFailed || f.Status == StatusInterrupted
	}) {
		all = append(all, Finding{Status: StatusInterrupted, Reason: "the run did not come to its end"})
	}
	return Weigh(all)
}

// Weigh makes one verdict of findings: the status is that of the most serious one. It is Judge without a record, for who
// judges several.
func Weigh(all []Finding) Verdict {
	v := Verdict{Status: StatusOK, Reasons: []string{}, Warnings: []string{}}
	for _, r := range ranked {
		for _, f := range all {
			if f.status() != r.status {
				continue
			}
			if v.Status == StatusOK {
				v.Status, v.ExitCode = r.status, r.code
				if f.ExitCode != 0 {
					v.ExitCode = f.ExitCode
				}
			}
			v.Reasons = append(v.Reasons, f.Reason)
		}
	}
	for _, f := range all {
		if f.Status == StatusWarning {
			v.Warnings = append(v.Warnings, f.Reason)
		}
	}
	return v
}

// status maps what is not ours to failed, so that a misspelt status cannot turn into a pass.
func (f *Finding) status() string {
	if f.Status == StatusWarning {
		return f.Status
	}
	for _, r := range ranked {
		if r.status == f.Status {
			return f.Status
		}
	}
	return StatusFailed
}

// incorrectness: what must be zero in every run. Missing pairs and lost records prove nothing in a run that was cut short,
// for they may have been still to come.
func incorrectness(rec *Record) []Finding {
	var out []Finding
	wrong := func(format string, n ...any) {
		out = append(out, Finding{Status: StatusIncorrect, Reason: fmt.Sprintf(format, n...)})
	}
	j, complete := &rec.Join, rec.Run.Complete
	if t := j.Truth; t != nil {
		if t.Missing != 0 && complete {
			wrong("expected lines that are missing: %s", Count(t.Missing))
		}
		if t.Spurious != 0 {
			wrong("lines that came out and were not expected: %s", Count(t.Spurious))
		}
		if t.Duplicated != 0 {
			wrong("lines that came out once too often: %s", Count(t.Duplicated))
		}
	}
	if n := j.Filter.FalseNegatives; n != 0 {
		wrong("keys that were there and the filter denied (false negatives): %s", Count(n))
	}
	for _, side := range []struct {
		name string
		*Side
	}{{"A", &j.A}, {"B", &j.B}} {
		if side.Read != side.Fates() && complete {
			wrong("%s: %s records were read and %s have a fate", side.name, Count(side.Read), Count(side.Fates()))
		}
	}
	return out
}

// invalidity: the figures are not those of the join at the load that was asked for.
func invalidity(rec *Record) []Finding {
	var out []Finding
	if s := rec.SteadyState; s != nil && s.Required && !s.Attained {
		out = append(out, Finding{Status: StatusInvalid, Reason: "steady state was required and not attained" + s.why()})
	}
	return append(out, generatorBound(rec.Load)...)
}

// moreSerious says whether a status comes before another one when both apply.
func moreSerious(status, than string) bool {
	rank := func(s string) int {
		for i, r := range ranked {
			if r.status == s {
				return i
			}
		}
		return len(ranked)
	}
	return rank(status) < rank(than)
}

// shown is the value, or why there is none.
func (t *Threshold) shown() string {
	if t.Value == nil && t.Reason != "" {
		return t.Reason
	}
	return orDash(t.Value, plain)
}

func failedThresholds(rec *Record) []Finding {
	var out []Finding
	for _, t := range rec.Thresholds {
		if !t.OK {
			out = append(out, Finding{Status: StatusThreshold, Reason: "threshold " + t.Expr + " failed: " + t.shown()})
		}
	}
	return out
}

// doubts are what a reader should know before using the figures.
func doubts(rec *Record) []Finding {
	var out []Finding
	warn := func(format string, args ...any) {
		out = append(out, Finding{Status: StatusWarning, Reason: fmt.Sprintf(format, args...)})
	}
	f := &rec.Join.Filter
	if low, _, ok := Wilson(f.FalsePositives, f.AbsentQueries, z999); ok && f.FPPredicted != nil && low > *f.FPPredicted {
		warn("the filter errs more often than predicted: %s of absent B, predicted %s; chance alone does that in 1 run of 1,000 at most",
			orDash(f.FPRatio, Percent), Percent(*f.FPPredicted))
	}
	if f.BuildFailed > 0 {
		warn("filter builds that failed, so that their buckets were asked without a filter: %s", Count(f.BuildFailed))
	}
	j := &rec.Join
	if j.Unvalidated {
		warn("unvalidated: with validate: lenient a record that is not whole JSON is joined as far as its fields are found, and not counted as malformed")
	}
	if j.Truth != nil && j.MatchRatio != nil && j.ExpectedMatchRatio != nil && rec.Run.Complete {
		if d := *j.MatchRatio - *j.ExpectedMatchRatio; d > 0.001 || d < -0.001 {
			warn("match ratio %s is more than 0.1 points off the %s asked for", Percent(*j.MatchRatio), Percent(*j.ExpectedMatchRatio))
		}
	}
	if in := rec.Tool.Instrumented; len(in) > 0 {
		warn("joinbench was built with %s, which slows it down; build it with make for figures", strings.Join(in, ", "))
	}
	out = append(out, overload(rec.Load)...)
	if rec.Tool.RocksDBAssertions {
		warn("RocksDB was compiled with assertions, which slows it down; use a release build for figures")
	}
	return out
}

// Worst is the exit code of the most serious verdict of several records.
func Worst(recs []*Record) int {
	worst := Verdict{Status: StatusOK}
	for _, rec := range recs {
		if v := &rec.Verdict; v.ExitCode != 0 && (worst.ExitCode == 0 || moreSerious(v.Status, worst.Status)) {
			worst = *v
		}
	}
	return worst.ExitCode
}
