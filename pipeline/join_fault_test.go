package pipeline

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"joinbench/internal/failpoint"
	"joinbench/internal/oracle"
)

var faultSeeds = flag.Int("fault.seeds", 1, "workloads of the tests with faults")

// faults makes one failpoint fail with an error from its n-th hit on, once or for good. It belongs to the whole process, so
// tests that use it are not parallel.
type faults struct {
	at    string
	n     int64
	once  bool
	err   error
	hits  map[string]*atomic.Int64
	fired atomic.Bool
}

func (f *faults) hit(name string) error {
	if name == "" { // a write that is no point
		return nil
	}
	n := f.hits[name].Add(1)
	if name != f.at || n < f.n || f.once && n > f.n {
		return nil
	}
	f.fired.Store(true)
	return f.err
}

// withFaults runs a join under faults.
func withFaults(t *testing.T, jc JoinConfig, f *faults) error {
	t.Helper()
	f.hits = map[string]*atomic.Int64{}
	for _, name := range failpoint.All() {
		f.hits[name] = &atomic.Int64{}
	}
	failpoint.Set(f.hit)
	defer failpoint.Set(nil)
	_, err := Join(context.Background(), jc)
	return err
}

// TestJoinBearsFaultsAnywhere: at each point where a state changes a full disk ends the join with an error that says so, once
// and for all later steps as well; on the same state directory the next join finishes exactly (B46).
func TestJoinBearsFaultsAnywhere(t *testing.T) {
	all := []variant{
		{tasks: 3, buckets: 4, batch: 7, filter: "fuse8", inline: true},
		{tasks: 1, buckets: 4, batch: 7, filter: "fuse16", inline: true},
		{tasks: 2, buckets: 3, batch: 11, filter: "fuse8", inline: false},
	}
	if testing.Short() {
		all = all[:1]
	}
	seed := *oracleSeed + 5000
	for i := range *faultSeeds {
		seed = busySeed(t, seed)
		for k, v := range all {
			cardinality := []string{oracle.OneToOne, oracle.OneToMany}[i%2]
			t.Run(fmt.Sprintf("seed=%d %s", seed, v), func(t *testing.T) {
				again := fmt.Sprintf("again: go test ./pipeline -run TestJoinBearsFaultsAnywhere -oracle.seed=%d -fault.seeds=%d", *oracleSeed, *faultSeeds)
				s := newScene(t, seed, cardinality, v)
				want, err := Join(context.Background(), s.join("whole", v))
				if err != nil {
					t.Fatal(err)
				}
				rng := rand.New(rand.NewPCG(seed, 3))
				count := &faults{}
				jc := s.join("run", v)
				jc.StateDir = s.path("state")
				if err := withFaults(t, jc, count); err != nil {
					t.Fatal(err)
				}
				for _, point := range failpoint.All() {
					hits := count.hits[point].Load()
					switch {
					case strings.HasPrefix(point, "commit.") && v.tasks == 1, strings.HasPrefix(point, "cut."):
						continue // one task has no commit of its own; the journal here is too short to be cut
					case hits == 0 && !v.inline && strings.HasPrefix(point, "mark."):
						continue // a helper that gets no time has sealed nothing before all is dropped
					case hits == 0:
						t.Errorf("%s is never reached", point)
						continue
					}
					fs := []*faults{{at: point, n: 1 + rng.Int64N(hits), once: true}}
					if k == 0 {
						fs = append(fs, &faults{at: point, n: 1}, &faults{at: point, n: hits, once: true})
					}
					for _, f := range fs {
						what := fmt.Sprintf("%s, hit %d of %d, once %v\n%s", point, f.n, hits, f.once, again)
						f.err = fmt.Errorf("writing: %w", syscall.ENOSPC)
						if err := os.RemoveAll(jc.StateDir); err != nil {
							t.Fatal(err)
						}
						err := withFaults(t, jc, f)
						if !f.fired.Load() {
							if err == nil && !v.inline { // how much is sealed before it is dropped depends on the helper
								continue
							}
							t.Fatalf("%s: not reached, error %v", what, err)
						}
						if err == nil || !errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "\n") ||
							!strings.HasPrefix(err.Error(), "the disk of the state directory "+jc.StateDir+" is full: ") {
							t.Fatalf("%s: error %v", what, err)
						}
						got, err := Join(context.Background(), jc)
						if err != nil {
							t.Fatalf("%s: the next join: %v", what, err)
						}
						same(t, what, got, want)
						s.sameFiles(what, "run", "whole")
						if t.Failed() {
							return
						}
					}
				}
			})
		}
		seed++
	}
}

// busySeed finds the next seed of a workload in which buckets are sealed and dropped and pairs are found.
func busySeed(t *testing.T, seed uint64) uint64 {
	t.Helper()
	v := variant{tasks: 1, buckets: 4, batch: 7, filter: "fuse16", inline: true}
	for ; ; seed++ {
		s := newScene(t, seed, oracle.OneToOne, v)
		c, err := Join(context.Background(), s.join("whole", v))
		if err != nil {
			t.Fatal(err)
		}
		if c.Buckets.SealedTotal >= 5 && c.Buckets.DroppedTotal >= 5 && c.Matches >= 10 && c.Matches < c.A.Accepted {
			return seed
		}
	}
}

// TestJoinBearsRepeatedFaults: one fault after another, each somewhere else, on one state directory.
func TestJoinBearsRepeatedFaults(t *testing.T) {
	points := failpoint.All()
	seed := *oracleSeed + 5100
	for i := range 3 * *faultSeeds {
		seed = busySeed(t, seed+1)
		v := variant{tasks: 1 + i%3, buckets: 4, batch: 5, filter: "fuse16", inline: i%2 == 0}
		again := fmt.Sprintf("seed %d, %s\nagain: go test ./pipeline -run TestJoinBearsRepeatedFaults -oracle.seed=%d -fault.seeds=%d", seed, v, *oracleSeed, *faultSeeds)
		s := newScene(t, seed, oracle.OneToOne, v)
		want, err := Join(context.Background(), s.join("whole", v))
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(seed, 4))
		jc := s.join("run", v)
		jc.StateDir = s.path("state")
		failed, history := 0, ""
		for range 15 {
			f := &faults{at: points[rng.IntN(len(points))], n: 1 + rng.Int64N(4), once: rng.IntN(2) == 0, err: syscall.EIO}
			history += fmt.Sprintf("%s hit %d once %v; ", f.at, f.n, f.once)
			err := withFaults(t, jc, f)
			if fired := f.fired.Load(); fired != (err != nil) || fired && !errors.Is(err, syscall.EIO) {
				t.Fatalf("%sfired %v, error %v\n%s", history, fired, err, again)
			}
			if err == nil { // finished: the next one starts anew
				break
			}
			failed++
		}
		got, err := Join(context.Background(), jc)
		if err != nil {
			t.Fatalf("%s%v\n%s", history, err, again)
		}
		same(t, history+again, got, want)
		s.sameFiles(history+again, "run", "whole")
		t.Logf("%d faults: %s", failed, history)
	}
}
