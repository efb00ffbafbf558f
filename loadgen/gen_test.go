package loadgen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"sync"
	"testing"
	"time"
)

func mustNew(t testing.TB, c Config) *Gen {
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// record puts everything the generator says about index x of both sides into one text.
func record(g *Gen, x int64) string {
	ka, va, ta := g.RecordA(nil, nil, x)
	kb, vb, tb := g.RecordB(nil, nil, x)
	i, ok := g.Expected(x)
	j, okJ := g.PartnerOf(x)
	return fmt.Sprintf("%s %s %d %v|%s %s %d %v|%d %v %d %v", ka, va, ta, g.LateA(x), kb, vb, tb, g.KindB(x), i, ok, j, okJ)
}

// TestRecordsArePure makes the same records in order, and in random order by several
// goroutines and by another generator of the same configuration.
func TestRecordsArePure(t *testing.T) {
	seed := newSeed(t)
	g, other := mustNew(t, small()), mustNew(t, small())
	const n = 3000
	want := make([]string, n)
	for x := range want {
		want[x] = record(g, int64(x))
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			from := g
			if w%2 == 1 {
				from = other
			}
			for _, x := range rand.New(rand.NewPCG(seed, uint64(w))).Perm(n) {
				if got := record(from, int64(x)); got != want[x] {
					t.Errorf("record %d: %s, before: %s", x, got, want[x])
					return
				}
			}
			if g.ExpectedMatches() != other.ExpectedMatches() {
				t.Error("two generators expect different numbers of matches")
			}
		})
	}
	wg.Wait()
}

// TestCombinedCallsAgree compares RecordA and RecordB with the calls they stand for, and
// that they append.
func TestCombinedCallsAgree(t *testing.T) {
	for _, shape := range []Shape{ShapeText, ShapeUUID, ShapeDigits} {
		c := small()
		c.KeyShape = shape
		g := mustNew(t, c)
		for x := range int64(2000) {
			k, v, ts := g.RecordA([]byte("k"), []byte("v"), x)
			if string(k) != "k"+string(g.AppendAKey(nil, x)) || string(v) != "v"+string(g.AppendA(nil, x)) || ts != g.TimeA(x) {
				t.Fatalf("A %d: %s %s %d", x, k, v, ts)
			}
			k, v, ts = g.RecordB([]byte("k"), []byte("v"), x)
			if string(k) != "k"+string(g.AppendBKey(nil, x)) || string(v) != "v"+string(g.AppendB(nil, x)) || ts != g.TimeB(x) {
				t.Fatalf("B %d: %s %s %d", x, k, v, ts)
			}
		}
	}
}

// TestRecordsAreJSONOfTheSize checks size, validity, names and key shape, from the
// smallest record on.
func TestRecordsAreJSONOfTheSize(t *testing.T) {
	shapes := map[Shape]string{
		ShapeText:   `^(PAY-0*|P?A?Y?)[0-9a-f]{16}$`,
		ShapeUUID:   `^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`,
		ShapeDigits: `^[0-9]{20,}$`,
	}
	for _, k := range []struct {
		shape Shape
		bytes int
	}{{ShapeText, 16}, {ShapeText, 18}, {ShapeText, 20}, {ShapeText, 64}, {ShapeUUID, 36}, {ShapeDigits, 20}, {ShapeDigits, 33}} {
		least := smallestRecord(k.bytes, false)
		for _, size := range []int{least, least + 1, least + 39, 256, 300, 1000, 4096} {
			c := small()
			c.KeyShape, c.KeyBytes, c.RecordBytes = k.shape, k.bytes, max(size, least)
			g := mustNew(t, c)
			shape := regexp.MustCompile(shapes[k.shape])
			for x := range int64(300) {
				checkRecord(t, g, g.AppendA(nil, x), string(g.AppendAKey(nil, x)), shape, "order_id", "customer", "payment_ref", "amount", "ts", "note")
				checkRecord(t, g, g.AppendB(nil, x), string(g.AppendBKey(nil, x)), shape, "payment_id", "payment_ref", "status", "amount", "ts", "note")
			}
		}
	}
	if !bytes.Contains(mustNew(t, small()).AppendA(nil, 0), []byte(`"items":[{"sku":"SKU-`)) {
		t.Error("an A of 256 bytes has no items")
	}
}

func checkRecord(t *testing.T, g *Gen, value []byte, key string, shape *regexp.Regexp, names ...string) {
	t.Helper()
	c := g.Config()
	if len(value) != c.RecordBytes || !json.Valid(value) {
		t.Fatalf("%d bytes, want %d, valid %v: %s", len(value), c.RecordBytes, json.Valid(value), value)
	}
	var fields map[string]any
	if err := json.Unmarshal(value, &fields); err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if _, ok := fields[n]; !ok {
			t.Fatalf("no %s in %s", n, value)
		}
	}
	if key != fields["payment_ref"] || len(key) != c.KeyBytes || !shape.MatchString(key) {
		t.Fatalf("key %q (%d bytes) in %s", key, len(key), value)
	}
}

// TestKeysAreUnique draws all A keys and all own keys of B: none may come twice.
func TestKeysAreUnique(t *testing.T) {
	for _, shape := range []Shape{ShapeText, ShapeUUID, ShapeDigits} {
		c := small()
		c.KeyShape = shape
		g := mustNew(t, c)
		owner := make(map[string]int64)
		for i := range g.ACount() {
			owner[string(g.AppendAKey(nil, i))] = i
		}
		if len(owner) != int(g.ACount()) {
			t.Fatalf("%v: %d keys for %d A", shape, len(owner), g.ACount())
		}
		own := make(map[string]bool)
		for j := range g.BCount() {
			key := string(g.AppendBKey(nil, j))
			_, ofA := owner[key]
			switch kind := g.KindB(j); {
			case kind == KindAbsent || kind == KindNoHistory:
				if ofA || own[key] {
					t.Fatalf("%v: B %d is %v, but its key is known", shape, j, kind)
				}
				own[key] = true
			case kind != KindLate && !ofA:
				t.Fatalf("%v: B %d is %v, but no A has its key", shape, j, kind)
			}
		}
	}
}

// TestMatchRateSweep asks for match rates from 0 to 100 % and lets history suffice:
// each is hit to 0.1 point, in the whole and in its parts.
func TestMatchRateSweep(t *testing.T) {
	for _, rate := range []float64{0, 0.01, 0.1, 0.5, 0.9, 1} {
		for _, many := range []bool{false, true} {
			c := Config{Seed: 3, Pending: 1_000_000, AEventsPerSec: 1000, BEvents: 100_000, MatchRate: rate, OneToMany: many,
				Grace: 5 * time.Second, Disorder: 2 * time.Second, After: 1000 * time.Second, PartitionsA: 2, PartitionsB: 5}
			if c.BEventsPerSec = 1000; rate < 0.9 && rate > 0 {
				c.LateShareB, c.LateShareA, c.Duplicates = 0.05, 0.02, rate/3
			}
			g := mustNew(t, c)
			if got := float64(g.ExpectedMatches()) / float64(g.BCount()); abs(got-rate) > 0.001 {
				t.Errorf("match rate %g (one-to-many %v): got %g", rate, many, got)
			}
			for part := int64(0); part < 10; part++ {
				n := g.BCount() / 10
				if got := float64(g.ExpectedIn(part*n, (part+1)*n)) / float64(n); abs(got-rate) > 0.005 {
					t.Errorf("match rate %g (one-to-many %v): part %d has %g", rate, many, part, got)
				}
			}
		}
	}
}

// TestSharesAreHit counts the kinds of B and the late A.
func TestSharesAreHit(t *testing.T) {
	c := small()
	c.Pending, c.BEvents = 20_000, 200_000
	g := mustNew(t, c)
	var kinds [8]int
	for j := range g.BCount() {
		kinds[g.KindB(j)]++
	}
	lateA := 0
	for i := range g.ACount() {
		if g.LateA(i) {
			lateA++
		}
	}
	for _, s := range []struct {
		name      string
		got, want float64
	}{
		{"matched", float64(kinds[KindMatched]) / float64(g.BCount()), c.MatchRate},
		{"duplicates", float64(kinds[KindDuplicate]) / float64(g.BCount()), c.Duplicates},
		{"expired", float64(kinds[KindExpired]) / float64(g.BCount()), c.Expired},
		{"late B", float64(kinds[KindLate]) / float64(g.BCount()), c.LateShareB},
		{"late A", float64(lateA) / float64(g.ACount()), c.LateShareA},
	} {
		if abs(s.got-s.want) > 0.001 {
			t.Errorf("share of %s: %g, want %g", s.name, s.got, s.want)
		}
	}
}

// TestAgesAreMixed checks that each age has an equal part of the matches, that ages vary,
// and that their mean is what was asked.
func TestAgesAreMixed(t *testing.T) {
	c := small()
	c.Pending, c.AEventsPerSec, c.BEvents = 12_000, 100, 200_000
	g := mustNew(t, c)
	sum, n, spread := make([]float64, 3), make([]int, 3), make([]float64, 3)
	for j := range g.BCount() {
		i, ok := g.Expected(j)
		if !ok {
			continue
		}
		age, near := float64(g.TimeB(j)-g.TimeA(i)), 0
		for x, a := range g.ages {
			if abs(age-float64(a)) < abs(age-float64(g.ages[near])) {
				near = x
			}
		}
		n[near]++
		sum[near] += age
		spread[near] = max(spread[near], abs(age-float64(g.ages[near])))
	}
	for x, a := range g.ages {
		mean := sum[x] / float64(n[x])
		if abs(mean-float64(a)) > 0.05*float64(a) || abs(float64(n[x])-float64(g.ExpectedMatches())/3) > float64(g.ExpectedMatches())/20 {
			t.Errorf("age %d ms: %d matches of %d, mean %g", a, n[x], g.ExpectedMatches(), mean)
		}
		if spread[x] < 1000 || spread[x] > float64(g.ages[0]) {
			t.Errorf("age %d ms varies by %g ms", a, spread[x])
		}
	}
}

// TestLateAreNeverFirst: the first records of a partition have nothing to be late against.
func TestLateAreNeverFirst(t *testing.T) {
	c := small()
	c.LateShareA, c.LateShareB = 0.5, 0.5
	c.PartitionsA, c.PartitionsB = 64, 64
	g := mustNew(t, c)
	late := 0
	for x := range int64(6400) {
		if x < 64 && (g.LateA(x) || g.LateB(x)) {
			t.Errorf("record %d is the first of its partition and late", x)
		}
		if g.LateA(x) {
			late++
		}
	}
	if late < 2900 {
		t.Errorf("%d of 6400 A are late, want about half", late)
	}
}

func TestIndexIsInverseOfPlace(t *testing.T) {
	g := mustNew(t, small())
	next := make(map[int32]int64)
	for i := range g.ACount() {
		p, off := g.PlaceA(i)
		if back, ok := g.IndexA(p, off); !ok || back != i || off != next[p] {
			t.Fatalf("A %d is at %d/%d, back %d %v", i, p, off, back, ok)
		}
		next[p]++
	}
	for _, place := range [][2]int64{{-1, 0}, {3, 0}, {0, -1}, {0, g.ACount()}, {1, next[1]}, {2, next[2]}} {
		if i, ok := g.IndexA(int32(place[0]), place[1]); ok {
			t.Errorf("place %v holds A %d", place, i)
		}
	}
	if p, off := g.PlaceB(4097); p != 1 || off != 1024 {
		t.Errorf("B 4097 is at %d/%d", p, off)
	}
}

func TestDueAIsMonotoneAndComplete(t *testing.T) {
	g := mustNew(t, small())
	if g.DueA(0) != 10_000 || g.DueA(g.BCount()) != g.ACount() || g.ACount() != 15_000 {
		t.Errorf("due %d, at the end %d, A %d", g.DueA(0), g.DueA(g.BCount()), g.ACount())
	}
	for j := range g.BCount() {
		n := g.DueA(j)
		if n > g.DueA(j+1) || g.a.base(n-1) > g.b.base(j)+1 || n < g.nA && g.a.base(n) < g.b.base(j)-1 {
			t.Fatalf("%d A are due at B %d", n, j)
		}
	}
}

// TestHugeAndExtremeWorkloads asks single records of workloads too large to walk.
func TestHugeAndExtremeWorkloads(t *testing.T) {
	rnd := rand.New(rand.NewPCG(newSeed(t), 6))
	for _, c := range []Config{
		{Pending: 100_000_000, BEvents: 1 << 37, MatchRate: 0.01, After: 4 * time.Hour, Grace: 10 * time.Second, Disorder: time.Second, Duplicates: 0.001, LateShareB: 0.01, LateShareA: 0.01},
		{Pending: 5_000_000, BEvents: 1 << 37, MatchRate: 1e-9, After: 4 * time.Hour, Grace: 10 * time.Second, PartitionsB: 1000},
		{Pending: 1 << 37, AEventsPerSec: 1e8, BEventsPerSec: 1e8, BEvents: 1 << 30, MatchRate: 1, After: 1000 * time.Second, Ages: []time.Duration{900 * time.Second}},
	} {
		g, err := New(c)
		if err != nil {
			t.Logf("refused: %v", err)
			if c.MatchRate > 1e-6 {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		c = g.Config()
		pairs := 0
		for range 100_000 {
			j := rnd.Int64N(g.BCount())
			if k := g.b.matched.blockOf(uint64(j)); k < g.b.matched.count(uint64(g.nB)) {
				j = int64(g.b.matched.slot(k))
			}
			i, ok := g.Expected(j)
			if !ok {
				continue
			}
			pairs++
			if back, ok := g.PartnerOf(i); !ok || back != j || g.LateA(i) || i >= g.DueA(j) {
				t.Fatalf("B %d pairs with A %d, which pairs with %d %v", j, i, back, ok)
			}
			if age := g.TimeB(j) - g.TimeA(i); age < 1 || age > ms(c.After)-2*ms(c.Grace) {
				t.Fatalf("B %d pairs with A %d at age %d", j, i, age)
			}
			g.PartnerOf(rnd.Int64N(g.ACount())) // must not panic at any index
			if !bytes.Equal(g.AppendAKey(nil, i), g.AppendBKey(nil, j)) {
				t.Fatalf("B %d and A %d have different keys", j, i)
			}
		}
		if pairs == 0 {
			t.Errorf("no pair in %+v", c)
		}
	}
}

func TestVerifierCounts(t *testing.T) {
	for _, many := range []bool{false, true} {
		c := small()
		c.OneToMany = many
		g := mustNew(t, c)
		var js, is []int64
		for j := range g.BCount() {
			if i, ok := g.Expected(j); ok {
				js, is = append(js, j), append(is, i)
			}
		}
		n := int64(len(js))
		v := g.NewVerifier()
		if r := v.Result(); r.Right() || r.Missing != n || r.Matches != 0 || n != g.ExpectedMatches() {
			t.Fatalf("nothing seen: %+v, want %d missing", r, n)
		}
		for x := range js[1:] {
			v.Match(js[x], is[x])
		}
		want := ofPairs(Verdict{Expected: n, Matches: n - 1, Missing: 1})
		if r := v.Result(); r != want {
			t.Fatalf("all but one: %+v, want %+v", r, want)
		}
		if r := v.ResultFor(js[n-1]); !r.Right() || r.Matches != n-1 {
			t.Fatalf("all below B %d: %+v", js[n-1], r)
		}
		if r := v.ResultFor(js[n-2]); r.Spurious != 1 || r.Missing != 0 {
			t.Fatalf("all below B %d and one more: %+v", js[n-2], r)
		}
		v.Match(js[n-1], is[n-1])
		if r := v.Result(); !r.Right() || r.Reused != 0 {
			t.Fatalf("all: %+v", r)
		}
		v.Match(js[0], is[0])                // again
		v.Match(js[0], is[1])                // the wrong A
		v.Match(-1, is[0])                   // no such B
		v.Match(js[0], g.ACount())           // no such A
		v.Match(absentB(t, g), int64(is[0])) // a B without partner
		want = ofPairs(Verdict{Expected: n, Matches: n, Duplicated: 1, Spurious: 4, Reused: 3})
		if many {
			want.Reused = 0
		}
		if r := v.Result(); r != want || r.Right() {
			t.Fatalf("after five wrong pairs: %+v, want %+v", r, want)
		}
	}
}

func absentB(t *testing.T, g *Gen) int64 {
	for j := range g.BCount() {
		if g.KindB(j) == KindAbsent {
			return j
		}
	}
	t.Fatal("no B is absent")
	return 0
}

const pinnedFingerprint = "3e2f55f6980bbf7d294ba9bfe69d342e"

// TestFingerprint: the same for the same workload; another for any other. The value itself
// is pinned: when it changes, saved results are no longer comparable, which must be meant.
func TestFingerprint(t *testing.T) {
	base := mustNew(t, small()).Fingerprint()
	if again := mustNew(t, small()).Fingerprint(); again != base || len(base) != 32 {
		t.Errorf("%s, again %s", base, again)
	}
	if base != pinnedFingerprint {
		t.Errorf("fingerprint %s, pinned %s", base, pinnedFingerprint)
	}
	seen := map[string]bool{base: true}
	for x, change := range []func(*Config){
		func(c *Config) { c.Seed++ }, func(c *Config) { c.Pending++ }, func(c *Config) { c.BEvents++ },
		func(c *Config) { c.MatchRate += 1e-6 }, func(c *Config) { c.RecordBytes = 257 },
		func(c *Config) { c.OneToMany = true }, func(c *Config) { c.Steady = true }, func(c *Config) { c.Zipf = 0.99 }, func(c *Config) { c.Ages[0]++; c.Ages[0] += time.Millisecond - 1 },
	} {
		c := small()
		change(&c)
		f := mustNew(t, c).Fingerprint()
		if seen[f] {
			t.Errorf("change %d does not change the fingerprint", x)
		}
		seen[f] = true
	}
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	g := mustNew(t, small())
	key, value := make([]byte, 0, 64), make([]byte, 0, 512)
	v, w := g.NewVerifier(), g.NewWriter()
	x := int64(0)
	if n := testing.AllocsPerRun(2000, func() {
		g.RecordA(key, value, x)
		g.RecordB(key, value, x)
		g.AppendA(value, x)
		g.AppendB(value, x)
		g.AppendAKey(key, x)
		g.AppendBKey(key, x)
		w.PutA(value[:256], x, x > 0)
		w.PutB(value[:256], x, false)
		g.HasA(x)
		g.PartnerOf(x)
		if i, ok := g.Expected(x); ok {
			v.Match(x, i)
		}
		x++
	}); n != 0 {
		t.Errorf("%v allocations per record", n)
	}
}
