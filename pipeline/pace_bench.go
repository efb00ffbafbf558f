package pipeline

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"joinbench/core"
	"joinbench/loadgen"
	"joinbench/projection"
	"joinbench/results"
)

// hooks let tests make a run slow in a known way.
type hooks struct {
	sink  func(core.Sink) core.Sink         // around the one that holds pairs against the truth
	read  func(side core.Side, records int) // called by a decoder that is about to read at most so many
	rules *core.Config                      // that the truth goes by, other than the join's
	roll  int64                             // bytes of lines after which another file begins
}

// opener is the generator, with what a test puts in between.
func (b *bench) opener(g *generator) openReader {
	if b.hooks.read == nil {
		return g.open
	}
	return func(side core.Side, part int, place int64) (reader, error) {
		r, err := g.open(side, part, place)
		return &hookedReader{reader: r, before: func(n int) { b.hooks.read(side, n) }}, err
	}
}

type hookedReader struct {
	reader
	before func(records int)
}

// Read implements reader.
func (h *hookedReader) Read(dst []projection.Record, arena *[]byte) (int, error) {
	h.before(len(dst))
	return h.reader.Read(dst, arena)
}

// newSource makes the feed and what the engine sees of it. An open loop reads B ahead as far as a turn of a closed one does,
// but beside the join: it may not wait.
func (b *bench) newSource(ctx context.Context) core.Source {
	b.feed = newFeed(ctx, b.c.spec, b.gen.partitions(), b.opener(b.gen), b.Pace == nil, false)
	b.source = &waitingSource{feed: b.feed}
	if b.Pace == nil {
		return b.source
	}
	b.feed.readAhead(core.B, chunksInTurns)
	b.pace = newPacer(b.source, b.gen, *b.Pace, b.Profile.Load.Batch, newWallClock())
	if b.pace.skipped != nil {
		b.sink.skipped = b.pace.skipped
	}
	return b.pace
}

// readAhead sets how many chunks of each partition wait for the engine. Before the first Start.
func (f *feed) readAhead(side core.Side, chunks int) {
	for _, p := range f.parts[side] {
		p.ready, p.free = make(chan *feedChunk, chunks), make(chan *feedChunk, chunks+chunksKept)
	}
}

// hookedSink is the sink, with what a test puts around it.
func (b *bench) hookedSink() core.Sink {
	if b.hooks.sink == nil {
		return b.sink
	}
	return b.hooks.sink(b.sink)
}

// leaveOutDropped takes the pairs of B that were dropped out of a verdict on a run that came to a cut.
func (b *bench) leaveOutDropped(v *loadgen.Verdict, cut *loadgen.Cut) {
	if b.sink.skipped == nil {
		return
	}
	gone, instead := countGiven(b.sink.skipped.list, cut), countGiven(b.sink.skipped.excused, cut)
	v.Missing -= gone
	v.Pairs.Missing -= gone
	v.Expected += instead - gone
}

// countGiven counts the B of a list that came before a cut.
func countGiven(list []int64, cut *loadgen.Cut) (n int64) {
	for _, j := range list {
		if cut.HasB(j) {
			n++
		}
	}
	return n
}

// startPace begins the open loop, and with it the phase that warms up with so many B, or if these are 0 the measured one.
func (b *bench) startPace(warm int64) error {
	b.pace.begin(warm)
	if warm > 0 || b.Duration == 0 || b.gen.wasCut() {
		return nil
	}
	b.mark.Cut = b.gen.cutAt(b.pace.indexAfter(b.Duration))
	err := b.state.writeMark(b.mark)
	b.pace.begin(0) // anew: writing took time
	return err
}

const (
	// ceilingFor is how long the generator's ceiling is looked for before an open loop, ceilingShort before a closed one,
	// of which no verdict depends on it. ceilingAhead is how many B it may owe: as many as an open loop has decoded.
	ceilingFor   = time.Second
	ceilingShort = time.Second / 4
	ceilingAhead = chunksInTurns * chunkRecords
)

// measureCeiling drains the same records (made, decoded, cut into what is due) with nothing behind it, and returns how many
// B a second that were. Nil when there were too few to say.
func (b *bench) measureCeiling(ctx context.Context, mem *results.MemSampler) (_ *float64, err error) {
	mem.Pause()
	defer mem.Resume()
	defer debug.FreeOSMemory()
	g, err := newGenerator(b.Profile)
	if err != nil {
		return nil, err
	}
	g.goOn() // a few thousand B would tell how long it takes to begin
	f := newFeed(ctx, b.c.spec, g.partitions(), b.opener(g), false, false)
	defer f.Close()
	f.readAhead(core.B, chunksInTurns)
	p := newPacer(&waitingSource{feed: f}, g, Pace{Rate: 1e12, Arrival: Uniform, CatchUp: Queue}, 1, newWallClock())
	for side, list := range p.parts {
		for i, q := range list {
			place := int64(0)
			if core.Side(side) == core.A { // those before the first B are made before the clock runs
				place = q.below(g.gen.DueA(0))
			}
			if err := p.Start(core.Side(side), i, place); err != nil {
				return nil, err
			}
		}
	}
	if b.Pace == nil {
		return p.drain(ctx, ceilingShort)
	}
	return p.drain(ctx, ceilingFor)
}

// drain takes what the source has for some time, and no A before it would be due.
func (p *pacer) drain(ctx context.Context, length time.Duration) (perS *float64, err error) {
	start, taken := p.clock.now(), int64(0)
	p.loading = false
	for now := start; now-start < int64(length) && ctx.Err() == nil; now = p.clock.now() {
		p.limit[core.B] = min(p.gen.ends()[core.B], taken+ceilingAhead)
		p.refresh()
		n, ended, err := p.drainOnce()
		if err != nil {
			return nil, err
		}
		if taken += n; ended {
			break
		}
		if n == 0 {
			p.clock.wait(ctx, now+int64(time.Millisecond), p.feed.arrived, true)
		}
	}
	elapsed := p.clock.now() - start
	if taken == 0 || errors.Is(ctx.Err(), context.Canceled) {
		return nil, nil
	}
	return ratio(float64(taken)*1e9, float64(elapsed)), nil
}

// drainOnce takes what is there. Ended: B is at its end.
func (p *pacer) drainOnce() (taken int64, ended bool, err error) {
	ended = true
	for side, list := range p.parts {
		for i, q := range list {
			for {
				c, err := p.Next(core.Side(side), i)
				if err == core.ErrNotYet {
					break
				}
				if err != nil {
					return taken, false, err
				}
				if c == nil {
					break
				}
				if core.Side(side) == core.B {
					taken += int64(c.N)
				}
				p.Done(c)
			}
			ended = ended && (core.Side(side) == core.A || q.ended)
		}
	}
	return taken, ended, nil
}
