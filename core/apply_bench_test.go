package core

import (
	"context"
	"testing"
	"time"

	"joinbench/fusefilter"
)

// BenchmarkApply: a lost directory is built anew over RocksDB from a changelog of half a million A in batches of 32,768, of which one
// in ten has paired; with all commits, the seals of 14 of 15 buckets and their filters.
func BenchmarkApply(b *testing.B) {
	const n = 500_000
	cfg := &Config{Before: 1000, After: 16_000, MaxSpread: 10_000, Width: 1000, Slots: 32, Filter: fusefilter.Fuse16, Summary: true, BatchSize: 32_768}
	var parts [2]scriptPart
	for i := range n {
		at := int64(i) * sealedBuckets * 1000 / n
		parts[A].events = append(parts[A].events, event{time: at, key: keyOf(i), offset: int64(i)})
		if i%10 == 0 {
			parts[B].events = append(parts[B].events, event{time: at, key: keyOf(i), offset: int64(i)})
		}
	}
	src := newScript(b, 4096, parts[:1], parts[1:])
	l := newLedger(b)
	l.e = open(b, cfg, memStores(1), src, l)
	must(b, l.e.Run(context.Background()))
	must(b, l.e.Close())
	size := 0
	for _, s := range l.log {
		for _, c := range s.changes {
			size += len(c.Journal)
		}
	}
	entries, took := 0, time.Duration(0)
	for b.Loop() {
		b.StopTimer()
		e := open(b, cfg, newRocks(b, 1).open(b), src.again(), &echo{})
		b.StartTimer()
		start := time.Now()
		for _, s := range l.log {
			must(b, e.Apply(s.n, s.changes, s.record))
		}
		must(b, e.Quiesce())
		took += time.Since(start)
		b.StopTimer()
		entries += int(e.Counters().Tasks.Stored)
		if lv := e.Levels(false); lv.Pending == 0 || lv.Sealed < sealedBuckets-2 {
			b.Fatalf("%+v", lv)
		}
		must(b, e.Close())
		b.StartTimer()
	}
	b.ReportMetric(float64(entries)/took.Seconds(), "entries/s")
	b.ReportMetric(float64(size)/n, "bytes/entry")
}
