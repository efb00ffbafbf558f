package loadgen

import "math"

// Cut says how far a run came: which records it was given, and what it let go for the time alone. The zero value is nobody's.
type Cut struct {
	// A and B are, by partition, the offset behind the last record that was joined; nil: all of the generator's.
	A, B []int64
	// Limits on event times in ms (rules 10, 16, 17): A with lower ones are closed, have given their early null row; B that
	// wait are closed. After a drain they are math.MaxInt64.
	ClosedA, EarlyA, ClosedB int64
}

// Whole is the cut of a run that was drained after the A and B below some indexes.
func (g *Gen) Whole(a, b int64) Cut {
	below := func(n, parts int64) []int64 {
		list := make([]int64, parts)
		for p := range list {
			list[p] = max(0, (n-int64(p)+parts-1)/parts)
		}
		return list
	}
	return Cut{A: below(a, g.a.parts), B: below(b, g.b.parts), ClosedA: math.MaxInt64, EarlyA: math.MaxInt64, ClosedB: math.MaxInt64}
}

// HasB says whether B j was given.
func (c *Cut) HasB(j int64) bool { return given(c.B, int64(len(c.B)), j) }

func given(places []int64, parts, i int64) bool { return places == nil || i/parts < places[i%parts] }

// ends are the first index that was not given, and the one behind the last that was.
func ends(places []int64, n int64) (first, last int64) {
	if places == nil {
		return n, n
	}
	first = n
	parts := int64(len(places))
	for p, offset := range places {
		first = min(first, offset*parts+int64(p))
		if offset > 0 {
			last = max(last, (offset-1)*parts+int64(p)+1)
		}
	}
	return first, max(first, last)
}

// story is what happens to one A, up to a cut.
type story struct {
	b       [maxFamily]int64
	members int // B of its key that ask, in this order
	met     int // of these, those that pair with it or end it: the first ones
	pairs   int // of these, those that pair with it
	null    bool
	correct bool   // the first pair, or the group, corrects the null row
	late    bool   // the null row came before its first B, for the time
	full    bool   // the group is complete with its last B
	ended   bool   // by the last of met
	wanted  uint32 // of its group
}

// tell finds the story of A i, which must exist and not be late. cut nil is everything.
func (t *Truth) tell(i int64, cut *Cut, s *story) {
	g := t.g
	s.members, s.met, s.pairs = 0, 0, 0
	s.null, s.correct, s.late, s.full, s.ended, s.wanted = false, false, false, false, false, 0
	if unit, _, ok := g.unitOfA(i); ok {
		s.members = len(g.membersB(unit, s.b[:0]))
	}
	if cut != nil {
		for s.members > 0 && !given(cut.B, g.b.parts, s.b[s.members-1]) { // all are of one partition, or there is one
			s.members--
		}
	}
	t.play(i, s)
}

// play lets the members ask.
func (t *Truth) play(i int64, s *story) {
	g := t.g
	if t.r.Collect == Count {
		s.wanted = uint32(g.LineCount(i))
	}
	for x := 0; x < s.members && !s.ended && !s.full; x++ {
		if x > 0 && t.r.Cardinality == OneToOne {
			return
		}
		t.meet(i, x, s)
	}
	if s.met == 0 {
		s.null = t.r.NullsA || t.r.Early > 0
	}
}

// meet has member x pair with A i, or end it.
func (t *Truth) meet(i int64, x int, s *story) {
	g, j := t.g, s.b[x]
	s.met = x + 1
	if x == 0 && t.r.Early > 0 && g.b.inTime(j) > g.a.inTime(i)+t.r.Early {
		s.null, s.late = true, true
	}
	if s.ended = t.r.CompleteOn != EndsNothing && g.Ends(j); s.ended && t.r.CompleteOn != EndsWithPair {
		s.null = s.null || x == 0 && t.r.CompleteOn == EndsUnmatched && t.r.NullsA
		return
	}
	s.pairs = x + 1
	s.correct = s.late
	switch t.r.Collect {
	case Count:
		s.full = s.wanted == uint32(s.pairs)
	case Marker:
		s.full = g.Marks(j)
	}
}

// nullDue says whether the null row of A i has come by a cut, with the story up to there.
func (t *Truth) nullDue(i int64, s *story, cut *Cut) bool {
	switch {
	case !s.null:
		return false
	case s.met > 0:
		return true
	case t.r.Early > 0:
		return t.g.a.inTime(i) < cut.EarlyA
	}
	return t.g.a.inTime(i) < cut.ClosedA
}

// groupDue says the same of its group.
func (t *Truth) groupDue(i int64, s *story, cut *Cut) bool {
	return t.r.Collect != Eager && s.pairs > 0 && (s.full || s.ended || t.g.a.inTime(i) < cut.ClosedA)
}

// complete says whether the group calls itself so.
func (t *Truth) complete(s *story) bool { return s.full || t.r.Collect == Timeout }

// hasA says whether A i is a record in time.
func (t *Truth) hasA(i int64) bool { return t.g.HasA(i) && !t.g.LateA(i) }

// match is what the truth says of one pair.
type match struct {
	number  int64 // of the pair: K times its B, and which of the K A of the key
	correct bool  // it is the first of an A whose null row came
	made    bool  // it comes out, alone or in a group
}

// ofPair is the truth about B j, of which f is the fate, and A i.
func (t *Truth) ofPair(j, i int64, f *fate) (m match, ok bool) {
	g := t.g
	if f.kind != KindMatched && f.kind != KindDuplicate {
		return m, false
	}
	m.number = j
	if g.as > 1 {
		unit, a, known := g.unitOfA(i)
		if want, _, _ := g.unitOfA(f.a); !known || unit != want {
			return m, false
		}
		m.number = j*g.as + int64(a)
	} else if f.a != i {
		return m, false
	}
	if t.simple && len(g.pairs) == 1 {
		m.made = f.kind == KindMatched || t.r.Cardinality != OneToOne
		m.correct = f.kind == KindMatched && t.r.Early > 0 && f.time > g.a.inTime(i)+t.r.Early
		return m, true
	}
	if f.kind == KindDuplicate && t.r.Cardinality == OneToOne {
		return m, true
	}
	var s story
	t.tell(i, nil, &s)
	if f.kind == KindDuplicate { // it never ends its A, and is never its first
		m.made = !s.ended || s.b[s.met-1] > j
		return m, true
	}
	for x := range s.pairs {
		if s.b[x] == j {
			m.made, m.correct = true, x == 0 && s.correct
		}
	}
	return m, true
}

// unmatchedB says whether B j is in time and nothing that it could pair with or end is left to it.
func (t *Truth) unmatchedB(j int64) bool {
	g := t.g
	f := g.fate(j)
	switch {
	case f.kind == KindLate:
		return false
	case f.kind == KindMatched && t.simple:
		return false
	case f.kind == KindDuplicate && t.r.CompleteOn == EndsNothing:
		return t.r.Cardinality == OneToOne
	case f.kind != KindMatched && f.kind != KindDuplicate:
		return true
	}
	unit, _, _ := g.unitOfA(f.a)
	for a := range int(g.as) {
		var s story
		t.tell(g.memberA(unit, a), nil, &s)
		if f.kind == KindDuplicate {
			if t.r.Cardinality != OneToOne && (!s.ended || s.b[s.met-1] > j) {
				return false
			}
			continue
		}
		for _, met := range s.b[:s.met] {
			if met == j {
				return false
			}
		}
	}
	return true
}

// pairsOf counts the pairs of B j.
func (t *Truth) pairsOf(j int64) (n int64) {
	f := t.g.fate(j)
	if f.kind != KindMatched && f.kind != KindDuplicate {
		return 0
	}
	unit, _, _ := t.g.unitOfA(f.a)
	for a := range int(t.g.as) {
		if m, _ := t.ofPair(j, t.g.memberA(unit, a), &f); m.made {
			n++
		}
	}
	return n
}

// pairsIn counts the pairs with a B in from..to-1.
func (t *Truth) pairsIn(from, to int64) (n int64) {
	g := t.g
	if t.simple && len(g.pairs) <= 1 {
		return g.as * g.ExpectedIn(from, to)
	}
	for j := max(0, from); j < min(to, g.nB); j++ {
		n += t.pairsOf(j)
	}
	return n
}
