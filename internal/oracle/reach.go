package oracle

import (
	"fmt"
	"strings"
)

// CheckReachable is stricter than CheckValid: it also wants that some interleaving of the B partitions leads to these
// lines, when inside each partition the B ask in order. That is what an aligned join does, as the exceptions free only the
// order of B in different partitions. For joins that are not aligned it is CheckValid.
//
// Very large sets of events that compete are looked through up to a limit, as there may be too many interleavings; what is not
// refuted by then passes.
func (e *Expected) CheckReachable(lines []string) error {
	if e.Exact || e.cfg.Probe != Aligned {
		return e.CheckValid(lines)
	}
	return e.searchAll(lines)
}

// searchAll is CheckValid in words, and then the search in every set.
func (e *Expected) searchAll(lines []string) error {
	outs, err := e.valid(lines)
	if err != nil {
		return err
	}
	of := map[*Event]*search{}
	var searches []*search
	for _, s := range e.sets {
		r := &search{e: e, set: s, left: map[string]int{}, lines: map[*Event][]string{}, home: map[*Event]*Event{}, budget: searchLimit}
		searches = append(searches, r)
		for _, ev := range append(append([]*Event{}, s.as...), s.bs...) {
			of[ev] = r
		}
	}
	for _, o := range outs {
		ev := o.a
		if ev == nil {
			ev = o.b
		}
		if r := of[ev]; r != nil && o.kind != tombOut { // tombstones go with the corrected pairs, see valid
			r.expect(o)
		}
	}
	for _, r := range searches {
		if !r.run() {
			return fmt.Errorf("key %s: no order in which its B can ask, in order inside each partition, leads to these outputs", r.key().JSON())
		}
	}
	return nil
}

// searchLimit is how many times B are let ask in one set.
const searchLimit = 200_000

// search looks for an order in which the B of one set can have asked.
type search struct {
	e      *Expected
	set    *set
	left   map[string]int      // lines that no B has given yet
	lines  map[*Event][]string // of an A
	home   map[*Event]*Event   // the A whose group has this B
	queues [][]*Event          // B by partition
	dead   map[string]bool     // states from which no order leads to the lines
	budget int
}

func (r *search) key() Key {
	if len(r.set.as) > 0 {
		return r.set.as[0].Key
	}
	return r.set.bs[0].Key
}

// expect notes a line of the set.
func (r *search) expect(o out) {
	r.left[o.text]++
	if o.a != nil {
		r.lines[o.a] = append(r.lines[o.a], o.text)
	}
	if o.kind == groupOut {
		for _, b := range o.bs {
			r.home[b] = o.a
		}
	}
}

func (r *search) run() bool {
	for i, b := range r.set.bs {
		if i == 0 || r.set.bs[i-1].Partition != b.Partition {
			r.queues = append(r.queues, nil)
		}
		last := len(r.queues) - 1
		r.queues[last] = append(r.queues[last], b)
	}
	r.dead = map[string]bool{}
	return r.from(newModel(r.e, r.set.as), make([]int, len(r.queues)))
}

// from says whether the lines that are left can come from this state, in which at[i] B of partition i have asked.
func (r *search) from(m *model, at []int) bool {
	state := r.state(m, at)
	if r.dead[state] {
		return false
	}
	asked := true
	for i, q := range r.queues {
		if at[i] == len(q) {
			continue
		}
		asked = false
		if r.budget--; r.budget < 0 {
			return true
		}
		next := &model{e: r.e, lives: append([]life{}, m.lives...)}
		next.ask(q[at[i]])
		if !r.take(next.out) {
			continue
		}
		at[i]++
		if r.fits(m, next) && r.from(next, at) {
			return true
		}
		at[i]--
		r.giveBack(next.out)
	}
	if asked && r.ends(m) {
		return true
	}
	r.dead[state] = true
	return false
}

// take removes lines from those that are left, unless one of them is not among them.
func (r *search) take(outs []out) bool {
	for i, o := range outs {
		if o.text == "" || o.kind == tombOut {
			continue
		}
		if r.left[o.text] == 0 {
			r.giveBack(outs[:i])
			return false
		}
		r.left[o.text]--
	}
	return true
}

func (r *search) giveBack(outs []out) {
	for _, o := range outs {
		if o.text != "" && o.kind != tombOut {
			r.left[o.text]++
		}
	}
}

// fits looks ahead from what a B has just done to its A: what the lines say of it must still be possible.
func (r *search) fits(before, after *model) bool {
	for i := range after.lives {
		old, l := &before.lives[i], &after.lives[i]
		if l.over && !old.over && r.open(l.a) {
			return false // nothing more comes of it, but more came
		}
		if l.met != nil && old.met == nil && !r.e.cfg.collects() && r.left[NullLine(l.a)] > 0 {
			return false // its null row comes before its first B, or never
		}
		if r.e.cfg.collects() && len(l.got) > len(old.got) && !r.belongs(l.got[len(l.got)-1], l.a) {
			return false
		}
	}
	return true
}

// open says whether lines of an A are left.
func (r *search) open(a *Event) bool {
	for _, text := range r.lines[a] {
		if r.left[text] > 0 {
			return true
		}
	}
	return false
}

// belongs says whether a B may have gone to the group of an A: one that came out has it, or the group has not come out.
func (r *search) belongs(b, a *Event) bool {
	if home := r.home[b]; home != nil {
		return home == a
	}
	for other, home := range r.home {
		if home == a && other != b {
			return false // a's group came without it
		}
	}
	return true
}

// ends says whether the close gives what is left, and nothing else.
func (r *search) ends(m *model) bool {
	last := &model{e: r.e, lives: append([]life{}, m.lives...)}
	for _, a := range r.set.as {
		last.close(a)
	}
	if !r.take(last.out) {
		return false
	}
	for _, n := range r.left {
		if n > 0 {
			r.giveBack(last.out)
			return false
		}
	}
	return true
}

// state names what decides what can still come.
func (r *search) state(m *model, at []int) string {
	var s strings.Builder
	fmt.Fprint(&s, at)
	for i := range m.lives {
		l := &m.lives[i]
		switch {
		case l.over:
			fmt.Fprintf(&s, " %d over", i)
		case l.met != nil:
			fmt.Fprintf(&s, " %d %d %v", i, len(l.got), r.e.cfg.tooLate(l.a, l.met))
		}
	}
	return s.String()
}
