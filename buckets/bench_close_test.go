//go:build cgo

package buckets

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkClose: what is left in a sealed bucket of 300,000 entries, read and sorted, per entry of the bucket.
func BenchmarkClose(b *testing.B) {
	const n, width = 300_000, 60_000
	k := newRocksKit(b)
	r := mustRing(b, Options{Width: width, Slots: 4}, k.openRocks(b), 0)
	b.Cleanup(func() { must(b, r.Close()) })
	bucket, err := r.Bucket(0)
	must(b, err)
	for i := range n {
		e := benchEntry
		e.Time, e.Offset = int64(i)*width/n, int64(i)
		_, err := r.Append(bucket, hashOf(0, i), &e)
		must(b, err)
		if i%1024 == 1023 || i == n-1 {
			must(b, r.Commit(r.Committed()+1, nil))
		}
	}
	sealBucket(b, r, 0)
	for _, used := range []int{0, 50, 99} {
		for row := range uint32(n) {
			if int(row%100) < used {
				r.Use(bucket, row)
			}
		}
		must(b, r.Commit(r.Committed()+1, nil))
		for _, limit := range []int64{0, 8 << 20} {
			b.Run(fmt.Sprintf("used=%d%%/limit=%dMiB", used, limit>>20), func(b *testing.B) {
				var span time.Duration
				read, parts, bytes := 0, 0, int64(0)
				for read < b.N {
					start := time.Now()
					for s := r.StartClose(bucket, UnusedRows, limit); ; s = r.NextClose(s) {
						must(b, s.Run())
						bytes = max(bytes, s.MemoryBytes())
						if parts++; !s.More() {
							break
						}
					}
					span += time.Since(start)
					read += n
				}
				b.ReportMetric(float64(span.Nanoseconds())/float64(read), "ns/op")
				b.ReportMetric(float64(parts)*n/float64(read), "parts")
				b.ReportMetric(float64(bytes)/n, "B-held/entry")
			})
		}
	}
}
