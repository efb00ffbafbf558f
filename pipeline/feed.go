package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"joinbench/core"
	"joinbench/projection"
)

// reader reads the raw records of one partition, in order; see capture.Cursor for the contract.
type reader interface {
	Read(dst []projection.Record, arena *[]byte) (int, error)
	// placeAfter is where reading resumes behind record i of the last Read; -1: before the first.
	placeAfter(i int) int64
}

// openReader opens a partition at a place.
type openReader func(side core.Side, part int, place int64) (reader, error)

const (
	// chunkRecords is what a decoder hands over at once: large enough that the hand-over costs nothing a record
	// (about 100 ns in all), small enough that a chunk of 1 KB records stays in L2.
	chunkRecords = 1024
	// manyPartitions is from where on chunks get smaller, so that the memory of all partitions stays bounded.
	manyPartitions = 16
	minChunk       = 64
	// chunksAhead is how many decoded chunks wait for the engine. It is what bounds the memory: beyond these there
	// are only the one that is being filled and those of the engine's batch, however many that takes.
	chunksAhead = 3
	// chunksKept is how many empty chunks wait for the decoder beyond those: a batch of 4,096, and one.
	chunksKept = 5
	// chunksInTurns is chunksAhead for B when decoders and engine take turns: 128 Ki B of four partitions, 10 MB.
	chunksInTurns = 32
)

// feed is a core.Source that reads and decodes ahead, one goroutine for each partition.
type feed struct {
	ctx    context.Context
	cancel context.CancelFunc
	open   openReader
	spec   [2]*projection.Spec
	parts  [2][]*feedPart
	size   int
	wg     sync.WaitGroup

	turns *turns // nil: decoders and engine work side by side
	// keepRaw: chunks keep the raw records, for side outputs. Else each decoder has one place for them, which stays in
	// its core's cache: a chunk is 80 bytes a record instead of 450.
	keepRaw bool

	readTime, decodeTime [2]atomic.Int64 // ns, by side

	// For a source that does not wait (pacer): arrived is told of each chunk and each end, and clock stamps chunks.
	arrived chan struct{}
	clock   clock
}

// feedPart is one partition.
type feedPart struct {
	core.Partition
	side  core.Side
	index int
	ready chan *feedChunk
	free  chan *feedChunk
	err   error // why ready was closed; nil at the end of the partition
}

// feedChunk is a chunk and everything behind it. What core sees are slices of rows.
type feedChunk struct {
	core.Chunk
	part *feedPart
	rows projection.Rows
	raw  rawRecords

	decoded int64 // when it was ready, by the feed's clock if it has one
	views   int   // of the pacer, not yet given back
}

// rawRecords are the records of one read, and the bytes that they point into.
type rawRecords struct {
	recs  []projection.Record
	arena []byte
}

// record is the raw record of a row, if the feed keeps them.
func record(r core.Ref) *projection.Record { return &r.Chunk.Owner.(*feedChunk).raw.recs[r.Row] }

// newFeed prepares a feed; the engine starts each partition where it wants to begin.
//
// With inTurns decoders and engine take turns, and B is read further ahead, so that a turn is worth its while.
func newFeed(ctx context.Context, specs [2]*projection.Spec, parts [2][]core.Partition, open openReader, inTurns, keepRaw bool) *feed {
	ctx, cancel := context.WithCancel(ctx)
	f := &feed{ctx: ctx, cancel: cancel, open: open, spec: specs, size: chunkRecords, keepRaw: keepRaw}
	if n := len(parts[core.A]) + len(parts[core.B]); n > manyPartitions {
		f.size = max(minChunk, chunkRecords*manyPartitions/n)
	}
	ahead := [2]int{chunksAhead, chunksAhead}
	if inTurns {
		f.turns = newTurns()
		ahead[core.B] = chunksInTurns
	}
	for s, list := range parts {
		for i, p := range list {
			f.parts[s] = append(f.parts[s], &feedPart{Partition: p, side: core.Side(s), index: i,
				ready: make(chan *feedChunk, ahead[s]), free: make(chan *feedChunk, ahead[s]+chunksKept)})
		}
	}
	return f
}

// roomFor gives each partition of a side room for so many decoded chunks, and the engine's batch for as many more. Before any is
// started.
func (f *feed) roomFor(side core.Side, chunks int) {
	for _, p := range f.parts[side] {
		p.ready, p.free = make(chan *feedChunk, chunks), make(chan *feedChunk, 2*chunks+2)
	}
}

// Partitions implements core.Source.
func (f *feed) Partitions(side core.Side) []core.Partition {
	var out []core.Partition
	for _, p := range f.parts[side] {
		out = append(out, p.Partition)
	}
	return out
}

// Start implements core.Source: it starts the partition's decoder.
func (f *feed) Start(side core.Side, part int, place int64) error {
	p := f.parts[side][part]
	r, err := f.open(side, part, place)
	if err != nil {
		return err
	}
	if f.turns != nil {
		f.turns.join()
	}
	f.wg.Go(func() { f.decode(p, r) })
	return nil
}

// decode reads one partition to its end.
func (f *feed) decode(p *feedPart, r reader) {
	defer f.announce()
	defer close(p.ready)
	if f.turns != nil {
		defer f.turns.rest()
	}
	dec := f.spec[p.side].NewDecoder()
	var raw rawRecords
	for {
		if f.turns != nil && !f.turns.enter() {
			p.err = context.Canceled
			return
		}
		c := p.empty()
		if f.keepRaw {
			raw = c.raw
		}
		err := f.fillChunk(c, &raw, r, dec)
		if f.keepRaw {
			c.raw = raw
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				p.err = err
			}
			return
		}
		if f.clock != nil {
			c.decoded = f.clock.now()
		}
		if err := f.hand(p, c); err != nil {
			p.err = err
			return
		}
		f.announce()
	}
}

// announce says that there is something new. Nobody may be listening.
func (f *feed) announce() {
	select {
	case f.arrived <- struct{}{}:
	default:
	}
}

// hand gives a chunk to the engine, as soon as it has room.
func (f *feed) hand(p *feedPart, c *feedChunk) error {
	select {
	case p.ready <- c:
		return nil
	default:
	}
	if f.turns != nil {
		f.turns.rest()
		defer f.turns.wake()
	}
	select {
	case p.ready <- c:
		return nil
	case <-f.ctx.Done():
		return f.ctx.Err()
	}
}

// empty takes a chunk that has come back, or makes one. It does not wait: a batch may hold any number of chunks of one
// partition, and the engine gives none of them back before the batch is committed. What bounds them is the batch and the
// room in ready.
func (p *feedPart) empty() *feedChunk {
	select {
	case c := <-p.free:
		return c
	default:
		return &feedChunk{part: p}
	}
}

func (f *feed) fillChunk(c *feedChunk, raw *rawRecords, r reader, dec *projection.Decoder) error {
	if cap(raw.recs) < f.size {
		raw.recs = make([]projection.Record, f.size)
	}
	c.reset()
	k := &c.Chunk
	for {
		raw.recs, raw.arena = raw.recs[:f.size-len(k.Fate)], raw.arena[:0]
		start := time.Now()
		n, err := r.Read(raw.recs, &raw.arena)
		f.readTime[c.part.side].Add(int64(time.Since(start)))
		if err != nil {
			if errors.Is(err, io.EOF) && len(k.Fate) > 0 {
				break // the next read says so again
			}
			return err
		}
		raw.recs = raw.recs[:n]
		f.add(c, raw.recs, r, dec)
		if f.keepRaw || len(k.Fate) == f.size {
			break // raw records can be kept of one read only
		}
	}
	c.share()
	return nil
}

// reset empties a chunk and keeps its memory.
func (c *feedChunk) reset() {
	c.rows.Reset()
	k := &c.Chunk
	k.Fate, k.Offset, k.Place, k.Flags = k.Fate[:0], k.Offset[:0], k.Place[:0], k.Flags[:0]
}

// add decodes the records of one read into a chunk.
func (f *feed) add(c *feedChunk, recs []projection.Record, r reader, dec *projection.Decoder) {
	start := time.Now()
	for i := range recs {
		dec.Append(&c.rows, &recs[i])
	}
	c.note(recs, r)
	f.decodeTime[c.part.side].Add(int64(time.Since(start)))
}

// note adds what is known of the records of one read: fates, offsets, and where to read on.
func (c *feedChunk) note(recs []projection.Record, r reader) {
	k := &c.Chunk
	k.Place = k.Place[:len(k.Fate)] // the place behind the last read is that before this one
	first := len(k.Fate)
	for i := range recs {
		k.Fate = append(k.Fate, core.Fate(c.rows.Fate[first+i]))
		k.Offset = append(k.Offset, recs[i].Offset)
		k.Place = append(k.Place, r.placeAfter(i-1))
	}
	k.Place = append(k.Place, r.placeAfter(len(recs)-1))
	if flags := c.rows.Flags; len(flags) > 0 {
		for _, f := range flags[first:] {
			k.Flags = append(k.Flags, core.RowFlags(f))
		}
	}
}

// share makes the core.Chunk of what was decoded; the arrays are the same.
func (c *feedChunk) share() {
	k := &c.Chunk
	k.Side, k.Part, k.Partition, k.N, k.Owner = c.part.side, c.part.index, c.part.ID, len(k.Fate), c
	k.Time, k.Keys, k.KeyOff, k.Body, k.BodyOff = c.rows.Time, c.rows.Keys, c.rows.KeyOff, c.rows.Body, c.rows.BodyOff
	k.Wanted = nil
	if len(c.rows.Wanted) > 0 {
		k.Wanted = c.rows.Wanted
	}
}

// Next implements core.Source.
func (f *feed) Next(side core.Side, part int) (*core.Chunk, error) {
	p := f.parts[side][part]
	if f.turns != nil && len(p.ready) == 0 {
		f.turns.begin()
		defer f.turns.end()
	}
	c, ok := <-p.ready
	if !ok {
		return nil, p.failure()
	}
	return &c.Chunk, nil
}

// failure is why a partition whose ready is closed has no more records; nil at its end.
func (p *feedPart) failure() error {
	if p.err != nil && !errors.Is(p.err, context.Canceled) {
		return fmt.Errorf("side %s, partition %d: %w", p.side, p.ID, p.err)
	}
	return p.err
}

// Done implements core.Source.
func (f *feed) Done(c *core.Chunk) {
	fc := c.Owner.(*feedChunk)
	select {
	case fc.part.free <- fc:
	default: // more than reading ahead needs: garbage
	}
}

// Close stops the decoders and waits for them.
func (f *feed) Close() {
	f.cancel()
	if f.turns != nil {
		f.turns.stop()
	}
	f.wg.Wait()
}

// Fates and flags of decoding have the same numbers on both sides of the boundary: a table test keeps that of the fates.
var (
	_ = [1]struct{}{}[int(core.BadTime)-int(projection.BadTime)]
	_ = [1]struct{}{}[int(core.Ends)-int(projection.Ends)]
	_ = [1]struct{}{}[int(core.Marks)-int(projection.Marks)]
	_ = [1]struct{}{}[core.MaxWanted-projection.MaxWanted]
)
