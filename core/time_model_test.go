package core

import (
	"fmt"
	"slices"
)

// timeModel is rules 7, 8, 9, 12, 13 and 16 event by event, for a many-to-many join whose ring is long enough for all of the input. It
// knows nothing of batches, chunks and buckets. At each moment of the clock it decides what is possible, one event at a time.
type timeModel struct {
	cfg     *Config
	sides   [2][]*modelPart
	wm      [2]int64
	whole   [2]bool // idle as a whole
	now     int64
	waiting [2][]*modelRow
	came    [2]int64 // closed times of the moment before: what was closed then has come out
	expected
	behind [2]uint64
}

// modelPart is a partition: what has come and was not taken, what will come, and what is known of it.
type modelPart struct {
	id      int32
	events  []event // not taken
	comes   []int64 // of the events
	m, next int64
	silent  int64 // since when it has nothing; -1: it has
	idle    bool
	held    bool // the first event is one that joins, and waits to be taken
}

func newTimeModel(cfg *Config, src *liveScript) *timeModel {
	x := &timeModel{cfg: cfg, wm: [2]int64{minTime, minTime}}
	for s := range x.sides {
		for i, p := range src.parts[s] {
			x.sides[s] = append(x.sides[s], &modelPart{id: p.ID, events: p.events, comes: src.comes[s][i], m: minTime, silent: -1})
		}
	}
	return x
}

func (p *modelPart) there(now int64) bool { return len(p.events) > 0 && p.comes[0] <= now }

// mark is the partition's part in the watermark: its first event that is held back counts.
func (p *modelPart) mark() int64 {
	if p.held {
		return max(p.m, p.events[0].time)
	}
	return p.m
}

// nextMoment is when something may change: an event comes, or a partition becomes idle.
func (x *timeModel) nextMoment() int64 {
	next := int64(1 << 50)
	for _, side := range x.sides {
		for _, p := range side {
			if len(p.events) > 0 && p.comes[0] > x.now {
				next = min(next, p.comes[0])
			}
			for _, c := range p.comes { // behind one that is held
				if c > x.now {
					next = min(next, c)
					break
				}
			}
			if p.silent >= 0 && !p.idle && x.cfg.IdleTimeout > 0 {
				next = min(next, p.silent+x.cfg.IdleTimeout)
			}
		}
	}
	return next
}

// playTo goes through all moments up to and including one.
func (x *timeModel) playTo(until int64) {
	for x.now <= until {
		x.moment()
		x.now = x.nextMoment()
	}
}

// forget is a restart: who is idle is found out anew.
func (x *timeModel) forget() {
	for _, side := range x.sides {
		for _, p := range side {
			p.idle, p.silent = false, -1
		}
	}
}

// moment does what is possible now: fates first, then A, then B.
func (x *timeModel) moment() {
	x.came = [2]int64{A: x.wm[B] - x.cfg.After - x.cfg.Grace, B: x.wm[A] - x.cfg.Before - x.cfg.Grace}
	for {
		x.look()
		x.watermarks()
		if !x.takeOne(A) && !x.takeOne(B) {
			break
		}
	}
	x.close()
}

// look gives the first events of all partitions their fates, past those that do not join, and notes who has nothing.
func (x *timeModel) look() {
	for s, side := range x.sides {
		for _, p := range side {
			for !p.held && p.there(x.now) {
				if fate := x.fate(Side(s), p); fate == Accepted || fate == NullKey {
					p.held, p.idle = true, false
				} else {
					x.done(Side(s), p, fate)
				}
			}
			switch {
			case p.there(x.now):
				p.silent = -1
			case p.silent < 0:
				p.silent = x.now
			case x.cfg.IdleTimeout > 0 && x.now-p.silent >= x.cfg.IdleTimeout:
				p.idle = true
			}
		}
	}
}

func (x *timeModel) fate(s Side, p *modelPart) Fate {
	e := p.events[0]
	switch {
	case e.offset < p.next:
		return Redelivered
	case e.fate == Malformed || e.fate == BadKey || e.fate == BadTime:
		return e.fate
	case e.time+x.cfg.Grace < p.m:
		return Late
	case x.lateIdle(s, e.time):
		return LateIdle
	}
	return e.fate
}

// lateIdle is rule 8's exception.
func (x *timeModel) lateIdle(s Side, t int64) bool {
	if t+x.cfg.Grace >= x.wm[s] {
		return false
	}
	if s == A {
		return t+x.cfg.After+x.cfg.Grace < x.wm[B]
	}
	for a := t - x.cfg.After; a <= t+x.cfg.Before; a++ { // each A that it could pair with
		if a+x.cfg.After+x.cfg.Grace >= x.wm[B] {
			return false
		}
	}
	return true
}

// done passes over the first event of a partition.
func (x *timeModel) done(s Side, p *modelPart, fate Fate) {
	e := p.events[0]
	id := idOf(s, p.id, e.offset)
	x.fates[s][fate]++
	switch fate {
	case Accepted:
	case NullKey:
		x.nulls = append(x.nulls, id)
	default:
		x.rejects = append(x.rejects, id+" "+fate.String())
	}
	if fate != Redelivered {
		p.next = e.offset + 1
	}
	if fate == Accepted || fate == NullKey {
		p.m = max(p.m, e.time)
	}
	p.events, p.comes, p.held = p.events[1:], p.comes[1:], false
	p.silent = -1 // whatever became of it, it was something to read
}

func (x *timeModel) watermarks() {
	for s, side := range x.sides {
		least, idle := int64(maxTime), true
		for _, p := range side {
			if !p.idle {
				idle = false
				least = min(least, p.mark())
			}
		}
		if x.whole[s] = idle && len(side) > 0; !idle {
			x.wm[s] = max(x.wm[s], least)
		}
	}
	for s := range x.sides {
		if x.whole[s] {
			x.wm[s] = max(x.wm[s], x.wm[1-s])
		}
	}
}

// mayGo says whether the first event of a partition need not be held back.
func (x *timeModel) mayGo(s Side, p *modelPart) bool {
	t := p.events[0].time
	next := int64(maxTime)
	for _, q := range x.sides[1-s] {
		if q.held {
			next = min(next, q.events[0].time)
		}
	}
	switch {
	case s == A || x.cfg.Probe != ProbeAligned:
		return t <= next+x.cfg.MaxSpread
	case x.whole[A]:
		return true
	}
	return x.wm[A] > t+x.cfg.Before+x.cfg.Grace
}

func (x *timeModel) takeOne(s Side) bool {
	for _, p := range x.sides[s] {
		if !p.held || !x.mayGo(s, p) {
			continue
		}
		e := p.events[0]
		row := &modelRow{event: e, id: idOf(s, p.id, e.offset)}
		switch {
		case x.lateIdle(s, e.time):
			x.done(s, p, LateIdle)
			return true
		case e.fate == NullKey:
			x.done(s, p, NullKey)
			return true
		case e.time+x.cfg.Grace < x.wm[s]:
			x.behind[s]++
		}
		x.join(s, row)
		x.done(s, p, Accepted)
		return true
	}
	return false
}

// join pairs an event with all of the other side that are there and have not come out, and has it wait if it is one that does.
func (x *timeModel) join(s Side, row *modelRow) {
	for _, other := range x.waiting[1-s] {
		a, b := row, other
		if s == B {
			a, b = other, row
		}
		if a.key == b.key && a.time-x.cfg.Before <= b.time && b.time <= a.time+x.cfg.After && other.time >= x.came[1-s] {
			x.pairs = append(x.pairs, a.id+"+"+b.id)
			a.used, b.used = true, true
		}
	}
	switch waits := s == A || x.cfg.Probe == ProbeWait; {
	case waits && row.time >= x.came[s]:
		x.waiting[s] = append(x.waiting[s], row)
	case !row.used:
		x.out(s, row)
	}
}

func (x *timeModel) out(s Side, row *modelRow) {
	if s == A {
		x.unmatchedA = append(x.unmatchedA, row.id)
	} else {
		x.unmatchedB = append(x.unmatchedB, row.id)
	}
}

// close lets go what waits and is over.
func (x *timeModel) close() {
	for s, span := range [2]int64{A: x.cfg.After, B: x.cfg.Before} {
		x.waiting[s] = slices.DeleteFunc(x.waiting[s], func(row *modelRow) bool {
			over := x.wm[1-s] > row.time+span+x.cfg.Grace
			if over && !row.used {
				x.out(Side(s), row)
			}
			return over
		})
	}
}

func (x *timeModel) String() string {
	return fmt.Sprintf("now %d, watermarks %v, idle as a whole %v, %d A wait", x.now, x.wm, x.whole, len(x.waiting[A]))
}
