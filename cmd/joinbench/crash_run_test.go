package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"joinbench/results"
)

// newRunWorkload draws a small benchmark: some hundred milliseconds, in which buckets are sealed and dropped.
func newRunWorkload(t *testing.T, rng *rand.Rand) *workload {
	tasks := pick(rng, 1, 2, 3)
	pending := 1000 * (1 + rng.IntN(12))
	keep := pick(rng, ", keep: [$.order_id]", "") // the whole value makes the state large, so that it is spilled
	profile := fmt.Sprintf(`join:
  a: {topic: orders, key: $.payment_ref, time: $.ts%s}
  b: {topic: payments, key: "@key", keep: [$.status]}
  window: {before: %s, after: 10m}
  grace: 1s
  max_spread: 2m
  cardinality: %s
  state: {buckets: %d, filter: %s, memory: %s, tasks: %d, sync: %s}
load:
  pending: %d
  b_events: %d
  match_rate: %s
  duplicates: 0.01
  late_share: 0.002
  disorder: 400ms
  partitions: %d
  batch: %d
  seed: %d
`, keep, pick(rng, "0s", "0s", "10s"), pick(rng, "one-to-one", "one-to-one", "one-to-many"), pick(rng, 4, 8, 16), pick(rng, "fuse16", "fuse16", "fuse8", "fuse32", "bloom", "none"),
		pick(rng, "1MiB", "16MiB"), tasks, pick(rng, "none", "interval", "batch"),
		pending, pending*(2+rng.IntN(3)), pick(rng, "0.02", "0.1", "0.5"), 1+rng.IntN(3), pick(rng, 100, 256, 1000, 4096), rng.Uint64N(1000))

	file := newPlace(t).write("profile.yaml", profile)
	w := &workload{kind: "run", about: "run with\n" + profile, env: drawCheckpoint(rng, 2_000, 20_000, 100_000)}
	w.command = func(dir string, n int) []string {
		args := []string{"run", "--config", file, "--dir", filepath.Join(dir, "state"), "--out", filepath.Join(dir, "r.json"), "--progress", "none"}
		// Before the databases are there nothing can be resumed, and the program says so.
		if _, err := os.Stat(filepath.Join(dir, "state", "task-000", "CURRENT")); n > 0 && err == nil {
			args = append(args, "--resume")
		}
		return args
	}
	var unbroken *results.Record
	var pairs []string
	w.check = func(dir string) wrong {
		var bad wrong
		got, err := readPairs(filepath.Join(dir, "state", "pairs.bin"))
		if err != nil {
			bad.say("pairs: %v", err)
			return bad
		}
		rec, err := results.Read(filepath.Join(dir, "r.json"))
		if err != nil {
			bad.say("the record: %v", err)
			return bad
		}
		j := &rec.Join
		w.spills = j.Buckets.Spills
		if !rec.Run.Complete || rec.Verdict.Status != results.StatusOK || j.Truth == nil || j.Matches == 0 || j.Matches != j.ExpectedMatches {
			bad.say("complete %v, verdict %+v, matches %d, truth %+v", rec.Run.Complete, rec.Verdict, j.Matches, j.Truth)
		}
		if t := j.Truth; t != nil && t.Missing+t.Spurious+t.Duplicated > 0 {
			bad.say("the record counts %d missing, %d spurious, %d duplicated", t.Missing, t.Spurious, t.Duplicated)
		}
		if unbroken == nil {
			unbroken, pairs = rec, got
			return bad
		}
		bad.add(compareBags("pairs", got, pairs))
		bad.add(compareCounters(&j.Counters, &unbroken.Join.Counters))
		return bad
	}
	return w
}

// drawCheckpoint lets half of the workloads cut their journal after some bytes.
func drawCheckpoint(rng *rand.Rand, bytes ...int) []string {
	if rng.IntN(2) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s=%d", checkpointVariable, pick(rng, bytes...))}
}

// readPairs reads the file in which a run keeps its pairs, as text.
func readPairs(path string) ([]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(data)%16 != 0 {
		return nil, fmt.Errorf("%d bytes", len(data))
	}
	var pairs []string
	for ; len(data) > 0; data = data[16:] {
		pairs = append(pairs, fmt.Sprintf("B %d with A %d", binary.LittleEndian.Uint64(data), binary.LittleEndian.Uint64(data[8:])))
	}
	return pairs, nil
}

// compareCounters: what was read and what came of it counts over all lives.
func compareCounters(got, want *results.Counters) wrong {
	var bad wrong
	text := func(c *results.Counters) string {
		return fmt.Sprintf("a %+v b %+v outputs %d matches %d unmatched %d %d probes %d", c.A, c.B, c.Outputs, c.Matches, c.UnmatchedA, c.UnmatchedB, c.Probes)
	}
	if g, w := text(got), text(want); g != w {
		bad.say("counters\n got %s\nwant %s", g, w)
	}
	return bad
}
