package oracle

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// refusal is a record that a side output gets, and why.
type refusal struct {
	record
	reason string
}

// refusals are the records of a side that a side output gets.
func refusals(all []fated) (out []refusal) {
	for _, f := range all {
		switch f.fate {
		case "late", "malformed", "bad_key", "bad_time":
			out = append(out, refusal{f.record, f.fate})
		}
	}
	return out
}

// CheckLate holds the lines of the late output against the fates: each late record is there once, as it was read, and
// nothing else is. The topics name the sides.
func (e *Expected) CheckLate(lines []string, topicA, topicB string) error {
	return e.checkRefused(lines, topicA, topicB, func(reason string) bool { return reason == "late" })
}

// CheckDead is CheckLate for the dead letters: malformed, bad_key, bad_time.
func (e *Expected) CheckDead(lines []string, topicA, topicB string) error {
	return e.checkRefused(lines, topicA, topicB, func(reason string) bool { return reason != "late" })
}

func (e *Expected) checkRefused(lines []string, topicA, topicB string, wanted func(reason string) bool) error {
	want := map[place]refusal{}
	for s, list := range e.records {
		for _, r := range refusals(list) {
			if wanted(r.reason) {
				want[place{"ab"[s], r.partition, r.offset}] = r
			}
		}
	}
	for _, l := range lines {
		if err := takeRefused(want, l, topicA, topicB); err != nil {
			return fmt.Errorf("line %s: %w", l, err)
		}
	}
	for at, r := range want {
		return fmt.Errorf("%d records are missing, for example of side %c, partition %d, offset %d: %s", len(want), at.side, at.partition, at.offset, r.reason)
	}
	return nil
}

// takeRefused removes the record of a line from those that are wanted.
func takeRefused(want map[place]refusal, line, topicA, topicB string) error {
	v, err := parseJSON([]byte(line))
	if err != nil {
		return err
	}
	at, reason, err := placeOf(v, topicA, topicB)
	if err != nil {
		return err
	}
	r, ok := want[at]
	if !ok {
		return errors.New("no record of that place belongs here, or it was there before")
	}
	delete(want, at)
	ts, ok1 := v.integer("ts")
	if r.ts != nil && *r.ts == -1 {
		r.ts = nil // kcat prints a record without time so
	}
	key, ok2 := v.stringOrNull("key")
	payload, ok3 := v.stringOrNull("payload")
	switch {
	case !ok1 || !ok2 || !ok3:
		return errors.New("ts, key or payload is of another type")
	case reason != r.reason:
		return fmt.Errorf("reason %s, want %s", reason, r.reason)
	case (ts == nil) != (r.ts == nil) || ts != nil && *ts != *r.ts:
		return errors.New("ts is not the record's")
	case !sameText(key, r.key):
		return errors.New("key is not the record's")
	case !sameText(payload, r.payload):
		return errors.New("payload is not the record's")
	}
	return nil
}

// sameText compares what is printed of bytes with what was read. Bytes that are not UTF-8 are replaced, so that nothing
// is wanted of them; whether a line's carriage return belongs to it is left open.
func sameText(printed, read *string) bool {
	if printed == nil || read == nil {
		return printed == read
	}
	return !utf8.ValidString(*read) || strings.TrimSuffix(*printed, "\r") == strings.TrimSuffix(*read, "\r")
}

// AcceptedA lists the accepted A, in no particular order.
func (e *Expected) AcceptedA() []*Event {
	var as []*Event
	for _, g := range e.groups {
		as = append(as, g.as...)
	}
	return as
}

// AcceptedB lists the accepted B, in no particular order.
func (e *Expected) AcceptedB() []*Event {
	var bs []*Event
	for _, g := range e.groups {
		bs = append(bs, g.bs...)
	}
	return bs
}
