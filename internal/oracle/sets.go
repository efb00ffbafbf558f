package oracle

import "slices"

// set is events of one key that a chain of possible pairs connects: only they can influence each other. An event without any
// possible partner is a set of its own.
type set struct {
	as []*Event // as in a group
	bs []*Event
}

// split divides a group into its sets.
func (c *Config) split(g *group) []*set {
	events := append(slices.Clone(g.as), g.bs...)
	label := make([]int, len(events)) // the set of an event, named by one of its members
	for i := range label {
		label[i] = i
	}
	find := func(i int) int {
		for label[i] != i {
			i = label[i]
		}
		return i
	}
	for i, a := range g.as {
		for j, b := range g.bs {
			if c.inWindow(a, b) {
				label[find(len(g.as)+j)] = find(i)
			}
		}
	}
	byLabel := map[int]*set{}
	var sets []*set
	for i, ev := range events {
		s := byLabel[find(i)]
		if s == nil {
			s = &set{}
			byLabel[find(i)] = s
			sets = append(sets, s)
		}
		if ev.sideB {
			s.bs = append(s.bs, ev)
		} else {
			s.as = append(s.as, ev)
		}
	}
	return sets
}

// settled says whether the outcome of a set depends on nothing that the rules leave open: the order in which B of different
// partitions ask, or when B that are not aligned do.
func (c *Config) settled(s *set) bool {
	if len(s.as) == 0 || len(s.bs) == 0 {
		return true
	}
	switch {
	case c.Probe == Immediate:
		return false // any pair may be missed
	case c.Cardinality == OneToOne && c.Probe == Wait:
		return len(s.as) == 1 && len(s.bs) == 1
	case c.Cardinality == OneToMany && c.Probe == Wait:
		return !slices.ContainsFunc(s.bs, func(b *Event) bool { return len(c.partners(s, b)) > 1 })
	case s.bs[0].Partition == s.bs[len(s.bs)-1].Partition:
		return true
	}
	return c.Cardinality != OneToOne && !c.depends(s)
}

// partners are the A of a set that a B can pair with.
func (c *Config) partners(s *set, b *Event) (as []*Event) {
	for _, a := range s.as {
		if c.inWindow(a, b) {
			as = append(as, a)
		}
	}
	return as
}

// depends says whether it matters which B of a set asks first, where no pair consumes its A: if one may end an A, come
// too late for its null row, or fill its group.
func (c *Config) depends(s *set) bool {
	for _, b := range s.bs {
		if b.Ends || b.Marks {
			return true
		}
		for _, a := range c.partners(s, b) {
			if c.tooLate(a, b) || a.Wanted > 0 {
				return true
			}
		}
	}
	return false
}
