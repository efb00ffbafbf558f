package pipeline

import (
	"math"
	"runtime"
	"runtime/metrics"
	"slices"

	"joinbench/results"
)

// heapReading is what the Go runtime counted since the process began.
type heapReading struct {
	objects, bytes uint64   // allocated
	pauses         []uint64 // of the collector, by class
	edges          []float64
}

// heapCount is what was allocated up to now, exactly: the runtime's metrics lag behind by what each thread has not handed in, which
// is half an allocation a batch, so the world is stopped for some microseconds.
func heapCount() (objects, bytes uint64) {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.Mallocs, s.TotalAlloc
}

// readHeap takes a reading, less what the meter itself has allocated (watched): it looks at its clock for when to sample,
// so that a slow run would seem to allocate more.
func readHeap(watched [2]uint64) heapReading {
	s := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(s)
	objects, bytes := heapCount()
	r := heapReading{objects: objects - watched[0], bytes: bytes - watched[1]}
	if s[0].Value.Kind() == metrics.KindFloat64Histogram {
		h := s[0].Value.Float64Histogram()
		r.pauses, r.edges = slices.Clone(h.Counts), h.Buckets
	}
	return r
}

// since fills in what happened since an earlier reading.
func (r *heapReading) since(earlier *heapReading, probes float64, c *results.Cost) {
	c.AllocsPerProbe = ratio(float64(r.objects-earlier.objects), probes)
	c.AllocBytesPerProbe = ratio(float64(r.bytes-earlier.bytes), probes)
	if len(r.pauses) == 0 || len(r.pauses) != len(earlier.pauses) {
		return
	}
	counts := make([]uint64, len(r.pauses))
	for i, n := range r.pauses {
		counts[i] = n - earlier.pauses[i]
	}
	c.GCPauseP99Ns, c.GCPauseMaxNs = pauseAt(counts, r.edges, 0.99), pauseAt(counts, r.edges, 1)
}

// pauseAt is the upper edge of the class in which the quantile lies, in ns; nil without a pause. edges has one more element
// than counts; the last may be infinite, then the lower edge stands for it.
func pauseAt(counts []uint64, edges []float64, quantile float64) *int64 {
	total := uint64(0)
	for _, n := range counts {
		total += n
	}
	if total == 0 {
		return nil
	}
	rank, seen := uint64(math.Ceil(quantile*float64(total))), uint64(0)
	for i, n := range counts {
		if seen += n; seen >= rank {
			edge := edges[i+1]
			if math.IsInf(edge, 1) {
				edge = edges[i]
			}
			return new(int64(edge * 1e9))
		}
	}
	return nil
}
