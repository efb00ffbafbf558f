package pipeline

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"joinbench/capture"
	"joinbench/config"
	"joinbench/internal/oracle"
	"joinbench/results"
)

var oracleSeed = flag.Uint64("oracle.seed", 1, "what the seeds of the tests over few random workloads are counted from")

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

// variantStride shares no factor with the number of variants, so that steps of it take all of them in turn.
const variantStride = 17

// scene is a join of two files in a directory of its own, with all of its outputs in files.
type scene struct {
	t      *testing.T
	seed   uint64
	dir    string
	conf   *config.Join
	format capture.Format
	want   *oracle.Expected
}

// sceneNames are the files that a scene's join writes.
var sceneNames = []string{"out", "late", "dead", "unmatched"}

// newScene writes the workload of a seed to files.
func newScene(t *testing.T, seed uint64, cardinality string, v variant) *scene {
	t.Helper()
	cfg, a, b, format := oracle.RandomWorkload(oracle.NewRand(seed))
	cfg.Cardinality = cardinality
	return rulesScene(t, seed, cfg, a, b, format, v)
}

// rulesScene writes a workload of the oracle to files.
func rulesScene(t *testing.T, seed uint64, cfg oracle.Config, a, b []byte, format string, v variant) *scene {
	t.Helper()
	s := &scene{t: t, seed: seed, dir: t.TempDir()}
	var err error
	if s.want, err = oracle.Expect(cfg, a, b, format); err != nil {
		t.Fatal(err)
	}
	if s.conf, err = joinConfig(cfg, v); err != nil {
		t.Fatal(err)
	}
	if s.format, err = capture.ParseFormat(format); err != nil {
		t.Fatal(err)
	}
	writeFile(t, s.path("a.ndjson"), a)
	writeFile(t, s.path("b.ndjson"), b)
	return s
}

func (s *scene) path(name string) string { return filepath.Join(s.dir, name) }

// topicA and topicB are the names in the workload's lines; in format value those of a configuration without any.
func (s *scene) topicA() string {
	if s.format == capture.Value {
		return "a"
	}
	return "topic-a"
}

func (s *scene) topicB() string {
	if s.format == capture.Value {
		return "b"
	}
	return "topic-b"
}

// join describes the run that writes to the files run-NAME.
func (s *scene) join(run string, v variant) JoinConfig {
	jc := JoinConfig{Config: s.conf, A: s.path("a.ndjson"), B: s.path("b.ndjson"), Format: s.format, Batch: v.batch, Inline: v.inline}
	for i, to := range []*string{&jc.Out, &jc.Late, &jc.Dead, &jc.Unmatched} {
		*to = s.path(run + "-" + sceneNames[i])
	}
	return jc
}

// lines of an output file.
func (s *scene) lines(path string) []string {
	s.t.Helper()
	lines, err := oracle.ReadLines(readFile(s.t, path))
	if err != nil {
		s.t.Fatalf("%s: %v", path, err)
	}
	return lines
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// stopAfter is a context that is over as soon as a join has read so many records: the engine looks at it between two
// batches. It has no Done channel, so the moment is the same in every run.
type stopAfter struct {
	context.Context
	p       *Progress
	records int64
}

func (c *stopAfter) Err() error {
	if c.p.A.Load()+c.p.B.Load() >= c.records {
		return context.Canceled
	}
	return nil
}

// interruptedJoin runs a join up to a number of records.
func interruptedJoin(jc JoinConfig, records int64) (*results.Counters, error) {
	jc.Progress = &Progress{}
	return Join(&stopAfter{context.Background(), jc.Progress, records}, jc)
}

// same compares what a join counted with what another one did: all that interruptions must not change.
func same(t *testing.T, what string, got, want *results.Counters) {
	t.Helper()
	g := []any{got.A, got.B, got.Outputs, got.Matches, got.Probes, got.UnmatchedA, got.UnmatchedB}
	w := []any{want.A, want.B, want.Outputs, want.Matches, want.Probes, want.UnmatchedA, want.UnmatchedB}
	if !slices.Equal(g, w) {
		t.Fatalf("%s: counters\n got %+v\nwant %+v", what, g, w)
	}
}

// sameFiles compares the output files of two runs, line by line in order; but for the A in the unmatched file, whose order
// inside a bucket depends on whether it was sealed by then.
func (s *scene) sameFiles(what, got, want string) {
	s.t.Helper()
	for _, name := range sceneNames {
		g, w := s.lines(s.path(got+"-"+name)), s.lines(s.path(want+"-"+name))
		if name == "unmatched" {
			slices.Sort(g)
			slices.Sort(w)
		}
		if slices.Equal(g, w) {
			continue
		}
		i := 0
		for i < len(g) && i < len(w) && g[i] == w[i] {
			i++
		}
		s.t.Errorf("%s: file %s has %d lines, want %d; from line %d on\n got %q\nwant %q", what, name, len(g), len(w), i+1,
			g[i:min(i+3, len(g))], w[i:min(i+3, len(w))])
	}
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
	rulesConfig(cfg, j)
	j.State.Buckets, j.State.Filter, j.State.Tasks, j.State.Sync = v.buckets, v.filter, v.tasks, "none"
	j.State.Memory = 1 << 20
	return j, j.Validate()
}

// rulesConfig is joinConfig's part for the rules that a join may do without.
func rulesConfig(cfg oracle.Config, j *config.Join) {
	for _, word := range []struct {
		to   *string
		from string
	}{{&j.Type, cfg.Type}, {&j.Probe, cfg.Probe}, {&j.Output.Key, cfg.OutputKey}} {
		if word.from != "" {
			*word.to = word.from
		}
	}
	switch c := cfg.Collect; c.Mode {
	case oracle.Timeout:
		j.Collect.Mode = "timeout"
	case oracle.Count:
		j.Collect = config.Collect{Mode: "count", Count: c.Path}
	case oracle.Marker:
		j.Collect = config.Collect{Mode: "marker", Marker: config.Marker{Field: c.Path, Equals: c.Equals}}
	}
	if c := cfg.CompleteOn; c.Emit != "" {
		j.CompleteOn = &config.CompleteOn{Field: c.Field, Equals: c.Equals, Emit: c.Emit}
	}
	j.Early, j.Retract = cfg.Early, cfg.Retract
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
