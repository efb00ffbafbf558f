package oracle

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Compare says whether the lines of a join are exactly Lines, as multisets: nothing missing, nothing spurious, nothing
// twice. Only the way in which a string key is escaped may differ. Use it when Exact is true.
func (e *Expected) Compare(lines []string) error {
	balance := map[string]int{}
	for _, l := range e.Lines {
		balance[l]++
	}
	var spurious, missing []string
	for _, l := range lines {
		c := canonical(l)
		if balance[c] == 0 {
			spurious = append(spurious, l)
			continue
		}
		balance[c]--
	}
	for _, l := range e.Lines {
		if balance[l] > 0 {
			balance[l]--
			missing = append(missing, l)
		}
	}
	if len(spurious)+len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("%d lines expected, %d came: %d missing%s; %d spurious or twice%s",
		len(e.Lines), len(lines), len(missing), sample(missing), len(spurious), sample(spurious))
}

// CheckValid says whether the lines of a join are one of the right answers. If Exact it is Compare. Else rule 2's exception
// holds: every output is a valid pair, no consumed event is used twice, and no valid pair is left of which neither was used.
//
// It knows events by what is printed of them, so the kept fields of each side must hold a unique id.
func (e *Expected) CheckValid(lines []string) error {
	if e.Exact {
		return e.Compare(lines)
	}
	_, err := e.usage(lines)
	return err
}

// CheckReachable is stricter than CheckValid: it also wants that some interleaving of the B partitions leads to these
// lines, when inside each partition the B ask in order and each takes the earliest A that waits. That is what an aligned
// one-to-one join does, as the exception frees only the order of B in different partitions.
func (e *Expected) CheckReachable(lines []string) error {
	if e.Exact {
		return e.Compare(lines)
	}
	partner, err := e.usage(lines)
	if err != nil {
		return err
	}
	for key, g := range e.groups {
		if !e.cfg.reachable(g, partner) {
			return fmt.Errorf("key %s: no order in which its B can ask, in order inside each partition, leads to these outputs", key.JSON())
		}
	}
	return nil
}

// usage identifies the pairs behind the lines of a one-to-one join and checks them; it returns each used event's partner.
func (e *Expected) usage(lines []string) (map[*Event]*Event, error) {
	aByBody, bByBody, err := e.byBody()
	if err != nil {
		return nil, err
	}
	partner := map[*Event]*Event{}
	for _, l := range lines {
		v, err := parseJSON([]byte(l))
		if err != nil {
			return nil, fmt.Errorf("output line %q: %w", l, err)
		}
		aBody, _ := v.member("a")
		bBody, _ := v.member("b")
		a, b := aByBody[aBody.raw], bByBody[bBody.raw]
		switch {
		case a == nil || b == nil:
			return nil, fmt.Errorf("output line %s: no accepted event has this a or this b", l)
		case a.Key != b.Key || !e.cfg.inWindow(a, b):
			return nil, fmt.Errorf("output line %s: not a valid pair: a %+v, b %+v", l, *a, *b)
		case canonical(l) != Line(a, b):
			return nil, fmt.Errorf("output line %s: should read %s", l, Line(a, b))
		case partner[a] != nil:
			return nil, fmt.Errorf("output line %s: a is used twice: %+v", l, *a)
		case partner[b] != nil:
			return nil, fmt.Errorf("output line %s: b is used twice: %+v", l, *b)
		}
		partner[a], partner[b] = b, a
	}
	for _, g := range e.groups {
		for _, b := range g.bs {
			for _, a := range g.as {
				if partner[a] == nil && partner[b] == nil && e.cfg.inWindow(a, b) {
					return nil, fmt.Errorf("missing: neither was used of the valid pair %s", Line(a, b))
				}
			}
		}
	}
	return partner, nil
}

func (e *Expected) byBody() (as, bs map[string]*Event, err error) {
	as, bs = map[string]*Event{}, map[string]*Event{}
	add := func(to map[string]*Event, events []*Event) {
		for _, ev := range events {
			if to[ev.Body] != nil {
				err = fmt.Errorf("two events print as %s: keep a unique id field on each side", ev.Body)
			}
			to[ev.Body] = ev
		}
	}
	for _, g := range e.groups {
		add(as, g.as)
		add(bs, g.bs)
	}
	return as, bs, err
}

// reachable says whether the B of one key can have asked in an order that leads to these partners. Each partition keeps its
// order; a B that took an A (or none) asked after those who took the A that it would have preferred. The outcome is
// reachable exactly if these demands form no circle.
func (c Config) reachable(g *group, partner map[*Event]*Event) bool {
	waitsFor := map[*Event][]*Event{}
	for i, b := range g.bs {
		if i > 0 && g.bs[i-1].Partition == b.Partition {
			waitsFor[b] = append(waitsFor[b], g.bs[i-1])
		}
		for _, a := range g.as { // in the order of preference
			if a == partner[b] {
				break
			}
			if !c.inWindow(a, b) {
				continue
			}
			if partner[a] == nil {
				return false // it was there all the time, and b passed it over
			}
			waitsFor[b] = append(waitsFor[b], partner[a])
		}
	}
	asked := map[*Event]bool{}
	for progress := true; progress; {
		progress = false
		for _, b := range g.bs {
			if !asked[b] && !slices.ContainsFunc(waitsFor[b], func(x *Event) bool { return !asked[x] }) {
				asked[b], progress = true, true
			}
		}
	}
	return len(asked) == len(g.bs)
}

// canonical rewrites the key of an output line in the oracle's own escaping and leaves every other byte alone. What is not
// an output line stays as it is.
func canonical(line string) string {
	v, err := parseJSON([]byte(line))
	if err != nil {
		return line
	}
	key, ok := v.member("key")
	if !ok || key.kind != '"' {
		return line
	}
	rest, ok := strings.CutPrefix(line, `{"key":`+key.raw)
	if !ok {
		return line
	}
	return `{"key":` + quote(key.text) + rest
}

// sample prints the first few lines of a list.
func sample(lines []string) string {
	const few = 5
	if len(lines) == 0 {
		return ""
	}
	text := ":\n  " + strings.Join(lines[:min(few, len(lines))], "\n  ")
	if len(lines) > few {
		text += "\n  …"
	}
	return text
}

// ReadLines splits an output file into its lines. A last line without newline is an error: the writer was cut off.
func ReadLines(out []byte) ([]string, error) {
	text := string(out)
	if text == "" {
		return nil, nil
	}
	if !strings.HasSuffix(text, "\n") {
		return nil, errors.New("the last output line has no newline")
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n"), nil
}
