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

// endedStore is a store of a ring that keeps used rows: of its sealed bucket 0 row 0 had ended before, row 1 was used then and
// ended later. Its open bucket 1 was spilled, and a row that is in its run has ended since the bitmaps were written.
func endedStore(t testing.TB) *MemBackend {
	opt := testOptions
	opt.KeepUsed = true
	m := NewMemBackend()
	r := mustRing(t, opt, m, 0)
	for i := range int64(8) {
		put(t, r, uint64(i), Entry{Time: i * opt.Width / 4, Offset: i, Key: []byte("sk"), Body: []byte("{}")})
	}
	r.End(r.At(0), 0)
	r.Use(r.At(0), 1)
	must(t, r.Commit(1, commitRecord(1)))
	sealBucket(t, r, 0)
	r.End(r.At(0), 1)
	must(t, r.Commit(2, commitRecord(2)))
	spill := r.StartSpill(r.At(1))
	must(t, spill.Run())
	_, err := r.FinishSeal(spill)
	must(t, err)
	r.End(r.At(1), 3)
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
		over := 0
		for row := range uint32(b.Rows()) {
			if b.Ended(row) {
				over++
			}
		}
		if want := b.Rows() - over; b.Live() != want {
			t.Fatalf("bucket %d: %d rows live, %d of %d over", b.Epoch, b.Live(), over, b.Rows())
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
	m := endedStore(f)
	f.Add(bitsKey(0), m.meta[bitsKey(0)], false) // two bitmaps, for a ring that has ended rows and for one that has none
	m = sealedStore(f, testOptions)
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
		keeping := Options{Width: testOptions.Width, Slots: testOptions.Slots, KeepUsed: true}
		for i, m := range []*MemBackend{sealedStore(t, testOptions), sealedStore(t, keeping), endedStore(t)} {
			opt := []Options{testOptions, keeping, keeping}[i]
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
			ours := strings.HasPrefix(key, bucketMark) || strings.HasPrefix(key, rowBits) || had // what we would have written
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
		"mark with more rows":      {put(markKey(1), flip(2, 4)), "rows are over"},
		"mark with fewer rows":     {put(markKey(1), flip(2, 2)), "damaged mark"},
		"mark with a run too many": {put(markKey(1), flip(14, 2)), "damaged mark"},
		"run with more entries":    {put(markKey(1), flip(16, 8)), "damaged mark"},
		"run with fewer entries":   {put(markKey(1), flip(16, 1)), "rows are over"},
		"run of negative size":     {put(markKey(1), flip(23, 0x80)), "damaged mark"},
		"mark of no family":        {func(m *MemBackend) { m.meta[markKey(7)] = m.meta[markKey(1)] }, "family is not there"},
		"family gone":              {func(m *MemBackend) { delete(m.families, RunName{Epoch: 1}) }, "family is not there"},
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

// TestDamagedEnds: the second bitmap, of the rows that have ended.
func TestDamagedEnds(t *testing.T) {
	opt := testOptions
	opt.KeepUsed = true
	r, err := openDamaged(t, opt, endedStore(t))
	must(t, err)
	b0, b1 := r.At(0), r.At(1)
	if b0.Live() != 2 || b0.Entries() != 3 || b0.Used(0) || !b0.Ended(0) || !b0.Used(1) || !b0.Ended(1) || b0.Ended(2) || b1.Live() != 3 || !b1.Ended(3) || b1.Used(3) {
		t.Fatalf("buckets %+v and %+v: not what was stored", b0, b1)
	}
	for name, c := range map[string]struct {
		change func(v []byte) []byte
		want   string // empty: it opens
	}{
		"whole":                  {func(v []byte) []byte { return v }, ""},
		"second one gone":        {func(v []byte) []byte { return v[:8] }, "0 of 4 rows are over, and its runs have 3"},
		"second one cleared":     {func(v []byte) []byte { v[8] = 0; return v }, "0 of 4 rows are over, and its runs have 3"},
		"second one cut":         {func(v []byte) []byte { return v[:15] }, "bitmap of 15 bytes for 4 rows"},
		"a third":                {func(v []byte) []byte { return append(v, v[:8]...) }, "bitmap of 24 bytes for 4 rows"},
		"a row too many ended":   {func(v []byte) []byte { v[8] |= 16; return v }, "rows that the bucket has not"},
		"a row too many is used": {func(v []byte) []byte { v[1] |= 1; return v }, "rows that the bucket has not"},
	} {
		m := endedStore(t)
		m.meta[bitsKey(0)] = c.change(bytes.Clone(m.meta[bitsKey(0)]))
		_, err := openDamaged(t, opt, m)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
	if _, err := openDamaged(t, testOptions, endedStore(t)); err == nil || !strings.Contains(err.Error(), "bitmap of 16 bytes for 4 rows") {
		t.Errorf("of a ring whose rows are used up: error %v", err)
	}
	consuming := testOptions
	m := NewMemBackend()
	must(t, mustRing(t, consuming, m, 0).Commit(1, commitRecord(1)))
	m.journal[1] = appendRows([]byte{journalVersion}, sectionEnded, 0, []uint32{0})
	if _, err := NewRing(consuming, m, 1); !errors.Is(err, ErrJournal) || !strings.Contains(err.Error(), "whose rows are used up") {
		t.Errorf("a journal of ended rows for a ring whose rows are used up: error %v", err)
	}
}

// TestNoEndsNoBitmap: a ring that keeps used rows and ends none has and writes one bitmap; after the first End it has two.
func TestNoEndsNoBitmap(t *testing.T) {
	opt := testOptions
	opt.KeepUsed = true
	m := NewMemBackend()
	r := mustRing(t, opt, m, 0)
	for i := range uint64(70) {
		put(t, r, i, Entry{Key: []byte("sk")})
		r.Use(r.At(0), uint32(i))
	}
	must(t, r.Commit(1, nil))
	sealBucket(t, r, 0)
	b := r.At(0)
	if b.ended != nil || len(m.meta[bitsKey(0)]) != 16 || b.Live() != 70 || r.ScanLive(b).over != nil {
		t.Errorf("%d words, %d bytes stored, %d live", len(b.ended), len(m.meta[bitsKey(0)]), b.Live())
	}
	r.End(b, 3)
	if r.End(b, 3) || r.Use(b, 3) {
		t.Error("a row ended or was used twice")
	}
	r.Undo()
	if b.Ended(3) || !r.End(b, 69) {
		t.Error("Undo left an end")
	}
	must(t, r.Commit(2, nil))
	defer func(old int64) { checkpointBytes = old }(checkpointBytes)
	checkpointBytes = 1
	must(t, r.Maintain())
	if len(m.meta[bitsKey(0)]) != 32 || b.Live() != 69 || !b.Ended(69) || b.Ended(3) || r.Pending() != 69 {
		t.Errorf("%d bytes stored, %d live", len(m.meta[bitsKey(0)]), b.Live())
	}
}

// TestOlderState: a state of format version 4 is refused by its version.
func TestOlderState(t *testing.T) {
	m := sealedStore(t, testOptions)
	m.meta[metaHeader][0] = 4
	_, err := NewRing(testOptions, m, 3)
	if err == nil || !strings.Contains(err.Error(), "this build reads version 5, the state has version 4") || !strings.Contains(err.Error(), "empty directory") {
		t.Errorf("error %v", err)
	}
}
