package loadgen

import (
	"math/rand/v2"
	"testing"
)

// reference is a verifier that keeps everything.
type reference struct {
	g                            *Gen
	seen                         map[int64]bool
	usedA                        map[int64]bool
	spurious, duplicated, reused int64
}

func (r *reference) match(j, i int64) {
	if j < 0 || j >= r.g.nB || i < 0 || i >= r.g.nA {
		r.spurious++
		return
	}
	if r.usedA[i] && !r.g.cfg.OneToMany {
		r.reused++
	}
	r.usedA[i] = true
	switch want, ok := r.g.Expected(j); {
	case !ok || want != i:
		r.spurious++
	case r.seen[j]:
		r.duplicated++
	default:
		r.seen[j] = true
	}
}

func (r *reference) resultFor(n int64) Verdict {
	v := Verdict{Spurious: r.spurious, Duplicated: r.duplicated, Reused: r.reused}
	for j := range n {
		if _, ok := r.g.Expected(j); ok {
			v.Expected++
		}
	}
	for j := range r.seen {
		if j < n {
			v.Matches++
		} else {
			v.Beyond++
		}
	}
	v.Missing, v.Spurious = v.Expected-v.Matches, v.Spurious+v.Beyond
	return ofPairs(v)
}

// ofPairs says of the pairs what a verdict of pairs alone says of all lines.
func ofPairs(v Verdict) Verdict {
	v.Pairs = Tally{Expected: v.Expected, Seen: v.Matches, Missing: v.Missing, Spurious: v.Spurious, Duplicated: v.Duplicated}
	return v
}

// TestVerifierForgetsNothing: random pairs, right and wrong, in nearly their order, with restarts between: the verdict, for
// any cut, is that of a verifier that keeps everything. Some of the joins are right, so that pages are forgotten.
func TestVerifierForgetsNothing(t *testing.T) {
	seed := newSeed(t)
	rnd := rand.New(rand.NewPCG(seed, 11))
	forgotten := int64(0)
	for round := range 24 {
		c := small()
		c.Seed, c.OneToMany, c.BEvents = rnd.Uint64(), round%2 == 1, 1+rnd.Int64N(120_000)
		if round%8 > 5 {
			c.MatchRate, c.Duplicates, c.BEventsPerSec, c.BEvents = 2e-5, 0, 1e6, 2_000_000 // pages without a pair
		}
		g := mustNew(t, c)
		var js []int64
		for j := range g.BCount() {
			if _, ok := g.Expected(j); ok {
				js = append(js, j)
			}
		}
		for x := range js { // batches come in order, B within them as they like
			y := min(len(js)-1, x+rnd.IntN(200))
			js[x], js[y] = js[y], js[x]
		}
		missing := []float64{0, 0.0005, 0.3}[round%3]
		v, ref := g.NewVerifier(), &reference{g: g, seen: map[int64]bool{}, usedA: map[int64]bool{}}
		match := func(j, i int64) {
			v.Match(j, i)
			ref.match(j, i)
		}
		for x, j := range js {
			i, _ := g.Expected(j)
			if rnd.Float64() >= missing {
				match(j, i)
			}
			switch rnd.IntN(400) {
			case 0: // once more, an earlier one
				k := js[rnd.IntN(x+1)]
				a, _ := g.Expected(k)
				match(k, a)
			case 1: // two that do not belong together
				match(rnd.Int64N(g.BCount()), rnd.Int64N(g.ACount()))
			case 2:
				match(j, g.ACount()+rnd.Int64N(3))
				match(-1, i)
			case 3:
				restarted := g.NewVerifier()
				if err := restarted.SetState(v.AppendState(nil)); err != nil {
					t.Fatal(err)
				}
				v = restarted
			}
		}
		for _, n := range []int64{0, 1, g.BCount() - 1, g.BCount(), rnd.Int64N(g.BCount() + 1), rnd.Int64N(g.BCount() + 1)} {
			if got, want := v.ResultFor(n), ref.resultFor(n); got != want {
				t.Fatalf("seed %d, round %d, B below %d of %d: %+v, want %+v", seed, round, n, g.BCount(), got, want)
			}
		}
		forgotten += v.pairs.done
	}
	if forgotten == 0 {
		t.Errorf("seed %d: no page was ever forgotten", seed)
	}
}

// TestVerifierIsBounded: a right join that goes on and on costs a few pages.
func TestVerifierIsBounded(t *testing.T) {
	c := small()
	c.BEvents = 1000
	g := mustNew(t, c).Endless()
	v := g.NewVerifier()
	const n = 1 << 22
	for j := range int64(n) {
		if i, ok := g.Expected(j); ok {
			v.Match(j, i)
		}
	}
	if v.pairs.done != n>>pageBits || len(v.pairs.pages)+len(v.pairs.full)+len(v.wrongA) > 1 {
		t.Errorf("after %d B: pages below %d forgotten, %d kept, %d full, %d of wrong A", n, v.pairs.done, len(v.pairs.pages), len(v.pairs.full), len(v.wrongA))
	}
	if r := v.ResultFor(n); !r.Right() || r.Matches != v.pairs.seen || r.Matches < n/25 {
		t.Errorf("verdict %+v", r)
	}
}

// TestVerifierStateIsChecked: a state that was cut or has a tail is refused, and the verifier stays as it was.
func TestVerifierStateIsChecked(t *testing.T) {
	g := mustNew(t, small())
	v := g.NewVerifier()
	for j := range g.BCount() / 2 {
		if i, ok := g.Expected(j); ok && j%1000 != 7 {
			v.Match(j, i)
		}
	}
	v.Match(absentB(t, g), 5)
	whole := v.AppendState([]byte("x"))[1:]
	for n := range len(whole) {
		if n > 100 && n < len(whole)-100 && n%97 != 0 {
			continue
		}
		if err := v.SetState(whole[:n]); err == nil {
			t.Fatalf("%d of %d bytes were taken", n, len(whole))
		}
	}
	if v.SetState(append([]byte{9}, whole[1:]...)) == nil || v.SetState(append(whole, 0)) == nil {
		t.Error("another version or a tail was taken")
	}
	if string(v.AppendState(nil)) != string(whole) {
		t.Error("a refused state changed the verifier")
	}
}

// TestEndless: what goes on begins as what ends, has the same name, and goes on far.
func TestEndless(t *testing.T) {
	for _, many := range []bool{false, true} {
		c := small()
		c.OneToMany = many
		g := mustNew(t, c)
		e := g.Endless()
		if e.Fingerprint() != g.Fingerprint() || e.Endless() != e || e.Config().BEvents != c.BEvents {
			t.Error("another fingerprint or configuration")
		}
		for j := range g.BCount() {
			_, one, at := g.RecordB(nil, nil, j)
			_, other, at2 := e.RecordB(nil, nil, j)
			i, ok := g.Expected(j)
			i2, ok2 := e.Expected(j)
			if string(one) != string(other) || at != at2 || i != i2 || ok != ok2 || g.DueA(j) != e.DueA(j) {
				t.Fatalf("B %d: %s, endless %s", j, one, other)
			}
		}
		for i := range g.ACount() {
			if string(g.AppendA(nil, i)) != string(e.AppendA(nil, i)) || g.TimeA(i) != e.TimeA(i) {
				t.Fatalf("A %d differs", i)
			}
		}
		if e.BCount() < 1<<36 || e.ACount() <= g.ACount() || e.TimeB(e.BCount()-1) > Epoch+ms(MaxSpan) {
			t.Errorf("ends with B %d, A %d", e.BCount(), e.ACount())
		}
		last := e.BCount() - 1
		for range 1000 { // far out pairs are as good as near
			k := e.b.matched.blockOf(uint64(last))
			j := int64(e.b.matched.slot(k - 1))
			if i, ok := e.Expected(j); !ok || string(e.AppendAKey(nil, i)) != string(e.AppendBKey(nil, j)) || e.TimeB(j)-e.TimeA(i) > ms(c.After) {
				t.Fatalf("B %d pairs with A %d %v", j, i, ok)
			}
			last -= last / 300
		}
	}
}

// TestEndlessStaysInsideTheLimits: whatever is valid can go on.
func TestEndlessStaysInsideTheLimits(t *testing.T) {
	for _, change := range []func(*Config){
		func(c *Config) { c.BEventsPerSec, c.MatchRate, c.Duplicates, c.BEvents = 0.001, 0, 0, 10 },
		func(c *Config) { c.AEventsPerSec, c.BEventsPerSec = 1e9, 1e9 },
		func(c *Config) { c.Pending, c.AEventsPerSec = MaxRecords-6_000_000, 100_000 },
		func(c *Config) { c.BEvents = 0 },
	} {
		c := small()
		change(&c)
		g, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		e := g.Endless()
		all := g.Config()
		all.BEvents = e.BCount()
		if err := all.Validate(); err != nil || e.BCount() < g.BCount() {
			t.Errorf("%+v goes on to %d B: %v", c, e.BCount(), err)
		}
	}
}
