package pipeline

import (
	"context"
	"math"
	"slices"
	"time"

	"joinbench/core"
)

// CatchUp is what becomes of B that are due while the join is busy.
type CatchUp string

// The policies.
const (
	Queue CatchUp = "queue" // they wait, however many
	Drop  CatchUp = "drop"  // one batch waits; those that find it full are dropped and counted
)

// Rates that an open loop can be asked for, B a second.
const (
	MinRate = 0.1
	MaxRate = 1e9
)

// Pace asks for an open loop: B at a rate, whether or not the join keeps up.
type Pace struct {
	Rate    float64 // B a second
	Arrival Arrival
	CatchUp CatchUp
}

// pacer is the source of an open loop: each B has an intended time, before which the engine does not get it, and from
// which its latency counts.
//
// What a B waits for by the rules (rule 12: it asks when the watermark of A has passed its window) is not the join's
// doing, so A runs ahead in event time: by before + grace, the disorder, and a few records of each partition. Then a B can
// be joined at the moment it is due. A carries no intended times of its own: it follows the B.
//
// Decoders work ahead, side by side with the engine. What is decoded is handed over in views: rows of a chunk that are due.
// All but newPacer belongs to the engine's goroutine.
type pacer struct {
	*waitingSource
	gen   *generator
	clock clock
	plan  schedule
	drop  bool
	batch int64 // B that wait at most, if more are dropped
	ahead int64 // A that are handed over: those that come before the B so far behind the next one due
	parts [2][]*pacedPart
	limit [2]int64 // rows below are due
	end   [2]int64 // rows of each side
	spare []*view

	running bool  // B become due
	pauseAt int64 // from this one on they do not
	loading bool  // until it runs for the first time: Next waits for A
	// still is called when all A are committed that come before the first B, and again when the queue is empty at a pause.
	// It calls begin.
	still func() error

	seen     int64
	waitFrom int64 // when the last wait began, if there was one before this batch
	idle     bool

	committed, dropped int64       // B since first
	gone               []indexSpan // dropped, lowest first; those that every partition has passed are left out
	skipped            *skippedPairs
	earlier            int64 // dropped before begin was last called
	blocked            int64 // ns that the engine waited for B that were due
	held               int64 // times that it waited although it had B: A was not far enough ahead
	lat                latencies
}

// pacedPart is one partition. Its row at offset o has index o·step + first.
type pacedPart struct {
	*feedPart
	step, first int64
	chunk       *feedChunk // the rows from at on were not handed over
	at          int
	ended       bool
	asked       bool  // Next had nothing
	given       int64 // offset behind the last row that was handed over
	recorded    int64 // and behind the last committed one
}

// view is rows of a chunk as a chunk of their own.
type view struct {
	core.Chunk
	part *pacedPart
	of   *feedChunk
}

// newPacer makes a source of a feed, which must not have decoders that take turns.
func newPacer(w *waitingSource, gen *generator, pace Pace, batch int, c clock) *pacer {
	p := &pacer{waitingSource: w, gen: gen, clock: c, drop: pace.CatchUp == Drop, batch: int64(batch), loading: true,
		lat: newLatencies(true)}
	cfg := gen.gen.Config()
	p.plan = schedule{arrival: pace.Arrival, rate: pace.Rate, seed: cfg.Seed}
	p.ahead = recordsAhead(gen)
	if p.drop {
		p.skipped = newSkippedPairs(gen.gen)
	}
	w.feed.arrived, w.feed.clock = make(chan struct{}, 1), c
	for s, list := range w.feed.parts {
		for i, fp := range list {
			p.parts[s] = append(p.parts[s], &pacedPart{feedPart: fp, step: int64(len(list)), first: int64(i)})
		}
	}
	p.plan.first = never
	return p
}

// spareA is how many records of each partition of A run ahead beyond what the rules ask for: its last ones may be late,
// and move no watermark.
const spareA = 8

// recordsAhead is how far A runs ahead, in B of the same event time.
func recordsAhead(g *generator) int64 {
	c := g.gen.Config()
	seconds := (c.Before + c.Grace + c.Disorder + time.Millisecond).Seconds() + spareA*float64(c.PartitionsA)/c.AEventsPerSec
	return int64(math.Ceil(seconds * c.BEventsPerSec))
}

// Start implements core.Source.
func (p *pacer) Start(side core.Side, part int, place int64) error {
	q := p.parts[side][part]
	q.given, q.recorded = place, place
	if side == core.B {
		p.plan.first = min(p.plan.first, q.index(place))
		p.limit[core.B] = p.plan.first
	}
	return p.waitingSource.Start(side, part, place)
}

func (q *pacedPart) index(offset int64) int64 { return offset*q.step + q.first }

// below is the number of rows of the partition whose index is below i.
func (q *pacedPart) below(i int64) int64 { return max(0, (i-q.first+q.step-1)/q.step) }

// begin has B come from now on, the next one first, and what is reported begins. Before, no B may be due that was not
// taken. After pause B, unless that is 0, none come until begin is called again: that is how a run that warms up begins to be
// measured without owing anything.
func (p *pacer) begin(pause int64) {
	now := p.clock.now()
	p.plan.first, p.plan.start = p.limit[core.B], now
	p.plan.blocks = [poissonKept]poissonTimes{}
	p.committed = 0                     // what was dropped stays so: partitions may not have passed it
	for _, q := range p.parts[core.B] { // a resumed run has taken more of some partitions than of others
		p.committed += max(0, q.recorded-q.below(p.plan.first))
	}
	p.running, p.loading, p.pauseAt = true, false, never
	if pause > 0 {
		p.pauseAt = p.plan.first + pause
	}
	p.earlier += p.dropped
	p.dropped, p.blocked, p.held = 0, 0, 0
	p.lat.reset()
}

// indexAfter is the index of the first B that is due so long after the beginning.
func (p *pacer) indexAfter(length time.Duration) int64 {
	return p.plan.due(p.plan.start + int64(length) - 1)
}

// paused says that the B before the pause are all taken or dropped.
func (p *pacer) paused() bool { return p.limit[core.B] >= p.pauseAt && p.queue() == 0 }

// queue is the number of B that are due and not committed.
func (p *pacer) queue() int64 { return p.limit[core.B] - p.plan.first - p.dropped - p.committed }

// Await implements core.LiveSource.
func (p *pacer) Await(ctx context.Context, idle bool, most time.Duration) error {
	p.refresh()
	p.idle = idle
	if idle {
		if p.loading || p.paused() {
			if err := p.still(); err != nil {
				return err
			}
			p.refresh()
		}
		p.waitFrom = p.seen
		p.noteHeld()
		until := int64(never)
		if most >= 0 {
			until = p.seen + int64(most)
		}
		for !p.supplied() && p.seen < until {
			if err := ctx.Err(); err != nil {
				return err
			}
			p.wait(ctx, until)
		}
		p.waited += time.Duration(p.seen - p.waitFrom)
	}
	for _, side := range p.parts {
		for _, q := range side {
			q.asked = false
		}
	}
	return nil
}

// noteHeld counts if the engine has B that it cannot join although it has every A that it may have, and lets A run twice as
// far ahead from then on: many late A in a row move no watermark, and what waits for them must not wait for ever.
func (p *pacer) noteHeld() {
	if p.holds() && !p.lacksA() {
		p.held++
		p.ahead = min(2*max(p.ahead, 1), math.MaxInt64/8)
		p.refresh()
	}
}

// holds says whether B were handed over that no batch has taken.
func (p *pacer) holds() bool {
	return slices.ContainsFunc(p.parts[core.B], func(q *pacedPart) bool { return q.given > q.recorded })
}

func (p *pacer) lacksA() bool {
	return slices.ContainsFunc(p.parts[core.A], func(q *pacedPart) bool { return q.lacks(p.limit[core.A]) })
}

// wait until something may have changed, or until a moment.
func (p *pacer) wait(ctx context.Context, until int64) {
	starved, from := p.starved(), p.seen
	if p.running && p.limit[core.B] < min(p.end[core.B], p.pauseAt) {
		until = min(until, p.plan.at(p.limit[core.B]))
	}
	p.clock.wait(ctx, until, p.feed.arrived, starved)
	p.refresh()
	if starved {
		p.blocked += p.seen - from
	}
}

// refresh looks at the clock: what is due now stays so until the next time.
func (p *pacer) refresh() {
	p.seen = p.clock.now()
	p.end = p.gen.ends()
	if p.running {
		due := max(p.limit[core.B], min(p.plan.due(p.seen), p.end[core.B], p.pauseAt))
		if room := p.batch - p.queue(); p.drop && due-p.limit[core.B] > room {
			p.dropFrom(p.limit[core.B]+max(0, room), due)
		}
		p.limit[core.B] = due
	}
	p.limit[core.A] = p.end[core.A]
	if j := p.limit[core.B] + p.ahead; j < p.end[core.B] {
		p.limit[core.A] = min(p.end[core.A], p.gen.gen.DueA(j))
	}
}

// supplied says whether a partition that had nothing has something now.
func (p *pacer) supplied() bool {
	for s, side := range p.parts {
		for _, q := range side {
			if q.asked && (p.fetch(q) && p.dueIn(core.Side(s), q) > 0 || q.ended) {
				return true
			}
		}
	}
	return false
}

// starved says whether a B is due that is not decoded, or held for an A that is not.
func (p *pacer) starved() bool {
	limit := p.limit[core.B]
	if k := len(p.gone); k > 0 && p.gone[k-1].hi == limit {
		limit = p.gone[k-1].lo
	}
	return slices.ContainsFunc(p.parts[core.B], func(q *pacedPart) bool { return q.lacks(limit) }) || p.holds() && p.lacksA()
}

// lacks says whether rows below an index are wanted that are not decoded.
func (q *pacedPart) lacks(limit int64) bool {
	return q.asked && q.chunk == nil && !q.ended && q.below(limit) > q.given
}

// fetch makes sure of a chunk with rows, without waiting.
func (p *pacer) fetch(q *pacedPart) bool {
	for !q.ended {
		if q.chunk != nil {
			p.skipDropped(q)
			if q.chunk != nil {
				return true
			}
		}
		select {
		case c, ok := <-q.feedPart.ready:
			q.take(c, ok)
		default:
			return false
		}
	}
	return false
}

func (q *pacedPart) take(c *feedChunk, ok bool) {
	q.chunk, q.at, q.ended = c, 0, !ok
}

// dueIn is the number of rows of the partition's chunk that are due. A partition of which all rows were handed over that
// the stream has, has ended, whatever decoders made ahead.
func (p *pacer) dueIn(side core.Side, q *pacedPart) int {
	next := q.chunk.Offset[q.at]
	if q.index(next) >= p.end[side] {
		p.discard(q)
		q.ended = true
		return 0
	}
	n, _ := slices.BinarySearch(q.chunk.Offset[q.at:q.chunk.N], q.below(p.limit[side])) // offsets of A may have gaps
	return n
}

// Next implements core.Source.
func (p *pacer) Next(side core.Side, part int) (*core.Chunk, error) {
	q := p.parts[side][part]
	if side == core.A && p.loading && q.chunk == nil && !q.ended && q.below(p.limit[side]) > q.given {
		p.block(q)
	}
	n := 0
	if p.fetch(q) {
		n = p.dueIn(side, q)
	}
	switch {
	case q.ended:
		return nil, q.failure()
	case n == 0:
		q.asked = true
		return nil, core.ErrNotYet
	}
	if side == core.B {
		n = p.untilDropped(q, n)
		p.recordLag(q, n)
	}
	return p.view(q, n), nil
}

// block waits for a chunk of A: before the first B there is nothing else to do.
func (p *pacer) block(q *pacedPart) {
	start := time.Now()
	c, ok := <-q.feedPart.ready
	q.take(c, ok)
	p.waited += time.Since(start)
}

// view makes a chunk of the next n rows.
func (p *pacer) view(q *pacedPart, n int) *core.Chunk {
	c, from, to := q.chunk, q.at, q.at+n
	var v *view
	if k := len(p.spare); k > 0 {
		v, p.spare = p.spare[k-1], p.spare[:k-1]
	} else {
		v = &view{}
	}
	v.Chunk = core.Chunk{Side: c.Side, Part: c.Part, Partition: c.Partition, N: n,
		Fate: c.Fate[from:to], Time: c.Time[from:to], Offset: c.Offset[from:to], Place: c.Place[from : to+1],
		Keys: c.Keys, KeyOff: c.KeyOff[from : to+1], Body: c.Body, BodyOff: c.BodyOff[from : to+1], Owner: v}
	if len(c.Flags) > 0 {
		v.Flags = c.Flags[from:to]
	}
	if c.Wanted != nil {
		v.Wanted = c.Wanted[from:to]
	}
	v.part, v.of = q, c
	c.views++
	q.at = to
	if to == c.N {
		q.chunk = nil
	}
	q.given = c.Offset[to-1] + 1
	return &v.Chunk
}

// Done implements core.Source.
func (p *pacer) Done(c *core.Chunk) {
	v := c.Owner.(*view)
	of := v.of
	of.views--
	if of.views == 0 && v.part.chunk != of {
		p.feed.Done(&of.Chunk)
	}
	v.of = nil
	p.spare = append(p.spare, v)
}

// discard gives back a chunk whose rest is not wanted.
func (p *pacer) discard(q *pacedPart) {
	c := q.chunk
	q.chunk = nil
	if c.views == 0 {
		p.feed.Done(&c.Chunk)
	}
}
