package core

import (
	"fmt"

	"joinbench/buckets"
)

func (t *Task) pair(rows []slice) error {
	first, at := 0, 0 // rows[at] starts at position first
	next := 0         // first position that is not settled, for those in vain
	for i := 0; i < len(t.cands); {
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
			if t.cfg.KeepUnmatched {
				t.vain(rows, next, int(pos))
				next = int(pos) + 1
			}
		}
		i = end
	}
	if t.cfg.KeepUnmatched {
		t.vain(rows, next, len(t.hashes))
	}
	return nil
}

func (t *Task) vain(rows []slice, from, to int) {
	first := 0
	for _, s := range rows {
		for i := max(from, first); i < min(to, first+len(s.rows)); i++ {
			t.inVain = append(t.inVain, Ref{s.chunk, s.rows[i-first]})
		}
		first += len(s.rows)
	}
}

type found struct {
	bucket *buckets.Bucket
	row    uint32
	entry  []byte
}

func (t *Task) use(f found) {
	if t.cfg.Cardinality == OneToOne || t.cfg.KeepUnmatched {
		t.ring.Use(f.bucket, f.row)
	}
}

func (t *Task) best(ref Ref, cands []candidate) (best found, err error) {
	want := wanted{key: ref.Chunk.Key(ref.Row), one: t.cfg.Cardinality == OneToOne}
	at := ref.Chunk.Time[ref.Row]
	want.from, want.to = at-t.cfg.After, at+t.cfg.Before
	var present, used bool
	empty := 0
	for _, c := range cands {
		b := t.ring.AtSlot(int(c.slot))
		if c.open {
			t.bestOpen(&want, b, c.at, &best)
			continue
		}
		value := t.ring.Value(int(c.at))
		if len(value) == 0 {
			empty++
			continue
		}
		present = true
		wasUsed, err := t.bestSealed(&want, b, t.probes[c.at].Hash, value, &best)
		if err != nil {
			return found{}, fmt.Errorf("bucket %d: %w", b.Epoch, err)
		}
		used = used || wasUsed
	}
	t.count(at, present, empty, used && best.entry == nil)
	return best, nil
}

func (t *Task) count(at int64, present bool, empty int, stale bool) {
	if !present && empty == 0 {
		return
	}
	counted := t.consultedAt(at) > 0
	if present {
		t.stats.Present++
		if counted {
			t.stats.Absent--
		}
	}
	if stale {
		t.stats.Stale++
	}
	if counted {
		t.stats.FilterFalse += uint64(empty)
		if !present {
			t.stats.FalsePositives++
		}
	}
}

func (t *Task) consultedAt(at int64) int {
	if at < t.window.from || at >= t.window.to {
		t.moveWindow(at)
	}
	return t.window.consulted
}

type wanted struct {
	key      []byte
	from, to int64
	one      bool // one-to-one: a used A is gone
}

func (w *wanted) fits(e *buckets.Entry) bool {
	return e.Time >= w.from && e.Time <= w.to && string(e.Key) == string(w.key)
}

func (t *Task) bestOpen(w *wanted, b *buckets.Bucket, head uint32, best *found) {
	index := t.index[b.Slot]
	for row, ok := head, true; ok; row, ok = index.Next(row) {
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

func (t *Task) bestSealed(w *wanted, b *buckets.Bucket, hash uint64, value []byte, best *found) (used bool, err error) {
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
		if value, err = t.ring.ReadChunk(b.Slot, hash, chunk); err != nil {
			return used, err
		}
	}
}

func (t *Task) copy(raw []byte) []byte {
	from := len(t.copies)
	t.copies = append(t.copies, raw...)
	return t.copies[from:len(t.copies):len(t.copies)]
}
