package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "folder", "r.json")
	want := exampleRecord()
	if err := Write(path, want); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		t.Errorf("came back as\n%s\nwas\n%s", a, b)
	}
	if got.Schema != Schema || got.SchemaVersion != SchemaVersion {
		t.Errorf("schema %q %q", got.Schema, got.SchemaVersion)
	}
	// what a saved file shows is what the run showed
	for _, format := range Formats() {
		if !bytes.Equal(render(t, got, format, TextOptions{}), render(t, want, format, TextOptions{})) {
			t.Errorf("%s differs after the round trip", format)
		}
	}
	if data := render(t, got, "json", TextOptions{}); !bytes.Equal(data, must(os.ReadFile(path))) {
		t.Error("the JSON rendering is not the file")
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Without truth its fields are absent, not zero; lists are [] and what is not known is null.
func TestRoundTripOfNearlyNothing(t *testing.T) {
	rec := &Record{Join: Join{Counters: Counters{Matches: 3}}}
	data, err := Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "missing") {
		t.Error("claims to know what is missing")
	}
	for _, want := range []string{`"phases": []`, `"intervals": []`, `"drops": []`, `"arms": []`, `"thresholds": []`, `"reasons": []`,
		`"argv": []`, `"steady_state": null`, `"latency": null`, `"load": null`, `"ns_per_b": null`, `"fp_ratio": null`, `"config": null`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("lacks %s", want)
		}
	}
	got, err := Decode(data, "memory")
	if err != nil {
		t.Fatal(err)
	}
	if got.Join.Truth != nil || got.Join.Matches != 3 {
		t.Errorf("came back as %+v", got.Join)
	}
}

func TestNoNaN(t *testing.T) {
	rec := exampleRecord()
	rec.Cost.NsPerB = new(math.NaN())
	rec.Join.Filter.FPCI95 = &[2]float64{0, math.Inf(1)}
	rec.Arms[0].NsPerB = new(math.Inf(-1))
	rec.Latency.Service.MeanNs = new(math.NaN())
	data, err := Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(data, "memory")
	if err != nil {
		t.Fatal(err)
	}
	if got.Cost.NsPerB != nil || got.Join.Filter.FPCI95 != nil || got.Arms[0].NsPerB != nil || got.Latency.Service.MeanNs != nil {
		t.Error("what is not finite came back as a number")
	}
}

func TestReadErrors(t *testing.T) {
	dir := t.TempDir()
	valid := string(must(Marshal(exampleRecord())))
	for _, c := range []struct{ name, content, want string }{
		{"empty", " \n", "the file is empty"},
		{"text", "hello", "line 1: invalid character 'h'"},
		{"cut", valid[:strings.LastIndexByte(valid[:len(valid)/2], '\n')], "unexpected end of JSON input"},
		{"list", "[1]", "cannot unmarshal array"},
		{"no schema", `{"metrics":{}}`, `it has no "schema" (expected "joinbench.result")`},
		{"other schema", `{"schema":"k6","schema_version":"1.0.0"}`, `its schema is "k6" (expected "joinbench.result")`},
		{"no version", `{"schema":"joinbench.result"}`, `its schema_version "" is not a version`},
		{"newer", strings.Replace(valid, SchemaVersion, "2.3.0", 1), "its schema_version is 2.3.0 and this build reads 1.x"},
		{"wrong type", strings.Replace(valid, `"profile": "quick"`, `"profile": 7`, 1), "cannot unmarshal number"},
	} {
		path := filepath.Join(dir, "r.json")
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Read(path)
		if err == nil || !errors.Is(err, ErrNotResult) || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%s: %v, want it to say %q", c.name, err, c.want)
		}
	}
	if _, err := Read(filepath.Join(dir, "none.json")); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNotResult) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := Decode([]byte("{\n\n  \"schema\": oops}"), "x"); err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("the line of a mistake: %v", err)
	}
	// a newer minor version may have more
	more := strings.Replace(strings.Replace(valid, SchemaVersion, "1.7.2", 1), `"tool": {`, `"extra": 1, "tool": {"more": [],`, 1)
	if _, err := Decode([]byte(more), "x"); err != nil {
		t.Errorf("a newer minor version: %v", err)
	}
}

func TestWriteIsWholeOrNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "r.json")
	if err := Write(path, exampleRecord()); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, brokenRecord()); err != nil { // replaces
		t.Fatal(err)
	}
	if rec := must(Read(path)); rec.Verdict.Status != StatusIncorrect {
		t.Errorf("the second record is not there: %s", rec.Verdict.Status)
	}
	if entries := must(os.ReadDir(dir)); len(entries) != 1 {
		t.Errorf("temporary files are left: %v", entries)
	}
	if mode := must(os.Stat(path)).Mode().Perm(); mode&0o044 != 0o044 {
		t.Errorf("nobody else may read it: %v (umask?)", mode)
	}
	// the target is a folder: the rename fails, nothing is left
	blocked := filepath.Join(dir, "blocked.json")
	if err := os.MkdirAll(filepath.Join(blocked, "x"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := Write(blocked, exampleRecord()); err == nil || !strings.Contains(err.Error(), "blocked.json") {
		t.Errorf("writing onto a folder: %v", err)
	}
	if entries := must(os.ReadDir(dir)); len(entries) != 2 {
		t.Errorf("temporary files are left: %v", entries)
	}
	if err := Write(filepath.Join(path, "below", "a.json"), exampleRecord()); err == nil {
		t.Error("writing below a file worked")
	}
}

func TestDefaultPath(t *testing.T) {
	at := time.Date(2026, 1, 2, 4, 4, 5, 999, time.FixedZone("", 3600))
	for profile, want := range map[string]string{
		"quick": "results/quick-20260102T030405Z-1a2b3c4d.json", "../my profile.yaml": "results/my-profile.yaml-20260102T030405Z-1a2b3c4d.json",
		"": "results/run-20260102T030405Z-1a2b3c4d.json", "..": "results/run-20260102T030405Z-1a2b3c4d.json",
	} {
		if got := DefaultPath(profile, at, "1a2b3c4d"); got != want {
			t.Errorf("DefaultPath(%q) = %s", profile, got)
		}
	}
	a, b := NewRunID(), NewRunID()
	if ok := regexp.MustCompile(`^[0-9a-f]{8}$`).MatchString; !ok(a) || !ok(b) || a == b {
		t.Errorf("run ids %q, %q", a, b)
	}
}

func TestFormats(t *testing.T) {
	for _, f := range Formats() {
		if err := CheckFormat(f); err != nil {
			t.Error(err)
		}
	}
	var b bytes.Buffer
	for format, want := range map[string]string{
		"bmf": `"bmf" is not supported by this build yet (supported: text, json, md, csv, bench, svg, html)`,
		"hdr": `"hdr" is not supported by this build yet (supported: text, `,
		"xml": `"xml" is not known (supported: text, json, md`,
		"":    `"" is not known`,
	} {
		err := Render(&b, exampleRecord(), format, TextOptions{})
		if err == nil || !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", format, err)
		}
	}
	if b.Len() > 0 {
		t.Error("something was written all the same")
	}
}

func TestMarkdownKeepsItsTable(t *testing.T) {
	rec := exampleRecord()
	rec.Environment.CPU = "odd | name\nof a CPU"
	text := string(render(t, rec, "md", TextOptions{}))
	if !strings.Contains(text, `| machine | odd \| name of a CPU, 2 cores |`) {
		t.Errorf("the table breaks:\n%s", text)
	}
}

func TestSummary(t *testing.T) {
	h := hdrhistogram.New(1, 60_000_000_000, 3)
	if s, err := Summarize(h); s != nil || err != nil {
		t.Errorf("a summary of nothing: %v %v", s, err)
	}
	if s, err := Summarize(nil); s != nil || err != nil {
		t.Errorf("a summary of nil: %v %v", s, err)
	}
	for i := int64(1); i <= 10_000; i++ {
		h.RecordValue(i * 1000)
	}
	s, err := Summarize(h)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		got, want int64
	}{{"min", s.MinNs, 1000}, {"p50", s.P50Ns, 5_000_000}, {"p75", s.P75Ns, 7_500_000}, {"p90", s.P90Ns, 9_000_000}, {"p95", s.P95Ns, 9_500_000},
		{"p99", s.P99Ns, 9_900_000}, {"p99.9", s.P999Ns, 9_990_000}, {"p99.99", s.P9999Ns, 9_999_000}, {"max", s.MaxNs, 10_000_000}} {
		if d := math.Abs(float64(c.got-c.want)) / float64(c.want); d > 0.002 { // three digits
			t.Errorf("%s is %d, want %d", c.name, c.got, c.want)
		}
	}
	back, err := s.Histogram()
	if err != nil {
		t.Fatal(err)
	}
	if !back.Equals(h) {
		t.Error("the histogram came back different")
	}
	if _, err := (&Summary{HDR: "not one"}).Histogram(); err == nil {
		t.Error("decoded what is no histogram")
	}
}
