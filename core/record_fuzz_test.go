package core

import (
	"bytes"
	"context"
	"testing"

	"joinbench/buckets"
	"joinbench/fusefilter"
)

// echo is a Sink that keeps its part of a commit record and gives it back.
type echo struct{ state []byte }

func (s *echo) Restore(state []byte) error {
	s.state = bytes.Clone(state)
	return nil
}

func (s *echo) State(dst []byte) ([]byte, error) { return append(dst, s.state...), nil }

func (s *echo) Results(*Output) error { return nil }

// fuzzConfig and fuzzScript are the join whose commit record is damaged: two partitions of A and one of B.
func fuzzConfig() *Config {
	return &Config{Before: 1000, After: 5000, Grace: 100, MaxSpread: 10_000, Width: 4000, Slots: 8, Filter: fusefilter.Fuse16,
		BatchSize: 3, Drain: true, Inline: true}
}

func fuzzScript(t testing.TB) *script {
	return newScript(t, 2, []scriptPart{times(0, "sk", 0, 900, 5000, 9000), times(7, "sk", 100, 8000, 12_000)}, []scriptPart{times(3, "sk", 100, 950, 5200, 13_000)})
}

// recordOf is the commit record of that join after some batches.
func recordOf(t testing.TB, batches uint64) []byte {
	t.Helper()
	stores := memStores(1)
	e := open(t, fuzzConfig(), stores, fuzzScript(t), &echo{state: []byte("lengths of files")})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	e.Observe = watch(func(e *Engine) {
		if e.batch >= batches {
			cancel()
		}
	})
	if err := e.Run(ctx); err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	must(t, e.Close())
	record, err := buckets.CommitRecord(stores[0])
	must(t, err)
	return record
}

// FuzzCommitRecord: any bytes as a commit record are refused with an error, or read: then what is written again is the same
// to the byte, so nothing was passed over or made up. A start on them, and a run from there, end without a panic.
func FuzzCommitRecord(f *testing.F) {
	for _, batches := range []uint64{1, 2, 100} {
		record := recordOf(f, batches)
		f.Add(record)
		f.Add(record[:len(record)-1])
		f.Add(record[:40])
		f.Add(record[:25])
		f.Add(record[:9])
		for _, at := range []int{0, 1, 9, 16, 17, 24, 25, len(record) - 20, len(record) - 24, len(record) - 44} { // version, batch, watermarks, counters, slots, buckets, partitions
			damaged := bytes.Clone(record)
			damaged[at] ^= 0x80
			f.Add(damaged)
		}
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		cfg := fuzzConfig()
		sink := &echo{}
		e := &Engine{cfg: cfg, gate: newGate(cfg, fuzzScript(t)), sink: sink}
		r, err := e.restore(record)
		e.base = r.counters
		if err == nil && len(record) > 0 {
			must(t, sink.Restore(r.sink))
			again, err := e.appendRecord(nil, r.batch)
			must(t, err)
			if !bytes.Equal(again, record) {
				t.Fatalf("written again it is\n%x\nand was\n%x", again, record)
			}
		}
		if err == nil && len(record) == 0 && (r.batch != 0 || e.gate.wm != [2]int64{minTime, minTime}) {
			t.Fatal("no record is not the beginning")
		}

		stores := memStores(1)
		ring, ringErr := buckets.NewRing(buckets.Options{Width: cfg.Width, Slots: cfg.Slots}, stores[0], 0)
		must(t, ringErr)
		must(t, ring.WriteCommit(record))
		e, openErr := tryOpen(cfg, stores, fuzzScript(t), &echo{})
		if err != nil && openErr == nil {
			t.Fatalf("restore says %v, and a start on the same record works", err)
		}
		if openErr != nil {
			return
		}
		_ = e.Run(context.Background()) // times that never were may leave a bucket in the way, which is an error
		must(t, e.Close())
	})
}
