package pipeline

import (
	"slices"

	"joinbench/core"
	"joinbench/results"
)

// cpuParts is the CPU time of asking along the measured phase, in parts of as many B each. Runs of one workload ask the same in the
// same part, so that of several runs the least of each part is what asking takes when nothing comes between (see `joinbench ab`).
type cpuParts struct {
	each int // B of a part
	at   int // B so far
	list []cpuPart

	clock []float64 // ns a B of each batch
}

type cpuPart struct{ ns, probes float64 }

// mostParts is how many there are before two become one, so that a part of profile gate is a batch: the shorter, the more often one is
// undisturbed.
const mostParts = 256

// mostClock is how many batches are timed by the clock: those of a run that `joinbench ab` asks for time.
const mostClock = 4096

// newCPUParts begins with parts of a batch: what is less has no reading of its own.
func newCPUParts(batch int) cpuParts {
	return cpuParts{each: batch, list: make([]cpuPart, 0, mostParts), clock: make([]float64, 0, mostClock)} // once, so that runs allocate the same
}

// batch books what was asked between two readings, in the parts that it lies in. B whose thread changed are in none.
func (c *cpuParts) batch(before, now reading) {
	n := int(now.probes - before.probes)
	asked := float64(now.askCPU.Probes - before.askCPU.Probes)
	took := float64(now.askCPU.Time - before.askCPU.Time)
	if n > 0 && len(c.clock) < mostClock {
		c.clock = append(c.clock, float64(now.onB-before.onB)/float64(n))
	}
	for c.at+n > mostParts*c.each {
		c.fold()
	}
	for from, end := c.at, c.at+n; from < end; {
		i := from / c.each
		to := min(end, (i+1)*c.each)
		for i >= len(c.list) {
			c.list = append(c.list, cpuPart{})
		}
		share := float64(to-from) / float64(n)
		c.list[i].ns += share * took
		c.list[i].probes += share * asked
		from = to
	}
	c.at += n
}

// fold makes one part of two.
func (c *cpuParts) fold() {
	half := (len(c.list) + 1) / 2
	for i := range half {
		part := c.list[2*i]
		if 2*i+1 < len(c.list) {
			part.ns += c.list[2*i+1].ns
			part.probes += c.list[2*i+1].probes
		}
		c.list[i] = part
	}
	c.list, c.each = c.list[:half], 2*c.each
}

// record is nil where threads have no clock.
func (c *cpuParts) record(all core.AskCPU) *results.CPUParts {
	if all.Probes == 0 {
		return nil
	}
	out := &results.CPUParts{Probes: int64(c.each), NsPerB: make([]*float64, len(c.list))}
	for i, p := range c.list {
		out.NsPerB[i] = ratio(p.ns, p.probes)
	}
	out.ClockNsPerB = usual(c.clock)
	return out
}

// usual is the mean without a tenth at either end, nil of nothing.
func usual(v []float64) *float64 {
	v = slices.Sorted(slices.Values(v))
	cut, sum := len(v)/10, 0.0
	for _, x := range v[cut : len(v)-cut] {
		sum += x
	}
	return ratio(sum, float64(len(v)-2*cut))
}
