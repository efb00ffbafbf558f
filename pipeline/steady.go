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

// steadyState tests the samples of the measured phase; nil without such a phase.
func (m *meter) steadyState() *results.SteadyState {
	if m.from.at.IsZero() || m.to.at.IsZero() {
		return nil
	}
	l := &m.b.Profile.Load
	sealed, dropped, slots := int64(m.to.sealed-m.from.sealed), int64(m.to.dropped-m.from.dropped), m.b.Profile.Join.State.Buckets
	series := m.samples.series("measure")
	if min(sealed, dropped) < int64(slots) {
		series[steadyDisk].Limit = 0
	}
	return results.TestSteadyState(l.RequireSteady, series, sealed, dropped, slots)
}

// steadyDisk is the place of the disk among the series.
const steadyDisk = 2

// series are the metrics of a phase that shall keep steady, with their limits.
//
// What waits moves by a bucket's share of the ring between two drops, 3 % of it up and down with sixteen buckets; so does the
// disk, where the open buckets' journal comes on top. The disk is judged once the ring has turned: a steady start has no rows
// that were used after their bucket was sealed, so each bucket that the stream makes is larger than the one that it displaces.
// Memory follows the open bucket, from empty to a seventh of all, and the collector's cycles. Pace has the widest limit: other
// tenants take half a core at times, and a join that gets slow with what it holds does so by more.
func (s *samples) series(phase string) []results.SteadySeries {
	out := []results.SteadySeries{{Metric: "probes_per_s", Limit: 0.25}, {Metric: "pending", Limit: 0.05},
		{Metric: "disk_bytes", Limit: 0.15}, {Metric: "rss_bytes", Limit: 0.20}}
	for i := range s.list {
		one := &s.list[i]
		if one.phase != phase || one.took <= 0 {
			continue
		}
		values := []float64{float64(one.probes) / one.took.Seconds(), float64(one.pending), float64(one.levels[disk]), float64(one.levels[rss])}
		for which := range out {
			out[which].Seconds = append(out[which].Seconds, one.at.Seconds())
			out[which].Values = append(out[which].Values, values[which])
		}
	}
	return out
}
