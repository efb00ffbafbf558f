package buckets

import (
	"fmt"
	"maps"
	"slices"
)

// Apply does to the ring what a journal record says (Rings.Journal), which another ring made, or this one in an earlier life: as
// operations of the batch in progress, so that Commit journals it again and Undo takes it back, also when Apply failed half-way.
// Records of a ring are applied in the order in which they were made. The ring copies what it needs of the bytes. A caller that
// has indexes fills them from Bucket.Hashes. Errors wrap ErrJournal.
//
// The oldest records may be missing. What they held of a bucket cannot be had any more, so such a bucket is not made: appends to it,
// which do not begin with row 0, and its uses and ends are passed over. It must be over before the records end (Missing).
// Epochs below the floor are passed over as well.
func (r *Ring) Apply(record []byte) error { return readJournal(record, &applying{ring: r}) }

// Missing lists the epochs of buckets that Apply passed over, and that the floor has not, in order: none when every bucket of which
// there were records is whole.
func (r *Ring) Missing() []int64 { return slices.Sorted(maps.Keys(r.missing)) }

// applying does what a record says.
type applying struct {
	ring *Ring
	into *Bucket // of the section
}

func (p *applying) appends(epoch int64, first uint32, _ int) (skip bool, err error) {
	r := p.ring
	switch {
	case epoch < r.floor:
		return true, nil
	case r.At(epoch) == nil && first > 0:
		r.miss(epoch)
		return true, nil
	}
	if p.into, err = r.Bucket(epoch); err != nil {
		return false, fmt.Errorf("%w: %w", ErrJournal, err)
	}
	r.touch(p.into) // before anything fails: Undo is to remove one that was made
	return false, p.into.continues(first)
}

// miss notes a bucket whose beginning is missing.
func (r *Ring) miss(epoch int64) {
	if r.missing[epoch] {
		return
	}
	if r.missing == nil {
		r.missing = map[int64]bool{}
	}
	r.missing[epoch] = true
	r.missed = append(r.missed, epoch)
}

// undoMissed forgets what the batch in progress missed.
func (r *Ring) undoMissed() {
	for _, epoch := range r.missed {
		delete(r.missing, epoch)
	}
	r.missed = r.missed[:0]
}

func (p *applying) appended(hash uint64, entry []byte) {
	p.into.arena.appendRaw(hash, entry)
	p.ring.grown(p.into)
}

func (p *applying) used(epoch int64, row uint32) error {
	b, err := p.bucketOf(epoch, row)
	if b != nil && !p.ring.Use(b, row) {
		return fmt.Errorf("%w: row %d of bucket %d is used twice", ErrJournal, row, epoch)
	}
	return err
}

func (p *applying) ended(epoch int64, row uint32) error {
	if !p.ring.opt.KeepUsed {
		return errNoEnds
	}
	b, err := p.bucketOf(epoch, row)
	if b != nil && !p.ring.End(b, row) {
		return fmt.Errorf("%w: row %d of bucket %d ends twice", ErrJournal, row, epoch)
	}
	return err
}

// bucketOf is Ring.bucketOf, and notes what is missing.
func (p *applying) bucketOf(epoch int64, row uint32) (*Bucket, error) {
	b, err := p.ring.bucketOf(epoch, row)
	if b == nil && err == nil && epoch >= p.ring.floor {
		p.ring.miss(epoch)
	}
	return b, err
}
