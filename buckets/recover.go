package buckets

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// Keys of the meta family.
const (
	// Of the store.
	metaCommit  = "commit"  // the caller's commit record
	metaDrained = "drained" // present: the input ended and everything was closed

	// Of a ring, behind its prefix (spacePrefix).
	metaHeader = "header" // format, width, slots
	metaFloor  = "floor"  // i64: epochs below are dropped
	bucketMark = "mark."  // + epoch: what of a bucket is in runs
	rowBits    = "bits."  // + epoch: which of these rows are used, and which have ended

	// Of stores whose commit record is in another one, u64 each; see Has.
	metaJournaled = "journaled" // the last batch that Commit wrote
	metaFolded    = "folded"    // the last batch whose effects cannot be cut off any more
)

// A mark, format version 4: u8 version, u8 flags (bit 0: sealed), u32 rows below which all are in runs, u64 last batch
// whose rows these are, u16 runs, and for each run u64 entries, u64 bytes, u64 xxh3 of its file. Bits are one bitmap of
// these rows in u64 words, those that are used, and if any ever ended (KeepUsed) a second one behind it, those that have.
// Version 1 knew one run a bucket, version 2 no sums, version 3 one bitmap and no counts in entries.
//
// A state, version 5, has journal records of version 2; in version 4 they were of version 1.
const (
	stateVersion = 5
	markVersion  = 4
	headerSize   = 1 + 8 + 2
	markHeader   = 1 + 1 + 4 + 8 + 2
	markRun      = 8 + 8 + 8
	markSealed   = 1 << 0
)

// spacePrefix stands before the keys of a ring that is not the first of its store.
func spacePrefix(space byte) string {
	if space == 0 {
		return ""
	}
	return string(rune(space)) + "."
}

func markKey(epoch int64) string { return bucketMark + strconv.FormatInt(epoch, 10) }
func bitsKey(epoch int64) string { return rowBits + strconv.FormatInt(epoch, 10) }

func (b *Bucket) encodeMark() []byte {
	flags := byte(0)
	if b.state == Sealed {
		flags |= markSealed
	}
	m := binary.LittleEndian.AppendUint32([]byte{markVersion, flags}, b.done)
	m = binary.LittleEndian.AppendUint64(m, b.upTo)
	m = binary.LittleEndian.AppendUint16(m, uint16(len(b.runs)))
	for _, r := range b.runs {
		m = binary.LittleEndian.AppendUint64(m, uint64(r.stats.Entries))
		m = binary.LittleEndian.AppendUint64(m, uint64(r.stats.Bytes))
		m = binary.LittleEndian.AppendUint64(m, r.stats.Sum)
	}
	return m
}

// decodeMark fills a bucket that has nothing but epoch and slot; the runs lack their families.
func (b *Bucket) decodeMark(m []byte) error {
	if len(m) < markHeader || m[0] != markVersion {
		return errors.New("no mark of this version")
	}
	if m[1]&^markSealed != 0 {
		return fmt.Errorf("flags %#x", m[1])
	}
	if m[1]&markSealed != 0 {
		b.state = Sealed
	}
	b.done = binary.LittleEndian.Uint32(m[2:])
	b.upTo = binary.LittleEndian.Uint64(m[6:])
	n := int(binary.LittleEndian.Uint16(m[14:]))
	if m = m[markHeader:]; len(m) != n*markRun {
		return fmt.Errorf("%d bytes for %d runs", len(m), n)
	}
	total := int64(0)
	for ; len(m) > 0; m = m[markRun:] {
		stats := RunStats{Entries: int64(binary.LittleEndian.Uint64(m)), Bytes: int64(binary.LittleEndian.Uint64(m[8:])),
			Sum: binary.LittleEndian.Uint64(m[16:])}
		if stats.Entries < 1 || stats.Entries > int64(b.done)-total {
			return fmt.Errorf("a run of %d rows, the bucket has %d", stats.Entries, b.done)
		}
		total += stats.Entries
		b.runs = append(b.runs, run{stats: stats})
	}
	b.rows, b.base = b.done, b.done
	return nil
}

// encodeBits is the bitmaps of the rows below done; what is above comes back from the journal.
func (b *Bucket) encodeBits() []byte {
	n := words(b.done) * 8
	if len(b.ended) == 0 {
		return appendBits(make([]byte, 0, n), b.used, b.done)
	}
	return appendBits(appendBits(make([]byte, 0, 2*n), b.used, b.done), b.ended, b.done)
}

// CommitRecord reads the caller's commit record of a store, nil if there is none. Before NewRing.
func CommitRecord(store Backend) ([]byte, error) {
	v, ok, err := store.Meta(metaCommit)
	if !ok {
		return nil, err
	}
	return slices.Clone(v), err
}

// Drained says whether a store was marked by MarkDrained.
func Drained(store Backend) (bool, error) {
	_, ok, err := store.Meta(metaDrained)
	return ok, err
}

// MarkDrained says that the input ended and everything is closed: the directory is not resumed (rule 15).
func (r *Ring) MarkDrained() error {
	r.begin().put(metaDrained, []byte{1})
	return r.flush()
}

func (r *Ring) recoverHeader() error {
	want := binary.LittleEndian.AppendUint64([]byte{stateVersion}, uint64(r.opt.Width))
	want = binary.LittleEndian.AppendUint16(want, uint16(r.opt.Slots))
	got, ok, err := r.store.Meta(r.prefix + metaHeader)
	if err != nil {
		return err
	}
	if !ok && r.opt.Space != 0 && r.committed != 0 {
		return fmt.Errorf("the state has no ring %q: another configuration made it. Go on with that one, or start with an empty directory", r.opt.Space)
	}
	if !ok {
		r.begin().put(r.prefix+metaHeader, want)
		return r.flush()
	}
	if len(got) != headerSize || got[0] != stateVersion {
		return fmt.Errorf("state of another format: this build reads version %d, the state has %s. Start with an empty directory, or go on with the build that made it", stateVersion, formatOf(got))
	}
	width, slots := int64(binary.LittleEndian.Uint64(got[1:])), int(binary.LittleEndian.Uint16(got[9:]))
	if width != r.opt.Width || slots != r.opt.Slots {
		return fmt.Errorf("the state has %d buckets of %d ms, the configuration %d of %d ms: set state.buckets and state.width to what it has, or start with an empty directory",
			slots, width, r.opt.Slots, r.opt.Width)
	}
	return nil
}

// formatOf says the version in a header.
func formatOf(header []byte) string {
	if len(header) != headerSize {
		return "no header that is one"
	}
	return fmt.Sprintf("version %d", header[0])
}

func (r *Ring) recoverFloor() error {
	v, ok, err := r.store.Meta(r.prefix + metaFloor)
	if err != nil || !ok {
		return err
	}
	if len(v) != 8 {
		return fmt.Errorf("damaged floor of %d bytes", len(v))
	}
	r.floor = int64(binary.LittleEndian.Uint64(v))
	return nil
}

// recoverRuns takes over the families that a mark names and drops the others.
func (r *Ring) recoverRuns() error {
	families := map[RunName]Family{}
	for _, f := range r.store.Families() {
		if name := f.Name(); name.Space == r.opt.Space {
			families[name] = f
		}
	}
	err := r.store.ScanMeta(r.prefix+bucketMark, func(key string, value []byte) error {
		epoch, err := markedEpoch(r.prefix+bucketMark, key)
		if err != nil {
			return err
		}
		if epoch < r.floor {
			return fmt.Errorf("bucket %d has a mark, and is below the floor %d", epoch, r.floor)
		}
		b := r.newBucket(epoch)
		if err := b.decodeMark(value); err != nil {
			return fmt.Errorf("damaged mark %q: %w", key, err)
		}
		for i := range b.runs {
			name := RunName{r.opt.Space, epoch, i}
			if b.runs[i].family = families[name]; b.runs[i].family == nil {
				return fmt.Errorf("run %d of bucket %d is marked as written, and its family is not there", i, epoch)
			}
			delete(families, name)
		}
		return r.recoverBits(b)
	})
	if err == nil {
		err = r.strayBitmaps()
	}
	if err != nil {
		return err
	}
	for _, stray := range families {
		if err := r.store.DropFamily(stray); err != nil {
			return fmt.Errorf("dropping the stray family of bucket %d: %w", stray.Name().Epoch, err)
		}
	}
	return nil
}

func (r *Ring) recoverBits(b *Bucket) error {
	if other := r.slots[b.Slot]; other != nil {
		return fmt.Errorf("buckets %d and %d claim one slot", other.Epoch, b.Epoch)
	}
	v, _, err := r.store.Meta(r.prefix + bitsKey(b.Epoch))
	if err != nil {
		return err
	}
	if err := b.readBits(v); err != nil {
		return err
	}
	r.pending += b.live
	r.slots[b.Slot] = b
	return nil
}

// recoverJournal replays what is committed into open buckets and bitmaps.
func (r *Ring) recoverJournal() error {
	var batch uint64
	has, err := Journaled(r.store)
	if err != nil {
		return err
	}
	later := has.Last > r.committed
	err = r.store.ScanJournal(r.opt.Space, func(n uint64, record []byte) error {
		if n > r.committed {
			later = true
			return nil
		}
		batch = n
		r.journalBytes += int64(len(record))
		return readJournal(record, &replay{ring: r, batch: n})
	})
	if err != nil {
		return fmt.Errorf("journal of batch %d: %w", batch, err)
	}
	for _, b := range r.slots {
		if b != nil {
			b.mark = b.arena.mark()
		}
	}
	if !later {
		return nil
	}
	r.begin()
	r.write.CutAbove, r.write.CutsAbove = r.committed, true
	r.write.putNumber(metaJournaled, r.committed)
	if err := r.flush(); err != nil {
		return err
	}
	// The numbers above will be given to other batches. After a power cut that took this cut and these back, what was here
	// before would pass for them.
	return (&SyncJob{store: r.store}).Run()
}

// replay applies journal content: appends that no run has, uses and ends to any bucket that is left.
type replay struct {
	ring  *Ring
	batch uint64
	into  *Bucket // of the section
}

func (p *replay) appends(epoch int64, first uint32, n int) (skip bool, err error) {
	r := p.ring
	b := r.At(epoch)
	switch {
	case epoch < r.floor:
		return true, nil
	case b != nil && (b.state == Sealed || p.batch <= b.upTo):
		if first+uint32(n) > b.done {
			return false, fmt.Errorf("%w: rows %d to %d of bucket %d, whose runs end at %d", ErrJournal, first, first+uint32(n), epoch, b.done)
		}
		return true, nil
	}
	if p.into, err = r.Bucket(epoch); err != nil {
		return false, fmt.Errorf("%w: %w", ErrJournal, err)
	}
	if err := p.into.continues(first); err != nil {
		return false, err
	}
	if p.into.first == 0 {
		p.into.first = p.batch
	}
	return false, nil
}

// continues checks that a row is the bucket's next.
func (b *Bucket) continues(first uint32) error {
	if first != b.rows {
		return fmt.Errorf("%w: bucket %d has %d rows, and row %d comes next", ErrJournal, b.Epoch, b.rows, first)
	}
	return nil
}

func (p *replay) appended(hash uint64, entry []byte) {
	p.into.arena.appendRaw(hash, entry)
	p.ring.grown(p.into)
}

func (p *replay) used(epoch int64, row uint32) error {
	b, err := p.ring.bucketOf(epoch, row)
	if b != nil && !b.Used(row) {
		p.ring.setUsed(b, row)
	}
	return err
}

// errNoEnds is about a row that ended in a ring without KeepUsed.
var errNoEnds = fmt.Errorf("%w: a row that ended, in a ring whose rows are used up", ErrJournal)

func (p *replay) ended(epoch int64, row uint32) error {
	if !p.ring.opt.KeepUsed {
		return errNoEnds
	}
	b, err := p.ring.bucketOf(epoch, row)
	if b != nil && !b.Ended(row) {
		p.ring.setEnded(b, row)
	}
	return err
}

// bucketOf is the bucket of a row, nil if it is not there.
func (r *Ring) bucketOf(epoch int64, row uint32) (*Bucket, error) {
	b := r.At(epoch)
	if b == nil || epoch < r.floor {
		return nil, nil
	}
	if row >= b.rows {
		return nil, fmt.Errorf("%w: row %d of bucket %d, which has %d", ErrJournal, row, epoch, b.rows)
	}
	return b, nil
}
