package oracle

import (
	"bytes"
	"slices"
	"testing"
)

// TestInterleave: the answer does not depend on how the partitions of a file lie in it, and other lines stand first.
func TestInterleave(t *testing.T) {
	moved := 0
	for seed := uint64(1); seed <= 60; seed++ {
		cfg, a, b, format := RandomRules(NewRand(seed))
		want, err := Expect(cfg, a, b, format)
		if err != nil {
			t.Fatal(err)
		}
		rng := NewRand(seed)
		a2, err := Interleave(rng, a, format)
		if err != nil {
			t.Fatal(err)
		}
		b2, err := Interleave(rng, b, format)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, a2) || !bytes.Equal(b, b2) {
			moved++
		}
		if sortedLines(a) != sortedLines(a2) || sortedLines(b) != sortedLines(b2) {
			t.Fatalf("seed %d: lines were lost", seed)
		}
		got, err := Expect(cfg, a2, b2, format)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(got.Lines)
		slices.Sort(want.Lines)
		if !slices.Equal(got.Lines, want.Lines) || got.CountersB != want.CountersB {
			t.Errorf("seed %d: another answer", seed)
		}
	}
	if moved < 20 {
		t.Errorf("only %d workloads had partitions to move", moved)
	}
}

// sortedLines allows for a newline at the end.
func sortedLines(file []byte) string {
	lines := bytes.Split(bytes.TrimSuffix(file, []byte("\n")), []byte("\n"))
	slices.SortFunc(lines, bytes.Compare)
	return string(bytes.Join(lines, []byte("\n")))
}

// TestSettled: what is left has one answer, and is not nothing.
func TestSettled(t *testing.T) {
	open, pairs := 0, map[string]int{}
	for seed := uint64(1); seed <= 60; seed++ {
		cfg, a, b, format := RandomRules(NewRand(seed))
		if cfg.Probe == Immediate {
			continue
		}
		before, err := Expect(cfg, a, b, format)
		if err != nil {
			t.Fatal(err)
		}
		if !before.Exact {
			open++
		}
		if a, b, err = Settled(cfg, a, b, format); err != nil {
			t.Fatal(err)
		}
		after, err := Expect(cfg, a, b, format)
		if err != nil || !after.Exact {
			t.Fatalf("seed %d: %v", seed, err)
		}
		pairs[cfg.Cardinality] += len(after.Pairs)
	}
	if open < 5 || len(pairs) < 3 || pairs[OneToOne] < 50 {
		t.Errorf("%d workloads had several answers, pairs that are left %v", open, pairs)
	}
}
