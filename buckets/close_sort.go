package buckets

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// sort puts the rows in the order of time, partition, offset and row. To compare two rows of one time means to read both, each
// a cache miss; the times of a bucket lie close together, so they are sorted by digits first and what is left to compare are
// short stretches of one time.
func (s *CloseScan) sort() {
	if !sortByTime(s.rows) {
		slices.SortFunc(s.rows, func(x, y closeRow) int { return cmp.Or(cmp.Compare(x.time, y.time), s.compare(x, y)) })
		return
	}
	near := 0 // rows before it were touched
	for i := 0; i < len(s.rows); {
		n := i + 1
		for n < len(s.rows) && s.rows[n].time == s.rows[i].time {
			n++
		}
		if n > near {
			near = min(n+touchAhead, len(s.rows))
			s.touch(s.rows[i:near])
		}
		if n-i > 1 {
			slices.SortFunc(s.rows[i:n], s.compare)
		}
		i = n
	}
}

// touch reads a byte of both cache lines that compare may need of each row: these reads do not wait for each other.
func (s *CloseScan) touch(rows []closeRow) {
	sum := byte(0)
	for _, r := range rows {
		b := s.raw(r)
		sum ^= b[0] ^ b[closeRowExtra+entryHeader]
	}
	s.sink ^= sum
}

// compare orders rows of one time.
func (s *CloseScan) compare(x, y closeRow) int {
	a, b := s.raw(x), s.raw(y)
	return cmp.Or(compareEntries(a[closeRowExtra:], b[closeRowExtra:]),
		cmp.Compare(binary.LittleEndian.Uint32(a), binary.LittleEndian.Uint32(b)))
}

const (
	digitBits = 11
	maxDigits = 3 // above it a sort that compares is as fast; 2^33 ms are 99 days
)

// sortByTime sorts by radix; false if the times lie too far apart for that, or the rows are too few.
func sortByTime(rows []closeRow) bool {
	if len(rows) < 1<<digitBits/4 {
		return false
	}
	least, most := rows[0].time, rows[0].time
	for _, r := range rows {
		least, most = min(least, r.time), max(most, r.time)
	}
	span := uint64(most) - uint64(least)
	if span>>(maxDigits*digitBits) != 0 {
		return false
	}
	from, to := rows, make([]closeRow, len(rows))
	for shift := 0; span>>shift != 0; shift += digitBits {
		var start [1 << digitBits]uint32
		digit := func(r closeRow) uint64 { return (uint64(r.time) - uint64(least)) >> shift & (1<<digitBits - 1) }
		for _, r := range from {
			start[digit(r)]++
		}
		sum := uint32(0)
		for i, n := range start {
			start[i], sum = sum, sum+n
		}
		for _, r := range from {
			d := digit(r)
			to[start[d]] = r
			start[d]++
		}
		from, to = to, from
	}
	if &from[0] != &rows[0] {
		copy(rows, from)
	}
	return true
}
