package loadgen

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// randomRules draws a workload with families and the rules of a join; they may be refused.
func randomRules(rnd *rand.Rand) (Config, Rules) {
	c := randomConfig(rnd)
	c.Pending, c.BEvents = 1+rnd.Int64N(1000), rnd.Int64N(5000)
	c.AEventsPerSec, c.BEventsPerSec = float64(c.Pending)/c.After.Seconds(), 0
	flip := func() bool { return rnd.IntN(2) == 0 }
	r := Rules{Cardinality: []Cardinality{OneToOne, OneToMany, OneToMany, ManyToMany}[rnd.IntN(4)], Probe: Probe(max(0, rnd.IntN(6)-3)), NullsA: flip(), NullsB: flip()}
	c.OneToMany, c.Steady = r.Cardinality != OneToOne, c.Steady && flip()
	if flip() {
		c.Duplicates = 0
	}
	if flip() {
		c.Zipf = 0
	}
	if flip() {
		c.Family.BPerA = 1 + rnd.IntN(6)
	}
	if r.Cardinality == ManyToMany && flip() {
		c.Family.APerKey = 1 + rnd.IntN(4)
	}
	if r.Cardinality == OneToMany && rnd.IntN(4) > 0 {
		r.Collect = Collect(1 + rnd.IntN(3))
		c.Duplicates = 0
	}
	if c.Family.EndShare = rnd.Float64() * 0.4; flip() {
		r.CompleteOn = Ending(rnd.IntN(4))
	}
	c.Family.MarkShare = rnd.Float64() * 0.4
	if c.Family.Counts = r.Collect == Count || flip(); c.Family.Counts {
		c.Family.WrongCounts = rnd.Float64()
	}
	if r.NullsA && flip() {
		r.Early, r.Retract = 1+rnd.Int64N(ms(c.After)), flip()
	}
	if flip() {
		c.Before = c.After
		for i := range c.Ages {
			if flip() {
				c.Ages[i] = -c.Ages[i]
			}
		}
	}
	if r.Probe != Aligned {
		r.Early, r.Retract, r.CompleteOn, r.Collect = 0, false, EndsNothing, Eager
		c.Duplicates = 0
	}
	return c, r
}

// asks are B in an order in which each partition keeps its own.
func asks(g *Gen, bs []*event, rnd *rand.Rand) []*event {
	out := make([]*event, 0, len(bs))
	for _, j := range interleave(g, rnd) {
		out = append(out, bs[j])
	}
	return out
}

// stop draws a moment at which a run may be stopped: how far partitions were read, and what the watermarks let go then.
func stop(t *testing.T, g *Gen, r Rules, rnd *rand.Rand) Cut {
	c := g.Config()
	at := rnd.Int64N(g.BCount() + 1)
	ahead := rnd.Int64N(at/4 + 1)
	if r.Probe != Aligned { // then A may be behind
		ahead -= at / 8
	}
	cut := g.Whole(g.DueA(min(g.BCount(), at+ahead)), at)
	for p := range cut.B {
		cut.B[p] = max(0, cut.B[p]-rnd.Int64N(20))
	}
	all := func(int64) bool { return true }
	wm := [2]int64{math.MaxInt64, math.MaxInt64}
	for side, n := range []int64{g.ACount(), g.BCount()} {
		places, has, text := cut.A, g.HasA, g.AppendA
		if side == 1 {
			places, has, text = cut.B, all, g.AppendB
		}
		newest := make([]int64, len(places))
		for _, e := range readEvents(t, n, len(places), ms(c.Grace), places, has, text) {
			if e != nil {
				newest[e.part] = max(newest[e.part], e.TS)
			}
		}
		wm[side] = slices.Min(newest)
	}
	cut.ClosedA, cut.EarlyA = wm[1]-ms(c.After)-ms(c.Grace), wm[1]-r.Early-ms(c.Grace)
	cut.ClosedB = wm[0] - ms(c.Before) - ms(c.Grace)
	return cut
}

// TestTruthEqualsJoinByRules: over random workloads and rules, drained at the end, drained where they were cut, and stopped in
// the middle, a verifier accepts what a nested loop gives, line by line, and expects as much; and its state survives
// restarts.
func TestTruthEqualsJoinByRules(t *testing.T) {
	seed := newSeed(t)
	rnd := rand.New(rand.NewPCG(seed, 12))
	want := 160
	if testing.Short() {
		want = 40
	}
	met := map[string]int{}
	accepted, tried := 0, 0
	for ; accepted < want && tried < 200*want; tried++ {
		c, r := randomRules(rnd)
		g, err := New(c)
		if err != nil || g.ACount() > 4000 || g.Config().Check(r) != nil {
			continue
		}
		truth, err := g.Truth(r)
		if err != nil {
			t.Fatal(err)
		}
		accepted++
		whole, part := g.Whole(g.ACount(), g.BCount()), rnd.Int64N(g.BCount()+1)
		for name, cut := range map[string]Cut{"whole": whole, "cut": g.Whole(g.DueA(part), part), "stopped": stop(t, g, r, rnd)} {
			if !t.Run(fmt.Sprint(accepted, name), func(t *testing.T) {
				t.Logf("seed %d, config %+v, rules %+v", seed, g.Config(), r)
				for what, n := range checkCut(t, truth, name, cut, rnd) {
					met[what] += n
				}
			}) {
				return
			}
		}
	}
	t.Logf("%d of %d random cases accepted: %v", accepted, tried, met)
	if testing.Short() {
		return // too few to meet everything
	}
	for _, what := range []string{"one-to-one", "one-to-many", "many-to-many", "aligned", "wait", "immediate", "eager", "timeout",
		"count", "marker", "ends 0", "ends 1", "ends 2", "ends 3", "early", "corrected", "retracted", "pairs", "null rows of A",
		"null rows of B", "groups", "complete", "incomplete", "strays", "missed", "several A", "several B", "B before A"} {
		if met[what] == 0 {
			t.Errorf("nothing was %s", what)
		}
	}
}

// checkCut joins up to a cut and counts what there was.
func checkCut(t *testing.T, truth *Truth, name string, cut Cut, rnd *rand.Rand) map[string]int {
	g, r := truth.g, truth.r
	lines := joinUpTo(t, truth, cut, rnd)
	v := truth.NewVerifier()
	for x := range lines {
		lines[x].hand(v)
		if rnd.IntN(max(1, len(lines)/2)) == 0 {
			restarted := truth.NewVerifier()
			if err := restarted.SetState(v.AppendState(nil)); err != nil {
				t.Fatal(err)
			}
			v = restarted
		}
	}
	verdict := v.ResultAt(&cut)
	count := [lineKinds]int64{}
	for x := range lines {
		count[lines[x].kind]++
	}
	tallies := [lineKinds]Tally{verdict.Pairs, verdict.NullsA, verdict.NullsB, verdict.Groups}
	if !verdict.Right() || verdict.Reused != 0 {
		t.Fatalf("%s: lines %v, verdict %+v", name, count, verdict)
	}
	for kind, tally := range tallies {
		expected := count[kind]
		if kind == pairLines {
			expected += verdict.Missed
		}
		if tally.Expected != expected || tally.Seen != count[kind] {
			t.Fatalf("%s: %d lines of kind %d, verdict %+v", name, count[kind], kind, verdict)
		}
	}
	met := whatWasMet(g, r, lines)
	met["strays"] = int(v.openNullsA.n + v.openGroups.n)
	met["missed"] = int(verdict.Missed)
	return met
}

// joinUpTo is what a nested loop gives.
func joinUpTo(t *testing.T, truth *Truth, cut Cut, rnd *rand.Rand) []line {
	g := truth.g
	c := g.Config()
	n := joinByRules{c: c, r: truth.r, cut: cut}
	if truth.r.Probe == Immediate {
		lag := ms(c.After) / 8 // A come so much later than B
		n.came = func(a, b *event) bool { return a.TS+int64(mix(uint64(a.index))%uint64(lag+1)) <= b.TS }
	}
	as := readEvents(t, g.ACount(), c.PartitionsA, ms(c.Grace), cut.A, g.HasA, g.AppendA)
	bs := readEvents(t, g.BCount(), c.PartitionsB, ms(c.Grace), cut.B, func(int64) bool { return true }, g.AppendB)
	return n.run(as, asks(g, bs, rnd))
}

func whatWasMet(g *Gen, r Rules, lines []line) map[string]int {
	met := map[string]int{
		[]string{"one-to-one", "one-to-many", "many-to-many"}[r.Cardinality]: 1, []string{"aligned", "wait", "immediate"}[r.Probe]: 1,
		[]string{"eager", "timeout", "count", "marker"}[r.Collect]: 1, fmt.Sprint("ends ", r.CompleteOn): 1,
		"pairs": 0, "several A": int(g.as) - 1, "several B": max(0, len(g.pairs)-1),
	}
	if r.Early > 0 {
		met["early"] = 1
	}
	for _, l := range lines {
		met[[]string{"pairs", "null rows of A", "null rows of B", "groups"}[l.kind]]++
		says := l.says
		if l.group != nil {
			says = l.group.Says
			met[map[bool]string{true: "complete", false: "incomplete"}[l.group.Complete]]++
		}
		if says&Corrects != 0 {
			met["corrected"]++
		}
		if says&Retracts != 0 {
			met["retracted"]++
		}
		if l.kind == pairLines && g.TimeB(l.j) < g.TimeA(l.i) {
			met["B before A"]++
		}
	}
	return met
}

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

// TestPrematureLines: what a stopped run must not have given yet is wrong.
func TestPrematureLines(t *testing.T) {
	seed := newSeed(t)
	rnd := rand.New(rand.NewPCG(seed, 15))
	for _, r := range []Rules{
		{NullsA: true, NullsB: true}, {NullsA: true, Early: 40_000}, {Cardinality: OneToMany, Collect: Timeout},
		{Cardinality: OneToMany, NullsB: true, Probe: Wait},
	} {
		g := mustNew(t, family(r))
		if r.Probe == Wait {
			c := family(r)
			c.Family.BPerA = 1
			c.BEventsPerSec = 50
			g = mustNew(t, c)
		}
		truth, err := g.Truth(r)
		if err != nil {
			t.Fatal(err)
		}
		cut := stop(t, g, r, rnd)
		if first, _ := ends(cut.B, g.BCount()); r.Probe == Wait { // as if A were behind
			cut.ClosedB = g.TimeB(first / 2)
		}
		at := cut
		at.ClosedA, at.EarlyA, at.ClosedB = cut.ClosedA+2000, cut.EarlyA+2000, cut.ClosedB+2000
		v := truth.NewVerifier()
		for _, l := range joinUpTo(t, truth, at, rnd) {
			l.hand(v)
		}
		if got := v.ResultAt(&at); !got.Right() {
			t.Errorf("seed %d, %+v: %+v", seed, r, got)
		}
		if got := v.ResultAt(&cut); got.Spurious == 0 || got.Missing != 0 {
			t.Errorf("seed %d, %+v: two seconds too early, and the verdict is %+v", seed, r, got)
		}
	}
}

// TestRulesThatHaveNoOneTruth are refused, and the refusal says what to change.
func TestRulesThatHaveNoOneTruth(t *testing.T) {
	many := Rules{Cardinality: OneToMany}
	for _, c := range []struct {
		change func(*Config)
		rules  Rules
		want   string
	}{
		{nil, Rules{Cardinality: OneToMany}, "planned for another cardinality"},
		{func(c *Config) { c.OneToMany = true; c.Family.APerKey = 2 }, many, "a_per_key 2 needs cardinality many-to-many"},
		{nil, Rules{CompleteOn: EndsWithPair}, "set end_share"},
		{func(c *Config) { c.OneToMany, c.Zipf = true, 1 }, Rules{Cardinality: OneToMany, Early: 1}, "hot duplicates"},
		{func(c *Config) { c.OneToMany = true }, Rules{Cardinality: OneToMany, Collect: Timeout}, "with collect set duplicates 0"},
		{func(c *Config) { c.OneToMany, c.Duplicates = true, 0 }, Rules{Cardinality: OneToMany, Collect: Count}, "set counts"},
		{nil, Rules{Collect: Timeout}, "collect needs cardinality one-to-many"},
		{nil, Rules{Early: 1 << 40}, "is not between 0 and after"},
		{nil, Rules{Probe: Wait}, "set duplicates 0"},
		{func(c *Config) { c.OneToMany = true }, Rules{Cardinality: OneToMany, Probe: Immediate}, "set duplicates 0"},
		{func(c *Config) { c.Duplicates, c.Family.BPerA = 0, 2 }, Rules{Probe: Wait}, "set b_per_a 1"},
		{nil, Rules{Probe: Immediate, Early: 5}, "need B that ask aligned"},
	} {
		cfg := small()
		if c.change != nil {
			c.change(&cfg)
		}
		if _, err := mustNew(t, cfg).Truth(c.rules); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v does not say %q", c.rules, err, c.want)
		}
	}
}
