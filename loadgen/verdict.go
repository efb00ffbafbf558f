package loadgen

import "sort"

// Tally is what a verifier found of one kind of lines.
type Tally struct {
	Expected   int64 // lines that the truth holds
	Seen       int64 // of these, those seen, each counted once
	Missing    int64 // of these, those not seen
	Spurious   int64 // lines seen that the truth does not hold
	Duplicated int64 // times that a line was seen again
}

// Verdict is what a verifier found. A right join has Missing, Spurious and Duplicated 0.
type Verdict struct {
	Expected   int64 // pairs that the truth holds, those in groups included
	Matches    int64 // of these, the pairs seen, each counted once
	Missing    int64 // lines of all kinds that are missing,
	Spurious   int64 // or not expected, each B and A that do not exist included,
	Duplicated int64 // or seen again
	Reused     int64 // one-to-one: pairs whose A had been in a pair before (all are Spurious or Duplicated too)
	Beyond     int64 // of the Spurious, the pairs that are right but for their B, which lies beyond those asked about
	Missed     int64 // pairs that a B asking at once did not find, since their A came later: not Missing

	Pairs, NullsA, NullsB, Groups Tally
}

// Right says whether the join gave exactly the lines of the truth.
func (v Verdict) Right() bool { return v.Missing == 0 && v.Spurious == 0 && v.Duplicated == 0 }

// Result returns the verdict over all records.
func (v *Verifier) Result() Verdict { return v.ResultFor(v.g.nB) }

// ResultFor returns the verdict of a join that was given only the B below n and the A that come before these (a run that
// was ended by time), and drained. A line of a B at or above n is spurious. It visits every line
// below n (see ExpectedIn).
func (v *Verifier) ResultFor(n int64) Verdict {
	n = max(0, min(n, v.g.nB))
	cut := v.g.Whole(v.g.DueA(n), n)
	return v.ResultAt(&cut)
}

// ResultAt returns the verdict of a join that came to a cut. It visits every A that was given, about 0.1 µs each, if there are
// lines of A alone, and the B as ResultFor.
func (v *Verifier) ResultAt(cut *Cut) Verdict {
	r := Verdict{Reused: v.reused}
	v.pairsAt(cut, &r)
	v.nullsBAt(cut, &r)
	v.linesOfA(cut, &r)
	for kind, tally := range []*Tally{&r.Pairs, &r.NullsA, &r.NullsB, &r.Groups} {
		tally.Missing = tally.Expected - tally.Seen
		tally.Spurious += v.spurious[kind]
		tally.Duplicated = v.duplicated[kind]
	}
	if v.t.r.Probe == Immediate {
		r.Missed, r.Pairs.Missing = r.Pairs.Missing, 0
	}
	for _, tally := range []*Tally{&r.Pairs, &r.NullsA, &r.NullsB, &r.Groups} {
		r.Missing += tally.Missing
		r.Spurious += tally.Spurious
		r.Duplicated += tally.Duplicated
	}
	return r
}

// pairsAt judges the pairs that come alone.
func (v *Verifier) pairsAt(cut *Cut, r *Verdict) {
	if v.t.r.Collect != Eager {
		return
	}
	k := v.g.as
	first, last := ends(cut.B, v.g.nB)
	if v.t.r.Probe != Aligned { // a B may have asked whose A is still to come
		haveA, _ := ends(cut.A, v.g.nA)
		first = int64(sort.Search(int(first), func(j int) bool { return v.g.DueA(int64(j)) > haveA }))
	}
	r.Pairs.Expected, r.Pairs.Seen = v.pairs.expectedBelow(first*k), v.pairs.seenBelow(first*k)
	for j := first; j < last; j++ {
		if given(cut.B, v.g.b.parts, j) {
			n, seen := v.pairsSeen(j, cut.A)
			r.Pairs.Expected += n
			r.Pairs.Seen += seen
		}
	}
	r.Beyond = v.pairs.seen - r.Pairs.Seen
	r.Pairs.Spurious = r.Beyond
	r.Expected, r.Matches = r.Pairs.Expected, r.Pairs.Seen
}

// pairsSeen counts the pairs of B j with A that were given, and those that were seen.
func (v *Verifier) pairsSeen(j int64, places []int64) (n, seen int64) {
	f := v.g.fate(j)
	if f.kind != KindMatched && f.kind != KindDuplicate {
		return 0, 0
	}
	unit, _, _ := v.g.unitOfA(f.a)
	for a := range int(v.g.as) {
		i := v.g.memberA(unit, a)
		if m, _ := v.t.ofPair(j, i, &f); m.made && given(places, v.g.a.parts, i) {
			n++
			if v.pairs.saw(m.number) {
				seen++
			}
		}
	}
	return n, seen
}

// nullsBAt judges the null rows of B.
func (v *Verifier) nullsBAt(cut *Cut, r *Verdict) {
	if !v.t.r.NullsB {
		return
	}
	first, last := ends(cut.B, v.g.nB)
	if v.t.r.Probe == Wait { // up to here every time is below the limit
		first = min(first, int64(sort.Search(int(first), func(j int) bool { return v.g.b.base(int64(j)) >= cut.ClosedB })))
	}
	t := &r.NullsB
	t.Expected, t.Seen = v.nullsB.expectedBelow(first), v.nullsB.seenBelow(first)
	for j := first; j < last; j++ {
		if given(cut.B, v.g.b.parts, j) && (v.t.r.Probe != Wait || v.g.TimeB(j) < cut.ClosedB) && v.t.unmatchedB(j) {
			t.Expected++
			if v.nullsB.saw(j) {
				t.Seen++
			}
		}
	}
	t.Spurious = v.nullsB.seen - t.Seen
	if v.t.r.Probe == Immediate {
		v.missedB(cut, last, t)
	}
}

// missedB judges the null rows of B that asked before their A came: each is expected if none of its pairs was seen.
func (v *Verifier) missedB(cut *Cut, last int64, t *Tally) {
	right := int64(0)
	for j := range last {
		if !given(cut.B, v.g.b.parts, j) {
			continue
		}
		if n, seen := v.pairsSeen(j, nil); n > 0 && seen == 0 {
			t.Expected++
			if v.openNullsB.code(j) != 0 {
				right++
			}
		}
	}
	t.Seen += right
	t.Spurious += v.openNullsB.n - right
}

// linesOfA judges null rows of A and groups.
func (v *Verifier) linesOfA(cut *Cut, r *Verdict) {
	if !v.t.lines {
		return
	}
	var whole, here story
	_, last := ends(cut.A, v.g.nA)
	for i := range last {
		if !given(cut.A, v.g.a.parts, i) || !v.t.hasA(i) {
			continue
		}
		v.t.tell(i, nil, &whole)
		now := &whole
		if n := whole.members; n > 0 && !given(cut.B, v.g.b.parts, whole.b[n-1]) {
			v.t.tell(i, cut, &here)
			now = &here
		}
		if v.t.r.Probe == Immediate && now.members > 0 {
			here = *now
			now = &here
			now.null, now.met = v.t.r.NullsA && !v.metAny(i, now), 0
		}
		v.nullOfA(i, &whole, now, cut, &r.NullsA)
		if v.t.r.Collect != Eager {
			v.groupOfA(i, &whole, now, cut, r)
		}
	}
	r.NullsA.Spurious = v.nullsA.seen + v.openNullsA.n - r.NullsA.Seen
	r.Groups.Spurious = v.groups.seen + v.openGroups.n - r.Groups.Seen
}

// metAny says whether a pair of A i was seen.
func (v *Verifier) metAny(i int64, s *story) bool {
	for _, j := range s.b[:s.members] {
		f := v.g.fate(j)
		if m, _ := v.t.ofPair(j, i, &f); m.made && v.pairs.saw(m.number) {
			return true
		}
	}
	return false
}

func (v *Verifier) nullOfA(i int64, whole, now *story, cut *Cut, t *Tally) {
	if !v.t.nullDue(i, now, cut) {
		return
	}
	t.Expected++
	if whole.null && v.nullsA.saw(i) || !whole.null && v.openNullsA.code(i) != 0 {
		t.Seen++
	}
}

func (v *Verifier) groupOfA(i int64, whole, now *story, cut *Cut, r *Verdict) {
	if !v.t.groupDue(i, now, cut) {
		return
	}
	r.Groups.Expected++
	r.Expected += int64(now.pairs)
	seen := false
	if v.sameGroup(whole, now) {
		seen = v.groups.saw(i)
	} else if x := v.openGroups.code(i); x != 0 {
		part := story{b: whole.b, members: int(x)}
		v.t.play(i, &part)
		seen = v.sameGroup(&part, now)
	}
	if seen {
		r.Groups.Seen++
		r.Matches += int64(now.pairs)
	}
}

// sameGroup says whether two stories of one A give the same group.
func (v *Verifier) sameGroup(x, y *story) bool {
	return x.pairs == y.pairs && v.t.complete(x) == v.t.complete(y)
}
