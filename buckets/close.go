package buckets

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
)

// CloseRows says which rows of a bucket a CloseScan is for.
type CloseRows uint8

const (
	// UnusedRows are those that no pair took and that have not ended: what a left join emits at a close.
	UnusedRows CloseRows = iota
	// LiveRows are those that have not ended (Bucket.Ended), used or not.
	LiveRows
)

// CloseScan reads what is left in a bucket's runs when the bucket closes, in the order of time, partition and offset. Run may
// be called from any goroutine, once; the other methods from any, one at a time, when Run has ended. The bucket must not be
// dropped before: run both on one helper goroutine, in order.
//
// It knows the used and ended rows as of StartClose: who takes a row from it asks the bucket again. A row costs its entry, 8
// bytes beside it and 16 bytes of index, another 16 while Run sorts. With a limit, entries and those 8 bytes are at most limit bytes in the end and 1.5 ×
// limit in between, in chunks of an eighth of it, 1 to 256 KiB, or of one entry that is larger. A bucket in which more is left
// takes several scans (More, NextClose) that give half the limit or more each, and each of them reads all of the runs.
type CloseScan struct {
	Bucket *Bucket

	store    Backend
	families []Family
	what     CloseRows
	inRuns   uint32
	left     int    // rows of inRuns that are wanted, at most
	skip     bitmap // rows that are not
	limit    int64
	after    *closeMark // what came before, nil at first

	rows   []closeRow
	chunks [][]byte
	held   int64      // bytes in chunks
	until  *closeMark // rows behind it are left for the next scan; nil: none is
	sink   byte       // of what was read ahead
}

// closeRow is a row that was read: where it lies in chunks (chunk << 32 | offset), as a run has it: u32 row, u32 length, entry.
type closeRow struct {
	time int64
	at   uint64
}

// closeMark is a place in the order of a scan: the fixed part of an entry, and its row.
type closeMark struct {
	head [entryHeader]byte
	row  uint32
}

// covers says whether an entry comes no later than a mark.
func (m *closeMark) covers(entry []byte, row uint32) bool {
	return cmp.Or(compareEntries(entry, m.head[:]), cmp.Compare(row, m.row)) <= 0
}

const (
	maxCloseChunk = 256 << 10
	minCloseChunk = 1 << 10
	closeRowExtra = 8 // bytes of a row in chunks beside its entry
)

// StartClose prepares a scan of the rows of a bucket that lie in runs; those from InRuns on lie in RAM and are the caller's.
// Limit is about what it may hold in RAM, in bytes; 0: no limit. Without a run in the bucket nothing is read.
func (r *Ring) StartClose(b *Bucket, what CloseRows, limit int64) *CloseScan {
	s := &CloseScan{Bucket: b, store: r.store, what: what, inRuns: b.done, limit: limit}
	if limit <= 0 {
		s.limit = math.MaxInt64
	}
	for _, run := range b.runs {
		s.families = append(s.families, run.family)
	}
	s.look()
	return s
}

// NextClose prepares the scan of what comes behind the last row of one that has More, and knows the used and ended rows as of
// now. Both may be held.
func (r *Ring) NextClose(s *CloseScan) *CloseScan {
	next := &CloseScan{Bucket: s.Bucket, store: s.store, what: s.what, inRuns: s.inRuns, limit: s.limit, families: s.families}
	next.after = s.markOf(s.rows[len(s.rows)-1])
	next.look()
	return next
}

// look takes over which rows are wanted.
func (s *CloseScan) look() {
	b := s.Bucket
	s.skip = append(make(bitmap, 0, len(b.used)), b.over()...)[:len(b.used)]
	if s.what == UnusedRows {
		for i, w := range b.used {
			s.skip[i] |= w
		}
	}
	s.left = int(s.inRuns)
	for i, w := range s.skip[:words(s.inRuns)] {
		if rest := s.inRuns - uint32(i)*64; rest < 64 {
			w &= 1<<rest - 1
		}
		s.left -= bits.OnesCount64(w)
	}
}

// InRuns is the number of the bucket's first row that did not lie in a run at StartClose.
func (s *CloseScan) InRuns() uint32 { return s.inRuns }

// Rows is how many rows were read; with a limit there may be More.
func (s *CloseScan) Rows() int { return len(s.rows) }

// More says that others come behind these: NextClose reads them.
func (s *CloseScan) More() bool { return s.until != nil }

// Time is the event time of row i of the scan, in ms: it never falls.
func (s *CloseScan) Time(i int) int64 { return s.rows[i].time }

// Row is the number in the bucket of row i of the scan.
func (s *CloseScan) Row(i int) uint32 { return binary.LittleEndian.Uint32(s.raw(s.rows[i])) }

// Entry is the entry of row i of the scan, valid for as long as the scan is held.
func (s *CloseScan) Entry(i int) []byte { return s.entry(s.rows[i]) }

// MemoryBytes is what it holds in RAM.
func (s *CloseScan) MemoryBytes() int64 {
	n := int64(cap(s.rows))*16 + int64(cap(s.skip))*8
	for _, c := range s.chunks {
		n += int64(cap(c))
	}
	return n
}

func (s *CloseScan) raw(r closeRow) []byte { return s.chunks[r.at>>32][uint32(r.at):] }

func (s *CloseScan) entry(r closeRow) []byte {
	b := s.raw(r)
	end := closeRowExtra + binary.LittleEndian.Uint32(b[4:])
	return b[closeRowExtra:end:end]
}

// Run reads the runs.
func (s *CloseScan) Run() error {
	if s.left == 0 {
		return nil
	}
	s.rows = make([]closeRow, 0, min(int64(s.left), s.limit/(closeRowExtra+entryHeader+1)+2))
	for _, f := range s.families {
		err := s.store.ScanValues(f, s.skip, s.inRuns, func(_, value []byte) error {
			it := IterValue(value)
			for row, entry, ok := it.Next(); ok; row, entry, ok = it.Next() {
				if row >= s.inRuns {
					return fmt.Errorf("%w: row %d of %d", ErrEntry, row, s.inRuns)
				}
				if s.wants(row, entry) {
					s.add(row, entry)
				}
			}
			return it.Err()
		})
		if err != nil {
			return fmt.Errorf("reading what is left in bucket %d: %w", s.Bucket.Epoch, err)
		}
	}
	s.sort()
	return nil
}

func (s *CloseScan) wants(row uint32, entry []byte) bool {
	return !s.skip.has(row) && (s.after == nil || !s.after.covers(entry, row)) && (s.until == nil || s.until.covers(entry, row))
}

func (s *CloseScan) add(row uint32, entry []byte) {
	s.rows = append(s.rows, closeRow{entryTime(entry), s.place(closeRowExtra + len(entry))})
	c := &s.chunks[len(s.chunks)-1]
	*c = binary.LittleEndian.AppendUint32(*c, row)
	*c = binary.LittleEndian.AppendUint32(*c, uint32(len(entry)))
	*c = append(*c, entry...)
	if s.held > s.limit && len(s.rows) > 1 {
		s.cut()
	}
}

// place makes room for n bytes in the last chunk and says where they go.
func (s *CloseScan) place(n int) uint64 {
	last := len(s.chunks) - 1
	if last < 0 || cap(s.chunks[last])-len(s.chunks[last]) < n {
		s.chunks = append(s.chunks, make([]byte, 0, max(int64(n), min(maxCloseChunk, max(s.limit/8, minCloseChunk)))))
		last++
	}
	s.held += int64(n)
	return uint64(last)<<32 | uint64(len(s.chunks[last]))
}

// cut leaves the later half of what was read for the next scan.
func (s *CloseScan) cut() {
	s.sort()
	keep, size := 0, int64(0)
	for ; keep < len(s.rows); keep++ {
		size += int64(closeRowExtra + len(s.entry(s.rows[keep])))
		if keep > 0 && size > s.limit/2 {
			break
		}
	}
	old := CloseScan{chunks: s.chunks}
	s.until = s.markOf(s.rows[keep-1])
	s.rows, s.chunks, s.held = s.rows[:keep], nil, 0
	for i, r := range s.rows {
		b := old.raw(r)
		b = b[:closeRowExtra+len(old.entry(r))]
		s.rows[i].at = s.place(len(b))
		c := &s.chunks[len(s.chunks)-1]
		*c = append(*c, b...)
	}
}

func (s *CloseScan) markOf(r closeRow) *closeMark {
	m := &closeMark{row: binary.LittleEndian.Uint32(s.raw(r))}
	copy(m.head[:], s.entry(r))
	return m
}
