package kafka

import (
	"container/list"
	"slices"
	"sort"

	"github.com/twmb/franz-go/pkg/kgo"

	"joinbench/projection"
)

// stretch is all that a partition holds from one offset to another: its records, packed; an offset without one has none. It is not
// changed once it is made.
type stretch struct {
	partition  int32
	from, next int64
	rows       []stretchRow // by offset
	arena      []byte       // keys and values, one after the other

	use *list.Element // in the cache
}

type stretchRow struct {
	offset, time int64
	at           int   // in the arena
	key, value   int32 // lengths; -1: null
}

const (
	rowSize     = 32
	stretchSize = 256 // itself and its places in lists
)

// newStretch packs records, in the order of their offsets.
func newStretch(partition int32, from, next int64, recs []*kgo.Record) *stretch {
	s := &stretch{partition: partition, from: from, next: next}
	n := 0
	for _, r := range recs {
		n += len(r.Key) + len(r.Value)
	}
	s.arena, s.rows = make([]byte, 0, n), make([]stretchRow, 0, len(recs))
	for _, r := range recs {
		row := stretchRow{offset: r.Offset, time: r.Timestamp.UnixMilli(), at: len(s.arena), key: int32(len(r.Key)), value: int32(len(r.Value))}
		if r.Key == nil {
			row.key = -1
		}
		if r.Value == nil {
			row.value = -1
		}
		s.arena = append(append(s.arena, r.Key...), r.Value...)
		s.rows = append(s.rows, row)
	}
	return s
}

// bytes is what the stretch takes of memory.
func (s *stretch) bytes() int64 { return int64(cap(s.arena) + cap(s.rows)*rowSize + stretchSize) }

// record is the one at a place inside of the stretch; false: there is none. Its bytes are the stretch's.
func (s *stretch) record(p Place) (projection.Record, bool) {
	i, ok := slices.BinarySearchFunc(s.rows, p.Offset, func(r stretchRow, offset int64) int { return int(r.offset - offset) })
	if !ok {
		return projection.Record{}, false
	}
	row := &s.rows[i]
	rec := projection.Record{Partition: p.Partition, Offset: p.Offset, Timestamp: row.time}
	key, value := max(0, int(row.key)), max(0, int(row.value))
	if row.key >= 0 {
		rec.Key = s.arena[row.at : row.at+key : row.at+key]
	}
	if row.value >= 0 {
		from := row.at + key
		rec.Value = s.arena[from : from+value : from+value]
	}
	return rec, true
}

// stretchCache keeps the stretches that were used last, up to a number of bytes. The zero value with a max is ready; one goroutine.
type stretchCache struct {
	max, size int64
	parts     map[int32][]*stretch // by where they begin
	used      list.List            // the last one first
}

// find gives the stretch that has a place, nil if there is none.
func (c *stretchCache) find(p Place) *stretch {
	of := c.parts[p.Partition]
	i := sort.Search(len(of), func(i int) bool { return of[i].from > p.Offset })
	if i == 0 || of[i-1].next <= p.Offset {
		return nil
	}
	c.used.MoveToFront(of[i-1].use)
	return of[i-1]
}

// add keeps a stretch, unless it alone is too much. Those that were not used for longest make room.
func (c *stretchCache) add(s *stretch) {
	if s.bytes() > c.max {
		return
	}
	if c.parts == nil {
		c.parts = map[int32][]*stretch{}
	}
	of := c.parts[s.partition]
	i, there := place(of, s.from)
	if there {
		c.drop(of[i])
	}
	for c.size+s.bytes() > c.max {
		c.drop(c.used.Back().Value.(*stretch))
	}
	of = c.parts[s.partition]
	i, _ = place(of, s.from)
	c.parts[s.partition] = slices.Insert(of, i, s)
	s.use = c.used.PushFront(s)
	c.size += s.bytes()
}

func (c *stretchCache) drop(s *stretch) {
	c.used.Remove(s.use)
	c.size -= s.bytes()
	of := c.parts[s.partition]
	i, _ := place(of, s.from)
	c.parts[s.partition] = slices.Delete(of, i, i+1)
}

// place finds where a stretch that begins there lies, or would.
func place(of []*stretch, from int64) (int, bool) {
	return slices.BinarySearchFunc(of, from, func(s *stretch, from int64) int { return int(s.from - from) })
}
