package buckets

import (
	"errors"
	"fmt"
	"time"

	"joinbench/internal/failpoint"
)

// MaxSlots is the largest ring: masks of buckets are 64 bits wide.
const MaxSlots = 64

// SyncMode says what a power cut may cost; a crash of the process alone costs nothing in any of them.
type SyncMode uint8

// The modes: never sync the log, about once a second, with each batch.
const (
	SyncNone SyncMode = iota
	SyncInterval
	SyncBatch
)

// syncEvery is the interval of SyncInterval.
const syncEvery = time.Second

// checkpointBytes bounds the journal between two seals: past it bitmaps are written and the journal is cut to
// what open buckets need (decision 3). 64 MiB replay in well under a second.
var checkpointBytes int64 = 64 << 20 // a variable for tests

// Options of a ring. Width and Slots are part of the stored state and cannot change under it.
type Options struct {
	Width int64 // ms of event time a bucket holds, > 0
	Slots int   // 2 to MaxSlots
	Sync  SyncMode
	// KeepUsed: a used row is only marked, and stays and answers (one-to-many, many-to-many) until it is ended. Otherwise
	// it is consumed: to use a row and to end it are the same. What has ended no longer waits, and a seal leaves it out.
	KeepUsed bool
	// Space is the letter, a to z but b, of a ring that is not the first of its store (NewRings): no other has the same. It is
	// part of the stored state.
	Space byte
	// ArenaBytes is about what all open buckets may hold in RAM, 0 for no limit: it decides how large the chunks of
	// their arenas are. To stay below it is the caller's doing (StartSpill).
	ArenaBytes int64
}

func (o Options) validate() error {
	if o.Width <= 0 {
		return fmt.Errorf("bucket width %d ms: must be positive", o.Width)
	}
	if o.Slots < 2 || o.Slots > MaxSlots {
		return fmt.Errorf("%d buckets: must be 2 to %d", o.Slots, MaxSlots)
	}
	return checkSpace(o.Space)
}

func checkSpace(space byte) error {
	if space != 0 && (space < 'a' || space > 'z' || space == 'b') {
		return fmt.Errorf("ring %q in its store: must be a letter from a to z, and not b, which is the first", space)
	}
	return nil
}

// Ring is the buckets of one task, or one of several kinds of them. It belongs to one goroutine.
type Ring struct {
	opt     Options
	store   Backend
	slots   []*Bucket
	touched []*Bucket
	pool    *chunkPool
	floor   int64 // epochs below are dropped
	write   Write
	lookups Lookups
	more    Lookups        // of ReadChunk
	prefix  string         // of its keys in the meta family
	all     *Rings         // of the store
	missing map[int64]bool // epochs that Apply passed over
	missed  []int64        // of these, those that the batch in progress was the first to miss

	journalBytes int64 // since the last cut
	lastAppended int   // bytes of the last commit
	lastUsed     int
	lastSync     time.Time
	committed    uint64
	pending      int // live rows of all buckets
}

// ErrDisplaces is wrapped when an entry's slot holds another bucket: the caller must drop that one first.
var ErrDisplaces = errors.New("slot in use by another bucket")

// Width is the bucket width in ms; Slots the size of the ring.
func (r *Ring) Width() int64 { return r.opt.Width }

// SyncMode is what it was opened with.
func (r *Ring) SyncMode() SyncMode { return r.opt.Sync }

// Slots is the size of the ring.
func (r *Ring) Slots() int { return r.opt.Slots }

// Floor is the lowest epoch that is not dropped.
func (r *Ring) Floor() int64 { return r.floor }

// Pending is the number of rows that wait.
func (r *Ring) Pending() int { return r.pending }

// Committed is the last batch that Commit wrote or Open found.
func (r *Ring) Committed() uint64 { return r.committed }

// DiskBytes and MemoryBytes are the store's, of all rings in it.
func (r *Ring) DiskBytes() int64 { return r.store.DiskBytes() }

// MemoryBytes is what the store itself keeps in RAM.
func (r *Ring) MemoryBytes() int64 { return r.store.MemoryBytes() }

// ArenaBytes is what the buckets in the ring and the pool of emptied chunks hold in RAM.
func (r *Ring) ArenaBytes() int64 {
	n := int64(len(r.pool.free)) * int64(r.pool.chunk)
	for _, b := range r.slots {
		if b != nil {
			n += b.ArenaBytes()
		}
	}
	return n
}

// EpochOf is the epoch of a time in ms.
func EpochOf(t, width int64) int64 {
	e := t / width
	if t%width < 0 {
		e--
	}
	return e
}

// SlotOf is the ring slot of an epoch.
func SlotOf(epoch int64, slots int) int {
	s := int(epoch % int64(slots))
	if s < 0 {
		s += slots
	}
	return s
}

// At returns the live bucket of an epoch, or nil.
func (r *Ring) At(epoch int64) *Bucket {
	if b := r.slots[SlotOf(epoch, r.opt.Slots)]; b != nil && b.Epoch == epoch {
		return b
	}
	return nil
}

// AtSlot returns the live bucket in a slot, or nil.
func (r *Ring) AtSlot(slot int) *Bucket { return r.slots[slot] }

// Bucket returns the open bucket of an epoch and makes it if there is none. It fails if the epoch is below the
// floor, sealed, or if its slot is taken (ErrDisplaces): the caller's gate rules all three out.
func (r *Ring) Bucket(epoch int64) (*Bucket, error) {
	slot := SlotOf(epoch, r.opt.Slots)
	b := r.slots[slot]
	switch {
	case b == nil && epoch < r.floor:
		return nil, fmt.Errorf("bucket %d is below the floor %d", epoch, r.floor)
	case b == nil:
		b = r.newBucket(epoch)
		r.slots[slot] = b
	case b.Epoch != epoch:
		return nil, fmt.Errorf("bucket %d: %w (%d)", epoch, ErrDisplaces, b.Epoch)
	case b.state != Open:
		return nil, fmt.Errorf("bucket %d is sealed and takes no entry", epoch)
	}
	return b, nil
}

func (r *Ring) newBucket(epoch int64) *Bucket {
	return &Bucket{Epoch: epoch, Slot: SlotOf(epoch, r.opt.Slots), keep: r.opt.KeepUsed, pool: r.pool, arena: arena{pool: r.pool}}
}

func (r *Ring) touch(b *Bucket) {
	if !b.touched {
		b.touched = true
		b.mark = b.arena.mark()
		r.touched = append(r.touched, b)
	}
}

// Append copies an entry into an open bucket and returns its row, counted from the bucket's first.
func (r *Ring) Append(b *Bucket, hash uint64, e *Entry) (uint32, error) {
	if err := checkEntrySize(e); err != nil {
		return 0, err
	}
	r.touch(b)
	row := b.base + b.arena.append(hash, e)
	r.grown(b)
	return row, nil
}

// grown accounts for one more row.
func (r *Ring) grown(b *Bucket) {
	b.rows++
	b.live++
	r.pending++
	if int(b.rows) > len(b.used)*64 {
		b.used = append(b.used, 0)
	}
}

// Use marks a row as used; false if it was already. Without KeepUsed it has ended with that.
func (r *Ring) Use(b *Bucket, row uint32) bool {
	if b.Used(row) {
		return false
	}
	r.touch(b)
	b.log = append(b.log, row)
	r.setUsed(b, row)
	return true
}

// End marks a row as over, used or not: it no longer waits, a seal leaves it out, and Ended says that it answers no B. False
// if it was over already. Without KeepUsed it is Use.
func (r *Ring) End(b *Bucket, row uint32) bool {
	if !r.opt.KeepUsed {
		return r.Use(b, row)
	}
	if b.Ended(row) {
		return false
	}
	r.touch(b)
	b.endLog = append(b.endLog, row)
	r.setEnded(b, row)
	return true
}

func (r *Ring) setUsed(b *Bucket, row uint32) {
	b.used[row>>6] |= 1 << (row & 63)
	b.bitsDirty = true
	if !r.opt.KeepUsed {
		b.live--
		r.pending--
	}
}

// setEnded is for rings with KeepUsed.
func (r *Ring) setEnded(b *Bucket, row uint32) {
	b.ended.set(row, len(b.used))
	b.bitsDirty = true
	b.live--
	r.pending--
}

func (r *Ring) unUse(b *Bucket, row uint32) {
	b.used.clear(row)
	if !r.opt.KeepUsed {
		b.live++
		r.pending++
	}
}

// Undo goes back to the last commit.
func (r *Ring) Undo() {
	r.all.encoded = false
	r.undoMissed()
	for _, b := range r.touched {
		for _, row := range b.log {
			r.unUse(b, row)
		}
		for _, row := range b.endLog {
			b.ended.clear(row)
		}
		b.live += len(b.endLog)
		r.pending += len(b.endLog)
		if b.state == Open {
			gone := b.arena.rows() - b.mark.rows
			b.arena.truncate(b.mark)
			b.rows -= uint32(gone)
			b.live -= gone
			r.pending -= gone
			b.used = b.used[:words(b.rows)]
			b.ended = b.ended[:min(len(b.ended), len(b.used))]
			if b.rows == 0 {
				b.arena.release()
				r.slots[b.Slot] = nil
			}
		}
		b.endBatch()
	}
	r.touched = r.touched[:0]
}

func (b *Bucket) endBatch() {
	b.log, b.endLog = b.log[:0], b.endLog[:0]
	b.touched = false
}

// Commit is Rings.Commit of a ring that has its store to itself.
func (r *Ring) Commit(batch uint64, record []byte) error {
	if len(r.all.rings) > 1 {
		return fmt.Errorf("batch %d: one of %d rings of a store cannot commit alone", batch, len(r.all.rings))
	}
	return r.all.Commit(batch, record)
}

// begin starts a write.
func (r *Ring) begin() *Write {
	r.write.reset()
	r.write.Space = r.opt.Space
	return &r.write
}

// journal makes the record of what the batch did, in the ring's write, if there is none yet.
func (r *Ring) journal() *Write {
	w := &r.write
	if r.all.encoded {
		return w
	}
	r.begin()
	uses := 0
	for _, b := range r.touched {
		w.Record = appendSections(w.Record, b)
		uses += len(b.log) + len(b.endLog)
	}
	r.lastUsed = 4 * uses
	r.lastAppended = max(len(w.Record)-r.lastUsed, 0)
	return w
}

// endBatch takes note that what journal made is written.
func (r *Ring) endBatch(batch uint64) {
	for _, b := range r.touched {
		if b.first == 0 && b.arena.rows() > 0 {
			b.first = batch
		}
		b.endBatch()
	}
	r.touched, r.missed = r.touched[:0], r.missed[:0]
	r.committed = batch
	r.journalBytes += int64(len(r.write.Record))
}

// Maintain keeps the journal short between two seals. Call between batches, when the last one is committed: what
// it writes folds in every batch so far.
func (r *Ring) Maintain() error {
	if r.all.err != nil || r.journalBytes <= checkpointBytes {
		return r.all.err
	}
	r.checkpoint(r.begin())
	return r.flushBetween(failpoint.CutBefore, failpoint.CutAfter)
}

// JournalBytes is what the last Commit journaled: bytes of appended entries, and of used and ended rows.
func (r *Ring) JournalBytes() (appended, used int) { return r.lastAppended, r.lastUsed }

// WriteCommit stores the commit record alone: with several tasks, after each of them has journaled the batch.
func (r *Ring) WriteCommit(record []byte) error {
	r.begin().put(metaCommit, record)
	return r.flushBetween(failpoint.CommitBefore, failpoint.CommitAfter)
}

// flush writes r.write.
func (r *Ring) flush() error { return r.flushBetween("", "") }

// flushBetween is flush with a failpoint before and after it.
func (r *Ring) flushBetween(before, after string) error { return r.all.write(&r.write, before, after) }

// SyncJob makes everything that was written before it outlive a power cut. Run may be called from any goroutine, once.
type SyncJob struct{ store Backend }

// Run syncs the log.
func (j *SyncJob) Run() error {
	if err := j.store.SyncLog(); err != nil {
		return fmt.Errorf("making the log durable: %w", err)
	}
	return nil
}

// StartSync returns a job once a second in mode SyncInterval, else nil: a sync of a disk takes up to some tens of
// milliseconds, which is nothing for the task's goroutine.
func (r *Ring) StartSync(now time.Time) *SyncJob {
	if r.opt.Sync != SyncInterval || now.Sub(r.lastSync) < syncEvery {
		return nil
	}
	r.lastSync = now
	return &SyncJob{store: r.store}
}

// Close closes the store. What was not committed is forgotten. Of several rings of a store the first one's does it, and that of
// another nothing.
func (r *Ring) Close() error {
	if r != r.all.rings[0] {
		return nil
	}
	return r.store.Close()
}
