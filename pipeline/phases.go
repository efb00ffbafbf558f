package pipeline

import (
	"runtime/debug"

	"joinbench/core"
	"joinbench/results"
)

// The phases of a run: prepare (the A before the first B), settle, warm (the first load.warm B), settle again, measure, drain.
// Without warm there is one settle. A run that is resumed while B ask goes on where it was, without one.

// loaded says whether the A before the first B are stored. An open loop says so itself (see pacer.still).
func (m *meter) loaded(now reading) bool {
	return m.b.pace == nil && m.phase == "prepare" && now.probes == 0 && int64(now.read[core.A]) >= m.b.Profile.Load.Pending
}

// warming says whether the next B are not to be measured yet.
func (m *meter) warming() bool {
	return int64(m.last.read[core.B])+m.dropped() < m.b.Profile.Load.Warm
}

// warmed says whether warming has just ended. An open loop pauses then, until its queue is empty.
func (m *meter) warmed(now reading) bool {
	return m.b.pace == nil && m.phase == "warm" && int64(now.read[core.B]) >= m.b.Profile.Load.Warm
}

// settle waits until the helpers have sealed and filtered what there was to: the preload comes far faster than a stream
// would, and what is measured is the join, not the tail of its preparation. After the preload the memory that only it needed
// is given back.
func (m *meter) settle(e *core.Engine, now reading) error {
	preload := m.phase == "prepare"
	m.turn("settle", now)
	err := e.Quiesce()
	if preload {
		debug.FreeOSMemory()
	}
	m.settled = now.probes
	return err
}

// measure begins the measured phase behind the last batch; now is after the first of the phase.
func (m *meter) measure(now reading) {
	m.last.cpu, _ = results.CPUTime()
	m.last.heap = readHeap(m.watched)
	m.from = m.last
	m.turn("measure", m.last)
	if m.b.Duration > 0 && m.b.pace == nil && !m.b.gen.wasCut() {
		m.cutAt = now.at.Add(m.b.Duration)
	}
}
