package core

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"joinbench/fusefilter"
)

// modelRow is an event that the rules accept.
type modelRow struct {
	event
	part int
	id   string
	used bool // it has paired
	gone bool // it pairs no more

	group  []*modelRow // B that it collected
	suffix string      // of its group
}

// expected is what the rules say about a script. It knows partitions one at a time and the naive nested loop.
type expected struct {
	pairs, early           []string // a pair or a group each
	matches                int      // B of groups
	rejects, nulls         []string
	unmatchedA, unmatchedB []string
	fates                  [2][fates]uint64
}

// expect works out the join of a script that is drained. The B of a key must be in one partition, or rule 2's
// exception leaves the answer open.
func expect(cfg *Config, s *script) *expected {
	x := &expected{}
	as, bs := x.accept(cfg, A, s.parts[A]), x.accept(cfg, B, s.parts[B])
	slices.SortFunc(as, func(a, b *modelRow) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(s.parts[A][a.part].ID, s.parts[A][b.part].ID), cmp.Compare(a.offset, b.offset))
	})
	for _, b := range bs {
		met := false
		for _, a := range as {
			if a.key != b.key || b.time < a.time-cfg.Before || b.time > a.time+cfg.After || a.gone {
				continue
			}
			x.meet(cfg, a, b)
			if met = true; cfg.Cardinality != ManyToMany {
				break
			}
		}
		if !met && cfg.WantB {
			x.unmatchedB = append(x.unmatchedB, b.id)
		}
	}
	for _, a := range as {
		switch {
		case a.used && !a.gone && cfg.Collect != CollectEager:
			x.out(cfg, a, cfg.Collect == CollectTimeout)
		case a.used || a.gone:
		case cfg.Early > 0:
			x.early = append(x.early, a.id+" early")
		case cfg.WantA:
			x.unmatchedA = append(x.unmatchedA, a.id)
		}
	}
	return x
}

// meet is what becomes of an A and a B that asks for it (rules 2, 17 and 18).
func (x *expected) meet(cfg *Config, a, b *modelRow) {
	ends, suffix := cfg.CompleteOn != EndNever && b.ends, ""
	pairs := !ends || cfg.CompleteOn == EndPair
	if !a.used && cfg.Early > 0 && b.time > a.time+cfg.Early {
		x.early = append(x.early, a.id+" early")
		if cfg.Retract && pairs {
			x.early = append(x.early, a.id+" retract")
		}
		suffix = " corrected"
	} else if !a.used && ends && cfg.CompleteOn == EndUnmatched && cfg.WantA {
		x.unmatchedA = append(x.unmatchedA, a.id)
	}
	a.gone = ends || cfg.Cardinality == OneToOne
	if pairs && cfg.Collect == CollectEager {
		x.pairs = append(x.pairs, a.id+"+"+b.id+suffix)
	}
	if cfg.Collect == CollectEager {
		a.used = a.used || pairs
		return
	}
	x.collect(cfg, a, b, pairs, suffix)
}

// collect keeps a B with its A and lets the group out if that completes it, or an end does (rules 18 and 19).
func (x *expected) collect(cfg *Config, a, b *modelRow, pairs bool, suffix string) {
	full := false
	if pairs {
		if !a.used {
			a.suffix = suffix
		}
		a.group, a.used = append(a.group, b), true
		full = cfg.Collect == CollectCount && len(a.group) == int(a.wanted) || cfg.Collect == CollectMarker && b.marks
	}
	if a.used && (full || a.gone) {
		x.out(cfg, a, full || cfg.Collect == CollectTimeout)
		a.gone = true
	}
}

// matchCount is what the counter of matches says in the end.
func (x *expected) matchCount(cfg *Config) uint64 {
	if cfg.Collect != CollectEager {
		return uint64(x.matches)
	}
	return uint64(len(x.pairs))
}

// out is one group.
func (x *expected) out(cfg *Config, a *modelRow, complete bool) {
	slices.SortFunc(a.group, func(p, q *modelRow) int {
		return cmp.Or(cmp.Compare(p.time, q.time), cmp.Compare(p.part, q.part), cmp.Compare(p.offset, q.offset))
	})
	var ids []string
	for _, b := range a.group {
		ids = append(ids, b.id)
	}
	wanted := a.wanted
	if cfg.Collect != CollectCount {
		wanted = 0
	}
	x.pairs = append(x.pairs, groupText(a.id, ids, complete, wanted, a.suffix))
	x.matches += len(ids)
}

func groupText(a string, bs []string, complete bool, wanted uint32, suffix string) string {
	return fmt.Sprintf("%s[%s] %v %d%s", a, strings.Join(bs, " "), complete, wanted, suffix)
}

// accept gives the records of a side their fates (rule 9), partition by partition.
func (x *expected) accept(cfg *Config, side Side, parts []scriptPart) []*modelRow {
	var rows []*modelRow
	for i, p := range parts {
		m, next := int64(minTime), int64(0)
		for _, e := range p.events {
			id, fate := idOf(side, p.ID, e.offset), e.fate
			hasTime := fate == Accepted || fate == NullKey
			switch {
			case e.offset < next:
				fate = Redelivered
			case hasTime && e.time+cfg.Grace < m:
				fate = Late
			case hasTime:
				m = max(m, e.time)
			}
			if fate != Redelivered {
				next = e.offset + 1
			}
			x.fates[side][fate]++
			switch fate {
			case Accepted:
				rows = append(rows, &modelRow{event: e, part: i, id: id})
			case NullKey:
				x.nulls = append(x.nulls, id)
			default:
				x.rejects = append(x.rejects, id+" "+fate.String())
			}
		}
	}
	return rows
}

// load is a random script and a configuration that fits it.
type load struct {
	cfg   Config
	tasks int
	a, b  []scriptPart
	chunk int
	desc  string
}

// randomLoad makes a load of about n records: a few partitions a side, each of them disordered, with keys that come
// back, and everything that can be wrong with a record.
func randomLoad(r *rand.Rand, n int) *load {
	l := &load{tasks: 1 + r.IntN(4), chunk: 1 + r.IntN(60)}
	c := &l.cfg
	*c = Config{Before: r.Int64N(60) * r.Int64N(2), After: r.Int64N(200), Grace: r.Int64N(30) * r.Int64N(2), Slots: 2 + r.IntN(15),
		Filter: fusefilter.Kind(r.IntN(5)), ArenaBytes: []int64{0, 0, 1 << 9, 1 << 12}[r.IntN(4)], Summary: r.IntN(2) == 0, Cardinality: Cardinality(r.IntN(3)), WantA: r.IntN(2) == 0, WantB: r.IntN(2) == 0,
		BatchSize: []int{1, 2, 7, 50, 1000}[r.IntN(5)], Drain: true, Inline: r.IntN(2) == 0}
	if c.WantA && c.After > 1 && r.IntN(2) == 0 {
		c.Early, c.Retract = 1+r.Int64N(c.After-1), r.IntN(2) == 0
	}
	if r.IntN(3) == 0 {
		c.CompleteOn = Ending(1 + r.IntN(3))
	}
	if c.Cardinality == OneToMany && r.IntN(2) == 0 {
		c.Collect = Collect(1 + r.IntN(3))
	}
	c.MaxSpread = c.Before + c.Grace + 1 + r.Int64N(100)
	c.Width = leastWidth(c) + r.Int64N(2)*r.Int64N(200)
	hash := r.IntN(3)
	switch hash {
	case 1:
		c.Hash = func([]byte) uint64 { return 42 }
	case 2:
		c.Hash = func(key []byte) uint64 { return xxh3.Hash(key) & 0xff }
	}
	keys := 1 + r.IntN(40)
	partsA, partsB := 1+r.IntN(4), 1+r.IntN(4)
	span := int64(1 + r.IntN(4000))
	for i := range partsA {
		l.a = append(l.a, randomPart(r, c, int32(10-i), n/2/partsA, span, func() int { return r.IntN(keys) }))
	}
	for i := range partsB { // key k is in partition k modulo partsB
		l.b = append(l.b, randomPart(r, c, int32(i), n/2/partsB, span, func() int { return i + partsB*r.IntN((keys+partsB-1)/partsB) }))
	}
	for _, side := range []*[]scriptPart{&l.a, &l.b} {
		if r.IntN(3) == 0 { // lines that have no partition
			p := part(-1, bad(Malformed, 0), bad(Malformed, 0), bad(BadKey, 0))
			p.Timeless = true
			*side = append(*side, p)
		}
	}
	l.desc = fmt.Sprintf("%d tasks, hash %d, %d keys, %d+%d partitions, %+v", l.tasks, hash, keys, partsA, partsB, *c)
	return l
}

// leastWidth is the smallest width that rule 13 allows.
func leastWidth(c *Config) int64 {
	span := max(c.Before, c.After) + c.Grace + c.MaxSpread
	return (span + int64(c.Slots) - 2) / int64(c.Slots-1)
}

// randomPart is a partition whose time goes forward with disorder around the grace, now and then with a jump.
func randomPart(r *rand.Rand, c *Config, id int32, n int, span int64, key func() int) scriptPart {
	n = r.IntN(n + 1)
	events := make([]event, 0, n)
	step := 2*span/int64(n+1) + 1
	now, offset := r.Int64N(500), int64(0)
	for range n {
		now += r.Int64N(step)
		if r.IntN(200) == 0 {
			now += r.Int64N(20 * c.Width)
		}
		e := event{time: max(0, now-r.Int64N(3)*c.Grace/2-r.Int64N(2)*r.Int64N(3)), key: fmt.Sprintf("k%02d", key()), offset: offset, ends: r.IntN(5) == 0,
			marks: r.IntN(4) == 0, wanted: uint32(r.IntN(4))}
		switch r.IntN(40) {
		case 0:
			e.fate = NullKey
		case 1:
			e.fate, e.time = BadTime, now+r.Int64N(100000)
		case 2:
			e.fate, e.time = Malformed, now+r.Int64N(100000)
		case 3:
			e.fate, e.time = BadKey, now+r.Int64N(100000)
		case 4: // a record that is delivered again, or in a log with a hole
			e.offset += r.Int64N(6) - 3
			e.offset = max(0, e.offset)
		}
		offset = max(offset, e.offset+1)
		events = append(events, e)
	}
	return part(id, events...)
}
