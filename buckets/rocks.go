//go:build cgo

package buckets

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/linxGnu/grocksdb"
)

// Names of column families. That of a run carries its ring, the bucket's epoch and its own number, so that an old handle
// never means a new bucket.
const (
	defaultFamily = "default"
	metaFamily    = "meta"
	journalFamily = "journal"
	mainFamilies  = 'b' // of the ring whose space is 0; of others their own letter. + . epoch . run
)

const (
	// blockSize of sealed families: a hit reads one block, so small ones waste less (design.md, measurements:
	// 1 KiB with mmap was the fastest block table, 2.0 µs in MultiGet of 64).
	blockSize = 1 << 10
	// maxJournalBuffer bounds the write buffer of the journal: what lives shorter than it fills never becomes a
	// table. The log is allocated ahead in files of this size.
	maxJournalBuffer = 32 << 20
	minJournalBuffer = 256 << 10
	// manifestAhead is what the list of families is allocated ahead: it holds a few hundred bytes a bucket.
	manifestAhead = 64 << 10
	// walLimit bounds the log that a restart reads.
	walLimit = 96 << 20
)

// Close frees what is shared; the stores are closed before.
func (s *Shared) Close() { destroy(&liveC.caches, s.cache) }

// Rocks is the Backend on RocksDB: one database in one directory for one task.
type Rocks struct {
	dir    string
	shared *Shared
	db     *grocksdb.DB
	c      *C.jb_store

	dbOpts, journalOpts, metaOpts *grocksdb.Options
	bucketOpts, blockOpts         *grocksdb.Options // of sealed families; of block tables in them
	read, scan                    *grocksdb.ReadOptions
	write, writeSync              *grocksdb.WriteOptions
	fixed                         []*grocksdb.ColumnFamilyHandle // default, meta, journal

	mu       sync.Mutex // guards families: helper goroutines add and remove
	families map[RunName]*rocksFamily

	// Scratch of Lookup, so that it allocates nothing.
	groupPtr []unsafe.Pointer
	groupEnd []int32
	cErr     **C.char
	keys     [5][8]byte

	scans atomic.Uint64
}

type rocksFamily struct {
	name   RunName
	handle *grocksdb.ColumnFamilyHandle
}

func (f *rocksFamily) Name() RunName { return f.name }

func (n RunName) family() string {
	ring := n.Space
	if ring == 0 {
		ring = mainFamilies
	}
	return fmt.Sprintf("%c.%d.%d", ring, n.Epoch, n.Number)
}

// parseFamily reads what family wrote.
func parseFamily(name string) (n RunName, ok bool) {
	parts := strings.Split(name, ".")
	if len(parts) != 3 || len(parts[0]) != 1 {
		return n, false
	}
	if n.Space = parts[0][0]; n.Space == mainFamilies {
		n.Space = 0
	}
	var errE, errR error
	n.Epoch, errE = strconv.ParseInt(parts[1], 10, 64)
	n.Number, errR = strconv.Atoi(parts[2])
	return n, errE == nil && errR == nil && checkSpace(n.Space) == nil && n.family() == name
}

// cptr is the C pointer inside a grocksdb object: the binding has no getter, and each of its types that is used
// here holds it as its first field, which init checks.
func cptr[T any](obj *T) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(obj)) }

func init() {
	for _, t := range []reflect.Type{reflect.TypeFor[grocksdb.DB](), reflect.TypeFor[grocksdb.ColumnFamilyHandle](),
		reflect.TypeFor[grocksdb.ReadOptions](), reflect.TypeFor[grocksdb.WriteOptions](),
		reflect.TypeFor[grocksdb.Options](), reflect.TypeFor[grocksdb.Iterator]()} {
		if f := t.Field(0); f.Name != "c" || f.Type.Kind() != reflect.Pointer {
			panic("grocksdb: " + t.Name() + " does not start with its C pointer; this build pairs with v1.9.8")
		}
	}
}

// OpenRocks opens or makes the database of a task. The directory must be locked by the caller (LockDir).
func OpenRocks(dir string, shared *Shared) (*Rocks, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	removeLeftovers(dir)
	r := &Rocks{dir: dir, shared: shared, families: map[RunName]*rocksFamily{}}
	r.makeOptions()
	if err := r.open(); err != nil {
		r.destroyOptions()
		return nil, err
	}
	r.cErr = (**C.char)(C.calloc(1, C.size_t(unsafe.Sizeof(uintptr(0)))))
	r.c = C.jb_store_new(cptr(r.db), cptr(r.fixed[1]), cptr(r.fixed[2]), cptr(r.read), cptr(r.write), cptr(r.writeSync))
	liveC.stores.Add(1)
	return r, nil
}

// removeLeftovers deletes tables that a crash left before they were ingested.
func removeLeftovers(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, "ingest-*.sst"))
	for _, f := range left {
		_ = os.Remove(f) // one that stays is overwritten by the next of its name
	}
}

func (r *Rocks) open() error {
	names := []string{defaultFamily, metaFamily, journalFamily}
	var runs []RunName // of names[3:]
	if _, err := os.Stat(filepath.Join(r.dir, "CURRENT")); err == nil {
		have, err := grocksdb.ListColumnFamilies(r.dbOpts, r.dir)
		if err != nil {
			return fmt.Errorf("listing the families in %s: %w", r.dir, err)
		}
		for _, n := range have {
			switch run, ok := parseFamily(n); {
			case slices.Contains(names[:3], n):
			case !ok:
				return fmt.Errorf("%s holds a family %q of another program, or of another version of this one", r.dir, n)
			default:
				names, runs = append(names, n), append(runs, run)
			}
		}
	}
	opts := make([]*grocksdb.Options, len(names))
	for i, n := range names {
		switch n {
		case journalFamily:
			opts[i] = r.journalOpts
		case metaFamily, defaultFamily:
			opts[i] = r.metaOpts
		default:
			opts[i] = r.bucketOpts
		}
	}
	db, handles, err := grocksdb.OpenDbColumnFamilies(r.dbOpts, r.dir, names, opts)
	if err != nil {
		return fmt.Errorf("opening %s: %w", r.dir, err)
	}
	r.db, r.fixed = db, handles[:3]
	liveC.fixed.Add(3)
	for i, h := range handles[3:] {
		r.families[runs[i]] = &rocksFamily{runs[i], h}
		liveC.families.Add(1)
	}
	return nil
}

// takeErr turns the C error of the last call into a Go one and frees it.
func takeErr(e **C.char) error {
	if *e == nil {
		return nil
	}
	err := errors.New(C.GoString(*e))
	C.jb_free(*e)
	*e = nil
	return err
}

// Lookup implements Backend.
func (r *Rocks) Lookup(l *Lookups) error {
	r.groupPtr, r.groupEnd = r.groupPtr[:0], r.groupEnd[:0]
	for _, g := range l.Groups {
		r.groupPtr = append(r.groupPtr, cptr(g.Family.(*rocksFamily).handle))
		r.groupEnd = append(r.groupEnd, int32(g.End))
	}
	n := l.Len()
	if cap(l.Off) < n+1 {
		l.Off = make([]uint32, n+1, 2*n+64)
	}
	l.Off = l.Off[:n+1]
	if cap(l.Values) == 0 {
		l.Values = make([]byte, 64<<10)
	}
	for {
		l.Values = l.Values[:cap(l.Values)]
		need := C.jb_lookup(r.c, C.size_t(len(r.groupPtr)), &r.groupPtr[0], (*C.int32_t)(&r.groupEnd[0]),
			(*C.char)(unsafe.Pointer(&l.Keys[0])), KeySize, (*C.char)(unsafe.Pointer(&l.Values[0])),
			C.size_t(len(l.Values)), (*C.uint32_t)(&l.Off[0]), r.cErr)
		if need < 0 {
			return takeErr(r.cErr)
		}
		if need > math.MaxUint32 {
			return fmt.Errorf("%d keys have %d bytes of values, more than one call can return", n, need)
		}
		if int(need) <= len(l.Values) {
			return nil
		}
		l.Values = make([]byte, int(need)*2)
	}
}

func bytePtr(b []byte) *C.char {
	if len(b) == 0 {
		return nil
	}
	return (*C.char)(unsafe.Pointer(&b[0]))
}

// Write implements Backend.
func (r *Rocks) Write(w *Write) error {
	synced := w.Sync
	for ; w != nil; w = w.Next {
		flags := C.int(0)
		for flag, yes := range [...]bool{w.CutBelow > 0, w.CutsAbove, w.Next == nil, w.Next == nil && synced} {
			if yes {
				flags |= 1 << flag
			}
		}
		for i, key := range [...]uint64{journalKey(w.Space, w.Batch), journalKey(w.Space, 0), journalKey(w.Space, w.CutBelow),
			journalKey(w.Space, w.CutAbove+1), journalKey(w.Space+1, 0)} {
			binary.BigEndian.PutUint64(r.keys[i][:], key)
		}
		if C.jb_write(r.c, bytePtr(r.keys[0][:]), bytePtr(w.Record), C.size_t(len(w.Record)), bytePtr(w.Meta), C.size_t(len(w.Meta)),
			flags, r.cErr) != 0 {
			return takeErr(r.cErr)
		}
	}
	return nil
}

// SyncLog implements Backend.
func (r *Rocks) SyncLog() error { return r.db.FlushWAL(true) }

// iterate is an iterator over a family and what closes it.
func (r *Rocks) iterate(h *grocksdb.ColumnFamilyHandle) (it *grocksdb.Iterator, end func()) {
	it = made(&liveC.iterators, r.db.NewIteratorCF(r.scan, h))
	return it, func() { it.Close(); liveC.iterators.Add(-1) }
}

// ScanHashes implements Backend.
func (r *Rocks) ScanHashes(f Family, dst []uint64) ([]uint64, error) {
	return r.ScanLive(f, nil, 0, dst)
}

// ScanLive implements Backend; over nil: all rows.
func (r *Rocks) ScanLive(f Family, over []uint64, rows uint32, dst []uint64) ([]uint64, error) {
	r.scans.Add(1)
	it, end := r.iterate(f.(*rocksFamily).handle)
	defer end()
	buf := make([]uint64, 4096)
	var last C.uint64_t
	var hasLast C.int
	for it.SeekToFirst(); ; {
		n := C.jb_scan_hashes(cptr(it), (*C.uint64_t)(unsafe.SliceData(over)), C.uint32_t(rows), (*C.uint64_t)(&buf[0]),
			C.size_t(len(buf)), &last, &hasLast)
		if n < 0 {
			return dst, errors.Join(it.Err(), errBadValue)
		}
		dst = append(dst, buf[:n]...)
		if int(n) < len(buf) {
			return dst, it.Err()
		}
	}
}

// errBadValue is what C found.
var errBadValue = fmt.Errorf("%w: a value that is none, or with rows that its bucket has not", ErrEntry)

// scanBuffer is how many bytes of keys and values cross the C boundary in one call of ScanValues.
const scanBuffer = 256 << 10

// ScanValues implements Backend.
func (r *Rocks) ScanValues(f Family, over []uint64, rows uint32, fn func(key, value []byte) error) error {
	r.scans.Add(1)
	it, end := r.iterate(f.(*rocksFamily).handle)
	defer end()
	buf := make([]byte, scanBuffer)
	for it.SeekToFirst(); ; {
		var need C.size_t
		n := C.jb_scan_values(cptr(it), (*C.uint64_t)(unsafe.SliceData(over)), C.uint32_t(rows), bytePtr(buf), C.size_t(len(buf)), &need)
		switch {
		case n < 0:
			return errors.Join(it.Err(), errBadValue)
		case n == 0 && need == 0:
			return it.Err()
		case n == 0:
			buf = make([]byte, need)
		}
		for b := buf[:n]; len(b) > 0; {
			klen, vlen := int(binary.LittleEndian.Uint32(b)), int(binary.LittleEndian.Uint32(b[4:]))
			end := 8 + klen + vlen
			if err := fn(b[8:8+klen:8+klen], b[8+klen:end:end]); err != nil {
				return err
			}
			b = b[end:]
		}
	}
}

// Iterators implements Backend.
func (r *Rocks) Iterators() uint64 { return r.scans.Load() }

// DropFamily implements Backend. The files go when the handle is destroyed, which is here.
func (r *Rocks) DropFamily(f Family) error {
	rf := f.(*rocksFamily)
	// The drop is on disk at once. So must be the write that took the bucket's mark away: without it, after a power
	// cut, a mark would ask for a family that is gone.
	if err := r.db.FlushWAL(true); err != nil {
		return err
	}
	r.mu.Lock()
	delete(r.families, rf.name)
	r.mu.Unlock()
	err := r.db.DropColumnFamily(rf.handle)
	rf.handle.Destroy()
	liveC.families.Add(-1)
	return err
}

// Trim implements Backend. Of tables of the journal that were written while their records were needed a compaction
// leaves nothing.
func (r *Rocks) Trim(journal bool) error {
	opts := made(&liveC.flushOptions, grocksdb.NewDefaultFlushOptions())
	defer destroy(&liveC.flushOptions, opts)
	if journal {
		if err := r.db.FlushCF(r.fixed[2], opts); err != nil {
			return err
		}
		r.db.CompactRangeCF(r.fixed[2], grocksdb.Range{})
	}
	return r.db.FlushCF(r.fixed[1], opts)
}

// Families implements Backend.
func (r *Rocks) Families() []Family {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Family, 0, len(r.families))
	for _, f := range r.families {
		out = append(out, f)
	}
	return out
}

// Meta implements Backend.
func (r *Rocks) Meta(key string) ([]byte, bool, error) {
	s, err := r.db.GetCF(r.read, r.fixed[1], []byte(key))
	if err != nil {
		return nil, false, err
	}
	defer s.Free()
	if !s.Exists() {
		return nil, false, nil
	}
	return append([]byte{}, s.Data()...), true, nil
}

// ScanMeta implements Backend.
func (r *Rocks) ScanMeta(prefix string, fn func(key string, value []byte) error) error {
	it, end := r.iterate(r.fixed[1])
	defer end()
	for it.Seek([]byte(prefix)); it.ValidForPrefix([]byte(prefix)); it.Next() {
		k, v := it.Key(), it.Value()
		err := fn(string(k.Data()), v.Data())
		k.Free()
		v.Free()
		if err != nil {
			return err
		}
	}
	return it.Err()
}

// ScanJournal implements Backend.
func (r *Rocks) ScanJournal(space byte, fn func(batch uint64, record []byte) error) error {
	it, end := r.iterate(r.fixed[2])
	defer end()
	for it.Seek([]byte{space}); it.ValidForPrefix([]byte{space}); it.Next() {
		k, v := it.Key(), it.Value()
		var err error
		if len(k.Data()) != 8 {
			err = fmt.Errorf("%w: key of %d bytes", ErrJournal, len(k.Data()))
		} else {
			err = fn(binary.BigEndian.Uint64(k.Data())&maxBatch, v.Data())
		}
		k.Free()
		v.Free()
		if err != nil {
			return err
		}
	}
	return it.Err()
}

// DiskBytes implements Backend: every file in the directory.
func (r *Rocks) DiskBytes() int64 {
	entries, _ := os.ReadDir(r.dir)
	var n int64
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			n += info.Size()
		}
	}
	return n
}

// MemoryBytes implements Backend.
func (r *Rocks) MemoryBytes() int64 {
	n := int64(0)
	add := func(h *grocksdb.ColumnFamilyHandle, props ...string) {
		for _, p := range props {
			v, _ := strconv.ParseInt(r.db.GetPropertyCF(p, h), 10, 64)
			n += v
		}
	}
	for _, h := range r.fixed {
		add(h, "rocksdb.cur-size-all-mem-tables", "rocksdb.estimate-table-readers-mem")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.families {
		add(f.handle, "rocksdb.estimate-table-readers-mem")
	}
	return n + int64(r.shared.cache.GetUsage())
}

// Close implements Backend: every handle before the database, the default one too.
func (r *Rocks) Close() error {
	C.jb_store_free(r.c)
	C.free(unsafe.Pointer(r.cErr))
	for _, f := range r.families {
		f.handle.Destroy()
		liveC.families.Add(-1)
	}
	destroy(&liveC.fixed, r.fixed...)
	r.db.Close()
	r.destroyOptions()
	liveC.stores.Add(-1)
	return nil
}
