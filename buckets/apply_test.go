package buckets

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

// journalsOf are the records of a batch in a store in memory.
func journalsOf(t testing.TB, m *MemBackend, batch uint64, opts []Options) (list []RingJournal) {
	t.Helper()
	for _, opt := range opts {
		must(t, m.ScanJournal(opt.Space, func(n uint64, record []byte) error {
			if n == batch {
				list = append(list, RingJournal{opt.Space, bytes.Clone(record)})
			}
			return nil
		}))
	}
	return list
}

// TestApply: rings to which the journal of others is applied are what those are, after each batch, whatever both do between
// batches; an Undo takes it back whole.
func TestApply(t *testing.T) {
	opts := twoRings()
	source, copied := NewMemBackend(), NewMemBackend()
	g, err := NewRings(opts, source, 0)
	must(t, err)
	twin, err := NewRings(opts, copied, 0)
	must(t, err)
	must(t, ringsLife(g, func(batch uint64) {
		if batch == 5 {
			if twin, err = NewRings(opts, copied, batch-1); err != nil {
				t.Fatal(err)
			}
		}
		before := [2][]string{rowsOf(t, twin.At(0), -1<<62), rowsOf(t, twin.At(1), -1<<62)}
		list := journalsOf(t, source, batch, opts)
		if len(list) != 2 {
			t.Fatalf("%d journal records", len(list))
		}
		for try := range 2 {
			for _, j := range list[:1+try] { // at first a part
				must(t, twin.Apply(j))
			}
			if got := twin.Journal(nil); !slices.EqualFunc(got, list[:1+try], func(x, y RingJournal) bool { return x.Space == y.Space && len(x.Record) == len(y.Record) }) {
				t.Fatalf("batch %d is journaled in another way", batch)
			}
			if try == 0 {
				twin.Undo()
				for i := range opts {
					if !slices.Equal(rowsOf(t, twin.At(i), -1<<62), before[i]) {
						t.Fatalf("batch %d: Undo left something in ring %d", batch, i)
					}
				}
			}
		}
		must(t, twin.Commit(batch, commitRecord(batch)))
		for i, r := range twin.rings {
			if got, want := rowsOf(t, r, -1<<62), rowsOf(t, g.At(i), -1<<62); !slices.Equal(got, want) || r.Pending() != g.At(i).Pending() {
				t.Fatalf("batch %d, ring %d:\n got %s\nwant %s", batch, i, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			must(t, ringBetween(r, int64(batch), i))
			if len(r.Missing()) > 0 {
				t.Fatalf("batch %d: buckets %d are missing", batch, r.Missing())
			}
		}
	}))
}

// TestApplyCut: when the first records are gone, buckets that began in them are passed over until they are dropped, and the others
// are whole.
func TestApplyCut(t *testing.T) {
	opts := twoRings()
	for cut := uint64(2); cut < 7; cut++ {
		source := NewMemBackend()
		g, err := NewRings(opts, source, 0)
		must(t, err)
		twin, err := NewRings(opts, NewMemBackend(), 0)
		must(t, err)
		first := map[[2]int64]uint64{} // batch that made a bucket, by ring and epoch
		missed := 0
		must(t, ringsLife(g, func(batch uint64) {
			for i, r := range g.rings {
				for slot := range r.Slots() {
					if b := r.AtSlot(slot); b != nil && first[[2]int64{int64(i), b.Epoch}] == 0 {
						first[[2]int64{int64(i), b.Epoch}] = batch
					}
				}
			}
			if batch < cut {
				return
			}
			for _, j := range journalsOf(t, source, batch, opts) {
				must(t, twin.Apply(j))
			}
			must(t, twin.Commit(batch, commitRecord(batch)))
			for i, r := range twin.rings {
				for slot := range r.Slots() {
					want, got := g.At(i).AtSlot(slot), r.AtSlot(slot)
					switch whole := want != nil && first[[2]int64{int64(i), want.Epoch}] >= cut; {
					case (got != nil) != whole:
						t.Fatalf("cut before %d, batch %d, ring %d, slot %d: bucket there %v, want %v", cut, batch, i, slot, got != nil, whole)
					case whole && (got.Rows() != want.Rows() || got.Live() != want.Live()):
						t.Fatalf("cut before %d, batch %d, bucket %d: %d rows, %d live", cut, batch, want.Epoch, got.Rows(), got.Live())
					}
				}
				for _, epoch := range r.Missing() {
					missed++
					if first[[2]int64{int64(i), epoch}] >= cut {
						t.Fatalf("bucket %d is missing, and began in batch %d", epoch, first[[2]int64{int64(i), epoch}])
					}
				}
				must(t, ringBetween(r, int64(batch), i))
			}
		}))
		if missed == 0 || len(twin.At(0).Missing())+len(twin.At(1).Missing()) > 0 {
			t.Fatalf("cut before %d: %d missing buckets met, left are %d and %d", cut, missed, twin.At(0).Missing(), twin.At(1).Missing())
		}
	}
}

// TestApplyDamaged: what does not follow what is there is refused, and Undo takes back what was done before it was noticed.
func TestApplyDamaged(t *testing.T) {
	opt := testOptions
	m := NewMemBackend()
	r := mustRing(t, opt, m, 0)
	for i := range uint64(4) {
		put(t, r, i, Entry{Key: []byte("sk")})
	}
	r.Use(r.At(0), 1)
	must(t, r.Commit(1, nil))
	put(t, r, 9, Entry{Time: 5000, Key: []byte("sk")})
	put(t, r, 9, Entry{Key: []byte("sk")})
	must(t, r.Commit(2, nil))
	one, two := m.journal[1], m.journal[2]
	far := func() *Ring {
		other := mustRing(t, opt, NewMemBackend(), 0)
		must(t, other.Apply(one))
		must(t, other.Commit(1, nil))
		return other
	}
	sealed := far()
	must(t, sealed.Commit(2, nil))
	sealBucket(t, sealed, 0)
	for name, c := range map[string]struct {
		to   *Ring
		rec  []byte
		want string
	}{
		"nothing":               {far(), nil, "version"},
		"version 1":             {far(), append([]byte{1}, one[1:]...), "version"},
		"twice":                 {far(), one, "has 4 rows, and row 0 comes next"},
		"cut short":             {far(), two[:len(two)-1], "past the end"},
		"a row that is not yet": {far(), appendRows([]byte{journalVersion}, sectionUsed, 0, []uint32{0, 4}), "row 4 of bucket 0, which has 4"},
		"used twice":            {far(), appendRows([]byte{journalVersion}, sectionUsed, 0, []uint32{0, 1}), "row 1 of bucket 0 is used twice"},
		"ended":                 {far(), appendRows([]byte{journalVersion}, sectionEnded, 0, []uint32{0}), "whose rows are used up"},
		"into a sealed bucket":  {sealed, two, "takes no entry"},
		"missing, then cut":     {far(), append(appendRows([]byte{journalVersion}, sectionUsed, 3, []uint32{7}), sectionUsed), "header cut short"},
		"empty section":         {far(), appendSectionHeader([]byte{journalVersion}, sectionUsed, 0, 0), "empty section"},
	} {
		before := rowsOf(t, c.to, -1<<62)
		if err := c.to.Apply(c.rec); !errors.Is(err, ErrJournal) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
		c.to.Undo()
		if after := rowsOf(t, c.to, -1<<62); !slices.Equal(before, after) || len(c.to.Missing()) > 0 {
			t.Errorf("%s: rows\n%s\nwere\n%s", name, strings.Join(after, "\n"), strings.Join(before, "\n"))
		}
	}
	rings, err := NewRings([]Options{opt}, NewMemBackend(), 0)
	must(t, err)
	if err := rings.Apply(RingJournal{'x', one}); !errors.Is(err, ErrJournal) || !strings.Contains(err.Error(), `ring 'x'`) {
		t.Errorf("of a ring that is not there: error %v", err)
	}
}

// TestReplayFirst: a journal in which rows of a bucket are missing is no journal.
func TestReplayFirst(t *testing.T) {
	m := NewMemBackend()
	r := mustRing(t, testOptions, m, 0)
	for batch := range uint64(3) {
		put(t, r, batch, Entry{Key: []byte("sk")})
		must(t, r.Commit(batch+1, commitRecord(batch+1)))
	}
	delete(m.journal, 2)
	if _, err := NewRing(testOptions, m, 3); !errors.Is(err, ErrJournal) || !strings.Contains(err.Error(), "has 1 rows, and row 2 comes next") {
		t.Errorf("a batch is gone: error %v", err)
	}
	delete(m.journal, 1)
	if _, err := NewRing(testOptions, m, 3); !errors.Is(err, ErrJournal) {
		t.Errorf("the first two are gone: error %v", err)
	}
}
