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
	g, err := loadgen.New(loadgen.Config{
		Seed: l.Seed, Pending: l.Pending, AEventsPerSec: l.ARate, BEventsPerSec: l.BRate, BEvents: l.BEvents,
		MatchRate: l.MatchRate, Duplicates: l.Duplicates, LateShareA: l.LateShare, LateShareB: l.LateShare,
		Grace: j.Grace, Disorder: l.Disorder, Before: j.Window.Before, After: j.Window.After, Ages: l.Ages,
		KeyBytes: l.KeyBytes, RecordBytes: l.RecordBytes, PartitionsA: l.Partitions, PartitionsB: l.Partitions,
		OneToMany: j.Cardinality == "one-to-many",
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

// cut ends the stream at what has been made so far, and returns the number of records of each side that it holds then.
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
	return g.limit[s]
}

// ends are the indexes at which the sides end.
func (g *generator) ends() [2]int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.limit
}

// claim takes the next records of one partition, at most max: those from index next on in steps.
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
	return &genReader{g: g, side: side, part: int32(part), step: step, place: place,
		key: c.KeyBytes, size: c.RecordBytes + c.KeyBytes}, nil
}

// genReader makes the records of one partition. Place p is the record at offset p.
type genReader struct {
	g     *generator
	side  core.Side
	part  int32
	step  int64
	place int64 // offset of the next record
	from  int64 // place before the last read
	key   int   // bytes of a key
	size  int   // and of a key and a value
}

func (r *genReader) placeAfter(i int) int64 { return r.from + int64(i) + 1 }

// Read implements reader.
func (r *genReader) Read(dst []projection.Record, arena *[]byte) (int, error) {
	n := r.g.claim(r.side, r.place*r.step+int64(r.part), r.step, len(dst))
	if n == 0 {
		return 0, io.EOF
	}
	buf := slices.Grow(*arena, n*r.size) // at once, so that no record moves
	for k := range n {
		i := (r.place+int64(k))*r.step + int64(r.part)
		// The key goes in front of the value, whose length is known.
		at := len(buf)
		rec := &dst[k]
		*rec = projection.Record{Partition: r.part, Offset: r.place + int64(k)}
		key := buf[at : at : at+r.key]
		value := buf[at+r.key : at+r.key : at+r.size]
		if r.side == core.A {
			rec.Key, rec.Value, rec.Timestamp = r.g.gen.RecordA(key, value, i)
		} else {
			rec.Key, rec.Value, rec.Timestamp = r.g.gen.RecordB(key, value, i)
		}
		buf = buf[:at+r.size]
	}
	*arena = buf
	r.from, r.place = r.place, r.place+int64(n)
	return n, nil
}
