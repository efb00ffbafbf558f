package buckets

import (
	"bytes"
	"encoding/binary"
)

// Backend is what a Ring needs of its store: RocksDB in production, memory in tests. Calls come in batches, so
// none of them is on the path of a single event.
type Backend interface {
	// Lookup reads every key of l and fills l.Off and l.Values. Task's goroutine.
	Lookup(l *Lookups) error
	// Write applies w atomically. Task's goroutine.
	Write(w *Write) error

	// SyncLog makes what Write wrote so far outlive a power cut. Any goroutine.
	SyncLog() error
	// WriteRun makes the family of a run out of rows that come sorted by key. Any goroutine, one at a time.
	WriteRun(name RunName, rows RunSource) (Family, RunStats, error)
	// ScanHashes appends the distinct hashes of a family in ascending order. Any goroutine.
	ScanHashes(f Family, dst []uint64) ([]uint64, error)
	// ScanLive is ScanHashes of those hashes that have a row below rows which is not set in over, which has a bit for each.
	ScanLive(f Family, over []uint64, rows uint32, dst []uint64) ([]uint64, error)
	// ScanValues calls fn in key order with each key and value; with over, which has a bit for each row below rows, only
	// with values that have a row that is not set in it. The slices are valid during the call. Any goroutine.
	ScanValues(f Family, over []uint64, rows uint32, fn func(key, value []byte) error) error
	// Iterators is how often ScanHashes, ScanLive and ScanValues were called since the store was opened: each opens one
	// iterator of RocksDB, and nothing else does but an open. Any goroutine.
	Iterators() uint64
	// DropFamily removes a family with its files. No lookup of it may follow. Any goroutine, one at a time.
	DropFamily(f Family) error

	// Sum reads the table of a family and sums it up as WriteRun did. Any goroutine; not while the family is dropped.
	Sum(f Family) (uint64, error)

	// Trim frees what the log holds of meta, and with journal of the journal, of which little is left. Any goroutine.
	Trim(journal bool) error

	// Families lists what is there, of all rings. Meta and ScanJournal read what Write wrote, the journal of one ring by
	// ascending batches. Only at open.
	Families() []Family
	Meta(key string) ([]byte, bool, error)
	ScanMeta(prefix string, fn func(key string, value []byte) error) error
	ScanJournal(space byte, fn func(batch uint64, record []byte) error) error

	// DiskBytes is what the directory holds: tables, log and the rest.
	DiskBytes() int64
	// MemoryBytes is what the store itself keeps in RAM: write buffers, table readers, pinned blocks.
	MemoryBytes() int64
	Close() error
}

// Family is a backend's handle on one run of a bucket.
type Family interface{ Name() RunName }

// RunName is whose run a family is.
type RunName struct {
	Space  byte // Options.Space of its ring
	Epoch  int64
	Number int // 0, 1 … in the order in which the runs of the bucket were written
}

// RunSource hands over the key and value of each chunk, in key order; ok is false at the end. The slices are
// valid until the next call.
type RunSource interface {
	Next() (key, value []byte, ok bool)
	// Size is about how many bytes keys and values have in all.
	Size() int64
}

// RunStats says what a WriteRun wrote.
type RunStats struct {
	Entries int64
	Bytes   int64
	Sum     uint64 // of the file, to tell whether it is still what was written; 0 in memory
}

// Write is one atomic change, of one ring or, linked by Next, of several of one store. Flat on purpose: it crosses the C
// boundary in one call for each ring.
type Write struct {
	Space     byte   // Options.Space of the ring: whose journal this is about
	Batch     uint64 // journal record of this batch, if Record is not empty
	Record    []byte
	CutBelow  uint64 // delete journal records below this batch, if not 0
	CutAbove  uint64 // delete journal records above this batch, if Cut is set
	CutsAbove bool
	Meta      []byte // puts and deletes by appendPut and appendDelete
	Sync      bool
	Next      *Write // more of the same change, whose Sync does not matter; nil: this is all
}

// maxBatch is the highest batch: the bits above it say whose journal record it is.
const maxBatch = 1<<56 - 1

// journalKey is where the record of a batch lies: the records of a ring stand together.
func journalKey(space byte, batch uint64) uint64 { return uint64(space)<<56 | batch&maxBatch }

func (w *Write) reset() {
	w.Record, w.Meta = w.Record[:0], w.Meta[:0]
	w.Batch, w.CutBelow, w.CutAbove, w.CutsAbove, w.Sync, w.Next = 0, 0, 0, false, false, nil
}

// Clone is a copy that outlives the call of Backend.Write.
func (w *Write) Clone() *Write {
	c := *w
	c.Record, c.Meta = bytes.Clone(w.Record), bytes.Clone(w.Meta)
	if w.Next != nil {
		c.Next = w.Next.Clone()
	}
	return &c
}

const metaDelete = ^uint32(0)

// put adds a put of the meta family: u32 key length, u32 value length, key, value.
func (w *Write) put(key string, value []byte) {
	w.Meta = binary.LittleEndian.AppendUint32(w.Meta, uint32(len(key)))
	w.Meta = binary.LittleEndian.AppendUint32(w.Meta, uint32(len(value)))
	w.Meta = append(w.Meta, key...)
	w.Meta = append(w.Meta, value...)
}

// delete adds a delete of the meta family: the same with a length that no value has.
func (w *Write) delete(key string) {
	w.Meta = binary.LittleEndian.AppendUint32(w.Meta, uint32(len(key)))
	w.Meta = binary.LittleEndian.AppendUint32(w.Meta, metaDelete)
	w.Meta = append(w.Meta, key...)
}

// eachMeta calls fn for each put (value not nil) and delete (value nil).
func eachMeta(meta []byte, fn func(key string, value []byte)) {
	for len(meta) > 0 {
		klen, vlen := binary.LittleEndian.Uint32(meta), binary.LittleEndian.Uint32(meta[4:])
		key := string(meta[8 : 8+klen])
		meta = meta[8+klen:]
		if vlen == metaDelete {
			fn(key, nil)
			continue
		}
		fn(key, meta[:vlen:vlen])
		meta = meta[vlen:]
	}
}

// KeySize is the length of a storage key: hash (8, big endian), chunk (4). Each run has a family of its own.
const KeySize = 12

func putKey(dst []byte, hash uint64, chunk uint32) {
	binary.BigEndian.PutUint64(dst, hash)
	binary.BigEndian.PutUint32(dst[8:], chunk)
}

// keyHash is the hash of a storage key; 0 of what is too short to be one.
func keyHash(key []byte) uint64 {
	if len(key) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(key)
}

// Lookups is one batch of point reads, grouped by family and sorted by key inside a group. Reused.
type Lookups struct {
	Groups []LookupGroup
	Keys   []byte   // KeySize bytes each
	Off    []uint32 // filled: value i is Values[Off[i]:Off[i+1]], empty if there is no such key
	Values []byte   // filled: valid until the next Lookup
}

// LookupGroup is the keys of one family: those from the last group's End up to its own.
type LookupGroup struct {
	Family Family
	End    int
}

// Len is the number of keys.
func (l *Lookups) Len() int { return len(l.Keys) / KeySize }

func (l *Lookups) reset() { l.Groups, l.Keys = l.Groups[:0], l.Keys[:0] }
