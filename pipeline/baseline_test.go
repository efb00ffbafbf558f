package pipeline

import (
	"context"
	"fmt"
	"testing"

	"joinbench/baseline"
	"joinbench/core"
	"joinbench/internal/oracle"
	"joinbench/results"
)

// TestMemoryEqualsOracle: the map in memory, behind the same engine, gives what the rules say: pairs, the unmatched of both
// sides, fates, whatever the batches, tasks and buckets, with whole events and with projections.
func TestMemoryEqualsOracle(t *testing.T) {
	n := 60
	if testing.Short() {
		n = 15
	}
	all := variants()
	pairs := int64(0)
	for i := range n {
		seed := *oracleSeed + 7000 + uint64(i)
		cardinality := []string{oracle.OneToOne, oracle.OneToMany}[i%2]
		v := all[i*variantStride%len(all)]
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			s := newScene(t, seed, cardinality, v)
			if i%4 < 2 {
				s.conf.A.Store = "full"
			}
			jc := s.join("memory", v)
			jc.Engine = func(c *core.Config) core.Joiner { return baseline.NewMemory(c) }
			got, err := Join(context.Background(), jc)
			if err != nil {
				t.Fatalf("%s: %v", v, err)
			}
			lines := s.lines(jc.Out)
			if err := s.want.CheckReachable(lines); err != nil {
				t.Fatalf("%s, %s: %v", v, cardinality, err)
			}
			if s.conf.A.Store != "full" { // else an unmatched A comes out whole, which the oracle must be told
				if err := s.want.CheckUnmatched(lines, s.lines(jc.Unmatched), s.topicA(), s.topicB()); err != nil {
					t.Fatalf("%s, %s: %v", v, cardinality, err)
				}
			}
			checkFates(t, v, "a", &got.A, s.want.CountersA)
			checkFates(t, v, "b", &got.B, s.want.CountersB)
			if got.A.Pending != 0 || got.Lookups != 0 {
				t.Errorf("%s: after a drain %d A wait; %d lookups", v, got.A.Pending, got.Lookups)
			}
			pairs += got.Matches
		})
	}
	if pairs < int64(20*n) {
		t.Errorf("%d pairs in %d joins: too few for this test", pairs, n)
	}
}

// TestMemoryHoldsWholeEvents: what arm memory holds of an A is all bytes of its record, memory-projection the kept fields.
func TestMemoryHoldsWholeEvents(t *testing.T) {
	held := func(arm string) float64 {
		p := armProfile(t)
		p.Load.RecordBytes = 1024
		p, err := (&Arm{Name: arm}).profile(p)
		if err != nil {
			t.Fatal(err)
		}
		rec, err := Bench(context.Background(), BenchConfig{Profile: p, Engine: func(c *core.Config) core.Joiner { return baseline.NewMemory(c) }})
		if err != nil || rec.Verdict.Status != results.StatusOK || rec.Join.Matches == 0 {
			t.Fatalf("%s: %v, %+v", arm, err, rec)
		}
		return float64(*rec.Cost.ArenaBytes) / float64(p.Load.Pending)
	}
	// At the peak half as many more wait as when measuring starts: A is read ahead. An entry has a head and the key.
	if whole := held("memory"); whole < 1024 || whole > 1.6*(1024+60) {
		t.Errorf("a whole event of 1,024 bytes is held in %.0f", whole)
	}
	if kept := held("memory-projection"); kept < 40 || kept > 200 {
		t.Errorf("a projection is held in %.0f bytes", kept)
	}
}
