package oracle

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRandomRules draws many workloads with all the rules. The checks must agree with the oracle's own answer and with those of
// other orders of asking or reading, and refuse each of them when one line is lost, doubled or altered.
func TestRandomRules(t *testing.T) {
	start, n := uint64(time.Now().UnixNano()), uint64(200)
	if testing.Short() {
		n = 60
	}
	t.Logf("seeds from %d", start)
	seen, differ := map[string]int{}, 0
	var totals Totals
	for seed := start; seed < start+n; seed++ {
		rng := NewRand(seed)
		cfg, a, b, format := RandomRules(rng)
		if seed%3 == 0 {
			drawRest(rng, &cfg)
		}
		e, err := Expect(cfg, a, b, format)
		if err != nil {
			t.Fatalf("seed %d: %+v: %v", seed, cfg, err)
		}
		note(seen, &e.cfg, e)
		for _, x := range append(e.others, e) {
			checkAnswer(t, seed, x, x.Lines)
			add(&totals, &x.Totals)
			if err := x.CheckTotals(x.Totals.product(), x.Lines, nil, "a", "b"); err != nil {
				t.Errorf("seed %d: totals: %v", seed, err)
			}
		}
		lines, file := otherOrder(rng, e)
		if err := e.CheckUnmatched(lines, file, "left", "right"); err != nil {
			t.Errorf("seed %d: unmatched: %v", seed, err)
		}
		alterFile(t, seed, rng, e, lines, file, seen)
		if slices.Compare(slices.Sorted(slices.Values(lines)), slices.Sorted(slices.Values(e.Lines))) != 0 {
			if differ++; e.Exact {
				t.Errorf("seed %d: exact, but another order gives something else: %v", seed, e.Compare(lines))
			}
		}
		checkAnswer(t, seed, e, lines)
		alter(t, seed, rng, e, lines, seen)
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, e.cfg)
		}
	}
	t.Logf("%+v; %d other answers; %v", totals, differ, seen)
	if testing.Short() {
		return // too few to come across everything
	}
	for _, what := range []string{Left, Right, Outer, OneToOne, OneToMany, ManyToMany, Wait, Immediate, Timeout, Count, Marker, EmitPair, EmitUnmatched, EmitNothing,
		"early", "retract", "no drain", "several", "lost", "doubled", "altered: corrected", "altered: order", "altered: null", "altered: group",
		"file: doubled", "file: reason", "file: lost", "file: paired"} {
		if seen[what] == 0 {
			t.Errorf("never: %s", what)
		}
	}
	for what, count := range map[string]int64{"matches": totals.Matches, "unmatched A": totals.UnmatchedA, "unmatched B": totals.UnmatchedB, "early": totals.Early,
		"corrected": totals.Corrected, "retracted": totals.Retracted, "pending A": totals.PendingA, "pending B": totals.PendingB, "gathered": totals.Gathered} {
		if count == 0 {
			t.Errorf("%d %s in %d workloads", count, what, n)
		}
	}
	if differ == 0 {
		t.Error("no other order gave another answer")
	}
}

// drawRest makes it a join that is not drained, with a ring as rule 13 wants it, or none.
func drawRest(rng *rand.Rand, cfg *Config) {
	w := &workload{rng: rng}
	cfg.NoDrain = true
	least := cfg.Before + cfg.Grace + ms
	cfg.MaxSpread = pick(w, least, 2*least, least+time.Minute)
	if w.chance(0.7) {
		cfg.Buckets = pick(w, 2, 3, 16)
		span := max(cfg.Before, cfg.After) + cfg.Grace + cfg.MaxSpread
		cfg.Width = (span/time.Duration(cfg.Buckets-1) + ms).Truncate(ms)
	}
}

func note(seen map[string]int, cfg *Config, e *Expected) {
	for _, word := range []string{cfg.Type, cfg.Cardinality, cfg.Probe, cfg.Collect.Mode, cfg.CompleteOn.Emit} {
		seen[word]++
	}
	for word, is := range map[string]bool{"early": cfg.Early > 0, "retract": cfg.Retract, "no drain": cfg.NoDrain, "several": !e.Exact, "stops": len(e.others) > 0} {
		if is {
			seen[word]++
		}
	}
}

func add(to, t *Totals) {
	for i, p := range to.all() {
		*p += *t.all()[i]
	}
}

func (t *Totals) all() []*int64 {
	return []*int64{&t.Outputs, &t.Matches, &t.UnmatchedA, &t.UnmatchedB, &t.Early, &t.Corrected, &t.Retracted, &t.PendingA, &t.PendingB, &t.Gathered, &t.ClosedA, &t.ClosedB}
}

// product is what the product counts without an unmatched file.
func (t Totals) product() Totals {
	t.Gathered, t.ClosedA, t.ClosedB = 0, 0, 0
	return t
}

// checkAnswer wants that the checks take a right answer, also those that look for other answers where there is only one.
func checkAnswer(t *testing.T, seed uint64, e *Expected, lines []string) {
	t.Helper()
	if err := e.CheckReachable(lines); err != nil {
		t.Errorf("seed %d: right, but not reachable: %v", seed, err)
	}
	check := e.searchAll
	if e.cfg.Probe != Aligned {
		check = func(lines []string) error { _, err := e.valid(lines); return err }
	}
	if err := check(lines); err != nil {
		t.Errorf("seed %d: right, but not found: %v", seed, err)
	}
}

// alter damages an answer and wants that it is refused. Where several answers are right, only what makes none of them.
func alter(t *testing.T, seed uint64, rng *rand.Rand, e *Expected, lines []string, seen map[string]int) {
	t.Helper()
	if len(lines) == 0 {
		return
	}
	i := rng.IntN(len(lines))
	if rare := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, corrected) || strings.Contains(l, `"got":`) }); rare >= 0 && rng.IntN(2) == 0 {
		i = rare
	}
	refuse := func(what string, wrong []string) {
		seen[what]++
		if e.CheckReachable(wrong) == nil {
			t.Errorf("seed %d: %s, and nobody minds: %s", seed, what, lines[i])
		}
	}
	replaced := func(l string) []string {
		wrong := slices.Clone(lines)
		wrong[i] = l
		return wrong
	}
	l := lines[i]
	refuse("doubled", append(slices.Clone(lines), l))
	refuse("mangled", replaced(strings.Replace(l, `":`, `" :`, 1)))
	if e.Exact || e.cfg.CompleteOn.Emit == "" && e.cfg.Probe != Immediate && !e.cfg.NoDrain {
		refuse("lost", slices.Delete(slices.Clone(lines), i, i+1))
	}
	if s := strings.Replace(l, corrected, "", 1); s != l {
		refuse("altered: corrected", replaced(s))
		wrong := slices.Delete(slices.Clone(lines), i, i+1)
		refuse("altered: order", append([]string{l}, wrong...))
	}
	if strings.HasSuffix(l, `,"b":null}`) {
		refuse("altered: null", replaced(strings.Replace(l, `,"ts":1`, `,"ts":2`, 1)))
	}
	if s := strings.Replace(l, `"complete":false,"got":`, `"complete":false,"got":1`, 1); s != l {
		refuse("altered: group", replaced(s))
	}
}

// alterFile is alter for the unmatched file.
func alterFile(t *testing.T, seed uint64, rng *rand.Rand, e *Expected, lines, file []string, seen map[string]int) {
	t.Helper()
	refuse := func(what string, wrong []string) {
		seen[what]++
		if e.CheckUnmatched(lines, wrong, "left", "right") == nil {
			t.Errorf("seed %d: %s, and nobody minds", seed, what)
		}
	}
	if len(file) > 0 {
		i := rng.IntN(len(file))
		refuse("file: doubled", append(slices.Clone(file), file[i]))
		refuse("file: reason", append(slices.Clone(file[1:]), strings.Replace(file[0], `"unmatched"}`, `"late"}`, 1)))
		if e.Exact || e.cfg.CompleteOn.Emit == "" && !e.cfg.collects() {
			refuse("file: lost", slices.Delete(slices.Clone(file), i, i+1))
		}
	}
	if len(e.Pairs) > 0 && e.Exact {
		refuse("file: paired", append(slices.Clone(file), fileLine(e.Pairs[rng.IntN(len(e.Pairs))].B)))
	}
}

// fileLine is what the unmatched file has of an event.
func fileLine(ev *Event) string {
	r := refusal{record{partition: ev.Partition, offset: ev.Offset, key: &ev.Key.Text, payload: &ev.Stored, ts: &ev.Time}, "unmatched"}
	return sideLine([]string{"left", "right"}[bit(ev.sideB)], r)
}

func fileOf(silent map[*Event]bool) (file []string) {
	for ev := range silent {
		file = append(file, fileLine(ev))
	}
	slices.Sort(file) // the same for the same seed
	return file
}

// otherOrder is what the join gives, in its results and in the unmatched file, when its B ask, or its events are read, in
// another order that the rules allow.
func otherOrder(rng *rand.Rand, e *Expected) (lines, file []string) {
	if e.cfg.Probe != Aligned {
		return readInTurns(rng, e)
	}
	x := &Expected{cfg: e.cfg, groups: e.groups, records: e.records, nullKeys: e.nullKeys, wm: e.wm, silent: map[*Event]bool{}}
	var bs []*Event
	for _, f := range e.records[1] {
		if f.fate == "accepted" {
			bs = append(bs, f.event)
		}
	}
	x.join(inTurns(rng, bs))
	return x.Lines, fileOf(x.silent)
}

// inTurns mixes partitions, each in its own order.
func inTurns(rng *rand.Rand, events []*Event) []*Event {
	type line struct {
		b         bool
		partition int32
	}
	queues := map[line][]*Event{}
	var order []line
	for _, ev := range events {
		at := line{ev.sideB, ev.Partition}
		queues[at] = append(queues[at], ev)
		order = append(order, at)
	}
	rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	if rng.IntN(2) == 0 { // one partition far ahead
		slices.SortFunc(order, func(x, y line) int {
			return cmp.Or(cmp.Compare(x.partition, y.partition), cmp.Compare(bit(x.b), bit(y.b)))
		})
	}
	mixed := make([]*Event, 0, len(events))
	for _, at := range order {
		mixed = append(mixed, queues[at][0])
		queues[at] = queues[at][1:]
	}
	return mixed
}

// readInTurns joins without aligning: each event, as it is read, takes what waits (immediate: B alone do). It is a plain loop of
// its own. For what is sure is over, see Expected.
func readInTurns(rng *rand.Rand, e *Expected) (lines, file []string) {
	var events []*Event
	for _, list := range e.records {
		for _, f := range list {
			if f.fate == "accepted" {
				events = append(events, f.event)
			}
		}
	}
	used := map[*Event]bool{}
	var read []*Event
	for _, ev := range inTurns(rng, events) {
		for _, other := range read {
			a, b := ev, other
			if ev.sideB {
				a, b = other, ev
			}
			if a.sideB || !b.sideB || a.Key != b.Key || !e.cfg.inWindow(a, b) || !ev.sideB && e.cfg.Probe == Immediate {
				continue
			}
			if e.cfg.Cardinality != ManyToMany && used[b] || e.cfg.Cardinality == OneToOne && used[a] {
				continue
			}
			used[a], used[b] = true, true
			lines = append(lines, Line(a, b))
		}
		read = append(read, ev)
	}
	for _, ev := range read {
		if used[ev] || ev.sideB && !e.closedB(ev) || !ev.sideB && !e.closedA(ev) {
			continue
		}
		if o := e.nullRow(ev); o.text != "" {
			lines = append(lines, o.text)
		} else {
			file = append(file, fileLine(ev))
		}
	}
	for _, list := range e.nullKeys {
		for _, ev := range list {
			if o := e.nullRow(ev); o.text != "" {
				lines = append(lines, o.text)
			}
		}
	}
	return lines, file
}
