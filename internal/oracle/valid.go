package oracle

import (
	"errors"
	"fmt"
	"slices"
)

// CheckValid says whether the lines of a join are one of the right answers. If Exact it is Compare, and CheckOrder where
// order matters. Else an exception of a rule holds, and what is asked is what that rule says still holds:
//
//   - rule 2: every output is a valid pair, no consumed event is used twice, and no valid pair is left of which neither was used;
//   - rule 12, immediate: of the valid pairs those may be missed whose A came after its B, in some order of reading;
//   - rule 17: the null row of an A that pairs has one corrected pair, after tA + early; what is sure comes, what cannot be
//     does not;
//   - rule 18: a valid pair may be left of an A that one of its B may have ended;
//   - rule 19: which B a full group holds may vary; everything else holds.
//
// Null rows of either side are held against the pairs: an event that is in none has one, and no other has (rule 16).
//
// It knows events by what is printed of them, so the kept fields of each side must hold a unique id.
func (e *Expected) CheckValid(lines []string) error {
	if e.Exact {
		if err := e.Compare(lines); err != nil || e.cfg.Early == 0 && e.cfg.CompleteOn.Emit != EmitPair {
			return err
		}
		return e.CheckOrder(lines)
	}
	_, err := e.valid(lines)
	return err
}

// valid also returns what the lines say.
func (e *Expected) valid(lines []string) ([]out, error) {
	outs, err := e.see(lines)
	if err != nil {
		return nil, err
	}
	if err := e.order(outs); err != nil {
		return nil, err
	}
	u, err := e.usage(outs)
	if err != nil {
		return nil, err
	}
	if err := u.tombstones(outs); err != nil {
		return nil, err
	}
	for _, s := range e.sets {
		for _, a := range s.as {
			if err := u.checkA(s, a); err != nil {
				return nil, err
			}
		}
		for _, b := range s.bs {
			if err := u.checkB(s, b); err != nil {
				return nil, err
			}
		}
	}
	if e.cfg.Probe == Immediate {
		return outs, u.readable()
	}
	return outs, nil
}

// usage is what became of the events.
type usage struct {
	e        *Expected
	partners map[*Event][]*Event // of either side
	complete map[*Event]bool     // A with a complete group
	fixed    map[*Event]bool     // A with a corrected pair or group
	nulls    map[*Event]int      // null rows
}

// usage finds events that are used too often.
func (e *Expected) usage(outs []out) (*usage, error) {
	u := &usage{e: e, partners: map[*Event][]*Event{}, complete: map[*Event]bool{}, fixed: map[*Event]bool{}, nulls: map[*Event]int{}}
	once := map[string]int{}
	for _, o := range outs {
		if o.kind == nullOut {
			ev := o.a
			if ev == nil {
				ev = o.b
			}
			u.nulls[ev]++
			continue
		}
		if once[o.text]++; o.kind == pairOut && once[o.text] > 1 {
			return nil, fmt.Errorf("output line %s: a is used twice, with the same b", o.text)
		}
		for _, b := range o.bs {
			u.partners[b] = append(u.partners[b], o.a)
			if len(u.partners[b]) > 1 && e.cfg.Cardinality != ManyToMany {
				return nil, fmt.Errorf("output line %s: b is used twice: %+v", o.text, *b)
			}
			u.partners[o.a] = append(u.partners[o.a], b)
		}
		if o.a != nil {
			u.complete[o.a] = u.complete[o.a] || o.complete
			if e.cfg.Cardinality == OneToOne && len(u.partners[o.a]) > 1 || o.kind == groupOut && len(u.partners[o.a]) > len(o.bs) {
				return nil, fmt.Errorf("output line %s: a is used twice: %+v", o.text, *o.a)
			}
			u.fixed[o.a] = u.fixed[o.a] || o.corrected
		}
	}
	for i, list := range e.nullKeys {
		for _, ev := range list {
			if want := e.cfg.nulls("ab"[i]); u.nulls[ev] == 0 && want || u.nulls[ev] > 1 {
				return nil, fmt.Errorf("%d null rows of an event without a key: %s", u.nulls[ev], NullLine(ev))
			}
		}
	}
	return u, nil
}

// tombstones: with retract there is one for each corrected pair.
func (u *usage) tombstones(outs []out) error {
	balance := map[string]int{}
	for _, o := range outs {
		switch {
		case o.kind == tombOut:
			balance[o.text]--
		case o.corrected && u.e.cfg.Retract:
			balance[tombstone(o.a)]++
		}
	}
	for text, n := range balance {
		if n != 0 {
			return fmt.Errorf("%s: %d more corrected pairs than tombstones", text, n)
		}
	}
	return nil
}

// checkA holds the null rows of an A against its pairs.
func (u *usage) checkA(s *set, a *Event) error {
	e, n := u.e, u.nulls[a]
	paired := len(u.partners[a]) > 0
	least, most := 0, 0
	switch {
	case !e.cfg.nulls('a'):
	case paired && e.cfg.Early > 0:
		if u.fixed[a] {
			least, most = 1, 1
		}
		if early, late := u.chances(s, a); late == 0 && u.fixed[a] || early == 0 && !u.fixed[a] {
			return fmt.Errorf("a %+v: corrected %v; %d of its B lie in the early time, %d behind it", *a, u.fixed[a], early, late)
		}
	case paired:
	case e.closedA(a) || e.certain(a):
		least, most = 1, 1
		if u.mayEnd(s, a, nil) && e.cfg.CompleteOn.Emit == EmitNothing || e.cfg.collects() && !e.closedA(a) {
			least = 0
		}
	case u.mayEnd(s, a, nil):
		most = 1
	case e.cfg.collects(): // an open group may have a first B that came too late
		if _, late := u.chances(s, a); late > 0 {
			most = 1
		}
	}
	if n < least || n > most {
		return fmt.Errorf("%d null rows of an A that has %d pairs, want %d to %d: %s", n, len(u.partners[a]), least, most, NullLine(a))
	}
	return nil
}

// chances counts the B of an A that lie in its early time, and those behind it.
func (u *usage) chances(s *set, a *Event) (early, late int) {
	for _, b := range s.bs {
		switch {
		case !u.e.cfg.inWindow(a, b):
		case u.e.cfg.tooLate(a, b):
			late++
		default:
			early++
		}
	}
	return early, late
}

// mayEnd says whether an A may have been ended by a B other than this (rule 18).
func (u *usage) mayEnd(s *set, a, but *Event) bool {
	for _, b := range s.bs {
		if !b.Ends || b == but || !u.e.cfg.inWindow(a, b) {
			continue
		}
		if u.e.cfg.CompleteOn.Emit != EmitPair && len(u.partners[b]) == 0 {
			return true
		}
		if has(u.partners[b], a) {
			return true
		}
	}
	return false
}

// checkB holds a B against the pairs that it could have been in.
func (u *usage) checkB(s *set, b *Event) error {
	cfg := &u.e.cfg
	silent := b.Ends && cfg.CompleteOn.Emit != EmitPair // gives no pair, but counts as matched
	if silent && len(u.partners[b]) > 0 {
		return fmt.Errorf("a B that ends its A without a pair is in one: %s", Line(u.partners[b][0], b))
	}
	waits := false // maybe in a group that is still open
	for _, a := range cfg.partners(s, b) {
		open := cfg.collects() && len(u.partners[a]) == 0 && !u.e.closedA(a)
		waits = waits || open
		switch {
		case silent || open || cfg.Probe == Immediate:
		case u.mayEnd(s, a, b) || cfg.collects() && u.complete[a]:
		case cfg.Cardinality == ManyToMany && !has(u.partners[b], a):
			return fmt.Errorf("missing: %s", Line(a, b))
		case cfg.Cardinality == OneToMany && len(u.partners[b]) == 0,
			cfg.Cardinality == OneToOne && len(u.partners[b])+len(u.partners[a]) == 0:
			return fmt.Errorf("missing: neither was used of the valid pair %s", Line(a, b))
		}
	}
	least, most := 0, 0
	if cfg.nulls('b') && len(u.partners[b]) == 0 && u.e.closedB(b) {
		least, most = 1, 1
		if (silent || waits) && len(cfg.partners(s, b)) > 0 {
			least = 0
		}
	}
	if n := u.nulls[b]; n < least || n > most {
		return fmt.Errorf("%d null rows of a B that has %d pairs, want %d to %d: %s", n, len(u.partners[b]), least, most, NullLine(b))
	}
	return nil
}

func has(list []*Event, ev *Event) bool { return slices.Contains(list, ev) }

// readable says whether there is an order of reading, with every partition in its own, in which the A of each pair comes before
// its B, and the A of each pair that was missed after it (rule 12, immediate).
func (u *usage) readable() error {
	before := map[*Event][]*Event{} // what must be read before an event
	type line struct {
		side      int
		partition int32
	}
	last := map[line]*Event{}
	left := 0
	for s, list := range u.e.records {
		for _, f := range list {
			if f.fate != "accepted" {
				continue
			}
			at := line{s, f.partition}
			if p := last[at]; p != nil {
				before[f.event] = append(before[f.event], p)
			}
			last[at] = f.event
			left++
		}
	}
	for _, s := range u.e.sets {
		for _, b := range s.bs {
			for _, a := range u.e.cfg.partners(s, b) {
				switch {
				case has(u.partners[b], a):
					before[b] = append(before[b], a)
				case u.e.cfg.missed(len(u.partners[a]), len(u.partners[b])):
					before[a] = append(before[a], b)
				}
			}
		}
	}
	read := map[*Event]bool{}
	for progress := true; progress; {
		progress = false
		for _, list := range u.e.records {
			for _, f := range list {
				if f.fate == "accepted" && !read[f.event] && all(before[f.event], read) {
					read[f.event], progress = true, true
					left--
				}
			}
		}
	}
	if left > 0 {
		return errors.New("there is no order of reading in which every A of a pair came before its B, and every A of a missed one after it")
	}
	return nil
}

// missed says whether a valid pair that did not come out was missed, by how many pairs its A and its B are in.
func (c *Config) missed(a, b int) bool {
	switch c.Cardinality {
	case OneToOne:
		return a+b == 0
	case OneToMany:
		return b == 0
	}
	return true
}

func all(list []*Event, in map[*Event]bool) bool {
	for _, ev := range list {
		if !in[ev] {
			return false
		}
	}
	return true
}
