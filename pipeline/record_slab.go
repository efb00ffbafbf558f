package pipeline

import "joinbench/kafka"

// recordSlab is where the records of a batch live until they are acknowledged: their bytes, headers and the records themselves, in chunks
// that are used again for the next batch. It belongs to one goroutine.
type recordSlab struct {
	bytes   chunks[byte]
	headers chunks[kafka.Header]
	records chunks[kafka.Record]
}

const (
	keptBytes   = 256 << 10
	keptHeaders = 1024
	keptRecords = 512
)

// copy copies bytes; nil stays nil.
func (s *recordSlab) copy(b []byte) []byte {
	if b == nil {
		return nil
	}
	to := s.bytes.take(len(b), keptBytes)
	copy(to, b)
	return to
}

// record is an empty record with room for n headers.
func (s *recordSlab) record(n int) *kafka.Record {
	r := &s.records.take(1, keptRecords)[0]
	*r = kafka.Record{Headers: s.headers.take(n, keptHeaders)[:0]}
	return r
}

// reset lets go of everything: what is on its way must have been acknowledged.
func (s *recordSlab) reset() {
	s.bytes.reset()
	s.headers.reset()
	s.records.reset()
}

// renew lets go of everything, and leaves the memory to whoever may still look at it.
func (s *recordSlab) renew() { *s = recordSlab{} }

// chunks hands out slices of chunks that do not move.
type chunks[T any] struct {
	full [][]T
	at   int // chunk that is being used up
	used int // of it
}

// take gives n elements, as they were left. More than a chunk has are not kept: whoever comes by a chunk that is too small for him goes on
// to the next, so with large ones of all sizes the chunks would grow more with every batch.
func (c *chunks[T]) take(n, size int) []T {
	if n > size {
		return make([]T, n)
	}
	if c.at < len(c.full) && size-c.used < n {
		c.at, c.used = c.at+1, 0
	}
	if c.at == len(c.full) {
		c.full = append(c.full, make([]T, size))
	}
	from := c.used
	c.used += n
	return c.full[c.at][from:c.used:c.used]
}

func (c *chunks[T]) reset() { c.at, c.used = 0, 0 }
