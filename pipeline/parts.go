package pipeline

import (
	"joinbench/core"
	"joinbench/results"
)

// cpuParts is the CPU time of asking along the measured phase, in parts of as many B each. Runs of one workload ask the same in the
// same part, so that two runs differ there by their builds and by what disturbed them (see `joinbench ab`).
type cpuParts struct {
	each int // B of a part
	at   int // B so far
	list []cpuPart
}

// cpuPart is what B took whose thread stayed the same, and what all did by the clock.
type cpuPart struct{ ns, probes, clock, all float64 }

func (p *cpuPart) add(o cpuPart, share float64) {
	p.ns, p.probes, p.clock, p.all = p.ns+share*o.ns, p.probes+share*o.probes, p.clock+share*o.clock, p.all+share*o.all
}

// mostParts is how many there are before two become one, so that a part of profile gate is a batch: the shorter, the more often one is
// undisturbed.
const mostParts = 256

// newCPUParts begins with parts of a batch: what is less has no reading of its own.
func newCPUParts(batch int) cpuParts {
	return cpuParts{each: batch, list: make([]cpuPart, 0, mostParts)} // once, so that runs allocate the same
}

// batch books what was asked between two readings, in the parts that it lies in. B whose thread changed are in none.
func (c *cpuParts) batch(before, now reading) {
	n := int(now.probes - before.probes)
	batch := cpuPart{ns: float64(now.askCPU.Time - before.askCPU.Time), probes: float64(now.askCPU.Probes - before.askCPU.Probes),
		clock: float64(now.onB - before.onB), all: float64(n)}
	for c.at+n > mostParts*c.each {
		c.fold()
	}
	for from, end := c.at, c.at+n; from < end; {
		i := from / c.each
		to := min(end, (i+1)*c.each)
		for i >= len(c.list) {
			c.list = append(c.list, cpuPart{})
		}
		c.list[i].add(batch, float64(to-from)/float64(n))
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
			part.add(c.list[2*i+1], 1)
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
	clock := make([]float64, len(c.list))
	for i, p := range c.list {
		out.NsPerB[i] = ratio(p.ns, p.probes)
		clock[i] = p.clock / p.all
	}
	out.ClockNsPerB = results.Known(results.TrimmedMean(clock))
	return out
}
