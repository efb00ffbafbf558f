package core

import (
	"cmp"
	"fmt"
	"slices"

	"joinbench/buckets"
	"joinbench/fusefilter"
)

// How the B of a group are found: in RAM by the indexes, in runs by one batch of reads for many A.

// fetch adds the groups of some A of one bucket to a list, in their order. It stops when the output is full, but not
// before the first, and says how many are done. With use their B are used up.
func (g *groups) fetch(owners []owner, dst *[]Group, use bool) (done int, err error) {
	epoch := owners[0].epoch
	b := g.ring.At(epoch)
	if b == nil {
		c, err := g.collector(epoch, owners[0].entry)
		if err == nil {
			err = g.lost(&buckets.Bucket{Epoch: epoch}, &c)
		}
		return 0, err
	}
	if err := g.seek(b, owners); err != nil {
		return 0, fmt.Errorf("bucket %d: %w", epoch, err)
	}
	t := &g.take
	order := t.order
	for i := range t.sought {
		if i > 0 && t.isFull() {
			return i, nil
		}
		s := &t.sought[i]
		group, err := g.gather(b, s, order[:s.runs], use)
		if err != nil {
			return 0, fmt.Errorf("bucket %d: %w", epoch, err)
		}
		order = order[s.runs:]
		if len(group.B) == 0 {
			return 0, g.lost(b, &s.collector)
		}
		group.A, group.Wanted = owners[i].entry, s.wanted
		*dst = append(*dst, group)
	}
	return len(owners), nil
}

// seek finds the rows of some A in RAM, and reads in one go what runs have of those whose first B is not in RAM.
func (g *groups) seek(b *buckets.Bucket, owners []owner) error {
	t := &g.take
	t.sought, t.hashes, t.rows = t.sought[:0], t.hashes[:0], t.rows[:0]
	for _, o := range owners {
		c, err := g.collector(o.epoch, o.entry)
		if err != nil {
			return err
		}
		t.sought = append(t.sought, sought{collector: c, arena: fusefilter.NoRow, part: fusefilter.NoRow})
		t.hashes = append(t.hashes, c.hash)
	}
	arena, part := partIndex{g.index[b.Slot], b.Base()}, g.part[b.Slot]
	for _, h := range t.heads(arena) {
		t.sought[h.Pos].arena = h.Head
	}
	for _, h := range t.heads(part) {
		t.sought[h.Pos].part = h.Head
	}
	for i := range t.sought {
		s := &t.sought[i]
		s.from = len(t.rows)
		t.chain(b, arena, s.arena)
		t.chain(b, part, s.part)
		s.to = len(t.rows)
	}
	for _, row := range t.rows {
		t.touch ^= b.Touch(row)
	}
	return g.seekRuns(b)
}

// heads asks an index for the hashes.
func (t *taking) heads(x partIndex) []fusefilter.Found {
	t.hits = t.hits[:0]
	switch {
	case x.OpenIndex == nil:
	case len(t.hashes) == 1:
		if row, ok := x.Find(t.hashes[0]); ok {
			t.hits = append(t.hits, fusefilter.Found{Head: row})
		}
	default:
		t.hits = x.FindBatch(t.hashes, t.hits)
	}
	return t.hits
}

// chain lists the rows of a chain that wait.
func (t *taking) chain(b *buckets.Bucket, x partIndex, head uint32) {
	for i, ok := head, head != fusefilter.NoRow; ok; i, ok = x.Next(i) {
		if row := x.base + i; !b.Used(row) {
			t.rows = append(t.rows, row)
		}
	}
}

// seekRuns reads what the runs have, and orders it by A.
func (g *groups) seekRuns(b *buckets.Bucket) error {
	t := &g.take
	t.probes, t.order = t.probes[:0], t.order[:0]
	if b.Runs() == 0 {
		return nil
	}
	for i := range t.sought {
		if s := &t.sought[i]; !g.whole(b, s) {
			t.probes = g.probeRuns(t.probes, b, s.hash, uint32(i))
			s.runs = b.Runs()
		}
	}
	if err := g.lookup(t.probes); err != nil {
		return err
	}
	for i := range t.probes {
		t.order = append(t.order, uint32(i))
	}
	slices.SortFunc(t.order, func(x, y uint32) int {
		p, q := &t.probes[x], &t.probes[y]
		return cmp.Or(cmp.Compare(p.Tag, q.Tag), cmp.Compare(p.Run, q.Run))
	})
	return nil
}

// whole says whether all B of an A are in RAM: then the oldest there is the first.
func (g *groups) whole(b *buckets.Bucket, s *sought) bool {
	rows := g.take.rows[s.from:s.to]
	for i := len(rows) - 1; i >= 0; i-- {
		if e, err := buckets.ParseEntry(b.Entry(rows[i])); err == nil && s.of(&e) {
			return nth(e.Key) == 1
		}
	}
	return false
}

// gather puts one group together: what runs have, then what is in RAM, in the order in which the B came; then sorted.
func (g *groups) gather(b *buckets.Bucket, s *sought, probes []uint32, use bool) (group Group, err error) {
	t := &g.take
	from := len(t.lists)
	for _, i := range probes {
		err := g.eachInRun(t.probes[i], int(i), func(row uint32, raw []byte) error {
			e, err := buckets.ParseEntry(raw)
			if err == nil && s.of(&e) && !b.Used(row) {
				g.takeRow(&group, b, row, t.read.keep(raw), e.Key, use)
			}
			return err
		})
		if err != nil {
			return group, err
		}
	}
	for i := s.to - 1; i >= s.from; i-- {
		row := t.rows[i]
		raw := b.Entry(row)
		e, err := buckets.ParseEntry(raw)
		if err != nil {
			return group, err
		}
		if s.of(&e) {
			g.takeRow(&group, b, row, raw, e.Key, use)
		}
	}
	group.B = t.lists[from:len(t.lists):len(t.lists)]
	if !inOrder(group.B) {
		slices.SortFunc(group.B, byEntry)
	}
	return group, nil
}

// takeRow adds a B to a group. That a null row came first is said by the group if both come in one batch.
func (g *groups) takeRow(group *Group, b *buckets.Bucket, row uint32, raw, key []byte, use bool) {
	kind := MatchKind(key[collectSize-1])
	if row < b.Base()+uint32(b.CommittedRows()) {
		kind &^= NullFirst
	}
	group.Kind |= kind
	g.take.lists = append(g.take.lists, raw)
	if use {
		g.ring.Use(b, row)
	}
}

// inOrder is true of most groups: B come about in the order of their time.
func inOrder(list [][]byte) bool {
	for i := 1; i < len(list); i++ {
		if buckets.EntryBefore(list[i], list[i-1]) {
			return false
		}
	}
	return true
}

// byEntry is the order of the B in a group.
func byEntry(x, y []byte) int {
	switch {
	case buckets.EntryBefore(x, y):
		return -1
	case buckets.EntryBefore(y, x):
		return 1
	}
	return 0
}

// probeRuns adds the probes of a hash in all runs of a bucket.
func (g *groups) probeRuns(dst []buckets.Probe, b *buckets.Bucket, hash uint64, tag uint32) []buckets.Probe {
	for run := range b.Runs() {
		dst = append(dst, buckets.Probe{Hash: hash, Slot: uint16(b.Slot), Run: uint16(run), Tag: tag})
	}
	return dst
}

func (g *groups) lookup(probes []buckets.Probe) error {
	if len(probes) == 0 {
		return nil
	}
	g.stats.Lookups += uint64(len(probes))
	return g.ring.Lookup(probes)
}

// eachInRun calls fn with the rows that probe i of the last lookup found, used ones too; an entry is valid during the call.
func (g *groups) eachInRun(p buckets.Probe, i int, fn func(row uint32, raw []byte) error) (err error) {
	value := g.ring.Value(i)
	if len(value) == 0 {
		return nil
	}
	for chunk := uint32(1); ; chunk++ {
		it := buckets.IterValue(value)
		for row, raw, ok := it.Next(); ok; row, raw, ok = it.Next() {
			if err := fn(row, raw); err != nil {
				return err
			}
		}
		if err := it.Err(); err != nil || !buckets.HasMore(value) {
			return err
		}
		g.stats.Lookups++
		if value, err = g.ring.ReadChunk(p, chunk); err != nil {
			return err
		}
	}
}

// copies are entries that are kept for a while. They do not move.
type copies struct {
	chunk []byte // the last one; earlier ones are held by who looks at them
	bytes int
}

func (c *copies) keep(raw []byte) []byte {
	if cap(c.chunk)-len(c.chunk) < len(raw) {
		c.chunk = make([]byte, 0, max(len(raw), min(2*cap(c.chunk), keepCopied), 64<<10))
	}
	from := len(c.chunk)
	c.chunk = append(c.chunk, raw...)
	c.bytes += len(raw)
	return c.chunk[from:len(c.chunk):len(c.chunk)]
}

func (c *copies) reset() {
	if cap(c.chunk) > keepCopied {
		c.chunk = nil
	}
	c.chunk, c.bytes = c.chunk[:0], 0
}
