package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/joshdk/go-junit"

	"joinbench/results"
)

// compared is a comparison with a verdict of each kind.
func compared(t *testing.T) *Comparison {
	t.Helper()
	c, err := Records(list(aRun(t), aRun(t)), list(aRun(t, slower(1.5), commit("new"), func(r *results.Record) {
		r.Join.Lookups += 4
		*r.Cost.RSSMaxBytes /= 2
	})), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func rendered(t *testing.T, c *Comparison, format string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, c, format); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestForms: each form is read back, and says the numbers of the comparison.
func TestForms(t *testing.T) {
	c := compared(t)
	metrics := c.Candidates[0].Metrics
	var back Comparison
	if err := json.Unmarshal(rendered(t, c, "json"), &back); err != nil || len(back.Candidates[0].Metrics) != len(metrics) || back.Verdict != Regression {
		t.Errorf("json: %v, %+v", err, back)
	}
	var gab []struct {
		Name, Unit, Range, Extra string
		Value                    float64
	}
	if err := json.Unmarshal(rendered(t, c, "gab"), &gab); err != nil || len(gab) != len(metrics) {
		t.Fatalf("gab: %v, %d entries", err, len(gab))
	}
	var bmf map[string]map[string]struct{ Value, Lower_value, Upper_value float64 }
	if err := json.Unmarshal(rendered(t, c, "bmf"), &bmf); err != nil {
		t.Fatalf("bmf: %v", err)
	}
	suites, err := junit.Ingest(rendered(t, c, "junit"))
	if err != nil || len(suites) != 1 || suites[0].Totals.Tests != len(metrics)+1 {
		t.Fatalf("junit: %v, %+v", err, suites)
	}
	cases := suites[0].Tests
	md := string(rendered(t, c, "md"))
	for i, m := range metrics {
		if gab[i].Name != "ci/"+m.Metric || gab[i].Value != *m.New || gab[i].Extra != m.Verdict || gab[i].Unit == "" {
			t.Errorf("gab: %+v, want %+v", gab[i], m)
		}
		if b := bmf["joinbench/ci"][m.Metric]; b.Value != *m.New || b.Lower_value > b.Value || b.Upper_value < b.Value {
			t.Errorf("bmf: %s is %+v, want %v", m.Metric, b, *m.New)
		}
		want := junit.StatusPassed
		switch m.Verdict {
		case Regression:
			want = junit.StatusFailed
		case Inconclusive, Unjudged:
			want = junit.StatusSkipped
		}
		if k := cases[i+1]; k.Name != m.Metric || k.Status != want || want == junit.StatusFailed && !strings.Contains(k.Message+k.Error.Error(), number(*m.New)) {
			t.Errorf("junit: %+v, want %+v", k, m)
		}
		if !strings.Contains(md, "| "+mark(m.Verdict)+" | "+m.Metric) {
			t.Errorf("markdown lacks %s", m.Metric)
		}
	}
	if suites[0].Totals.Failed != 2 || !strings.HasPrefix(md, "### joinbench: regression") {
		t.Errorf("junit: %d failures; markdown %.40s", suites[0].Totals.Failed, md)
	}
	if err := Write(&bytes.Buffer{}, c, "pdf"); err == nil {
		t.Error("pdf is no form")
	}
}

// TestFormsOfPairs: however many pairs there are, each form can say what they say.
func TestFormsOfPairs(t *testing.T) {
	for n := range 12 {
		c := compared(t)
		p := sequence(0.05, n, func() float64 { return float64(n%3) / 10 })
		c.Decided(p, false)
		for _, format := range Formats() {
			rendered(t, c, format)
		}
		if text := string(rendered(t, c, "text")); !strings.Contains(text, fmt.Sprintf("%d pairs", len(p.Logs))) || !strings.Contains(text, p.Metric+" / unit: "+p.Verdict) {
			t.Errorf("%d pairs: %s", n, text)
		}
	}
}

// TestBenchstat: benchstat itself reads the form bench, and finds the medians.
func TestBenchstat(t *testing.T) {
	c := compared(t)
	path := filepath.Join(t.TempDir(), "both.txt")
	if err := os.WriteFile(path, rendered(t, c, "bench"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "tool", "benchstat", "-format", "csv", "-col", "side", "-ignore", "commit,host", path)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("benchstat: %v: %s", err, stderr.String())
	}
	text := string(out)
	for _, want := range []string{"base", "new", "rss-bytes", "6.0338176e+07", "3.0169088e+07", "allocs/B", digits(*aRun(t).Cost.AllocsPerProbe)} {
		if !strings.Contains(text, want) {
			t.Errorf("benchstat does not say %q:\n%s", want, text)
		}
	}
}

// digits are those that benchstat's CSV begins a number with.
func digits(v float64) string { return strconv.FormatFloat(v, 'f', 12, 64) }

// TestJUnitOfSeveral: what is wrong with one build fails nothing of another, and is said where it is.
func TestJUnitOfSeveral(t *testing.T) {
	wrong := func(r *results.Record) {
		r.Verdict = results.Verdict{Status: results.StatusIncorrect, ExitCode: 4, Reasons: []string{"a pair is missing"}}
	}
	slow := func(r *results.Record) { r.Join.Lookups++ }
	c, err := Records(list(aRun(t)), list(aRun(t, commit("good")), aRun(t, commit("wrong"), wrong), aRun(t, commit("slow"), slow)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	suites, err := junit.Ingest(rendered(t, c, "junit"))
	if err != nil || len(suites) != 3 {
		t.Fatalf("%v, %+v", err, suites)
	}
	for i, want := range []string{"", "a pair is missing", "join.lookups"} {
		whole := suites[i].Tests[0]
		if whole.Status == junit.StatusFailed != (want != "") || want != "" && !strings.Contains(whole.Message+whole.Error.Error(), want) {
			t.Errorf("%s: %+v, want %q", suites[i].Name, whole, want)
		}
	}
}
