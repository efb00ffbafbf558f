package loadgen

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// family is a workload in which everything happens that is told apart.
func family(r Rules) Config {
	c := small()
	c.Pending, c.BEvents, c.AEventsPerSec, c.BEventsPerSec = 3000, 12_000, 30, 100
	c.MatchRate, c.Duplicates, c.OneToMany = 0.3, 0, r.Cardinality != OneToOne
	c.Ages = []time.Duration{10 * time.Second, 70 * time.Second}
	c.Family = Family{BPerA: 3, EndShare: 0.1, MarkShare: 0.2, Counts: true, WrongCounts: 0.5}
	if r.Cardinality == ManyToMany {
		c.Family.APerKey = 2
	}
	return c
}

// TestEachComplaint: of right lines one is left out, given twice, or changed: the verdict counts it, in its kind, and nothing
// else.
func TestEachComplaint(t *testing.T) {
	early := int64(40_000)
	for _, r := range []Rules{
		{NullsA: true, NullsB: true},
		{NullsA: true, NullsB: true, Early: early, CompleteOn: EndsUnmatched},
		{Cardinality: OneToMany, NullsA: true, Early: early, Retract: true, CompleteOn: EndsWithPair},
		{Cardinality: ManyToMany, NullsA: true, NullsB: true, Early: early, CompleteOn: EndsSilently},
		{Cardinality: OneToMany, NullsA: true, NullsB: true, Early: early, Retract: true, Collect: Count},
		{Cardinality: OneToMany, NullsA: true, Early: early, Collect: Marker, CompleteOn: EndsUnmatched},
		{Cardinality: OneToMany, Collect: Timeout},
	} {
		t.Run(fmt.Sprintf("%+v", r), func(t *testing.T) {
			g := mustNew(t, family(r))
			truth, err := g.Truth(r)
			if err != nil {
				t.Fatal(err)
			}
			seed := newSeed(t)
			rnd := rand.New(rand.NewPCG(seed, 13))
			lines := joinUpTo(t, truth, drained, rnd)
			verdict := func(change func(at int, l line) []line) Verdict {
				v := truth.NewVerifier()
				for x := range lines {
					for _, l := range change(x, lines[x]) {
						l.hand(v)
					}
				}
				return v.Result()
			}
			for kind := range lineKinds {
				for _, d := range damages(r, kind) {
					at, bad := pick(lines, kind, rnd, d.make)
					if at < 0 {
						if d.must {
							t.Errorf("seed %d: there is no line of kind %d to %s", seed, kind, d.name)
						}
						continue
					}
					got := verdict(func(x int, l line) []line {
						if x == at {
							return bad
						}
						return []line{l}
					})
					tally := [lineKinds]Tally{got.Pairs, got.NullsA, got.NullsB, got.Groups}[kind]
					tally.Expected, tally.Seen = 0, 0
					if tally != d.want || got.Missing != d.want.Missing || got.Spurious != d.want.Spurious || got.Duplicated != d.want.Duplicated {
						t.Errorf("seed %d: kind %d, %s (%+v became %+v): %+v", seed, kind, d.name, lines[at], bad, got)
					}
				}
			}
			checkIntruders(t, truth, lines, verdict)
		})
	}
}

// damage is one way to spoil a line, and what a verifier says of it.
type damage struct {
	name string
	make func(l line) []line // nil: not this line
	want Tally
	must bool // there is such a line
}

func damages(r Rules, kind int) []damage {
	wrong := Tally{Missing: 1, Spurious: 1}
	list := []damage{
		{"leave out", func(l line) []line { return []line{} }, Tally{Missing: 1}, false},
		{"repeat", func(l line) []line { return []line{l, l} }, Tally{Duplicated: 1}, false},
	}
	flip := func(says Says) func(l line) []line {
		return func(l line) []line {
			if l.group != nil {
				g := *l.group
				g.Says ^= says
				l.group = &g
			}
			l.says ^= says
			return []line{l}
		}
	}
	corrects := func(l line) bool { return l.says&Corrects != 0 || l.group != nil && l.group.Says&Corrects != 0 }
	if kind == pairLines || kind == groupLines {
		list = append(list, damage{"flip corrected", flip(Corrects), wrong, false},
			damage{"flip the tombstone", flip(Retracts), wrong, false},
			damage{"not correct", func(l line) []line {
				if !corrects(l) {
					return nil
				}
				return flip(Corrects)(l)
			}, wrong, r.Early > 0 && (r.Collect == Eager) == (kind == pairLines)})
	}
	if kind == groupLines {
		list = append(list, ofGroups(r, wrong)...)
	}
	if kind == nullALines && r.Early > 0 { // a correction is not believed before what it corrects
		list[0].want = Tally{Missing: 1}
	}
	return list
}

func ofGroups(r Rules, wrong Tally) []damage {
	change := func(fn func(g *Group) bool) func(l line) []line {
		return func(l line) []line {
			g := *l.group
			g.B = slices.Clone(g.B)
			if l.group = &g; !fn(&g) {
				return nil
			}
			return []line{l}
		}
	}
	must := r.Collect != Eager
	return []damage{
		{"say the opposite of complete", change(func(g *Group) bool { g.Complete = !g.Complete; return true }), wrong, must},
		{"want one more", change(func(g *Group) bool { g.Wanted++; return true }), wrong, must},
		{"swap two B", change(func(g *Group) bool {
			slices.Reverse(g.B)
			return len(g.B) > 1
		}), wrong, must},
		{"leave out the first B", change(func(g *Group) bool {
			g.B = g.B[1:]
			return len(g.B) > 0
		}), wrong, must},
		{"add a B", change(func(g *Group) bool { g.B = append(g.B, g.B[len(g.B)-1]+1); return true }), wrong, must},
		{"take a B twice", change(func(g *Group) bool { g.B = append(g.B, g.B[len(g.B)-1]); return true }), wrong, must},
		{"give it to another A", change(func(g *Group) bool { g.A++; return true }), wrong, must},
	}
}

// pick finds a line of a kind that can be spoilt in a way, at random. A null row that something corrects is left alone: what it
// does to the correction is another test.
func pick(lines []line, kind int, rnd *rand.Rand, spoil func(l line) []line) (at int, bad []line) {
	corrected := map[int64]bool{}
	for _, l := range lines {
		if l.says&Corrects != 0 || l.group != nil && l.group.Says&Corrects != 0 {
			corrected[l.i] = true
		}
	}
	for _, x := range rnd.Perm(len(lines)) {
		if l := lines[x]; l.kind == kind && (kind != nullALines || !corrected[l.i]) {
			if bad = spoil(l); bad != nil {
				return x, bad
			}
		}
	}
	return -1, nil
}

// checkIntruders adds lines that no record may give, each after all others.
func checkIntruders(t *testing.T, truth *Truth, lines []line, verdict func(func(int, line) []line) Verdict) {
	g, r := truth.g, truth.r
	null := map[[2]int64]bool{}
	for _, l := range lines {
		if l.kind == nullALines {
			null[[2]int64{nullALines, l.i}] = true
		}
		if l.kind == nullBLines {
			null[[2]int64{nullBLines, l.j}] = true
		}
	}
	var bad []line
	for i := range g.ACount() {
		if !null[[2]int64{nullALines, i}] { // late, paired, or ended
			bad = append(bad, line{kind: nullALines, i: i})
		}
	}
	for j := range g.BCount() {
		if !null[[2]int64{nullBLines, j}] {
			bad = append(bad, line{kind: nullBLines, j: j})
		}
	}
	bad = append(bad, line{kind: nullALines, i: -1}, line{kind: nullALines, i: g.ACount()}, line{kind: nullBLines, j: -1}, line{kind: nullBLines, j: g.BCount()})
	if r.Collect == Eager {
		bad = append(bad, line{kind: groupLines, group: &Group{A: lines[0].i, B: []int64{lines[0].j}}})
	} else {
		first := lines[slices.IndexFunc(lines, func(l line) bool { return l.group != nil })].group
		bad = append(bad, line{kind: pairLines, j: first.B[0], i: first.A})
	}
	got := verdict(func(x int, l line) []line {
		if x == len(lines)-1 {
			return append([]line{l}, bad...)
		}
		return []line{l}
	})
	if got.Missing != 0 || got.Duplicated != 0 || got.Spurious != int64(len(bad)) {
		t.Errorf("%d lines that nothing may give: %+v", len(bad), got)
	}
}

// TestCorrectionNeedsItsNullRow: a pair that corrects a null row which has not come is wrong, and so is the row after it only
// because the pair is missing.
func TestCorrectionNeedsItsNullRow(t *testing.T) {
	r := Rules{Cardinality: OneToMany, NullsA: true, Early: 40_000}
	g := mustNew(t, family(r))
	truth, err := g.Truth(r)
	if err != nil {
		t.Fatal(err)
	}
	lines := joinUpTo(t, truth, drained, rand.New(rand.NewPCG(newSeed(t), 14)))
	at := slices.IndexFunc(lines, func(l line) bool { return l.says&Corrects != 0 })
	null := slices.IndexFunc(lines, func(l line) bool { return l.kind == nullALines && l.i == lines[at].i })
	if at < 0 || null > at {
		t.Fatalf("nothing is corrected")
	}
	lines[at], lines[null] = lines[null], lines[at]
	v := truth.NewVerifier()
	for x := range lines {
		lines[x].hand(v)
	}
	if got := v.Result(); got.Pairs.Missing != 1 || got.Pairs.Spurious != 1 || got.Missing != 1 || got.Spurious != 1 || got.Duplicated != 0 {
		t.Errorf("%+v", got)
	}
}
