package pipeline

import (
	"math"
	"runtime"
	"testing"

	"joinbench/results"
)

func TestPauseAt(t *testing.T) {
	edges := []float64{0, 1e-6, 1e-5, 1e-4, math.Inf(1)}
	for _, c := range []struct {
		counts   []uint64
		quantile float64
		want     int64 // -1: none
	}{
		{[]uint64{0, 0, 0, 0}, 0.99, -1},
		{[]uint64{1, 0, 0, 0}, 0.99, 1_000},
		{[]uint64{99, 1, 0, 0}, 0.99, 1_000},
		{[]uint64{98, 2, 0, 0}, 0.99, 10_000},
		{[]uint64{99, 0, 1, 0}, 1, 100_000},
		{[]uint64{0, 0, 0, 5}, 0.5, 100_000}, // no upper edge
	} {
		got := pauseAt(c.counts, edges, c.quantile)
		if (got == nil) != (c.want < 0) || got != nil && *got != c.want {
			t.Errorf("%v at %v: %v, want %d", c.counts, c.quantile, got, c.want)
		}
	}
}

var kept []byte // what a test allocates must not be optimised away

// What the runtime counts between two readings is what was done between them.
func TestHeapReading(t *testing.T) {
	before := readHeap([2]uint64{})
	for range 100 {
		kept = make([]byte, 1<<16)
	}
	runtime.GC()
	after := readHeap([2]uint64{})
	var c results.Cost
	after.since(&before, 100, &c)
	if c.AllocBytesPerProbe == nil || *c.AllocBytesPerProbe < 1<<16 || *c.AllocBytesPerProbe > 4<<16 || *c.AllocsPerProbe < 1 {
		t.Errorf("bytes %v, objects %v", c.AllocBytesPerProbe, c.AllocsPerProbe)
	}
	if c.GCPauseP99Ns == nil || *c.GCPauseP99Ns <= 0 || *c.GCPauseMaxNs < *c.GCPauseP99Ns {
		t.Errorf("pauses %v, %v", c.GCPauseP99Ns, c.GCPauseMaxNs)
	}
	c = results.Cost{}
	before.since(&before, 0, &c)
	if c.AllocBytesPerProbe != nil || c.GCPauseP99Ns != nil {
		t.Errorf("of nothing: %+v", c)
	}
}
