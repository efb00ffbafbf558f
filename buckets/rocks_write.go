//go:build cgo

package buckets

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"unsafe"

	"github.com/linxGnu/grocksdb"
	"github.com/zeebo/xxh3"

	"joinbench/internal/failpoint"
)

const (
	// sstBatch is how many bytes of rows cross the C boundary in one call while a run is written.
	sstBatch = 1 << 20
	// maxHashTable is from where on a run is a block table: RocksDB reads hash tables of less than 2 GiB.
	maxHashTable = 3 << 29
)

// WriteRun implements Backend: one table file, and a family made of it.
func (r *Rocks) WriteRun(name RunName, rows RunSource) (Family, RunStats, error) {
	file := "ingest-" + name.family() + ".sst"
	path := filepath.Join(r.dir, file)
	opts := r.bucketOpts
	if r.shared.bloom || rows.Size() > maxHashTable { // a bloom filter of RocksDB's own is for comparison: as people have it
		opts = r.blockOpts
	}
	table, err := r.writeTable(path, rows, opts)
	if err != nil {
		_ = os.Remove(path) // what is wrong is said by err; the file may not even be there
		return nil, table.RunStats, err
	}
	if err := failpoint.Hit(failpoint.SSTFinish); err != nil {
		return nil, table.RunStats, err
	}
	if err := failpoint.Hit(failpoint.IngestBefore); err != nil {
		return nil, table.RunStats, err
	}
	f, err := r.importTable(name, file, table)
	if err != nil {
		_ = os.Remove(path) // not there when the import failed after it had moved
		return nil, table.RunStats, fmt.Errorf("importing a table of %d bytes: %w", table.Bytes, err)
	}
	return f, table.RunStats, failpoint.Hit(failpoint.IngestAfter)
}

// Sum implements Backend.
func (r *Rocks) Sum(f Family) (uint64, error) {
	cErr := (**C.char)(C.calloc(1, C.size_t(unsafe.Sizeof(uintptr(0)))))
	defer C.free(unsafe.Pointer(cErr))
	path := C.jb_table_path(cptr(r.db), cptr(f.(*rocksFamily).handle), cErr)
	if path == nil {
		return 0, takeErr(cErr)
	}
	defer C.free(unsafe.Pointer(path))
	return fileSum(C.GoString(path))
}

// fileSum is the xxh3 of a file. Hash tables have no checksums of their own.
func fileSum(path string) (uint64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	h := xxh3.New()
	if _, err := io.Copy(h, f); err != nil {
		return 0, err
	}
	return h.Sum64(), nil
}

// table is a table file that was written.
type table struct {
	RunStats
	smallest, largest []byte // keys
}

// importTable makes the family of a run out of its file, which moves into the database.
func (r *Rocks) importTable(name RunName, file string, t table) (*rocksFamily, error) {
	cErr := (**C.char)(C.calloc(1, C.size_t(unsafe.Sizeof(uintptr(0)))))
	defer C.free(unsafe.Pointer(cErr))
	var texts [3]*C.char
	for i, s := range []string{name.family(), r.dir, file} {
		texts[i] = C.CString(s)
		defer C.free(unsafe.Pointer(texts[i]))
	}
	c := C.jb_import(cptr(r.db), cptr(r.bucketOpts), texts[0], texts[1], texts[2], C.uint64_t(t.Bytes), bytePtr(t.smallest),
		bytePtr(t.largest), KeySize, cErr)
	if c == nil {
		return nil, takeErr(cErr)
	}
	handle := new(grocksdb.ColumnFamilyHandle)
	*(*unsafe.Pointer)(unsafe.Pointer(handle)) = c // the binding has no way to say so; see cptr
	f := &rocksFamily{name, handle}
	liveC.families.Add(1)
	r.mu.Lock()
	r.families[name] = f
	r.mu.Unlock()
	return f, nil
}

// writeTable writes the rows into one table file. Its pages stay in the page cache: the filter's scan, the next matches
// and the import read them.
func (r *Rocks) writeTable(path string, rows RunSource, opts *grocksdb.Options) (t table, err error) {
	cErr := (**C.char)(C.calloc(1, C.size_t(unsafe.Sizeof(uintptr(0)))))
	defer C.free(unsafe.Pointer(cErr))
	cPath := C.CString(path)
	defer C.free(unsafe.Pointer(cPath))
	w := made(&liveC.writers, C.jb_sst_new(cptr(opts), cPath, cErr))
	defer func() { C.jb_sst_free(w); liveC.writers.Add(-1) }()
	if err := takeErr(cErr); err != nil {
		return t, err
	}
	var keys, values []byte
	var ends []uint32
	put := func() error {
		if len(ends) > 0 && C.jb_sst_put(w, C.size_t(len(ends)), bytePtr(keys), KeySize, bytePtr(values),
			(*C.uint32_t)(&ends[0]), cErr) != 0 {
			return takeErr(cErr)
		}
		keys, values, ends = keys[:0], values[:0], ends[:0]
		return nil
	}
	for key, value, ok := rows.Next(); ok; key, value, ok = rows.Next() {
		if t.smallest == nil {
			t.smallest = append(t.smallest, key...)
		}
		t.largest = append(t.largest[:0], key...)
		keys, values = append(keys, key...), append(values, value...)
		ends = append(ends, uint32(len(values)))
		if len(values) >= sstBatch {
			if err := put(); err != nil {
				return t, err
			}
		}
	}
	if err := put(); err != nil {
		return t, err
	}
	var size C.uint64_t
	if C.jb_sst_finish(w, &size, cErr) != 0 {
		return t, takeErr(cErr)
	}
	t.Bytes = int64(size)
	t.Sum, err = fileSum(path)
	return t, err
}
