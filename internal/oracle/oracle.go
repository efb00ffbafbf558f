// Package oracle says what the join of two record files must be, in the plainest way there is, so that the real join can
// be held against it. It follows the numbered rules of the product's semantics ("rule n" in the comments), shares no code
// with the packages that it judges, and prefers clarity to speed.
//
// What comes in: two whole NDJSON files (a and b), the format of their lines, and a Config. What happens, step by step:
//
//  1. Each line becomes a record with an envelope: partition, offset, record time, key, payload (envelope.go).
//  2. Each record meets exactly one fate, asked in the order of rule 9, on its own partition's history alone (fate.go).
//     The payload is read by a small JSON reader that keeps every value's text as written (jsontext.go).
//  3. Without a drain, it is found out how far each partition is read and where the watermarks stand (rest.go).
//  4. The accepted events of both sides are grouped by typed key, and nested loops pair them: every B in the order in
//     which it asks, every A from the earliest. What an A and a B give is in model.go, how it is printed in lines.go.
//  5. Expected says the output lines and counters, whether they are the only right ones, and checks the lines of a real
//     join: against the only answer (check.go), against what the exceptions of the rules leave (valid.go), or against
//     every order in which B of different partitions can ask (reach.go).
//
// It covers rules 1 to 19 and 23 for files, with strict validation and one state for all partitions. Every B that asks sees
// all A in time whose window holds it (rules 10 and 12), so time enters the results through lateness alone (rule 8), and
// through what is still open when input stops without a drain. What only arises live is not here: idle partitions, max_skew,
// behind, late_idle.
//
// RandomWorkload (workload.go) and RandomRules (workload_rules.go) make small inputs that are nasty on purpose.
//
// Nothing here is safe for several goroutines at once. Results do not point into the input files.
package oracle

import (
	"cmp"
	"fmt"
	"slices"
)

// Counters has the fates of one side's records. Read is their sum.
type Counters struct {
	Read, Accepted, NullKey, BadKey, Malformed, BadTime, Late, LateIdle, Redelivered int64
}

// Event is an accepted record, or one without a key.
type Event struct {
	Partition int32
	Offset    int64
	Line      int    // 1-based line in its file
	Time      int64  // event time, ms
	Key       Key    // typed join key
	NullKey   bool   // it has none (rule 4)
	Body      string // what the output prints for this side, one JSON text
	Stored    string // what the state keeps of it, one JSON text

	Ends   bool   // B: the field of complete_on has its value
	Marks  bool   // B: the field of collect: {marker: …} has its value
	Wanted int    // A: how many B complete its group (collect: {count: …}); 0 if that is no whole number from 1 to 999,999
	OwnKey string // A: the field that OutputKey names, one JSON text; "" if it has none
	sideB  bool
}

// Pair is one match.
type Pair struct{ A, B *Event }

// Expected is the answer. Lines and Pairs are in the order in which the oracle found them; the order of a real join may
// differ, so compare multisets (Compare does).
type Expected struct {
	Lines     []string // output lines without their newline
	Pairs     []Pair   // each B of a group is one
	CountersA Counters // of the records that are read: all, unless Config.NoDrain
	CountersB Counters
	Totals    Totals // counters of Lines

	// Exact says that Lines is the only right multiset. Else it is one of several right answers by an exception of a rule,
	// and CheckValid and CheckReachable are the tests.
	Exact bool

	cfg      Config
	groups   map[Key]*group
	records  [2][]fated // that are read, by side
	nullKeys [2][]*Event
	wm       [2]int64        // the watermarks of A and of B at the end
	sets     []*set          // events that can influence each other
	silent   map[*Event]bool // closed without a partner, and none of the results
	others   []*Expected
}

// group holds the accepted events of one key: those A that were read, and those B that have asked.
type group struct {
	as []*Event // by time, then partition, then offset: the order in which rule 2 prefers them
	bs []*Event // by partition, then as read: inside a partition the order in which they ask
}

// Expect computes the join of two files whose lines are in format "value", "kcat" or "rpk". An error means that the
// configuration or the format is not one the oracle knows; no content of the files is an error.
func Expect(cfg Config, aFile, bFile []byte, format string) (*Expected, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	look, err := cfg.extras()
	if err != nil {
		return nil, fmt.Errorf("oracle: %w", err)
	}
	var all [2][]fated
	for s, in := range []struct {
		side Side
		file []byte
	}{{cfg.A, aFile}, {cfg.B, bFile}} {
		if all[s], err = fates(in.side, cfg.Grace, in.file, format, look[s]); err != nil {
			return nil, fmt.Errorf("oracle: side %c: %w", "ab"[s], err)
		}
	}
	var answers []*Expected
	for _, stop := range cfg.stops(all) {
		answers = append(answers, answer(cfg, stop))
	}
	answers[0].others = answers[1:]
	return answers[0], nil
}

// StoppedAt is the answer for a join without a drain that has read so many records of each side. There is one, but where
// rule 13 leaves open whether the ring holds an A back: there may be two. With a drain all records are read.
func (e *Expected) StoppedAt(readA, readB int64) (*Expected, error) {
	list := append([]*Expected{e}, e.others...)
	for _, x := range list {
		if x.CountersA.Read == readA && x.CountersB.Read == readB {
			return x, nil
		}
	}
	return nil, fmt.Errorf("%d A and %d B read; by the rules it is %d and %d", readA, readB, e.CountersA.Read, e.CountersB.Read)
}

// Watermarks are those of A and of B in ms when input stops without a drain, false while a partition of the side has no time
// yet.
func (e *Expected) Watermarks() (wm [2]int64, ok [2]bool) {
	return e.wm, [2]bool{e.wm[0] > never, e.wm[1] > never}
}

// answer joins what was read.
func answer(cfg Config, stop stop) *Expected {
	e := &Expected{cfg: cfg, groups: map[Key]*group{}, records: stop.read, wm: stop.wm, silent: map[*Event]bool{}, Exact: true}
	e.CountersA, e.CountersB = count(stop.read[0]), count(stop.read[1])
	var events [2][]*Event
	for s, list := range stop.read {
		for _, f := range list {
			switch f.fate {
			case "accepted":
				events[s] = append(events[s], f.event)
				f.event.sideB = s == 1
			case "null_key":
				e.nullKeys[s] = append(e.nullKeys[s], f.event)
				f.event.sideB = s == 1
			}
		}
	}
	bs := events[1]
	slices.SortStableFunc(bs, func(x, y *Event) int { return cmp.Compare(x.Partition, y.Partition) })
	for _, a := range events[0] {
		g := e.group(a.Key)
		g.as = append(g.as, a)
	}
	for _, b := range bs {
		g := e.group(b.Key)
		g.bs = append(g.bs, b)
	}
	for _, g := range e.groups {
		slices.SortFunc(g.as, func(x, y *Event) int {
			return cmp.Or(cmp.Compare(x.Time, y.Time), cmp.Compare(x.Partition, y.Partition), cmp.Compare(x.Offset, y.Offset))
		})
		for _, s := range cfg.split(g) {
			e.sets = append(e.sets, s)
			e.Exact = e.Exact && cfg.settled(s)
		}
	}
	e.join(bs)
	return e
}

func (e *Expected) group(k Key) *group {
	g := e.groups[k]
	if g == nil {
		g = &group{}
		e.groups[k] = g
	}
	return g
}

// join lets every B ask: partition by partition, inside each in the order of its offsets. That order of partitions is as
// good as any other, see Exact. What waits then closes, as far as the watermarks say so.
func (e *Expected) join(bs []*Event) {
	models := map[Key]*model{}
	of := func(k Key) *model {
		if models[k] == nil {
			models[k] = newModel(e, e.groups[k].as)
		}
		return models[k]
	}
	for _, b := range bs {
		m := of(b.Key)
		m.ask(b)
		e.collect(m)
	}
	for _, f := range e.records[0] { // in file order, so that the same files give the same list
		if f.fate == "accepted" {
			m := of(f.event.Key)
			m.close(f.event)
			e.collect(m)
		}
	}
	for _, list := range e.nullKeys {
		for _, ev := range list {
			e.add(e.nullRow(ev))
		}
	}
	e.Totals.PendingA, e.Totals.PendingB = e.pending(models)
}

// collect moves what a model has put out into the answer.
func (e *Expected) collect(m *model) {
	for _, o := range m.out {
		e.add(o)
		for _, b := range o.bs {
			e.Pairs = append(e.Pairs, Pair{o.a, b})
		}
	}
	m.out = nil
}

func (e *Expected) add(o out) {
	e.Totals.add(o)
	if o.text != "" {
		e.Lines = append(e.Lines, o.text)
		return
	}
	for _, ev := range []*Event{o.a, o.b} {
		if ev != nil && !ev.NullKey {
			e.silent[ev] = true
		}
	}
}
