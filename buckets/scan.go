package buckets

import "fmt"

// EachLive calls fn with every row of a bucket that is not over: run by run by hash, then by row what is in RAM. The
// entry is valid during the call.
func (r *Ring) EachLive(b *Bucket, fn func(row uint32, entry []byte) error) error {
	for _, run := range b.runs {
		if err := scanRun(r.store, run.family, b.snapshot(b.over()), b.done, fn); err != nil {
			return err
		}
	}
	for row := b.done; row < b.rows; row++ {
		if !b.Ended(row) {
			if err := fn(row, b.Entry(row)); err != nil {
				return err
			}
		}
	}
	return nil
}

// scanRun calls fn with the rows of a family that are not over.
func scanRun(store Backend, f Family, over bitmap, rows uint32, fn func(row uint32, entry []byte) error) error {
	return store.ScanValues(f, over, rows, func(_, value []byte) error {
		it := IterValue(value)
		for row, entry, ok := it.Next(); ok; row, entry, ok = it.Next() {
			if row >= rows {
				return fmt.Errorf("%w: row %d of %d", ErrEntry, row, rows)
			}
			if !over.has(row) {
				if err := fn(row, entry); err != nil {
					return err
				}
			}
		}
		return it.Err()
	})
}

// HashScan reads the hashes in a bucket's runs, for a filter. Run may be called from any goroutine, once.
type HashScan struct {
	Bucket   *Bucket
	store    Backend
	families []Family
	rows     uint32
	over     bitmap // rows to leave out; nil: none
	// Hashes is filled by Run: for each run the distinct ones, ascending.
	Hashes [][]uint64
}

// ScanHashes prepares a HashScan of all rows in runs.
func (r *Ring) ScanHashes(b *Bucket) *HashScan {
	s := &HashScan{Bucket: b, store: r.store, rows: b.done}
	for _, run := range b.runs {
		s.families = append(s.families, run.family)
	}
	return s
}

// ScanLive prepares a HashScan of the rows in runs that a B may still find: those that are not over as of now. What is
// over later stays in.
func (r *Ring) ScanLive(b *Bucket) *HashScan {
	s := r.ScanHashes(b)
	s.over = b.snapshot(b.over())
	return s
}

// snapshot is a copy of a bitmap that has all rows; nil if no row is set in it.
func (b *Bucket) snapshot(m bitmap) bitmap {
	if len(m) == 0 {
		return nil
	}
	return append(make(bitmap, 0, len(b.used)), m...)[:len(b.used)]
}

// Run fills Hashes. The bucket must not be dropped meanwhile: run both on one helper goroutine, in order.
func (s *HashScan) Run() error {
	for _, f := range s.families {
		hashes, err := s.scan(f)
		if err != nil {
			return err
		}
		s.Hashes = append(s.Hashes, hashes)
	}
	return nil
}

func (s *HashScan) scan(f Family) (hashes []uint64, err error) {
	if s.over == nil {
		return s.store.ScanHashes(f, nil)
	}
	return s.store.ScanLive(f, s.over, s.rows, nil)
}
