package core

import (
	"math"
	"time"
)

// Time, as the gate sees it (rules 7, 8, 13 and 15). Event time comes from the records alone: a side's watermark is the least
// M(p) of its partitions. Files need nothing else. A live source also falls silent, and the watermark of a side would stand still
// with its slowest partition; so for a LiveSource, and only there, the wall clock says three things.
//
//   - A partition is idle when its source has said for idle_timeout that it has nothing. It is left out of its side's
//     watermark; one that was never seen holds the side at minus infinity until then. It stays idle until a record comes
//     that takes part or is held back: what takes no part moves no time either, and a producer that is a day behind
//     would otherwise hold back for ever those who no longer wait for it.
//   - A side of which every partition is idle takes the other side's watermark. While that is A, B do not wait for it: with B's
//     own watermark in place of A's, a B that is held back would wait for itself.
//   - With idle_advance, when both sides have been quiet for that long, event time goes on with the wall clock, so much behind: a
//     partition that was read to its end stands at M(p) + (now − when its last record came) − idle_advance. It counts from
//     each partition's own last record, so that the sparse ones do not hold back the others. Idle ones are left out as ever; if
//     none is left the one furthest ahead speaks, and a side that never had a record takes the other's time.
//     A partition with records that are held back stands at the first of them: its time may not overtake what is unread. It
//     counts as quiet from its last chunk on: whether the source has more is not known before these are taken.
//
// Whatever comes later than it should has a rule of its own (behind, over), and watermarks never go back.
//
// A process that was stopped for a while has not listened meanwhile, and all would be idle after it that had records on their way. So
// the gate's clock leaves out a wait that took longer than was asked for by half of the shorter of both times, and counts no more than
// that half of a batch that took longer.

// off stands for "no moment".
const off = math.MinInt64

// liveTime is the gate's clock. All times are ms from some moment.
type liveTime struct {
	on     bool
	read   func() int64
	seen   int64 // what read said last
	now    int64 // the gate's own time
	waited int64 // of what passes until it looks again so much was to be expected
	last   int64 // when the last chunk came
}

func newLiveTime(cfg *Config, src Source) liveTime {
	_, live := src.(LiveSource)
	t := liveTime{on: live && cfg.IdleTimeout+cfg.IdleAdvance > 0, read: cfg.Now}
	if t.read == nil {
		start := time.Now() // the monotonic clock: a wall clock that is set would make partitions idle
		t.read = func() int64 { return time.Since(start).Milliseconds() }
	}
	if t.on {
		t.seen = t.read()
	}
	return t
}

// look reads the clock.
func (g *Gate) look() {
	t := &g.time
	if !t.on {
		return
	}
	pause := int64(math.MaxInt64)
	for _, d := range []int64{g.cfg.IdleTimeout, g.cfg.IdleAdvance} {
		if d > 0 {
			pause = min(pause, d/2)
		}
	}
	seen := t.read()
	passed := seen - t.seen
	switch {
	case passed <= t.waited+pause:
	case t.waited > 0:
		passed = 0
	default:
		passed = pause
	}
	t.now += max(0, passed)
	t.seen, t.waited = seen, 0
}

// came notes that a partition has something to read.
func (g *Gate) came(p *gatePart) { p.came, p.silent, g.time.last = g.time.now, off, g.time.now }

// nothing notes that it has not.
func (g *Gate) nothing(p *gatePart) {
	switch t := g.time; {
	case !t.on:
	case p.silent == off:
		p.silent = t.now
	case g.cfg.IdleTimeout > 0 && t.now-p.silent >= g.cfg.IdleTimeout:
		p.idle = true
	}
}

// counts says whether a partition has a part in its side's time; it may be idle. With Drain one that has ended has not.
func (g *Gate) counts(p *gatePart) bool { return !p.Timeless && !(p.ended && g.cfg.Drain) }

// updateWatermarks: the least watermark of a side's partitions; one that has ended is left out, and a side of which all
// have ended is over. A side without partitions has said nothing yet, unless that is its end.
func (g *Gate) updateWatermarks() {
	advance := g.quiet()
	var own [2]int64
	for _, s := range []Side{A, B} {
		own[s] = g.own(s)
		if advance {
			own[s] = max(own[s], g.projected(s, false))
		}
		g.wm[s] = max(g.wm[s], own[s]) // watermarks never go back
	}
	for _, s := range []Side{A, B} {
		other := g.wm[1-s]
		if other == maxTime { // a side that has ended says nothing of time
			continue
		}
		if g.idle[s] {
			g.wm[s] = max(g.wm[s], other)
		}
		if advance && !g.heard(s) {
			g.wm[s] = max(g.wm[s], g.projected(1-s, true))
		}
	}
}

// own is what a side's partitions say of its watermark, and notes whether it is idle as a whole.
func (g *Gate) own(s Side) int64 {
	wm, known, awake, idle := int64(maxTime), g.cfg.Drain, false, false
	for i := range g.parts[s] {
		p := &g.parts[s][i]
		known = known || !p.Timeless
		switch {
		case !g.counts(p):
		case p.idle:
			idle = true
		default:
			awake = true
			wm = min(wm, p.watermark())
		}
	}
	if g.idle[s] = idle && !awake; g.idle[s] || !known {
		return minTime
	}
	return wm
}

// quiet says whether idle_advance applies: all that came was read or is held back, and nothing has come for so long.
func (g *Gate) quiet() bool {
	if !g.time.on || g.cfg.IdleAdvance == 0 || g.time.now-g.time.last < g.cfg.IdleAdvance {
		return false
	}
	for s := range g.parts {
		for i := range g.parts[s] {
			if p := &g.parts[s][i]; !p.ended && !p.settled && p.silent == off {
				return false
			}
		}
	}
	return true
}

// projected is a side's watermark when time goes on with the clock, for its own partitions or with held also for those of which
// records are held back.
func (g *Gate) projected(s Side, held bool) int64 {
	awake, idle := int64(maxTime), int64(minTime)
	for i := range g.parts[s] {
		p := &g.parts[s][i]
		if !g.counts(p) || p.watermark() == minTime {
			continue
		}
		at := p.watermark()
		if held || !p.settled {
			at += g.time.now - p.came - g.cfg.IdleAdvance
		}
		if p.idle {
			idle = max(idle, at)
		} else {
			awake = min(awake, at)
		}
	}
	if awake < maxTime {
		return awake
	}
	return idle
}

// heard says whether a side ever had a record that takes part.
func (g *Gate) heard(s Side) bool {
	for i := range g.parts[s] {
		if g.parts[s][i].watermark() > minTime {
			return true
		}
	}
	return false
}

// patience is how long the engine may wait for a record, if the last batch found none; negative: until one comes. Then a partition
// becomes idle, or time has gone on by an eighth of idle_advance while something waits.
func (g *Gate) patience(idle bool) time.Duration {
	t, due := &g.time, int64(math.MaxInt64)
	if !t.on || !idle {
		return -1
	}
	if g.cfg.IdleTimeout > 0 {
		for s := range g.parts {
			for i := range g.parts[s] {
				if p := &g.parts[s][i]; g.counts(p) && !p.idle && p.silent != off {
					due = min(due, p.silent+g.cfg.IdleTimeout)
				}
			}
		}
	}
	if g.cfg.IdleAdvance > 0 && g.somethingWaits() {
		due = min(due, max(t.last+g.cfg.IdleAdvance, t.now+max(1, g.cfg.IdleAdvance/8)))
	}
	if due == math.MaxInt64 {
		t.waited = math.MaxInt64 / 4
		return -1
	}
	t.waited = max(1, due-t.now)
	return time.Duration(t.waited) * time.Millisecond
}

// somethingWaits says whether time that goes on may let anything go: events in buckets, or records that are held back.
func (g *Gate) somethingWaits() bool {
	for s := range g.parts {
		for _, e := range g.live[s] {
			if e != noEpoch {
				return true
			}
		}
		for i := range g.parts[s] {
			if g.parts[s][i].settled {
				return true
			}
		}
	}
	return false
}

// behind says whether an event is behind its side's watermark by more than the grace. Without idleness none can be, since the
// watermark is no partition's M(p). It may have missed events of the other side that asked meanwhile.
func (g *Gate) behind(s Side, t int64) bool { return t+g.cfg.Grace < g.wm[s] }

// over says whether all is over for an event that is behind: no event of the other side can match it any more (rule 8's
// exception). For an A that is its close: every B of its window has passed. A B asks at once, so for it it is that every A of its
// window is closed, the youngest of which is at tB + before.
func (g *Gate) over(s Side, t int64) bool {
	if !g.behind(s, t) {
		return false
	}
	end := t + g.cfg.After + g.cfg.Grace
	if s == B {
		end += g.cfg.Before
	}
	return end < g.wm[B]
}
