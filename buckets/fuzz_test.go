package buckets

import (
	"bytes"
	"errors"
	"testing"
)

func FuzzEntry(f *testing.F) {
	for _, e := range []Entry{{}, {SideB: true, Spec: 7, Partition: -1, Time: -5, Offset: 1 << 40, Key: []byte("sk"), Body: []byte(`{"a":1}`)},
		{Key: make([]byte, 200)}, {Wanted: 3, Key: []byte("sk"), Body: []byte("{}")}, {Wanted: 1 << 31}, {Body: make([]byte, 300)}} {
		f.Add(e.AppendTo(nil))
	}
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0xff}, 40))
	whole := (&Entry{Wanted: 7, Key: []byte("sk")}).AppendTo(nil)
	for n := 1; n < 5; n++ {
		f.Add(whole[:len(whole)-n]) // the count cut short
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ParseEntry(b)
		if err != nil {
			if !errors.Is(err, ErrEntry) {
				t.Fatalf("error %v does not wrap ErrEntry", err)
			}
			return
		}
		again := e.AppendTo(nil)
		if len(again) != e.Size() {
			t.Fatalf("Size says %d, AppendTo wrote %d", e.Size(), len(again))
		}
		e2, err := ParseEntry(again)
		if err != nil || e2.SideB != e.SideB || e2.Spec != e.Spec || e2.Partition != e.Partition || e2.Time != e.Time ||
			e2.Offset != e.Offset || e2.Wanted != e.Wanted || !bytes.Equal(e2.Key, e.Key) || !bytes.Equal(e2.Body, e.Body) {
			t.Fatalf("%+v came back as %+v, %v", e, e2, err)
		}
		if EntryBefore(b, again) || EntryBefore(again, b) {
			t.Fatal("an entry comes before itself")
		}
	})
}

// journalOf makes a journal record by a ring.
func journalOf(f *testing.F, opt Options) []byte {
	m := NewMemBackend()
	r := mustRing(f, opt, m, 0)
	for i := range uint64(5) {
		put(f, r, i, Entry{Time: int64(i) * 600, Key: []byte("sk"), Body: []byte("{}")})
	}
	r.Use(r.At(0), 1)
	r.End(r.At(1), 0)
	must(f, r.Commit(1, nil))
	return m.journal[1]
}

// A start over a journal of any bytes works or fails with ErrJournal, and what it accepts outlives one more start.
func FuzzJournal(f *testing.F) {
	keeping := testOptions
	keeping.KeepUsed = true
	for _, opt := range []Options{testOptions, keeping} {
		rec := journalOf(f, opt)
		f.Add(rec)
		f.Add(rec[:len(rec)-3])
	}
	f.Add([]byte{journalVersion})
	for _, kind := range []byte{sectionUsed, sectionEnded} {
		f.Add(append([]byte{journalVersion, kind}, bytes.Repeat([]byte{0xff}, 30)...))
	}
	f.Fuzz(func(t *testing.T, rec []byte) {
		tryJournal(t, testOptions, rec)
		tryJournal(t, keeping, rec)
	})
}

// tryJournal starts over a journal.
func tryJournal(t *testing.T, opt Options, rec []byte) {
	m := NewMemBackend()
	must(t, mustRing(t, opt, m, 0).Commit(1, []byte{1}))
	m.journal[1] = rec
	r, err := NewRing(opt, m, 1)
	if err != nil {
		if !errors.Is(err, ErrJournal) {
			t.Fatalf("error %v does not wrap ErrJournal", err)
		}
		return
	}
	var sealed []int64
	live := 0
	for slot := range opt.Slots {
		if b := r.AtSlot(slot); b != nil {
			sealed, live = append(sealed, b.Epoch), live+b.Live()
		}
	}
	for _, epoch := range sealed {
		sealBucket(t, r, epoch)
	}
	if r = mustRing(t, opt, m, 1); r.Pending() != live {
		t.Fatalf("%d entries wait, expected %d", r.Pending(), live)
	}
	for _, epoch := range sealed {
		n := 0
		must(t, r.EachLive(r.At(epoch), func(_ uint32, entry []byte) error {
			n++
			_, err := ParseEntry(entry)
			return err
		}))
		if n != r.At(epoch).Live() {
			t.Fatalf("bucket %d: %d entries, %d live", epoch, n, r.At(epoch).Live())
		}
	}
}

// A walk over a value of any bytes ends, gives entries inside the value, as many as its header says, or ErrEntry.
func FuzzValue(f *testing.F) {
	part := &writing{arena: arena{pool: &chunkPool{chunk: chunkSize}}}
	for i := range 3 {
		part.arena.append(9, &Entry{Time: int64(i), Key: []byte("sk"), Body: []byte("{}")})
	}
	src := runSource{part: part, rows: []sealRow{{9, 0}, {9, 1}, {9, 2}}}
	_, value, _ := src.Next()
	f.Add(value)
	f.Add(value[:len(value)-1])
	f.Add(append(bytes.Clone(value), 0))
	for _, count := range []byte{0, 2, 4} { // instead of 3
		other := bytes.Clone(value)
		other[2] = count
		f.Add(other)
	}
	f.Add([]byte{valueVersion, 0, 0, 0})
	f.Add([]byte{valueVersion, 1, 2, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, value []byte) {
		HasMore(value)
		it := IterValue(value)
		n, size := 0, valueHeader
		for _, entry, ok := it.Next(); ok; _, entry, ok = it.Next() {
			n++
			size += 8 + len(entry)
			if _, err := ParseEntry(entry); err != nil && !errors.Is(err, ErrEntry) {
				t.Fatal(err)
			}
			EntryBefore(entry, entry) // must have its fixed part
		}
		if it.Err() != nil {
			if !errors.Is(it.Err(), ErrEntry) {
				t.Fatalf("error %v does not wrap ErrEntry", it.Err())
			}
			return
		}
		if len(value) > 0 && (size != len(value) || n != int(value[2])|int(value[3])<<8) {
			t.Fatalf("%d entries in %d of %d bytes", n, size, len(value))
		}
	})
}
