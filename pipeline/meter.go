package pipeline

import (
	"time"

	"joinbench/core"
	"joinbench/results"
)

// meter watches a run from beside: after each batch it may look, and mostly it only counts.
type meter struct {
	b       *bench
	started time.Time
	mem     *results.MemSampler
	phase   string
	begin   reading   // where this process began: after a resumption not at zero
	since   reading   // where the phase began
	last    reading   // after the last batch
	from    reading   // where measuring began
	to      reading   // and where it ended
	cutAt   time.Time // when --duration ends the measured phase

	phases   []results.Phase
	samples  samples
	parts    cpuParts
	watched  [2]uint64 // objects and bytes that sampling has allocated
	gaps     gaps
	rotation rotation
	settled  uint64    // B that had asked when the last settling ended
	recovery *recovery // nil in a run that was not resumed while B asked

	service  latencies // of a closed loop; an open one keeps its own
	maxQueue int64     // B that were due and not taken, at most

	recovering bool          // see bench.recovered
	io         [2]results.IO // when joining began, and when it ended
	max        levels
	// Summed up over the samples of the measured phase.
	filterBytes, sealedRows float64
	workClock               // of all times but started, which is its zero
}

// levels are the greatest amounts so far, each at its own moment.
type levels struct{ disk, store, arena, filter, index int64 }

// reading is what is read at one moment.
type reading struct {
	at            time.Time
	read          [2]uint64
	probes        uint64
	lookups       uint64
	stored        uint64
	sealed        uint64 // buckets
	dropped       uint64
	onA, onB, off time.Duration
	waited        time.Duration // for records
	made          time.Duration // of decoders at work
	cpu           time.Duration
	askCPU        core.AskCPU
	heap          heapReading
}

func newMeter(b *bench, started time.Time, mem *results.MemSampler) *meter {
	m := &meter{b: b, started: started, mem: mem, phase: "prepare", samples: newSamples(b.resumed), recovering: b.resumed,
		service: newLatencies(false), parts: newCPUParts(b.batchSize())}
	m.since = m.read(b.state.engine, true)
	m.begin, m.last, m.samples.last = m.since, m.since, m.since
	if b.resumed && m.begin.probes > 0 {
		m.recovery = newRecovery(b, m.begin)
	}
	m.io[0] = results.ReadIO()
	m.total()
	return m
}

// total says how many records are to come, once that is known: a run of some duration ends when it has passed.
func (m *meter) total() {
	if m.b.Duration == 0 || m.b.gen.wasCut() {
		m.b.Progress.Total.Store(m.b.gen.sent(core.A) + m.b.gen.sent(core.B))
	}
}

// read takes a reading; deep ones ask the system too.
func (m *meter) read(e *core.Engine, deep bool) reading {
	c := e.Counters()
	r := reading{at: m.now(), read: [2]uint64{c.Read(core.A), c.Read(core.B)}, probes: c.Tasks.Probes,
		lookups: c.Tasks.Lookups, stored: c.Tasks.Stored, waited: m.b.source.waited, made: m.b.feed.making(),
		sealed: c.Tasks.SealedTotal, dropped: c.Tasks.DroppedTotal,
		onA: c.Tasks.StoreTime, onB: c.Tasks.AskTime, off: c.Tasks.HelperTime, askCPU: e.AskCPU()}
	if deep {
		r.cpu, _ = results.CPUTime() // zero where it is not known, and then not reported
		r.heap = readHeap(m.watched)
	}
	return r
}

// observe is called after each batch.
func (m *meter) observe(e *core.Engine) error {
	if m.b.pace != nil {
		m.b.pace.took(e) // first: it looks at the clock
	}
	l := e.Levels(false)
	m.max.arena, m.max.filter, m.max.index = max(m.max.arena, l.ArenaBytes), max(m.max.filter, int64(l.FilterBytes)), max(m.max.index, int64(l.IndexBytes))
	_ = m.b.Progress.update(e)
	now := m.read(e, false)
	if m.recovery != nil {
		m.recovery.batch(now, l.Unfiltered)
	}
	if m.recovering && (l.Unfiltered == 0 || now.at.Sub(m.begin.at) > fineFor) {
		m.recovering = false
		m.b.recovered()
	}
	if m.loaded(now) || m.warmed(now) {
		if err := m.settle(e, now); err != nil {
			return err
		}
		now = m.read(e, false)
	}
	if (m.phase == "prepare" || m.phase == "settle") && now.probes > m.settled {
		if m.warming() {
			m.turn("warm", m.last)
		} else {
			m.measure(now)
		}
	}
	if m.phase == "measure" {
		if !m.cutAt.IsZero() && now.at.After(m.cutAt) {
			if err := m.b.cut(); err != nil {
				return err
			}
			m.cutAt = time.Time{}
			m.total()
		}
		m.gaps.batch(m.last, now)
		m.rotation.batch(m.last, now)
		m.samples.batch(m.last, now)
		m.parts.batch(m.last, now)
		m.served(now)
		if int64(now.read[core.B])+m.dropped() >= m.b.gen.sent(core.B) {
			now = m.read(e, true)
			m.to = now
			m.to.sealed, m.to.dropped = m.last.sealed, m.last.dropped // this batch, the last, drops all that is left
			m.turn("drain", now)
		}
	}
	m.rotation.going = l.Rotating > 0
	if m.samples.due(now) {
		objects, bytes := heapCount()
		m.sample(e, now)
		o, b := heapCount()
		m.watched[0], m.watched[1] = m.watched[0]+o-objects, m.watched[1]+b-bytes
	}
	m.last = now
	if m.b.hold != nil {
		return m.b.hold.batch(m, e)
	}
	return nil
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

// sample asks RocksDB and the system too: about 100 µs.
func (m *meter) sample(e *core.Engine, now reading) {
	l := e.Levels(true)
	m.max.disk, m.max.store = max(m.max.disk, l.DiskBytes), max(m.max.store, l.StoreBytes)
	mem := m.mem.Mean()
	s := sample{
		at: now.at.Sub(m.started), took: now.at.Sub(m.samples.last.at), phase: m.phase,
		readA: now.read[core.A] - m.samples.last.read[core.A], probes: now.probes - m.samples.last.probes,
		lookups: now.lookups - m.samples.last.lookups, asking: now.onB - m.samples.last.onB, seals: now.sealed - m.samples.last.sealed,
		batchP99: m.samples.batchP99(), pending: int64(l.Pending),
		levels: [sampledLevels]int64{rss: mem.AnonBytes, goHeap: mem.GoHeapBytes, rocksDB: l.StoreBytes, arenas: l.ArenaBytes,
			filters: int64(l.FilterBytes), disk: l.DiskBytes},
	}
	if m.phase == "measure" {
		m.filterBytes += float64(l.FilterBytes)
		m.sealedRows += float64(l.SealedRows)
	}
	if m.recovery != nil {
		m.recovery.sample(now, s.probes, s.lookups)
	}
	m.latest(&s)
	m.samples.add(s, now)
}

// finish ends the last phase, however the run ended.
func (m *meter) finish(e *core.Engine) {
	now := m.read(e, true)
	if m.phase == "measure" {
		m.to = now
	}
	m.io[1] = results.ReadIO()
	m.sample(e, now)
	m.endPhase(now)
}

// drops lists the buckets that went, with the time of the run.
func (m *meter) drops(e *core.Engine) []results.Drop {
	var out []results.Drop
	for _, d := range e.Drops() {
		out = append(out, results.Drop{Epoch: d.Epoch, TNs: int64(m.at(d.At).Sub(m.started)), DiskBeforeBytes: &d.Before,
			DiskAfterBytes: &d.After, DropNs: int64(d.Took), Rows: d.Rows, Left: d.Left})
	}
	return out
}

// load is what was taken in while measuring.
func (m *meter) load() *results.Load {
	l := &results.Load{Mode: "closed", Generator: results.Generator{CeilingPerS: m.b.ceil}}
	if s := m.to.at.Sub(m.from.at).Seconds(); s > 0 {
		l.AchievedPerS = results.Known(float64(m.to.read[core.B]-m.from.read[core.B]) / s)
	}
	m.generator(l)
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
	c.RocksDBBytes, c.ArenaBytes, c.FilterBytes, c.IndexBytes = &m.max.store, &m.max.arena, &m.max.filter, &m.max.index
	disk := m.max.disk
	for _, d := range drops {
		disk = max(disk, *d.DiskBeforeBytes)
	}
	c.DiskMaxBytes = &disk
	if m.to.cpu > m.from.cpu {
		c.CPUSPerMillion = ratio((m.to.cpu-m.from.cpu).Seconds()*1e6, float64(m.to.read[core.B]-m.from.read[core.B]))
	}
	asked := core.AskCPU{Time: m.to.askCPU.Time - m.from.askCPU.Time, Probes: m.to.askCPU.Probes - m.from.askCPU.Probes}
	c.CPUNsPerB = ratio(float64(asked.Time), float64(asked.Probes))
	c.CPUParts = m.parts.record(asked)
	m.to.heap.since(&m.from.heap, probes, &c)
	return c
}
