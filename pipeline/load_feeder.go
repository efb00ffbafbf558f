package pipeline

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"joinbench/core"
	"joinbench/kafka"
	"joinbench/loadgen"
)

// feeder writes the records of its partitions: each partition p of a topic whose number is its own modulo the number of feeders.
// It is one goroutine; the client's goroutines give its slabs back.
type feeder struct {
	*load
	number int64
	loader *kafka.Loader
	w      *loadgen.Writer
	free   [2]chan *slab // of each side
	at     [2]*slab      // that is being filled
	aborts *rand.Rand
}

// slab is a stretch of records of one side that are made and handed over together. Values are made where those of the slab's
// last use lay, so that only what differs is written.
type slab struct {
	records []kafka.Record
	values  []byte
	n       int          // records of this use
	made    int          // places that hold a value
	left    atomic.Int64 // records that are not acknowledged
	home    chan *slab
	done    func()
}

const (
	slabBytes = 128 << 10 // of values
	// loadBytes is what all producers have on the way at most: some batches of each partition.
	loadBytes = 96 << 20
)

func newFeeder(l *load, number int) (*feeder, error) {
	f := &feeder{load: l, number: int64(number), w: l.gen.NewWriter(), aborts: rand.New(rand.NewPCG(l.gen.Config().Seed, uint64(number)))}
	opt := kafka.LoaderOptions{Compression: l.Compression}
	if l.Transactional {
		opt.TransactionalID = fmt.Sprintf("joinbench-load-%s-%s-%d", l.topics[core.A], l.topics[core.B], number)
	}
	size := l.gen.Config().RecordBytes
	records := max(1, slabBytes/size)
	for s := range f.free {
		n := max(2, loadBytes/(2*l.Producers*records*size))
		f.free[s] = make(chan *slab, n)
		for range n {
			f.free[s] <- newSlab(records, f.free[s])
		}
	}
	var err error
	f.loader, err = kafka.NewLoader(l.Kafka, opt)
	return f, err
}

// newSlab makes one whose values are allocated when they are first needed: a slow topic never needs most of them.
func newSlab(records int, home chan *slab) *slab {
	s := &slab{records: make([]kafka.Record, records), home: home}
	s.done = func() {
		if s.left.Add(-1) == 0 {
			s.home <- s
		}
	}
	return s
}

// portion is what is handed over in one go: records of both sides, by index.
type portion [2][2]int64

// run writes all of the part: the A that come before its first B, then B and the A that come with them.
func (f *feeder) run(ctx context.Context) error {
	history := sync.OnceFunc(f.history.Done)
	defer history() // others wait for it
	a, b := f.bounds[core.A], f.bounds[core.B]
	first := min(max(a[0], f.gen.DueA(b[0])), a[1])
	for lo := a[0]; lo < first; lo += loadPortion {
		if err := f.write(ctx, portion{core.A: {lo, min(first, lo+loadPortion)}}); err != nil {
			return err
		}
	}
	if err := f.loader.Flush(ctx); err != nil {
		return err
	}
	history()
	lo := first
	for j := b[0]; j < b[1]; j += f.step {
		if err := f.await(ctx, j); err != nil {
			return err
		}
		end := min(b[1], j+f.step)
		hi := min(a[1], f.gen.DueA(end))
		if err := f.write(ctx, portion{core.A: {lo, hi}, core.B: {j, end}}); err != nil {
			return err
		}
		lo = hi
	}
	return f.loader.Flush(ctx)
}

// write hands over a portion, in a transaction of its own if there are any, and before that perhaps in one that is aborted.
func (f *feeder) write(ctx context.Context, p portion) error {
	if !f.Transactional {
		return f.send(ctx, &p, true)
	}
	if f.aborts.Float64() < f.AbortShare {
		if err := f.transaction(ctx, &p, false); err != nil {
			return err
		}
	}
	return f.transaction(ctx, &p, true)
}

func (f *feeder) transaction(ctx context.Context, p *portion, commit bool) error {
	if err := f.loader.Begin(); err != nil {
		return err
	}
	if err := f.send(ctx, p, commit); err != nil {
		return err
	}
	if err := f.loader.End(ctx, commit); err != nil {
		return err
	}
	f.txns.Add(1)
	if !commit {
		f.failures.Add(1)
	}
	return nil
}

// send makes the records of a portion that are this feeder's and hands them to the client.
func (f *feeder) send(ctx context.Context, p *portion, counts bool) error {
	for s, r := range p {
		if !f.Sides[s] {
			continue
		}
		if err := f.sendSide(ctx, core.Side(s), r[0], r[1], counts); err != nil {
			return err
		}
	}
	return nil
}

func (f *feeder) sendSide(ctx context.Context, side core.Side, lo, hi int64, counts bool) error {
	parts, own, all := f.parts[side], f.number, int64(f.Producers)
	var sent int64
	for i := lo; i < hi; i++ {
		part := i % parts
		if part%all != own || side == core.A && !f.gen.HasA(i) {
			continue
		}
		s := f.at[side]
		if s == nil {
			var err error
			if s, err = f.take(ctx, side); err != nil {
				return err
			}
		}
		f.make(s, side, i, int32(part))
		if sent++; counts {
			f.counts[side][part].Add(1)
		}
		if s.n == len(s.records) {
			f.hand(ctx, side)
		}
	}
	f.hand(ctx, side)
	if !counts {
		f.aborted[side].Add(sent)
	}
	if p := f.Progress; side == core.A {
		p.A.Add(sent)
	} else {
		p.B.Add(sent)
		p.Probes.Add(sent) // Live shows their rate
	}
	return f.loader.Err()
}

// take waits for a slab that is not on the way.
func (f *feeder) take(ctx context.Context, side core.Side) (*slab, error) {
	select {
	case s := <-f.free[side]:
		if s.values == nil {
			s.values = make([]byte, len(s.records)*f.gen.Config().RecordBytes)
		}
		s.n = 0
		f.at[side] = s
		return s, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// make makes record i in the slab's next place.
func (f *feeder) make(s *slab, side core.Side, i int64, part int32) {
	size := len(s.values) / len(s.records)
	value := s.values[s.n*size : (s.n+1)*size : (s.n+1)*size]
	key, at := putRecord(f.w, side, value, i, s.n < s.made)
	s.records[s.n] = kafka.Record{Topic: f.topics[side], Partition: part, Key: key, Value: value, Timestamp: time.UnixMilli(at)}
	s.n++
	s.made = max(s.made, s.n)
}

// hand gives what is in the slab of a side to the client.
func (f *feeder) hand(ctx context.Context, side core.Side) {
	s := f.at[side]
	if s == nil {
		return
	}
	f.at[side] = nil
	s.left.Store(int64(s.n))
	for i := range s.records[:s.n] { // the last one may be acknowledged, and the slab be used again, as soon as it is sent
		f.loader.Send(ctx, &s.records[i], s.done)
	}
}
