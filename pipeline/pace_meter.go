package pipeline

import (
	"runtime"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"joinbench/core"
	"joinbench/results"
)

// percentiles are what an interval says of response times.
type percentiles struct{ p50, p99 int64 }

func percentilesOf(h *hdrhistogram.Histogram) *percentiles {
	if h == nil || h.TotalCount() == 0 {
		return nil
	}
	at := h.ValueAtPercentilesSlice([]float64{50, 99})
	return &percentiles{at[0], at[1]}
}

// worse is what two intervals say together: the greater of each, for a percentile of both is not to be had any more.
func (t *percentiles) worse(o *percentiles) *percentiles {
	if t == nil {
		return o
	}
	if o == nil {
		return t
	}
	return &percentiles{max(t.p50, o.p50), max(t.p99, o.p99)}
}

// still settles an open loop that has nothing to do, and begins its schedule.
func (m *meter) still(e *core.Engine) error {
	if err := m.settle(e, m.read(e, false)); err != nil {
		return err
	}
	m.last = m.read(e, false)
	var warm int64
	if m.warming() {
		warm = m.b.Profile.Load.Warm - int64(m.last.read[core.B])
	}
	if err := m.b.startPace(warm); err != nil {
		return err
	}
	m.last = m.read(e, false) // where the next phase begins
	return nil
}

// served records what a batch of a closed loop took, of the engine's time.
func (m *meter) served(now reading) {
	if m.b.pace != nil {
		m.maxQueue = max(m.maxQueue, m.b.pace.queue())
		return
	}
	took := now.at.Sub(m.last.at) - (now.waited - m.last.waited)
	m.service.serviceOf(int64(took), int64(now.read[core.B]-m.last.read[core.B]))
}

// dropped is the number of B that were left out.
func (m *meter) dropped() int64 {
	if m.b.pace == nil {
		return 0
	}
	return m.b.pace.earlier + m.b.pace.dropped
}

// latest gives a sample the response times since the one before, and shows them.
func (m *meter) latest(s *sample) {
	p := m.b.pace
	if p == nil {
		return
	}
	s.response = percentilesOf(p.lat.response.peek())
	lag := percentilesOf(p.lat.lag.peek())
	p.lat.response.fold()
	p.lat.lag.fold()
	m.b.Progress.paced(p, s.response, lag)
}

// latency is what the measured phase knows of it.
func (m *meter) latency() (*results.Latency, error) {
	if m.b.pace != nil {
		return m.b.pace.lat.record()
	}
	return m.service.record()
}

// generator completes the load by what is known of the instrument.
func (m *meter) generator(l *results.Load) {
	elapsed := m.to.at.Sub(m.from.at)
	if elapsed <= 0 {
		return
	}
	l.Generator.CPURatio = ratio((m.to.made - m.from.made).Seconds(), elapsed.Seconds()*float64(runtime.GOMAXPROCS(0)))
	p := m.b.pace
	if p == nil {
		return
	}
	l.Mode, l.Arrival, l.CatchUp = "open", string(p.plan.arrival), string(m.b.Pace.CatchUp)
	l.OfferedPerS, l.Dropped, l.QueueMax = &m.b.Pace.Rate, p.dropped, &m.maxQueue
	l.Generator.BlockedRatio = ratio(time.Duration(p.blocked).Seconds(), elapsed.Seconds())
	p.lat.lag.fold()
	if h := p.lat.lag.total; h.TotalCount() > 0 {
		l.Generator.LagP99Ns = new(h.ValueAtPercentile(99))
	}
}

// making is how long decoders have been at work, all together.
func (f *feed) making() time.Duration {
	var ns int64
	for s := range f.readTime {
		ns += f.readTime[s].Load() + f.decodeTime[s].Load()
	}
	return time.Duration(ns)
}

// paced shows where an open loop stands. Nil tails change nothing.
func (p *Progress) paced(from *pacer, response, lag *percentiles) {
	p.Offered.Store(int64(from.plan.rate))
	p.Queue.Store(from.queue())
	p.Dropped.Store(from.dropped)
	if lag != nil {
		p.LagP99.Store(lag.p99)
	}
	if response != nil {
		p.RecentP50.Store(response.p50)
		p.RecentP99.Store(response.p99)
		all := percentilesOf(from.lat.response.total)
		p.P50.Store(all.p50)
		p.P99.Store(all.p99)
	}
}
