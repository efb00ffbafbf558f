package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"joinbench/compare"
)

// TestEveryChangeCanBeMade: the changes follow the code, and what they make of it compiles. What the gate says of them is for
// `make gate-proof`, which takes hours.
func TestEveryChangeCanBeMade(t *testing.T) {
	t.Chdir("../..")
	for i := range changes {
		c := &changes[i]
		flags, err := c.overlay(t.TempDir())
		if err != nil {
			t.Error(err)
		}
		if (len(flags) == 0) != (i == 0) {
			t.Errorf("%q: flags %q", c.name, flags)
		}
		if testing.Short() || err != nil {
			continue
		}
		if out, err := exec.Command("go", append(append([]string{"build"}, flags...), "./"+filepath.Dir(file))...).CombinedOutput(); err != nil {
			t.Errorf("%q: %v\n%s", c.name, err, out)
		}
	}
}

// TestNotes: what was noted is read again, so that a proof goes on, and a line that was cut off is said.
func TestNotes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "proof.ndjson")
	if lines, err := read(path); err != nil || len(lines) > 0 {
		t.Fatal(lines, err)
	}
	for range 2 {
		if err := appendLine(path, &line{Build: "c", Kind: "equal", Verdict: "pass", Budget: budget.String()}); err != nil {
			t.Fatal(err)
		}
	}
	lines, err := read(path)
	if err != nil || count(lines, "c", "equal") != 2 || count(lines, "c", "other") != 0 || count(lines, "d", "equal") != 0 {
		t.Fatal(lines, err)
	}
	if lines[0].Budget = "3m0s"; count(lines, "c", "equal") != 1 {
		t.Error("a comparison with another budget counts")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text[:len(text)-5], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := read(path); err == nil {
		t.Error("a line that was cut off is read")
	}
}

// TestWhy: by which metric a build is better is noted, though the whole has no reason then.
func TestWhy(t *testing.T) {
	better := []compare.Candidate{{Reasons: []string{"memory"}}}
	for verdict, want := range map[string]string{compare.Improvement: "[memory]", compare.Regression: "[time]", compare.Pass: "[time]"} {
		if got := fmt.Sprint(why(&compare.Comparison{Verdict: verdict, Reasons: []string{"time"}, Candidates: better})); got != want {
			t.Errorf("%s: %s, want %s", verdict, got, want)
		}
	}
}

// TestTurns: after fifty rounds there are as many comparisons as the rates need, and the kinds take turns on the way.
func TestTurns(t *testing.T) {
	for i := range changes {
		c := &changes[i]
		if got, want := c.turns(50), map[string]int{"equal": 200, "3 % slower": 10, "5 % slower": 50, "10 % slower": 50, "20 % slower": 10,
			"a lookup per million": 50, "an allocation per batch": 20}[c.name]; got != want || c.turns(5) < got/12 {
			t.Errorf("%s: %d, want %d", c.name, got, want)
		}
	}
}
