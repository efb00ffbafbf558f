package pipeline

import (
	"joinbench/buckets"
	"joinbench/capture"
	"joinbench/core"
	"joinbench/projection"
)

// Results implements core.Sink: results in the order of the output's lists, then what goes to the side outputs.
func (s *fileSink) Results(out *core.Output) error {
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
func (s *fileSink) match(m *core.Match) error {
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
	waits, asks := eventOfEntry(&entry), eventOf(m.Ref)
	a, b := &waits, &asks
	if entry.SideB { // an A asked, and a B waited
		a, b = b, a
	}
	return s.result(s.pair(s.line[:0], a, b, m.Kind&core.Corrected != 0))
}

// before writes what comes before a pair or a group that corrects a null row.
func (s *fileSink) before(kind core.MatchKind, entry *buckets.Entry) error {
	if kind&core.NullFirst != 0 {
		if err := s.early(entry); err != nil {
			return err
		}
	}
	if kind&core.Tombstone == 0 {
		return nil
	}
	e := eventOfEntry(entry)
	return s.result(s.tombstone(s.line[:0], &e))
}

// groupPiece is from which length on a part of a group's line is handed over: a group may have a million B.
const groupPiece = 64 << 10

// group writes an A with its B (rule 19).
func (s *fileSink) group(g *core.Group) error {
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
	a := eventOfEntry(&entry)
	s.line = s.groupHead(s.line[:0], &a, last.Time)
	for i, raw := range g.B {
		b, err := buckets.ParseEntry(raw)
		if err != nil {
			return err
		}
		s.line = s.groupItem(s.line, i, b.Body)
		if len(s.line) >= groupPiece {
			if _, err := s.files[toResults].w.Write(s.line); err != nil {
				return err
			}
			s.line = s.line[:0]
		}
	}
	return s.result(s.groupTail(s.line, g))
}

// result writes a line, or the last part of one, to the results.
func (s *fileSink) result(line []byte) error {
	s.line = line
	s.outputs++
	_, err := s.files[toResults].w.Write(line)
	return err
}

// early writes the null row of an A that goes on waiting or pairs now (rule 17).
func (s *fileSink) early(entry *buckets.Entry) error {
	e := eventOfEntry(entry)
	return s.result(s.null(s.line[:0], core.A, &e))
}

// unmatched is for an entry that will not pair any more: its null row is a result if the type of the join has its side, else
// it goes to the unmatched file, if there is one.
func (s *fileSink) unmatched(entry *buckets.Entry) error {
	side := core.A
	if entry.SideB {
		side = core.B
	}
	if s.nulls[side] {
		e := eventOfEntry(entry)
		return s.result(s.null(s.line[:0], side, &e))
	}
	// What the state keeps of it: its join key, event time and body.
	rec := projection.Record{Key: entry.Key[1:], Value: entry.Body, Timestamp: entry.Time, Partition: entry.Partition, Offset: entry.Offset}
	return s.side(toUnmatched, side, &rec, "unmatched")
}

// unmatchedRef is the same for a B that asked in vain.
func (s *fileSink) unmatchedRef(r core.Ref) error {
	if side := r.Chunk.Side; s.nulls[side] {
		e := eventOf(r)
		return s.result(s.null(s.line[:0], side, &e))
	}
	return s.sideRef(toUnmatched, r, "unmatched")
}

// rejects writes the records that join nothing: the side outputs, and the null rows of those that have no key (rule 4).
func (s *fileSink) rejects(out *core.Output) error {
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
		e := eventOf(r.Ref)
		if err := s.result(s.null(s.line[:0], side, &e)); err != nil {
			return err
		}
	}
	return nil
}

// sideRef writes a record to a side output, if that is wanted.
func (s *fileSink) sideRef(to int, r core.Ref, reason string) error {
	if s.files[to].w == nil {
		return nil // nor is the record kept
	}
	return s.side(to, r.Chunk.Side, record(r), reason)
}

func (s *fileSink) side(to int, side core.Side, rec *projection.Record, reason string) error {
	w := s.files[to].w
	if w == nil {
		return nil
	}
	s.line = capture.AppendSide(s.line[:0], s.topics[side], rec, reason)
	_, err := w.Write(s.line)
	return err
}

// nullRows writes the null rows of entries that come early, or of those that will not pair any more.
func (s *fileSink) nullRows(entries [][]byte, early bool) error {
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
