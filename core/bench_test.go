package core

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"joinbench/fusefilter"
)

// One operation of these benchmarks is a batch of benchBatch events; what they report besides is the time of one event.
// What makes the input of the next batch is not measured.
const (
	benchBatch   = 4096
	benchPending = 1_000_000
)

// events runs fn for one batch after another; prepare makes its input.
func events(b *testing.B, prepare func() []slice, fn func([]slice)) {
	b.ReportAllocs()
	var took time.Duration
	n := 0
	for b.Loop() {
		b.StopTimer()
		in := prepare()
		b.StartTimer()
		start := time.Now()
		fn(in)
		took += time.Since(start)
		n++
	}
	b.ReportMetric(float64(took.Nanoseconds())/float64(n*benchBatch), "ns/event")
}

func benchAsk(b *testing.B, every int) {
	s := newSealedTask(b, benchPending, 10_000)
	at := 0
	next := func() int { // each A once
		at++
		return at * 7919 % s.n
	}
	pool := make([][]slice, 64) // 262,144 keys: more than any cache of branches can learn
	for i := range pool {
		pool[i] = s.asking(i*benchBatch, benchBatch, 0, nil)
	}
	turn := 0
	events(b, func() []slice {
		in := pool[turn%len(pool)]
		turn++
		for row := 0; every > 0 && row < benchBatch; row += every { // keys are of one length
			copy(in[0].chunk.Key(uint32(row)), fmt.Appendf(nil, "sORD-%08d", next()))
		}
		return in
	}, func(in []slice) {
		s.begin()
		must(b, s.ask(in))
		s.end(b)
	})
	b.ReportMetric(float64(s.stats.Lookups)/float64(s.stats.Probes), "lookups/event")
	if every > 0 && at < s.n {
		b.ReportMetric(float64(s.stats.Present)/float64(at), "found/hit")
	}
}

// BenchmarkAskAbsent: no B has a partner; a million A wait in 15 sealed buckets.
func BenchmarkAskAbsent(b *testing.B) { benchAsk(b, 0) }

// BenchmarkAskHits: one B in a hundred has a partner in a sealed bucket, and uses it up.
func BenchmarkAskHits(b *testing.B) { benchAsk(b, 100) }

// BenchmarkStore: one A into the open bucket and its index, journal included, while a million wait. Buckets of 256 k
// are sealed and dropped between, which is not measured.
func BenchmarkStore(b *testing.B) {
	s := newSealedTask(b, benchPending, 0)
	epoch, from := int64(sealedBuckets), s.n
	events(b, func() []slice {
		if from += benchBatch; from%(64*benchBatch) < benchBatch {
			epoch++
			must(b, s.maintain(Bounds{Floor: epoch - sealedBuckets, Sealable: epoch}))
			must(b, s.collect(true))
		}
		return rowsOf(A, from, from+benchBatch, keyOf, func(int) int64 { return epoch * 1000 })
	}, func(in []slice) {
		s.begin()
		must(b, s.store(in))
		s.end(b)
	})
}

// steady is a source without an end: the same chunks with the next times and offsets, one A for every ten B.
type steady struct {
	chunks [2][2]*Chunk
	turn   [2]int
	at     [2]int64
}

func (s *steady) Partitions(Side) []Partition  { return []Partition{{}} }
func (s *steady) Start(Side, int, int64) error { return nil }
func (s *steady) Done(*Chunk)                  {}
func (s *steady) Next(side Side, _ int) (*Chunk, error) {
	c := s.chunks[side][s.turn[side]]
	s.turn[side] ^= 1
	step := int64(10)
	if side == B {
		step = 1
	}
	for i := range c.N {
		c.Time[i], c.Offset[i] = (s.at[side]+int64(i))*step/1000, s.at[side]+int64(i)
	}
	s.at[side] += int64(c.N)
	return c, nil
}

// BenchmarkGate: one record through the gate, ten B for each A.
func BenchmarkGate(b *testing.B) {
	src := &steady{}
	for side := range src.chunks {
		for i := range src.chunks[side] {
			c := rowsOf(Side(side), 0, 1024, keyOf, func(int) int64 { return 0 })[0].chunk
			c.Place = make([]int64, c.N+1)
			src.chunks[side][i] = c
		}
	}
	g := newGate(&Config{After: 1000, Grace: 5, MaxSpread: 1000, Width: 500, Slots: 16}, src)
	var batch batch
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		must(b, g.fill(&batch, benchBatch))
		g.advance(g.cfg.bounds(batch.wm))
		n += batch.n
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/event")
	if n < b.N*benchBatch {
		b.Fatalf("%d records in %d batches", n, b.N)
	}
}

// BenchmarkHotKey: all A in one bucket under one key, as many B, one-to-one. Every B walks past those that are used up,
// so the time of an event grows with their number.
func BenchmarkHotKey(b *testing.B) {
	for _, state := range []string{"sealed", "open"} {
		for _, n := range []int{1000, 2000, 4000} {
			b.Run(fmt.Sprintf("%s/%d", state, n), func(b *testing.B) { benchHotKey(b, n, state == "sealed") })
		}
	}
}

func benchHotKey(b *testing.B, n int, sealed bool) {
	cfg := &Config{After: 10_000, MaxSpread: 20_000, Width: 5000, Slots: 8, Filter: fusefilter.Fuse16, BatchSize: n + 1, Inline: true}
	as, bs := make([]event, 0, n+1), make([]event, 0, n)
	for i := range n {
		as, bs = append(as, ev("hot", int64(i%100))), append(bs, ev("hot", int64(200+i%100)))
	}
	cfg.Grace = 100
	far := int64(4500)
	if sealed {
		far = 6000
	}
	as = append(as, ev("far", far))
	var took time.Duration
	for b.Loop() {
		b.StopTimer()
		sink := &joined{}
		e := open(b, cfg, newRocks(b, 1).open(b), newScript(b, 1024, []scriptPart{part(0, as...)}, []scriptPart{part(0, bs...)}), sink)
		b.StartTimer()
		must(b, e.Run(context.Background()))
		b.StopTimer()
		took += e.tasks[0].stats.AskTime
		if len(sink.pairs) != n {
			b.Fatalf("%d pairs, want %d", len(sink.pairs), n)
		}
		must(b, e.Close())
		b.StartTimer()
	}
	b.ReportMetric(float64(took.Nanoseconds())/float64(b.N*n), "ns/event")
}

// BenchmarkHash is the hash of a type-tagged key, by its length.
func BenchmarkHash(b *testing.B) {
	for _, n := range []int{17, 21, 37, 129, 1025} {
		b.Run(fmt.Sprintf("bytes=%d", n), func(b *testing.B) {
			task, key := &Task{}, make([]byte, n)
			var sum uint64
			for i := 0; b.Loop(); i++ {
				key[0] = byte(i)
				sum += task.hashOf(key)
			}
			runtime.KeepAlive(sum)
		})
	}
}
