package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestEveryChangeCanBeMade: the changes follow the code. What the gate says of them is for `make gate-proof`, which takes hours.
func TestEveryChangeCanBeMade(t *testing.T) {
	t.Chdir("../..")
	for i := range changes {
		if c := &changes[i]; c.old != "" {
			if _, err := c.text(); err != nil {
				t.Error(err)
			}
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
