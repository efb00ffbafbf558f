package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"joinbench/buckets"
	"joinbench/internal/failpoint"
)

// Engine joins: one gate, one or several joiners, batch after batch.
type Engine struct {
	cfg     *Config
	gate    *Gate
	joiners []Joiner
	tasks   []*Task // the joiners, if they are tasks
	rings   Rings   // theirs
	route   router
	source  Source
	sink    Sink
	ledger  Ledger   // the sink, if it is the first to keep a batch
	batch   uint64   // of the last commit
	wm      [2]int64 // watermarks of it
	kept    []byte   // its commit record; empty: there is none
	failed  bool     // a commit failed: some joiners may be ahead of the commit record
	moved   bool     // gate, source and sink are not at the last committed batch, or not all of them
	sync    Syncer   // the sink, if each commit has to outlive a power cut
	base    Counters
	now     Counters // since this engine was made; Tasks is left empty
	before  books    // as of the last commit
	out     Output
	record  []byte // of the batch in progress
	changes []Change

	// Observe, if set, is called after each commit. Its error ends the run.
	Observe func(*Engine) error
}

// Rings of an engine: for each task those that share its store, recovered to the batch of the commit record.
type Rings []*buckets.Rings

// OpenRings makes the rings of each task's backend. The commit record, nil in a new state, is kept in the first.
func OpenRings(cfg *Config, sync buckets.SyncMode, stores []buckets.Backend) (Rings, []byte, error) {
	record, err := buckets.CommitRecord(stores[0])
	if err != nil {
		return nil, nil, err
	}
	committed, err := CommittedBatch(record)
	if err != nil {
		return nil, nil, err
	}
	if err := checkTogether(stores, committed); err != nil {
		return nil, nil, err
	}
	var rings Rings
	for i, s := range stores {
		r, err := buckets.NewRings(cfg.ringOptions(sync), s, committed)
		if err != nil {
			return nil, nil, fmt.Errorf("task %d: %w", i, err)
		}
		rings = append(rings, r)
	}
	return rings, record, nil
}

// ringOptions are those of a task's rings: of its A, and of B that wait (ProbeWait) or are collected.
func (c *Config) ringOptions(sync buckets.SyncMode) []buckets.Options {
	a := buckets.Options{Width: c.Width, Slots: c.Slots, Sync: sync, KeepUsed: c.keepsUsed(A), ArenaBytes: c.ArenaBytes}
	b := a
	b.KeepUsed = c.keepsUsed(B)
	switch {
	case c.Probe == ProbeWait:
		b.Space = 'w'
	case c.Collect != CollectEager:
		b.Space = 'c'
	default:
		return []buckets.Options{a}
	}
	return []buckets.Options{a, b}
}

// keepsUsed says whether an event of a side stays when it has paired (rule 2). In one-to-many that is the A alone.
func (c *Config) keepsUsed(s Side) bool {
	return s == A && c.Cardinality != OneToOne || c.Cardinality == ManyToMany
}

func (r Rings) close() error {
	var errs []error
	for _, ring := range r {
		errs = append(errs, ring.Close())
	}
	return errors.Join(errs...)
}

// NewEngine makes an engine over rings and goes back to the commit record, and source and sink with it. The engine
// owns the rings: Close closes them.
func NewEngine(cfg *Config, rings Rings, record []byte, source Source, sink Sink) (*Engine, error) {
	e, err := newEngine(cfg, len(rings), record, source, sink)
	if err != nil {
		return nil, errors.Join(err, rings.close())
	}
	e.wm, e.rings = e.gate.wm, rings
	e.fillGate()
	for _, r := range rings {
		e.addTask(r)
	}
	if s, ok := sink.(Syncer); ok {
		if rings[0].At(0).SyncMode() == buckets.SyncBatch {
			e.sync = s
		}
		e.tasks[0].outputs = s
	}
	// What the last commit allowed to seal and drop may have been cut off.
	to := cfg.bounds(e.gate.wm)
	e.gate.advance(to)
	if err := e.maintain(to); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// fillGate claims the slots of the buckets that there are.
func (e *Engine) fillGate() {
	for _, r := range e.rings {
		e.gate.fillFrom(A, r.At(0))
		if e.cfg.Probe == ProbeWait {
			e.gate.fillFrom(B, r.At(1))
		}
	}
}

// addTask makes the joiner of the rings of one task.
func (e *Engine) addTask(rings *buckets.Rings) {
	if e.cfg.Probe == ProbeWait {
		w := newBoth(e.cfg, rings, e.wm)
		w.a.back, w.b.back = e.gate.back[A], e.gate.back[B]
		e.tasks, e.joiners = append(e.tasks, w.a), append(e.joiners, w)
		return
	}
	t := newTask(e.cfg, rings.At(0), e.cfg.limits(e.wm)[A], newHelper(e.cfg, 1))
	t.back, t.rings = e.gate.back[A], rings
	if e.cfg.Collect != CollectEager {
		t.groups = newGroups(e.cfg, rings.At(1), t.help)
		t.groups.stats = t.stats
	}
	e.tasks, e.joiners = append(e.tasks, t), append(e.joiners, taskJoiner{t})
}

// NewEngineWith makes an engine over joiners that are empty. The engine owns them: Close closes them.
func NewEngineWith(cfg *Config, joiners []Joiner, source Source, sink Sink) (*Engine, error) {
	e, err := newEngine(cfg, len(joiners), nil, source, sink)
	if err != nil {
		for _, j := range joiners {
			err = errors.Join(err, j.Close(false))
		}
		return nil, err
	}
	e.joiners = joiners
	return e, nil
}

// newEngine makes an engine that lacks its n joiners, and brings gate, source and sink to where the record says.
func newEngine(cfg *Config, n int, record []byte, source Source, sink Sink) (*Engine, error) {
	e := &Engine{cfg: cfg, gate: newGate(cfg, source), source: source, sink: sink, kept: slices.Clone(record)}
	e.ledger, _ = sink.(Ledger)
	r, err := e.restore(record)
	if err == nil {
		e.batch, e.base = r.batch, r.counters
		err = e.resume(r)
	}
	if err != nil {
		return nil, err
	}
	e.route = router{hash: cfg.Hash, parts: make([]taskPart, n)}
	return e, nil
}

// resume brings sink and source to what restore read.
func (e *Engine) resume(r restored) error {
	if err := e.sink.Restore(r.sink); err != nil {
		return err
	}
	for _, side := range []Side{A, B} {
		for i := range e.gate.parts[side] {
			if err := e.source.Start(side, i, e.gate.parts[side][i].place); err != nil {
				return err
			}
		}
	}
	return nil
}

// Run joins until the input ends, until nothing more can move (without Drain), or until the context is done, which
// it looks at between batches. It returns the context's error in that case; everything up to the last batch is
// committed then, and the next Run goes on. After any other error that is from the last batch on, as after Rewind. While a LiveSource has nothing, it waits, until time itself lets something go.
func (e *Engine) Run(ctx context.Context) error {
	if err := e.takeUp(); err != nil {
		return err
	}
	var b batch
	live, _ := e.source.(LiveSource)
	idle, full := false, false
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if live != nil {
			most := e.gate.patience(idle)
			if full { // it left some, most likely
				most = 0
			}
			if err := live.Await(ctx, idle, most); err != nil {
				return err
			}
		}
		if err := e.gate.fill(&b, e.cfg.BatchSize); err != nil {
			e.moved = true
			return err
		}
		full = b.n >= e.cfg.BatchSize
		to := e.cfg.bounds(b.wm)
		if e.cfg.Watch != nil {
			e.watch(&b, to)
		}
		if idle = b.n == 0 && !e.gate.drops(to) && (b.wm == e.wm || !e.cfg.releases()); idle {
			if b.starved {
				continue
			}
			return nil
		}
		if err := e.step(&b, to); err != nil {
			return err
		}
	}
}

// step takes one batch through: compute, hand over, commit, then seal and drop. If it fails before the commit, the
// tasks are as the last one left them; if the commit fails, only Close is left to do.
func (e *Engine) step(b *batch, to [2]Bounds) error {
	e.before.note(e)
	err := e.compute(b)
	if err == nil {
		err = e.settle(e.batch + 1)
	}
	if err != nil {
		return errors.Join(err, e.undo())
	}
	if err := e.commit(e.batch+1, e.record); err != nil {
		e.failed = true
		return err
	}
	e.kept, e.record = e.record, e.kept
	if err := e.settled(b.wm, to); err != nil {
		return err
	}
	if e.ledger != nil {
		if err := e.ledger.Kept(e.batch); err != nil {
			return err
		}
	}
	for _, c := range b.done {
		e.source.Done(c)
	}
	if e.Observe != nil {
		return e.Observe(e)
	}
	return nil
}

// settled is what follows a commit: what its watermarks allow is sealed and dropped.
func (e *Engine) settled(wm [2]int64, to [2]Bounds) error {
	e.batch++
	e.wm = wm
	e.gate.advance(to)
	return e.maintain(to)
}

// undo takes back the batch in progress, and what it counted.
func (e *Engine) undo() error {
	err := e.each(func(j Joiner, _ *taskPart) error { j.Undo(); return nil })
	e.before.restore(e)
	e.moved = true
	return err
}

// compute joins one batch and hands its results over, in parts if they are many.
func (e *Engine) compute(b *batch) error {
	if err := e.checkPending(b); err != nil {
		return err
	}
	e.route.split(b, e.everywhere)
	limits := e.cfg.limits(b.wm)
	err := e.each(func(j Joiner, part *taskPart) error {
		j.Begin()
		stats := j.Stats()
		stats.StoreTime += part.took[A]
		stats.AskTime += part.took[B]
		if err := j.Store(part.rows[A]); err != nil {
			return err
		}
		if err := j.Ask(part.rows[B]); err != nil {
			return err
		}
		return j.Release(limits)
	})
	if err != nil {
		return err
	}
	for e.more() {
		e.collect()
		if err := e.sink.Results(&e.out); err != nil {
			return err
		}
		if err := e.each(func(j Joiner, _ *taskPart) error { return j.GoOn() }); err != nil {
			return err
		}
	}
	e.collect()
	e.conclude(b)
	if err := failpoint.Hit(failpoint.OutputBefore); err != nil {
		return err
	}
	return e.sink.Results(&e.out)
}

// checkPending is rule 20's limit: an event beyond it ends the run before anything of its batch is done. Who uses up what in this
// batch is not known yet and does not count.
func (e *Engine) checkPending(b *batch) error {
	if e.cfg.MaxPending == 0 {
		return nil
	}
	room := e.cfg.MaxPending
	for _, j := range e.joiners {
		l := j.Levels(false)
		room -= int64(l.Pending + l.PendingB)
	}
	sides := []Side{A}
	if e.cfg.Probe == ProbeWait {
		sides = append(sides, B)
	}
	for _, s := range sides {
		for _, sl := range b.rows[s] {
			if n := int64(len(sl.rows)); n <= room {
				room -= n
				continue
			}
			c, row := sl.chunk, sl.rows[max(room, 0)]
			return fmt.Errorf("%w: %d events wait, and that of side %s, partition %d, offset %d is one more: raise max_pending, or shorten the window",
				ErrMaxPending, e.cfg.MaxPending, s, c.Partition, c.Offset[row])
		}
	}
	return nil
}

// ErrMaxPending ends a join in which more events wait than max_pending allows (rule 20).
var ErrMaxPending = errors.New("max_pending is reached")

// more says whether a joiner has not given everything of the batch.
func (e *Engine) more() bool {
	return slices.ContainsFunc(e.joiners, func(j Joiner) bool { return j.More() })
}

// maintain lets the joiners do what they do between batches.
func (e *Engine) maintain(to [2]Bounds) error {
	return e.each(func(j Joiner, _ *taskPart) error { return j.Maintain(to) })
}

// everywhere calls fn once for each joiner, at the same time.
func (e *Engine) everywhere(fn func(i int)) {
	var wg sync.WaitGroup
	for i := range e.joiners {
		wg.Go(func() { fn(i) })
	}
	wg.Wait()
}

// each calls fn for every joiner, at the same time if there are several.
func (e *Engine) each(fn func(Joiner, *taskPart) error) error {
	if len(e.joiners) == 1 {
		return fn(e.joiners[0], &e.route.parts[0])
	}
	errs := make([]error, len(e.joiners))
	var wg sync.WaitGroup
	for i, j := range e.joiners {
		wg.Go(func() { errs[i] = fn(j, &e.route.parts[i]) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// settle makes the commit record of batch n, which is computed, and has a ledger keep it with all that the batch did.
func (e *Engine) settle(n uint64) error {
	record, err := e.appendRecord(e.record[:0], n)
	if err != nil {
		return err
	}
	e.record = record
	if err := failpoint.Hit(failpoint.OutputAfter); err != nil {
		return err
	}
	if e.sync != nil {
		if err := e.sync.Sync(); err != nil {
			return err
		}
	}
	if e.ledger == nil {
		return nil
	}
	if err := e.listChanges(); err != nil {
		return err
	}
	return e.ledger.Settle(n, e.changes, record)
}

// commit: with one joiner journal and commit record are one write; with several each journals, then the record says
// that all have (decision 6).
func (e *Engine) commit(n uint64, record []byte) error {
	if len(e.joiners) == 1 {
		return e.joiners[0].Commit(n, record)
	}
	if err := e.each(func(j Joiner, _ *taskPart) error { return j.Commit(n, nil) }); err != nil {
		return err
	}
	return e.joiners[0].WriteCommit(record)
}

// Finished says whether Run read every partition to its end.
func (e *Engine) Finished() bool { return e.gate.finished() }

// Quiesce waits for the helpers and takes in what they did: for counts at the end of a run.
func (e *Engine) Quiesce() error {
	return e.each(func(j Joiner, _ *taskPart) error { return j.Quiesce() })
}

// MarkDrained says that the state is not to be resumed (rule 15).
func (e *Engine) MarkDrained() error { return e.joiners[0].MarkDrained() }

// Close waits for the helpers, stops them and closes the joiners. The state can be opened again, also after a commit
// that failed.
func (e *Engine) Close() error {
	return e.each(func(j Joiner, _ *taskPart) error { return j.Close(e.failed) })
}

// Place is where a partition would be read on: behind the last record that Run took from it.
func (e *Engine) Place(side Side, part int) int64 { return e.gate.parts[side][part].place }

// Newest is the greatest event time that was accepted from a partition, in ms; negative if there was none. It may be asked when Place may.
func (e *Engine) Newest(side Side, part int) int64 { return e.gate.parts[side][part].m }

// Tasks is the number of joiners.
func (e *Engine) Tasks() int { return len(e.joiners) }
