package loadgen

import "math"

// Families. In the plain workload a key that pairs has one A and one B. With a [Family] it has several of either, and
// records carry what joins look at beside the key: a B may end its A or mark the last of a group, an A may say how many B
// are to come.
//
// The matched B are numbered as ever (strata). With BPerA = F the ordinals k of F successive slots are the members m = k mod F
// of one round q = k div F, and each member has a pairing of its own between rounds and strides of A: so the B of one A have
// the ages of Config.Ages in turn, the first member that of the A's class, the next one the following, and lie in different
// batches and buckets. With APerKey = K a stride is K successive matched A, which have the key of the first.
//
// What joins do with several B of one A may depend on the order in which these ask (rules 17 to 19), which is certain inside a
// partition only. So with F > 1 and several partitions of B the strata choose rows, the records at one offset of all
// partitions, and strides come in stripes of as many: the B of stride s are all in partition s mod PartitionsB.

// maxFamily bounds BPerA and APerKey. An A finds its B by going through all of them.
const maxFamily = 64

// Family is what a key has beside one A and one B. The zero value adds nothing.
type Family struct {
	BPerA   int // B with the key of one A, in its window; 0: one
	APerKey int // A with one key, for joins many-to-many; 0: one. The B of the key are in the window of each

	EndShare  float64 // share of B whose status is StatusEnds; duplicates never have it
	MarkShare float64 // share of B whose status is StatusMarks; duplicates never have it

	Counts bool // A have line_count, the number of B that complete their group
	// WrongCounts is the share of A whose line_count is not the number of their B: equal parts have one more, one
	// less, and 0, which counts for none.
	WrongCounts float64
}

// What a B's status says to a join that is told to look at it.
const (
	StatusEnds  = "declined" // complete_on: {field: $.status, equals: declined}
	StatusMarks = "settled"  // collect: {marker: {field: $.status, equals: settled}}
)

// Fields of the records that such joins look at.
const (
	FieldStatus = "$.status"
	FieldCount  = "$.line_count"
)

func (f Family) normal() Family {
	if f.BPerA == 1 {
		f.BPerA = 0
	}
	if f.APerKey == 1 {
		f.APerKey = 0
	}
	return f
}

// bs and as are the numbers of B and A of one key.
func (f Family) bs() int { return max(1, f.BPerA) }
func (f Family) as() int { return max(1, f.APerKey) }

// lanes is how many partitions of B a row has that is chosen as one.
func (c Config) lanes() int64 {
	if c.Family.bs() > 1 {
		return int64(c.PartitionsB)
	}
	return 1
}

func (c Config) checkFamily(f *faults) {
	m := c.Family
	for _, n := range []struct {
		name string
		v    int
	}{{"b_per_a", m.BPerA}, {"a_per_key", m.APerKey}} {
		if n.v < 0 || n.v > maxFamily {
			f.add("%s %d is not between 1 and %d", n.name, n.v, maxFamily)
		}
	}
	for _, s := range []struct {
		name string
		v    float64
	}{{"end_share", m.EndShare}, {"mark_share", m.MarkShare}, {"wrong_counts", m.WrongCounts}} {
		if !(s.v >= 0 && s.v <= 1) {
			f.add("%s %g is not between 0 and 1", s.name, s.v)
		}
	}
	if sum := m.EndShare + m.MarkShare; sum > 1 {
		f.add("end_share %g and mark_share %g add up to more than 1: a B has one status", m.EndShare, m.MarkShare)
	}
	if m.WrongCounts > 0 && !m.Counts {
		f.add("wrong_counts %g without counts: A have a line_count only for a join with collect: {count: %s}", m.WrongCounts, FieldCount)
	}
	if m.as() > 1 && !c.OneToMany {
		f.add("a_per_key %d needs cardinality many-to-many: else which A of several a B takes is not known beforehand", m.APerKey)
	}
	if c.Steady && (m.bs() > 1 || m.as() > 1 || c.soonest() < 0) {
		f.add("a steady start goes with one A and one B a key, and with B after their A: leave out b_per_a, a_per_key and ages below 0, or steady")
	}
}

// soonest is the least match age in ms.
func (c Config) soonest() int64 {
	least := int64(math.MaxInt64)
	for _, a := range c.ages() {
		least = min(least, ms(a))
	}
	return least
}

// leadA is how many A come, in the order of base times, after the B that is the partner of one of them: 0 unless B may come
// before their A.
func (c Config) leadA() int64 {
	if c.soonest() >= 0 {
		return 0
	}
	return int64(c.Before.Seconds()*c.AEventsPerSec) + 2
}

// at says whether record i is matched; n is its ordinal if it is, else its rest number. Of a side whose rows are chosen as one
// the ordinal is the row's.
func (s *side) at(i int64) (n uint64, matched bool) {
	var m slotMemo
	return s.atMemo(i, &m)
}

func (s *side) atMemo(i int64, m *slotMemo) (n uint64, matched bool) {
	if s.lanes == 1 {
		return s.matched.atMemo(uint64(i), m)
	}
	if n, matched = s.matched.atMemo(uint64(i/s.lanes), m); !matched {
		n = n*uint64(s.lanes) + uint64(i%s.lanes)
	}
	return n, matched
}

// slotB is the index of the matched B with an ordinal, in a lane.
func (g *Gen) slotB(k uint64, lane int64) int64 { return int64(g.b.matched.slot(k))*g.b.lanes + lane }

// unitOf is the number of the key that the matched B with an ordinal has, in a lane: K·unit is the ordinal of its first A.
func (g *Gen) unitOf(k uint64, lane int64) (unit int64, ok bool) {
	round, member := k, uint64(0)
	if n := uint64(len(g.pairs)); n > 1 {
		round, member = k/n, k%n
	}
	unit = g.pairs[member].strideOf(round)*g.b.lanes + lane
	return unit, unit >= 0 && unit < g.units
}

// memberA is the index of A a of a key.
func (g *Gen) memberA(unit int64, a int) int64 {
	return int64(g.a.matched.slot(uint64(unit)*uint64(g.as) + uint64(a)))
}

// unitOfA is the number of the key of A i, and which of its A i is; ok is false for an A without B.
func (g *Gen) unitOfA(i int64) (unit int64, a int, ok bool) {
	s, matched := g.a.matched.at(uint64(i))
	if !matched {
		return 0, 0, false
	}
	if g.as == 1 {
		return int64(s), 0, int64(s) < g.units
	}
	unit = int64(s / uint64(g.as))
	return unit, int(s % uint64(g.as)), unit < g.units
}

// membersB appends to list, which is empty, the B of a key by index, which is the order in which they ask.
func (g *Gen) membersB(unit int64, list []int64) []int64 {
	stripe, lane := unit, int64(0)
	if g.b.lanes > 1 {
		stripe, lane = unit/g.b.lanes, unit%g.b.lanes
	}
	n := uint64(len(g.pairs))
	for m := range g.pairs {
		round, ok := g.pairs[m].ordinalOf(stripe)
		if !ok {
			continue
		}
		j := g.slotB(round*n+uint64(m), lane)
		if j >= g.nB {
			continue
		}
		at := len(list)
		list = append(list, j)
		for ; at > 0 && list[at-1] > j; at-- {
			list[at] = list[at-1]
		}
		list[at] = j
	}
	return list
}

// statusOf is the template of B j, by what it is and a hash of it.
func (g *Gen) statusOf(j int64, kind Kind, h uint64) *template {
	f := &g.cfg.Family
	if f.EndShare == 0 && f.MarkShare == 0 {
		return &g.tmplB[h>>62]
	}
	switch {
	case g.Ends(j) && kind != KindDuplicate:
		return &g.tmplB[endsStatus]
	case g.Marks(j) && kind != KindDuplicate:
		return &g.tmplB[marksStatus]
	}
	return &g.tmplB[otherStatuses[h>>62]]
}

// Ends says whether B j has StatusEnds for Config.Family.EndShare, unless it is a duplicate.
func (g *Gen) Ends(j int64) bool { return g.statusHash(j) < g.endsBelow }

// Marks says whether B j has StatusMarks, unless it is a duplicate.
func (g *Gen) Marks(j int64) bool {
	h := g.statusHash(j)
	return h >= g.endsBelow && h < g.marksBelow
}

// statusHash is a draw from 0 to one.
func (g *Gen) statusHash(j int64) uint64 { return mix(uint64(j)*3+g.statusSalt) >> (64 - oneBits) }

// LineCount is the line_count of A i, with Config.Family.Counts.
func (g *Gen) LineCount(i int64) int {
	n := g.cfg.Family.bs()
	h := mix(uint64(i)*5 + g.statusSalt)
	if h>>(64-oneBits) >= g.wrongBelow {
		return n
	}
	switch mix(h) % 3 {
	case 0:
		return n + 1
	case 1:
		return n - 1
	}
	return 0
}
