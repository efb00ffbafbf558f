package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"joinbench/results"
)

// recordSchema is what report --schema prints.
func recordSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	o := joinbench("report", "--schema")
	o.want(t, 0)
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(o.out))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestThresholdsOfRun: limits from the profile and from flags are held against the record, stand first in the report and
// decide the exit code; report does the same with the saved record.
func TestThresholdsOfRun(t *testing.T) {
	p := newPlace(t)
	p.write("small.yaml", smallProfile+"  thresholds: [join.missing==0, 'join.filter.fp_ratio<0.05']\n")
	o := joinbench("run", "--config", p.path("small.yaml"), "--out", p.path("r.json"), "--progress", "none", "--threshold", "cost.ns_per_b>1ns")
	o.want(t, 0)
	if !strings.HasPrefix(o.out, "THRESHOLDS\n  ✓ join.missing==0 ") || strings.Count(o.out, "✓") != 3 {
		t.Errorf("the report begins with %.300s", o.out)
	}
	rec := p.record()
	if len(rec.Thresholds) != 3 || rec.Thresholds[2].Expr != "cost.ns_per_b>1ns" || *rec.Thresholds[2].Value != *rec.Cost.NsPerB {
		t.Errorf("thresholds %+v", rec.Thresholds)
	}
	schema := recordSchema(t)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(p.read("r.json"))))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(doc); err != nil {
		t.Errorf("the record does not fit the schema: %v", err)
	}

	o = joinbench("run", "--config", p.path("small.yaml"), "--out", p.path("r.json"), "--progress", "none", "--threshold", "cost.ns_per_b/cost.unit_ns<0.001",
		"--threshold", "arms.memory.ns_per_b>1")
	o.want(t, results.ExitThreshold)
	rec = p.record()
	if v := rec.Verdict; v.Status != results.StatusThreshold || v.ExitCode != 99 || len(v.Reasons) != 2 || !strings.Contains(o.out, "✗ cost.ns_per_b/cost.unit_ns<0.001") {
		t.Errorf("verdict %+v", v)
	}

	joinbench("report", p.path("r.json")).want(t, 0) // it shows, and judges nothing anew
	o = joinbench("report", p.path("r.json"), "-f", "json", "--threshold", "join.probes<1", "--threshold", "join.missing==0")
	o.want(t, results.ExitThreshold)
	var again results.Record
	if err := json.Unmarshal([]byte(o.out), &again); err != nil {
		t.Fatal(err)
	}
	if len(again.Thresholds) != 5 || again.Thresholds[4].OK {
		t.Errorf("thresholds %+v", again.Thresholds)
	}
}

// TestThresholdsOfReport: the most serious verdict of several records is the exit code.
func TestThresholdsOfReport(t *testing.T) {
	p := newBenchPlace(t)
	p.bench(0)
	good := p.path("r.json")
	rec := p.record()
	rec.Verdict = results.Judge(rec, results.Finding{Status: results.StatusInvalid, Reason: "the generator was the limit"})
	invalid := p.path("invalid.json")
	if err := results.Write(invalid, rec); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code int
		args []string
	}{{0, []string{good, "--threshold", "join.missing==0"}}, {99, []string{good, "--threshold", "join.missing>0"}},
		{3, []string{good, invalid, "--threshold", "join.missing==0"}}, {3, []string{good, invalid, "--threshold", "join.missing>0"}},
		{0, []string{good, invalid}}} {
		joinbench(append([]string{"report"}, c.args...)...).want(t, c.code)
	}
	for _, format := range results.Formats() {
		if o := joinbench("report", "-f", format, good); (o.code != 0 || o.out == "") && format != "svg" {
			t.Errorf("%s: %d %s", format, o.code, o.err)
		}
	}
	if rec.Intervals = append(rec.Intervals, rec.Intervals[0]); len(rec.Intervals) > 1 { // the run was too short for a picture
		rec.Intervals[len(rec.Intervals)-1].TNs += 1e9
	}
	if err := results.Write(invalid, rec); err != nil {
		t.Fatal(err)
	}
	if o := joinbench("report", "-f", "svg", invalid); o.code != 0 || !strings.Contains(o.out, "<svg") {
		t.Errorf("svg: %d %s", o.code, o.err)
	}
	joinbench("report", "-f", "svg", good, good).want(t, 2, "svg draws one record")
}

// TestInstrumented: builds that are slower than those that are deployed are named.
func TestInstrumented(t *testing.T) {
	for _, c := range []struct{ key, value, want string }{{"-race", "true", "-race"}, {"-race", "false", ""}, {"-asan", "true", "-asan"},
		{"-gcflags", "all=-N -l", "-N"}, {"-gcflags", "-N", "-N"}, {"-gcflags", "-l", ""}, {"-tags", "-N", ""}} {
		if got := instrument(c.key, c.value); got != c.want {
			t.Errorf("%s=%s: %q, want %q", c.key, c.value, got, c.want)
		}
	}
}

// TestDoctor: every line is judged; the JSON has the same checks.
func TestDoctor(t *testing.T) {
	dir := t.TempDir()
	o := joinbench("doctor", "--dir", dir, "--json")
	o.want(t, 0)
	var d results.Diagnosis
	if err := json.Unmarshal([]byte(o.out), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Checks) < 15 || d.Environment.CPU == "" || d.Tool.Go == "" {
		t.Errorf("%+v", d)
	}
	o = joinbench("doctor", "--dir", dir)
	o.want(t, 0)
	for _, c := range d.Checks {
		if !strings.Contains(o.out, "  "+c.Name+" ") {
			t.Errorf("%s is not in the text", c.Name)
		}
	}
	// a place in which nothing can be written is bad
	file := newPlace(t).write("file")
	joinbench("doctor", "--dir", file+"/x").want(t, 0)
	joinbench("doctor", "--dir", file+"/x", "--strict").want(t, results.ExitInvalid)
	joinbench("run", "--dir", file+"/x", "--strict", "--progress", "none").want(t, results.ExitInvalid, "not started", "disk sync")
}
