package loadgen

// Line names a line of results by the records behind it: a pair or a null row by index, -1 where there is none; a group by its A.
type Line struct {
	Kind string // pair | null_a | null_b | group
	A, B int64
}

// Wrong counts the lines so far that are spurious whatever is still to come, and those that were seen again. With what it was
// before a line, it says what is wrong with that one.
func (v *Verifier) Wrong() (spurious, duplicated int64) {
	for kind := range v.spurious {
		spurious += v.spurious[kind]
		duplicated += v.duplicated[kind]
	}
	return spurious, duplicated
}

// Missing visits lines that a join which came to a cut and was drained should have given and did not, until visit says that it is
// enough. It visits every record that was given, about as long as ResultAt.
func (v *Verifier) Missing(cut *Cut, visit func(Line) (more bool)) {
	if v.t.r.Collect == Eager && v.t.r.Probe != Immediate && !v.missingPairs(cut, visit) {
		return
	}
	if v.t.lines && !v.missingOfA(cut, visit) {
		return
	}
	if !v.t.r.NullsB || v.t.r.Probe == Immediate {
		return
	}
	_, last := ends(cut.B, v.g.nB)
	for j := range last {
		if given(cut.B, v.g.b.parts, j) && v.t.unmatchedB(j) && !v.nullsB.saw(j) && !visit(Line{"null_b", -1, j}) {
			return
		}
	}
}

func (v *Verifier) missingPairs(cut *Cut, visit func(Line) bool) (more bool) {
	_, last := ends(cut.B, v.g.nB)
	for j := range last {
		f := v.g.fate(j)
		if f.kind != KindMatched && f.kind != KindDuplicate || !given(cut.B, v.g.b.parts, j) {
			continue
		}
		unit, _, _ := v.g.unitOfA(f.a)
		for a := range int(v.g.as) {
			i := v.g.memberA(unit, a)
			m, _ := v.t.ofPair(j, i, &f)
			if m.made && given(cut.A, v.g.a.parts, i) && !v.pairs.saw(m.number) && !visit(Line{"pair", i, j}) {
				return false
			}
		}
	}
	return true
}

func (v *Verifier) missingOfA(cut *Cut, visit func(Line) bool) (more bool) {
	var s story
	_, last := ends(cut.A, v.g.nA)
	for i := range last {
		if !given(cut.A, v.g.a.parts, i) || !v.t.hasA(i) {
			continue
		}
		v.t.tell(i, cut, &s)
		if v.t.r.Probe != Immediate && v.t.nullDue(i, &s, cut) && !v.nullsA.saw(i) && v.openNullsA.code(i) == 0 && !visit(Line{"null_a", i, -1}) {
			return false
		}
		if v.t.groupDue(i, &s, cut) && !v.groups.saw(i) && v.openGroups.code(i) == 0 && !visit(Line{"group", i, -1}) {
			return false
		}
	}
	return true
}
