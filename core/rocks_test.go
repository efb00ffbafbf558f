package core

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"joinbench/buckets"
	"joinbench/fusefilter"
)

// rocks is the databases of some tasks, opened as often as wanted.
type rocks struct {
	dir    string
	tasks  int
	shared *buckets.Shared
}

func newRocks(t testing.TB, tasks int) *rocks {
	if v, _ := buckets.Build(); strings.HasPrefix(v, "none") {
		t.Skip("built without cgo, so there is no RocksDB")
	}
	shared := buckets.NewShared(buckets.SharedOptions{Memory: 64 << 20, Tasks: tasks})
	t.Cleanup(shared.Close)
	return &rocks{t.TempDir(), tasks, shared}
}

func (r *rocks) open(t testing.TB) []buckets.Backend {
	t.Helper()
	out := make([]buckets.Backend, 0, r.tasks)
	for i := range r.tasks {
		s, err := buckets.OpenRocks(filepath.Join(r.dir, fmt.Sprint(i)), r.shared)
		must(t, err)
		out = append(out, s)
	}
	return out
}

// TestRocks: the join over RocksDB, ended in every way, is what it is over memory.
func TestRocks(t *testing.T) {
	eachSeed(t, 6, func(t *testing.T, r *rand.Rand) {
		l := randomLoad(r, 200+r.IntN(1000))
		l.cfg.BatchSize = max(l.cfg.BatchSize, 50)
		l.cfg.Width *= 8 // a family costs 10 ms to make and to drop
		l.tasks = min(l.tasks, 2)
		t.Log(l.desc)
		src := newScript(t, l.chunk, l.a, l.b)
		want, sink, db := expect(&l.cfg, src), &joined{}, newRocks(t, l.tasks)
		for i := 0; ; i++ {
			how, n := life(i%int(lives)), 1+r.IntN(30)
			if i > 12 {
				n = 1 << 40
			}
			if liveOnce(t, &l.cfg, db.open(t), src.again(), sink, how, n) {
				break
			}
		}
		checkOutputs(t, sink, want)
	})
}

// sealedTask is a task over RocksDB with n A in the buckets 0 to 14 (width 1,000), sealed and with their filters, and
// m in the open bucket 15. Key i is keyOf(i); the sealed ones come first.
type sealedTask struct {
	*Task
	cfg   *Config
	n, m  int
	batch uint64
}

const sealedBuckets = 15

func keyOf(i int) string { return fmt.Sprintf("sORD-%08d", i) }

// newSealedTask makes one. Its window takes in all buckets for a B at 15,999.
func newSealedTask(t testing.TB, n, m int) *sealedTask {
	t.Helper()
	cfg := &Config{Before: 1000, After: 16_000, MaxSpread: 10_000, Width: 1000, Slots: 32, Filter: fusefilter.Fuse16, Summary: true,
		BatchSize: 4096, Inline: true}
	rings, record, err := OpenRings(cfg, buckets.SyncNone, newRocks(t, 1).open(t))
	must(t, err)
	if record != nil {
		t.Fatal("a new state has a commit record")
	}
	s := &sealedTask{Task: newTask(cfg, rings[0].At(0), cfg.limits([2]int64{minTime, minTime})[A], newHelper(cfg, 1)), cfg: cfg, n: n, m: m}
	s.rings = rings[0]
	t.Cleanup(func() { must(t, s.shutdown()) })
	for from := 0; from < n+m; from += 4096 {
		s.begin()
		must(t, s.store(rowsOf(A, from, min(from+4096, n+m), keyOf, func(i int) int64 { return s.timeOf(i) })))
		s.end(t)
	}
	must(t, s.maintain(Bounds{Floor: -1, Sealable: sealedBuckets}))
	must(t, s.collect(true))
	if k := s.stats; k.SealedTotal != sealedBuckets || k.FiltersBuilt != sealedBuckets {
		t.Fatalf("%d buckets sealed, %d filters", k.SealedTotal, k.FiltersBuilt)
	}
	return s
}

// timeOf spreads the sealed keys over the sealed buckets.
func (s *sealedTask) timeOf(i int) int64 {
	if i >= s.n {
		return sealedBuckets * 1000
	}
	return int64(i) * sealedBuckets * 1000 / int64(s.n)
}

// end commits the batch.
func (s *sealedTask) end(t testing.TB) {
	t.Helper()
	s.batch++
	must(t, s.commit(s.batch, []byte("record")))
}

// rowsOf makes one chunk of the records from..to-1, with a body of 60 bytes.
func rowsOf(side Side, from, to int, key func(int) string, time func(int) int64) []slice {
	c := &Chunk{Side: side, N: to - from, KeyOff: []uint32{0}, BodyOff: []uint32{0}}
	body := make([]byte, 60)
	rows := make([]uint32, 0, c.N)
	for i := from; i < to; i++ {
		c.Fate, c.Time, c.Offset = append(c.Fate, Accepted), append(c.Time, time(i)), append(c.Offset, int64(i))
		c.Keys, c.Body = append(c.Keys, key(i)...), append(c.Body, body...)
		c.KeyOff, c.BodyOff = append(c.KeyOff, uint32(len(c.Keys))), append(c.BodyOff, uint32(len(c.Body)))
		rows = append(rows, uint32(i-from))
	}
	return []slice{{chunk: c, rows: rows}}
}

// asking makes n B, of which one in `every` has a partner: next says which A that is. 0 for none.
func (s *sealedTask) asking(from, n, every int, next func() int) []slice {
	return rowsOf(B, from, from+n, func(i int) string {
		if every > 0 && i%every == 0 {
			return keyOf(next())
		}
		return fmt.Sprintf("sABS-%08d", i)
	}, func(int) int64 { return 15_999 })
}

// TestAskAllocatesNothing: in the steady state a batch of B costs no allocation, hits in sealed and in open buckets
// included.
func TestAskAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	const runs, size = 40, 1000
	s := newSealedTask(t, 30_000, 2000)
	for name, cardinality := range map[string]Cardinality{"one-to-one": OneToOne, "one-to-many": OneToMany} {
		t.Run(name, func(t *testing.T) {
			s.cfg.Cardinality = cardinality
			at := 0
			if cardinality == OneToMany {
				at = 1000 // past those that one-to-one uses up
			}
			next := func() int { // each A once, sealed and open ones in turn
				at++
				if at%2 == 0 {
					return s.n + at/2
				}
				return at * 37 % s.n
			}
			batches := make([][]slice, 0, runs+2)
			for i := range runs + 2 {
				batches = append(batches, s.asking(i*size, size, 100, next))
			}
			run := 0
			ask := func() {
				s.begin()
				must(t, s.ask(batches[run]))
				if len(s.matches) != size/100 {
					t.Errorf("%d pairs in a batch", len(s.matches))
				}
				s.end(t)
				run++
			}
			lookups := s.stats.Lookups
			ask() // what is kept for reuse is made now
			if n := testing.AllocsPerRun(runs, ask); n != 0 {
				t.Errorf("%v allocations for a batch of %d B", n, size)
			}
			if s.stats.Lookups-lookups < runs*size/200 {
				t.Errorf("%d lookups: sealed buckets were not read", s.stats.Lookups-lookups)
			}
		})
	}
}
