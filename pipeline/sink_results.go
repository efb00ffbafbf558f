package pipeline

import (
	"joinbench/buckets"
	"joinbench/core"
	"joinbench/projection"
)

// Where a record or a result goes.
const (
	toResults = iota
	toLate
	toDead
	toUnmatched
)

// rows makes of what a batch has to say one row for each result, and finds what goes to the side outputs. A sink embeds it, and is
// the outlet itself.
type rows struct {
	lines
	nulls [2]bool // events of this side without a partner are results
	line  []byte
	to    outlet

	waits, asks event // what the row at hand is made of, here so that no row costs an allocation
	at          row
}

// outlet takes what rows makes, and keeps nothing of it.
type outlet interface {
	row(r *row) error
	// piece takes the beginning of a group's line that has grown long, and returns what the line goes on from.
	piece(line []byte) ([]byte, error)
	// wants says whether there is such a side output; side is called for those alone.
	wants(to int) bool
	side(to int, side core.Side, rec *projection.Record, reason string) error
}

// row is one result.
type row struct {
	line      []byte // JSON and a line feed; of a group what comes behind its pieces
	a, b      *event // nil: null, or the B of a group
	group     *core.Group
	tombstone bool // takes back the null row of a
}

// time of the row is the greater of the two (rule 23).
func (r *row) time() (int64, error) {
	switch {
	case r.group != nil:
		last, err := buckets.ParseEntry(r.group.B[len(r.group.B)-1]) // they are in the order of their times
		return max(r.a.time, last.Time), err
	case r.a == nil:
		return r.b.time, nil
	case r.b == nil:
		return r.a.time, nil
	}
	return max(r.a.time, r.b.time), nil
}

// Results is that of core.Sink: results in the order of the output's lists, then what goes to the side outputs.
func (s *rows) Results(out *core.Output) error {
	for i := range out.Matches {
		if err := s.match(&out.Matches[i]); err != nil {
			return err
		}
	}
	for i := range out.Groups {
		if err := s.group(&out.Groups[i]); err != nil {
			return err
		}
	}
	if err := s.nullRows(out.Early, true); err != nil {
		return err
	}
	if err := s.rejects(out); err != nil {
		return err
	}
	for _, r := range out.UnmatchedB {
		if err := s.unmatchedRef(r); err != nil {
			return err
		}
	}
	if err := s.nullRows(out.UnmatchedA, false); err != nil {
		return err
	}
	return s.nullRows(out.WaitedB, false)
}

// match writes what one match gives: a pair, and what rules 17 and 18 put before it or in its place.
func (s *rows) match(m *core.Match) error {
	entry, err := buckets.ParseEntry(m.Entry)
	if err != nil {
		return err
	}
	if m.Kind&core.NullOnly != 0 {
		return s.unmatched(&entry)
	}
	if err := s.before(m.Kind, &entry); err != nil {
		return err
	}
	s.waits, s.asks = eventOfEntry(&entry), eventOf(m.Ref)
	a, b := &s.waits, &s.asks
	if entry.SideB { // an A asked, and a B waited
		a, b = b, a
	}
	return s.result(s.pair(s.line[:0], a, b, m.Kind&core.Corrected != 0), row{a: a, b: b})
}

// before writes what comes before a pair or a group that corrects a null row.
func (s *rows) before(kind core.MatchKind, entry *buckets.Entry) error {
	if kind&core.NullFirst != 0 {
		if err := s.early(entry); err != nil {
			return err
		}
	}
	if kind&core.Tombstone == 0 {
		return nil
	}
	s.waits = eventOfEntry(entry)
	return s.result(s.tombstone(s.line[:0], &s.waits), row{a: &s.waits, tombstone: true})
}

// groupPiece is from which length on a part of a group's line is handed over: a group may have a million B.
const groupPiece = 64 << 10

// group writes an A with its B (rule 19).
func (s *rows) group(g *core.Group) error {
	entry, err := buckets.ParseEntry(g.A)
	if err != nil {
		return err
	}
	if err := s.before(g.Kind, &entry); err != nil {
		return err
	}
	last, err := buckets.ParseEntry(g.B[len(g.B)-1]) // they are in the order of their times
	if err != nil {
		return err
	}
	s.waits = eventOfEntry(&entry)
	s.line = s.groupHead(s.line[:0], &s.waits, last.Time)
	for i, raw := range g.B {
		b, err := buckets.ParseEntry(raw)
		if err != nil {
			return err
		}
		s.line = s.groupItem(s.line, i, b.Body)
		if len(s.line) >= groupPiece {
			if s.line, err = s.to.piece(s.line); err != nil {
				return err
			}
		}
	}
	return s.result(s.groupTail(s.line, g), row{a: &s.waits, group: g})
}

// result hands a row over, whose line is the last part of one at least.
func (s *rows) result(line []byte, r row) error {
	r.line = line
	s.line, s.at = line, r
	return s.to.row(&s.at)
}

// alone hands over the null row of an event.
func (s *rows) alone(side core.Side, e event) error {
	s.waits = e
	r := row{a: &s.waits}
	if side == core.B {
		r = row{b: &s.waits}
	}
	return s.result(s.null(s.line[:0], side, &s.waits), r)
}

// early writes the null row of an A that goes on waiting or pairs now (rule 17).
func (s *rows) early(entry *buckets.Entry) error { return s.alone(core.A, eventOfEntry(entry)) }

// unmatched is for an entry that will not pair any more: its null row is a result if the type of the join has its side, else
// it goes to the unmatched file, if there is one.
func (s *rows) unmatched(entry *buckets.Entry) error {
	side := core.A
	if entry.SideB {
		side = core.B
	}
	if s.nulls[side] {
		return s.alone(side, eventOfEntry(entry))
	}
	if !s.to.wants(toUnmatched) {
		return nil
	}
	// What the state keeps of it: its join key, event time and body.
	rec := projection.Record{Key: entry.Key[1:], Value: entry.Body, Timestamp: entry.Time, Partition: entry.Partition, Offset: entry.Offset}
	return s.to.side(toUnmatched, side, &rec, "unmatched")
}

// unmatchedRef is the same for a B that asked in vain.
func (s *rows) unmatchedRef(r core.Ref) error {
	if side := r.Chunk.Side; s.nulls[side] {
		return s.alone(side, eventOf(r))
	}
	return s.sideRef(toUnmatched, r, "unmatched")
}

// rejects writes the records that join nothing: the side outputs, and the null rows of those that have no key (rule 4).
func (s *rows) rejects(out *core.Output) error {
	for _, r := range out.Rejects {
		to := toDead
		switch r.Fate {
		case core.Late, core.LateIdle:
			to = toLate
		case core.Malformed, core.BadKey, core.BadTime:
		default:
			continue
		}
		if err := s.sideRef(to, r.Ref, r.Fate.String()); err != nil {
			return err
		}
	}
	for _, r := range out.NullKeys {
		side := r.Chunk.Side
		if !s.nulls[side] {
			continue // counted
		}
		if err := s.alone(side, eventOf(r.Ref)); err != nil {
			return err
		}
	}
	return nil
}

// sideRef writes a record to a side output, if that is wanted.
func (s *rows) sideRef(to int, r core.Ref, reason string) error {
	if !s.to.wants(to) {
		return nil // nor is the record kept
	}
	return s.to.side(to, r.Chunk.Side, record(r), reason)
}

// nullRows writes the null rows of entries that come early, or of those that will not pair any more.
func (s *rows) nullRows(entries [][]byte, early bool) error {
	for _, raw := range entries {
		entry, err := buckets.ParseEntry(raw)
		if err != nil {
			return err
		}
		if early {
			err = s.early(&entry)
		} else {
			err = s.unmatched(&entry)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
