package loadgen

import (
	"errors"
	"fmt"
)

// Rules are what decides, beside the records, what comes out of a join. The rules that the comments name are those of the join.
type Rules struct {
	Cardinality Cardinality
	Probe       Probe
	Collect     Collect
	CompleteOn  Ending
	NullsA      bool  // A that nothing pairs with or ends come out (left, outer)
	NullsB      bool  // B likewise (right, outer)
	Early       int64 // ms; 0: off (rule 17)
	Retract     bool
}

// Cardinality of the join (rule 2).
type Cardinality uint8

// The cardinalities. Config.OneToMany stands for the last two.
const (
	OneToOne Cardinality = iota
	OneToMany
	ManyToMany
)

// Probe says when B ask (rule 12).
type Probe uint8

// The ways.
const (
	Aligned Probe = iota
	Wait
	Immediate
)

// Collect says when the group of an A comes out (rule 19).
type Collect uint8

// The ways: there are no groups; at the close; with the nth B; with a marker.
const (
	Eager Collect = iota
	Timeout
	Count
	Marker
)

// Ending is what becomes of an A with a B that ends it (rule 18).
type Ending uint8

// The endings: no B ends its A; the last pair; the null row unless it has paired; neither.
const (
	EndsNothing Ending = iota
	EndsWithPair
	EndsUnmatched // in joins with null rows of A, else as EndsSilently
	EndsSilently
)

// Plain are the rules of an inner join of the workload without more.
func (c Config) Plain() Rules {
	if c.Family.as() > 1 {
		return Rules{Cardinality: ManyToMany}
	}
	if c.OneToMany {
		return Rules{Cardinality: OneToMany}
	}
	return Rules{}
}

// Check says whether this workload, of which the defaults are filled, has one truth under some rules. The error names every
// fault, and what of the workload is to be changed.
func (c Config) Check(r Rules) error {
	f := &faults{}
	m := c.Family
	if c.OneToMany == (r.Cardinality == OneToOne) {
		f.add("the workload was planned for another cardinality")
	}
	if m.as() > 1 && r.Cardinality != ManyToMany {
		f.add("a_per_key %d needs cardinality many-to-many", m.as())
	}
	c.checkGroups(r, f)
	if r.CompleteOn != EndsNothing && m.EndShare == 0 {
		f.add("complete_on without a share of B that end their A: set end_share")
	}
	if c.Zipf > 0 && c.Duplicates > 0 && r.Cardinality != OneToOne && (r.Early > 0 || r.CompleteOn != EndsNothing) {
		f.add("hot duplicates %g ask for an A from several partitions, and so early and complete_on are not certain (rules 17 and 18): set duplicates 0, or keys uniform",
			c.Duplicates)
	}
	if r.Early < 0 || r.Early > 0 && r.Early >= ms(c.After) {
		f.add("early %d ms is not between 0 and after", r.Early)
	}
	c.checkProbe(r, f)
	return errors.Join(f.list...)
}

func (c Config) checkGroups(r Rules, f *faults) {
	if r.Collect == Eager {
		return
	}
	if r.Cardinality != OneToMany {
		f.add("collect needs cardinality one-to-many")
	}
	if c.Duplicates > 0 {
		f.add("duplicates %g would belong to groups that nobody can foresee: with collect set duplicates 0, and b_per_a for the B of a group", c.Duplicates)
	}
	if r.Collect == Count && !c.Family.Counts {
		f.add("collect by count needs A that have one: set counts")
	}
}

// checkProbe: where B do not ask in the order of their time, which of several wins may vary (rule 2).
func (c Config) checkProbe(r Rules, f *faults) {
	if r.Probe == Aligned {
		return
	}
	if r.Early > 0 || r.CompleteOn != EndsNothing || r.Collect != Eager {
		f.add("early, complete_on and collect need B that ask aligned (rule 12)")
	}
	if c.Duplicates > 0 && (r.Probe == Immediate || r.Cardinality == OneToOne) {
		f.add("duplicates %g: which of several B an A pairs with is not certain unless they are aligned (rule 2): set duplicates 0", c.Duplicates)
	}
	if c.Family.bs() > 1 && r.Cardinality == OneToOne {
		f.add("b_per_a %d: which of several B an A pairs with is not certain unless they are aligned (rule 2): set b_per_a 1, or another cardinality", c.Family.bs())
	}
}

// Truth is what comes out of a join by some rules: for each pair, null row and group whether it does. All of it is a function of
// indexes; like its Gen a Truth is immutable.
type Truth struct {
	g *Gen
	r Rules
	// simple: every B that asks for an A in its window pairs with it: neither order nor ends matter.
	simple bool
	lines  bool // A may have lines of their own: null rows, groups
}

// Truth returns the truth of a join by some rules; the error is that of Config.Check.
func (g *Gen) Truth(r Rules) (*Truth, error) {
	if err := g.cfg.Check(r); err != nil {
		return nil, fmt.Errorf("what this join gives of this workload is not known beforehand: %w", err)
	}
	return g.truth(r), nil
}

func (g *Gen) truth(r Rules) *Truth {
	t := &Truth{g: g, r: r}
	t.simple = r.CompleteOn == EndsNothing && r.Collect == Eager && (len(g.pairs) <= 1 || r.Cardinality != OneToOne)
	t.lines = r.NullsA || r.Early > 0 || r.Collect != Eager
	return t
}

// Rules returns the rules.
func (t *Truth) Rules() Rules { return t.r }
