package core

import (
	"fmt"
	"math/bits"

	"joinbench/buckets"
	"joinbench/fusefilter"
)

// pair settles one B after another.
func (t *Task) pair(rows []slice) error {
	first, at := 0, 0 // rows[at] starts at position first
	next := 0         // first position that is not settled, for those in vain
	touched := 0      // candidates
	for i := 0; i < len(t.cands); {
		if i >= touched {
			touched = i + t.touch(t.cands[i:])
		}
		pos := t.cands[i].pos
		for int(pos) >= first+len(rows[at].rows) {
			first += len(rows[at].rows)
			at++
		}
		ref := Ref{rows[at].chunk, rows[at].rows[int(pos)-first]}
		end := i + 1
		for end < len(t.cands) && t.cands[end].pos == pos {
			end++
		}
		found, err := t.best(ref, t.cands[i:end])
		if err != nil {
			return err
		}
		if found.entry != nil {
			t.use(found)
			t.matches = append(t.matches, Match{Ref: ref, pos: pos, Entry: found.entry})
			if t.cfg.WantB {
				t.vain(rows, next, int(pos))
				next = int(pos) + 1
			}
		}
		i = end
	}
	if t.cfg.WantB {
		t.vain(rows, next, len(t.hashes))
	}
	return nil
}

// touchAhead is how many candidates are read in one go before they are looked at one by one: rows in arenas are cold, and these
// reads do not wait for each other. With 30 % of matches a B cost 593 ns
// without and 539 with (profile dense, medians of three in turn).
const touchAhead = 256

// touch reads a byte of each line of the next candidates in RAM, and says how many it passed.
func (t *Task) touch(cands []candidate) int {
	cands = cands[:min(len(cands), touchAhead)]
	for _, c := range cands {
		switch b := t.ring.AtSlot(int(c.slot)); c.in {
		case inArena:
			t.touched ^= b.Touch(b.Base() + c.at)
		case inPart:
			t.touched ^= b.Touch(t.part[c.slot].base + c.at)
		}
	}
	return len(cands)
}

// vain lists the B of positions from..to-1 as unmatched.
func (t *Task) vain(rows []slice, from, to int) {
	first := 0
	for _, s := range rows {
		for i := max(from, first); i < min(to, first+len(s.rows)); i++ {
			t.inVain = append(t.inVain, Ref{s.chunk, s.rows[i-first]})
		}
		first += len(s.rows)
	}
}

// found is the A that a B pairs with, if entry is not nil.
type found struct {
	bucket *buckets.Bucket
	row    uint32
	entry  []byte
}

// use consumes the A of a pair. In one-to-many it stays; the mark is only needed to know who never paired.
func (t *Task) use(f found) {
	if t.cfg.Cardinality == OneToOne || t.cfg.WantA {
		t.ring.Use(f.bucket, f.row)
	}
}

// best is the earliest A, by time, partition and offset, that has the key, lies in the window and still waits.
func (t *Task) best(ref Ref, cands []candidate) (best found, err error) {
	want := wanted{key: ref.Chunk.Key(ref.Row), one: t.cfg.Cardinality == OneToOne}
	at := ref.Chunk.Time[ref.Row]
	want.from, want.to = at-t.cfg.After, at+t.cfg.Before
	var asked, present, used uint64 // buckets whose runs were read, that have the hash, that have the key only in used rows
	for _, c := range cands {
		b := t.ring.AtSlot(int(c.slot))
		switch c.in {
		case inArena:
			t.bestOpen(&want, b, partIndex{t.index[c.slot], b.Base()}, c.at, &best)
			continue
		case inPart:
			t.bestOpen(&want, b, t.part[c.slot], c.at, &best)
			continue
		}
		bit := uint64(1) << c.slot
		asked |= bit
		value := t.ring.Value(int(c.at))
		if len(value) == 0 {
			continue
		}
		present |= bit
		wasUsed, err := t.bestSealed(&want, b, t.probes[c.at], value, &best)
		if err != nil {
			return found{}, fmt.Errorf("bucket %d: %w", b.Epoch, err)
		}
		if wasUsed {
			used |= bit
		}
	}
	if asked != 0 {
		if best.entry != nil {
			used = 0
		}
		for m := asked &^ present; m != 0; m &= m - 1 {
			t.books[bits.TrailingZeros64(m)].FalsePositives++
		}
		t.count(at, present != 0, bits.OnesCount64(asked&^present), used)
	}
	return best, nil
}

// count keeps the books of the filters for a B that came to a sealed bucket.
func (t *Task) count(at int64, present bool, empty int, stale uint64) {
	counted := t.moveWindow(at).consulted > 0 // else one of its buckets had no filter yet
	if present {
		t.stats.Present++
		if counted {
			t.stats.Absent--
		}
	}
	if stale != 0 {
		t.stats.Stale++
		for ; stale != 0; stale &= stale - 1 {
			slot := bits.TrailingZeros64(stale)
			t.filters[slot].stale++
			t.books[slot].Stale++
		}
	}
	if counted && t.cfg.Filter != fusefilter.Bloom {
		t.stats.FilterFalse += uint64(empty)
		if !present {
			t.stats.FalsePositives++
		}
	}
}

// wanted is what a B looks for.
type wanted struct {
	key      []byte
	from, to int64
	one      bool // one-to-one: a used A is gone
}

func (w *wanted) fits(e *buckets.Entry) bool {
	return e.Time >= w.from && e.Time <= w.to && string(e.Key) == string(w.key)
}

// bestOpen walks the chain of a hash in an open bucket.
func (t *Task) bestOpen(w *wanted, b *buckets.Bucket, x partIndex, head uint32, best *found) {
	for i, ok := head, true; ok; i, ok = x.Next(i) {
		row := x.base + i
		if w.one && b.Used(row) {
			continue
		}
		raw := b.Entry(row)
		e, err := buckets.ParseEntry(raw)
		if err != nil || !w.fits(&e) {
			continue // an arena holds what Append made of it, so err is nil
		}
		if best.entry == nil || buckets.EntryBefore(raw, best.entry) {
			*best = found{b, row, raw}
		}
	}
}

// bestSealed walks the entries of a hash in a sealed bucket, earliest first, chunk by chunk: the first that fits is
// the bucket's best. used says whether one of the key was there and is used up.
func (t *Task) bestSealed(w *wanted, b *buckets.Bucket, p buckets.Probe, value []byte, best *found) (used bool, err error) {
	for chunk := uint32(1); ; chunk++ {
		it := buckets.IterValue(value)
		for row, raw, ok := it.Next(); ok; row, raw, ok = it.Next() {
			e, err := buckets.ParseEntry(raw)
			if err != nil {
				return used, err
			}
			if !w.fits(&e) {
				continue
			}
			if w.one && b.Used(row) {
				used = true
				continue
			}
			if best.entry == nil || buckets.EntryBefore(raw, best.entry) {
				if chunk > 1 {
					raw = t.copy(raw)
				}
				*best = found{b, row, raw}
			}
			return used, nil
		}
		if err := it.Err(); err != nil || !buckets.HasMore(value) {
			return used, err
		}
		t.stats.Lookups++
		if value, err = t.ring.ReadChunk(p, chunk); err != nil {
			return used, err
		}
	}
}

// copy keeps an entry until the next batch.
func (t *Task) copy(raw []byte) []byte {
	from := len(t.copies)
	t.copies = append(t.copies, raw...)
	return t.copies[from:len(t.copies):len(t.copies)]
}
