package buckets

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
)

// Probe is one point read: a chunk of a hash in a run of the bucket in a slot. Tag is the caller's.
type Probe struct {
	Hash  uint64
	Slot  uint16
	Run   uint16
	Chunk uint32
	Tag   uint32
}

// Lookup reads all probes in one crossing of the C boundary. It sorts them by slot, run and key, in which order
// Value answers. Every slot must hold a bucket that has the run.
func (r *Ring) Lookup(probes []Probe) error {
	slices.SortFunc(probes, func(a, b Probe) int {
		if a.Slot != b.Slot {
			return cmp.Compare(a.Slot, b.Slot)
		}
		if a.Run != b.Run {
			return cmp.Compare(a.Run, b.Run)
		}
		if a.Hash != b.Hash {
			return cmp.Compare(a.Hash, b.Hash)
		}
		return cmp.Compare(a.Chunk, b.Chunk)
	})
	l := &r.lookups
	l.reset()
	for i, p := range probes {
		if i == 0 || probes[i-1].Slot != p.Slot || probes[i-1].Run != p.Run {
			b := r.slots[p.Slot]
			if b == nil || int(p.Run) >= len(b.runs) {
				return fmt.Errorf("lookup in slot %d, whose bucket has no run %d", p.Slot, p.Run)
			}
			l.Groups = append(l.Groups, LookupGroup{Family: b.runs[p.Run].family})
		}
		l.Groups[len(l.Groups)-1].End = i + 1
		n := len(l.Keys)
		l.Keys = slices.Grow(l.Keys, KeySize)[:n+KeySize]
		putKey(l.Keys[n:], p.Hash, p.Chunk)
	}
	if len(probes) == 0 {
		return nil
	}
	if err := r.store.Lookup(l); err != nil {
		return fmt.Errorf("reading %d keys: %w", len(probes), err)
	}
	return nil
}

// BloomWrong is how often the bloom filters of the store's tables let a key through in vain; 0 of stores without.
func (r *Ring) BloomWrong() uint64 {
	if s, ok := r.store.(interface{ BloomWrong() uint64 }); ok {
		return s.BloomWrong()
	}
	return 0
}

// Iterators is how many iterators over tables of the store were opened since it was: by EachLive, by a HashScan and a
// CloseScan one for each run that they read, and by a run of a bucket that has others one for each of these. Any goroutine.
func (r *Ring) Iterators() uint64 { return r.store.Iterators() }

// Value is the answer to probe i of the last Lookup, empty if the bucket has no such key; valid until the next.
func (r *Ring) Value(i int) []byte { return r.lookups.Values[r.lookups.Off[i]:r.lookups.Off[i+1]] }

// ReadChunk reads another chunk of what a probe found; valid until the next ReadChunk. Value stays valid.
func (r *Ring) ReadChunk(p Probe, chunk uint32) ([]byte, error) {
	l := &r.more
	l.reset()
	l.Groups = append(l.Groups, LookupGroup{Family: r.slots[p.Slot].runs[p.Run].family, End: 1})
	l.Keys = slices.Grow(l.Keys, KeySize)[:KeySize]
	putKey(l.Keys, p.Hash, chunk)
	if err := r.store.Lookup(l); err != nil {
		return nil, fmt.Errorf("reading chunk %d of a key: %w", chunk, err)
	}
	return l.Values[:l.Off[1]], nil
}

// HasMore says whether another chunk of the same hash follows a value.
func HasMore(value []byte) bool { return len(value) >= valueHeader && value[1]&valueMore != 0 }

// ValueIter walks the entries of a value in the order in which rule 2 prefers them.
type ValueIter struct {
	rest []byte
	left int // entries that the header still promises
	err  error
}

// IterValue starts a walk. An empty value has no entries.
func IterValue(value []byte) ValueIter {
	switch {
	case len(value) == 0:
		return ValueIter{}
	case len(value) < valueHeader || value[0] != valueVersion:
		return ValueIter{err: fmt.Errorf("%w: value header", ErrEntry)}
	}
	return ValueIter{rest: value[valueHeader:], left: int(binary.LittleEndian.Uint16(value[2:]))}
}

// Next returns a row and its entry, which points into the value; ok is false at the end or at an error.
func (it *ValueIter) Next() (row uint32, entry []byte, ok bool) {
	switch {
	case it.err != nil || it.left == 0 && len(it.rest) == 0:
		return 0, nil, false
	case it.left == 0:
		it.err = fmt.Errorf("%w: %d bytes after the last entry", ErrEntry, len(it.rest))
		return 0, nil, false
	case len(it.rest) < 8:
		it.err = fmt.Errorf("%w: %d entries missing", ErrEntry, it.left)
		return 0, nil, false
	}
	row = binary.LittleEndian.Uint32(it.rest)
	n := int(binary.LittleEndian.Uint32(it.rest[4:]))
	if n > len(it.rest)-8 || n <= entryHeader {
		it.err = fmt.Errorf("%w: length %d of %d bytes", ErrEntry, n, len(it.rest)-8)
		return 0, nil, false
	}
	entry, it.rest = it.rest[8:8+n:8+n], it.rest[8+n:]
	it.left--
	return row, entry, true
}

// Err is what ended the walk early; it wraps ErrEntry.
func (it *ValueIter) Err() error { return it.err }
