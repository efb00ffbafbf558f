package loadgen

import "fmt"

// Kind says what a B record is in the truth.
type Kind uint8

// The kinds of B. Only KindMatched has a partner, and KindDuplicate with OneToMany.
const (
	KindAbsent      Kind = iota // a key that no A has
	KindMatched                 // the first to ask for an A in its window, or with Family.BPerA one of these
	KindNoHistory               // its partner would lie before A 0; a key that no A has
	KindDuplicate               // the key of an earlier KindMatched of its partition, in the window
	KindExpired                 // the key of an A whose window is over
	KindLate                    // late itself; where there is one, the key of an unmatched A in the window
	KindLatePartner             // the key of an A that was late
)

// String is the name of the kind as reports print it.
func (k Kind) String() string {
	names := [...]string{"absent", "matched", "no_history", "duplicate", "expired", "late", "late_partner"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// fate is the whole truth about one B.
type fate struct {
	kind Kind
	a    int64 // the A whose key it carries; -1: a key of its own
	time int64
}

// fate finds the kind of j.
func (g *Gen) fate(j int64) fate {
	var m fateMemo
	return g.fateMemo(j, &m)
}

// fateMemo is what fates of neighbouring B have in common.
type fateMemo struct{ matched, odd slotMemo }

// fateMemo finds the kind of j by going through the shares in order.
func (g *Gen) fateMemo(j int64, m *fateMemo) fate {
	n, matched := g.b.atMemo(j, &m.matched)
	if matched {
		if i, ok := g.pair(n, j%g.b.lanes); ok {
			return fate{KindMatched, i, g.b.inTime(j)}
		}
		return fate{KindNoHistory, -1, g.b.inTime(j)}
	}
	n, odd := g.b.odd.atMemo(n, &m.odd)
	if !odd {
		return g.absent(j)
	}
	n, late := g.b.late.at(n)
	if late {
		if anchor, ok := g.b.anchor(j); ok {
			return g.lateB(j, anchor)
		}
		return g.absent(j)
	}
	if _, dup := g.dup.at(n); dup {
		return g.duplicate(j)
	}
	return g.expired(j)
}

// pair returns the A of matched-B ordinal k in a lane, the first of its key.
func (g *Gen) pair(k uint64, lane int64) (i int64, ok bool) {
	unit, ok := g.unitOf(k, lane)
	if !ok {
		return -1, false
	}
	return g.memberA(unit, 0), true
}

// lateB gives a late B the key of an A that it would pair with if it were not refused.
func (g *Gen) lateB(j, anchor int64) fate {
	t := g.b.lateTime(j, anchor)
	return fate{KindLate, g.unmatchedA(t - g.someAge(j)), t}
}

// duplicate gives B j the key of the last matched B of its partition, or of one a little
// before that. It has no disorder: it is later than the first both by offset and by
// time, so a join has no choice which of the two wins (rule 2's exception does not
// apply). Where there is no such B, or its A's window would end, j is absent.
func (g *Gen) duplicate(j int64) fate {
	t := g.b.base(j)
	if g.hot != nil {
		if i, ok := g.hotDuplicate(j, t); ok {
			return fate{KindDuplicate, i, t}
		}
		return fate{KindAbsent, -1, t}
	}
	part := j % g.b.parts
	skip := mix(uint64(j)^g.salt) & 3
	lane := j % g.b.lanes
	k := g.b.matched.blockOf(uint64(j / g.b.lanes))
	for range 8*g.b.parts + 16 {
		first := g.slotB(k, lane)
		if first < j && first%g.b.parts == part {
			if i, ok := g.pair(k, lane); ok && skip == 0 {
				if t > g.a.inTime(i)+g.after-2*g.a.grace {
					break
				}
				return fate{KindDuplicate, i, t}
			}
			skip -= min(skip, 1)
		}
		if k == 0 {
			break
		}
		k--
	}
	return fate{KindAbsent, -1, t}
}

// expired gives B j the key of an A that no B matched and whose window ended a while
// before; absent where history does not reach so far.
func (g *Gen) expired(j int64) fate {
	t := g.b.inTime(j)
	ago := g.after + 1 + int64(below(mix(uint64(j)^g.salt), uint64(g.after)/4+1))
	if i := g.unmatchedA(t - ago); i >= 0 {
		return fate{KindExpired, i, t}
	}
	return fate{KindAbsent, -1, t}
}

// absent gives B j a key of its own; where there are late A, one in 64 at most gets the key
// of a late one.
func (g *Gen) absent(j int64) fate {
	t := g.b.inTime(j)
	if mix(uint64(j)^g.salt) < g.lateDecoys {
		if i := g.lateANear(t - g.someAge(j)); i >= 0 {
			return fate{KindLatePartner, i, t}
		}
	}
	return fate{KindAbsent, -1, t}
}

func (g *Gen) someAge(j int64) int64 {
	return g.ages[below(mix(uint64(j)+g.salt), uint64(len(g.ages)))]
}

// unmatchedA returns an A with base time at or shortly before t that neither pairs nor is
// late; -1 when there is none near. Its event time is at most t.
func (g *Gen) unmatchedA(t int64) int64 {
	if t < g.a.base0 {
		return -1
	}
	i := min(stepIndex(t-g.a.base0, g.a.step), g.nA-1)
	for range 8 {
		if i < 0 {
			break
		}
		if _, matched := g.a.matched.at(uint64(i)); !matched && !g.a.candidate(i) {
			return i
		}
		i--
	}
	return -1
}

// lateANear returns a late A with a base time near t; -1 when there is none.
func (g *Gen) lateANear(t int64) int64 {
	if t < g.a.base0 {
		return -1
	}
	i := uint64(stepIndex(t-g.a.base0, g.a.step))
	u, matched := g.a.matched.at(i)
	if matched {
		u = i - u // the rest number of what follows it
	}
	late := int64(g.a.matched.restSlot(g.a.odd.slot(g.a.odd.blockOf(u))))
	if late < g.nA && g.LateA(late) {
		return late
	}
	return -1
}

// Expected returns the A that B j pairs with in a join whose B end nothing, of several A with one key the first. ok is false
// when it pairs with none. Without OneToMany no A is expected twice.
func (g *Gen) Expected(j int64) (i int64, ok bool) {
	if !g.cfg.OneToMany { // all others have no partner whatever they are
		k, matched := g.b.at(j)
		if !matched {
			return -1, false
		}
		if i, ok = g.pair(k, j%g.b.lanes); ok && len(g.pairs) > 1 {
			if first, _ := g.PartnerOf(i); first != j {
				return -1, false
			}
		}
		return i, ok
	}
	f := g.fate(j)
	if f.kind != KindMatched && f.kind != KindDuplicate {
		return -1, false
	}
	return f.a, true
}

// PartnerOf returns the first B that pairs with A i; ok is false when none does. It is
// the inverse of Expected but for the duplicates of one-to-many.
func (g *Gen) PartnerOf(i int64) (j int64, ok bool) {
	unit, _, ok := g.unitOfA(i)
	if !ok {
		return -1, false
	}
	var list [maxFamily]int64
	members := g.membersB(unit, list[:0])
	if len(members) == 0 {
		return -1, false
	}
	return members[0], true
}

// ExpectedMatches returns the exact number of pairs, counted on the first call (see
// ExpectedIn for the cost).
func (g *Gen) ExpectedMatches() int64 {
	g.countOnce.Do(func() { g.expected = g.ExpectedIn(0, g.nB) })
	return g.expected
}

// ExpectedIn returns the exact number of B in from..to-1 that Expected has an A for. It visits the
// matched B, and with OneToMany the duplicates: about 5 ns for each of the former, 100
// to 1000 ns (growing with the partitions) for each of the latter. With Family.BPerA it visits all B.
func (g *Gen) ExpectedIn(from, to int64) int64 {
	from, to = max(0, from), min(to, g.nB)
	if from >= to {
		return 0
	}
	var n int64
	if len(g.pairs) > 1 {
		for j := from; j < to; j++ {
			if _, ok := g.Expected(j); ok {
				n++
			}
		}
		return n
	}
	for k := g.b.matched.count(uint64(from)); k < g.b.matched.count(uint64(to)); k++ {
		if _, ok := g.unitOf(k, 0); ok {
			n++
		}
	}
	if g.cfg.OneToMany && g.dup.p > 0 {
		for d := g.dupsBefore(from); d < g.dupsBefore(to); d++ {
			j := g.b.matched.restSlot(g.b.odd.slot(g.b.late.restSlot(g.dup.slot(d))))
			if g.duplicate(int64(j)).kind == KindDuplicate {
				n++
			}
		}
	}
	return n
}

// dupsBefore returns the number of duplicate slots among the first n B.
func (g *Gen) dupsBefore(n int64) uint64 {
	u := uint64(n)
	u -= g.b.matched.count(u)
	u = g.b.odd.count(u)
	u -= g.b.late.count(u)
	return g.dup.count(u)
}
