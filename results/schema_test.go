package results

import (
	"encoding/json"
	"strings"
	"testing"

	"joinbench/internal/schemagen"
)

// interruptedRecord is a run that was stopped while it prepared.
func interruptedRecord() *Record {
	rec := &Record{Run: Run{ID: "0badcafe", Profile: "quick", StartedAt: "2026-01-02T03:04:05Z"}, Phases: []Phase{{"prepare", 0, 1_000_000, 5}},
		Join: Join{Truth: &Truth{}}}
	rec.Join.Derive()
	rec.Verdict = Judge(rec, Finding{Status: StatusInterrupted, ExitCode: ExitTerminated, Reason: "terminated"})
	return rec
}

func TestSchemaTakesRecords(t *testing.T) {
	valid := must(schemagen.Validator(JSONSchema()))
	for name, rec := range map[string]*Record{"full": exampleRecord(), "minimal": {}, "broken": brokenRecord(), "interrupted": interruptedRecord()} {
		if err := valid(must(Marshal(rec))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	more := strings.Replace(string(must(Marshal(exampleRecord()))), `"tool": {`, `"extra": 1, "tool": {"more": [],`, 1)
	if err := valid([]byte(more)); err != nil {
		t.Errorf("a later minor version: %v", err)
	}
}

func TestSchemaRefuses(t *testing.T) {
	valid := must(schemagen.Validator(JSONSchema()))
	full := string(must(Marshal(exampleRecord())))
	for name, c := range map[string]struct{ old, new string }{
		"another schema":           {`"schema": "joinbench.result"`, `"schema": "k6"`},
		"another major version":    {`"schema_version": "` + SchemaVersion, `"schema_version": "2.0.0`},
		"a missing section":        {`"cost": {`, `"costs": {`},
		"a missing field":          {`"ns_per_b":`, `"ns_per_bee":`},
		"a missing field in a map": {`"profile":`, `"profil":`},
		"half of the truth":        {`"spurious":`, `"spurios":`},
		"text for a number":        {`"exit_code": 0`, `"exit_code": "0"`},
		"number for text":          {`"profile": "quick"`, `"profile": 7`},
		"a fraction of a count":    {`"probes": 4999990`, `"probes": 4999990.5`},
		"null for a count":         {`"probes": 4999990`, `"probes": null`},
		"null for a list":          {`"argv": [`, `"argv": null, "x": [`},
		"a negative seed":          {`"seed": 42`, `"seed": -42`},
		"a status of its own":      {`"status": "ok"`, `"status": "great"`},
		"an interval of one":       {`"fp_ci95": [`, `"fp_ci95": [0], "x": [`},
		"NaN":                      {`"ns_per_b": 81.04`, `"ns_per_b": NaN`},
		"NaN as text":              {`"ns_per_b": 81.04`, `"ns_per_b": "NaN"`},
	} {
		text := strings.Replace(full, c.old, c.new, 1)
		if text == full {
			t.Fatalf("%s: %s is not in the record", name, c.old)
		}
		if err := valid([]byte(text)); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// Every field that the record's tree has is in the schema and required there, or part of the truth.
func TestSchemaHasEveryMetric(t *testing.T) {
	var schema struct {
		Defs map[string]struct {
			Properties map[string]struct{ Description string }
		} `json:"$defs"`
	}
	if err := json.Unmarshal(JSONSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	for def, want := range map[string][]string{
		"Cost": {"ns_per_b", "rss_max_bytes", "gc_pause_p99_ns"}, "Filter": {"fp_ratio", "present_queries"},
		"Join": {"missing", "probes", "match_ratio", "buckets_consulted"}, "Arm": {"name"}, "Threshold": {"expr", "reason"},
	} {
		for _, name := range want {
			if _, ok := schema.Defs[def].Properties[name]; !ok {
				t.Errorf("%s.%s is not in the schema", def, name)
			}
		}
	}
	if schema.Defs["Cost"].Properties["background_ns_per_a"].Description == "" {
		t.Error("comments did not become descriptions")
	}
}
