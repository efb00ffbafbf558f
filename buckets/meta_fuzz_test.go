package buckets

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// sealedStore is a store with two sealed buckets, 0 and 1, an open one, 2, that was spilled and goes on, and bucket -1 that was
// dropped. Of bucket 0 one row was used while it was open and one after it was sealed, of bucket 1 one after its bitmap was
// written last.
func sealedStore(t testing.TB, opt Options) *MemBackend {
	m := NewMemBackend()
	r := mustRing(t, opt, m, 0)
	for i := range int64(12) {
		put(t, r, uint64(i/2), Entry{Time: (i - 3) * opt.Width / 3, Offset: i, Key: []byte("sk"), Body: []byte("{}")})
	}
	r.Use(r.At(0), 0)
	must(t, r.Commit(1, commitRecord(1)))
	jobs, err := r.DropBelow(0)
	must(t, err)
	for _, j := range jobs {
		must(t, j.Run())
	}
	sealBucket(t, r, 0)
	r.Use(r.At(0), 1)
	must(t, r.Commit(2, commitRecord(2)))
	sealBucket(t, r, 1)
	spill := r.StartSpill(r.At(2))
	must(t, spill.Run())
	_, err = r.FinishSeal(spill)
	must(t, err)
	put(t, r, 9, Entry{Time: 2 * opt.Width, Offset: 99, Key: []byte("sk"), Body: []byte("{}")})
	r.Use(r.At(2), 1)
	r.Use(r.At(1), 2)
	must(t, r.Commit(3, commitRecord(3)))
	return m
}

// contentOf lists all that waits in a ring: epoch, row, hash bucket by bucket, as text.
func contentOf(r *Ring) (all []string, err error) {
	for slot := range r.Slots() {
		b := r.AtSlot(slot)
		if b == nil {
			continue
		}
		err = errors.Join(err, r.EachLive(b, func(row uint32, entry []byte) error {
			e, err := ParseEntry(entry)
			all = append(all, fmt.Sprintf("%d.%d offset %d", b.Epoch, row, e.Offset))
			return err
		}))
	}
	slices.Sort(all)
	return all, err
}

// openDamaged opens a ring over a store whose meta family was changed, and holds it to what must be so of any that opens:
// its counts are those of its rows, and it goes on: a batch, a seal, a drop and one more start.
func openDamaged(t testing.TB, opt Options, m *MemBackend) (*Ring, error) {
	t.Helper()
	record, err := CommitRecord(m)
	must(t, err)
	committed := uint64(0)
	if len(record) >= 8 {
		committed = binary.LittleEndian.Uint64(record)
	}
	r, err := NewRing(opt, m, committed)
	if err != nil {
		return nil, err
	}
	live := 0
	for slot := range opt.Slots {
		b := r.AtSlot(slot)
		if b == nil {
			continue
		}
		if b.Slot != slot || b.Epoch < r.Floor() {
			t.Fatalf("bucket %d in slot %d, the floor is %d", b.Epoch, slot, r.Floor())
		}
		used := 0
		for row := range uint32(b.Rows()) {
			if b.Used(row) {
				used++
			}
		}
		if want := b.Rows() - used; !opt.KeepUsed && b.Live() != want {
			t.Fatalf("bucket %d: %d rows live, %d of %d used", b.Epoch, b.Live(), used, b.Rows())
		}
		live += b.Live()
	}
	if r.Pending() != live {
		t.Fatalf("%d rows wait, the buckets have %d", r.Pending(), live)
	}
	return r, nil
}

// FuzzMeta changes one value of the meta family (header, floor, marks, bitmaps, or any key): a start is refused, or the ring
// is the one that was stored, or its counts at least are those of what it holds.
func FuzzMeta(f *testing.F) {
	m := sealedStore(f, testOptions)
	for _, key := range slices.Sorted(maps.Keys(m.meta)) {
		v := m.meta[key]
		f.Add(key, v, false)
		f.Add(key, v, true) // taken away
		f.Add(key, []byte{}, false)
		f.Add(key, append(bytes.Clone(v), 0), false)
		f.Add(key, v[:len(v)-1], false)
		for at := range v {
			for _, bit := range []byte{1, 0x80} {
				damaged := bytes.Clone(v)
				damaged[at] ^= bit
				f.Add(key, damaged, false)
			}
		}
	}
	mark, bitmap := m.meta[markKey(1)], m.meta[bitsKey(0)]
	for _, key := range []string{"mark.", "mark.x", "mark.+1", "mark.01", "mark.5", "mark.-1", "mark.9223372036854775807", "mark.99999999999999999999", "mark.3"} {
		f.Add(key, mark, false)
	}
	for _, key := range []string{"bits.", "bits.2", "bits.3", "bits.00", "bits.-1"} {
		f.Add(key, bitmap, false)
	}
	f.Fuzz(func(t *testing.T, key string, value []byte, gone bool) {
		if strings.HasPrefix(key, bucketMark) && len(value) >= markHeader && binary.LittleEndian.Uint32(value[2:]) > 1<<20 {
			return // a bucket of so many rows takes long, and is no other case
		}
		for _, opt := range []Options{testOptions, {Width: testOptions.Width, Slots: testOptions.Slots, KeepUsed: true}} {
			m := sealedStore(t, opt)
			before, err := contentOf(mustRing(t, opt, m, 3))
			must(t, err)
			was, had := m.meta[key]
			if gone {
				delete(m.meta, key)
			} else {
				m.meta[key] = bytes.Clone(value)
			}
			r, err := openDamaged(t, opt, m)
			if err != nil {
				continue
			}
			same := had && bytes.Equal(was, value) && !gone
			ours := strings.HasPrefix(key, bucketMark) || strings.HasPrefix(key, usedBits) || had // what we would have written
			after, err := contentOf(r)
			if err != nil && !errors.Is(err, ErrEntry) {
				t.Fatalf("key %q: error %v does not wrap ErrEntry", key, err)
			}
			if (same || !ours) && !slices.Equal(before, after) {
				t.Fatalf("key %q: the ring holds\n%q, and was\n%q", key, after, before)
			}
		}
	})
}

// TestDamagedMeta: what each damage to a mark, bitmap, floor or header is answered with, for a ring that drops used rows and
// for one that keeps them.
func TestDamagedMeta(t *testing.T) {
	put := func(key string, change func([]byte) []byte) func(*MemBackend) {
		return func(m *MemBackend) { m.meta[key] = change(bytes.Clone(m.meta[key])) }
	}
	flip := func(at int, bits byte) func([]byte) []byte {
		return func(v []byte) []byte { v[at] ^= bits; return v }
	}
	cut := func(v []byte) []byte { return v[:len(v)-1] }
	for name, c := range map[string]struct {
		change func(*MemBackend)
		want   string
	}{
		"header cut":               {put(metaHeader, cut), "another format"},
		"header version":           {put(metaHeader, flip(0, 0x40)), "another format"},
		"header width":             {put(metaHeader, flip(1, 1)), "state.width"},
		"header slots":             {put(metaHeader, flip(9, 1)), "state.buckets"},
		"floor cut":                {put(metaFloor, cut), "damaged floor"},
		"floor empty":              {put(metaFloor, func([]byte) []byte { return nil }), "damaged floor"},
		"floor above a sealed one": {put(metaFloor, flip(0, 1)), "below the floor"},
		"mark cut":                 {put(markKey(1), cut), "damaged mark"},
		"mark too long":            {put(markKey(1), func(v []byte) []byte { return append(v, 0) }), "damaged mark"},
		"mark version":             {put(markKey(1), flip(0, 0x40)), "damaged mark"},
		"mark with unknown flags":  {put(markKey(1), flip(1, 2)), "damaged mark"},
		"mark with more rows":      {put(markKey(1), flip(2, 4)), "rows are used"},
		"mark with fewer rows":     {put(markKey(1), flip(2, 2)), "damaged mark"},
		"mark with a run too many": {put(markKey(1), flip(14, 2)), "damaged mark"},
		"run with more entries":    {put(markKey(1), flip(16, 8)), "damaged mark"},
		"run with fewer entries":   {put(markKey(1), flip(16, 1)), "rows are used"},
		"run of negative size":     {put(markKey(1), flip(23, 0x80)), "damaged mark"},
		"mark of no family":        {func(m *MemBackend) { m.meta[markKey(7)] = m.meta[markKey(1)] }, "family is not there"},
		"family gone":              {func(m *MemBackend) { delete(m.families, runName{1, 0}) }, "family is not there"},
		"bitmap gone":              {func(m *MemBackend) { delete(m.meta, bitsKey(0)) }, "bitmap of 0 bytes for 3 rows"},
		"key with a sign":          {func(m *MemBackend) { m.meta["mark.+1"] = m.meta[markKey(1)]; delete(m.meta, markKey(1)) }, `damaged mark "mark.+1"`},
		"key with a zero":          {func(m *MemBackend) { m.meta["bits.00"] = m.meta[bitsKey(0)] }, `damaged bitmap "bits.00"`},
		"key of no number":         {func(m *MemBackend) { m.meta["mark.x"] = m.meta[markKey(1)] }, `damaged mark "mark.x"`},
		"bitmap cut":               {put(bitsKey(0), cut), "bitmap of 7 bytes for 3 rows"},
		"bitmap of a row too many": {put(bitsKey(0), flip(0, 8)), "rows that the bucket has not"},
		"bitmap without its mark":  {func(m *MemBackend) { delete(m.meta, markKey(0)) }, "no mark"},
	} {
		for _, keep := range []bool{false, true} {
			opt := testOptions
			opt.KeepUsed = keep
			m := sealedStore(t, opt)
			c.change(m)
			if _, err := openDamaged(t, opt, m); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, used rows kept: %v: error %v, want one with %q", name, keep, err, c.want)
			}
		}
	}
}
