package pipeline

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"joinbench/capture"
	"joinbench/config"
	"joinbench/internal/oracle"
	"joinbench/results"
)

var (
	oracleSeed      = flag.Uint64("oracle.seed", 1, "first seed of the random workloads")
	oracleWorkloads = flag.Int("oracle.n", 200, "random workloads")
)

// variant is one way to run a workload that must not change its outputs.
type variant struct {
	tasks, buckets, batch int
	filter                string
	inline                bool
}

func (v variant) String() string {
	return fmt.Sprintf("tasks=%d buckets=%d batch=%d filter=%s inline=%v", v.tasks, v.buckets, v.batch, v.filter, v.inline)
}

// variants is every combination of the values that matter.
func variants() []variant {
	var all []variant
	for _, tasks := range []int{1, 3} {
		for _, buckets := range []int{2, 4, 16} {
			for _, batch := range []int{1, 7, 1000} {
				for _, filter := range []string{"none", "fuse8", "fuse16"} {
					all = append(all, variant{tasks, buckets, batch, filter, len(all)%3 != 0})
				}
			}
		}
	}
	return all
}

// variantsPerWorkload of the 54 are run for each workload and cardinality; over 200 workloads each comes up about 30
// times. A stride that shares no factor with 54 takes all of them in turn.
const (
	variantsPerWorkload = 8
	variantStride       = 17
)

// TestJoinEqualsOracle runs random workloads in many ways and holds each against the nested-loop join.
func TestJoinEqualsOracle(t *testing.T) {
	n := *oracleWorkloads
	if testing.Short() {
		n = min(n, 20)
	}
	all := variants()
	for i := range n {
		seed := *oracleSeed + uint64(i)
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			cfg, a, b, format := oracle.RandomWorkload(oracle.NewRand(seed))
			dir := t.TempDir()
			writeFile(t, filepath.Join(dir, "a.ndjson"), a)
			writeFile(t, filepath.Join(dir, "b.ndjson"), b)
			for c, cardinality := range []string{oracle.OneToOne, oracle.OneToMany} {
				cfg.Cardinality = cardinality
				want, err := oracle.Expect(cfg, a, b, format)
				if err != nil {
					t.Fatal(err)
				}
				for k := range variantsPerWorkload {
					v := all[((i*variantsPerWorkload+k)*variantStride+c)%len(all)]
					lines, stats, err := runWorkload(dir, cfg, format, v)
					if err != nil {
						t.Fatalf("%s, %s: %v\nagain: go test ./pipeline -run TestJoinEqualsOracle -oracle.seed=%d -oracle.n=1", cardinality, v, err, seed)
					}
					if err := want.CheckReachable(lines); err != nil {
						t.Fatalf("%s, %s: %v\nagain: go test ./pipeline -run TestJoinEqualsOracle -oracle.seed=%d -oracle.n=1", cardinality, v, err, seed)
					}
					checkFates(t, v, "a", &stats.A, want.CountersA)
					checkFates(t, v, "b", &stats.B, want.CountersB)
					if stats.Matches != int64(len(lines)) || stats.Outputs != stats.Matches || stats.Probes != stats.B.Accepted {
						t.Fatalf("%s: counters do not add up: %+v", v, stats)
					}
				}
			}
		})
	}
}

// runWorkload is one file join with a temporary state.
func runWorkload(dir string, cfg oracle.Config, format string, v variant) ([]string, *results.Counters, error) {
	f, err := capture.ParseFormat(format)
	if err != nil {
		return nil, nil, err
	}
	jc, err := joinConfig(cfg, v)
	if err != nil {
		return nil, nil, err
	}
	var out bytes.Buffer
	stats, err := Join(context.Background(), JoinConfig{Config: jc, A: filepath.Join(dir, "a.ndjson"), B: filepath.Join(dir, "b.ndjson"),
		Format: f, Batch: v.batch, Inline: v.inline, Stdout: &out})
	if err != nil {
		return nil, nil, err
	}
	lines, err := oracle.ReadLines(out.Bytes())
	return lines, stats, err
}

// joinConfig says in our words what the oracle's configuration says in its own.
func joinConfig(cfg oracle.Config, v variant) (*config.Join, error) {
	j := config.Default()
	for _, s := range []struct {
		to   *config.Side
		from oracle.Side
	}{{&j.A, cfg.A}, {&j.B, cfg.B}} {
		s.to.Key = s.from.Key
		if s.from.KeyString {
			s.to.KeyType = "string"
		}
		if s.from.Time != "" {
			s.to.Time = s.from.Time
		}
		if s.from.TimeUnit != "" {
			s.to.TimeUnit = s.from.TimeUnit
		}
		for _, k := range s.from.Keep {
			s.to.Keep = append(s.to.Keep, config.KeepField(k))
		}
	}
	// Through Set, which also takes a window of no length.
	if err := j.Set("window", fmt.Sprintf("{before: %dms, after: %dms}", cfg.Before.Milliseconds(), cfg.After.Milliseconds()), "test"); err != nil {
		return nil, err
	}
	j.Grace = cfg.Grace
	// As small as rule 13 allows, so that the ring turns often.
	j.MaxSpread = cfg.Before + cfg.Grace + time.Millisecond
	j.Cardinality = cfg.Cardinality
	j.State.Buckets, j.State.Filter, j.State.Tasks, j.State.Sync = v.buckets, v.filter, v.tasks, "none"
	j.State.Memory = 1 << 20
	return j, j.Validate()
}

func checkFates(t *testing.T, v variant, side string, got *results.Side, want oracle.Counters) {
	t.Helper()
	have := oracle.Counters{Read: got.Read, Accepted: got.Accepted, NullKey: got.NullKey, BadKey: got.BadKey, Malformed: got.Malformed,
		BadTime: got.BadTime, Late: got.Late, LateIdle: got.LateIdle, Redelivered: got.Redelivered}
	if have != want {
		t.Fatalf("%s, side %s: counters\n got %+v\nwant %+v", v, side, have, want)
	}
	if got.Fates() != got.Read {
		t.Fatalf("%s, side %s: %d records read, %d have a fate", v, side, got.Read, got.Fates())
	}
	if got.Pending != 0 {
		t.Fatalf("%s, side %s: %d pending after a drain", v, side, got.Pending)
	}
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestMain(m *testing.M) {
	flag.Parse()
	// States of tests are small and many: memory is the place for them where there is one.
	if dir, err := os.MkdirTemp("/dev/shm", "joinbench-test-"); err == nil && os.Getenv("TMPDIR") == "" {
		_ = os.Setenv("TMPDIR", dir)
		code := m.Run()
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}
	os.Exit(m.Run())
}
