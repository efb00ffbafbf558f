package loadgen

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
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
	if name != "stopped" && r.Probe != Immediate {
		checkMissing(t, truth, cut, lines, rnd)
	}
	met := whatWasMet(g, r, lines)
	met["strays"] = int(v.openNullsA.n + v.openGroups.n)
	met["missed"] = int(verdict.Missed)
	return met
}

// checkMissing leaves lines of a join that was drained out, and wants these named.
func checkMissing(t *testing.T, truth *Truth, cut Cut, lines []line, rnd *rand.Rand) {
	v := truth.NewVerifier()
	var want, got []string
	for x := range lines {
		// Without its null row a pair that corrects it is spurious.
		if rnd.IntN(4) > 0 || truth.r.Early > 0 && lines[x].kind == nullALines {
			lines[x].hand(v)
			continue
		}
		l := Line{"pair", lines[x].i, lines[x].j}
		switch lines[x].kind {
		case nullALines:
			l = Line{"null_a", lines[x].i, -1}
		case nullBLines:
			l = Line{"null_b", -1, lines[x].j}
		case groupLines:
			l = Line{"group", lines[x].group.A, -1}
		}
		want = append(want, fmt.Sprint(l))
	}
	v.Missing(&cut, func(l Line) bool { got = append(got, fmt.Sprint(l)); return true })
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		lacks := slices.DeleteFunc(slices.Clone(want), func(l string) bool { return slices.Contains(got, l) })
		more := slices.DeleteFunc(got, func(l string) bool { return slices.Contains(want, l) })
		t.Fatalf("of %d lines that are missing it does not name %v, and it names %v, which are there", len(want), lacks, more)
	}
	if visited := 0; len(want) > 1 {
		v.Missing(&cut, func(Line) bool { visited++; return visited < 2 })
		if visited != 2 {
			t.Fatalf("%d lines were visited, 2 were enough", visited)
		}
	}
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

// linesOf says how many lines a verdict asks for.
func linesOf(v Verdict) int64 {
	return v.Pairs.Expected + v.NullsA.Expected + v.NullsB.Expected + v.Groups.Expected
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
		var cut, at Cut
		for tries := 0; ; tries++ { // until a stop is met that has lines in the two seconds after it
			if tries == 100 {
				t.Fatalf("seed %d, %+v: a hundred stops, and after none a line within two seconds", seed, r)
			}
			cut = stop(t, g, r, rnd)
			if first, _ := ends(cut.B, g.BCount()); r.Probe == Wait { // as if A were behind
				cut.ClosedB = g.TimeB(first / 2)
			}
			at = cut
			at.ClosedA, at.EarlyA, at.ClosedB = cut.ClosedA+2000, cut.EarlyA+2000, cut.ClosedB+2000
			none := truth.NewVerifier()
			if linesOf(none.ResultAt(&at)) > linesOf(none.ResultAt(&cut)) {
				break
			}
		}
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
