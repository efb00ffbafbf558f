package pipeline

import (
	"math"
	"testing"
	"time"

	"joinbench/core"
)

// TestCPUParts: whatever batches come, the parts have what was booked, each what was asked in it.
func TestCPUParts(t *testing.T) {
	for _, c := range []struct{ batches, size, first, lost, width, parts int }{
		{10, 100, 256, 0, 256, 4},         // several batches a part
		{3, 1000, 256, 0, 256, 12},        // several parts a batch
		{245, 4096, 4096, 0, 4096, 245},   // a batch a part
		{98, 4096, 4096, 0, 4096, 98},     // which fewer do not change
		{1001, 4096, 4096, 7, 16384, 251}, // and one whose thread changed
		{1, 5_000_000, 4096, 0, 32768, 153},
	} {
		p := newCPUParts(c.first)
		var now reading
		asked := func(at int) time.Duration { return time.Duration(at) * time.Duration(at) / 100 } // later B take longer
		total, sum := c.batches*c.size, time.Duration(0)
		for i := range c.batches {
			before := now
			now.probes += uint64(c.size)
			if i != c.lost || c.lost == 0 {
				took := asked((i+1)*c.size) - asked(i*c.size)
				now.askCPU.Time += took
				now.askCPU.Probes += uint64(c.size)
				sum += took
			}
			p.batch(before, now)
		}
		got := p.record(now.askCPU)
		if int(got.Probes) != c.width || len(got.NsPerB) != c.parts {
			t.Errorf("%+v: %d parts of %d", c, len(got.NsPerB), got.Probes)
			continue
		}
		ns, probes := 0.0, 0.0
		for i, part := range p.list {
			ns, probes = ns+part.ns, probes+part.probes
			from, to := i*c.width, min((i+1)*c.width, total)
			if want := float64(asked(to)-asked(from)) / float64(to-from); c.lost == 0 && c.batches > 200 && math.Abs(*got.NsPerB[i]-want) > 1e-6*want {
				t.Errorf("%+v: part %d took %v a B, want %v", c, i, *got.NsPerB[i], want)
			}
		}
		if math.Abs(ns-float64(sum)) > 1e-6*ns || math.Abs(probes-float64(now.askCPU.Probes)) > 1e-6*probes {
			t.Errorf("%+v: %v ns of %v, %v B of %d", c, ns, sum, probes, now.askCPU.Probes)
		}
	}
	// By the clock a batch in which the process stood still does not count.
	p, now := newCPUParts(4096), reading{}
	for i := range 40 {
		before := now
		now.probes += 4096
		now.askCPU.Probes, now.askCPU.Time = now.probes, now.askCPU.Time+4096*30
		now.onB += 4096 * 35
		if i%20 == 7 {
			now.onB += 5 * time.Millisecond
		}
		p.batch(before, now)
	}
	if got := p.record(now.askCPU).ClockNsPerB; got == nil || math.Abs(*got-35) > 0.01 {
		t.Errorf("by the clock %v", got)
	}
	if new(cpuParts).record(core.AskCPU{}) != nil {
		t.Error("parts without a clock")
	}
}
