package buckets

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"joinbench/internal/failpoint"
)

// DropJob removes a dropped bucket's files. Run may be called from any goroutine, once.
type DropJob struct {
	Epoch    int64
	Rows     int64 // that the bucket held
	Left     int64 // of them, those that were not over (Bucket.Live)
	store    Backend
	families []Family
	trim     trim
}

// trim says what RocksDB's log is to be rid of when a bucket has gone. A log file stays until every family that has
// something in it has been flushed, and the meta family fills its buffer once in weeks: so the last 96 MiB would lie on
// the disk although nothing waits any more.
type trim struct{ meta, journal bool }

const (
	// trimAfter bytes of journal a trim is worth its syncs.
	trimAfter = 16 << 20
	// trimLive is how much of the journal may still be needed: to flush writes it once more.
	trimLive = 4 << 20
)

// dueTrim decides it by what was journaled since the last one.
func (r *Ring) dueTrim() (t trim) {
	live := int64(0)
	for _, ring := range r.all.rings {
		for _, b := range ring.slots {
			if b != nil {
				live += b.OpenBytes() + b.PartBytes()
			}
		}
	}
	all := r.all
	t.meta = all.sinceMeta >= trimAfter
	t.journal = all.sinceJournal >= trimAfter && live <= trimLive
	if t.meta || t.journal {
		t.meta, all.sinceMeta = true, 0
	}
	if t.journal {
		all.sinceJournal = 0
	}
	return t
}

// HasFiles is false for a bucket that has no run.
func (j *DropJob) HasFiles() bool { return len(j.families) > 0 }

// Run drops the families, and now and then shortens the log.
func (j *DropJob) Run() error {
	for _, f := range j.families {
		err := failpoint.Hit(failpoint.DropBefore)
		if err == nil {
			err = j.store.DropFamily(f)
		}
		if err == nil {
			err = failpoint.Hit(failpoint.DropAfter)
		}
		if err != nil {
			return fmt.Errorf("dropping bucket %d: %w", j.Epoch, err)
		}
	}
	if j.trim.meta {
		if err := j.store.Trim(j.trim.journal); err != nil {
			return fmt.Errorf("shortening the log: %w", err)
		}
	}
	return nil
}

// DropBelow takes every bucket under an epoch out of the ring, in order of time, and raises the floor: from here
// on nothing asks them. It is durable when it returns; the jobs remove the files. Call between batches.
func (r *Ring) DropBelow(floor int64) ([]*DropJob, error) {
	if r.all.err != nil || floor <= r.floor {
		return nil, r.all.err
	}
	var gone []*Bucket
	for _, b := range r.slots {
		if b != nil && b.Epoch < floor {
			gone = append(gone, b)
		}
	}
	r.floor = floor
	maps.DeleteFunc(r.missing, func(epoch int64, _ bool) bool { return epoch < floor })
	slices.SortFunc(gone, func(x, y *Bucket) int { return cmp.Compare(x.Epoch, y.Epoch) })
	r.begin()
	r.write.put(r.prefix+metaFloor, binary.LittleEndian.AppendUint64(nil, uint64(floor)))
	jobs := make([]*DropJob, 0, len(gone))
	for _, b := range gone {
		jobs = append(jobs, r.drop(b))
	}
	if len(jobs) > 0 {
		r.checkpoint(&r.write) // what only they needed of the journal goes too
		jobs[len(jobs)-1].trim = r.dueTrim()
	} else {
		r.putFolded(&r.write)
	}
	if err := r.flushBetween(failpoint.FloorBefore, failpoint.FloorAfter); err != nil {
		return nil, err // the marks may still be there, and want their families
	}
	return jobs, nil
}

func (r *Ring) drop(b *Bucket) *DropJob {
	r.slots[b.Slot] = nil
	r.pending -= b.live
	b.gone = true
	b.arena.release() // what a job is writing is released when that has ended
	if b.state == Sealed || b.done > 0 {
		r.write.delete(r.prefix + markKey(b.Epoch))
		r.write.delete(r.prefix + bitsKey(b.Epoch))
	}
	j := &DropJob{Epoch: b.Epoch, Rows: b.Entries(), Left: int64(b.live), store: r.store}
	for _, run := range b.runs {
		j.families = append(j.families, run.family)
	}
	return j
}
