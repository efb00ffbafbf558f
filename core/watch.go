package core

import "joinbench/buckets"

// Watcher sees of a join what its results do not say: what the gate let in, what it holds back and why, and who met whom. It is
// for one who explains a join, not for one who is in a hurry. Its methods are called by the engine's goroutine, Met by that of
// the task: a watched join has one task, or a Watcher that several goroutines may call.
type Watcher interface {
	// Taken is called when the gate has filled a batch, before anything of it is joined.
	Taken(t *Taken)
	// Met is called when an event has found one of the other side that waits, before what comes of it: a pair, a B in a group, an
	// end. Both are valid until it returns.
	Met(asks Ref, entry []byte)
}

// Taken is one batch as the gate filled it, or what it holds back when it finds nothing more to take. It is valid until Watcher.Taken returns.
type Taken struct {
	Batch      uint64   // its number, as the commit record will have it
	Before     [2]int64 // watermarks of the last batch, by side; see NoTime
	Watermarks [2]int64 // and of this one
	To         [2]Bounds
	Limits     [2]Limits
	Rejects    []Reject // records that join nothing
	NullKeys   []Reject
	Over       []Ref // A that were over on arrival: accepted, and they wait nowhere
	gate       *Gate
}

// NoTime says of a watermark that there is none yet (-1) or that its side is over (+1); 0: it is a time in ms.
func NoTime(wm int64) int {
	switch {
	case wm <= minTime/2:
		return -1
	case wm >= maxTime/2:
		return 1
	}
	return 0
}

// EpochOf is the bucket in which a row that was admitted waits: [epoch × width, (epoch+1) × width).
func (t *Taken) EpochOf(r Ref) int64 { return r.Chunk.epochOf(r.Row, t.gate.cfg.Width) }

// IsOver says that a row asks and does not wait: whoever it could wait for would be too late.
func (t *Taken) IsOver(r Ref) bool { return r.Chunk.FlagsOf(r.Row)&over != 0 }

// Hold is why a partition's next record was not taken.
type Hold uint8

// The reasons: there is no next record, or it has no time of its own; there was no room in the batch; WM_A must pass tB + before
// + G (rule 12); the other side has to come nearer (rule 13, max_spread); the ring has no room (rule 13).
const (
	HoldNone Hold = iota
	HoldFull
	HoldAligned
	HoldSpread
	HoldRing
)

// Held is a partition's next record, which was not taken.
type Held struct {
	Ref
	Why  Hold
	Past int64 // HoldAligned: what WM_A must pass; HoldSpread: what the other side's next event must reach
	WMA  int64 // WM_A when it was held back
}

// stop is why the gate last stopped before a record.
type stop struct {
	chunk *Chunk
	at    int
	why   Hold
	past  int64
	wm    int64
}

// stop notes why a partition's head is held back.
func (g *Gate) stop(p *gatePart, why Hold, past int64) {
	p.stopped = stop{p.chunk, p.at, why, past, g.wm[A]}
}

// Next says of a partition which record is the next, and why it was not taken. Chunk is nil if none has been read.
func (t *Taken) Next(s Side, part int) Held {
	p := &t.gate.parts[s][part]
	h := Held{Ref: Ref{p.chunk, uint32(p.at)}, WMA: t.gate.wm[A]}
	switch o := &p.stopped; {
	case p.chunk == nil:
	case o.chunk == p.chunk && o.at == p.at:
		h.Why, h.Past, h.WMA = o.why, o.past, o.wm
	default:
		h.Why = HoldFull
		if g := t.gate; p.settled && s == B && g.cfg.Probe == ProbeAligned && !g.idle[A] {
			if past := p.headTime() + g.cfg.Before + g.cfg.Grace; g.wm[A] <= past { // nor could it have asked
				h.Why, h.Past = HoldAligned, past
			}
		}
	}
	return h
}

// BucketOf is the bucket of a time.
func (c *Config) BucketOf(at int64) int64 { return buckets.EpochOf(at, c.Width) }

// watch tells the Watcher of a batch.
func (e *Engine) watch(b *batch, to [2]Bounds) {
	e.cfg.Watch.Taken(&Taken{Batch: e.batch + 1, Before: e.wm, Watermarks: b.wm, To: to, Limits: e.cfg.limits(b.wm), Rejects: b.rejects,
		NullKeys: b.nulls, Over: b.closed, gate: e.gate})
}
