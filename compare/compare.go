package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"joinbench/results"
)

// Verdicts on a metric and on the whole. Unjudged is for metrics alone: the data say nothing of it, and it weighs nothing.
const (
	Pass         = "pass"
	Regression   = results.StatusRegression
	Improvement  = "improvement"
	Inconclusive = results.StatusInconclusive
	Incomparable = results.StatusIncomparable
	Unjudged     = "unjudged"
)

// Comparison is what compare and ab found. It is made once, and only read then.
type Comparison struct {
	Schema        string      `json:"schema"`
	SchemaVersion string      `json:"schema_version"`
	Verdict       string      `json:"verdict"`
	ExitCode      int         `json:"exit_code"`
	Reasons       []string    `json:"reasons"`
	Warnings      []string    `json:"warnings"`
	Base          Build       `json:"base"`
	Candidates    []Candidate `json:"candidates"`
}

// Schema of a Comparison.
const (
	Schema        = "joinbench.comparison"
	SchemaVersion = "1.0.0"
)

// Build is the runs of one build.
type Build struct {
	Label       string   `json:"label"`
	Version     string   `json:"version"`
	Commit      string   `json:"commit"`
	Profile     string   `json:"profile"`
	Fingerprint string   `json:"workload_fingerprint"`
	Host        string   `json:"host_id"`
	Runs        []string `json:"runs"` // ids

	records []*results.Record
}

// Name says which build it is.
func (b *Build) Name() string {
	name := strings.TrimSpace(b.Label + " " + b.Commit)
	if name == "" {
		name = strings.Join(b.Runs, " ")
	}
	return name
}

// Candidate is a build held against the base.
type Candidate struct {
	Build
	Verdict  string   `json:"verdict"`
	Reasons  []string `json:"reasons"`
	Warnings []string `json:"warnings"`
	Metrics  []Result `json:"metrics"`
	Pairs    *Pairs   `json:"pairs"` // of runs that took turns, null without

	failed []string // why its part of the whole is not 0
}

// BaseError says that the base is none: a usage error, never a pass.
type BaseError struct{ Reason string }

func (e *BaseError) Error() string { return "baseline: " + e.Reason }

// Options of Records.
type Options struct {
	Overrides []Override       // beyond those of the base's profile
	Limits    []*results.Limit // that each new record is held against by itself
	Strict    bool             // what is inconclusive or cannot be compared fails
	SkipTime  bool             // times are judged elsewhere, or not at all
	// Short says that all runs of a build but the first ended early: what is counted is that of the first.
	Short bool

	whole int // Limits are for so many of the new records, the first; 0: for all
}

// Records holds new records against those of the base. Runs of the base are pooled; new ones are pooled by label and
// commit, and each such build is judged; opt.Limits become thresholds of the new records, which are changed by nothing else. The error is a *BaseError, or one in a profile's limits.
func Records(base, fresh []*results.Record, opt Options) (*Comparison, error) {
	if err := checkBase(base); err != nil {
		return nil, err
	}
	overrides, err := OfProfile(base[0])
	if err != nil {
		return nil, fmt.Errorf("the base's load.limits: %w", err)
	}
	rules := Rules(base[0], append(overrides, opt.Overrides...))
	if len(opt.Limits) > 0 {
		for i, rec := range fresh {
			if opt.whole == 0 || i < opt.whole {
				rec.Rejudge(opt.Limits)
			}
		}
	}
	c := &Comparison{Schema: Schema, SchemaVersion: SchemaVersion, Base: build(base)}
	for _, group := range pool(fresh) {
		c.Candidates = append(c.Candidates, judge(&c.Base, build(group), rules, &opt))
	}
	c.Weigh(opt.Strict)
	return c, nil
}

// checkBase: a base whose figures mean nothing would let everything pass.
func checkBase(base []*results.Record) error {
	if len(base) == 0 {
		return &BaseError{"no record"}
	}
	for _, rec := range base {
		switch {
		case !rec.Run.Complete:
			return &BaseError{fmt.Sprintf("run %s did not come to its end", rec.Run.ID)}
		case rec.Verdict.Status == results.StatusIncorrect || rec.Verdict.Status == results.StatusInvalid || rec.Verdict.Status == results.StatusFailed:
			return &BaseError{fmt.Sprintf("run %s was %s: %s", rec.Run.ID, rec.Verdict.Status, strings.Join(rec.Verdict.Reasons, "; "))}
		case rec.Run.WorkloadFingerprint != base[0].Run.WorkloadFingerprint:
			return &BaseError{fmt.Sprintf("runs %s and %s had different workloads", base[0].Run.ID, rec.Run.ID)}
		}
	}
	return nil
}

// widest is the build's runs with the most processors among them.
func (b *Build) widest() *Build {
	most := 0
	for _, rec := range b.records {
		most = max(most, rec.Environment.GOMAXPROCS)
	}
	wide := *b
	wide.records = slices.DeleteFunc(slices.Clone(b.records), func(rec *results.Record) bool { return rec.Environment.GOMAXPROCS < most })
	return &wide
}

// first is the build's first run.
func (b *Build) first() *Build {
	one := *b
	one.records = b.records[:1]
	return &one
}

func build(recs []*results.Record) Build {
	r := recs[0]
	b := Build{Label: r.Run.Label, Version: r.Tool.Version, Commit: r.Tool.Commit, Profile: r.Run.Profile,
		Fingerprint: r.Run.WorkloadFingerprint, Host: r.Environment.HostID, records: recs}
	if r.Tool.Dirty && b.Commit != "" {
		b.Commit += "-dirty"
	}
	for _, rec := range recs {
		b.Runs = append(b.Runs, rec.Run.ID)
	}
	return b
}

// pool groups records of one label and commit, in the order in which they came.
func pool(recs []*results.Record) [][]*results.Record {
	var out [][]*results.Record
	for _, rec := range recs {
		i := slices.IndexFunc(out, func(g []*results.Record) bool {
			f := g[0]
			return f.Run.Label == rec.Run.Label && f.Tool.Commit == rec.Tool.Commit && f.Tool.Dirty == rec.Tool.Dirty &&
				f.Run.WorkloadFingerprint == rec.Run.WorkloadFingerprint
		})
		if i < 0 {
			out = append(out, nil)
			i = len(out) - 1
		}
		out[i] = append(out[i], rec)
	}
	return out
}

func judge(base *Build, b Build, rules []Rule, opt *Options) Candidate {
	c := Candidate{Build: b, Reasons: []string{}, Warnings: []string{}, Metrics: []Result{}}
	if b.Fingerprint != base.Fingerprint {
		c.Verdict = Incomparable
		c.Reasons = append(c.Reasons, fmt.Sprintf("another workload: %s (profile %s), and the base has %s (profile %s)",
			orNone(b.Fingerprint), b.Profile, orNone(base.Fingerprint), base.Profile))
		return c
	}
	c.Warnings = append(c.Warnings, unlike(base, &b)...)
	tests := 0
	for _, r := range rules {
		if r.Class == Time {
			tests++
		}
	}
	for _, r := range rules {
		base, b := base, &b
		switch {
		case opt.Short && r.counted():
			base, b = base.first(), b.first()
		case r.Class == Allocs:
			base, b = base.widest(), b.widest()
		}
		m := measure(base, b, r)
		switch {
		case m.Base == nil && m.New == nil && !r.asked:
			continue // neither build knows it
		case r.Class == Time && opt.SkipTime:
			continue
		case m.Base == nil && m.New == nil:
			m.Verdict, m.Reason = Inconclusive, "neither build knows it, and a limit was set for it"
		case m.New == nil && (r.asked || r.Class == Count):
			m.Verdict, m.Reason = Inconclusive, "the new build does not know it any more"
		case m.Base == nil || m.New == nil:
			m.Verdict, m.Reason = Unjudged, "one of the two does not know it"
		case (r.Class == Memory || r.Class == Time) && !alike(base, b, machine):
			m.Verdict, m.Reason = Unjudged, "other machine"
		case r.Class == Allocs && !alike(base, b, runtimeOf):
			m.Verdict, m.Reason = Unjudged, "another Go, or another number of cores"
		default:
			m.decide(base, b, r, alpha/float64(max(tests, 1)))
		}
		c.Metrics = append(c.Metrics, m)
	}
	c.Weigh()
	return c
}

// Weigh makes the candidate's verdict of those on its metrics.
func (c *Candidate) Weigh() {
	c.Verdict = Pass
	for _, verdict := range []string{Improvement, Inconclusive, Regression} {
		for i := range c.Metrics {
			if m := &c.Metrics[i]; m.Verdict == verdict {
				c.Verdict = verdict
			}
		}
	}
	c.Reasons = []string{}
	for i := range c.Metrics {
		if m := &c.Metrics[i]; m.Verdict == c.Verdict && c.Verdict != Pass {
			c.Reasons = append(c.Reasons, m.sentence())
		}
	}
}

// alike says whether all runs of both have the same of something.
func alike(base, b *Build, of func(*results.Record) string) bool {
	other := func(rec *results.Record) bool { return of(rec) != of(base.records[0]) }
	return !slices.ContainsFunc(base.records, other) && !slices.ContainsFunc(b.records, other)
}

func machine(rec *results.Record) string { return rec.Environment.HostID }

// runtimeOf: what the Go runtime allocates by itself depends on its version and on how many threads it has.
func runtimeOf(rec *results.Record) string {
	return fmt.Sprint(rec.Tool.Go, rec.Environment.GOMAXPROCS)
}

func orNone(s string) string { return cmp.Or(s, "none") }

// unlike are the warnings about what differs beside the build.
func unlike(base, b *Build) []string {
	var out []string
	x, y := base.records[0], b.records[0]
	differ := func(what, old, fresh string) {
		if old != fresh {
			out = append(out, fmt.Sprintf("%s: the base had %s, this has %s", what, orNone(old), orNone(fresh)))
		}
	}
	if base.Host != b.Host {
		out = append(out, fmt.Sprintf("another machine (%s, %d cores; the base had %s, %d cores): times and memory are not judged, counts are",
			y.Environment.CPU, y.Environment.Cores, x.Environment.CPU, x.Environment.Cores))
	} else if !alike(base, b, machine) {
		out = append(out, "runs of several machines: times and memory are not judged, counts are")
	}
	differ("Go", x.Tool.Go, y.Tool.Go)
	differ("RocksDB", x.Tool.RocksDB, y.Tool.RocksDB)
	differ("JSON engine", x.Tool.JSONEngine, y.Tool.JSONEngine)
	differ("version of joinbench", x.Tool.Version, y.Tool.Version)
	differ("version of the records", x.SchemaVersion, y.SchemaVersion)
	differ("instrumentation", strings.Join(x.Tool.Instrumented, " "), strings.Join(y.Tool.Instrumented, " "))
	differ("kernel", x.Environment.Kernel, y.Environment.Kernel)
	differ("tasks", fmt.Sprint(x.Run.Tasks), fmt.Sprint(y.Run.Tasks))
	differ("filter", x.Join.Filter.Kind, y.Join.Filter.Kind)
	return out
}

// Weigh makes the verdict of the whole of those on the candidates, and its exit code.
func (c *Comparison) Weigh(strict bool) {
	var found []results.Finding
	best := Pass
	weigh := func(found []results.Finding) results.Verdict {
		v := results.Weigh(found)
		if v.ExitCode == results.ExitInconclusive && !strict {
			v.ExitCode = 0
		}
		return v
	}
	for i := range c.Candidates {
		n := &c.Candidates[i]
		its := n.findings()
		found = append(found, its...)
		n.failed = nil
		if v := weigh(its); v.ExitCode != 0 {
			n.failed = v.Reasons
		}
		if n.Verdict == Improvement {
			best = Improvement
		}
	}
	v := weigh(found)
	c.Verdict, c.ExitCode, c.Reasons, c.Warnings = v.Status, v.ExitCode, v.Reasons, v.Warnings
	if v.Status == results.StatusOK {
		c.Verdict = best
	}
}

// findings are what its runs said themselves, what its metrics say, and its warnings.
func (n *Candidate) findings() (found []results.Finding) {
	for _, rec := range n.records {
		v := &rec.Verdict
		if v.ExitCode == 0 {
			continue
		}
		reasons := v.Reasons
		if len(reasons) == 0 {
			reasons = []string{v.Status}
		}
		for _, reason := range reasons {
			found = append(found, results.Finding{Status: v.Status, ExitCode: v.ExitCode, Reason: "run " + rec.Run.ID + ": " + reason})
		}
	}
	switch n.Verdict {
	case Regression, Inconclusive, Incomparable:
		for _, reason := range n.Reasons {
			found = append(found, results.Finding{Status: n.Verdict, Reason: reason})
		}
	}
	for _, w := range n.Warnings {
		found = append(found, results.Finding{Status: results.StatusWarning, Reason: w})
	}
	return found
}
