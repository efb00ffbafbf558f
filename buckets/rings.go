package buckets

import (
	"errors"
	"fmt"

	"joinbench/internal/failpoint"
)

// Rings are the rings of one task that share a store: its A, and beside them what else waits in time. A batch is committed in
// all of them by one write; runs, drops and checkpoints are each ring's own. All of them belong to the task's goroutine, and
// all of their jobs to one helper.
type Rings struct {
	rings []*Ring
	store Backend
	err   error // the first failed write; nothing is written after it

	encoded bool // the rings' writes have the journal records of the batch

	sinceMeta    int64 // journaled since meta was last flushed by a DropJob
	sinceJournal int64 // and since the journal was
}

// NewRing puts the state of a store together as it was after the batch `committed` (0: an empty store): sealed
// buckets by their marks, open ones from the journal. Families without a mark are dropped, journal records of
// later batches too. The ring owns the store from here on, and Close closes it; after an error the store is
// still the caller's to close.
func NewRing(opt Options, store Backend, committed uint64) (*Ring, error) {
	all, err := NewRings([]Options{opt}, store, committed)
	if err != nil {
		return nil, err
	}
	return all.rings[0], nil
}

// NewRings is NewRing of several rings in one store. The Space of the first is 0, those of the others are theirs alone, and the
// modes of Sync are the same. A state with another set of rings is refused.
func NewRings(opts []Options, store Backend, committed uint64) (*Rings, error) {
	g := &Rings{store: store}
	seen := map[byte]bool{}
	for i, opt := range opts {
		switch err := opt.validate(); {
		case err != nil:
			return nil, err
		case (i == 0) != (opt.Space == 0) || seen[opt.Space]:
			return nil, fmt.Errorf("ring %d of its store has the name %q: the first has none, and the others have each their own", i, opt.Space)
		case opt.Sync != opts[0].Sync:
			return nil, fmt.Errorf("ring %q has another sync mode than the first of its store", opt.Space)
		}
		seen[opt.Space] = true
		g.rings = append(g.rings, &Ring{opt: opt, store: store, all: g, prefix: spacePrefix(opt.Space), slots: make([]*Bucket, opt.Slots),
			committed: committed, pool: &chunkPool{chunk: chunkFor(opt.ArenaBytes, opt.Slots)}, floor: -1 << 62})
	}
	if len(opts) == 0 {
		return nil, errors.New("a store without a ring")
	}
	if err := g.noOthers(seen); err != nil {
		return nil, err
	}
	for _, r := range g.rings {
		for _, step := range []func() error{r.recoverHeader, r.recoverFloor, r.recoverRuns, r.recoverJournal} {
			if err := step(); err != nil {
				return nil, err
			}
		}
	}
	if committed > 0 { // how much of the journal earlier lives left on the disk is not known: the first chance is taken
		g.sinceMeta, g.sinceJournal = trimAfter, trimAfter
	}
	return g, nil
}

// noOthers refuses a state with rings that nobody opens: what waits in them would be forgotten.
func (g *Rings) noOthers(seen map[byte]bool) error {
	for space := byte('a'); space <= 'z'; space++ {
		if seen[space] {
			continue
		}
		_, ok, err := g.store.Meta(spacePrefix(space) + metaHeader)
		if err != nil {
			return err
		}
		if ok {
			return fmt.Errorf("the state has a ring %q, which this configuration does not know: another one made it. Go on with that one, or start with an empty directory", space)
		}
	}
	return nil
}

// At returns a ring by its place in the options.
func (g *Rings) At(i int) *Ring { return g.rings[i] }

// RingJournal is the journal record of one batch and one ring.
type RingJournal struct {
	Space  byte // Options.Space of the ring
	Record []byte
}

// Journal appends to dst what the batch in progress did to each ring, of those to which it did anything: what Commit will
// write. No operation may come between both. The bytes are valid until Commit or Undo. Ring.Apply reads them.
func (g *Rings) Journal(dst []RingJournal) []RingJournal {
	for _, r := range g.rings {
		if w := r.journal(); len(w.Record) > 0 {
			dst = append(dst, RingJournal{r.opt.Space, w.Record})
		}
	}
	g.encoded = true
	return dst
}

// Apply is Ring.Apply of the ring with a name.
func (g *Rings) Apply(j RingJournal) error {
	for _, r := range g.rings {
		if r.opt.Space == j.Space {
			return r.Apply(j.Record)
		}
	}
	return fmt.Errorf("%w: of ring %q, which is not there", ErrJournal, j.Space)
}

// Commit makes everything since the last commit durable, for each ring as one journal record of this batch, and with it the
// caller's commit record, if there is one: one atomic write. Without one it notes the batch, even if nothing happened in
// it: so opening sees whether this store still has what another one's commit record names. Batches ascend from 1. After an
// error the rings stay failed: nothing more is written, and what is on disk is a committed state.
func (g *Rings) Commit(batch uint64, record []byte) error {
	if g.err != nil {
		return g.err
	}
	var first, last *Write
	for _, r := range g.rings {
		w := r.journal()
		w.Batch = batch
		switch {
		case first == nil:
			first, last = w, w
		case len(w.Record) > 0:
			last.Next, last = w, w
		}
	}
	g.encoded = false
	if record != nil {
		first.put(metaCommit, record)
	} else {
		first.putNumber(metaJournaled, batch)
	}
	if err := g.write(first, failpoint.JournalBefore, failpoint.JournalAfter); err != nil {
		return err
	}
	for _, r := range g.rings {
		n := int64(len(r.write.Record))
		g.sinceMeta, g.sinceJournal = g.sinceMeta+n, g.sinceJournal+n
		r.endBatch(batch)
	}
	return nil
}

// EachBucket calls fn with each live bucket, ring by ring, and the name of its ring.
func (g *Rings) EachBucket(fn func(space byte, b *Bucket)) {
	for _, r := range g.rings {
		for _, b := range r.slots {
			if b != nil {
				fn(r.opt.Space, b)
			}
		}
	}
}

// Missing is Ring.Missing of all rings.
func (g *Rings) Missing() (epochs []int64) {
	for _, r := range g.rings {
		epochs = append(epochs, r.Missing()...)
	}
	return epochs
}

// Undo goes back to the last commit in all rings.
func (g *Rings) Undo() {
	for _, r := range g.rings {
		r.Undo()
	}
}

// Close closes the store. What was not committed is forgotten.
func (g *Rings) Close() error { return g.store.Close() }

// write writes between two failpoints, and remembers a failure for good.
func (g *Rings) write(w *Write, before, after string) error {
	if g.err != nil {
		return g.err
	}
	w.Sync = g.rings[0].opt.Sync == SyncBatch
	err := failpoint.Hit(before)
	if err == nil {
		err = g.store.Write(w)
	}
	if err == nil {
		err = failpoint.Hit(after)
	}
	if err != nil {
		g.err = fmt.Errorf("state is read-only from here: %w", err)
	}
	return g.err
}
