package buckets

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Keys of the meta family.
const (
	metaHeader  = "header"  // format, width, slots
	metaCommit  = "commit"  // the caller's commit record
	metaFloor   = "floor"   // i64: epochs below are dropped
	metaDrained = "drained" // present: the input ended and everything was closed
	sealedMark  = "sealed."
	usedBits    = "bits."
)

const (
	stateVersion = 1
	headerSize   = 1 + 8 + 2
	markSize     = 1 + 4 + 2 + 8 + 8
)

func sealedKey(epoch int64) string { return sealedMark + strconv.FormatInt(epoch, 10) }
func bitsKey(epoch int64) string   { return usedBits + strconv.FormatInt(epoch, 10) }

// encodeMark is the sealed mark: version, rows ever appended, runs, entries and bytes written.
func (b *Bucket) encodeMark() []byte {
	m := binary.LittleEndian.AppendUint32([]byte{stateVersion}, b.rows)
	m = binary.LittleEndian.AppendUint16(m, 1)
	m = binary.LittleEndian.AppendUint64(m, uint64(b.stats.Entries))
	return binary.LittleEndian.AppendUint64(m, uint64(b.stats.Bytes))
}

func (b *Bucket) encodeBits() []byte {
	out := make([]byte, 0, len(b.used)*8)
	for _, w := range b.used {
		out = binary.LittleEndian.AppendUint64(out, w)
	}
	return out
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
	r.write.reset()
	r.write.put(metaDrained, []byte{1})
	return r.flush()
}

// NewRing puts the state of a store together as it was after the batch `committed` (0: an empty store): sealed
// buckets by their marks, open ones from the journal. Families without a mark are dropped, journal records of
// later batches too. The ring owns the store from here on, and Close closes it; after an error the store is
// still the caller's to close.
func NewRing(opt Options, store Backend, committed uint64) (*Ring, error) {
	if err := opt.validate(); err != nil {
		return nil, err
	}
	r := &Ring{opt: opt, store: store, slots: make([]*Bucket, opt.Slots), committed: committed,
		pool: &chunkPool{}, floor: -1 << 62}
	for _, step := range []func() error{r.recoverHeader, r.recoverFloor, r.recoverSealed, r.recoverJournal} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *Ring) recoverHeader() error {
	want := binary.LittleEndian.AppendUint64([]byte{stateVersion}, uint64(r.opt.Width))
	want = binary.LittleEndian.AppendUint16(want, uint16(r.opt.Slots))
	got, ok, err := r.store.Meta(metaHeader)
	if err != nil {
		return err
	}
	if !ok {
		r.write.reset()
		r.write.put(metaHeader, want)
		return r.flush()
	}
	if len(got) != headerSize || got[0] != stateVersion {
		return fmt.Errorf("state of another format: this build reads version %d", stateVersion)
	}
	width, slots := int64(binary.LittleEndian.Uint64(got[1:])), int(binary.LittleEndian.Uint16(got[9:]))
	if width != r.opt.Width || slots != r.opt.Slots {
		return fmt.Errorf("the state has %d buckets of %d ms, the configuration %d of %d ms: set state.buckets and state.width to what it has, or start with an empty directory",
			slots, width, r.opt.Slots, r.opt.Width)
	}
	return nil
}

func (r *Ring) recoverFloor() error {
	v, ok, err := r.store.Meta(metaFloor)
	if ok && len(v) == 8 {
		r.floor = int64(binary.LittleEndian.Uint64(v))
	}
	return err
}

// recoverSealed takes over the families that have a mark and drops the others.
func (r *Ring) recoverSealed() error {
	families := map[int64]Family{}
	for _, f := range r.store.Families() {
		families[f.Epoch()] = f
	}
	err := r.store.ScanMeta(sealedMark, func(key string, value []byte) error {
		epoch, err := strconv.ParseInt(strings.TrimPrefix(key, sealedMark), 10, 64)
		if err != nil || len(value) != markSize || value[0] != stateVersion {
			return fmt.Errorf("damaged mark %q", key)
		}
		b := &Bucket{Epoch: epoch, Slot: SlotOf(epoch, r.opt.Slots), state: Sealed, arena: arena{pool: r.pool},
			rows: binary.LittleEndian.Uint32(value[1:]), family: families[epoch]}
		b.stats.Entries = int64(binary.LittleEndian.Uint64(value[7:]))
		b.stats.Bytes = int64(binary.LittleEndian.Uint64(value[15:]))
		if b.family == nil && b.stats.Entries > 0 {
			return fmt.Errorf("bucket %d is marked as sealed, and its family is not there", epoch)
		}
		delete(families, epoch)
		return r.recoverBits(b)
	})
	if err != nil {
		return err
	}
	for _, stray := range families {
		if err := r.store.DropFamily(stray); err != nil {
			return fmt.Errorf("dropping the stray family of bucket %d: %w", stray.Epoch(), err)
		}
	}
	return nil
}

func (r *Ring) recoverBits(b *Bucket) error {
	b.used = make([]uint64, (b.rows+63)/64)
	b.live = int(b.rows)
	r.pending += b.live
	v, ok, err := r.store.Meta(bitsKey(b.Epoch))
	if err != nil {
		return err
	}
	if ok && len(v) != len(b.used)*8 {
		return fmt.Errorf("bucket %d: bitmap of %d bytes for %d rows", b.Epoch, len(v), b.rows)
	}
	for row := uint32(0); ok && row < b.rows; row++ {
		if v[row>>3]&(1<<(row&7)) != 0 {
			r.setUsed(b, row)
		}
	}
	b.bitsDirty = false
	if other := r.slots[b.Slot]; other != nil {
		return fmt.Errorf("buckets %d and %d claim one slot", other.Epoch, b.Epoch)
	}
	r.slots[b.Slot] = b
	return nil
}

// recoverJournal replays what is committed into open buckets and bitmaps.
func (r *Ring) recoverJournal() error {
	var batch uint64
	later := false
	err := r.store.ScanJournal(func(n uint64, record []byte) error {
		if n > r.committed {
			later = true
			return nil
		}
		batch = n
		r.journalBytes += int64(len(record))
		return readJournal(record, &replay{r, n})
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
	r.write.reset()
	r.write.CutAbove, r.write.CutsAbove = r.committed, true
	return r.flush()
}

// replay applies journal content: appends to buckets that are not sealed, uses to any that is left.
type replay struct {
	ring  *Ring
	batch uint64
}

func (p *replay) appended(epoch int64, hash uint64, entry []byte) error {
	r := p.ring
	if b := r.At(epoch); epoch < r.floor || b != nil && b.state == Sealed {
		return nil
	}
	b, err := r.Bucket(epoch)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	if b.first == 0 {
		b.first = p.batch
	}
	b.arena.appendRaw(hash, entry)
	r.grown(b)
	return nil
}

func (p *replay) used(epoch int64, row uint32) error {
	b := p.ring.At(epoch)
	if b == nil || epoch < p.ring.floor {
		return nil
	}
	if row >= b.rows {
		return fmt.Errorf("%w: row %d of bucket %d, which has %d", ErrJournal, row, epoch, b.rows)
	}
	if !b.Used(row) {
		p.ring.setUsed(b, row)
	}
	return nil
}
