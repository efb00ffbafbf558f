package core

import (
	"fmt"
	"math/bits"

	"joinbench/buckets"
)

// Many-to-many: a B pairs with every A of its key and window. A hot key has very many, so that the walk over them can stop when
// an output is full, and go on behind what it has handed over (rule 20).

// walk is where pairing one B with all of its A stopped.
type walk struct {
	inside bool
	met    bool   // the B has paired
	cand   int    // the candidate, of those of the B
	begun  bool   // row, chunk and at say where in it
	row    uint32 // inArena, inPart: the next row of the chain, as the index counts them
	chunk  uint32 // inRun
	at     int    // entries of the chunk that were passed
	asked  uint64 // buckets whose runs were read,
	had    uint64 // and of them those that have the hash
}

// pairAll pairs a B with all of its A, or as many as fit: then walk.inside stays.
func (t *Task) pairAll(ref Ref, pos uint32, cands []candidate) (met bool, err error) {
	w := &t.asks.many
	want := t.wantedBy(ref)
	for w.inside = true; w.cand < len(cands); w.cand++ {
		c := cands[w.cand]
		b := t.ring.AtSlot(int(c.slot))
		var full bool
		switch c.in {
		case inArena:
			full, err = t.pairChain(&want, b, partIndex{t.index[c.slot], b.Base()}, c.at, ref, pos)
		case inPart:
			full, err = t.pairChain(&want, b, t.part[c.slot], c.at, ref, pos)
		default:
			full, err = t.pairRun(&want, b, c, ref, pos)
		}
		if err != nil {
			return false, fmt.Errorf("bucket %d: %w", b.Epoch, err)
		}
		if full {
			return false, nil
		}
		w.begun = false
	}
	met = w.met
	if w.asked != 0 {
		for m := w.asked &^ w.had; m != 0; m &= m - 1 {
			t.books[bits.TrailingZeros64(m)].FalsePositives++
		}
		t.count(ref.Chunk.Time[ref.Row], w.had != 0, bits.OnesCount64(w.asked&^w.had), 0)
	}
	*w = walk{}
	return met, nil
}

// pairChain pairs a B with the rows of one hash that are in RAM. It stops, full, when the output is.
func (t *Task) pairChain(want *wanted, b *buckets.Bucket, x partIndex, head uint32, ref Ref, pos uint32) (full bool, err error) {
	w := &t.asks.many
	i, ok := head, true
	if w.begun {
		i = w.row
	}
	for ; ok; i, ok = x.Next(i) {
		if t.full() {
			w.begun, w.row = true, i
			return true, nil
		}
		row := x.base + i
		if b.Ended(row) {
			continue
		}
		raw := b.Entry(row)
		if e, err := buckets.ParseEntry(raw); err != nil || !want.fits(&e) {
			continue // an arena holds what Append made of it, so err is nil
		}
		if err := t.meet(found{b, row, raw}, ref, pos); err != nil {
			return false, err
		}
		w.met = true
	}
	return false, nil
}

// pairRun pairs a B with the rows of one hash in a run, chunk by chunk.
func (t *Task) pairRun(want *wanted, b *buckets.Bucket, c candidate, ref Ref, pos uint32) (full bool, err error) {
	w := &t.asks.many
	bit := uint64(1) << c.slot
	w.asked |= bit
	value := t.ring.Value(int(c.at))
	if len(value) == 0 {
		return false, nil
	}
	w.had |= bit
	if !w.begun {
		w.chunk, w.at = 0, 0
	}
	p := t.probes[c.at]
	for ; ; w.chunk, w.at = w.chunk+1, 0 {
		if w.chunk > 0 {
			t.stats.Lookups++
			if value, err = t.ring.ReadChunk(p, w.chunk); err != nil {
				return false, err
			}
			value = t.copy(value) // the next chunk takes its place
		}
		it := buckets.IterValue(value)
		passed := 0
		for row, raw, ok := it.Next(); ok; row, raw, ok = it.Next() {
			if passed++; passed <= w.at {
				continue
			}
			if t.full() {
				w.begun = true
				return true, nil
			}
			w.at = passed
			e, err := buckets.ParseEntry(raw)
			if err != nil {
				return false, err
			}
			if !want.fits(&e) || b.Ended(row) {
				continue
			}
			if err := t.meet(found{b, row, raw}, ref, pos); err != nil {
				return false, err
			}
			w.met = true
		}
		if err := it.Err(); err != nil || !buckets.HasMore(value) {
			return false, err
		}
	}
}
