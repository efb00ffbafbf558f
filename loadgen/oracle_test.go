package loadgen

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// row is a record as the naive join reads it: from its JSON alone.
type row struct {
	Ref  string `json:"payment_ref"`
	TS   int64  `json:"ts"`
	late bool
	gone bool // no record
}

// readSide generates n records in order and decides lateness as rule 8 says it: by the
// greatest accepted time of the partition. Indexes without a record are passed over.
func readSide(t *testing.T, n int64, parts int, grace int64, has func(int64) bool, text func([]byte, int64) []byte) []row {
	rows := make([]row, n)
	seen := make([]int64, parts) // M(p)
	for p := range seen {
		seen[p] = -1 << 62
	}
	var buf []byte
	for i := range n {
		r := &rows[i]
		if r.gone = !has(i); r.gone {
			continue
		}
		buf = text(buf[:0], i)
		if err := json.Unmarshal(buf, r); err != nil {
			t.Fatalf("record %d: %v: %s", i, err, buf)
		}
		p := i % int64(parts)
		if r.TS+grace < seen[p] {
			r.late = true
		} else {
			seen[p] = max(seen[p], r.TS)
		}
	}
	return rows
}

// naive is a join without rules left out, unless a test asks for that.
type naive struct {
	before, after               int64
	oneToMany                   bool
	ignoreLate, forgetConsuming bool
	order                       []int64 // B in the order in which they ask; nil: by index
}

// join calls match for each pair; byKey holds all A of a key.
func (n naive) join(as, bs []row, match func(j, i int64)) {
	byKey := make(map[string][]int64, len(as))
	for i := range as {
		if as[i].gone {
			continue
		}
		byKey[as[i].Ref] = append(byKey[as[i].Ref], int64(i))
	}
	used := make([]bool, len(as))
	for x := range bs {
		j := int64(x)
		if n.order != nil {
			j = n.order[x]
		}
		b := &bs[j]
		if b.late && !n.ignoreLate {
			continue
		}
		best := int64(-1)
		for _, i := range byKey[b.Ref] {
			a := &as[i]
			if a.late && !n.ignoreLate || used[i] || a.TS-n.before > b.TS || b.TS > a.TS+n.after {
				continue
			}
			if best < 0 || a.TS < as[best].TS {
				best = i
			}
		}
		if best >= 0 {
			used[best] = !n.oneToMany && !n.forgetConsuming
			match(j, best)
		}
	}
}

func oracleOf(c Config) naive {
	return naive{before: ms(c.Before), after: ms(c.After), oneToMany: c.OneToMany}
}

// generate makes a generator and reads both of its sides.
func generate(t *testing.T, c Config) (g *Gen, as, bs []row) {
	g, err := New(c)
	if err != nil {
		t.Fatalf("%+v: %v", c, err)
	}
	c = g.Config()
	as = readSide(t, g.ACount(), c.PartitionsA, ms(c.Grace), g.HasA, g.AppendA)
	bs = readSide(t, g.BCount(), c.PartitionsB, ms(c.Grace), func(int64) bool { return true }, g.AppendB)
	return g, as, bs
}

// checkTruth compares everything the generator says about its records with a naive join
// over their texts.
func checkTruth(t *testing.T, g *Gen, as, bs []row, rnd *rand.Rand) {
	c := g.Config()
	for i := range as {
		part, offset := g.PlaceA(int64(i))
		if at, ok := g.IndexA(part, offset); ok == as[i].gone || ok && at != int64(i) {
			t.Fatalf("A %d: found as %d %v, gone %v", i, at, ok, as[i].gone)
		}
		if as[i].gone {
			continue
		}
		if g.TimeA(int64(i)) != as[i].TS || g.LateA(int64(i)) != as[i].late {
			t.Fatalf("A %d: time %d late %v, in truth %d %v", i, g.TimeA(int64(i)), g.LateA(int64(i)), as[i].TS, as[i].late)
		}
	}
	var key []byte
	for j := range bs {
		if g.TimeB(int64(j)) != bs[j].TS || g.LateB(int64(j)) != bs[j].late {
			t.Fatalf("B %d (%v): time %d late %v, in truth %d %v", j, g.KindB(int64(j)), g.TimeB(int64(j)), g.LateB(int64(j)), bs[j].TS, bs[j].late)
		}
		if key = g.AppendBKey(key[:0], int64(j)); string(key) != bs[j].Ref {
			t.Fatalf("B %d: key %q, in the value %q", j, key, bs[j].Ref)
		}
	}

	// The naive join, twice: by index, and with the partitions of B in any interleaving.
	var found map[int64]int64
	for _, order := range [][]int64{nil, interleave(g, rnd)} {
		o := oracleOf(c)
		o.order = order
		found = make(map[int64]int64)
		v := g.NewVerifier()
		o.join(as, bs, func(j, i int64) { found[j] = i; v.Match(j, i) })
		if r := v.Result(); !r.Right() || r.Matches != int64(len(found)) || r.Expected != r.Matches || r.Reused != 0 {
			t.Fatalf("%d pairs in truth, verdict %+v", len(found), r)
		}
	}
	checkPairs(t, g, as, bs, found)
}

// checkPairs compares Expected, PartnerOf and the counts with the pairs found, and the
// distances that the package promises.
func checkPairs(t *testing.T, g *Gen, as, bs []row, found map[int64]int64) {
	c := g.Config()
	first := make(map[int64]int64) // A -> its first B
	for j := range g.BCount() {
		i, ok := g.Expected(j)
		want, is := found[j]
		if ok != is || ok && i != want {
			t.Fatalf("B %d (%v): expected %d %v, in truth %d %v", j, g.KindB(j), i, ok, want, is)
		}
		if !ok {
			continue
		}
		if k := g.KindB(j); k != KindMatched && !(k == KindDuplicate && c.OneToMany) {
			t.Fatalf("B %d pairs but is %v", j, k)
		}
		if _, again := first[i]; !again {
			first[i] = j
		}
		if tA, tB := as[i].TS, bs[j].TS; tA >= tB || tB > tA+ms(c.After)-2*ms(c.Grace) {
			t.Fatalf("pair B %d A %d: age %d ms is not within 1 and %d", j, i, tB-tA, ms(c.After)-2*ms(c.Grace))
		}
		if i >= g.DueA(j) {
			t.Fatalf("pair B %d A %d: only %d A are due", j, i, g.DueA(j))
		}
	}
	for i := range g.ACount() {
		j, ok := g.PartnerOf(i)
		if want, is := first[i]; ok != is || ok && j != want {
			t.Fatalf("A %d: partner %d %v, in truth %d %v", i, j, ok, want, is)
		}
	}
	checkPrefixes(t, g, found)
}

// checkPrefixes compares ExpectedIn with the pairs found in parts of B.
func checkPrefixes(t *testing.T, g *Gen, found map[int64]int64) {
	n := g.BCount()
	if got := g.ExpectedMatches(); got != int64(len(found)) {
		t.Fatalf("%d matches expected, in truth %d", got, len(found))
	}
	for _, cut := range []int64{0, 1, n / 7, n / 2, n - 1} {
		var low int64
		for j := range found {
			if j < cut {
				low++
			}
		}
		if a, b := g.ExpectedIn(0, cut), g.ExpectedIn(cut, n); a != low || a+b != int64(len(found)) {
			t.Fatalf("below %d: %d expected, in truth %d; with %d above it must be %d", cut, a, low, b, len(found))
		}
	}
}

// interleave returns the B in an order that keeps each partition's and is random else.
func interleave(g *Gen, rnd *rand.Rand) []int64 {
	parts := int64(g.Config().PartitionsB)
	next := make([]int64, parts)
	var order []int64
	for int64(len(order)) < g.BCount() {
		p := rnd.Int64N(parts)
		for run := rnd.IntN(2000); run > 0; run-- {
			j, ok := g.IndexB(int32(p), next[p])
			if !ok {
				break
			}
			order = append(order, j)
			next[p]++
		}
	}
	return order
}

// randomConfig draws a workload of up to 20,000 A and 100,000 B; it may be refused.
func randomConfig(rnd *rand.Rand) Config {
	pick := func(xs ...float64) float64 { return xs[rnd.IntN(len(xs))] }
	after := time.Duration(1+rnd.IntN(20_000)) * 10 * time.Millisecond * time.Duration(pick(1, 10, 100))
	c := Config{
		Seed: rnd.Uint64(), Pending: 1 + rnd.Int64N(15_000), BEvents: rnd.Int64N(60_000),
		MatchRate: pick(0, 1, 0.5, 0.1, 0.01, rnd.Float64(), rnd.Float64()*0.1), Duplicates: pick(0, 0, 0.01, 0.1, 0.3),
		Steady: rnd.IntN(2) == 0, Zipf: pick(0, 0, 0.5, 0.99, 1, 2), Expired: pick(0, 0.01, 0.1), LateShareA: pick(0, 0.01, 0.2, 0.5), LateShareB: pick(0, 0.01, 0.2, 0.5),
		After: after, Before: time.Duration(rnd.Int64N(int64(after))).Truncate(time.Millisecond),
		KeyShape: Shape(rnd.IntN(3)), RecordBytes: 190 + rnd.IntN(150),
		PartitionsA: 1 + rnd.IntN(9), PartitionsB: 1 + rnd.IntN(9), OneToMany: rnd.IntN(2) == 0,
	}
	c.Grace = (after / time.Duration(pick(10, 30, 100, 1e9))).Truncate(time.Millisecond)
	c.Disorder = (c.Grace / time.Duration(pick(2, 4, 1e9))).Truncate(time.Millisecond)
	c.AEventsPerSec = float64(c.Pending) / after.Seconds() * pick(1, 0.5, 0.9, 3)
	if m := c.primaryShare(); m > 0 {
		c.BEventsPerSec = c.AEventsPerSec * (1 - c.LateShareA) / m * pick(1, 0.999, 0.5, 0.1, 0.01)
	}
	for range 1 + rnd.IntN(5) {
		age := time.Duration(rnd.Float64() * float64(after-3*c.Grace)).Truncate(time.Millisecond)
		c.Ages = append(c.Ages, age)
	}
	return c
}

// TestTruthEqualsNaiveJoin is the proof of the package: over many random workloads every
// answer equals that of a naive join over the records' texts.
func TestTruthEqualsNaiveJoin(t *testing.T) {
	seed := newSeed(t)
	rnd := rand.New(rand.NewPCG(seed, 4))
	want := 24
	if testing.Short() {
		want = 8
	}
	var pairs, kinds [8]int64
	var gone, hot int64
	// Few workloads may lack what is rare: then more are drawn.
	covered := func() bool {
		return pairs[0] > 0 && pairs[1] > 0 && gone > 0 && hot > 0 && !slices.Contains(kinds[:7], 0)
	}
	accepted, tried := 0, 0
	for ; (accepted < want || !covered() && accepted < 4*want) && tried < 100*want; tried++ {
		c := randomConfig(rnd)
		if g, err := New(c); err != nil || g.ACount() > 20_000 {
			continue
		}
		accepted++
		if !t.Run(fmt.Sprint(accepted), func(t *testing.T) {
			t.Logf("seed %d, config %+v", seed, c)
			g, as, bs := generate(t, c)
			checkTruth(t, g, as, bs, rnd)
			gone += g.LeftOut()
			if g.hot != nil {
				hot += int64(g.dupsBefore(g.BCount()))
			}
			for j := range g.BCount() {
				kinds[g.KindB(j)]++
			}
			if c.OneToMany {
				pairs[1] += g.ExpectedMatches()
			} else {
				pairs[0] += g.ExpectedMatches()
			}
		}) {
			return
		}
	}
	t.Logf("%d of %d random workloads accepted, pairs %v, kinds of B %v, %d A left out, %d hot duplicates", accepted, tried, pairs[:2], kinds[:7], gone, hot)
	if accepted < want || !covered() {
		t.Errorf("the test compares too little")
	}
}

// TestTruthAtFullScale is the size that the benchmark's own small profile has: 20,000 A
// before the first B, 100,000 B, in both cardinalities.
func TestTruthAtFullScale(t *testing.T) {
	for _, many := range []bool{false, true} {
		c := small()
		c.Pending, c.BEvents, c.OneToMany = 20_000, 100_000, many
		c.AEventsPerSec = 200
		g, as, bs := generate(t, c)
		checkTruth(t, g, as, bs, rand.New(rand.NewPCG(newSeed(t), 5)))
		if g.ExpectedMatches() < 4000 {
			t.Errorf("only %d matches", g.ExpectedMatches())
		}
	}
}

// TestDuplicatesEndWithTheWindow has matches at the very end of the window and so few per
// second that a duplicate comes many seconds after the first: some are too late to pair.
func TestDuplicatesEndWithTheWindow(t *testing.T) {
	c := Config{Seed: 9, Pending: 1000, AEventsPerSec: 5, BEventsPerSec: 5, BEvents: 20_000, MatchRate: 0.5, Duplicates: 0.25,
		After: 200 * time.Second, Ages: []time.Duration{185 * time.Second}, PartitionsB: 16, OneToMany: true}
	g, as, bs := generate(t, c)
	checkTruth(t, g, as, bs, rand.New(rand.NewPCG(newSeed(t), 8)))
	slots, dups := int64(g.dupsBefore(g.BCount())), int64(0)
	for j := range g.BCount() {
		if g.KindB(j) == KindDuplicate {
			dups++
		}
	}
	if dups < 100 || dups > slots-100 {
		t.Errorf("%d of %d duplicates are in the window; some must be and some not", dups, slots)
	}
}

// TestTruthCatchesWrongJoins breaks one rule of the join at a time. If the workload did
// not notice, it would prove nothing about a join that passes.
func TestTruthCatchesWrongJoins(t *testing.T) {
	c := small()
	c.Pending, c.AEventsPerSec = 30_000, 150
	g, as, bs := generate(t, c)
	for name, breakRule := range map[string]func(*naive){
		"none":                  func(*naive) {},
		"late records joined":   func(n *naive) { n.ignoreLate = true },
		"consumed A used again": func(n *naive) { n.forgetConsuming = true },
		"window never ends":     func(n *naive) { n.after = 1 << 40 },
		"window ends too early": func(n *naive) { n.after = 70_000 },
	} {
		o := oracleOf(g.Config())
		breakRule(&o)
		v := g.NewVerifier()
		o.join(as, bs, v.Match)
		if r := v.Result(); r.Right() != (name == "none") {
			t.Errorf("%s: verdict %+v", name, r)
		}
	}
	var lateA int
	for j := range g.BCount() {
		if g.KindB(j) == KindLatePartner {
			lateA++
		}
	}
	if lateA < 100 {
		t.Errorf("only %d B ask for an A that was late", lateA)
	}
}
