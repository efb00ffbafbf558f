package core

import (
	"math/bits"

	"joinbench/buckets"
	"joinbench/fusefilter"
)

// window is which buckets can hold a partner of a B, as long as its time stays in [from, to).
type window struct {
	from, to     int64
	open, sealed uint64
	unsure       uint64  // of the sealed: no filter yet, always maybe
	consulted    int     // sealed buckets
	predicted    float64 // probability that an absent key gets a maybe
}

// windows are those of a batch: the last two, since the times of partitions that are read side by side go to and fro over
// a border, and what all of them together ask.
type windows struct {
	now, before  *window
	two          [2]window
	open, sealed uint64
	several      bool
}

// reset forgets them: buckets may have changed since the last batch.
func (w *windows) reset() {
	*w = windows{}
	w.now, w.before = &w.two[0], &w.two[1]
}

// moveWindow goes to the window of a time: the buckets that can hold an A with tB - after <= tA <= tB + before, those in which earlier
// ones wait included. Between batches it may not be called.
func (t *Task) moveWindow(at int64) *window {
	w := &t.win
	switch {
	case at >= w.now.from && at < w.now.to:
		return w.now
	case at >= w.before.from && at < w.before.to:
		w.now, w.before = w.before, w.now
		return w.now
	}
	w.several = w.several || w.now.from != w.now.to
	w.now, w.before = w.before, w.now
	*w.now = t.windowAt(at)
	w.open |= w.now.open
	w.sealed |= w.now.sealed
	return w.now
}

func (t *Task) windowAt(at int64) window {
	width := t.cfg.Width
	lowest, highest := buckets.EpochOf(at-t.cfg.After, width), buckets.EpochOf(at+t.cfg.Before, width)
	w := window{
		from: max(lowest*width+t.cfg.After, highest*width-t.cfg.Before),
		to:   min((lowest+1)*width+t.cfg.After, (highest+1)*width-t.cfg.Before),
	}
	for slot := range t.cfg.Slots {
		b := t.ring.AtSlot(slot)
		if b == nil || b.Epoch < lowest || b.Epoch-t.back[b.Epoch] > highest {
			continue
		}
		if b.State() != buckets.Sealed {
			w.open |= 1 << slot
		}
		if !b.Empty() {
			w.sealed |= 1 << slot
			if t.set.State(slot) == fusefilter.Maybe {
				w.unsure |= 1 << slot
			}
		}
	}
	if w.unsure == 0 || !t.cfg.Filter.InRAM() {
		w.consulted = bits.OnesCount64(w.sealed)
		w.predicted = t.set.Predict(w.sealed)
	}
	return w
}
