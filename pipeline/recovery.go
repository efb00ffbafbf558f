package pipeline

import (
	"time"

	"joinbench/results"
)

// recoveryBatch is how large batches are while filters are missing. Each B reads every bucket of its window then: a batch of
// 16,384 B makes 250,000 point reads and takes most of a second, one of these some 50 ms.
const recoveryBatch = 1024

// recovery watches a resumed run until it is what it was. A batch is the grain of all times.
type recovery struct {
	started time.Time // the process
	opening time.Time // the databases began to open
	opened  time.Time // the rings were recovered
	begin   reading   // when the engine was ready for its first batch

	before  float64 // lookups per probe in the earlier lives
	pending int64
	ready   time.Time // the first batch with probes had ended
	filters time.Time // no filter was missing any more
	settled time.Time // the first sample with few lookups had ended
	missing int       // filters, at first
}

// settledSlack: a sample of a tenth of a second holds so few matches that chance alone moves the ratio by some per cent.
const (
	settledShare = 1.1
	settledSlack = 0.001
)

func newRecovery(b *bench, begin reading) *recovery {
	l := b.state.engine.Levels(false)
	return &recovery{started: b.Started, opening: b.opening, opened: b.sink.restored, begin: begin,
		before: float64(begin.lookups) / float64(begin.probes), pending: int64(l.Pending), missing: l.Unfiltered}
}

// batch takes in that a batch has ended, after which so many filters were missing.
func (r *recovery) batch(now reading, unfiltered int) {
	if r.ready.IsZero() && now.probes > r.begin.probes {
		r.ready = now.at
	}
	if r.filters.IsZero() && unfiltered == 0 {
		r.filters = now.at
	}
}

// sample takes in how many B asked since the last one, and what they read.
func (r *recovery) sample(now reading, probes, lookups uint64) {
	if r.settled.IsZero() && probes > 0 && float64(lookups)/float64(probes) <= r.before*settledShare+settledSlack {
		r.settled = now.at
	}
}

// record is what the result says: times from the start of the process, null for what did not come.
func (r *recovery) record() *results.Recovery {
	if r == nil {
		return nil
	}
	since := func(from, at time.Time) *int64 {
		if at.IsZero() {
			return nil
		}
		return new(int64(at.Sub(from)))
	}
	return &results.Recovery{
		Pending: r.pending, Unfiltered: int64(r.missing), LookupsPerProbeBefore: &r.before,
		OpenNs: int64(r.opened.Sub(r.opening)), OpenedNs: int64(r.opened.Sub(r.started)), EngineNs: int64(r.begin.at.Sub(r.started)),
		ReadyNs: since(r.started, r.ready), ReadyAfterOpenNs: since(r.opened, r.ready),
		FiltersReadyNs: since(r.started, r.filters), LookupsSettledNs: since(r.started, r.settled),
	}
}
