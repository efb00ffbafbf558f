package core

import "joinbench/buckets"

type entry uint8

const (
	entered  entry = iota
	mustWait       // its bucket would displace one that is not due to drop
	isOver         // its bucket is dropped: every B that could match has passed
)

// enter finds the bucket of an event that will wait: that of its time; or the oldest open one, if its own is sealed, because it
// woke behind its side's watermark (rule 8), or if its own would be in a slot that a later one has taken, since of its
// partition nothing was known. What is closed waits nowhere.
func (g *Gate) enter(s Side, c *Chunk, row uint32, t int64) entry {
	epoch := buckets.EpochOf(t, g.cfg.Width)
	if epoch < g.floor[s] {
		return isOver
	}
	if t < g.closed[s] {
		// Its slot is taken as long as the bucket may live, as if it had been read before it was closed: what a run can read
		// without a drain must not depend on that.
		g.claim(s, epoch)
		return isOver
	}
	if epoch >= g.sealable[s] {
		if g.live[s][buckets.SlotOf(epoch, g.cfg.Slots)] == epoch {
			return entered
		}
		switch e := g.claim(s, epoch); {
		case e != isOver:
			return e
		case t < g.cfg.limits(g.wm)[s].Closed: // by the end of this batch
			return isOver
		}
	}
	return g.enterElsewhere(s, c, row, epoch)
}

// enterElsewhere has an event wait in the oldest open bucket. That comes to its end later than the event, which comes out by its
// own time all the same.
func (g *Gate) enterElsewhere(s Side, c *Chunk, row uint32, epoch int64) entry {
	in := max(epoch, g.sealable[s])
	if g.claim(s, in) != entered {
		in = maxTime
		for _, e := range g.live[s] {
			if e >= g.sealable[s] && e >= epoch {
				in = min(in, e)
			}
		}
		if in == maxTime {
			return mustWait
		}
	}
	if in != epoch {
		c.setElsewhere(row, in)
		g.back[s][in] = max(g.back[s][in], in-epoch)
	}
	return entered
}

// claim takes the slot of an epoch, if no earlier bucket needs it: one that has entries, or into which an event in time may still
// come. While the other side has data to read the ring is as long as window, grace and spread together (rule 13), so what lies
// a whole ring behind is over, though the floor may not say so before the batch ends; when it has none, it may not be.
func (g *Gate) claim(s Side, epoch int64) entry {
	switch live := &g.live[s][buckets.SlotOf(epoch, g.cfg.Slots)]; {
	case *live == epoch:
		return entered
	case *live == noEpoch:
		if epoch-int64(g.cfg.Slots) >= max(g.floor[s], g.lowest(s)) {
			return mustWait
		}
		*live = epoch
		return entered
	case *live > epoch:
		return isOver
	default:
		return mustWait
	}
}

// lowest is the epoch below which no event in time can come from a partition of a side that has shown where it stands.
func (g *Gate) lowest(s Side) int64 {
	low := int64(maxTime)
	for i := range g.parts[s] {
		if p := &g.parts[s][i]; !p.ended && !p.Timeless && !p.idle && p.watermark() > minTime {
			low = min(low, p.watermark())
		}
	}
	return buckets.EpochOf(low-g.cfg.Grace, g.cfg.Width)
}

// Bounds are what the watermarks allow between two batches, of a side that waits.
type Bounds struct {
	Floor    int64 // buckets of lower epochs are dropped (rule 11)
	Sealable int64 // open buckets of lower epochs are sealed
}

// bounds by the watermarks of a batch, by side: a bucket is over when its newest possible event is closed (rule 10), and
// sealed when nothing in time can enter it.
func (c *Config) bounds(wm [2]int64) (to [2]Bounds) {
	for s, l := range c.limits(wm) {
		to[s] = Bounds{Floor: buckets.EpochOf(l.Closed, c.Width), Sealable: buckets.EpochOf(wm[s]-c.Grace, c.Width)}
	}
	return to
}

// advance moves floors and closed times after a commit.
func (g *Gate) advance(to [2]Bounds) {
	limits := g.cfg.limits(g.wm)
	for s := range g.floor {
		g.closed[s] = max(g.closed[s], limits[s].Closed)
		g.sealable[s] = max(g.sealable[s], to[s].Sealable)
		if to[s].Floor <= g.floor[s] {
			continue
		}
		g.floor[s] = to[s].Floor
		for i, e := range g.live[s] {
			if e != noEpoch && e < to[s].Floor {
				g.live[s][i] = noEpoch
			}
		}
		for e := range g.back[s] {
			if e < to[s].Floor {
				delete(g.back[s], e)
			}
		}
	}
}

// drops says whether bounds let anything go that is still there.
func (g *Gate) drops(to [2]Bounds) bool {
	return to[A].Floor > g.floor[A] || g.cfg.Probe == ProbeWait && to[B].Floor > g.floor[B]
}

// fillFrom claims the slots of the buckets that a ring has.
func (g *Gate) fillFrom(s Side, r *buckets.Ring) {
	for slot := range g.live[s] {
		if b := r.AtSlot(slot); b != nil {
			g.live[s][slot] = b.Epoch
		}
	}
}
