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
	chunkEntries = ChunkEntries
	chunkBytes   = 256 << 10 // or so many bytes: large bodies are not read 64 at a time
)

// ChunkEntries is how many entries a value holds at most (decision 3): what one read of a Lookup may bring.
const ChunkEntries = 64

// SealJob writes rows of a bucket as a run: all that are left when the bucket is sealed, or those so far when it is
// spilled. Run may be called from any goroutine, once.
type SealJob struct {
	bucket *Bucket
	store  Backend
	part   *writing
	over   bitmap // rows to leave out, as of the start; those that are over later are only in the bitmap
	name   RunName
	final  bool // the bucket is sealed with it

	older []Family

	// Hashes is filled by Run: the distinct hashes of what was written, ascending; the caller's to keep. Older are those
	// of the bucket's runs before it, each likewise.
	Hashes []uint64
	Older  [][]uint64
	run    *run // nil: there was nothing to write
	ok     bool // Run ended without an error
}

// Bucket is the one whose rows are written.
func (j *SealJob) Bucket() *Bucket { return j.bucket }

// Base is the row of the first that is to be written.
func (j *SealJob) Base() uint32 { return j.part.base }

// RowsOnly leaves Older out of what Run does, which reads the hashes of earlier runs again: for buckets without a filter.
func (j *SealJob) RowsOnly() *SealJob {
	j.older = nil
	return j
}

// Wrote says that there was something to write.
func (j *SealJob) Wrote() bool { return j.run != nil }

// StartSeal closes a bucket for entries. Nothing of the batch in progress may be in it, and no other run of it may be
// in writing: call between batches.
func (r *Ring) StartSeal(b *Bucket) *SealJob {
	b.state = Sealing
	return r.startRun(b, true)
}

// StartSpill sets apart what an open bucket has so far, which goes on taking entries: it frees RAM early. Call as
// StartSeal.
func (r *Ring) StartSpill(b *Bucket) *SealJob { return r.startRun(b, false) }

func (r *Ring) startRun(b *Bucket, final bool) *SealJob {
	if b.part == nil { // else the last attempt failed, and its rows are still set apart
		b.freeze(r.committed)
	}
	j := &SealJob{bucket: b, store: r.store, part: b.part, over: b.snapshot(b.over()), name: RunName{r.opt.Space, b.Epoch, len(b.runs)}, final: final}
	for _, old := range b.runs {
		j.older = append(j.older, old.family)
	}
	return j
}

// Run sorts the rows, writes the SST and ingests it. A bucket whose rows are all over gets no family. After an
// error the bucket goes on answering from RAM.
func (j *SealJob) Run() error {
	rows := j.sorted()
	if len(rows) == 0 {
		j.ok = true
		return nil
	}
	j.Hashes = make([]uint64, 0, len(rows))
	for i, r := range rows {
		if i == 0 || rows[i-1].hash != r.hash {
			j.Hashes = append(j.Hashes, r.hash)
		}
	}
	family, stats, err := j.store.WriteRun(j.name, &runSource{part: j.part, rows: rows})
	if err != nil {
		return fmt.Errorf("sealing bucket %d: %w", j.bucket.Epoch, err)
	}
	stats.Entries = int64(len(rows))
	j.run = &run{family, stats}
	for _, f := range j.older {
		hashes, err := j.store.ScanHashes(f, nil)
		if err != nil {
			return fmt.Errorf("reading the hashes of bucket %d: %w", j.bucket.Epoch, err)
		}
		j.Older = append(j.Older, hashes)
	}
	j.ok = true
	return nil
}

type sealRow struct {
	hash uint64
	at   uint32 // in the arena
}

func (j *SealJob) sorted() []sealRow {
	a := &j.part.arena
	rows := make([]sealRow, 0, a.rows())
	for at, hash := range a.hashes {
		if row := j.part.base + uint32(at); !j.over.has(row) {
			rows = append(rows, sealRow{hash, uint32(at)})
		}
	}
	slices.SortFunc(rows, func(x, y sealRow) int {
		switch {
		case x.hash != y.hash:
			return cmp.Compare(x.hash, y.hash)
		default:
			return cmp.Or(compareEntries(a.entry(x.at), a.entry(y.at)), cmp.Compare(x.at, y.at))
		}
	})
	return rows
}

// runSource cuts sorted rows into chunks: one key for up to 64 entries of a hash.
type runSource struct {
	part  *writing
	rows  []sealRow
	chunk uint32
	key   [KeySize]byte
	value []byte
	near  int // rows that were touched and not taken
	sink  byte
}

// touchAhead rows are read in one go before they are copied one by one: sorted by hash they lie anywhere in the arena, and
// these reads do not wait for each other.
const touchAhead = 64

func (s *runSource) touch() {
	s.near = min(touchAhead, len(s.rows))
	for _, r := range s.rows[:s.near] {
		s.sink ^= s.part.arena.touch(r.at)
	}
}

func (s *runSource) Size() int64 {
	return s.part.arena.filled() + int64(len(s.rows))*(KeySize+valueHeader+4)
}

func (s *runSource) Next() (key, value []byte, ok bool) {
	if len(s.rows) == 0 {
		return nil, nil, false
	}
	if s.near <= 0 {
		s.touch()
	}
	hash, n := s.rows[0].hash, 0
	s.value = append(s.value[:0], valueVersion, 0, 0, 0)
	for n < len(s.rows) && s.rows[n].hash == hash && n < chunkEntries && len(s.value) < chunkBytes {
		s.value = binary.LittleEndian.AppendUint32(s.value, s.part.base+s.rows[n].at)
		s.value = append(s.value, s.part.arena.sized(s.rows[n].at)...)
		n++
	}
	binary.LittleEndian.PutUint16(s.value[2:], uint16(n))
	putKey(s.key[:], hash, s.chunk)
	s.chunk = 0
	if n < len(s.rows) && s.rows[n].hash == hash {
		s.value[1] |= valueMore
		s.chunk = binary.BigEndian.Uint32(s.key[8:]) + 1
	}
	s.rows = s.rows[n:]
	s.near -= n
	return s.key[:], s.value, true
}

// FinishSeal swaps the run in: from here on its rows are answered from the store. It writes the bucket's mark, the
// bitmaps and the journal cut in one batch. If the bucket was dropped meanwhile it returns a DropJob for the run
// instead. Call between batches, when the last one is committed.
func (r *Ring) FinishSeal(j *SealJob) (*DropJob, error) {
	b := j.bucket
	if r.all.err != nil {
		return nil, r.all.err
	}
	if b.gone {
		b.part.arena.release()
		if j.run == nil {
			return nil, nil
		}
		return &DropJob{store: r.store, families: []Family{j.run.family}, Epoch: b.Epoch}, nil
	}
	if !j.ok {
		return nil, fmt.Errorf("bucket %d: its seal did not succeed", b.Epoch)
	}
	part := b.part
	if j.run != nil {
		b.runs = append(b.runs, *j.run)
	}
	b.done, b.upTo = part.base+uint32(part.arena.rows()), part.upTo
	b.part = nil
	if j.final {
		b.state = Sealed
	}
	r.begin()
	r.write.put(r.prefix+markKey(b.Epoch), b.encodeMark())
	b.bitsDirty = true // there are rows in it that no bitmap on disk has yet
	r.checkpoint(&r.write)
	if err := r.flushBetween(failpoint.MarkBefore, failpoint.MarkAfter); err != nil {
		return nil, err
	}
	part.arena.release()
	return nil, nil
}

// checkpoint adds the bitmaps that changed and cuts the journal to what arenas still need.
func (r *Ring) checkpoint(w *Write) {
	cut := r.committed + 1
	for _, b := range r.slots {
		if b == nil {
			continue
		}
		if n := b.needs(); n != 0 {
			cut = min(cut, n)
		}
		if b.bitsDirty && b.done > 0 {
			w.put(r.prefix+bitsKey(b.Epoch), b.encodeBits())
			b.bitsDirty = false
		}
	}
	w.CutBelow = cut
	r.putFolded(w)
	r.journalBytes = 0
}
