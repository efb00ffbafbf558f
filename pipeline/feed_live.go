package pipeline

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"joinbench/core"
	"joinbench/projection"
)

// liveReader is a reader whose Read waits for records, and whose bytes are valid until the next Read alone. Close ends a Read that
// waits.
type liveReader interface {
	reader
	Close()
}

// openLive opens a partition at a place.
type openLive func(side core.Side, part int, place int64) (liveReader, error)

// livePace says how batches of a liveFeed are paced.
type livePace struct {
	// Linger is how long a batch waits for more since the last one began, so that a transaction is worth its while.
	Linger time.Duration
	// Full is how many records are enough not to wait.
	Full int64
}

// liveFeed is a core.LiveSource over partitions that go on: a feed whose decoders wait for records, and whose Next does not.
//
// A decoder adds to a chunk for as long as nobody takes it, and hands it over when it is full: so what trickles in makes few chunks,
// and what is there when a batch begins is in it.
//
// Start only notes places. The decoders start with the next Await; a Start after that ends them, and forgets what was read
// ahead: so the engine can go back and have everything read again. All but the decoders belongs to the engine's goroutine.
type liveFeed struct {
	ctx     context.Context
	open    openLive
	specs   [2]*projection.Spec
	parts   [2][]core.Partition
	keepRaw bool
	pace    livePace
	busy    chan struct{} // one for each decoder that works: beyond the cores they would only push each other out of the caches

	places  [2][]int64
	run     *feed // of this start; nil while nothing is read
	live    [2][]*livePart
	readers []liveReader
	last    time.Time // when the last Await returned
	timer   *time.Timer

	chunkBytes int // when a chunk is full that has few, but long, rows
}

// livePart is one partition.
type livePart struct {
	*feedPart
	mu      sync.Mutex
	partial *feedChunk   // that is being filled, nil: none. Where ready has chunks they come before it.
	avail   atomic.Int64 // rows in ready, in partial and on their way
	over    atomic.Bool  // ready is closed
	asked   bool         // Next had nothing; the engine's
}

// aheadBytes is about what all partitions may hold decoded in chunks that wait. Rows of a hundred bytes never come near it: they are
// bounded by the batch.
const aheadBytes = 128 << 20

func newLiveFeed(ctx context.Context, specs [2]*projection.Spec, parts [2][]core.Partition, open openLive, keepRaw bool, pace livePace) *liveFeed {
	l := &liveFeed{ctx: ctx, open: open, specs: specs, parts: parts, keepRaw: keepRaw, pace: pace,
		busy: make(chan struct{}, runtime.GOMAXPROCS(0)), timer: time.NewTimer(time.Hour)}
	l.timer.Stop()
	for s, list := range parts {
		l.places[s] = make([]int64, len(list))
	}
	return l
}

// Partitions implements core.Source.
func (l *liveFeed) Partitions(side core.Side) []core.Partition { return l.parts[side] }

// Start implements core.Source.
func (l *liveFeed) Start(side core.Side, part int, place int64) error {
	l.Close()
	l.places[side][part] = place
	return nil
}

// begin opens the partitions and starts their decoders.
func (l *liveFeed) begin() error {
	f := newFeed(l.ctx, l.specs, l.parts, nil, false, l.keepRaw)
	f.arrived = make(chan struct{}, 1)
	l.makeRoom(f)
	l.run, l.live, l.last = f, [2][]*livePart{}, time.Time{}
	for s, list := range f.parts {
		for i, p := range list {
			r, err := l.open(p.side, i, l.places[s][i])
			if err != nil {
				l.Close()
				return err
			}
			q := &livePart{feedPart: p}
			l.live[s], l.readers = append(l.live[s], q), append(l.readers, r)
			f.wg.Go(func() { l.decode(f, q, r) })
		}
	}
	return nil
}

// makeRoom lets the partitions of each side decode one batch ahead while the engine is at another one, of which a commit is the larger
// part: with three chunks of each, as files have it, a batch of four partitions ended at 16,384 records and the decoders
// stood still during every commit.
func (l *liveFeed) makeRoom(f *feed) {
	parts, most := 0, 0
	for s, list := range f.parts {
		if len(list) == 0 {
			continue
		}
		share := (int(l.pace.Full) + len(list) - 1) / len(list)
		chunks := max(chunksAhead, (share+f.size-1)/f.size)
		f.roomFor(core.Side(s), chunks)
		parts, most = parts+len(list), max(most, chunks)
	}
	l.chunkBytes = aheadBytes / max(1, parts*(most+1))
}

// Close ends the decoders and waits for them. A feed that is closed can be started again.
func (l *liveFeed) Close() {
	if l.run == nil {
		return
	}
	l.run.cancel()
	for _, r := range l.readers {
		r.Close()
	}
	l.run.wg.Wait()
	l.run, l.readers = nil, nil
}

// decode reads one partition to its end.
func (l *liveFeed) decode(f *feed, p *livePart, r liveReader) {
	defer f.announce()
	defer p.over.Store(true)
	defer close(p.ready)
	dec := l.specs[p.side].NewDecoder()
	raw := rawRecords{recs: make([]projection.Record, f.size)}
	for {
		n, err := r.Read(raw.recs[:p.room(f.size)], &raw.arena)
		if err != nil {
			if c := p.detach(); c != nil {
				err = errors.Join(err, f.hand(p.feedPart, c))
			}
			if !errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
				p.err = err
			}
			return
		}
		if err := l.work(f); err != nil {
			p.err = err
			return
		}
		full := p.add(f, raw.recs[:n], r, dec, l.chunkBytes)
		<-l.busy
		raw.arena = raw.arena[:0]
		if full != nil {
			if err := f.hand(p.feedPart, full); err != nil {
				p.err = err
				return
			}
		}
		f.announce()
	}
}

// work waits until a core is free for a decoder.
func (l *liveFeed) work(f *feed) error {
	select {
	case l.busy <- struct{}{}:
		return nil
	case <-f.ctx.Done():
		return f.ctx.Err()
	}
}

// room is how many records the next read may bring.
func (p *livePart) room(size int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.partial == nil {
		return size
	}
	return size - p.partial.N
}

// detach takes the chunk that is being filled.
func (p *livePart) detach() *feedChunk {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.partial
	p.partial = nil
	return c
}

// add decodes the records of one read, and returns the chunk if it is full then.
func (p *livePart) add(f *feed, recs []projection.Record, r reader, dec *projection.Decoder, chunkBytes int) (full *feedChunk) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.partial
	if c == nil {
		c = p.empty()
		c.reset()
		c.raw.recs, c.raw.arena = c.raw.recs[:0], c.raw.arena[:0]
	}
	f.add(c, recs, r, dec)
	if f.keepRaw {
		c.raw.keep(recs)
	}
	c.share()
	p.avail.Add(int64(len(recs)))
	if c.N >= f.size || len(c.rows.Body)+len(c.rows.Keys)+len(c.raw.arena) >= chunkBytes {
		p.partial = nil
		return c
	}
	p.partial = c
	return nil
}

// keep adds records whose bytes are about to go.
func (k *rawRecords) keep(recs []projection.Record) {
	for _, r := range recs {
		r.Key, r.Value = k.own(r.Key), k.own(r.Value)
		k.recs = append(k.recs, r)
	}
}

// own copies bytes. Where the arena grows, records that were kept before stay in the old one.
func (k *rawRecords) own(b []byte) []byte {
	if b == nil {
		return nil
	}
	from := len(k.arena)
	k.arena = append(k.arena, b...)
	return k.arena[from:len(k.arena):len(k.arena)]
}

// Next implements core.Source.
func (l *liveFeed) Next(side core.Side, part int) (*core.Chunk, error) {
	p := l.live[side][part]
	c, err := p.take()
	if c == nil {
		return nil, err
	}
	p.avail.Add(-int64(c.N))
	return &c.Chunk, nil
}

// take takes the next chunk that there is. The lock keeps the decoder from handing over a chunk and filling another one between
// the look at the one place and at the other.
func (p *livePart) take() (*feedChunk, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case c, ok := <-p.ready:
		if !ok {
			return nil, p.failure()
		}
		return c, nil
	default:
	}
	c := p.partial
	p.partial = nil
	if c == nil {
		p.asked = true
		return nil, core.ErrNotYet
	}
	return c, nil
}

// Done implements core.Source.
func (l *liveFeed) Done(c *core.Chunk) {
	fc := c.Owner.(*feedChunk)
	select {
	case fc.part.free <- fc: // if reading began anew since, nobody takes it from there
	default:
	}
}

// Await implements core.LiveSource. A batch that follows one begins when there is enough for it, or when it has lingered.
func (l *liveFeed) Await(ctx context.Context, idle bool, most time.Duration) error {
	if l.run == nil {
		if err := l.begin(); err != nil {
			return err
		}
	}
	began := time.Now()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		left := l.patience(idle, time.Now())
		if most >= 0 {
			left = min(left, most-time.Since(began))
		}
		if left <= 0 {
			break
		}
		if err := l.wait(ctx, left); err != nil {
			return err
		}
	}
	l.last = time.Now()
	for _, side := range l.live {
		for _, p := range side {
			p.asked = false
		}
	}
	return nil
}

// patience is how long the batch may still wait for more: not at all for a partition that has no room for it.
func (l *liveFeed) patience(idle bool, now time.Time) time.Duration {
	rows, enough := l.arrived()
	switch {
	case enough || rows >= l.pace.Full:
		return 0
	case idle && rows == 0:
		return time.Hour
	}
	return l.last.Add(l.pace.Linger).Sub(now)
}

// arrived is how many rows there are of partitions that had nothing, and whether one of them is over, or has no room for more. What
// others have is what the last batch left, or the engine holds back.
func (l *liveFeed) arrived() (rows int64, enough bool) {
	for _, side := range l.live {
		for _, p := range side {
			if p.asked {
				rows += p.avail.Load()
				enough = enough || p.over.Load() || len(p.ready) == cap(p.ready)
			}
		}
	}
	return rows, enough
}

// wait waits for a chunk, at most so long.
func (l *liveFeed) wait(ctx context.Context, most time.Duration) error {
	l.timer.Reset(most)
	defer l.timer.Stop()
	select {
	case <-l.run.arrived:
		return nil
	case <-l.timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
