package oracle

import "slices"

// kind is what an output is.
type kind int

const (
	pairOut  kind = iota
	groupOut      // an A with all its B
	nullOut       // an event without a partner
	tombOut       // takes a null row back
)

// out is one thing that comes out.
type out struct {
	kind  kind
	a     *Event   // nil for the null row of a B
	bs    []*Event // of a pair one, of a group all that it has
	b     *Event   // of the null row of a B
	text  string   // its line; "" for a null row that is none of the results, but goes to the unmatched file
	early bool     // a null row by rule 17

	corrected bool // a pair or a group
	complete  bool // a group
}

// life is what has become of an A so far. A null row that comes out by time alone is not written down until its first B, or
// the end: what it says is known then, and where it stands among other lines does not matter.
type life struct {
	a    *Event
	got  []*Event // B that paired with it or wait in its group, in the order in which they asked
	met  *Event   // the first B that paired with it or ended it
	over bool     // no other B pairs with it
}

// model is the join of one key (or a part of it): its B ask one after another.
type model struct {
	e     *Expected
	lives []life // in the order in which a B prefers them
	out   []out
}

func newModel(e *Expected, as []*Event) *model {
	m := &model{e: e}
	for _, a := range as {
		m.lives = append(m.lives, life{a: a})
	}
	return m
}

// ask lets a B ask (rule 2): for the earliest A that waits, or for all of them.
func (m *model) ask(b *Event) {
	cfg, found := &m.e.cfg, false
	for i := range m.lives {
		l := &m.lives[i]
		if l.over || !cfg.inWindow(l.a, b) {
			continue
		}
		found = true
		m.meet(l, b)
		if cfg.Cardinality != ManyToMany {
			break
		}
	}
	if !found && m.e.closedB(b) {
		m.out = append(m.out, m.e.nullRow(b))
	}
}

// meet is what becomes of an A and a B that asks for it.
func (m *model) meet(l *life, b *Event) {
	cfg := &m.e.cfg
	if l.met == nil {
		l.met = b
	}
	if b.Ends && cfg.CompleteOn.Emit != EmitPair {
		m.end(l)
		return
	}
	l.got = append(slices.Clip(l.got), b) // a copy, so that a life can be tried twice
	if !cfg.collects() {
		m.pair(l, b)
		l.over = b.Ends || cfg.Cardinality == OneToOne
		return
	}
	full := cfg.fills(l.a, b, len(l.got))
	if full || b.Ends {
		m.group(l, full)
		l.over = true
	}
}

// end is an A that is ended without a pair (rule 18): its null row, if it is due by rule 17 or wanted instead, unless the A
// has paired. A group that has gathered B comes out as it is.
func (m *model) end(l *life) {
	cfg := &m.e.cfg
	l.over = true
	switch {
	case len(l.got) > 0 && cfg.collects():
		m.group(l, false)
	case len(l.got) > 0:
	case cfg.tooLate(l.a, l.met):
		m.null(l, true)
	case cfg.CompleteOn.Emit == EmitUnmatched:
		m.null(l, false)
	}
}

// pair prints a pair, and before the first one what rule 17 puts there.
func (m *model) pair(l *life, b *Event) {
	o := out{kind: pairOut, a: l.a, bs: []*Event{b}, text: Line(l.a, b)}
	if len(l.got) == 1 && m.correct(l) {
		o.text, o.corrected = correctedLine(l.a, b), true
	}
	m.out = append(m.out, o)
}

// group prints the group of an A. With timeout it is complete whenever it comes.
func (m *model) group(l *life, complete bool) {
	corrected := m.correct(l)
	complete = complete || m.e.cfg.Collect.Mode == Timeout
	m.out = append(m.out, out{kind: groupOut, a: l.a, bs: l.got, text: groupLine(l.a, l.got, corrected, complete),
		corrected: corrected, complete: complete})
}

// correct prints the null row of an A whose first B came too late, and its tombstone.
func (m *model) correct(l *life) bool {
	if !m.e.cfg.tooLate(l.a, l.met) {
		return false
	}
	m.null(l, true)
	if m.e.cfg.Retract {
		m.out = append(m.out, out{kind: tombOut, a: l.a, text: tombstone(l.a)})
	}
	return true
}

func (m *model) null(l *life, early bool) {
	o := m.e.nullRow(l.a)
	o.early = early
	m.out = append(m.out, o)
}

// close is the fate of one A when no more B ask.
func (m *model) close(a *Event) {
	l := &m.lives[slices.IndexFunc(m.lives, func(l life) bool { return l.a == a })]
	cfg, closed, certain := &m.e.cfg, m.e.closedA(a), m.e.certain(a)
	switch {
	case l.over:
	case len(l.got) > 0 && !cfg.collects(): // it has paired, and may go on waiting
	case len(l.got) > 0 && closed:
		m.group(l, false)
		l.over = true
	case len(l.got) > 0: // its group is open, but that B decided
		if cfg.tooLate(a, l.met) {
			m.null(l, true)
		}
	case certain:
		m.null(l, true)
	case closed:
		m.null(l, false)
	}
	l.over = l.over || closed
}

// closedA: no B in time can match it any more (rule 10).
func (e *Expected) closedA(a *Event) bool {
	return e.wm[1] > a.Time+e.cfg.After.Milliseconds()+e.cfg.Grace.Milliseconds()
}

// closedB: an aligned B, and one that asks at once and never again, is over when it has asked; one that waits is when no A
// in time can match it (rules 10 and 12).
func (e *Expected) closedB(b *Event) bool {
	return e.cfg.Probe != Wait || e.wm[0] > b.Time+e.cfg.Before.Milliseconds()+e.cfg.Grace.Milliseconds()
}

// certain: no B in time can come within the A's early time (rule 17).
func (e *Expected) certain(a *Event) bool {
	return e.cfg.Early > 0 && e.wm[1] > a.Time+e.cfg.Early.Milliseconds()+e.cfg.Grace.Milliseconds()
}

// nullRow is an event without a partner: one of the results if the type of the join has its side.
func (e *Expected) nullRow(ev *Event) out {
	o := out{kind: nullOut, a: ev}
	side := byte('a')
	if ev.sideB {
		o.a, o.b, side = nil, ev, 'b'
	}
	if e.cfg.nulls(side) {
		o.text = NullLine(ev)
	}
	return o
}
