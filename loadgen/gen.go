package loadgen

import (
	"fmt"
	"math/bits"
	"slices"
	"sync"
)

// Gen makes the records of one workload and knows its truth. It is immutable; all its
// methods may be called by any number of goroutines. Indexes that are asked for must be
// below ACount or BCount; the methods do not check it but where they say so.
type Gen struct {
	cfg    Config
	a, b   side
	dup    strata    // of the odd B that are not late: duplicates; what is left is expired
	pairs  []pairing // of each B of a key
	as     int64     // A of a key
	units  int64     // keys whose A are all among the nA
	hot    *hot      // nil: no key is
	first  int64     // A indexes before B 0
	left   int64     // of these, the ones that are left out (see steady.go)
	lead   int64     // A that come after a B that may be their partner
	nA, nB int64
	after  int64 // ms
	ages   []int64
	keys   keyMaker
	tmplA  []template
	tmplB  []template
	salt   uint64
	// lateDecoys is the share, in 2^-64, of absent B that ask for a late A: one in 64, and on average each late A
	// once. A key that is asked hundreds of times makes one false positive of a filter hundreds.
	lateDecoys uint64
	// Shares of one: B that end, B that end or mark, A whose count is wrong.
	endsBelow, marksBelow, wrongBelow uint64
	statusSalt                        uint64

	// finite is the generator that this one goes on with (see Endless), nil in one that ends with BEvents.
	finite *Gen

	countOnce sync.Once
	expected  int64
}

// New checks c, with its defaults filled, and prepares a generator. The error names every
// fault of c.
func New(c Config) (*Gen, error) {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	g, err := newPlan(c)
	if err != nil {
		return nil, err
	}
	decoys := min(1.0/64, c.LateShareA*float64(g.nA)/float64(max(g.nB, 1)))
	g.lateDecoys = uint64(decoys * (1 << 63) * 2)
	g.keys = newKeyMaker(c, g.salt)
	g.tmplA, g.tmplB = templatesA(c, string(g.keys.blank)), templatesB(c, string(g.keys.blank))
	return g, nil
}

// newPlan computes everything but the record texts. It fails when the ages asked cannot
// be kept or the A do not suffice.
func newPlan(c Config) (*Gen, error) {
	salts := func(n uint64) uint64 { return mix(mix(c.Seed+0x9e3779b97f4a7c15) + n*0x9e3779b97f4a7c15) }
	g := &Gen{cfg: c, nB: c.BEvents, after: ms(c.After), salt: salts(1)}
	for _, a := range c.Ages {
		g.ages = append(g.ages, ms(a))
	}
	stepA, stepB := step(c.AEventsPerSec), step(c.BEventsPerSec)

	// B: matched, then of the rest the odd ones, and of these the late, the duplicates and
	// the expired. So most B, which are neither matched nor odd, are through after two.
	m, l, d, e := c.primaryShare(), c.LateShareB, c.Duplicates, c.Expired
	bs, as := uint64(c.Family.bs()), uint64(c.Family.as())
	pB := share(m) / bs * bs // of each B of a key as many
	g.b = side{step: stepB, parts: int64(c.PartitionsB), lanes: c.lanes(),
		disorder: ms(c.Disorder), grace: ms(c.Grace), salt: salts(2), matched: newStrata(pB, salts(3)),
		odd: newStrata(share(ofRest(l+d+e, 1-m)), salts(4)), late: newStrata(share(ofRest(l, l+d+e)), salts(5))}
	g.dup = newStrata(share(ofRest(d, d+e)), salts(6))

	// A: as many matched per ms as B has.
	pA, err := partnerShare(pB/bs*as, stepA, stepB)
	if err != nil {
		return nil, err
	}
	g.a = side{base0: Epoch, step: stepA, parts: int64(c.PartitionsA), lanes: 1,
		disorder: ms(c.Disorder), grace: ms(c.Grace), salt: salts(7), matched: newStrata(pA, salts(8)),
		odd: newStrata(share(ofRest(c.LateShareA, 1-float64(pA)/float64(one))), salts(9)), late: newStrata(one, 0)}
	perMs := float64(pB) / float64(one) / (float64(stepB) / (1 << stepBits))
	g.hot = newHot(c, perMs/float64(g.b.lanes))
	if g.as = int64(as); pB > 0 {
		if g.pairs, err = newPairings(c, perMs, salts(10)); err != nil {
			return nil, err
		}
	}
	g.statusSalt, g.lead = salts(11), c.leadA()
	g.endsBelow, g.marksBelow = share(c.Family.EndShare), share(c.Family.EndShare+c.Family.MarkShare)
	g.wrongBelow = share(c.Family.WrongCounts)
	if err := g.begin(); err != nil {
		return nil, err
	}
	g.b.base0 = Epoch + stepTime(uint64(g.first), stepA)

	g.nA = g.dueA(c.BEvents)
	g.units = int64(g.a.matched.count(uint64(g.nA))) / g.as
	return g, nil
}

// partnerShare returns the share of A that find a partner, pB·stepA/stepB in fixed point; pB is per A of a key.
func partnerShare(pB, stepA, stepB uint64) (uint64, error) {
	hi, lo := bits.Mul64(pB, stepA)
	if hi < stepB {
		p, _ := bits.Div64(hi, lo, stepB)
		if p <= one {
			return p, nil
		}
		if p-one <= one>>20 { // equal rates, apart by the rounding of the steps
			return one, nil
		}
	}
	return 0, fmt.Errorf("loadgen: match_rate needs more partners than there are A records")
}

// ofRest turns a share of all into a share of the rest that is left.
func ofRest(x, rest float64) float64 {
	if rest < 1e-12 {
		return 0
	}
	return x / rest
}

// Config returns the configuration with its defaults filled.
func (g *Gen) Config() Config {
	c := g.cfg
	c.Ages = slices.Clone(c.Ages)
	return c
}

// ACount returns the number of A indexes: those of the Pending A, and of those that come while B do. With Steady
// some of the first are no records (see HasA, LeftOut).
func (g *Gen) ACount() int64 { return g.nA }

// BCount returns the number of B records.
func (g *Gen) BCount() int64 { return g.nB }

// DueA returns how many A indexes come before B record j in the order of base times; j
// may be BCount, which gives ACount. A replay that keeps the order of event time hands
// over the A below DueA(j), then B j. The partner of j is always among them.
func (g *Gen) DueA(j int64) int64 { return min(g.nA, g.dueA(j)) }

func (g *Gen) dueA(j int64) int64 {
	// first + ceil(j·stepB/stepA); the quotient fits, Validate bounds it.
	hi, lo := bits.Mul64(uint64(j), g.b.step)
	q, r := bits.Div64(hi, lo, g.a.step)
	if r > 0 {
		q++
	}
	return g.first + g.lead + int64(q)
}

// PlaceA returns partition and offset of A record i.
func (g *Gen) PlaceA(i int64) (partition int32, offset int64) {
	return int32(i % g.a.parts), i / g.a.parts
}

// PlaceB returns partition and offset of B record j.
func (g *Gen) PlaceB(j int64) (partition int32, offset int64) {
	return int32(j % g.b.parts), j / g.b.parts
}

// IndexA returns the A record at a partition and offset; ok is false when there is none.
func (g *Gen) IndexA(partition int32, offset int64) (i int64, ok bool) {
	i, ok = index(partition, offset, g.a.parts, g.nA)
	return i, ok && g.HasA(i)
}

// IndexB returns the B record at a partition and offset; ok is false when there is none.
func (g *Gen) IndexB(partition int32, offset int64) (j int64, ok bool) {
	return index(partition, offset, g.b.parts, g.nB)
}

func index(partition int32, offset, parts, n int64) (int64, bool) {
	if partition < 0 || int64(partition) >= parts || offset < 0 || offset >= n {
		return 0, false
	}
	i := offset*parts + int64(partition)
	return i, i < n
}

// TimeA returns the event time of A record i in ms.
func (g *Gen) TimeA(i int64) int64 {
	t, _ := g.a.lateness(i)
	return t
}

// LateA says whether A record i is late by rule 8, read in order within its partition.
func (g *Gen) LateA(i int64) bool {
	_, late := g.a.lateness(i)
	return late
}

// TimeB returns the event time of B record j in ms.
func (g *Gen) TimeB(j int64) int64 { return g.fate(j).time }

// LateB says whether B record j is late by rule 8, read in order within its partition.
func (g *Gen) LateB(j int64) bool { return g.fate(j).kind == KindLate }

// KindB returns why B record j pairs or does not.
func (g *Gen) KindB(j int64) Kind { return g.fate(j).kind }
