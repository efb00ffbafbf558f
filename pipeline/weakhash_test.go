package pipeline

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"joinbench/capture"
	"joinbench/internal/oracle"
)

const (
	weakEvents = 10_000
	weakSeed   = 4711
)

// weakJoin writes a join of 10,000 events into a directory: nearly each A has a key of its own, half of the B have that of
// an A of the last quarter, which is the window.
func weakJoin(tb testing.TB) (jc JoinConfig, want *oracle.Expected) {
	tb.Helper()
	rng := rand.New(rand.NewPCG(weakSeed, 0))
	dir := tb.TempDir()
	const each, gap = weakEvents / 2, 10 // ms
	var files [2][]byte
	var keys []int // of A
	for side := range files {
		var out bytes.Buffer
		for i := range each {
			key := rng.IntN(10 * each)
			if side == 0 {
				keys = append(keys, key)
			} else if rng.IntN(2) == 0 {
				key = keys[max(0, i-rng.IntN(each/4))]
			}
			fmt.Fprintf(&out, `{"topic":"t","partition":0,"offset":%d,"ts":%d,"key":"PAY-%d","payload":"{\"id\":\"%c-%d\"}"}`+"\n", i,
				1_700_000_000_000+int64(i)*gap, key, "ab"[side], i)
		}
		files[side] = out.Bytes()
		if err := os.WriteFile(filepath.Join(dir, string("ab"[side])), files[side], 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	side := oracle.Side{Key: []string{"@key"}, Time: "@timestamp", Keep: []oracle.Field{{Name: "id", Path: "$.id"}}}
	cfg := oracle.Config{A: side, B: side, Before: 5 * time.Second, After: each * gap / 4 * time.Millisecond, Grace: time.Second, Cardinality: oracle.OneToOne}
	want, err := oracle.Expect(cfg, files[0], files[1], "kcat")
	if err != nil {
		tb.Fatal(err)
	}
	conf, err := joinConfig(cfg, variant{tasks: 1, buckets: 6, filter: "fuse16"})
	if err != nil {
		tb.Fatal(err)
	}
	return JoinConfig{Config: conf, A: filepath.Join(dir, "a"), B: filepath.Join(dir, "b"), Out: filepath.Join(dir, "out"), Format: capture.Kcat, Batch: 256, Inline: true}, want
}

// TestWeakHash: a hash that is the same for all keys, or one of 256, costs time and changes nothing: the same lines in the
// same order.
func TestWeakHash(t *testing.T) {
	jc, want := weakJoin(t)
	var first []string
	for _, hash := range metaHashes {
		jc.Hash = metaHash(hash)
		start := time.Now()
		stats, err := Join(context.Background(), jc)
		if err != nil {
			t.Fatalf("seed %d, hash %s: %v", weakSeed, hash, err)
		}
		took := time.Since(start)
		lines, err := oracle.ReadLines(readFile(t, jc.Out))
		if err == nil {
			err = want.Compare(lines)
		}
		if err != nil {
			t.Fatalf("seed %d, hash %s: %v", weakSeed, hash, err)
		}
		if first == nil {
			first = lines
		}
		if !slices.Equal(lines, first) {
			t.Errorf("seed %d, hash %s: other lines, or in another order, than with hash %s", weakSeed, hash, metaHashes[0])
		}
		if stats.Buckets.SealedTotal < 5 || stats.Matches < weakEvents/10 || stats.Lookups == 0 {
			t.Errorf("seed %d, hash %s: %d buckets sealed, %d pairs, %d lookups: too few for this test", weakSeed, hash, stats.Buckets.SealedTotal,
				stats.Matches, stats.Lookups)
		}
		t.Logf("hash %-10s %7.0f events/s, %d pairs, %d lookups, %d of %d absent B let through", hash, weakEvents/took.Seconds(), stats.Matches, stats.Lookups,
			stats.Filter.FalsePositives, stats.Filter.AbsentQueries)
	}
}

// BenchmarkWeakHash is one join of 10,000 events from file to file.
func BenchmarkWeakHash(b *testing.B) {
	jc, _ := weakJoin(b)
	for _, hash := range metaHashes {
		b.Run(hash, func(b *testing.B) {
			jc := jc
			jc.Hash = metaHash(hash)
			for b.Loop() {
				if _, err := Join(context.Background(), jc); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*weakEvents/b.Elapsed().Seconds(), "events/s")
		})
	}
}
