package buckets

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// readClose reads what is left in a bucket's runs, and in how many parts it came. It checks what holds of each part.
func readClose(t testing.TB, r *Ring, b *Bucket, what CloseRows, limit int64) (all []found, parts int) {
	t.Helper()
	for s := r.StartClose(b, what, limit); ; s = r.NextClose(s) {
		must(t, s.Run())
		parts++
		size := int64(0)
		for i := range s.Rows() {
			e, err := ParseEntry(s.Entry(i))
			must(t, err)
			if e.Time != s.Time(i) {
				t.Fatalf("row %d of a part: time %d, its entry has %d", i, s.Time(i), e.Time)
			}
			all = append(all, found{s.Row(i), string(s.Entry(i))})
			size += int64(len(s.Entry(i)) + closeRowExtra)
		}
		if limit > 0 && s.Rows() > 1 && size > limit || s.More() && (limit <= 0 || s.Rows() == 0) {
			t.Fatalf("a part of %d rows and %d bytes, the limit is %d, more: %v", s.Rows(), size, limit, s.More())
		}
		if !s.More() {
			return all, parts
		}
	}
}

// closeBucket fills bucket 0 with n rows in several runs, of which some are used, ended or both, and some rows more in RAM. The
// events have few different times, partitions and offsets.
func closeBucket(t testing.TB, r *Ring, n int) *Bucket {
	rng := newRand(t)
	batch := r.Committed()
	for i := range n {
		e := Entry{Time: rng.Int64N(20), Partition: int32(rng.IntN(3)), Offset: rng.Int64N(50), Key: fmt.Appendf(nil, "s%d", i),
			Body: filled(rng.IntN(200), rng.Uint64())}
		put(t, r, uint64(rng.IntN(n)), e)
		if i%(n/3) == n/3-1 { // rows after the last run stay in RAM
			batch++
			must(t, r.Commit(batch, commitRecord(batch)))
			job := r.StartSpill(r.At(0))
			must(t, job.Run())
			_, err := r.FinishSeal(job)
			must(t, err)
		}
		if rng.IntN(3) == 0 {
			r.Use(r.At(0), uint32(rng.IntN(i+1)))
		}
		if rng.IntN(5) == 0 {
			r.End(r.At(0), uint32(rng.IntN(i+1)))
		}
	}
	batch++
	must(t, r.Commit(batch, commitRecord(batch)))
	return r.At(0)
}

// TestClose: what is left in the runs comes out once, by time, partition and offset, whatever the limit.
func TestClose(t *testing.T) {
	for _, keep := range []bool{false, true} {
		eachKit(t, func(t *testing.T, k kit) {
			opt := testOptions
			opt.KeepUsed = keep
			r := mustRing(t, opt, k.open(t), 0)
			defer func() { must(t, r.Close()) }()
			b := closeBucket(t, r, 1000)
			if b.Runs() != 3 {
				t.Fatalf("%d runs", b.Runs())
			}
			for _, what := range []CloseRows{UnusedRows, LiveRows} {
				var want []found
				must(t, r.EachLive(b, func(row uint32, entry []byte) error {
					if row < 999 && (what == LiveRows || !b.Used(row)) {
						want = append(want, found{row, string(entry)})
					}
					return nil
				}))
				slices.SortFunc(want, func(x, y found) int {
					return cmp.Or(compareEntries([]byte(x.entry), []byte(y.entry)), cmp.Compare(x.row, y.row))
				})
				several := 0
				for _, limit := range []int64{0, 1 << 30, 30_000, 5000, 1} {
					before := r.Iterators()
					got, parts := readClose(t, r, b, what, limit)
					if !slices.Equal(got, want) || len(want) == 0 {
						t.Fatalf("used rows kept: %v, rows %d, limit %d: %d rows, expected %d, or others", keep, what, limit, len(got), len(want))
					}
					if n := r.Iterators() - before; n != uint64(3*parts) {
						t.Errorf("%d iterators for %d parts of 3 runs", n, parts)
					}
					if parts > 1 {
						several++
					}
				}
				if several < 3 {
					t.Errorf("%d of the limits took several parts", several)
				}
			}
		})
	}
}

// TestCloseMeanwhile: a scan gives what was left when it was made, the next part what is left then; what a run got after the
// first part was made is in neither.
func TestCloseMeanwhile(t *testing.T) {
	eachKit(t, func(t *testing.T, k kit) {
		r := mustRing(t, testOptions, k.open(t), 0)
		defer func() { must(t, r.Close()) }()
		for i := range int64(10) {
			put(t, r, uint64(i), Entry{Time: i, Key: []byte("sk"), Body: filled(67, 1)}) // 104 bytes a row
		}
		must(t, r.Commit(1, nil))
		spill := r.StartSpill(r.At(0))
		must(t, spill.Run())
		_, err := r.FinishSeal(spill)
		must(t, err)
		put(t, r, 3, Entry{Time: 8, Key: []byte("sk")})
		b := r.At(0)
		r.Use(b, 1)
		must(t, r.Commit(2, nil))
		s := r.StartClose(b, UnusedRows, 500)
		r.Use(b, 2)
		r.Use(b, 7)
		must(t, r.Commit(3, nil))
		sealBucket(t, r, 0)
		if b.Runs() != 2 || s.InRuns() != 10 {
			t.Fatalf("%d runs, %d rows were in runs", b.Runs(), s.InRuns())
		}
		var parts [][]uint32
		for ; ; s = r.NextClose(s) {
			must(t, s.Run())
			var rows []uint32
			for i := range s.Rows() {
				rows = append(rows, s.Row(i))
			}
			if parts = append(parts, rows); !s.More() {
				break
			}
		}
		if got := fmt.Sprint(parts); got != "[[0 2] [3 4] [5 6 8 9]]" {
			t.Errorf("parts of rows %s", got)
		}
	})
}

// TestCloseReadsNothing: without a run, or with nothing left in one, a close opens no iterator.
func TestCloseReadsNothing(t *testing.T) {
	eachKit(t, func(t *testing.T, k kit) {
		r := mustRing(t, testOptions, k.open(t), 0)
		defer func() { must(t, r.Close()) }()
		for i := range int64(100) {
			put(t, r, uint64(i), Entry{Time: i, Key: []byte("sk")})
		}
		must(t, r.Commit(1, nil))
		open := r.StartClose(r.At(0), UnusedRows, 0)
		sealBucket(t, r, 0)
		for row := range uint32(100) {
			r.Use(r.At(0), row)
		}
		must(t, r.Commit(2, nil))
		for _, s := range []*CloseScan{open, r.StartClose(r.At(0), UnusedRows, 0)} {
			must(t, s.Run())
			if s.Rows() != 0 || s.More() {
				t.Errorf("%d rows", s.Rows())
			}
		}
		if n := r.Iterators(); n != 0 {
			t.Errorf("%d iterators", n)
		}
	})
}

// TestCloseDamage: a value that is none, or one with a row that the bucket has not, is an error of its name.
func TestCloseDamage(t *testing.T) {
	for name, damage := range map[string]func(v []byte) []byte{
		"version": func(v []byte) []byte { v[0] = 9; return v },
		"cut":     func(v []byte) []byte { return v[:len(v)-1] },
		"row":     func(v []byte) []byte { v[4] = 77; return v },
	} {
		m := sealedStore(t, testOptions)
		r := mustRing(t, testOptions, m, 3)
		f := m.families[RunName{Epoch: 1}]
		f.values[len(f.values)-1] = damage(f.values[len(f.values)-1])
		err := r.StartClose(r.At(1), LiveRows, 0).Run()
		if !errors.Is(err, ErrEntry) || !strings.Contains(err.Error(), "left in bucket 1") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestCloseMemory: what a scan holds is what its comment says.
func TestCloseMemory(t *testing.T) {
	r := mustRing(t, testOptions, NewMemBackend(), 0)
	const n = 20_000
	for i := range n {
		put(t, r, uint64(i)*0x9e3779b97f4a7c15, Entry{Time: int64(i * 7919 % 1000), Key: []byte("sk"), Body: make([]byte, 65)})
	}
	size := int64((&Entry{Key: []byte("sk"), Body: make([]byte, 65)}).Size())
	must(t, r.Commit(1, nil))
	sealBucket(t, r, 0)
	for _, limit := range []int64{0, 1 << 20, 100_000} {
		s := r.StartClose(r.At(0), UnusedRows, limit)
		must(t, s.Run())
		rows := int64(s.Rows())
		most := rows*(size+8) + n/8 + 8
		if limit > 0 {
			most += 16 * (limit/33 + 1) // its index is made for the smallest entries
			most += limit/8 + rows*(size+8)/8
		} else {
			most += 16*rows + maxCloseChunk + rows*(size+8)/100
		}
		if got := s.MemoryBytes(); got > most || limit > 0 && (s.held > limit || !s.More()) {
			t.Errorf("limit %d: %d rows take %d bytes, expected at most %d", limit, rows, got, most)
		}
	}
}

// TestSortByTime: times near and far, and those that are too far apart, against a plain sort.
func TestSortByTime(t *testing.T) {
	rng := newRand(t)
	for _, span := range []int64{1, 7, 1 << digitBits, 1<<digitBits + 1, 60_000, 1 << 30, 1<<33 - 1, 1 << 33, 1 << 60} {
		for _, n := range []int{0, 1, 100, 5000} {
			rows := make([]closeRow, n)
			for i := range rows {
				rows[i] = closeRow{rng.Int64N(span) - span/2, uint64(i)}
			}
			if n > 1 {
				rows[0].time, rows[1].time = -span/2, span-span/2 // the span is as large as it says
			}
			want := slices.Clone(rows)
			slices.SortStableFunc(want, func(x, y closeRow) int { return cmp.Compare(x.time, y.time) })
			did := sortByTime(rows)
			if did != (n == 5000 && span < 1<<33) || did && !slices.Equal(rows, want) {
				t.Errorf("span %d, %d rows: sorted %v, or not as it should be", span, n, did)
			}
		}
	}
}
