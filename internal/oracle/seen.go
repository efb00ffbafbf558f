package oracle

import (
	"errors"
	"fmt"
)

// sight reads output lines as what they say of the accepted events. It knows an event by what is printed of it, so the kept
// fields of each side must hold a unique id.
type sight struct {
	e        *Expected
	as, bs   map[string]*Event
	nullKeys map[string]*Event // by line
	tombs    map[string]bool   // lines that can be
}

func (e *Expected) sight() (*sight, error) {
	s := &sight{e: e, as: map[string]*Event{}, bs: map[string]*Event{}, nullKeys: map[string]*Event{}, tombs: map[string]bool{}}
	for _, g := range e.groups {
		for i, list := range [][]*Event{g.as, g.bs} {
			for _, ev := range list {
				to := []map[string]*Event{s.as, s.bs}[i]
				if to[ev.Body] != nil {
					return nil, fmt.Errorf("two events print as %s: keep a unique id field on each side", ev.Body)
				}
				to[ev.Body] = ev
			}
		}
		for _, a := range g.as {
			s.tombs[tombstone(a)] = e.cfg.Retract
		}
	}
	for i, list := range e.nullKeys {
		for _, ev := range list {
			if e.cfg.nulls("ab"[i]) {
				s.nullKeys[NullLine(ev)] = ev
			}
		}
	}
	return s, nil
}

// see reads all lines.
func (e *Expected) see(lines []string) ([]out, error) {
	s, err := e.sight()
	if err != nil {
		return nil, err
	}
	outs := make([]out, len(lines))
	for i, l := range lines {
		if outs[i], err = s.line(l); err != nil {
			return nil, fmt.Errorf("output line %s: %w", l, err)
		}
	}
	return outs, nil
}

// line reads one line. An error means that by no order of asking it can come: it names no accepted event, or no valid pair,
// or is not printed as the rules say.
func (s *sight) line(line string) (out, error) {
	v, err := parseJSON([]byte(line))
	if err != nil {
		return out{}, err
	}
	c := canonical(line)
	if _, ok := v.member("retract"); ok {
		if !s.tombs[c] {
			return out{}, errors.New("no A has this key, or the join does not retract")
		}
		return out{kind: tombOut, text: c}, nil
	}
	if ev := s.nullKeys[c]; ev != nil {
		return s.e.nullRow(ev), nil
	}
	aBody, _ := v.member("a")
	bBody, _ := v.member("b")
	a, b := s.as[aBody.raw], s.bs[bBody.raw]
	o, err := out{}, errors.New("no accepted event has this a or this b")
	switch {
	case a != nil && b != nil:
		o, err = s.pair(a, b, v)
	case a != nil && bBody.kind == '[':
		o, err = s.group(a, bBody.items, v)
	case a != nil && bBody.kind == 'n':
		o, err = s.e.nullRow(a), nil
	case b != nil && aBody.kind == 'n':
		o, err = s.e.nullRow(b), nil
	}
	switch {
	case err != nil:
		return o, err
	case o.text == "":
		return o, errors.New("null rows of this side are no results")
	case o.text != c:
		return o, fmt.Errorf("should read %s", o.text)
	}
	return o, nil
}

func (s *sight) pair(a, b *Event, line value) (out, error) {
	cfg := &s.e.cfg
	if cfg.collects() {
		return out{}, errors.New("a pair, where B are collected")
	}
	if a.Key != b.Key || !cfg.inWindow(a, b) {
		return out{}, fmt.Errorf("not a valid pair: a %+v, b %+v", *a, *b)
	}
	o := out{kind: pairOut, a: a, bs: []*Event{b}, text: Line(a, b)}
	if _, o.corrected = line.member("corrected"); o.corrected {
		o.text = correctedLine(a, b)
		if !cfg.tooLate(a, b) {
			return o, errors.New("nothing was to be corrected: the B came in the early time, or there is none")
		}
	}
	return o, nil
}

func (s *sight) group(a *Event, items []value, line value) (out, error) {
	cfg := &s.e.cfg
	if !cfg.collects() {
		return out{}, errors.New("a group, where no B are collected")
	}
	o := out{kind: groupOut, a: a}
	late := false
	for _, item := range items {
		b := s.bs[item.raw]
		if b == nil {
			return o, fmt.Errorf("no accepted event has this b: %s", item.raw)
		}
		if a.Key != b.Key || !cfg.inWindow(a, b) {
			return o, fmt.Errorf("not a valid pair: a %+v, b %+v", *a, *b)
		}
		late = late || cfg.tooLate(a, b)
		o.bs = append(o.bs, b)
	}
	if len(o.bs) == 0 {
		return o, errors.New("a group without any B")
	}
	_, o.corrected = line.member("corrected")
	if o.corrected && !late {
		return o, errors.New("nothing was to be corrected: every B came in the early time, or there is none")
	}
	complete, _ := line.member("complete")
	o.complete = complete.kind == 't'
	o.text = groupLine(a, o.bs, o.corrected, o.complete)
	return o, s.groupEnds(&o)
}

// groupEnds says whether a group may say of itself that it is complete, or that it is not (rule 19).
func (s *sight) groupEnds(o *out) error {
	marks := false
	for _, b := range o.bs {
		marks = marks || b.Marks
	}
	want := true
	switch s.e.cfg.Collect.Mode {
	case Count:
		want = len(o.bs) == o.a.Wanted
		if o.a.Wanted > 0 && len(o.bs) > o.a.Wanted {
			return fmt.Errorf("the group has %d B, and takes %d", len(o.bs), o.a.Wanted)
		}
	case Marker:
		want = marks
	}
	if o.complete != want {
		return fmt.Errorf("the group says complete: %v", o.complete)
	}
	return nil
}
