package core

import "math"

// minTime and maxTime stand for "nothing yet" and "everything is over". Event times end with the year 9999
// (2.5e14), so that adding windows to any of them never overflows.
const (
	minTime = math.MinInt64 / 4
	maxTime = math.MaxInt64 / 4
)

// gatePart is one partition as the gate sees it.
type gatePart struct {
	Partition
	next  int64 // records below this offset were read before (rule 3)
	m     int64 // M(p), rule 7
	place int64 // where reading resumes
	chunk *Chunk
	at    int // the head: the first row of chunk that is not taken
	ended bool
	// settled: the head is a record in time with a time, so that it may count in the watermark.
	settled bool
	stopped stop // for a Watcher
	// Of a live source, in the gate's own time (gate_time.go):
	came   int64 // when its last chunk came
	silent int64 // since when it has nothing to read; off: it has
	idle   bool
}

func (p *gatePart) headTime() int64 { return p.chunk.Time[p.at] }

// watermark of one partition: M(p), to which the head counts although it is still held back (rule 7).
func (p *gatePart) watermark() int64 {
	if p.settled {
		return max(p.m, p.headTime())
	}
	return p.m
}

// slice is rows of one chunk that were admitted, in order.
type slice struct {
	chunk  *Chunk
	rows   []uint32
	hashes []uint64 // of the rows, if they were divided among tasks; else nil
}

// batch is what the gate admits in one go, and what it knows at its end.
type batch struct {
	rows    [2][]slice // by side
	n       int        // records that were read, whatever their fate
	starved bool       // a partition had no record yet (ErrNotYet)
	rejects []Reject
	nulls   []Reject
	closed  []Ref     // A whose time is over on arrival: accepted, stored nowhere
	done    []*Chunk  // chunks of which this batch took the last row
	behind  [2]uint64 // accepted behind their side's watermark (rule 8)
	wm      [2]int64  // watermarks after it
	read    [2][fates]uint64
}

func (b *batch) reset() {
	for s := range b.rows {
		b.rows[s] = b.rows[s][:0]
	}
	b.starved = false
	b.n, b.rejects, b.nulls, b.closed, b.done = 0, b.rejects[:0], b.nulls[:0], b.closed[:0], b.done[:0]
	b.read, b.behind = [2][fates]uint64{}, [2]uint64{}
}

// admit adds a row to its chunk's slice.
func (b *batch) admit(side Side, c *Chunk, row uint32) {
	b.rows[side] = appendRow(b.rows[side], c, row)
}

// Gate decides what enters the join, and keeps its time. It belongs to the engine's goroutine.
type Gate struct {
	cfg   *Config
	src   Source
	parts [2][]gatePart
	wm    [2]int64
	idle  [2]bool // sides that are idle as a whole
	time  liveTime
	// Of the sides that wait, between batches:
	floor    [2]int64   // epochs below are over
	sealable [2]int64   // buckets of epochs below take no more events
	closed   [2]int64   // times below are closed (rule 10)
	live     [2][]int64 // by slot: the epoch that has entries, or noEpoch
	// back: by the epoch of a bucket, how many epochs before it the earliest event is that waits in it (rule 8); 0 if absent.
	back [2]map[int64]int64
}

const noEpoch = math.MinInt64

func newGate(cfg *Config, src Source) *Gate {
	g := &Gate{cfg: cfg, src: src}
	for _, s := range []Side{A, B} {
		g.back[s] = map[int64]int64{}
		g.live[s] = make([]int64, cfg.Slots)
		for _, p := range src.Partitions(s) {
			g.parts[s] = append(g.parts[s], gatePart{Partition: p})
		}
	}
	g.reset()
	return g
}

// reset brings the gate to its beginning. The chunks that it had are the source's, which is to start anew. Tasks know the maps.
func (g *Gate) reset() {
	first := [2]int64{minTime, minTime}
	g.wm, g.floor, g.sealable, g.closed, g.idle = first, first, first, first, [2]bool{}
	g.time = newLiveTime(g.cfg, g.src)
	for _, s := range []Side{A, B} {
		clear(g.back[s])
		for i := range g.live[s] {
			g.live[s][i] = noEpoch
		}
		for i := range g.parts[s] {
			g.parts[s][i] = gatePart{Partition: g.parts[s][i].Partition, m: minTime, silent: off}
		}
	}
}

// fill takes up to max records. Every A that is admitted is stored before any B of the same batch asks, and a B
// is admitted only when the watermark of A says that none is missing, so the cut into batches changes nothing.
func (g *Gate) fill(b *batch, max int) error {
	b.reset()
	g.look()
	for {
		before := b.n
		if err := g.settleAll(b, max); err != nil {
			return err
		}
		g.updateWatermarks() // the clock may have moved them
		if err := g.takeWaiting(b, A, max); err != nil {
			return err
		}
		g.updateWatermarks()
		if err := g.takeAsking(b, max); err != nil {
			return err
		}
		if b.n == before || b.n >= max {
			break
		}
	}
	g.updateWatermarks()
	b.wm = g.wm
	return nil
}

// takeWaiting admits what will wait: A, and B with ProbeWait.
func (g *Gate) takeWaiting(b *batch, s Side, max int) error {
	// An equal share each: one that ran ahead would open all buckets at once, and hold in RAM what could be sealed.
	for i := range g.parts[s] {
		left := len(g.parts[s]) - i
		share := (max - b.n + left - 1) / left // rounded up: with room for one, the first that has one takes it
		if err := g.take(b, s, i, b.n+share); err != nil {
			return err
		}
	}
	return nil
}

// takeAsking admits B.
func (g *Gate) takeAsking(b *batch, max int) error {
	if g.cfg.Probe == ProbeWait {
		return g.takeWaiting(b, B, max)
	}
	for i := range g.parts[B] {
		if err := g.takeB(b, i, max); err != nil {
			return err
		}
	}
	return nil
}

// settleAll brings every partition's head to a record that has a time.
func (g *Gate) settleAll(b *batch, max int) error {
	for _, s := range []Side{A, B} {
		for i := range g.parts[s] {
			if err := g.settle(b, s, i, max); err != nil {
				return err
			}
		}
	}
	return nil
}

// settle passes over records that take no part whatever the time is: their fate does not depend on other
// partitions, so they need not wait.
func (g *Gate) settle(b *batch, s Side, i, max int) error {
	p := &g.parts[s][i]
	if p.ended {
		g.nothing(p) // without Drain it is silent
		return nil
	}
	for !p.settled && b.n < max {
		if p.chunk == nil {
			c, err := g.src.Next(s, i)
			if err == ErrNotYet {
				b.starved = true
				g.nothing(p)
				return nil
			}
			if err != nil {
				return err
			}
			if c == nil {
				p.ended = true
				return nil
			}
			p.chunk, p.at, p.place = c, 0, c.Place[0]
			c.elsewhere = nil
			g.came(p)
		}
		if fate := g.fateOf(p); fate == Accepted || fate == NullKey {
			p.settled, p.idle = true, false
		} else {
			g.reject(b, p, fate)
		}
	}
	return nil
}

// fateOf asks in the order of rule 9.
func (g *Gate) fateOf(p *gatePart) Fate {
	c, row := p.chunk, p.at
	switch fate := c.Fate[row]; {
	case c.Offset[row] < p.next:
		return Redelivered
	case fate == Malformed || fate == BadKey || fate == BadTime:
		return fate
	case c.Time[row]+g.cfg.Grace < p.m:
		return Late
	case p.m < g.wm[c.Side] && g.over(c.Side, c.Time[row]):
		return LateIdle
	default:
		return fate
	}
}

// reject passes over a head that takes no part.
func (g *Gate) reject(b *batch, p *gatePart, fate Fate) {
	b.rejects = append(b.rejects, Reject{Ref{p.chunk, uint32(p.at)}, fate, p.m})
	g.pass(b, p, fate)
}

// pass moves the partition past its head.
func (g *Gate) pass(b *batch, p *gatePart, fate Fate) {
	c := p.chunk
	b.read[c.Side][fate]++
	b.n++
	if fate != Redelivered {
		p.next = c.Offset[p.at] + 1
	}
	if fate == Accepted || fate == NullKey {
		p.m = max(p.m, c.Time[p.at])
	}
	p.settled = false
	p.at++
	p.place = c.Place[p.at]
	if p.at == c.N {
		b.done = append(b.done, c)
		p.chunk = nil
	}
}

// finished says whether every partition was read to its end.
func (g *Gate) finished() bool {
	for _, side := range g.parts {
		for i := range side {
			if !side[i].ended {
				return false
			}
		}
	}
	return true
}
