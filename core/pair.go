package core

import (
	"fmt"
	"math/bits"

	"joinbench/buckets"
	"joinbench/fusefilter"
)

// asking is how far the B of a batch have come.
type asking struct {
	rows    []slice
	first   int // rows[at] starts at this position
	at      int
	next    int // first position that is not settled, for those in vain
	cand    int // the next candidate
	touched int // candidates
	many    walk
	busy    bool // there are more
}

// pair settles one B after another, up to the end or until an output is full: then asks.busy stays.
func (t *Task) pair() error {
	a := &t.asks
	for a.cand < len(t.cands) {
		if a.cand >= a.touched {
			a.touched = a.cand + t.touch(t.cands[a.cand:])
		}
		pos := t.cands[a.cand].pos
		ref := a.locate(pos)
		end := a.cand + 1
		for end < len(t.cands) && t.cands[end].pos == pos {
			end++
		}
		met, err := t.pairOne(ref, pos, t.cands[a.cand:end])
		if err != nil || a.many.inside {
			return err
		}
		if met && t.cfg.WantB {
			t.vain(a.rows, a.next, int(pos))
			a.next = int(pos) + 1
		}
		if a.cand = end; t.groups != nil && t.groups.isFull() {
			return nil
		}
	}
	if t.cfg.WantB {
		t.vain(a.rows, a.next, len(t.hashes))
	}
	a.busy = false
	return nil
}

// locate finds the row at a position of the batch; positions only ascend.
func (a *asking) locate(pos uint32) Ref {
	for int(pos) >= a.first+len(a.rows[a.at].rows) {
		a.first += len(a.rows[a.at].rows)
		a.at++
	}
	return Ref{a.rows[a.at].chunk, a.rows[a.at].rows[int(pos)-a.first]}
}

// pairOne settles the B of some candidates. It says whether the B met an A.
func (t *Task) pairOne(ref Ref, pos uint32, cands []candidate) (met bool, err error) {
	if t.all {
		return t.pairAll(ref, pos, cands)
	}
	found, err := t.best(ref, cands)
	if err != nil || found.entry == nil {
		return false, err
	}
	return true, t.meet(found, ref, pos)
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

// meet is what becomes of a B and an A that it found: a pair, in most joins.
func (t *Task) meet(f found, ref Ref, pos uint32) error {
	m := Match{Ref: ref, pos: pos, Entry: f.entry}
	if t.plain {
		t.ring.Use(f.bucket, f.row)
		t.matches = append(t.matches, m)
		return nil
	}
	if t.cfg.Watch != nil {
		t.cfg.Watch.Met(ref, f.entry)
	}
	first := !f.bucket.Used(f.row)
	ends := t.cfg.CompleteOn != EndNever && ref.Chunk.FlagsOf(ref.Row)&Ends != 0
	if pairs := !ends || t.cfg.CompleteOn == EndPair; !pairs {
		return t.endWithout(f, m, first)
	}
	if first && t.cfg.Early > 0 {
		m.Kind = t.correction(f, ref)
	}
	if t.marks {
		t.ring.Use(f.bucket, f.row)
	}
	if t.groups != nil {
		return t.collectB(f, ref, m.Kind, first, ends)
	}
	if ends {
		t.ring.End(f.bucket, f.row)
	}
	t.matches = append(t.matches, m)
	return nil
}

// collectB keeps a B with its A (rule 19), and ends the A if that makes its group complete, or the B does.
func (t *Task) collectB(f found, ref Ref, kind MatchKind, first, ends bool) error {
	out, err := t.groups.meet(f, ref, kind, first)
	if err == nil && ends && !out {
		out, err = true, t.groups.end(f)
	}
	if out {
		t.ring.End(f.bucket, f.row)
	}
	return err
}

// endWithout ends an A by a B that gives no pair (rule 18): its null row comes now, if it has one coming.
func (t *Task) endWithout(f found, m Match, first bool) error {
	t.ring.End(f.bucket, f.row)
	if !first {
		if t.groups != nil {
			return t.groups.end(f)
		}
		return nil
	}
	late, out := t.tooLate(f, m.Ref)
	switch {
	case out:
	case late:
		t.rel.early = append(t.rel.early, f.entry)
	case t.cfg.CompleteOn == EndUnmatched && t.cfg.WantA:
		m.Kind = NullOnly
		t.matches = append(t.matches, m)
	}
	return nil
}

// correction is what the first pair of an A says of its null row (rule 17).
func (t *Task) correction(f found, ref Ref) (k MatchKind) {
	late, out := t.tooLate(f, ref)
	if !late && !out {
		return 0
	}
	k = Corrected
	if !out {
		k |= NullFirst
	}
	if t.cfg.Retract {
		k |= Tombstone
	}
	return k
}

// tooLate says whether the first B of an A comes after tA + early, and whether the A's null row is out already: then it was
// below the limit of the last commit, and not stored since.
func (t *Task) tooLate(f found, ref Ref) (late, out bool) {
	if t.cfg.Early == 0 {
		return false, false
	}
	at := buckets.TimeOf(f.entry)
	committed := f.row < uint32(f.bucket.CommittedRows())+f.bucket.Base()
	return ref.Chunk.Time[ref.Row] > at+t.cfg.Early, at < t.rel.let[atEarly] && committed
}

// best is the earliest A, by time, partition and offset, that has the key, lies in the window and still waits.
func (t *Task) best(ref Ref, cands []candidate) (best found, err error) {
	want := t.wantedBy(ref)
	var asked, present, used uint64 // buckets whose runs were read, that have the hash, that have the key only in rows that are gone
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
		t.count(ref.Chunk.Time[ref.Row], present != 0, bits.OnesCount64(asked&^present), used)
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
}

func (t *Task) wantedBy(ref Ref) wanted {
	at := ref.Chunk.Time[ref.Row]
	// An event that woke behind (rule 8) may reach back to such as have closed; none in time does.
	return wanted{ref.Chunk.Key(ref.Row), max(at-t.cfg.After, t.rel.let[atClose]), at + t.cfg.Before}
}

func (w *wanted) fits(e *buckets.Entry) bool {
	return e.Time >= w.from && e.Time <= w.to && string(e.Key) == string(w.key)
}

// bestOpen walks the chain of a hash in an open bucket.
func (t *Task) bestOpen(w *wanted, b *buckets.Bucket, x partIndex, head uint32, best *found) {
	for i, ok := head, true; ok; i, ok = x.Next(i) {
		row := x.base + i
		if b.Ended(row) {
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
			if b.Ended(row) {
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
