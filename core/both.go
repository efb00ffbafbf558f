package core

import (
	"errors"

	"joinbench/buckets"
)

// both is the joiner of probe: wait (rule 12). Neither side is held back: each event asks what waits of the other side, and then
// waits itself for what is still to come. So there are two tasks, one that stores A and is asked by B, as ever, and one that
// stores B and is asked by A, with the window mirrored.
//
// In a batch A ask the waiting B first, and are stored; then B ask the A, those of the batch too, and are stored. So two events
// of one batch meet once. What becomes of an event that has met another is the cardinality's: in one-to-one both are
// gone; in one-to-many an A takes all the B that wait for it and stays, and a B that has its A is gone; in many-to-many both stay,
// and are marked, so that they do not come out as unmatched.
type both struct {
	a, b  *Task // that store A, and B
	cfg   *Config
	rows  [2][]Rows
	phase phase
	// Scratch: rows by whether they met anyone.
	alone, met []slice
	found      Found
}

// phase is what a batch is at.
type phase uint8

const (
	done phase = iota
	askingA
	askingB
	releasing
)

// waiting makes the configurations of the two tasks: the side that a task stores is A to it.
func (c *Config) waiting() (a, b *Config) {
	ca, cb := *c, *c
	ca.WantB = c.Cardinality != ManyToMany || c.WantB // who is to be stored, or not to be marked
	cb.Before, cb.After = c.After, c.Before
	cb.WantA = c.WantB
	cb.WantB = c.Cardinality == OneToOne || c.WantA
	if c.Cardinality == OneToMany {
		cb.Cardinality = OneToOne // a B that has paired is gone
	}
	return &ca, &cb
}

func newBoth(cfg *Config, rings *buckets.Rings, wm [2]int64) *both {
	ca, cb := cfg.waiting()
	help := newHelper(cfg, 2)
	w := &both{a: newTask(ca, rings.At(0), cfg.limits(wm)[A], help), b: newTask(cb, rings.At(1), cfg.limits(wm)[B], help), cfg: cfg}
	w.a.rings = rings
	w.b.side = B
	w.b.all = cfg.Cardinality != OneToOne
	w.b.stats = w.a.stats // one book for both
	return w
}

// Begin implements Joiner.
func (w *both) Begin() {
	w.a.begin()
	w.b.begin()
}

// Store implements Joiner: what is stored is known when the rows have asked.
func (w *both) Store(a []Rows) error {
	w.rows[A] = a
	return nil
}

// Ask implements Joiner.
func (w *both) Ask(b []Rows) error {
	w.rows[B] = b
	w.phase = askingA
	return w.b.ask(w.rows[A])
}

// Release implements Joiner.
func (w *both) Release(l [2]Limits) error {
	w.a.releaseBelow(l[A])
	w.b.releaseBelow(l[B])
	return w.advance()
}

// More implements Joiner.
func (w *both) More() bool { return w.phase != done }

// GoOn implements Joiner.
func (w *both) GoOn() error {
	w.a.forget()
	w.b.forget()
	for _, t := range []*Task{w.b, w.a} {
		if err := t.pairOn(); err != nil {
			return err
		}
	}
	return w.advance()
}

// advance goes from phase to phase, as far as the output has room.
func (w *both) advance() (err error) {
	for err == nil {
		switch w.phase {
		case askingA:
			if w.b.asks.busy {
				return nil
			}
			if err = w.keep(w.a, w.b, w.rows[A], w.cfg.Cardinality != OneToOne); err == nil {
				w.phase, err = askingB, w.a.ask(w.rows[B])
			}
		case askingB:
			if w.a.asks.busy {
				return nil
			}
			w.phase, err = releasing, w.keep(w.b, w.a, w.rows[B], w.cfg.Cardinality == ManyToMany)
		case releasing:
			if err = errors.Join(w.a.releaseDue(), w.b.releaseDue()); w.a.rel.busy || w.b.rel.busy {
				return err
			}
			w.phase = done
		case done:
			return nil
		}
	}
	return err
}

// keep stores rows that have asked: those that met nobody, and with all also those that did, marked. Rows that are over do not
// wait: who met nobody comes out at once.
func (w *both) keep(in, asked *Task, rows []Rows, all bool) error {
	marks := all && asked.cfg.WantB // else nobody asks who has paired
	w.alone, w.met = w.alone[:0], w.met[:0]
	vain := asked.inVain
	for _, s := range rows {
		for _, row := range s.rows {
			alone := len(vain) > 0 && vain[0].Chunk == s.chunk && vain[0].Row == row
			if alone {
				vain = vain[1:]
			}
			switch {
			case s.chunk.FlagsOf(row)&over != 0:
				if alone && in.cfg.WantA {
					in.rel.closed = append(in.rel.closed, entryOf(Ref{s.chunk, row}))
				}
			case alone || all && !marks:
				w.alone = appendRow(w.alone, s.chunk, row)
			case all:
				w.met = appendRow(w.met, s.chunk, row)
			}
		}
	}
	if err := in.store(w.alone); err != nil {
		return err
	}
	return in.storeAll(w.met, true)
}

// Found implements Joiner.
func (w *both) Found() Found {
	clear(w.found.Matches)
	w.found = Found{Matches: append(append(w.found.Matches[:0], w.b.matches...), w.a.matches...),
		UnmatchedA: w.a.rel.closed, WaitedB: w.b.rel.closed}
	return w.found
}

// each calls fn for both tasks and joins the errors.
func (w *both) each(fn func(*Task) error) error { return errors.Join(fn(w.a), fn(w.b)) }

// Undo implements Joiner.
func (w *both) Undo() {
	w.phase = done
	w.a.undo()
	w.b.undo()
}

// Changes implements Joiner: the rings share a store, and a journal.
func (w *both) Changes(dst []Change) ([]Change, error) { return w.a.changes(dst), nil }

// Apply implements Joiner.
func (w *both) Apply(changes []Change, by [2]Limits) error {
	w.a.releasesBelow(by[A])
	w.b.releasesBelow(by[B])
	if err := w.a.apply(changes); err != nil {
		return err
	}
	w.a.fillIndexes(w.a.ring)
	w.b.fillIndexes(w.b.ring)
	return nil
}

// Commit implements Joiner: the rings share a store, and a write.
func (w *both) Commit(n uint64, record []byte) error {
	w.b.releasedUpTo()
	return w.a.commit(n, record)
}

// WriteCommit implements Joiner.
func (w *both) WriteCommit(record []byte) error { return w.a.ring.WriteCommit(record) }

// Maintain implements Joiner.
func (w *both) Maintain(to [2]Bounds) error {
	if err := w.a.maintain(to[A]); err != nil {
		return err
	}
	return w.b.maintain(to[B])
}

// Quiesce implements Joiner.
func (w *both) Quiesce() error {
	return w.each(func(t *Task) error { return taskJoiner{t}.Quiesce() })
}

// MarkDrained implements Joiner.
func (w *both) MarkDrained() error { return w.a.ring.MarkDrained() }

// Close implements Joiner.
func (w *both) Close(failed bool) error {
	w.b.closing = true
	return taskJoiner{w.a}.Close(failed)
}

// Stats implements Joiner.
func (w *both) Stats() *TaskStats { return w.a.stats }

// Levels implements Joiner.
func (w *both) Levels(deep bool) Levels {
	l, o := taskJoiner{w.a}.Levels(deep), taskJoiner{w.b}.Levels(false) // the store is one
	l.PendingB, o.Pending = o.Pending, 0
	l.add(o)
	l.Rotating = min(l.Rotating, 1)
	return l
}

// Drops implements Joiner.
func (w *both) Drops() []Drop { return append(append([]Drop{}, w.a.drops...), w.b.drops...) }
