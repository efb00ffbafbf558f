package oracle

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// CheckUnmatched holds the lines of an unmatched file, whose topics are named topicA and topicB, against the lines of the
// same join: every accepted event that is in no pair is there once, with reason "unmatched", and nothing else is. Of an A
// it wants what the state keeps: event time, join key and kept fields.
//
// It knows events by what is printed of them, so the kept fields of each side must hold a unique id.
func (e *Expected) CheckUnmatched(lines, unmatched []string, topicA, topicB string) error {
	waiting, err := e.StillWaiting(lines, unmatched, topicA, topicB)
	if err == nil && len(waiting) > 0 {
		err = fmt.Errorf("%d unmatched A are missing, for example %+v", len(waiting), *waiting[0])
	}
	return err
}

// StillWaiting is CheckUnmatched of a join that was not drained: it returns the A that neither file speaks of. A B that
// has asked must be in one of them.
func (e *Expected) StillWaiting(lines, unmatched []string, topicA, topicB string) ([]*Event, error) {
	waiting, err := e.unpaired(lines)
	if err != nil {
		return nil, err
	}
	for _, l := range unmatched {
		if err := take(waiting, l, topicA, topicB); err != nil {
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

// Waiting is the accepted A that are in no pair.
func (e *Expected) Waiting(lines []string) []*Event {
	waiting, _ := e.unpaired(lines) // its errors are those of StillWaiting, which is asked first
	var as []*Event
	for at, ev := range waiting {
		if at.side == 'a' {
			as = append(as, ev)
		}
	}
	return as
}

// take removes the event of an unmatched line.
func take(waiting map[place]*Event, line, topicA, topicB string) error {
	v, err := parseJSON([]byte(line))
	if err != nil {
		return err
	}
	at, reason, err := placeOf(v, topicA, topicB)
	if err == nil && reason != "unmatched" {
		err = fmt.Errorf("reason %s", reason)
	}
	if err != nil {
		return err
	}
	ev := waiting[at]
	if ev == nil {
		return errors.New("no accepted event has that place, or it is in a pair, or it was there before")
	}
	delete(waiting, at)
	if at.side == 'a' {
		return ev.sameAs(v)
	}
	return nil
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

// unpaired is the accepted events that no line names.
func (e *Expected) unpaired(lines []string) (map[place]*Event, error) {
	aByBody, bByBody, err := e.byBody()
	if err != nil {
		return nil, err
	}
	paired := map[*Event]bool{}
	for _, l := range lines {
		v, err := parseJSON([]byte(l))
		if err != nil {
			return nil, fmt.Errorf("output line %q: %w", l, err)
		}
		a, _ := v.member("a")
		b, _ := v.member("b")
		if aByBody[a.raw] == nil || bByBody[b.raw] == nil {
			return nil, fmt.Errorf("output line %s: no accepted event has this a or this b", l)
		}
		paired[aByBody[a.raw]], paired[bByBody[b.raw]] = true, true
	}
	waiting := map[place]*Event{}
	for _, g := range e.groups {
		for side, events := range map[byte][]*Event{'a': g.as, 'b': g.bs} {
			for _, ev := range events {
				if !paired[ev] {
					waiting[place{side, ev.Partition, ev.Offset}] = ev
				}
			}
		}
	}
	return waiting, nil
}

// sameAs compares an A with its line.
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
