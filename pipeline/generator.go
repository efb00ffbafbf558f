package pipeline

import (
	"io"
	"slices"
	"sync"

	"joinbench/config"
	"joinbench/core"
	"joinbench/loadgen"
	"joinbench/projection"
)

// generator is the load generator as a source of raw records. Each partition makes its own; cut ends all of them at
// one place of the stream, so that the truth about what was sent stays exact.
type generator struct {
	gen *loadgen.Gen
	mu  sync.Mutex // guards what follows
	// claimed is the lowest index of each side that no reader has made; limit ends the side.
	claimed, limit [2]int64
	ended          bool // by cut
}

func newGenerator(p *config.Profile) (*generator, error) {
	l, j := &p.Load, p.Join
	if err := checkWords(j); err != nil {
		return nil, err
	}
	g, err := loadgen.New(loadgen.Config{
		Seed: l.Seed, Pending: l.Pending, AEventsPerSec: l.ARate, BEventsPerSec: l.BRate, BEvents: l.Warm + l.BEvents,
		MatchRate: l.MatchRate, Duplicates: l.Duplicates, LateShareA: l.LateShare, LateShareB: l.LateShare,
		Grace: j.Grace, Disorder: l.Disorder, Before: j.Window.Before, After: j.Window.After, Ages: l.Ages,
		KeyBytes: l.KeyBytes, RecordBytes: l.RecordBytes, PartitionsA: l.Partitions, PartitionsB: l.Partitions,
		OneToMany: j.Cardinality != "one-to-one", Steady: l.Steady, Zipf: l.Zipf,
		Family: loadgen.Family{BPerA: l.BPerA, APerKey: l.APerKey, EndShare: l.EndShare, MarkShare: l.MarkShare,
			Counts: j.Collect.Mode == "count", WrongCounts: l.WrongCounts},
	})
	if err != nil {
		return nil, &config.Error{Faults: []config.Fault{{Key: "load", Message: err.Error()}}}
	}
	return &generator{gen: g, limit: [2]int64{g.ACount(), g.BCount()}}, nil
}

// partitions of a side.
func (g *generator) partitions() [2][]core.Partition {
	c := g.gen.Config()
	var out [2][]core.Partition
	for s, n := range []int{c.PartitionsA, c.PartitionsB} {
		for i := range n {
			out[s] = append(out[s], core.Partition{ID: int32(i)})
		}
	}
	return out
}

// cut ends the stream at what has been made so far, and returns where: the indexes of each side that it holds then.
func (g *generator) cut() [2]int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
	g.limit[core.B] = min(g.limit[core.B], g.claimed[core.B])
	g.limit[core.A] = min(g.limit[core.A], max(g.claimed[core.A], g.gen.DueA(g.limit[core.B])))
	return g.limit
}

// cutAt ends the stream at B below, or where it ends by itself, whatever has been made of it. Who hands it over leaves out
// what was made behind that.
func (g *generator) cutAt(below int64) [2]int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
	g.limit[core.B] = min(g.limit[core.B], below)
	g.limit[core.A] = min(g.limit[core.A], max(g.claimed[core.A], g.gen.DueA(g.limit[core.B])))
	return g.limit
}

// goOn has the same streams go on behind the profile's records, until they are cut. Before the first record.
func (g *generator) goOn() {
	g.gen = g.gen.Endless()
	g.limit = [2]int64{g.gen.ACount(), g.gen.BCount()}
}

// endAt cuts the stream where an earlier life did. Before the first record.
func (g *generator) endAt(limit [2]int64) { g.limit, g.ended = limit, true }

// limitB ends the stream with a B, if there are more, and with the A that come before it. Before the first record.
func (g *generator) limitB(n int64) {
	if n = min(n, g.limit[core.B]); n < g.limit[core.B] {
		g.endAt([2]int64{g.gen.DueA(n), n})
	}
}

// wasCut says whether cut was called.
func (g *generator) wasCut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ended
}

// sent is the number of records that a side has or will have.
func (g *generator) sent(s core.Side) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s == core.A {
		return g.limit[s] - g.gen.LeftOut() // all of which lie before B 0, and so below any limit
	}
	return g.limit[s]
}

// ends are the indexes at which the sides end.
func (g *generator) ends() [2]int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.limit
}

// claim takes the next indexes of one partition, at most max: those from index next on in steps.
func (g *generator) claim(s core.Side, next, step int64, max int) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if next >= g.limit[s] {
		return 0
	}
	n := min(int64(max), (g.limit[s]-next+step-1)/step)
	if end := next + n*step; end > g.claimed[s] {
		g.claimed[s] = min(end, g.limit[s])
	}
	return int(n)
}

// resumed says that the records of a side below an index were made, maybe in an earlier life: cut does not go behind them.
func (g *generator) resumed(s core.Side, below int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.claimed[s] = max(g.claimed[s], below)
}

func (g *generator) open(side core.Side, part int, place int64) (reader, error) {
	c := g.gen.Config()
	step := int64(c.PartitionsA)
	if side == core.B {
		step = int64(c.PartitionsB)
	}
	g.resumed(side, place*step-step+int64(part)+1)
	return &genReader{g: g, side: side, part: int32(part), step: step, place: place, size: c.RecordBytes, w: g.gen.NewWriter()}, nil
}

// readBytes of records are made at once: what is written is read again while it is still in the caches.
const readBytes = 128 << 10

// genReader makes the records of one partition. Place p is the record at offset p, or the next one where there is none
// at p.
type genReader struct {
	g      *generator
	side   core.Side
	part   int32
	step   int64
	place  int64   // offset behind the last record, where reading goes on
	places []int64 // behind the records of the last read, after the place before them
	size   int     // bytes of a record
	w      *loadgen.Writer

	// What the arena holds is the last reader's records if it is where it was: then only what differs is written.
	arena *byte
	made  int // records in the arena
}

func (r *genReader) placeAfter(i int) int64 { return r.places[i+1] }

// Read implements reader. Between two reads the arena must not be written to.
func (r *genReader) Read(dst []projection.Record, arena *[]byte) (int, error) {
	dst = dst[:min(len(dst), max(1, readBytes/r.size))]
	buf := slices.Grow((*arena)[:0], len(dst)*r.size)[:len(dst)*r.size] // at once, so that no record moves
	if at := &buf[0]; at != r.arena {
		r.arena, r.made = at, 0
	}
	r.places = append(r.places[:0], r.place)
	n := 0
	for n == 0 { // of a stretch that is left out there is nothing to hand over
		claimed := r.g.claim(r.side, r.place*r.step+int64(r.part), r.step, len(dst))
		if claimed == 0 {
			return 0, io.EOF
		}
		for range claimed {
			if r.make(&dst[n], buf[n*r.size:(n+1)*r.size:(n+1)*r.size], n < r.made) {
				n++
				r.places = append(r.places, r.place)
			}
		}
	}
	r.made = max(r.made, n)
	*arena = buf[:n*r.size]
	return n, nil
}

// putRecord makes record i of a side in value. again: value holds an earlier record of this side, so that only what differs is
// written.
func putRecord(w *loadgen.Writer, side core.Side, value []byte, i int64, again bool) (key []byte, time int64) {
	if side == core.B {
		return w.PutB(value, i, again)
	}
	return w.PutA(value, i, again)
}

// make makes the record at r.place, if there is one, and moves on.
func (r *genReader) make(rec *projection.Record, value []byte, again bool) bool {
	offset := r.place
	r.place++
	i := offset*r.step + int64(r.part)
	if r.side == core.A && !r.g.gen.HasA(i) {
		return false
	}
	key, time := putRecord(r.w, r.side, value, i, again)
	*rec = projection.Record{Partition: r.part, Offset: offset, Key: key, Value: value, Timestamp: time}
	return true
}
