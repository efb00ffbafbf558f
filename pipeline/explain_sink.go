package pipeline

import (
	"fmt"

	"joinbench/buckets"
	"joinbench/core"
)

// The explainer as core.Sink: what concerns the key goes on to the fileSink, and its lines become steps.

// Restore implements core.Sink: the state is always new.
func (x *explainer) Restore([]byte) error { return nil }

// State implements core.Sink.
func (x *explainer) State(dst []byte) ([]byte, error) { return dst, nil }

// Results implements core.Sink.
func (x *explainer) Results(out *core.Output) error {
	if len(x.places) == 0 {
		return nil
	}
	for i := range out.Matches {
		if m := &out.Matches[i]; x.eventAt(m.Ref) != nil {
			if err := x.match(m); err != nil {
				return err
			}
		}
	}
	for i := range out.Groups {
		if err := x.group(&out.Groups[i]); err != nil {
			return err
		}
	}
	for _, list := range []struct {
		entries [][]byte
		early   bool
	}{{out.Early, true}, {out.UnmatchedA, false}, {out.WaitedB, false}} {
		for _, raw := range list.entries {
			if err := x.alone(raw, list.early); err != nil {
				return err
			}
		}
	}
	for _, r := range out.UnmatchedB {
		e := x.eventAt(r)
		if e == nil {
			continue
		}
		lines, err := x.render(core.Output{UnmatchedB: []core.Ref{r}})
		if err != nil {
			return err
		}
		x.leave(e, lines, fmt.Sprintf("no %s that it may pair with is there", upper(1-e.Side)))
	}
	return nil
}

// match is a pair, or the null row in its place.
func (x *explainer) match(m *core.Match) error {
	waited, entry, err := x.event(m.Entry)
	if err != nil || waited == nil {
		return err
	}
	lines, err := x.render(core.Output{Matches: []core.Match{*m}})
	if err != nil {
		return err
	}
	if m.Kind&core.NullOnly != 0 {
		x.leave(waited, lines, "its end lets it out alone")
		return nil
	}
	asks := x.eventAt(m.Ref)
	a, b := waited, asks
	if entry.SideB {
		a, b = b, a
	}
	x.paired(a, b, x.kindText(m.Kind)).Output = lines
	x.step(b, "pair", 1, "paired with "+a.ID, a)
	return nil
}

// paired books a pair with the A, and says who does not wait any more.
func (x *explainer) paired(a, b *ExplainedEvent, more string) *ExplainStep {
	a.pairs++
	b.pairs++
	switch x.out.cfg.Cardinality {
	case core.OneToOne:
		a.waits, b.waits = false, false
	case core.OneToMany:
		b.waits = false
	}
	return x.step(a, "pair", 1, "paired with "+b.ID+", "+x.distance(b, a)+more, b)
}

// kindText says what comes with a first pair.
func (x *explainer) kindText(k core.MatchKind) string {
	switch text := fmt.Sprintf("; too late for early (tA + %s), so it corrects a null row (rule 17)", msText(x.out.cfg.Early)); {
	case k&core.Corrected == 0:
		return ""
	case k&core.NullFirst != 0:
		return text + ", which comes just before"
	default:
		return text
	}
}

func (x *explainer) group(g *core.Group) error {
	a, _, err := x.event(g.A)
	if err != nil || a == nil {
		return err
	}
	lines, err := x.render(core.Output{Groups: []core.Group{*g}})
	if err != nil {
		return err
	}
	what := "complete"
	if !g.Complete {
		what = "incomplete"
		if g.Wanted > 0 {
			what += fmt.Sprintf(", %d wanted", g.Wanted)
		}
	}
	why := ", because it closes: " + x.closedBy(a)
	if a.Time >= x.last.limits[core.A].Closed || a.ended {
		why = ""
	}
	a.grouped, a.waits = true, false
	x.step(a, "group", 19, fmt.Sprintf("its group of %d B comes out, %s%s%s", len(g.B), what, why, x.kindText(g.Kind))).Output = lines
	for _, raw := range g.B {
		b, err := buckets.ParseEntry(raw)
		if err != nil {
			return err
		}
		if e := x.places[place{core.B, b.Partition, b.Offset}]; e != nil {
			e.grouped = true
			x.step(e, "group", 19, "comes out in the group of "+a.ID, a)
		}
	}
	return nil
}

// alone is an entry that comes out without a partner.
func (x *explainer) alone(raw []byte, early bool) error {
	e, _, err := x.event(raw)
	if err != nil || e == nil {
		return err
	}
	out := core.Output{Early: [][]byte{raw}}
	if !early {
		out = core.Output{UnmatchedA: [][]byte{raw}} // the sink goes by the entry's side
	}
	lines, err := x.render(out)
	if err != nil {
		return err
	}
	if early {
		e.early = true
		x.step(e, "early", 17, x.whyEarly(e)).Output = lines
		return nil
	}
	x.leave(e, lines, "it closes alone: "+x.closedBy(e))
	return nil
}

// leave is an event that leaves without a partner.
func (x *explainer) leave(e *ExplainedEvent, lines []ExplainedLine, why string) {
	e.unmatched, e.waits = true, false
	x.step(e, "unmatched", 16, why).Output = lines
}
