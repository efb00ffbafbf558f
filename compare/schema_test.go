package compare

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"joinbench/internal/schemagen"
	"joinbench/results"
)

var update = flag.Bool("update", false, "write the schema anew")

// TestSchemaIsUpToDate: the published schema is that of the structs.
func TestSchemaIsUpToDate(t *testing.T) {
	verdicts := []string{Pass, Improvement, Regression, Inconclusive}
	want, err := schemagen.Make(schemagen.Spec{ID: "urn:joinbench:schema:comparison:1", Title: "joinbench comparison " + SchemaVersion,
		Root: reflect.TypeFor[Comparison](), Dir: ".", Schema: Schema, Major: 1, Enums: map[string][]string{
			"Comparison.Verdict": append(verdicts, Incomparable, results.StatusIncorrect, results.StatusFailed, results.StatusInterrupted,
				results.StatusInvalid, results.StatusThreshold),
			"Candidate.Verdict": append(verdicts, Incomparable),
			"Result.Verdict":    append(verdicts, Unjudged),
			"Result.Class":      {string(Count), string(Allocs), string(Memory), string(Time)},
			"Pairs.Verdict":     verdicts,
		}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("schema", "comparison.schema.json")
	if *update {
		if err := os.WriteFile(path, want, 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(JSONSchema()) != string(want) {
		t.Errorf("%s is not that of the structs: go test ./compare -run Schema -update writes it anew", path)
	}
}

// TestSchemaTakesComparisons: what is written as JSON is as the schema says, and what is not so is refused.
func TestSchemaTakesComparisons(t *testing.T) {
	valid, err := schemagen.Validator(JSONSchema())
	if err != nil {
		t.Fatal(err)
	}
	paired := compared(t)
	paired.Decided(sequence(0.05, 12, func() float64 { return math.Log(1.2) }), true)
	short := compared(t)
	short.Decided(sequence(0.05, 1, func() float64 { return 0 }), true)
	all := map[string]*Comparison{"worse": compared(t), "with pairs": paired, "with one pair": short}
	for name, change := range map[string]func(*results.Record){
		"equal":            func(*results.Record) {},
		"another workload": func(r *results.Record) { r.Run.WorkloadFingerprint = "x" },
		"wrong":            func(r *results.Record) { r.Verdict = results.Verdict{Status: results.StatusIncorrect, ExitCode: 4} },
		"another machine":  func(r *results.Record) { r.Environment.HostID = "x" },
		"knows less":       func(r *results.Record) { r.Cost = results.Cost{} },
	} {
		if all[name], err = Records(list(aRun(t)), list(aRun(t, change)), Options{}); err != nil {
			t.Fatal(err)
		}
	}
	if all["wrong"].Verdict != results.StatusIncorrect {
		t.Errorf("wrong: %+v", all["wrong"])
	}
	for name, c := range all {
		if err := valid(rendered(t, c, "json")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	full := string(rendered(t, paired, "json"))
	for _, c := range []struct{ old, new string }{
		{`"schema": "joinbench.comparison"`, `"schema": "joinbench.result"`},
		{`"schema_version": "` + SchemaVersion, `"schema_version": "2.0.0`},
		{`"verdict": "regression"`, `"verdict": "worse"`},
		{`"class": "count"`, `"class": "counts"`},
		{`"exit_code": 5`, `"exit_code": "5"`},
		{`"pairs": {`, `"pears": {`},
		{`"metrics": [`, `"metrics": null, "x": [`},
		{`"looks": 1`, `"looks": 1.5`},
	} {
		text := strings.Replace(full, c.old, c.new, 1)
		if text == full {
			t.Fatalf("%s is not in the comparison: %s", c.old, full)
		}
		if err := valid([]byte(text)); err == nil {
			t.Errorf("%s was taken", c.new)
		}
	}
}
