package core

import (
	"testing"

	"joinbench/buckets"
)

// manyGroups is groups with n A in the bucket 0, and B that ask for them by turns.
type manyGroups struct {
	*groups
	t     testing.TB
	as    []found
	b     *Chunk
	asked int
	batch uint64
	task  *Task
}

func newManyGroups(t testing.TB, how Collect, wanted uint32, n int) *manyGroups {
	cfg := &Config{Width: 1_000_000, Slots: 4, Collect: how, Inline: true}
	opt := buckets.Options{Width: cfg.Width, Slots: cfg.Slots}
	ring, err := buckets.NewRing(opt, buckets.NewMemBackend(), 0)
	must(t, err)
	own, err := buckets.NewRing(opt, newRocks(t, 1).open(t)[0], 0)
	must(t, err)
	m := &manyGroups{groups: newGroups(cfg, own, newHelper(cfg, 1)), t: t, task: &Task{stats: &TaskStats{}}}
	t.Cleanup(func() { must(t, m.ring.Close()) })
	bucket, err := ring.Bucket(0)
	must(t, err)
	for i := range n {
		row, err := ring.Append(bucket, 0, &buckets.Entry{Offset: int64(i), Time: int64(i) * cfg.Width / int64(n), Key: []byte("sORD-00000001"),
			Body: make([]byte, 60), Wanted: wanted})
		must(t, err)
		m.as = append(m.as, found{bucket, row, bucket.Entry(row)})
	}
	m.b = rowsOf(B, 0, 4096, keyOf, func(i int) int64 { return int64(i) })[0].chunk
	return m
}

// ask lets n B ask, and commits every 4,096; the A come by turns.
func (m *manyGroups) ask(n int) {
	for ; n > 0; n-- {
		i := m.asked
		m.asked++
		if _, err := m.meet(m.as[i%len(m.as)], Ref{m.b, uint32(i % 4096)}, 0, i < len(m.as)); err != nil {
			m.t.Fatal(err)
		}
		if i%4096 == 4095 {
			m.end()
		}
	}
}

func (m *manyGroups) end() {
	m.batch++
	must(m.t, m.ring.Commit(m.batch, nil))
	m.begin()
}

func (m *manyGroups) spillAll() {
	m.end()
	_, _, _, largest := m.arenas()
	m.spill(largest)
	j, _ := m.help.next(true)
	must(m.t, j.finish(m.task))
}

// closeAll lets all groups out, and says how many B they had.
func (m *manyGroups) closeAll() (n int) {
	for _, f := range m.as {
		m.due(0, f.entry)
	}
	for m.busy() {
		m.begin()
		must(m.t, m.release())
		for i := range m.take.closed {
			n += len(m.take.closed[i].B)
		}
	}
	return n
}

// TestGroupsAllocateNothing: to collect a B, to let a complete group out and to let closed ones out costs no allocation.
func TestGroupsAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	m := newManyGroups(t, CollectCount, 3, 1000)
	m.ask(1000)
	m.end()
	out := 0
	batch := func() { // second and third B
		m.begin()
		for i := range uint32(2000) {
			full, err := m.meet(m.as[i%1000], Ref{m.b, i}, 0, false)
			must(t, err)
			if full {
				out++
			}
		}
		m.undo()
	}
	batch()
	if n := testing.AllocsPerRun(20, batch); n != 0 {
		t.Errorf("%v allocations for 2,000 B that complete 1,000 groups", n)
	}
	if out != 22*1000 {
		t.Errorf("%d groups came out in 22 batches", out)
	}
	for _, where := range []string{"in RAM", "in runs"} {
		if where == "in runs" {
			m.spillAll()
		}
		if n := m.closeAll(); n != 1000 {
			t.Fatalf("%d B came out", n)
		}
		if n := testing.AllocsPerRun(20, func() { m.closeAll() }); n != 0 {
			t.Errorf("%v allocations to close 1,000 groups %s", n, where)
		}
	}
}

// BenchmarkGroups: ns/B of 200,000 groups of 4 B each: to keep them (commits included), to let them out at the close, of RAM, of one
// run and of three; to complete them by the count.
func BenchmarkGroups(b *testing.B) {
	const as, each = 200_000, 4
	perB := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/as/each, "ns/B")
		b.ReportMetric(0, "ns/op")
	}
	for _, c := range []struct {
		name   string
		how    Collect
		wanted uint32
	}{{"keep", CollectTimeout, 0}, {"count", CollectCount, 0}, {"complete", CollectCount, each}} {
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				m := newManyGroups(b, c.how, c.wanted, as)
				b.StartTimer()
				m.ask(as * each)
			}
			perB(b)
		})
	}
	for _, c := range []struct {
		name string
		runs int
	}{{"close of RAM", 0}, {"close of a run", 1}, {"close of 3 runs", 3}} {
		b.Run(c.name, func(b *testing.B) {
			m := newManyGroups(b, CollectTimeout, 0, as)
			for range max(c.runs, 1) {
				m.ask(as * each / max(c.runs, 1))
				if c.runs > 0 {
					m.spillAll()
				}
			}
			if n := m.closeAll(); n < as*each-3 {
				b.Fatalf("%d B came out", n)
			}
			b.ResetTimer()
			for range b.N {
				m.closeAll()
			}
			perB(b)
		})
	}
	for _, c := range []string{"counted after a spill"} {
		b.Run(c, func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				m := newManyGroups(b, CollectCount, 0, as)
				m.ask(as)
				m.spillAll()
				b.StartTimer()
				m.ask(as)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/as, "ns/B")
			b.ReportMetric(0, "ns/op")
		})
	}
}
