//go:build cgo

package buckets

import (
	"fmt"
	"testing"
	"time"
)

// One operation of these benchmarks is one event, row or key, except where the name of a metric says otherwise;
// what is not to be measured is left out by adding up spans, which costs less than StopTimer.

// benchRing is a ring on RocksDB with `sealed` families of n entries each.
func benchRing(b *testing.B, sealed, n int) *Ring {
	b.Helper()
	k := newRocksKit(b)
	r := mustRing(b, Options{Width: 1000, Slots: MaxSlots}, k.openRocks(b), 0)
	b.Cleanup(func() { must(b, r.Close()) })
	for epoch := range int64(sealed) {
		fillBatches(b, r, epoch, n)
		sealBucket(b, r, epoch)
	}
	return r
}

// fillBatches is fill in batches of 1,024, as they come in life.
func fillBatches(b *testing.B, r *Ring, epoch int64, n int) {
	b.Helper()
	e := benchEntry
	bucket, err := r.Bucket(epoch)
	must(b, err)
	for i := range n {
		if _, err := r.Append(bucket, hashOf(epoch, i), &e); err != nil {
			b.Fatal(err)
		}
		if i%1024 == 1023 || i == n-1 {
			if err := r.Commit(r.Committed()+1, nil); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// perOp reports a span as the time of one operation.
func perOp(b *testing.B, span time.Duration) {
	b.ReportMetric(float64(span.Nanoseconds())/float64(b.N), "ns/op")
}

var benchEntry = Entry{Key: []byte("sORD-1234567"), Body: make([]byte, 60)}

// BenchmarkAppend: one entry of about 100 bytes into the arena; a bucket has 256 k of them.
func BenchmarkAppend(b *testing.B) {
	r := mustRing(b, testOptions, NewMemBackend(), 0)
	e := benchEntry
	b.SetBytes(int64(e.Size()))
	b.ReportAllocs()
	for n := range b.N {
		if n&(1<<18-1) == 0 {
			r.Undo()
		}
		bucket, err := r.Bucket(0)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := r.Append(bucket, uint64(n), &e); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUse: one row marked as used, at random.
func BenchmarkUse(b *testing.B) {
	r := mustRing(b, testOptions, NewMemBackend(), 0)
	e := benchEntry
	bucket, err := r.Bucket(0)
	must(b, err)
	const rows = 1 << 18
	for range rows {
		_, err := r.Append(bucket, 1, &e)
		must(b, err)
	}
	must(b, r.Commit(1, nil))
	b.ResetTimer()
	for n := range b.N {
		if n&(1<<16-1) == 1<<16-1 {
			r.Undo()
		}
		r.Use(bucket, uint32(n*0x9e3779b1)&(rows-1))
	}
}

// BenchmarkCommit: the journal record of a batch, per row of about 100 bytes, log on, no sync.
func BenchmarkCommit(b *testing.B) {
	for _, size := range []int{64, 1024} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			r := benchRing(b, 0, 0)
			e := benchEntry
			span, batch, floor := time.Duration(0), uint64(0), int64(0)
			for n := 0; n < b.N; {
				bucket, err := r.Bucket(floor)
				must(b, err)
				for range min(size, b.N-n) {
					_, err := r.Append(bucket, uint64(n), &e)
					must(b, err)
					n++
				}
				batch++
				start := time.Now()
				must(b, r.Commit(batch, commitRecord(batch)))
				span += time.Since(start)
				if bucket.Rows() > 300_000 {
					floor++
					_, err := r.DropBelow(floor)
					must(b, err)
					must(b, r.Maintain())
				}
			}
			perOp(b, span)
		})
	}
}

// BenchmarkSeal: sort, table and ingest of a bucket, per key. Its b.N is rounded up to whole buckets.
func BenchmarkSeal(b *testing.B) {
	for _, size := range []int{60_000, 312_500} {
		b.Run(fmt.Sprintf("keys=%d", size), func(b *testing.B) {
			r := benchRing(b, 0, 0)
			var run, finish time.Duration
			keys := 0
			for epoch := int64(0); keys < b.N; epoch++ {
				fillBatches(b, r, epoch, size)
				start := time.Now()
				job := r.StartSeal(r.At(epoch))
				must(b, job.Run())
				ran := time.Now()
				_, err := r.FinishSeal(job)
				must(b, err)
				run, finish, keys = run+ran.Sub(start), finish+time.Since(ran), keys+size
				jobs, err := r.DropBelow(epoch + 1)
				must(b, err)
				must(b, jobs[0].Run())
			}
			b.ReportMetric(float64((run+finish).Nanoseconds())/float64(keys), "ns/op")
			b.ReportMetric(finish.Seconds()*1e6/float64(keys/size), "finish-µs/bucket")
		})
	}
}

// BenchmarkLookup: 16 families of 60 k entries, per key.
func BenchmarkLookup(b *testing.B) {
	const families, entries = 16, 60_000
	r := benchRing(b, families, entries)
	for _, kind := range []string{"hit", "miss"} {
		for _, size := range []int{64, 1024} {
			b.Run(fmt.Sprintf("%s/batch=%d", kind, size), func(b *testing.B) {
				probes := make([]Probe, size)
				found, seed := 0, uint64(1)
				b.ReportAllocs()
				for n := 0; n < b.N; n += size {
					for i := range probes {
						seed = seed*6364136223846793005 + 1442695040888963407
						slot, key := seed>>32%families, int(seed>>40)%entries
						if kind == "miss" {
							key += entries
						}
						probes[i] = Probe{Hash: hashOf(int64(slot), key), Slot: uint16(slot)}
					}
					if err := r.Lookup(probes); err != nil {
						b.Fatal(err)
					}
					for i := range probes {
						if len(r.Value(i)) > 0 {
							found++
						}
					}
				}
				if want := map[string]int{"hit": (b.N + size - 1) / size * size}[kind]; found != want {
					b.Fatalf("%d found, expected %d", found, want)
				}
			})
		}
	}
}

// BenchmarkDrop: one bucket of 60 k entries; what the task's goroutine does, and what the helper does.
func BenchmarkDrop(b *testing.B) {
	r := benchRing(b, 0, 0)
	var mark, drop time.Duration
	for epoch := range int64(b.N) {
		fillBatches(b, r, epoch, 60_000)
		sealBucket(b, r, epoch)
		start := time.Now()
		jobs, err := r.DropBelow(epoch + 1)
		must(b, err)
		marked := time.Now()
		must(b, jobs[0].Run())
		mark, drop = mark+marked.Sub(start), drop+time.Since(marked)
	}
	perOp(b, mark+drop)
	b.ReportMetric(float64(mark.Nanoseconds())/float64(b.N), "mark-ns/op")
}

// BenchmarkOpen: a start over 16 sealed families and one open bucket of 60 k entries, in the journal.
func BenchmarkOpen(b *testing.B) {
	k := newRocksKit(b)
	opt := Options{Width: 1000, Slots: MaxSlots}
	r := mustRing(b, opt, k.openRocks(b), 0)
	for epoch := range int64(17) {
		fillBatches(b, r, epoch, 60_000)
		if epoch < 16 {
			sealBucket(b, r, epoch)
		}
	}
	last := r.Committed()
	must(b, r.Close())
	var span time.Duration
	for range b.N {
		start := time.Now()
		r := mustRing(b, opt, k.openRocks(b), last)
		span += time.Since(start)
		if r.Pending() != 17*60_000 {
			b.Fatalf("%d entries", r.Pending())
		}
		must(b, r.Close())
	}
	perOp(b, span)
}
