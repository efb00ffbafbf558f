package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"joinbench/compare"
	"joinbench/results"
)

// savedRun writes a run of profile ci with a change, and returns its path.
func (p place) savedRun(name string, change func(*results.Record)) string {
	p.t.Helper()
	rec, err := results.Read("../../compare/testdata/ci.json")
	if err != nil {
		p.t.Fatal(err)
	}
	change(rec)
	if err := results.Write(p.path(name), rec); err != nil {
		p.t.Fatal(err)
	}
	return p.path(name)
}

// TestCompareCodes: each kind of failure has its exit code, and says what it is.
func TestCompareCodes(t *testing.T) {
	p := newPlace(t)
	same := func(*results.Record) {}
	base, equal := p.savedRun("base.json", same), p.savedRun("equal.json", same)
	lookup := p.savedRun("lookup.json", func(r *results.Record) { r.Join.Lookups += 4 })
	slow := p.savedRun("slow.json", func(r *results.Record) { *r.Cost.NsPerB *= 2 })
	other := p.savedRun("other.json", func(r *results.Record) { r.Run.WorkloadFingerprint = "other" })
	wrong := p.savedRun("wrong.json", func(r *results.Record) {
		r.Join.Truth.Missing = 1
		r.Verdict = results.Judge(r)
	})
	newer := p.write("newer.json", strings.Replace(p.read("base.json"), `"schema_version": "1.`, `"schema_version": "2.`, 1))
	torn := p.write("torn.json", p.read("base.json")[:2000])
	empty := p.path("empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		code  int
		args  []string
		texts []string
	}{
		"pass":                     {0, []string{base, equal}, nil},
		"regression":               {5, []string{base, lookup}, nil},
		"one of several":           {5, []string{base, equal, lookup}, nil},
		"inconclusive":             {0, []string{base, slow}, []string{"warning: inconclusive", "cost.ns_per_b", "--strict"}},
		"inconclusive, strict":     {6, []string{base, slow, "--strict"}, nil},
		"slow, times left out":     {0, []string{base, slow, "--strict", "--skip-time"}, nil},
		"another workload":         {0, []string{base, other}, []string{"warning: incomparable", "another workload"}},
		"another workload, strict": {6, []string{base, other, "--strict"}, nil},
		"incorrect":                {4, []string{base, wrong}, nil},
		"incorrect and worse":      {4, []string{base, wrong, lookup}, nil},
		"threshold":                {99, []string{base, equal, "--threshold", "join.lookups<5"}, nil},
		"regression and threshold": {5, []string{base, lookup, "--threshold", "join.lookups<5"}, nil},
		"no baseline":              {2, []string{p.path("none.json"), equal}, []string{"baseline", "none.json"}},
		"baseline of no kind":      {2, []string{empty, equal}, []string{"baseline", "no record"}},
		"torn baseline":            {2, []string{torn, equal}, []string{"torn.json", "line "}},
		"torn new":                 {2, []string{base, torn}, []string{"torn.json", "line "}},
		"newer baseline":           {2, []string{newer, equal}, []string{"newer.json", "schema_version is 2."}},
		"newer record":             {2, []string{base, newer}, []string{"newer.json", "schema_version is 2."}},
		"wrong baseline":           {2, []string{wrong, equal}, []string{"baseline", "incorrect"}},
		"two kinds of baseline":    {2, []string{base, equal, "--base", other}, []string{"baseline", "different workloads"}},
		"new is missing":           {1, []string{base, p.path("none.json")}, []string{"none.json"}},
		"one name":                 {2, []string{base}, []string{"at least one new record"}},
		"limit":                    {2, []string{base, equal, "--limit", "tmie=3%"}, []string{"--limit", "tmie"}},
		"format":                   {2, []string{base, equal, "-f", "pdf"}, []string{`"pdf"`}},
		"form of out":              {2, []string{base, equal, "-o", "pdf=x"}, []string{"--out", `"pdf"`}},
		"out without path":         {2, []string{base, equal, "-o", "md"}, []string{"format=path"}},
		"limit that forgives":      {0, []string{base, lookup, "--limit", "count=1%"}, nil},
		"out that cannot be":       {1, []string{base, equal, "-o", "md=" + p.path("no/x.md")}, []string{"no/x.md"}},
		"ab of one":                {2, []string{"ab", "x"}, []string{"two programs"}},
		"ab of nothing":            {2, []string{"ab", p.path("none"), p.path("none")}, []string{"none"}},
		"ab without budget":        {2, []string{"ab", base, base, "--budget", "0s"}, []string{"--budget"}},
		"ab with a bad seed":       {2, []string{"ab", base, base, "--seed", "7x"}, []string{"--seed"}},
		"ab by a count":            {2, []string{"ab", base, base, "--metric", "join.lookups"}, []string{"--metric", "judged exactly"}},
		"ab with a bad number":     {2, []string{"ab", base, base, "--procs", "-2"}, []string{"--procs"}},
		"ab with a bad profile":    {2, []string{"ab", base, base, "--profile", "qick"}, []string{`"qick"`}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.args[0] != "ab" {
				c.args = append([]string{"compare"}, c.args...)
			}
			joinbench(c.args...).want(t, c.code, c.texts...)
		})
	}
}

// TestCompareForms: a directory or a pattern is a baseline too, and each form finds its file.
func TestCompareForms(t *testing.T) {
	p := newPlace(t)
	if err := os.Mkdir(p.path("runs"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		p.savedRun(fmt.Sprintf("runs/%d.json", i), func(r *results.Record) { r.Run.ID = fmt.Sprint("run", i) })
	}
	if o := joinbench("compare", "--schema"); o.code != 0 || o.out != string(compare.JSONSchema()) {
		t.Errorf("--schema: exit code %d: %s", o.code, o.out)
	}
	fresh := p.savedRun("new.json", func(r *results.Record) { r.Join.Lookups -= 4 })
	for _, base := range []string{p.path("runs"), p.path("runs/*.json")} {
		args := []string{"compare", base, fresh, "-f", "json"}
		for _, format := range compare.Formats() {
			args = append(args, "-o", format+"="+p.path("out."+format))
		}
		o := joinbench(args...)
		o.want(t, 0)
		var c compare.Comparison
		if err := json.Unmarshal([]byte(o.out), &c); err != nil || c.Verdict != compare.Improvement || len(c.Base.Runs) != 3 {
			t.Errorf("%s: %v, %s with a base of %v", base, err, c.Verdict, c.Base.Runs)
		}
		for _, format := range compare.Formats() {
			if p.read("out."+format) == "" {
				t.Errorf("%s is empty", format)
			}
		}
	}
}

// abOfOne holds this very program against itself; the records go into a directory.
func (p place) abOfOne(dir string, args ...string) outcome {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Setenv(asProgram, "1")
	return joinbench(append([]string{"ab", self, self, "--dir", p.path(dir)}, args...)...)
}

// TestABOfOne: two runs of this very program by turns are told apart by nothing, and everything is kept.
func TestABOfOne(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the benchmark some times")
	}
	p := newPlace(t)
	t.Setenv("JOINBENCH_LOAD_B_EVENTS", "100k")
	t.Setenv("JOINBENCH_LOAD_PENDING", "20k")
	t.Setenv("JOINBENCH_LOAD_TIMED_EVENTS", "30k")
	t.Setenv("JOINBENCH_LOAD_THRESHOLDS", "cost.unit_ns>0") // which runs behind the first pair do not know
	o := p.abOfOne("ab", "--budget", "4s", "--seed", "7", "-f", "json")
	if o.code != 0 && o.code != 5 { // times of such runs are noise, and memory of programs with tests in them too
		o.want(t, 0)
	}
	var c compare.Comparison
	if err := json.Unmarshal([]byte(o.out), &c); err != nil {
		t.Fatal(err)
	}
	pairs := c.Candidates[0].Pairs
	if pairs == nil || pairs.Seed != 7 || len(pairs.Logs) == 0 || !strings.Contains(o.err, "seed 7") {
		t.Fatalf("pairs %+v; %s", pairs, o.err)
	}
	if !slices.ContainsFunc(c.Candidates[0].Metrics, func(m compare.Result) bool { return m.Metric == "cost.cpu_parts.clock_ns_per_b" }) {
		t.Error("the clock was not asked, or that of runs that never stand still")
	}
	for _, m := range c.Candidates[0].Metrics {
		if m.Class == compare.Count && m.Verdict != compare.Pass {
			t.Errorf("%s: %s %s", m.Metric, m.Verdict, m.Reason)
		}
		if m.Metric == "join.probes" && *m.Base < 150e3 { // those of the first run, which does not end early
			t.Errorf("%v probes", *m.Base)
		}
	}
	for _, side := range []string{"a", "b"} {
		saved, _ := filepath.Glob(p.path("ab/" + side + "-*.json"))
		if len(saved) != len(pairs.Logs)+1 {
			t.Errorf("%d records of %s, %d pairs", len(saved), side, len(pairs.Logs))
		}
		for i, path := range saved {
			if rec, err := results.Read(path); err != nil || (rec.Environment.GOMAXPROCS == 1) != (i > 0 || runtime.GOMAXPROCS(0) == 1) || rec.Cost.CPUParts == nil || (rec.Cost.UnitNs == nil) != (i > 0) {
				t.Errorf("%s: %d processors, unit %v, parts %v, %v", path, rec.Environment.GOMAXPROCS, rec.Cost.UnitNs, rec.Cost.CPUParts, err)
			} else if want := map[bool]int64{false: 200e3, true: 130e3}[i > 0]; rec.Join.B.Read != want { // 100 k to warm up
				t.Errorf("%s: %d B, want %d", path, rec.Join.B.Read, want)
			}
		}
	}
	if summary := p.read("ab/summary.json"); summary != o.out {
		t.Error("summary.json is not what was printed")
	}
}

// TestABProcs: who says how many processors, or lets the clock decide, gets them.
func TestABProcs(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the benchmark some times")
	}
	p := newPlace(t)
	t.Setenv("GOMAXPROCS", "3")
	t.Setenv("JOINBENCH_LOAD_B_EVENTS", "10k")
	t.Setenv("JOINBENCH_LOAD_WARM", "1k")
	t.Setenv("JOINBENCH_LOAD_PENDING", "2k")
	for n, c := range []struct {
		args string
		want [2]int // in the first pair, and in the next or last
	}{
		{"", [2]int{3, 1}}, {"--procs 2", [2]int{3, 2}}, {"--procs 0", [2]int{3, 3}}, {"--metric cost.ns_per_b", [2]int{3, 3}},
		{"--metric cost.ns_per_b --procs 1", [2]int{3, 1}},
	} {
		dir := fmt.Sprint("ab", n)
		p.abOfOne(dir, append(strings.Fields(c.args), "--budget", "1ms")...)
		saved, _ := filepath.Glob(p.path(dir + "/b-*.json"))
		for i, path := range []string{saved[0], saved[len(saved)-1]} {
			if rec, err := results.Read(path); err != nil || rec.Environment.GOMAXPROCS != c.want[i] {
				t.Errorf("%q: %d processors in %s, want %d; %v", c.args, rec.Environment.GOMAXPROCS, path, c.want[i], err)
			} else if pinned := slices.Contains(rec.Run.Argv, "--pin"); pinned != (c.args == "" && i == 1) { // the two that take turns on one
				t.Errorf("%q: %s was started by %v", c.args, path, rec.Run.Argv)
			}
		}
	}
}
