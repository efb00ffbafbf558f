package fusefilter

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// modelIndex is the obvious way: a map from the hash to its rows, oldest first.
type modelIndex struct {
	rows   map[uint64][]uint32
	hashes []uint64 // of every row
}

func (m *modelIndex) insert(h uint64) {
	m.rows[h] = append(m.rows[h], uint32(len(m.hashes)))
	m.hashes = append(m.hashes, h)
}

func (m *modelIndex) undo(from int) {
	for row := len(m.hashes) - 1; row >= from; row-- {
		h := m.hashes[row]
		m.rows[h] = m.rows[h][:len(m.rows[h])-1]
		if len(m.rows[h]) == 0 {
			delete(m.rows, h)
		}
	}
	m.hashes = m.hashes[:from]
}

// check compares the whole index with the model, and the answers for hashes that are not in it.
func (m *modelIndex) check(t *testing.T, x *OpenIndex, absent []uint64) {
	t.Helper()
	if x.Len() != len(m.hashes) || x.Keys() != len(m.rows) {
		t.Fatalf("%d rows of %d hashes, want %d of %d", x.Len(), x.Keys(), len(m.hashes), len(m.rows))
	}
	ask := append([]uint64(nil), absent...)
	for h, rows := range m.rows {
		ask = append(ask, h)
		row, ok := x.Find(h)
		for i := len(rows) - 1; i >= 0; i-- {
			if !ok || row != rows[i] {
				t.Fatalf("chain of %#x: row %d %v, want %d", h, row, ok, rows[i])
			}
			row, ok = x.Next(row)
		}
		if ok {
			t.Fatalf("chain of %#x goes on with row %d", h, row)
		}
	}
	heads := headsOf(t, x, ask)
	for i, h := range ask {
		want := NoRow
		if rows := m.rows[h]; rows != nil {
			want = rows[len(rows)-1]
		}
		if heads[i] != want {
			t.Fatalf("FindBatch(%#x) = %d, want %d", h, heads[i], want)
		}
		if row, ok := x.Find(h); row != want || ok != (want != NoRow) {
			t.Fatalf("Find(%#x) = %d, %v, want %d", h, row, ok, want)
		}
	}
}

// headsOf asks for a batch and lays the answers out by position: NoRow where there is none.
func headsOf(t *testing.T, x *OpenIndex, ask []uint64) []uint32 {
	t.Helper()
	const before = 3 // what is in the list already stays
	found := x.FindBatch(ask, []Found{{9, 9}, {8, 8}, {7, 7}})
	if !slices.Equal(found[:before], []Found{{9, 9}, {8, 8}, {7, 7}}) {
		t.Fatalf("FindBatch changed what was in the list: %v", found[:before])
	}
	heads := slices.Repeat([]uint32{NoRow}, len(ask))
	last := -1
	for _, f := range found[before:] {
		if int(f.Pos) <= last || int(f.Pos) >= len(ask) {
			t.Fatalf("FindBatch of %d: position %d after %d", len(ask), f.Pos, last)
		}
		last = int(f.Pos)
		heads[f.Pos] = f.Head
	}
	return heads
}

// hashSources are good and bad hash functions: the answers may not depend on which.
func hashSources(rng *rand.Rand) map[string]func() uint64 {
	// A product with the inverse of the index's multiplier comes out as it went in: these fall into one
	// group, or carry one tag, and fill groups to the brim.
	inverse := inverseOf(firstMultiplier)
	return map[string]func() uint64{
		"random":    rng.Uint64,
		"repeats":   func() uint64 { return rng.Uint64N(300) * 0x9E3779B97F4A7C15 },
		"small":     func() uint64 { return rng.Uint64N(1000) },
		"high bits": func() uint64 { return rng.Uint64N(1000) << 50 },
		"constant":  func() uint64 { return 42 },
		"zero":      func() uint64 { return 0 },
		"one group": func() uint64 { return inverse * rng.Uint64N(1<<40) },
		"neighbours": func() uint64 {
			return inverse * (rng.Uint64N(3)<<56 | rng.Uint64N(1<<32))
		},
		"last group": func() uint64 { return inverse * (^uint64(0) - rng.Uint64N(1<<40)) },
		"one tag":    func() uint64 { return inverse * (rng.Uint64()&^(0xff<<24) | 7<<24) },
		"no tag":     func() uint64 { return inverse * (rng.Uint64() &^ (0xff << 24)) },
	}
}

// inverseOf is the number that makes 1 with an odd one.
func inverseOf(odd uint64) uint64 {
	inverse := odd
	for range 6 { // each round doubles the bits that are right
		inverse *= 2 - odd*inverse
	}
	return inverse
}

// Random inserts, undos and resets against the model, from an index that was made for nothing, so that it
// grows all the way. Once as it is, and once with an index that cannot leave a bad multiplier, so that long runs of
// full groups stay.
func TestOpenIndexModel(t *testing.T) {
	rng := newRand(t)
	sources := hashSources(rng)
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		source := sources[name]
		for _, stuck := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stuck=%v", name, stuck), func(t *testing.T) { modelRun(t, rng, source, stuck) })
		}
	}
}

func modelRun(t *testing.T, rng *rand.Rand, source func() uint64, stuck bool) {
	x := NewOpenIndex(0)
	m := &modelIndex{rows: map[uint64][]uint32{}}
	for range 60 {
		for range rng.IntN(200) {
			h := source()
			if stuck {
				x.tries = maxTries
			}
			x.Insert(h, uint32(len(m.hashes)))
			m.insert(h)
		}
		if rng.IntN(2) == 0 && len(m.hashes) > 0 {
			from := len(m.hashes) - rng.IntN(min(400, len(m.hashes)+1))
			if rng.IntN(4) == 0 { // also those that were there before the table grew
				from = rng.IntN(len(m.hashes) + 1)
			}
			x.Undo(uint32(from), m.hashes)
			m.undo(from)
		}
		if rng.IntN(20) == 0 {
			x.Reset(rng.IntN(1000))
			if stuck {
				x.mult = firstMultiplier
			}
			m = &modelIndex{rows: map[uint64][]uint32{}}
		}
		m.check(t, x, []uint64{0, 42, source(), source(), rng.Uint64(), rng.Uint64()})
	}
	x.Undo(0, m.hashes)
	m.undo(0)
	m.check(t, x, []uint64{0, 42})
	if slices.Max(x.tags) != 0 {
		t.Error("an index with every row undone has tags left")
	}
}

// One row at a time comes out of a table that grew several times, which puts the entries of a crowded group
// into another order than that of their rows.
func TestOpenIndexUndoRowByRow(t *testing.T) {
	rng := newRand(t)
	sources := hashSources(rng)
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		x := NewOpenIndex(0)
		m := &modelIndex{rows: map[uint64][]uint32{}}
		for range 100 {
			h := sources[name]()
			x.Insert(h, uint32(len(m.hashes)))
			m.insert(h)
		}
		hashes := slices.Clone(m.hashes)
		for from := 99; from >= 0; from-- {
			x.Undo(uint32(from), hashes)
			m.undo(from)
			m.check(t, x, hashes)
		}
	}
}

func TestOpenIndexLarge(t *testing.T) {
	rng := newRand(t)
	n := fewer(200_000)
	h := distinctHashes(rng, n)
	x := NewOpenIndex(0)
	m := &modelIndex{rows: map[uint64][]uint32{}}
	for i, v := range h {
		x.Insert(v, uint32(i))
		m.insert(v)
	}
	m.check(t, x, distinctHashes(rng, n/2))
	x.Undo(uint32(n*3/4), h)
	m.undo(n * 3 / 4)
	m.check(t, x, h[n*3/4:])
}

// One hash for all rows: every insert is one step, and the chain is all of them.
func TestOpenIndexConstantHash(t *testing.T) {
	const rows = 300_000
	for _, h := range []uint64{0, 42, ^uint64(0)} {
		x := NewOpenIndex(10)
		for i := range uint32(rows) {
			x.Insert(h, i)
		}
		n := 0
		for row, ok := x.Find(h); ok; row, ok = x.Next(row) {
			n++
			if row != uint32(rows-n) {
				t.Fatalf("row %d is number %d of the chain", row, n)
			}
		}
		if n != rows || x.Keys() != 1 {
			t.Errorf("%d rows of %d hashes, want %d of 1", n, x.Keys(), rows)
		}
		if _, ok := x.Find(h + 1); ok {
			t.Error("a hash that was not inserted was found")
		}
	}
}

func TestOpenIndexMisuse(t *testing.T) {
	x := NewOpenIndex(0)
	x.Insert(7, 0)
	x.Insert(8, 1)
	mustPanic(t, "row 5", func() { x.Insert(9, 5) })
	mustPanic(t, "row 0", func() { x.Insert(9, 0) })
	mustPanic(t, "undo of row 1", func() { x.Undo(0, []uint64{7, 9}) })
}

// An index that is reused allocates nothing, neither for inserts within its hint nor for questions.
func TestOpenIndexAllocatesNothing(t *testing.T) {
	rng := newRand(t)
	h := distinctHashes(rng, 5000)
	found := make([]Found, 0, len(h)+1)
	x := NewOpenIndex(len(h))
	got := testing.AllocsPerRun(10, func() {
		x.Reset(len(h))
		for i, v := range h {
			x.Insert(v, uint32(i))
		}
		found = x.FindBatch(h, found[:0])
		x.Undo(uint32(len(h)/2), h)
	})
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
}

// A small bucket after a large one does not keep the large one's memory.
func TestOpenIndexResetShrinks(t *testing.T) {
	x := NewOpenIndex(1_000_000)
	large := x.Bytes()
	x.Reset(1000)
	if small := x.Bytes(); small*100 > large {
		t.Errorf("%d bytes after a reset to 1,000 rows, %d before", small, large)
	}
}
