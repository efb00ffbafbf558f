package core

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
)

// settledBatch is what a Ledger was given for one batch.
type settledBatch struct {
	n       uint64
	changes []Change
	record  []byte
}

func (s settledBatch) clone() settledBatch {
	c := settledBatch{s.n, nil, bytes.Clone(s.record)}
	for _, ch := range s.changes {
		c.changes = append(c.changes, Change{ch.Task, ch.Space, bytes.Clone(ch.Journal)})
	}
	return c
}

// answer is how a ledger takes a batch.
type answer uint8

const (
	settles  answer = iota
	aborts          // nothing of it happened
	forgets         // it happened, and the answer is lost
	rejects         // Results fails
	mistakes        // State fails
)

// ledger is a Ledger in memory: outputs of a batch count when it is settled, and it keeps what a changelog would.
type ledger struct {
	joined
	t    testing.TB
	e    *Engine
	log  []settledBatch
	from int               // what is before was cut off
	at   map[LiveEpoch]int // where in the log a bucket begins
	live []LiveEpoch       // at the last Kept
	kept uint64            // its batch

	durable [6]int // lengths of the lists as of the last batch that is settled
	back    [6]int // those of the state that Restore was last given
	going   bool   // Results has come since
	left    int    // batches until answer
	answer  answer
}

func newLedger(t testing.TB) *ledger { return &ledger{t: t, at: map[LiveEpoch]int{}, left: 1 << 40} }

func (l *ledger) lengths() (n [6]int) {
	for i, list := range l.lists() {
		n[i] = len(*list)
	}
	return n
}

// Restore implements Sink.
func (l *ledger) Restore(state []byte) error {
	l.back, l.going = [6]int{}, false
	for i, list := range l.lists() {
		if state != nil {
			l.back[i] = int(binary.LittleEndian.Uint32(state[4*i:]))
		}
		*list = (*list)[:l.durable[i]]
	}
	return nil
}

// Results implements Sink.
func (l *ledger) Results(o *Output) error {
	if !l.going && l.back != l.durable {
		l.t.Errorf("batch %d begins with outputs of %v, and %v are settled", l.e.Batch()+1, l.back, l.durable)
	}
	l.going = true
	if err := l.joined.Results(o); err != nil {
		return err
	}
	if l.left == 0 && l.answer == rejects {
		return errEnd
	}
	return nil
}

// State implements Sink.
func (l *ledger) State(dst []byte) ([]byte, error) {
	if l.left == 0 && l.answer == mistakes {
		return nil, errEnd
	}
	return l.joined.State(dst)
}

// Settle implements Ledger.
func (l *ledger) Settle(n uint64, changes []Change, record []byte) error {
	if n != l.e.Batch()+1 || len(l.log) > 0 && n != l.log[len(l.log)-1].n+1 {
		l.t.Errorf("batch %d is settled, the engine has %d, the log %d entries", n, l.e.Batch(), len(l.log))
	}
	how := settles
	if l.left--; l.left < 0 {
		how = l.answer
	}
	if how == aborts {
		return fmt.Errorf("batch %d: %w", n, ErrAborted)
	}
	for _, x := range l.e.LiveEpochs(nil) {
		if _, ok := l.at[x]; !ok {
			l.at[x] = len(l.log)
		}
	}
	l.log = append(l.log, settledBatch{n, changes, record}.clone())
	l.durable = l.lengths()
	if how == forgets {
		return errEnd
	}
	return nil
}

// Kept implements Ledger.
func (l *ledger) Kept(n uint64) error {
	if n != l.log[len(l.log)-1].n || n != l.e.Batch() {
		l.t.Errorf("batch %d is kept", n)
	}
	l.kept, l.live = n, l.e.LiveEpochs(l.live[:0])
	return nil
}

// cut cuts off what no bucket needs that was there at the last Kept, and says how much.
func (l *ledger) cut() int {
	to := len(l.log)
	if l.kept != 0 && l.kept < l.log[len(l.log)-1].n {
		to = int(l.kept-l.log[0].n) + 1
	}
	for _, x := range l.live {
		to = min(to, l.at[x])
	}
	to = min(to, len(l.log)-1) // the last one has the record
	was := l.from
	l.from = max(l.from, to)
	return l.from - was
}

// apply hands the log to an engine, and what is none between.
func (l *ledger) apply(e *Engine) {
	l.t.Helper()
	must(l.t, l.tryApply(e, len(l.log)))
}

// tryApply is apply of the log up to an entry; it ends with the first error.
func (l *ledger) tryApply(e *Engine, to int) error {
	l.t.Helper()
	for i, s := range l.log[l.from:to] {
		if i%7 == 3 && s.n > e.Batch() {
			l.applyWrong(e, s)
		}
		c := s.clone()
		if err := e.Apply(s.n, c.changes, c.record); err != nil {
			return err
		}
		for _, ch := range c.changes {
			clear(ch.Journal) // whoever keeps a piece of it shows
		}
		clear(c.record)
		if e.Batch() < s.n {
			l.t.Fatalf("batch %d was taken over, and the engine has %d", s.n, e.Batch())
		}
	}
	return nil
}

// applyWrong hands batches to an engine that it is to refuse.
func (l *ledger) applyWrong(e *Engine, s settledBatch) {
	l.t.Helper()
	before, levels := e.Counters(), e.Levels(false)
	alien := append(s.clone().changes, Change{Task: len(e.joiners)})
	space := append(s.clone().changes, Change{Space: 'x', Journal: []byte{2}})
	damaged := append(s.clone().changes, Change{Journal: []byte{1}})
	for what, err := range map[string]error{
		"a gap":             e.Apply(s.n+1, s.changes, s.record),
		"another record":    e.Apply(s.n, s.changes, append([]byte{commitVersion, 0xff}, s.record[2:]...)),
		"no record":         e.Apply(s.n, s.changes, nil),
		"half a record":     e.Apply(s.n, s.changes, s.record[:len(s.record)/2]),
		"a task too many":   e.Apply(s.n, alien, s.record),
		"an unknown ring":   e.Apply(s.n, space, s.record),
		"a damaged journal": e.Apply(s.n, damaged, s.record),
	} {
		if err == nil {
			l.t.Fatalf("batch %d with %s was taken over", s.n, what)
		}
	}
	if after := e.Levels(false); e.Counters() != before || after.Pending != levels.Pending || after.PendingB != levels.PendingB || after.Batch != levels.Batch || e.gate.wm != e.wm {
		l.t.Fatalf("what was refused left something: %+v, was %+v", after, levels)
	}
}

// is says which of some errors an error is.
func is(err error, list ...error) bool {
	for _, e := range list {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
