package oracle

import "fmt"

// Totals are counters of the results, by the names of the interface. Null rows by rule 17 are in UnmatchedA too: they are
// rows with null.
type Totals struct {
	Outputs, Matches, UnmatchedA, UnmatchedB, Early, Corrected, Retracted int64

	// Of a join without a drain: A that wait for B, and (with probe wait) B that wait for A. Of a group the A waits; the B
	// that it has gathered are Gathered.
	PendingA, PendingB, Gathered int64

	// Events that closed without a partner and are none of the results: the unmatched file has them, if there is one.
	ClosedA, ClosedB int64
}

func (t *Totals) add(o out) {
	if o.text != "" {
		t.Outputs++
	}
	t.Matches += int64(len(o.bs))
	if o.corrected {
		t.Corrected++
	}
	if o.early {
		t.Early++
	}
	switch {
	case o.kind == tombOut:
		t.Retracted++
	case o.kind != nullOut:
	case o.text != "" && o.b != nil:
		t.UnmatchedB++
	case o.text != "":
		t.UnmatchedA++
	case o.b != nil:
		if !o.b.NullKey {
			t.ClosedB++
		}
	case !o.a.NullKey:
		t.ClosedA++
	}
}

// pending counts what waits when input stops without a drain.
func (e *Expected) pending(models map[Key]*model) (as, bs int64) {
	paired := map[*Event]bool{}
	for _, p := range e.Pairs {
		paired[p.B] = true
	}
	for k, g := range e.groups {
		if m := models[k]; m != nil {
			for _, l := range m.lives {
				if l.over {
					continue
				}
				as++
				if e.cfg.collects() {
					e.Totals.Gathered += int64(len(l.got))
				}
			}
		}
		if e.cfg.Probe != Wait {
			continue
		}
		for _, b := range g.bs {
			if !e.closedB(b) && (!paired[b] || e.cfg.Cardinality == ManyToMany) {
				bs++
			}
		}
	}
	return as, bs
}

// CheckTotals holds counters of the product against the lines of the same join, which are right, and against those of its
// unmatched file, if there is one: events in it count as unmatched too. Gathered, ClosedA and ClosedB are not looked at.
//
// Where there are several right answers some counters are not decided by the lines: Early with complete_on, and what is pending
// with groups or complete_on. They are not looked at then. What is closed may still be counted as pending while its bucket is
// there.
func (e *Expected) CheckTotals(got Totals, lines, unmatched []string, topicA, topicB string) error {
	outs, err := e.see(lines)
	if err != nil {
		return err
	}
	var want Totals
	for _, o := range outs {
		if o.kind == nullOut && o.a != nil && !o.a.NullKey {
			o.early = e.cfg.Early > 0
		}
		want.add(o)
	}
	for _, l := range unmatched {
		v, err := parseJSON([]byte(l))
		if err != nil {
			return fmt.Errorf("unmatched line %s: %w", l, err)
		}
		at, _, err := placeOf(v, topicA, topicB)
		switch {
		case err != nil:
			return fmt.Errorf("unmatched line %s: %w", l, err)
		case at.side == 'a':
			want.UnmatchedA++
		default:
			want.UnmatchedB++
		}
	}
	e.decide(&want, &got, outs)
	for side, level := range [2]struct{ got, want *int64 }{{&got.PendingA, &want.PendingA}, {&got.PendingB, &want.PendingB}} {
		if over := *level.got - *level.want; over > 0 && over <= e.unswept(side) {
			*level.want = *level.got
		}
	}
	got.Gathered, got.ClosedA, got.ClosedB = 0, 0, 0
	if got != want {
		return fmt.Errorf("counters\n got %+v\nwant %+v", got, want)
	}
	return nil
}

// decide fills in what lines do not show.
func (e *Expected) decide(want, got *Totals, outs []out) {
	switch {
	case e.Exact:
		want.Early, want.PendingA, want.PendingB = e.Totals.Early, e.Totals.PendingA, e.Totals.PendingB
		return
	case e.cfg.CompleteOn.Emit != "":
		want.Early = got.Early
	}
	if e.cfg.collects() || e.cfg.CompleteOn.Emit != "" {
		want.PendingA, want.PendingB = got.PendingA, got.PendingB
		return
	}
	used := map[*Event]bool{}
	for _, o := range outs {
		for _, b := range o.bs {
			used[b] = e.cfg.Cardinality != ManyToMany
			used[o.a] = e.cfg.Cardinality == OneToOne
		}
	}
	for _, g := range e.groups {
		for _, a := range g.as {
			if !used[a] && !e.closedA(a) {
				want.PendingA++
			}
		}
		for _, b := range g.bs {
			if !used[b] && !e.closedB(b) {
				want.PendingB++
			}
		}
	}
}

// unswept counts the events of a side that are closed and whose bucket may be there all the same, for its newest possible event
// is not (rule 11).
func (e *Expected) unswept(side int) (n int64) {
	cfg := &e.cfg
	if !cfg.NoDrain || cfg.Buckets == 0 || e.wm[1-side] <= never {
		return 0
	}
	floor := cfg.epoch(e.wm[1-side] - []int64{cfg.After.Milliseconds(), cfg.Before.Milliseconds()}[side] - cfg.Grace.Milliseconds())
	for _, f := range e.records[side] {
		if f.fate == "accepted" && cfg.epoch(f.event.Time) == floor && []func(*Event) bool{e.closedA, e.closedB}[side](f.event) {
			n++
		}
	}
	return n
}
