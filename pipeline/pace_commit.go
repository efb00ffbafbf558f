package pipeline

import "joinbench/core"

// What is recorded of the B of an open loop: that they were committed, and how late they could be handed over.

// took takes in that a batch was committed: B up to the engine's places.
func (p *pacer) took(e *core.Engine) (rows int64) {
	now := p.clock.now()
	if len(p.gone) == 0 {
		rows = p.commitEven(e, now)
	}
	for i, q := range p.parts[core.B] {
		rows += p.commit(q, e.Place(core.B, i), now)
	}
	if rows > 0 {
		p.lat.serviceOf(now-p.seen, rows)
	}
	if p.drop {
		p.forget()
	}
	return rows
}

// commitEven records the offsets that the batch took of every partition, in one go.
func (p *pacer) commitEven(e *core.Engine, now int64) int64 {
	parts := p.parts[core.B]
	from, to := parts[0].recorded, e.Place(core.B, 0)
	for i, q := range parts {
		if q.recorded > from {
			from = q.recorded
		}
		to = min(to, e.Place(core.B, i))
	}
	if from >= to {
		return 0
	}
	rows := (to - from) * int64(len(parts))
	for _, q := range parts {
		rows += p.respond(q, q.recorded, from, now)
		q.recorded = to
	}
	p.lat.response.fall(&p.plan, parts[0].index(from), 1, (to-from)*int64(len(parts)), now)
	p.committed += rows
	return rows
}

// commit records the rows of a partition up to a place.
func (p *pacer) commit(q *pacedPart, place, now int64) (rows int64) {
	from := q.recorded
	q.recorded = max(from, place)
	for _, span := range p.gone {
		lo, hi := max(from, q.below(span.lo)), min(place, q.below(span.hi))
		if lo < hi {
			rows += p.respond(q, from, lo, now)
			from = hi
		}
	}
	rows += p.respond(q, from, place, now)
	p.committed += rows
	return rows
}

// respond records that rows of a partition, by offset, were answered.
func (p *pacer) respond(q *pacedPart, from, to, now int64) int64 {
	if from >= to {
		return 0
	}
	p.lat.response.fall(&p.plan, q.index(from), q.step, to-from, now)
	return to - from
}

// recordLag records how late the next n rows can be handed over, by whom it may be: from when they were due to when they
// were decoded; or while the engine waited, to when it was given them.
func (p *pacer) recordLag(q *pacedPart, n int) {
	j, rows := q.index(q.chunk.Offset[q.at]), int64(n)
	there := q.chunk.decoded
	if p.idle && there >= p.waitFrom {
		there = p.seen
	}
	if p.idle && there < p.seen { // those due before it waited lagged by themselves
		before := min(rows, max(0, (p.plan.due(p.waitFrom)-j+q.step-1)/q.step))
		p.lat.lag.fall(&p.plan, j, q.step, before, there)
		j, rows, there = j+before*q.step, rows-before, p.seen
	}
	p.lat.lag.fall(&p.plan, j, q.step, rows, there)
}
