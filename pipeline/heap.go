package pipeline

import (
	"math"
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

func readHeap() heapReading {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}, {Name: "/gc/heap/allocs:bytes"}, {Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(s)
	r := heapReading{objects: s[0].Value.Uint64(), bytes: s[1].Value.Uint64()}
	if s[2].Value.Kind() == metrics.KindFloat64Histogram {
		h := s[2].Value.Float64Histogram()
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
