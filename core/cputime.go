package core

import "time"

// AskCPU is CPU time that tasks of this process spent while B asked, and how many B these were. Other work on the machine moves
// the clock, and this much less. What asked on a goroutine that changed its thread meanwhile is in neither; where threads have no
// clock, both are 0. It counts what was undone too, and is not kept.
type AskCPU struct {
	Time   time.Duration
	Probes uint64
}

// threadMoment is when a thread had spent so much.
type threadMoment struct {
	at     time.Duration
	thread int
}

// since books B that asked from a moment to now.
func (c *AskCPU) since(from threadMoment, probes int) {
	if now := threadNow(); now.thread == from.thread && now.at > from.at {
		c.Time += now.at - from.at
		c.Probes += uint64(probes)
	}
}

// AskCPU sums what the tasks have booked. It is called between batches, by who runs the engine.
func (e *Engine) AskCPU() AskCPU {
	var sum AskCPU
	for _, t := range e.tasks {
		sum.Time += t.askCPU.Time
		sum.Probes += t.askCPU.Probes
	}
	return sum
}
