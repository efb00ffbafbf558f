package loadgen

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"testing"
)

// event is a record as a join by the rules reads it: from its JSON alone.
type event struct {
	row
	Status string      `json:"status"`
	Lines  json.Number `json:"line_count"`

	index, offset int64
	part          int
}

// wanted is rule 19: a whole number from 1 to 999,999, else none.
func (e *event) wanted() uint32 {
	if n, err := strconv.Atoi(string(e.Lines)); err == nil && n >= 1 && n <= 999_999 {
		return uint32(n)
	}
	return 0
}

// readEvents generates n records and reads them; places, if not nil, say how far each partition was read. An event that is no
// record, late or not read is nil.
func readEvents(t *testing.T, n int64, parts int, grace int64, places []int64, has func(int64) bool, text func([]byte, int64) []byte) []*event {
	rows := readSide(t, n, parts, grace, has, text)
	out := make([]*event, n)
	for i := range rows {
		e := &event{row: rows[i], index: int64(i), offset: int64(i / parts), part: i % parts}
		if e.gone || e.late || places != nil && e.offset >= places[e.part] {
			continue
		}
		if err := json.Unmarshal(text(nil, int64(i)), e); err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		out[i] = e
	}
	return out
}

// line is one line of a result.
type line struct {
	kind  int // pairLines …
	j, i  int64
	says  Says
	group *Group
}

// waiter is an A in the join.
type waiter struct {
	*event
	met, paired, ended, corrected bool
	group                         []*event
}

// joinByRules is a nested loop over events, by rules 1, 2 and 16 to 19 as they are written. order are the B as they ask, all
// A being there, but for those that came says are still to come.
type joinByRules struct {
	c   Config
	r   Rules
	cut Cut // places are not looked at
	// came says whether an A had come when a B asked; nil: always.
	came  func(a, b *event) bool
	lines []line
}

func (n *joinByRules) run(as []*event, bs []*event) []line {
	byKey := map[string][]*waiter{}
	var all []*waiter
	for _, a := range as {
		if a != nil {
			w := &waiter{event: a}
			byKey[a.Ref] = append(byKey[a.Ref], w)
			all = append(all, w)
		}
	}
	for _, b := range bs {
		if b != nil {
			n.ask(b, byKey[b.Ref])
		}
	}
	for _, a := range all {
		n.close(a)
	}
	return n.lines
}

func (n *joinByRules) say(l line) { n.lines = append(n.lines, l) }

func (n *joinByRules) ask(b *event, ofKey []*waiter) {
	var fit []*waiter
	for _, a := range ofKey {
		used := a.ended || n.r.Cardinality == OneToOne && a.paired
		if !used && a.TS-ms(n.c.Before) <= b.TS && b.TS <= a.TS+ms(n.c.After) && (n.came == nil || n.came(a.event, b)) {
			fit = append(fit, a)
		}
	}
	slices.SortFunc(fit, func(x, y *waiter) int { return byPlace(x.event, y.event) })
	if n.r.Cardinality != ManyToMany && len(fit) > 1 {
		fit = fit[:1]
	}
	for _, a := range fit {
		n.meet(a, b)
	}
	if len(fit) == 0 && n.r.NullsB && (n.r.Probe != Wait || b.TS < n.cut.ClosedB) {
		n.say(line{kind: nullBLines, j: b.index})
	}
}

func byPlace(x, y *event) int {
	switch {
	case x.TS != y.TS:
		return int(x.TS - y.TS)
	case x.part != y.part:
		return x.part - y.part
	}
	return int(x.offset - y.offset)
}

func (n *joinByRules) meet(a *waiter, b *event) {
	first := !a.met
	a.met = true
	if first && n.r.Early > 0 && b.TS > a.TS+n.r.Early {
		n.say(line{kind: nullALines, i: a.index})
		a.corrected = true
	}
	ends := n.r.CompleteOn != EndsNothing && b.Status == "declined"
	a.ended = ends
	if ends && n.r.CompleteOn != EndsWithPair {
		if first && !a.corrected && n.r.CompleteOn == EndsUnmatched && n.r.NullsA {
			n.say(line{kind: nullALines, i: a.index})
		}
		n.out(a, false)
		return
	}
	says := Says(0)
	if a.corrected && !a.paired {
		says = n.correction()
	}
	a.paired = true
	if n.r.Collect == Eager {
		n.say(line{kind: pairLines, j: b.index, i: a.index, says: says})
		return
	}
	a.group = append(a.group, b)
	full := n.r.Collect == Count && int(a.wanted()) == len(a.group) || n.r.Collect == Marker && b.Status == "settled"
	if full || ends {
		a.ended = true
		n.out(a, full)
	}
}

func (n *joinByRules) correction() Says {
	if n.r.Retract {
		return Corrects | Retracts
	}
	return Corrects
}

// out gives the group of an A, if it has one.
func (n *joinByRules) out(a *waiter, full bool) {
	if len(a.group) == 0 {
		return
	}
	g := &Group{A: a.index, Complete: full || n.r.Collect == Timeout}
	if n.r.Collect == Count {
		g.Wanted = a.wanted()
	}
	if a.corrected {
		g.Says = n.correction()
	}
	slices.SortFunc(a.group, byPlace)
	for _, b := range a.group {
		g.B = append(g.B, b.index)
	}
	n.say(line{kind: groupLines, i: a.index, group: g})
}

func (n *joinByRules) close(a *waiter) {
	switch {
	case a.met:
		if !a.ended && a.TS < n.cut.ClosedA {
			n.out(a, false)
		}
	case n.r.Early > 0:
		if a.TS < n.cut.EarlyA {
			n.say(line{kind: nullALines, i: a.index})
		}
	case n.r.NullsA && a.TS < n.cut.ClosedA:
		n.say(line{kind: nullALines, i: a.index})
	}
}

// hand gives a line to a verifier.
func (l *line) hand(v *Verifier) {
	switch l.kind {
	case pairLines:
		v.Pair(l.j, l.i, l.says)
	case nullALines:
		v.NullA(l.i)
	case nullBLines:
		v.NullB(l.j)
	default:
		v.Group(l.group)
	}
}

// drained are limits that let everything go.
var drained = Cut{ClosedA: math.MaxInt64, EarlyA: math.MaxInt64, ClosedB: math.MaxInt64}
