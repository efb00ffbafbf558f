package pipeline

import (
	"time"

	"joinbench/results"
)

// gaps are the longest times between the ends of two batches while measuring.
type gaps struct {
	longest       time.Duration
	longestEngine time.Duration // of it, what the engine did not spend waiting for records
	engine        time.Duration // the longest of that kind, in whatever gap
}

// batch takes in that a batch has ended: not before the first one of the phase, whose beginning is not known.
func (g *gaps) batch(before, now reading) {
	gap := now.at.Sub(before.at)
	engine := gap - (now.waited - before.waited)
	if gap > g.longest {
		g.longest, g.longestEngine = gap, engine
	}
	g.engine = max(g.engine, engine)
}

// warmUp of a measured phase is left out of what is said about memory: until the ring has turned once, and the heap has its
// size. A tenth of the phase, and a minute if that is not more than half of it.
func warmUp(phase time.Duration) time.Duration { return max(phase/10, min(time.Minute, phase/2)) }

// minSteady is how many samples a slope needs.
const minSteady = 20

// steady says whether a long measured phase kept its memory, its disk and its pace; nil without such a phase.
func (m *meter) steady() *results.Steady {
	length := m.to.at.Sub(m.from.at)
	if m.from.at.IsZero() || length <= 0 {
		return nil
	}
	warm := warmUp(length)
	from, to := m.from.at.Sub(m.started)+warm, m.to.at.Sub(m.started)
	s := &results.Steady{MeasuredNs: int64(length), WarmUpNs: int64(warm), MaxGapNs: int64(m.gaps.longest),
		MaxGapEngineNs: int64(m.gaps.longestEngine), MaxEngineNs: int64(m.gaps.engine)}
	var times []float64
	var amounts [sampledLevels][]float64
	for i := range m.samples.list {
		one := &m.samples.list[i]
		if one.at < from || one.at > to {
			continue
		}
		times = append(times, one.at.Seconds())
		for which, n := range one.levels {
			amounts[which] = append(amounts[which], float64(n))
		}
	}
	if len(times) == 0 {
		return s
	}
	s.Samples = int64(len(times))
	level := func(which int) results.SteadyLevel {
		return results.Level(times, amounts[which], len(times) >= minSteady)
	}
	s.RSS, s.GoHeap, s.RocksDB = level(rss), level(goHeap), level(rocksDB)
	s.Arenas, s.Filters, s.Disk = level(arenas), level(filters), level(disk)
	return s
}
