package loadgen

import "slices"

// Verifier compares the lines that a join gave with the truth. It belongs to one goroutine.
//
// What a line is right for, it knows as soon as it comes, from indexes alone (ledger), but for lines of A that come only
// because the run ends where it does: these it keeps until Result (strays), a byte for each A that waits in the end.
type Verifier struct {
	t      *Truth
	g      *Gen
	pairs  ledger // by number of the pair: see match
	nullsA ledger // by A
	groups ledger // by A
	nullsB ledger // by B

	// Lines that the whole workload does not give and a part of it may: null rows, groups with how many of the A's B had
	// asked, and where probing is a matter of luck the null rows of B.
	openNullsA, openGroups, openNullsB strays

	// wrongA holds the A of spurious pairs. That of an expected pair is its B's partner.
	wrongA     map[int64]*pageSet
	spurious   [lineKinds]int64
	duplicated [lineKinds]int64
	reused     int64
}

// The kinds of lines.
const (
	pairLines = iota
	nullALines
	nullBLines
	groupLines
	lineKinds
)

// Says is what a pair or a group says of the null row of its A (rule 17).
type Says uint8

// What it may say.
const (
	Corrects Says = 1 << iota // "corrected": true
	Retracts                  // a tombstone for the null row comes with it
)

// NewVerifier returns a verifier of an inner join without more, that has seen nothing.
func (g *Gen) NewVerifier() *Verifier { return g.truth(g.cfg.Plain()).NewVerifier() }

// NewVerifier returns a verifier that has seen nothing.
func (t *Truth) NewVerifier() *Verifier {
	v := &Verifier{t: t, g: t.g, wrongA: map[int64]*pageSet{}}
	v.pairs = newLedger(t.pairNumbersIn)
	v.nullsA, v.groups, v.nullsB = newLedger(t.nullsAIn), newLedger(t.groupsIn), newLedger(t.nullsBIn)
	for _, s := range []*strays{&v.openNullsA, &v.openGroups, &v.openNullsB} {
		s.pages = map[int64]*[1 << pageBits]uint8{}
	}
	return v
}

// pairNumbersIn counts the pairs with numbers in from..to-1.
func (t *Truth) pairNumbersIn(from, to int64) (n int64) {
	k := t.g.as
	if to = min(to, t.g.nB*k); k == 1 || from >= to {
		return t.pairsIn(from, to)
	}
	first, last := (from+k-1)/k, to/k
	if first > last {
		return t.pairNumbersOf(last, from-last*k, to-last*k)
	}
	return t.pairNumbersOf(first-1, from-(first-1)*k, k) + t.pairsIn(first, last) + t.pairNumbersOf(last, 0, to-last*k)
}

// pairNumbersOf counts the pairs of B j with A from..to-1 of its key.
func (t *Truth) pairNumbersOf(j, from, to int64) (n int64) {
	if from >= to || j < 0 || j >= t.g.nB {
		return 0
	}
	f := t.g.fate(j)
	if f.a < 0 {
		return 0
	}
	unit, _, _ := t.g.unitOfA(f.a)
	for a := from; a < to; a++ {
		if m, ok := t.ofPair(j, t.g.memberA(unit, int(a)), &f); ok && m.made {
			n++
		}
	}
	return n
}

func (t *Truth) nullsAIn(from, to int64) (n int64) {
	var s story
	for i := max(0, from); i < min(to, t.g.nA); i++ {
		if t.hasA(i) {
			if t.tell(i, nil, &s); s.null {
				n++
			}
		}
	}
	return n
}

func (t *Truth) groupsIn(from, to int64) (n int64) {
	var s story
	for i := max(0, from); i < min(to, t.g.nA); i++ {
		if t.hasA(i) {
			if t.tell(i, nil, &s); s.pairs > 0 {
				n++
			}
		}
	}
	return n
}

func (t *Truth) nullsBIn(from, to int64) (n int64) {
	for j := max(0, from); j < min(to, t.g.nB); j++ {
		if t.unmatchedB(j) {
			n++
		}
	}
	return n
}

// Match is Pair of a pair that says nothing.
func (v *Verifier) Match(j, i int64) { v.Pair(j, i, 0) }

// Pair records that the join made a pair of B j and A i, by index (see IndexA, IndexB).
// An index that does not exist makes the pair spurious.
func (v *Verifier) Pair(j, i int64, says Says) {
	if j < 0 || j >= v.g.nB || i < 0 || i >= v.g.nA || v.t.r.Collect != Eager {
		v.spurious[pairLines]++
		return
	}
	if v.t.r.Cardinality == OneToOne && v.paired(i) {
		v.reused++
	}
	f := v.g.fate(j)
	switch m, ok := v.t.ofPair(j, i, &f); {
	case !ok || !m.made:
		v.spurious[pairLines]++
		v.setWrongA(i)
	case !v.saysRight(i, says, m.correct):
		v.spurious[pairLines]++
	case v.pairs.see(m.number):
		v.duplicated[pairLines]++
	}
}

// saysRight says whether what a pair or a group of A i says is so. What it corrects must have come.
func (v *Verifier) saysRight(i int64, says Says, correct bool) bool {
	var want Says
	if correct {
		want = Corrects
		if v.t.r.Retract {
			want |= Retracts
		}
	}
	return says == want && (!correct || v.nullsA.saw(i))
}

// NullA records the null row of A i, whenever it came.
func (v *Verifier) NullA(i int64) {
	var s story
	if i >= 0 && i < v.g.nA && v.t.hasA(i) {
		switch v.t.tell(i, nil, &s); {
		case s.null:
			if v.nullsA.see(i) {
				v.duplicated[nullALines]++
			}
			return
		case v.t.r.NullsA || v.t.r.Early > 0:
			if v.openNullsA.put(i, 1) != 0 {
				v.duplicated[nullALines]++
			}
			return
		}
	}
	v.spurious[nullALines]++
}

// NullB records the null row of B j.
func (v *Verifier) NullB(j int64) {
	known := j >= 0 && j < v.g.nB && v.t.r.NullsB
	switch {
	case known && v.t.unmatchedB(j):
		if v.nullsB.see(j) {
			v.duplicated[nullBLines]++
		}
	case known && v.t.r.Probe == Immediate && !v.g.LateB(j):
		if v.openNullsB.put(j, 1) != 0 {
			v.duplicated[nullBLines]++
		}
	default:
		v.spurious[nullBLines]++
	}
}

// Group is what a group says of itself.
type Group struct {
	A        int64
	B        []int64 // in the order of the group
	Complete bool
	Wanted   uint32 // 0: no count
	Says     Says
}

// Group records a group.
func (v *Verifier) Group(group *Group) {
	i := group.A
	if v.t.r.Collect == Eager || i < 0 || i >= v.g.nA || !v.t.hasA(i) {
		v.spurious[groupLines]++
		return
	}
	var s story
	v.t.tell(i, nil, &s)
	if v.isGroup(group, &s) {
		if v.groups.see(i) {
			v.duplicated[groupLines]++
		}
		return
	}
	for x := s.members - 1; x > 0; x-- { // or it is what the first of its B give
		part := story{b: s.b, members: x}
		v.t.play(i, &part)
		if v.isGroup(group, &part) {
			if v.openGroups.put(i, uint8(x)) != 0 {
				v.duplicated[groupLines]++
			}
			return
		}
	}
	v.spurious[groupLines]++
}

// isGroup says whether a group is what a story gives.
func (v *Verifier) isGroup(group *Group, s *story) bool {
	if s.pairs == 0 || len(group.B) != s.pairs || group.Complete != v.t.complete(s) || group.Wanted != s.wanted ||
		!v.saysRight(group.A, group.Says, s.correct) {
		return false
	}
	var list [maxFamily]int64
	want := list[:copy(list[:], s.b[:s.pairs])]
	slices.SortStableFunc(want, func(x, y int64) int { return int(v.g.b.inTime(x) - v.g.b.inTime(y)) }) // x, y are by offset
	return slices.Equal(want, group.B)
}

// paired says whether A i was in a pair, where each has at most one partner.
func (v *Verifier) paired(i int64) bool {
	if w := v.wrongA[i>>pageBits]; w != nil && w.has(i) {
		return true
	}
	j, ok := v.g.PartnerOf(i)
	return ok && v.pairs.saw(j) && (v.t.simple || v.t.pairsOf(j) > 0)
}

func (v *Verifier) setWrongA(i int64) {
	w := v.wrongA[i>>pageBits]
	if w == nil {
		w = new(pageSet)
		v.wrongA[i>>pageBits] = w
	}
	w.add(i)
}
