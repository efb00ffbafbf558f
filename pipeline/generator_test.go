package pipeline

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"joinbench/config"
	"joinbench/core"
	"joinbench/projection"
)

// steadyProfile is a workload in which three of four A before the first B are left out.
func steadyProfile(t *testing.T) *config.Profile {
	t.Helper()
	p, err := config.ParseProfile([]byte(`
join: {a: {key: $.payment_ref, time: $.ts}, b: {key: "@key"}, window: {after: 4h}, grace: 10s}
load: {pending: 5k, steady: true, a_rate: 1.33, b_rate: 100, match_rate: 0.01, b_events: 20k, warm: 1k, late_share: 0.01, disorder: 2s, partitions: 3,
  ages: [1m, 9m], seed: 4}`), "test")
	if err == nil {
		err = p.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestReadersMakeExactlyTheStream: whatever the size of reads and wherever a reader is replaced by one that resumes, each
// partition gives every record once, in order, with the text that the generator says, and passes over what is left out.
func TestReadersMakeExactlyTheStream(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	g, err := newGenerator(steadyProfile(t))
	if err != nil {
		t.Fatal(err)
	}
	var total [2]int64
	for s, parts := range g.partitions() {
		side := core.Side(s)
		for p := range parts {
			next := int64(p) // index of the next record
			skip := func() {
				for side == core.A && next < g.gen.ACount() && !g.gen.HasA(next) {
					next += int64(len(parts))
				}
			}
			r := open(t, g, side, p, 0)
			arenas := [2][]byte{} // now and then another one, as chunks that keep theirs have
			for {
				arena := &arenas[rnd.IntN(20)/19]
				*arena = (*arena)[:0]
				recs := make([]projection.Record, 1+rnd.IntN(300))
				n, err := r.Read(recs, arena)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil || n == 0 {
					t.Fatal(n, err)
				}
				stop := n
				if rnd.IntN(4) == 0 { // the rest is read again by another one
					stop = rnd.IntN(n + 1)
				}
				for i := range stop {
					skip()
					checkGenerated(t, g, side, p, next, &recs[i])
					next += int64(len(parts))
					total[s]++
				}
				if stop < n {
					r = open(t, g, side, p, r.placeAfter(stop-1))
				}
			}
			if skip(); next < [2]int64{g.gen.ACount(), g.gen.BCount()}[s] {
				t.Fatalf("seed %d: side %s, partition %d ends before index %d", seed, side, p, next)
			}
		}
	}
	if total != [2]int64{g.sent(core.A), g.sent(core.B)} || total[core.B] != 21_000 || total[core.A] >= g.gen.ACount() {
		t.Errorf("%d records made, %d and %d were promised", total, g.sent(core.A), g.sent(core.B))
	}
}

func open(t *testing.T, g *generator, side core.Side, part int, place int64) reader {
	t.Helper()
	r, err := g.open(side, part, place)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// checkGenerated compares a record with the one that the generator has at an index.
func checkGenerated(t *testing.T, g *generator, side core.Side, part int, i int64, rec *projection.Record) {
	t.Helper()
	key, value, at := g.gen.RecordB(nil, nil, i)
	found, ok := g.gen.IndexB(int32(part), rec.Offset)
	if side == core.A {
		key, value, at = g.gen.RecordA(nil, nil, i)
		found, ok = g.gen.IndexA(int32(part), rec.Offset)
	}
	if !ok || found != i || !bytes.Equal(rec.Key, key) || !bytes.Equal(rec.Value, value) || rec.Timestamp != at || rec.Partition != int32(part) {
		t.Fatalf("side %s, index %d (%d %v by its offset): %+v\nkey %s, value %s", side, i, found, ok, rec, rec.Key, rec.Value)
	}
}

// TestCutCountsWhatIsThere: a cut ends both sides, and the records made then are those that are promised.
func TestCutCountsWhatIsThere(t *testing.T) {
	g, err := newGenerator(steadyProfile(t))
	if err != nil {
		t.Fatal(err)
	}
	g.goOn()
	var readers [2][]reader
	for s, parts := range g.partitions() {
		for p := range parts {
			readers[s] = append(readers[s], open(t, g, core.Side(s), p, 0))
		}
	}
	var total [2]int64
	var arena []byte
	recs := make([]projection.Record, 100)
	read := func(s, p int) bool {
		n, err := readers[s][p].Read(recs, &arena)
		total[s] += int64(n)
		return err == nil
	}
	for p := range readers[core.B] {
		for range 5 * (p + 1) {
			read(int(core.B), p)
		}
	}
	limit := g.cut()
	for s := range readers {
		for p := range readers[s] {
			for read(s, p) {
			}
		}
	}
	if total != [2]int64{g.sent(core.A), g.sent(core.B)} || limit[core.A] != g.gen.DueA(limit[core.B]) || total[core.A] != limit[core.A]-g.gen.LeftOut() {
		t.Errorf("%d records made, %d and %d promised, cut at %d", total, g.sent(core.A), g.sent(core.B), limit)
	}
}
