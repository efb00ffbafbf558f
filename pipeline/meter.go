package pipeline

import (
	"runtime/metrics"
	"time"

	"joinbench/core"
	"joinbench/results"
)

// intervalEvery is how often the meter asks RocksDB and the file system: about 100 µs each time.
const intervalEvery = 500 * time.Millisecond

// meter watches a run from beside: after each batch it may look, and mostly it only counts.
type meter struct {
	b       *bench
	started time.Time
	phase   string
	begin   reading   // where this process began: after a resumption not at zero
	since   reading   // where the phase began
	last    reading   // after the last batch
	from    reading   // where measuring began
	to      reading   // and where it ended
	sampled reading   // at the last interval
	cutAt   time.Time // when --duration ends the measured phase

	phases    []results.Phase
	intervals []results.Interval
	diskMax   int64
	storeMax  int64
}

// reading is what is read at one moment.
type reading struct {
	at            time.Time
	read          [2]uint64
	probes        uint64
	stored        uint64
	onA, onB, off time.Duration
	cpu           time.Duration
	allocs        uint64
}

func newMeter(b *bench, started time.Time) *meter {
	m := &meter{b: b, started: started, phase: "prepare"}
	m.since = m.read(b.state.engine, true)
	m.begin, m.last, m.sampled = m.since, m.since, m.since
	b.Progress.Total.Store(b.gen.sent(core.A) + b.gen.sent(core.B))
	return m
}

// read takes a reading; deep ones ask the system too.
func (m *meter) read(e *core.Engine, deep bool) reading {
	c := e.Counters()
	r := reading{at: time.Now(), read: [2]uint64{c.Read(core.A), c.Read(core.B)}, probes: c.Tasks.Probes, stored: c.Tasks.Stored,
		onA: c.Tasks.StoreTime, onB: c.Tasks.AskTime, off: c.Tasks.HelperTime}
	if deep {
		r.cpu, _ = results.CPUTime() // zero where it is not known, and then not reported
		r.allocs = allocations()
	}
	return r
}

// allocations is the number of heap objects that the process ever allocated.
func allocations() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// observe is called after each batch.
func (m *meter) observe(e *core.Engine) error {
	_ = m.b.Progress.update(e)
	now := m.read(e, false)
	if m.phase == "prepare" && now.probes == 0 && int64(now.read[core.A]) >= m.b.Profile.Load.Pending {
		if err := m.settle(e, now); err != nil {
			return err
		}
		now = m.read(e, false)
	}
	if (m.phase == "prepare" || m.phase == "settle") && now.probes > 0 {
		m.last.cpu, _ = results.CPUTime()
		m.last.allocs = allocations()
		m.from = m.last
		m.turn("measure", m.last)
		if m.b.Duration > 0 {
			m.cutAt = now.at.Add(m.b.Duration)
		}
	}
	if m.phase == "measure" {
		if !m.cutAt.IsZero() && now.at.After(m.cutAt) {
			m.b.gen.cut()
			m.cutAt = time.Time{}
			m.b.Progress.Total.Store(m.b.gen.sent(core.A) + m.b.gen.sent(core.B))
		}
		if int64(now.read[core.B]) >= m.b.gen.sent(core.B) {
			now = m.read(e, true)
			m.to = now
			m.turn("drain", now)
		}
	}
	if now.at.Sub(m.sampled.at) >= intervalEvery {
		m.interval(e, now)
	}
	m.last = now
	return nil
}

// settle waits until the helpers have sealed and filtered what the preload left, which came far faster than a stream
// would: what is measured is the join, not the tail of its preparation.
func (m *meter) settle(e *core.Engine, now reading) error {
	m.turn("settle", now)
	return e.Quiesce()
}

// turn ends the phase at a reading and begins the next.
func (m *meter) turn(next string, at reading) {
	m.endPhase(at)
	m.phase, m.since = next, at
	m.b.Progress.phase(next)
}

func (m *meter) endPhase(at reading) {
	m.phases = append(m.phases, results.Phase{Name: m.phase, StartNs: int64(m.since.at.Sub(m.started)),
		DurationNs: int64(at.at.Sub(m.since.at)),
		Records:    int64(at.read[core.A] + at.read[core.B] - m.since.read[core.A] - m.since.read[core.B])})
}

func (m *meter) interval(e *core.Engine, now reading) {
	l := e.Levels(true)
	s := now.at.Sub(m.sampled.at).Seconds()
	m.diskMax, m.storeMax = max(m.diskMax, l.DiskBytes), max(m.storeMax, l.StoreBytes)
	rss := results.ReadMemory()
	m.intervals = append(m.intervals, results.Interval{TNs: int64(now.at.Sub(m.started)), Phase: m.phase,
		ProbesPerS: results.Known(float64(now.probes-m.sampled.probes) / s),
		APerS:      results.Known(float64(now.read[core.A]-m.sampled.read[core.A]) / s),
		Pending:    int64(l.Pending), DiskBytes: &l.DiskBytes, RSSBytes: &rss.AnonBytes})
	m.sampled = now
}

// finish ends the last phase, however the run ended.
func (m *meter) finish(e *core.Engine) {
	now := m.read(e, true)
	if m.phase == "measure" {
		m.to = now
	}
	m.interval(e, now)
	m.endPhase(now)
}

// drops lists the buckets that went, with the time of the run.
func (m *meter) drops(e *core.Engine) []results.Drop {
	var out []results.Drop
	for _, d := range e.Drops() {
		out = append(out, results.Drop{Epoch: d.Epoch, TNs: int64(d.At.Sub(m.started)), DiskBeforeBytes: &d.Before,
			DiskAfterBytes: &d.After, DropNs: int64(d.Took)})
	}
	return out
}

// load is what was taken in while measuring.
func (m *meter) load() *results.Load {
	l := &results.Load{Mode: "closed"}
	if s := m.to.at.Sub(m.from.at).Seconds(); s > 0 {
		l.AchievedPerS = results.Known(float64(m.to.read[core.B]-m.from.read[core.B]) / s)
	}
	if m.to.read[core.B] > m.begin.read[core.B] {
		n := m.to.read[core.B] - m.begin.read[core.B]
		if t := m.b.feed.readTime[core.B].Load(); t > 0 {
			l.Generator.CeilingPerS = results.Known(float64(n) / (float64(t) / 1e9) * float64(m.b.Profile.Load.Partitions))
		}
	}
	return l
}

// cost of the measured phase on B, and of the whole run on A.
func (m *meter) cost(e *core.Engine, f *feed, drops []results.Drop) results.Cost {
	var c results.Cost
	all := m.read(e, false)
	probes := float64(m.to.probes - m.from.probes)
	c.NsPerB = ratio(float64(m.to.onB-m.from.onB), probes)
	c.NsPerA = ratio(float64(all.onA), float64(all.stored))
	c.BackgroundNsPerA = ratio(float64(all.off), float64(all.stored))
	readB := float64(all.read[core.B] - m.begin.read[core.B]) // by this process, as the times of the feed are
	if c.NsPerB != nil {
		decode := ratio(float64(f.decodeTime[core.B].Load()), readB)
		if decode != nil {
			c.RecordNsPerB = results.Known(*c.NsPerB + *decode)
		}
	}
	c.GeneratorNsPerB = ratio(float64(f.readTime[core.B].Load()), readB)
	c.RocksDBBytes = &m.storeMax
	disk := m.diskMax
	for _, d := range drops {
		disk = max(disk, *d.DiskBeforeBytes)
	}
	c.DiskMaxBytes = &disk
	if m.to.cpu > m.from.cpu {
		c.CPUSPerMillion = ratio((m.to.cpu-m.from.cpu).Seconds()*1e6, float64(m.to.read[core.B]-m.from.read[core.B]))
	}
	c.AllocsPerProbe = ratio(float64(m.to.allocs-m.from.allocs), probes)
	return c
}
