package buckets

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"joinbench/internal/failpoint"
)

// The value of a storage key, format version 1: u8 version, u8 flags (bit 0: more chunks follow), u16 count, then
// count × (u32 row, u32 length, entry), of one hash, in the order in which rule 2 prefers them: event time,
// partition, offset. So the first that fits is the one.
const (
	valueVersion = 1
	valueHeader  = 4
	valueMore    = 1 << 0
	chunkEntries = 64        // entries a value holds at most (decision 3)
	chunkBytes   = 256 << 10 // or so many bytes: large bodies are not read 64 at a time
)

// SealJob turns a sealing bucket's rows into a family. Run may be called from any goroutine, once.
type SealJob struct {
	bucket *Bucket
	store  Backend
	used   []uint64 // as of StartSeal; rows used later are only in the bitmap

	// Filled by Run.
	Hashes []uint64 // distinct hashes of what was written, ascending; the caller's to keep
	family Family
	stats  RunStats
	done   bool // without an error
}

// Bucket is the one that is being sealed.
func (j *SealJob) Bucket() *Bucket { return j.bucket }

// StartSeal closes a bucket for entries. Nothing of the batch in progress may be in it: call between batches.
func (r *Ring) StartSeal(b *Bucket) *SealJob {
	b.state = Sealing
	left := make([]uint64, len(b.used)) // rows that are left out
	if !r.opt.KeepUsed {
		copy(left, b.used)
	}
	return &SealJob{bucket: b, store: r.store, used: left}
}

// Run sorts the rows, writes the SST and ingests it. A bucket whose rows were all used gets no family. After an
// error the bucket goes on answering from RAM, and StartSeal may be called again.
func (j *SealJob) Run() error {
	rows := j.sorted()
	if len(rows) == 0 {
		j.done = true
		return nil
	}
	j.Hashes = make([]uint64, 0, len(rows))
	for i, r := range rows {
		if i == 0 || rows[i-1].hash != r.hash {
			j.Hashes = append(j.Hashes, r.hash)
		}
	}
	src := &runSource{arena: &j.bucket.arena, rows: rows}
	var err error
	j.family, j.stats, err = j.store.WriteRun(j.bucket.Epoch, src)
	if err != nil {
		return fmt.Errorf("sealing bucket %d: %w", j.bucket.Epoch, err)
	}
	j.stats.Entries = int64(len(rows))
	j.done = true
	return nil
}

type sealRow struct {
	hash uint64
	row  uint32
}

func (j *SealJob) sorted() []sealRow {
	a := &j.bucket.arena
	rows := make([]sealRow, 0, a.rows())
	for row, hash := range a.hashes {
		if j.used[row>>6]&(1<<(row&63)) == 0 {
			rows = append(rows, sealRow{hash, uint32(row)})
		}
	}
	slices.SortFunc(rows, func(x, y sealRow) int {
		switch {
		case x.hash != y.hash:
			return cmp.Compare(x.hash, y.hash)
		default:
			return cmp.Or(compareEntries(a.entry(x.row), a.entry(y.row)), cmp.Compare(x.row, y.row))
		}
	})
	return rows
}

// runSource cuts sorted rows into chunks: one key for up to 64 entries of a hash.
type runSource struct {
	arena *arena
	rows  []sealRow
	chunk uint32
	key   [KeySize]byte
	value []byte
}

func (s *runSource) Next() (key, value []byte, ok bool) {
	if len(s.rows) == 0 {
		return nil, nil, false
	}
	hash, n := s.rows[0].hash, 0
	s.value = append(s.value[:0], valueVersion, 0, 0, 0)
	for n < len(s.rows) && s.rows[n].hash == hash && n < chunkEntries && len(s.value) < chunkBytes {
		s.value = binary.LittleEndian.AppendUint32(s.value, s.rows[n].row)
		s.value = append(s.value, s.arena.sized(s.rows[n].row)...)
		n++
	}
	binary.LittleEndian.PutUint16(s.value[2:], uint16(n))
	putKey(s.key[:], hash, 0, s.chunk)
	s.chunk = 0
	if n < len(s.rows) && s.rows[n].hash == hash {
		s.value[1] |= valueMore
		s.chunk = binary.BigEndian.Uint32(s.key[10:]) + 1
	}
	s.rows = s.rows[n:]
	return s.key[:], s.value, true
}

// FinishSeal swaps the family in: from here on the bucket answers from the store. It writes the sealed mark,
// the bitmaps and the journal cut in one batch. If the bucket was dropped meanwhile it returns a DropJob for the
// family instead. Call between batches, when the last one is committed.
func (r *Ring) FinishSeal(j *SealJob) (*DropJob, error) {
	b := j.bucket
	if r.err != nil {
		return nil, r.err
	}
	if b.gone {
		b.arena.release()
		if j.family == nil {
			return nil, nil
		}
		return &DropJob{store: r.store, family: j.family, Epoch: b.Epoch}, nil
	}
	if !j.done {
		return nil, fmt.Errorf("bucket %d: its seal did not succeed", b.Epoch)
	}
	b.family, b.stats = j.family, j.stats
	b.state = Sealed
	r.write.reset()
	r.write.put(sealedKey(b.Epoch), b.encodeMark())
	r.checkpoint(&r.write)
	if err := r.flushBetween(failpoint.MarkBefore, failpoint.MarkAfter); err != nil {
		return nil, err
	}
	b.arena.release()
	return nil, nil
}

// checkpoint adds the bitmaps that changed and cuts the journal to what open buckets still need.
func (r *Ring) checkpoint(w *Write) {
	cut := r.committed + 1
	for _, b := range r.slots {
		switch {
		case b == nil:
		case b.state != Sealed:
			if b.first != 0 {
				cut = min(cut, b.first)
			}
		case b.bitsDirty:
			w.put(bitsKey(b.Epoch), b.encodeBits())
			b.bitsDirty = false
		}
	}
	w.CutBelow = cut
	r.journalBytes = 0
}

// DropJob removes a dropped bucket's files. Run may be called from any goroutine, once.
type DropJob struct {
	Epoch  int64
	store  Backend
	family Family
}

// HasFiles is false for a bucket that was never sealed, or sealed empty.
func (j *DropJob) HasFiles() bool { return j.family != nil }

// Run drops the family.
func (j *DropJob) Run() error {
	if j.family == nil {
		return nil
	}
	err := failpoint.Hit(failpoint.DropBefore)
	if err == nil {
		err = j.store.DropFamily(j.family)
	}
	if err == nil {
		err = failpoint.Hit(failpoint.DropAfter)
	}
	if err != nil {
		return fmt.Errorf("dropping bucket %d: %w", j.Epoch, err)
	}
	return nil
}

// DropBelow takes every bucket under an epoch out of the ring, in order of time, and raises the floor: from here
// on nothing asks them. It is durable when it returns; the jobs remove the files. Call between batches.
func (r *Ring) DropBelow(floor int64) ([]*DropJob, error) {
	if r.err != nil || floor <= r.floor {
		return nil, r.err
	}
	var gone []*Bucket
	for _, b := range r.slots {
		if b != nil && b.Epoch < floor {
			gone = append(gone, b)
		}
	}
	r.floor = floor
	slices.SortFunc(gone, func(x, y *Bucket) int { return cmp.Compare(x.Epoch, y.Epoch) })
	r.write.reset()
	r.write.put(metaFloor, binary.LittleEndian.AppendUint64(nil, uint64(floor)))
	jobs := make([]*DropJob, 0, len(gone))
	for _, b := range gone {
		jobs = append(jobs, r.drop(b))
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
	switch b.state {
	case Open:
		b.arena.release()
	case Sealed:
		r.write.delete(sealedKey(b.Epoch))
		r.write.delete(bitsKey(b.Epoch))
	}
	return &DropJob{Epoch: b.Epoch, store: r.store, family: b.family}
}
