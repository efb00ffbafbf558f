package pipeline

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"joinbench/capture"
	"joinbench/config"
	"joinbench/internal/oracle"
	"joinbench/results"
)

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
