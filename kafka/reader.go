package kafka

import (
	"io"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"joinbench/projection"
)

// recordBytes is what a record in a queue takes beside its key and value.
const recordBytes = 200

// batch is what one fetch brought of a partition.
type batch struct {
	recs  []*kgo.Record       // whose bytes lie in the answer of the broker, which other partitions share
	own   []projection.Record // in place of recs: with bytes of their own
	next  int64               // position behind it: that of the last record, or behind markers
	bytes int64
}

func (b *batch) len() int {
	if b.own != nil {
		return len(b.own)
	}
	return len(b.recs)
}

func (b *batch) offset(i int) int64 {
	if b.own != nil {
		return b.own[i].Offset
	}
	return b.recs[i].Offset
}

// Reader reads one partition, in order. All but Close belong to one goroutine.
type Reader struct {
	c   *Consumer
	of  topicPartition
	end int64

	mu     sync.Mutex
	more   sync.Cond
	queue  []batch
	head   int   // first batch of the queue that was not read to its end
	bytes  int64 // in the queue, with those of the batch that is being read
	paused bool
	next   int64 // position of what is fetched
	err    error

	// Of the goroutine that reads.
	cur   batch
	at    int // record of cur that comes next
	first int // record of cur that the last Read gave first
	pos   int64
	base  int64 // pos before the last Read
}

func newReader(c *Consumer, of topicPartition, offset, end int64) *Reader {
	r := &Reader{c: c, of: of, end: end, next: offset, pos: offset, base: offset}
	r.more.L = &r.mu
	return r
}

// Read fills dst from its beginning and says how many records it read: more than zero and no error, or zero and io.EOF at the end of
// a reader that has one, or what went wrong. It waits for records. Their bytes are not copied, so the arena stays as it is: they
// lie in what was fetched, are valid until the next Read, and must not be written to. Fewer than len(dst) records do not
// mean that there are no more.
func (r *Reader) Read(dst []projection.Record, _ *[]byte) (int, error) {
	for r.at == r.cur.len() {
		if err := r.advance(); err != nil {
			return 0, err
		}
	}
	n := min(len(dst), r.cur.len()-r.at)
	if r.cur.own != nil {
		copy(dst, r.cur.own[r.at:r.at+n])
	} else {
		for i, k := range r.cur.recs[r.at : r.at+n] {
			fill(&dst[i], k)
		}
	}
	r.base, r.first = r.pos, r.at
	r.at += n
	if r.at == r.cur.len() {
		r.pos = r.cur.next
	} else {
		r.pos = r.cur.offset(r.at-1) + 1
	}
	return n, nil
}

// fill takes a record over. A null key or value is nil in both.
func fill(dst *projection.Record, k *kgo.Record) {
	*dst = projection.Record{Key: k.Key, Value: k.Value, Timestamp: k.Timestamp.UnixMilli(), Partition: k.Partition, Offset: k.Offset}
}

// advance takes the next batch out of the queue, and lets go of the one before it.
func (r *Reader) advance() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytes -= r.cur.bytes
	r.cur, r.at, r.first = batch{}, 0, 0
	r.resume()
	for r.head == len(r.queue) && r.err == nil && !r.ended() {
		r.more.Wait()
	}
	switch {
	case r.head < len(r.queue) && r.err != ErrClosed:
		r.cur = r.queue[r.head]
		r.queue[r.head] = batch{}
		if r.head++; r.head == len(r.queue) {
			r.queue, r.head = r.queue[:0], 0
		}
		if r.cur.len() == 0 { // markers alone
			r.pos = r.cur.next
		}
		return nil
	case r.err != nil:
		return r.err
	}
	r.pos = max(r.pos, r.next)
	return io.EOF
}

// PlaceAfter is the position behind record i of the last Read: that of the record that follows it, or behind markers that do.
// PlaceAfter(-1) is the position before the first of them.
func (r *Reader) PlaceAfter(i int) int64 {
	switch {
	case i < 0:
		return r.base
	case r.first+i == r.at-1:
		return r.pos
	}
	return r.cur.offset(r.first+i) + 1
}

// Ready says whether a Read would not wait.
func (r *Reader) Ready() bool {
	if r.at < r.cur.len() {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.head < len(r.queue) || r.err != nil || r.ended()
}

// Close ends the reader: a Read that waits, and all that come, answer ErrClosed.
func (r *Reader) Close() { r.c.close(r) }

// put takes over what was fetched. Polling goroutine.
func (r *Reader) put(recs []*kgo.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return
	}
	b := batch{recs: recs[:0], next: r.next}
	for _, k := range recs {
		if k.Offset < b.next {
			continue
		}
		if r.end != NoEnd && k.Offset >= r.end {
			b.next = r.end
			break
		}
		b.next = k.Offset + 1
		if k.Attrs.IsControl() {
			continue
		}
		b.recs = append(b.recs, k)
		b.bytes += recordBytes + int64(len(k.Key)+len(k.Value))
	}
	clear(recs[len(b.recs):])
	if b.next == r.next {
		return
	}
	r.next = b.next
	r.queue = append(r.queue, b)
	r.bytes += b.bytes
	if r.bytes > r.c.opt.QueueBytes && !r.paused {
		r.pause()
	}
	r.more.Signal()
}

// pause has the partition left out of the fetches that come. What waits is copied out of the brokers' answers: these hold records of
// all partitions, and one that is not read would hold on to them all.
func (r *Reader) pause() {
	r.paused = true
	r.c.cl.PauseFetchPartitions(map[string][]int32{r.of.topic: {r.of.partition}})
	for i := r.head; i < len(r.queue); i++ {
		r.queue[i].copyOut()
	}
}

// resume has it fetched again when there is room: half of a queue, so that the reader has something to do until it comes.
func (r *Reader) resume() {
	if r.paused && r.err == nil && r.bytes <= r.c.opt.QueueBytes/2 {
		r.paused = false
		r.c.cl.ResumeFetchPartitions(map[string][]int32{r.of.topic: {r.of.partition}})
	}
}

// copyOut gives a batch bytes of its own.
func (b *batch) copyOut() {
	if b.own != nil || len(b.recs) == 0 {
		return
	}
	arena := make([]byte, 0, b.bytes-recordBytes*int64(len(b.recs)))
	b.own = make([]projection.Record, len(b.recs))
	for i, k := range b.recs {
		fill(&b.own[i], k)
		b.own[i].Key, arena = own(k.Key, arena)
		b.own[i].Value, arena = own(k.Value, arena)
	}
	b.recs = nil
}

// own copies bytes into an arena that has room for them.
func own(b, arena []byte) (mine, rest []byte) {
	if b == nil {
		return nil, arena
	}
	from := len(arena)
	arena = append(arena, b...)
	return arena[from:len(arena):len(arena)], arena
}

// fail ends the reader with the first error that it is told. What was fetched before is still read, unless it was closed.
func (r *Reader) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil || err == ErrClosed {
		r.err = err
	}
	if err == ErrClosed {
		r.queue, r.head = nil, 0
	}
	r.more.Broadcast()
}

// wanted is the offset that is to be fetched next.
func (r *Reader) wanted() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next
}

// skipTo moves what is fetched, and says whether there is anything to fetch.
func (r *Reader) skipTo(offset int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.end != NoEnd {
		offset = min(offset, r.end)
	}
	if offset > r.next { // in order, behind what waits
		r.next = offset
		r.queue = append(r.queue, batch{next: offset})
	}
	r.paused = false
	r.more.Broadcast()
	return r.err == nil && !r.ended()
}

// ended says whether the end was fetched.
func (r *Reader) ended() bool { return r.end != NoEnd && r.next >= r.end }

func (r *Reader) through() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended()
}
