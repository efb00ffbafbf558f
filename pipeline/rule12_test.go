package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"joinbench/core"
	"joinbench/internal/oracle"
	"joinbench/results"
)

// TestRule12AlignedAndWaitAreTheSame: on a workload in which no B has to choose among several A, and no A among several B,
// probe: wait gives what probe: aligned does, line for line but for the order, and counts the same. The workloads are random
// ones, from which the events are taken whose outcome rule 2 leaves open.
func TestRule12AlignedAndWaitAreTheSame(t *testing.T) {
	n := 20
	if testing.Short() {
		n = 4
	}
	all, pairs := variants(), map[string]int{}
	for i := range n {
		seed := *oracleSeed + 12000 + uint64(i)
		rng := rand.New(rand.NewPCG(seed, 12))
		cfg, a, b, format := oracle.RandomWorkload(oracle.NewRand(seed))
		cfg.Type = pickOf(rng, []string{oracle.Inner, oracle.Left, oracle.Right, oracle.Outer, oracle.Outer})
		cfg.Cardinality = pickOf(rng, []string{oracle.OneToOne, oracle.OneToOne, oracle.OneToMany, oracle.ManyToMany})
		cfg.Probe = oracle.Wait
		unmatched := rng.IntN(2) == 0
		a, b, err := oracle.Settled(cfg, a, b, format)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		var lines [2][]string
		var counts [2]*results.Counters
		for k, probe := range []string{oracle.Aligned, oracle.Wait} {
			cfg.Probe = probe
			v := all[rng.IntN(len(all))]
			s := rulesScene(t, seed, cfg, a, b, format, v)
			if !s.want.Exact {
				t.Fatalf("seed %d, probe %s: there are several right answers", seed, probe)
			}
			jc := s.join("run", v)
			if !unmatched {
				jc.Unmatched = ""
			}
			if counts[k], err = Join(context.Background(), jc); err != nil {
				t.Fatalf("seed %d, probe %s, %s: %v", seed, probe, v, err)
			}
			lines[k] = s.lines(s.path("run-out"))
			if err := s.want.Compare(lines[k]); err != nil {
				t.Errorf("seed %d, probe %s, %s: %v", seed, probe, v, err)
			}
			slices.Sort(lines[k])
		}
		if !slices.Equal(lines[0], lines[1]) {
			t.Errorf("seed %d: %d lines with aligned, %d with wait, and not the same", seed, len(lines[0]), len(lines[1]))
		}
		same(t, fmt.Sprintf("seed %d, wait against aligned", seed), counts[1], counts[0])
		pairs[cfg.Cardinality] += int(counts[0].Matches)
	}
	if len(pairs) < 3 || pairs[oracle.OneToOne] < 20 {
		t.Errorf("pairs by cardinality: %v: this shows little", pairs)
	}
}

// TestRule12FetchOrder: in which order the records of partitions and sides arrive changes nothing: A first, B first, at random,
// one partition behind all others, files that are interleaved in another way. Where rule 2 leaves open which of
// several right answers comes, each is one.
func TestRule12FetchOrder(t *testing.T) {
	n := 10
	if testing.Short() {
		n = 4
	}
	all, exact := variants(), 0
	for i := range n {
		seed := *oracleSeed + 12500 + uint64(i)
		rng := rand.New(rand.NewPCG(seed, 12))
		cfg, a, b, format := oracle.RandomRules(oracle.NewRand(seed))
		if cfg.Probe == oracle.Immediate { // its exception is the order
			cfg.Probe = oracle.Aligned
		}
		orders := []string{fetchEvenly, fetchA, fetchB, fetchRandom, fetchBehind, "interleaved"}
		var first []string
		var counts *results.Counters
		for _, order := range orders {
			v, size := all[rng.IntN(len(all))], pickOf(rng, []int{1, 5, 50})
			a, b := a, b
			if order == "interleaved" {
				a, b = interleaved(t, rng, a, format), interleaved(t, rng, b, format)
			}
			what := fmt.Sprintf("seed %d, %s by %d, %s", seed, order, size, v)
			s := rulesScene(t, seed, cfg, a, b, format, v)
			got, err := s.joinFetched(s.join("run", v), order, size, rng)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			lines := s.lines(s.path("run-out"))
			if err := s.want.CheckReachable(lines); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if !s.want.Exact {
				continue
			}
			slices.Sort(lines)
			if first == nil {
				first, counts = lines, got
				exact++
				continue
			}
			if !slices.Equal(lines, first) {
				t.Errorf("%s: other lines than when read %s", what, orders[0])
			}
			same(t, what, got, counts)
		}
	}
	if exact < n/4 {
		t.Errorf("%d of %d workloads had one right answer: this shows little", exact, n)
	}
}

func interleaved(t *testing.T, rng *rand.Rand, file []byte, format string) []byte {
	t.Helper()
	other, err := oracle.Interleave(rng, file, format)
	if err != nil {
		t.Fatal(err)
	}
	return other
}

// joinFetched is Join with records that arrive in an order.
func (s *scene) joinFetched(jc JoinConfig, order string, size int, rng *rand.Rand) (counts *results.Counters, err error) {
	j, err := newFileJoin(jc)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	j.source = func(f *feed) core.Source { return newFetched(f, order, size, rng) }
	if err := errors.Join(j.openInputs(context.Background()), j.prepareState()); err != nil {
		return nil, err
	}
	return j.run(context.Background())
}
