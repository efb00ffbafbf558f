package buckets

import (
	"cmp"
	"slices"
)

type CloseScan struct {
	Bucket *Bucket
	ring   *Ring
	rows   []closeRow
	err    error
}
type closeRow struct {
	time  int64
	row   uint32
	entry []byte
}

func (r *Ring) StartClose(b *Bucket, used bool) *CloseScan {
	s := &CloseScan{Bucket: b, ring: r}
	for _, run := range b.runs {
		s.err = scanRun(r.store, run.family, b.done, b.Used, func(row uint32, e []byte) error {
			s.rows = append(s.rows, closeRow{entryTime(e), row, slices.Clone(e)})
			return nil
		})
	}
	slices.SortFunc(s.rows, func(a, b closeRow) int {
		return cmp.Or(cmp.Compare(a.time, b.time), compareEntries(a.entry, b.entry))
	})
	return s
}
func (s *CloseScan) Run() error         { return s.err }
func (s *CloseScan) Rows() int          { return len(s.rows) }
func (s *CloseScan) Time(i int) int64   { return s.rows[i].time }
func (s *CloseScan) Row(i int) uint32   { return s.rows[i].row }
func (s *CloseScan) Entry(i int) []byte { return s.rows[i].entry }
