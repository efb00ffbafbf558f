package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
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
	for round := 1; round <= 2; round++ {
		if err := appendLine(path, &line{Commit: "c", Kind: "equal", Round: round, Verdict: "pass"}); err != nil {
			t.Fatal(err)
		}
	}
	lines, err := read(path)
	if err != nil || !has(lines, "c", "equal", 2) || has(lines, "c", "equal", 3) || has(lines, "d", "equal", 2) {
		t.Fatal(lines, err)
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
