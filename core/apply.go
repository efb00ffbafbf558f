package core

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"joinbench/buckets"
)

// A state that comes second (rule 24). With a Ledger a batch is certain before the state has it: the ledger keeps what the batch
// did to the rings, which is the journal that the state writes anyway. So what the state lacks is applied from there: the last batch
// after a crash or an answer that was lost, all of them when the directory is gone. And what the ledger did not take is undone in
// RAM, and the engine goes back to the last commit (Rewind) without its state being opened anew.

// books is what was counted before a batch, so that one that is undone leaves nothing.
type books struct {
	now   Counters
	stats []TaskStats // by joiner
}

func (k *books) note(e *Engine) {
	k.now, k.stats = e.now, k.stats[:0]
	for _, j := range e.joiners {
		k.stats = append(k.stats, *j.Stats())
	}
}

func (k *books) restore(e *Engine) {
	e.now = k.now
	for i, j := range e.joiners {
		*j.Stats() = k.stats[i]
	}
}

// listChanges fills e.changes with what the batch did, task by task.
func (e *Engine) listChanges() error {
	err := e.each(func(j Joiner, p *taskPart) (err error) {
		p.changes, err = j.Changes(p.changes[:0])
		return err
	})
	e.changes = e.changes[:0]
	for i := range e.route.parts {
		for _, c := range e.route.parts[i].changes {
			e.changes = append(e.changes, Change{i, c.Space, c.Journal})
		}
	}
	return err
}

// Batch is the number of the last committed batch, 0 of a new state. Between batches; and while the sink is asked for Results, State
// or Settle of a batch, it is the one before.
func (e *Engine) Batch() uint64 { return e.batch }

// LiveEpoch names a bucket that some task has: what of a changelog is about it is still needed.
type LiveEpoch struct {
	Space byte // of Change
	Epoch int64
}

// LiveEpochs appends the buckets that there are, each once, by space and epoch. It may be called between batches; and by the sink
// in State, Settle and Kept, where those of the batch in progress are among them.
func (e *Engine) LiveEpochs(dst []LiveEpoch) []LiveEpoch {
	from := len(dst)
	for _, r := range e.rings {
		r.EachBucket(func(space byte, b *buckets.Bucket) { dst = append(dst, LiveEpoch{space, b.Epoch}) })
	}
	list := dst[from:]
	slices.SortFunc(list, func(x, y LiveEpoch) int { return cmp.Or(cmp.Compare(x.Space, y.Space), cmp.Compare(x.Epoch, y.Epoch)) })
	return dst[:from+len(slices.Compact(list))]
}

// errOnlyClose is what an engine answers when a commit has failed.
var errOnlyClose = errors.New("a commit failed: the state has to be closed and opened again")

// Rewind goes back to the last committed batch: gate, source (Start for each partition) and sink (Restore) are where its commit
// record says, and nothing is counted of what was undone. It is for a Run that ended with ErrAborted, and works after any
// other end too, but for a commit that failed: then only Close is left to do. Run, or Apply, may follow.
func (e *Engine) Rewind() error {
	if e.failed {
		return errOnlyClose
	}
	if err := e.each(func(j Joiner, _ *taskPart) error { j.Undo(); return nil }); err != nil {
		return err
	}
	e.moved = true
	return e.takeUp()
}

// takeUp brings gate, source and sink to the last committed batch, if they are not.
func (e *Engine) takeUp() error {
	if !e.moved {
		return nil
	}
	if err := e.missing(); err != nil {
		return err
	}
	r, err := e.goBack()
	if err == nil {
		err = e.resume(r)
	}
	e.moved = err != nil
	return err
}

// goBack brings the gate to the last committed batch.
func (e *Engine) goBack() (restored, error) {
	e.gate.reset()
	r, err := e.restore(e.kept)
	if err != nil {
		return r, err
	}
	e.fillGate()
	e.gate.advance(e.cfg.bounds(e.gate.wm))
	return r, nil
}

// missing refuses to go on without rows that wait: of buckets that are not over the changelog has to have the beginning.
func (e *Engine) missing() error {
	for task, r := range e.rings {
		if epochs := r.Missing(); len(epochs) > 0 {
			return fmt.Errorf("the changelog lacks the beginning of buckets %d of task %d, in which records still wait: it was cut too far. "+
				"Start with an empty changelog and an empty directory", epochs, task)
		}
	}
	return nil
}

// Apply takes over batch n of a ledger: what Settle was given. It does to the rings what the changes say and commits that with the
// record, then seals and drops as that allows. A batch that the state has is passed over. The next must be Batch()+1; in a
// state that has nothing the first may be any, since the ledger need not go back to the beginning: buckets whose first rows are
// missing then are passed over, and must be over before Run. After an error nothing of the batch is left, unless its commit
// failed. The bytes are only read.
//
// Call before Run, or after Rewind; by the engine's goroutine. The next Run brings source and sink to the places of the last batch.
func (e *Engine) Apply(n uint64, changes []Change, record []byte) error {
	switch {
	case e.failed:
		return errOnlyClose
	case n <= e.batch:
		return nil
	case n != e.batch+1 && e.batch != 0:
		return fmt.Errorf("batch %d of the changelog follows batch %d: what is between is missing", n, e.batch)
	}
	e.moved = true
	r, to, err := e.apply(n, changes, record)
	if err != nil {
		err = errors.Join(err, e.each(func(j Joiner, _ *taskPart) error { j.Undo(); return nil }))
		_, back := e.goBack()
		return errors.Join(fmt.Errorf("batch %d of the changelog: %w", n, err), back)
	}
	if err := e.commit(n, record); err != nil {
		e.failed = true
		return err
	}
	e.kept = append(e.kept[:0], record...)
	e.base, e.now = r.counters, Counters{}
	for _, j := range e.joiners {
		*j.Stats() = TaskStats{} // they are in the record
	}
	for i := range e.route.parts {
		clear(e.route.parts[i].changes) // they are the caller's
	}
	e.batch = n - 1
	return e.settled(e.gate.wm, to)
}

// apply brings gate and joiners to batch n, uncommitted.
func (e *Engine) apply(n uint64, changes []Change, record []byte) (r restored, to [2]Bounds, err error) {
	for i := range e.route.parts {
		e.route.parts[i].changes = e.route.parts[i].changes[:0]
	}
	for _, c := range changes {
		if c.Task < 0 || c.Task >= len(e.joiners) {
			return r, to, fmt.Errorf("it is of task %d, and there are %d: the number of tasks must not change", c.Task, len(e.joiners))
		}
		p := &e.route.parts[c.Task]
		p.changes = append(p.changes, c)
	}
	e.gate.reset()
	if r, err = e.restore(record); err != nil {
		return r, to, err
	}
	if r.batch != n {
		return r, to, fmt.Errorf("%w: it is of batch %d", errCommit, r.batch)
	}
	limits := e.cfg.limits(e.gate.wm)
	return r, e.cfg.bounds(e.gate.wm), e.each(func(j Joiner, p *taskPart) error {
		j.Begin()
		return j.Apply(p.changes, limits)
	})
}

// changes lists what the batch did to the rings of the task.
func (t *Task) changes(dst []Change) []Change {
	t.journals = t.rings.Journal(t.journals[:0])
	for _, j := range t.journals {
		dst = append(dst, Change{Space: j.Space, Journal: j.Record})
	}
	return dst
}

// apply does to the rings of the task what changes say.
func (t *Task) apply(changes []Change) error {
	for _, c := range changes {
		if err := t.rings.Apply(buckets.RingJournal{Space: c.Space, Record: c.Journal}); err != nil {
			return err
		}
	}
	return nil
}

// releasesBelow is for a batch that was put out elsewhere: what is below its limits has come out.
func (t *Task) releasesBelow(l Limits) {
	t.applying = true
	t.rel.due = [releaseKinds]int64{atClose: l.Closed, atEarly: l.Early}
	for kind := range t.rel.buckets {
		for slot := range t.rel.buckets[kind] {
			if r := &t.rel.buckets[kind][slot]; r.started {
				*r = release{}
			}
		}
	}
}
