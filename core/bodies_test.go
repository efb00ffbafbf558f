package core

import (
	"context"
	"fmt"
	"testing"

	"joinbench/buckets"
	"joinbench/fusefilter"
)

// bodyWatch notes which entries of A and of B come out with a body.
type bodyWatch struct {
	joined
	with, without [2]int
}

func (w *bodyWatch) Results(out *Output) error {
	note := func(raw []byte) error {
		e, err := buckets.ParseEntry(raw)
		side := A
		if e.SideB {
			side = B
		}
		if len(e.Body) > 0 {
			w.with[side]++
		} else {
			w.without[side]++
		}
		return err
	}
	for _, m := range out.Matches {
		if err := note(m.Entry); err != nil {
			return err
		}
	}
	for _, list := range [][][]byte{out.UnmatchedA, out.WaitedB} {
		for _, raw := range list {
			if err := note(raw); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestAWaitWithoutTheirBodies: with NoBodies the entries of A that waited have none, out of RAM and out of families; B that wait keep
// theirs.
func TestAWaitWithoutTheirBodies(t *testing.T) {
	for _, probe := range []Probe{ProbeAligned, ProbeWait} {
		for _, off := range []bool{false, true} {
			cfg := &Config{Before: 500, After: 1000, MaxSpread: 600, Width: 100, Slots: 64, Filter: fusefilter.Fuse16, Probe: probe, BatchSize: 16, Inline: true,
				Cardinality: ManyToMany, WantA: true, WantB: true, NoBodies: off, Drain: true}
			var as, bs []event
			for i := range int64(400) {
				as = append(as, ev(fmt.Sprint("k", i%50), i*10))
				bs = append(bs, ev(fmt.Sprint("k", i%60), i*10+5))
			}
			w := &bodyWatch{}
			e := open(t, cfg, newRocks(t, 1).open(t), newScript(t, 8, []scriptPart{part(0, as...)}, []scriptPart{part(0, bs...)}), w)
			waited := [2]int{}
			e.Observe = watch(func(e *Engine) {
				l := e.Levels(false)
				waited = [2]int{max(waited[A], l.Pending), max(waited[B], l.PendingB)}
			})
			must(t, e.Run(context.Background()))
			must(t, e.Close())
			if waited[A] == 0 || probe == ProbeWait && waited[B] == 0 {
				t.Errorf("probe %d: nobody waited: %v", probe, waited)
			}
			switch {
			case w.without[B] > 0, !off && w.without[A] > 0, off && w.with[A] > 0, probe == ProbeWait && w.with[B] == 0, w.with[A]+w.without[A] == 0:
				t.Errorf("probe %d, NoBodies %v: entries with bodies %v, without %v", probe, off, w.with, w.without)
			}
		}
	}
}

// BenchmarkPendingBytes is what a waiting A takes, by the length of its body; 0: NoBodies. One operation is one A with a key of 12
// bytes: in the arena and the index of an open bucket, and in the filter once it is sealed.
func BenchmarkPendingBytes(b *testing.B) {
	for _, body := range []int{0, 60, 120, 300} {
		b.Run(fmt.Sprintf("body=%d", body), func(b *testing.B) {
			cfg := &Config{After: 10_000, MaxSpread: 20_000, Width: 10_000, Slots: 8, Filter: fusefilter.Fuse16, BatchSize: 4096, Inline: true, NoBodies: body == 0}
			rings, _, err := OpenRings(cfg, buckets.SyncNone, newRocks(b, 1).open(b))
			must(b, err)
			s := &sealedTask{Task: newTask(cfg, rings[0].At(0), cfg.limits([2]int64{minTime, minTime})[A], newHelper(cfg, 1)), cfg: cfg}
			s.rings = rings[0]
			defer func() { must(b, s.shutdown()) }()
			random := uint64(1)
			for from := 0; from < b.N; from += 4096 {
				rows := rowsOf(A, from, min(from+4096, b.N), keyOf, func(int) int64 { return 5 })
				fillBodies(rows[0].chunk, max(body, 60), &random)
				s.begin()
				must(b, s.store(rows))
				s.end(b)
			}
			open := taskJoiner{s.Task}.Levels(false)
			b.ReportMetric(float64(open.ArenaBytes)/float64(b.N), "arena/row")
			b.ReportMetric(float64(open.IndexBytes)/float64(b.N), "index/row")
			must(b, s.maintain(Bounds{Floor: -1, Sealable: 1}))
			must(b, s.collect(true))
			sealed := taskJoiner{s.Task}.Levels(false)
			b.ReportMetric(float64(sealed.FilterBytes)/float64(b.N), "filter/row")
		})
	}
}

// fillBodies gives a chunk bodies of so many bytes, half of which repeat.
func fillBodies(c *Chunk, n int, random *uint64) {
	c.Body, c.BodyOff = c.Body[:0], append(c.BodyOff[:0], 0)
	for range c.N {
		for i := range n {
			*random = *random*6364136223846793005 + 1442695040888963407
			if at := len(c.Body); i%2 == 0 || at < n {
				c.Body = append(c.Body, byte('a'+*random>>59))
			} else {
				c.Body = append(c.Body, c.Body[at-n])
			}
		}
		c.BodyOff = append(c.BodyOff, uint32(len(c.Body)))
	}
}
