package oracle

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// CheckUnmatched holds the lines of an unmatched file, whose topics are named topicA and topicB, against the lines of the
// same join, which are right: every event that closed without a partner, and is none of the results, is there once, with
// reason "unmatched", and nothing else is. Of what waited, an A or with probe wait a B, it wants what the state keeps: event
// time, join key and kept fields.
//
// It knows events by what is printed of them, so the kept fields of each side must hold a unique id.
func (e *Expected) CheckUnmatched(lines, unmatched []string, topicA, topicB string) error {
	waiting, err := e.unnamed(lines)
	if err != nil {
		return err
	}
	wrote := map[*Event]bool{}
	for _, l := range unmatched {
		ev, err := e.take(waiting, l, topicA, topicB)
		if err != nil {
			return fmt.Errorf("unmatched line %s: %w", l, err)
		}
		wrote[ev] = true
	}
	for _, s := range e.sets {
		for _, list := range [][]*Event{s.as, s.bs} {
			for _, ev := range list {
				side := "ab"[bit(ev.sideB)]
				named := waiting[place{side, ev.Partition, ev.Offset}] == nil && !wrote[ev]
				if err := e.checkWrote(s, ev, wrote[ev], named); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// checkWrote says whether an event belongs into the unmatched file or not; named ones are in the results.
func (e *Expected) checkWrote(s *set, ev *Event, wrote, named bool) error {
	must, may := e.silent[ev], e.silent[ev]
	switch {
	case e.Exact:
	case named:
		must, may = false, false
	default:
		must, may = e.leftOver(s, ev)
	}
	switch {
	case must && !wrote:
		return fmt.Errorf("an unmatched event of side %c is missing: %+v", "ab"[bit(ev.sideB)], *ev)
	case wrote && !may:
		return fmt.Errorf("an event of side %c is no unmatched one: %+v", "ab"[bit(ev.sideB)], *ev)
	}
	return nil
}

// leftOver says of an event that no result names, where there are several right answers, whether it must and whether it may be
// unmatched: some B end an A without a trace, and a group that is still open has B that nobody sees.
func (e *Expected) leftOver(s *set, ev *Event) (must, may bool) {
	cfg := &e.cfg
	side := byte('a')
	closed := e.closedA(ev)
	if ev.sideB {
		side, closed = 'b', e.closedB(ev)
	}
	if cfg.nulls(side) {
		return false, false
	}
	must, may = closed, closed
	for _, b := range s.bs {
		silent := b.Ends && cfg.CompleteOn.Emit != EmitPair
		switch {
		case ev.sideB && b == ev && len(cfg.partners(s, b)) > 0 && (silent || cfg.collects()):
			must = false
		case !ev.sideB && silent && cfg.inWindow(ev, b) && cfg.CompleteOn.Emit == EmitNothing:
			must = false
		case !ev.sideB && silent && cfg.inWindow(ev, b):
			may = true
		}
	}
	return must, may
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// StillWaiting is for a join that was not drained: it returns the A that neither file speaks of. An aligned B that has asked must
// be in one of them.
func (e *Expected) StillWaiting(lines, unmatched []string, topicA, topicB string) ([]*Event, error) {
	waiting, err := e.unnamed(lines)
	if err != nil {
		return nil, err
	}
	for _, l := range unmatched {
		if _, err := e.take(waiting, l, topicA, topicB); err != nil {
			return nil, fmt.Errorf("unmatched line %s: %w", l, err)
		}
	}
	var as []*Event
	for at, ev := range waiting {
		if at.side == 'b' {
			return nil, fmt.Errorf("neither in a pair nor unmatched: a B, %+v", *ev)
		}
		as = append(as, ev)
	}
	return as, nil
}

// Waiting is the accepted A that no line names.
func (e *Expected) Waiting(lines []string) []*Event {
	waiting, _ := e.unnamed(lines) // its errors are those of StillWaiting, which is asked first
	var as []*Event
	for at, ev := range waiting {
		if at.side == 'a' {
			as = append(as, ev)
		}
	}
	return as
}

// take removes the event of an unmatched line.
func (e *Expected) take(waiting map[place]*Event, line, topicA, topicB string) (*Event, error) {
	v, err := parseJSON([]byte(line))
	if err != nil {
		return nil, err
	}
	at, reason, err := placeOf(v, topicA, topicB)
	if err == nil && reason != "unmatched" {
		err = fmt.Errorf("reason %s", reason)
	}
	if err != nil {
		return nil, err
	}
	ev := waiting[at]
	if ev == nil {
		return nil, errors.New("no accepted event has that place, or it is in a result, or it was there before")
	}
	delete(waiting, at)
	if at.side == 'a' || e.cfg.Probe == Wait {
		return ev, ev.sameAs(v)
	}
	return ev, nil
}

// place names an event.
type place struct {
	side      byte
	partition int32
	offset    int64
}

// placeOf reads from a line of a side output whose record it has, and why.
func placeOf(line value, topicA, topicB string) (at place, reason string, err error) {
	topic, ok1 := line.stringOrNull("topic")
	partition, ok2 := line.integer("partition")
	offset, ok3 := line.integer("offset")
	why, ok4 := line.stringOrNull("reason")
	if !ok1 || !ok2 || !ok3 || !ok4 || topic == nil || partition == nil || offset == nil || why == nil {
		return at, "", errors.New("no topic, partition, offset or reason")
	}
	side := map[string]byte{topicB: 'b', topicA: 'a'}[*topic]
	if side == 0 {
		return at, "", errors.New("unknown topic")
	}
	return place{side, int32(*partition), *offset}, *why, nil
}

// unnamed is the accepted events that no line names.
func (e *Expected) unnamed(lines []string) (map[place]*Event, error) {
	outs, err := e.see(lines)
	if err != nil {
		return nil, err
	}
	named := map[*Event]bool{}
	for _, o := range outs {
		named[o.a], named[o.b] = true, true
		for _, b := range o.bs {
			named[b] = true
		}
	}
	waiting := map[place]*Event{}
	for _, g := range e.groups {
		for side, events := range map[byte][]*Event{'a': g.as, 'b': g.bs} {
			for _, ev := range events {
				if !named[ev] {
					waiting[place{side, ev.Partition, ev.Offset}] = ev
				}
			}
		}
	}
	return waiting, nil
}

// sameAs compares an event that waited with its line.
func (ev *Event) sameAs(v value) error {
	ts, _ := v.integer("ts")
	key, _ := v.stringOrNull("key")
	payload, _ := v.stringOrNull("payload")
	switch {
	case ts == nil || *ts != ev.Time:
		return fmt.Errorf("ts is not the event time %d", ev.Time)
	case key == nil || utf8.ValidString(ev.Key.Text) && *key != ev.Key.Text:
		return fmt.Errorf("key is not the join key %s", ev.Key.JSON())
	case payload == nil || *payload != ev.Stored:
		return fmt.Errorf("payload is not what is kept: %s", ev.Stored)
	}
	return nil
}
