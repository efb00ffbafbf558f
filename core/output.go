package core

import (
	"cmp"
	"slices"

	"joinbench/buckets"
)

// collect puts together what the joiners found, in the order of the B, and counts it.
func (e *Engine) collect() {
	o := &e.out
	o.Rejects, o.NullKeys = nil, nil
	if len(e.joiners) == 1 {
		f := e.joiners[0].Found()
		o.Matches, o.Groups, o.UnmatchedB, o.Early, o.UnmatchedA, o.WaitedB = f.Matches, f.Groups, f.UnmatchedB, f.Early, f.UnmatchedA, f.WaitedB
	} else {
		e.merge()
	}
	n := &e.now
	n.Matches += uint64(len(o.Matches))
	n.countGroups(o.Groups)
	n.Early += uint64(len(o.Early))
	n.UnmatchedA += uint64(len(o.UnmatchedA))
	n.UnmatchedB += uint64(len(o.UnmatchedB) + len(o.WaitedB))
	if e.cfg.Early > 0 || e.cfg.CompleteOn == EndUnmatched {
		for i := range o.Matches {
			n.countKind(o.Matches[i].Kind, e.cfg.WantA)
		}
	}
}

// conclude adds to the last part of the output what the gate has to say.
func (e *Engine) conclude(b *batch) {
	o := &e.out
	o.Rejects, o.NullKeys = b.rejects, b.nulls
	switch n := uint64(len(b.closed)); {
	case e.cfg.Early > 0:
		o.Early = appendEntries(o.Early, b.closed)
		e.now.Early += n
	case e.cfg.WantA:
		o.UnmatchedA = appendEntries(o.UnmatchedA, b.closed)
		e.now.UnmatchedA += n
	}
	for s := range b.read {
		e.now.Behind[s] += b.behind[s]
		for f, n := range b.read[s] {
			e.now.Fates[s][f] += n
		}
	}
}

func (e *Engine) merge() {
	o := &e.out
	clear(o.Matches)
	clear(o.Groups)
	o.Groups = o.Groups[:0]
	o.Matches, o.UnmatchedB, o.Early, o.UnmatchedA, o.WaitedB = o.Matches[:0], o.UnmatchedB[:0], o.Early[:0], o.UnmatchedA[:0], o.WaitedB[:0]
	for i, j := range e.joiners {
		f := j.Found()
		for _, m := range f.Matches {
			if m.Chunk.Side == B { // what A found comes first, task by task
				m.pos = e.route.position(i, m.pos)
			}
			o.Matches = append(o.Matches, m)
		}
		o.Groups = append(o.Groups, f.Groups...)
		o.UnmatchedB = append(o.UnmatchedB, f.UnmatchedB...)
		o.Early = append(o.Early, f.Early...)
		o.UnmatchedA = append(o.UnmatchedA, f.UnmatchedA...)
		o.WaitedB = append(o.WaitedB, f.WaitedB...)
	}
	slices.SortStableFunc(o.Matches, func(a, b Match) int {
		if a.Chunk.Side != b.Chunk.Side {
			return cmp.Compare(a.Chunk.Side, b.Chunk.Side)
		}
		return cmp.Compare(a.pos, b.pos)
	})
}

func appendEntries(dst [][]byte, rows []Ref) [][]byte {
	for _, r := range rows {
		dst = append(dst, entryOf(r))
	}
	return dst
}

// entryOf makes the entry of an A that is stored nowhere.
func entryOf(r Ref) []byte {
	c := r.Chunk
	en := buckets.Entry{SideB: c.Side == B, Partition: c.Partition, Time: c.Time[r.Row], Offset: c.Offset[r.Row], Key: c.Key(r.Row), Body: c.BodyOf(r.Row)}
	return en.AppendTo(nil)
}
