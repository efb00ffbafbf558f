package buckets

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
)

// MemBackend is a Backend in memory: for tests of everything above the store, and for builds without C. It
// forgets nothing at Close, so that a second Ring over the same MemBackend is a restart.
type MemBackend struct {
	mu       sync.Mutex // families is written by helper goroutines
	families map[RunName]*memFamily
	meta     map[string][]byte
	journal  map[uint64][]byte // by journalKey
	scans    atomic.Uint64
}

type memFamily struct {
	name   RunName
	keys   [][]byte
	values [][]byte
}

func (f *memFamily) Name() RunName { return f.name }

// NewMemBackend returns an empty store.
func NewMemBackend() *MemBackend {
	return &MemBackend{families: map[RunName]*memFamily{}, meta: map[string][]byte{}, journal: map[uint64][]byte{}}
}

func (f *memFamily) get(key []byte) []byte {
	i := sort.Search(len(f.keys), func(i int) bool { return bytes.Compare(f.keys[i], key) >= 0 })
	if i < len(f.keys) && bytes.Equal(f.keys[i], key) {
		return f.values[i]
	}
	return nil
}

// Lookup implements Backend.
func (m *MemBackend) Lookup(l *Lookups) error {
	l.Off, l.Values = append(l.Off[:0], 0), l.Values[:0]
	i := 0
	for _, g := range l.Groups {
		for ; i < g.End; i++ {
			l.Values = append(l.Values, g.Family.(*memFamily).get(l.Keys[i*KeySize:(i+1)*KeySize])...)
			l.Off = append(l.Off, uint32(len(l.Values)))
		}
	}
	return nil
}

// Write implements Backend.
func (m *MemBackend) Write(w *Write) error {
	for ; w != nil; w = w.Next {
		for key := range m.journal {
			if b := key & maxBatch; key == journalKey(w.Space, b) && (b < w.CutBelow || w.CutsAbove && b > w.CutAbove) {
				delete(m.journal, key)
			}
		}
		if len(w.Record) > 0 {
			m.journal[journalKey(w.Space, w.Batch)] = bytes.Clone(w.Record)
		}
		eachMeta(w.Meta, func(key string, value []byte) {
			if value == nil {
				delete(m.meta, key)
			} else {
				m.meta[key] = bytes.Clone(value)
			}
		})
	}
	return nil
}

// SyncLog implements Backend.
func (m *MemBackend) SyncLog() error { return nil }

// WriteRun implements Backend.
func (m *MemBackend) WriteRun(name RunName, rows RunSource) (Family, RunStats, error) {
	f := &memFamily{name: name}
	var stats RunStats
	for {
		key, value, ok := rows.Next()
		if !ok {
			break
		}
		if n := len(f.keys); n > 0 && bytes.Compare(f.keys[n-1], key) >= 0 {
			return nil, stats, fmt.Errorf("run of bucket %d: keys out of order", name.Epoch)
		}
		f.keys, f.values = append(f.keys, bytes.Clone(key)), append(f.values, bytes.Clone(value))
		stats.Bytes += int64(len(key) + len(value))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.families[name] = f
	return f, stats, nil
}

// ScanHashes implements Backend.
func (m *MemBackend) ScanHashes(f Family, dst []uint64) ([]uint64, error) {
	m.scans.Add(1)
	for _, k := range f.(*memFamily).keys {
		if h := binary.BigEndian.Uint64(k); len(dst) == 0 || dst[len(dst)-1] != h {
			dst = append(dst, h)
		}
	}
	return dst, nil
}

// ScanLive implements Backend.
func (m *MemBackend) ScanLive(f Family, over []uint64, rows uint32, dst []uint64) ([]uint64, error) {
	err := m.ScanValues(f, over, rows, func(key, _ []byte) error {
		if h := keyHash(key); len(dst) == 0 || dst[len(dst)-1] != h {
			dst = append(dst, h)
		}
		return nil
	})
	return dst, err
}

// ScanValues implements Backend.
func (m *MemBackend) ScanValues(f Family, over []uint64, rows uint32, fn func(key, value []byte) error) error {
	m.scans.Add(1)
	mf := f.(*memFamily)
	for i := range mf.keys {
		if over != nil {
			if live, err := hasLive(mf.values[i], over, rows); err != nil || !live {
				if err != nil {
					return err
				}
				continue
			}
		}
		if err := fn(mf.keys[i], mf.values[i]); err != nil {
			return err
		}
	}
	return nil
}

// hasLive says whether a value has a row that is not over.
func hasLive(value []byte, over bitmap, rows uint32) (bool, error) {
	it := IterValue(value)
	for row, _, ok := it.Next(); ok; row, _, ok = it.Next() {
		if row >= rows {
			return false, fmt.Errorf("%w: row %d of %d", ErrEntry, row, rows)
		}
		if !over.has(row) {
			return true, nil
		}
	}
	return false, it.Err()
}

// Iterators implements Backend.
func (m *MemBackend) Iterators() uint64 { return m.scans.Load() }

// DropFamily implements Backend.
func (m *MemBackend) DropFamily(f Family) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.families, f.Name())
	return nil
}

// Sum implements Backend: memory is not damaged.
func (m *MemBackend) Sum(Family) (uint64, error) { return 0, nil }

// Trim implements Backend.
func (m *MemBackend) Trim(bool) error { return nil }

// Families implements Backend.
func (m *MemBackend) Families() []Family {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Family
	for _, f := range m.families {
		out = append(out, f)
	}
	return out
}

// Meta implements Backend.
func (m *MemBackend) Meta(key string) ([]byte, bool, error) {
	v, ok := m.meta[key]
	return v, ok, nil
}

// ScanMeta implements Backend.
func (m *MemBackend) ScanMeta(prefix string, fn func(key string, value []byte) error) error {
	for k, v := range m.meta {
		if strings.HasPrefix(k, prefix) {
			if err := fn(k, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// ScanJournal implements Backend.
func (m *MemBackend) ScanJournal(space byte, fn func(batch uint64, record []byte) error) error {
	var order []uint64
	for key := range m.journal {
		if key == journalKey(space, key) {
			order = append(order, key)
		}
	}
	slices.Sort(order)
	for _, key := range order {
		if err := fn(key&maxBatch, m.journal[key]); err != nil {
			return err
		}
	}
	return nil
}

// DiskBytes implements Backend.
func (m *MemBackend) DiskBytes() int64 { return 0 }

// MemoryBytes implements Backend.
func (m *MemBackend) MemoryBytes() int64 { return 0 }

// Close implements Backend.
func (m *MemBackend) Close() error { return nil }
