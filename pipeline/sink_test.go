package pipeline

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"joinbench/core"
)

// Events of the tests: a0 and its partners.
const (
	a0    = `{"k":"x","t":1000,"n":1,"s":"one"}`
	b0    = `{"k":"x","t":1700,"n":2,"s":"two"}`
	b1    = `{"k":"x","t":1800,"n":3}`
	aLate = `{"k":"x","t":1900}` // after its B
	five  = `{"k":5,"t":9000,"n":[ 1, {"u":"\u0061"} ]}`
	none  = `{"t":4000,"n":9}`

	row0  = `{"key":"x","ts":1000,"a":{"n":1,"as":"one"},"b":null}`
	pair0 = `{"key":"x","ts":1700,"a":{"n":1,"as":"one"},"b":{"n":2,"bs":"two"}`
)

func joinLines(lines ...string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// Rules 16 to 18 and 23: what each kind of match prints, to the byte.
func TestRule23Results(t *testing.T) {
	for _, c := range []struct {
		name string
		conf string
		kind core.MatchKind
		want []string
	}{
		{"pair", "", 0, []string{pair0 + "}"}},
		{"the null row first", "type: left\nearly: 100ms\n", core.NullFirst | core.Corrected, []string{row0, pair0 + `,"corrected":true}`}},
		{"the null row came before", "type: left\nearly: 100ms\n", core.Corrected, []string{pair0 + `,"corrected":true}`}},
		{"tombstone", "type: left\nearly: 100ms\nretract: true\n", core.Tombstone | core.Corrected, []string{`{"key":"x","retract":true}`, pair0 + `,"corrected":true}`}},
		{"null row and tombstone", "type: outer\nearly: 100ms\nretract: true\n", core.NullFirst | core.Tombstone | core.Corrected,
			[]string{row0, `{"key":"x","retract":true}`, pair0 + `,"corrected":true}`}},
		{"tombstone under a field", "type: left\nearly: 100ms\nretract: true\noutput: {key: as}\n", core.Tombstone | core.Corrected,
			[]string{`{"key":"one","retract":true}`, pair0 + `,"corrected":true}`}},
		{"the end is the null row", "type: left\n", core.NullOnly, []string{row0}},
		{"the end of an inner join", "", core.NullOnly, nil},
		{"the end of a right join", "type: right\n", core.NullOnly, nil},
	} {
		k := newSinkKit(t, c.conf, false)
		got, _, counted := k.print(&core.Output{Matches: []core.Match{{Ref: k.ref(core.B, b0), Kind: c.kind, Entry: k.entry(core.A, a0)}}})
		if got != joinLines(c.want...) || counted != uint64(len(c.want)) {
			t.Errorf("%s: %d counted, printed\n%swant\n%s", c.name, counted, got, joinLines(c.want...))
		}
	}
}

// With an unmatched file the end of an inner join goes there.
func TestSinkEndOfAnInnerJoin(t *testing.T) {
	k := newSinkKit(t, "", true)
	got, unmatched, counted := k.print(&core.Output{Matches: []core.Match{{Ref: k.ref(core.B, b0), Kind: core.NullOnly, Entry: k.entry(core.A, a0)}}})
	if got != "" || counted != 0 || !strings.HasPrefix(unmatched, `{"topic":"left","partition":3,"offset":5,`) || !strings.Contains(unmatched, `"reason":"unmatched"`) {
		t.Errorf("%d counted, results %q, unmatched %q", counted, got, unmatched)
	}
}

// Rule 12, probe: wait: who asked may be an A, and the entry a B. Each is printed on its own side.
func TestSinkSidesOfWaitingB(t *testing.T) {
	k := newSinkKit(t, "type: outer\nprobe: wait\ncardinality: many-to-many\n", false)
	got, _, counted := k.print(&core.Output{Matches: []core.Match{
		{Ref: k.ref(core.A, a0), Entry: k.entry(core.B, b0)},
		{Ref: k.ref(core.B, b0), Entry: k.entry(core.A, a0)},
		{Ref: k.ref(core.B, b0), Entry: k.entry(core.A, aLate)},
	}, WaitedB: k.entries(core.B, b0, five)})
	want := joinLines(pair0+"}", pair0+"}", `{"key":"x","ts":1900,"a":{},"b":{"n":2,"bs":"two"}}`, `{"key":"x","ts":1700,"a":null,"b":{"n":2,"bs":"two"}}`, `{"key":5,"ts":9000,"a":null,"b":{"n":[1,{"u":"\u0061"}]}}`)
	if got != want || counted != 5 {
		t.Errorf("%d counted, printed\n%swant\n%s", counted, got, want)
	}
}

// Rule 16: events without a partner are null rows for the sides that the type names, else they go to the unmatched file if
// there is one. Rule 4: those without a key are null rows too, and go to no file.
func TestSinkUnmatched(t *testing.T) {
	const (
		aRow, bRow, wRow = `{"key":5,"ts":9000,"a":{"n":[1,{"u":"\u0061"}]},"b":null}`, `{"key":"x","ts":1700,"a":null,"b":{"n":2,"bs":"two"}}`, `{"key":"x","ts":1800,"a":null,"b":{"n":3}}`
		aNull, bNull     = `{"key":null,"ts":4000,"a":{"n":9},"b":null}`, `{"key":null,"ts":4000,"a":null,"b":{"n":9}}`
	)
	for typ, c := range map[string]struct {
		results []string
		files   []string // how the lines of the unmatched file begin
	}{
		"inner": {nil, []string{`{"topic":"right","partition":3,"offset":0,`, `{"topic":"left","partition":3,"offset":5,`, `{"topic":"right","partition":3,"offset":5,`}},
		"left":  {[]string{aNull, aRow}, []string{`{"topic":"right","partition":3,"offset":0,`, `{"topic":"right","partition":3,"offset":5,`}},
		"right": {[]string{bNull, bRow, wRow}, []string{`{"topic":"left","partition":3,"offset":5,`}},
		"outer": {[]string{aNull, bNull, bRow, aRow, wRow}, nil},
	} {
		for _, file := range []bool{true, false} {
			k := newSinkKit(t, "type: "+typ+"\n", file)
			got, unmatched, counted := k.print(&core.Output{
				NullKeys:   []core.Reject{{Ref: k.ref(core.A, none), Fate: core.NullKey}, {Ref: k.ref(core.B, none), Fate: core.NullKey}},
				UnmatchedB: []core.Ref{k.ref(core.B, b0)}, UnmatchedA: k.entries(core.A, five), WaitedB: k.entries(core.B, b1)})
			if got != joinLines(c.results...) || counted != uint64(len(c.results)) {
				t.Errorf("%s: %d counted, printed\n%swant\n%s", typ, counted, got, joinLines(c.results...))
			}
			lines := strings.SplitAfter(unmatched, "\n")
			lines = lines[:len(lines)-1]
			if !file {
				if len(lines) > 0 {
					t.Errorf("%s, no file: %q", typ, unmatched)
				}
				continue
			}
			ok := len(lines) == len(c.files)
			for i := range lines {
				ok = ok && strings.HasPrefix(lines[i], c.files[i]) && strings.HasSuffix(lines[i], `"reason":"unmatched"}`+"\n") && json.Valid([]byte(lines[i]))
			}
			if !ok {
				t.Errorf("%s: the unmatched file has\n%s", typ, unmatched)
			}
		}
	}
}

// Rule 17: an early row is printed like any null row; matches and groups of the batch come first.
func TestSinkEarly(t *testing.T) {
	k := newSinkKit(t, "type: left\nearly: 100ms\n", false)
	got, _, counted := k.print(&core.Output{Early: k.entries(core.A, a0, five), Matches: []core.Match{{Ref: k.ref(core.B, b0), Entry: k.entry(core.A, a0)}}})
	want := joinLines(pair0+"}", row0, `{"key":5,"ts":9000,"a":{"n":[1,{"u":"\u0061"}]},"b":null}`)
	if got != want || counted != 3 {
		t.Errorf("%d counted, printed\n%swant\n%s", counted, got, want)
	}
}

// Rule 19: b is a list, ts the greatest of all, and an incomplete group says what it got and, of a count, what it wanted.
func TestSinkGroups(t *testing.T) {
	const (
		timeout = "cardinality: one-to-many\ncollect: timeout\n"
		count   = "type: left\ncardinality: one-to-many\ncollect: {count: $.n}\nearly: 100ms\nretract: true\noutput: {key: as}\n"
		one     = `{"key":"x","ts":1700,"a":{"n":1,"as":"one"},"b":[{"n":2,"bs":"two"}]`
		two     = `{"key":"x","ts":1800,"a":{"n":1,"as":"one"},"b":[{"n":2,"bs":"two"},{"n":3}]`
	)
	for _, c := range []struct {
		name, conf string
		group      core.Group
		bs         []string
		want       []string
	}{
		{"complete", timeout, core.Group{Complete: true}, []string{b0, b1}, []string{two + `,"complete":true}`}},
		{"complete with its count", count, core.Group{Complete: true, Wanted: 1}, []string{b0}, []string{one + `,"complete":true}`}},
		{"short of its count", count, core.Group{Wanted: 7}, []string{b0, b1}, []string{two + `,"complete":false,"got":2,"wanted":7}`}},
		{"no whole count", count, core.Group{}, []string{b0}, []string{one + `,"complete":false,"got":1}`}},
		{"corrected", count, core.Group{Kind: core.Corrected, Complete: true}, []string{b0}, []string{one + `,"corrected":true,"complete":true}`}},
		{"corrected, short", count, core.Group{Kind: core.NullFirst | core.Tombstone | core.Corrected, Wanted: 2}, []string{b0},
			[]string{row0, `{"key":"one","retract":true}`, one + `,"corrected":true,"complete":false,"got":1,"wanted":2}`}},
		{"only the null row first", count, core.Group{Kind: core.NullFirst | core.Corrected, Complete: true}, []string{b0}, []string{row0, one + `,"corrected":true,"complete":true}`}},
	} {
		k := newSinkKit(t, c.conf, false)
		c.group.A, c.group.B = k.entry(core.A, a0), k.entries(core.B, c.bs...)
		got, _, counted := k.print(&core.Output{Groups: []core.Group{c.group}})
		if got != joinLines(c.want...) || counted != uint64(len(c.want)) {
			t.Errorf("%s: %d counted, printed\n%swant\n%s", c.name, counted, got, joinLines(c.want...))
		}
	}
	// The time of an A that is later than all its B (before) is the group's.
	k := newSinkKit(t, timeout, false)
	got, _, _ := k.print(&core.Output{Groups: []core.Group{{A: k.entry(core.A, five), B: k.entries(core.B, b0), Complete: true}}})
	if !strings.HasPrefix(got, `{"key":5,"ts":9000,`) {
		t.Errorf("ts is not the greatest: %s", got)
	}
}

// A group of many B is one line, whatever pieces it is written in, and one output; the buffer stays small.
func TestSinkLargeGroup(t *testing.T) {
	const n = 30_000
	k := newSinkKit(t, "cardinality: one-to-many\ncollect: timeout\n", false)
	var values []string
	for i := range n {
		values = append(values, fmt.Sprintf(`{"k":"x","t":%d,"n":%d,"s":"%s"}`, 2000+i, i, strings.Repeat("y", i%40)))
	}
	got, _, counted := k.print(&core.Output{Groups: []core.Group{{A: k.entry(core.A, a0), B: k.entries(core.B, values...), Complete: true}}})
	var line struct {
		TS int64
		B  []struct {
			N  int
			Bs string
		}
		Complete bool
	}
	if err := json.Unmarshal([]byte(got), &line); err != nil || strings.Count(got, "\n") != 1 || counted != 1 {
		t.Fatalf("%d counted, %d lines, %v", counted, strings.Count(got, "\n"), err)
	}
	if line.TS != 2000+n-1 || len(line.B) != n || !line.Complete {
		t.Fatalf("ts %d, %d B, complete %v", line.TS, len(line.B), line.Complete)
	}
	for i, b := range line.B {
		if b.N != i || len(b.Bs) != i%40 {
			t.Fatalf("B %d is %+v", i, b)
		}
	}
	if cap(k.sink.line) > 4*groupPiece {
		t.Errorf("the line's buffer has grown to %d bytes", cap(k.sink.line))
	}
}

// An output that comes in parts prints like one that comes at once.
func TestSinkParts(t *testing.T) {
	k := newSinkKit(t, "type: outer\n", false)
	ms := []core.Match{{Ref: k.ref(core.B, b0), Entry: k.entry(core.A, a0)}, {Ref: k.ref(core.B, b1), Entry: k.entry(core.A, a0)}}
	ua, ub := k.entries(core.A, five), k.refs(core.B, b0, b1)
	whole, _, n := k.print(&core.Output{Matches: ms, UnmatchedA: ua, UnmatchedB: ub})
	first, _, n1 := k.print(&core.Output{Matches: ms[:1]})
	empty, _, _ := k.print(&core.Output{})
	last, _, n2 := k.print(&core.Output{Matches: ms[1:], UnmatchedA: ua, UnmatchedB: ub})
	if first+last != whole || empty != "" || n != 5 || n1+n2 != n {
		t.Errorf("%d counted, printed\n%s%sat once %d\n%s", n1+n2, first, last, n, whole)
	}
}

// Bytes that are no entry end the run; they are never printed.
func TestSinkDamagedEntries(t *testing.T) {
	k := newSinkKit(t, "type: outer\ncardinality: one-to-many\ncollect: timeout\n", true)
	bad, good := [][]byte{[]byte("no entry")}, k.entries(core.B, b0)
	for i, out := range []core.Output{
		{Matches: []core.Match{{Ref: k.ref(core.B, b0), Entry: bad[0]}}},
		{Groups: []core.Group{{A: bad[0], B: good}}},
		{Groups: []core.Group{{A: k.entry(core.A, a0), B: append(bad[:1:1], good...)}}},
		{Groups: []core.Group{{A: k.entry(core.A, a0), B: bad}}},
		{Early: bad}, {UnmatchedA: bad}, {WaitedB: bad},
	} {
		if err := k.sink.Results(&out); err == nil {
			t.Errorf("output %d passes", i)
		}
	}
}

// TestSinkAllocatesNothing: pairs, null rows and tombstones are printed for each event.
func TestSinkAllocatesNothing(t *testing.T) {
	k := newSinkKit(t, "type: outer\nearly: 1ms\nretract: true\noutput: {key: as}\n", true)
	nulls := []core.Reject{{Ref: k.ref(core.A, none), Fate: core.NullKey}}
	out := &core.Output{Matches: []core.Match{{Ref: k.ref(core.B, b0), Kind: core.NullFirst | core.Tombstone | core.Corrected, Entry: k.entry(core.A, a0)}},
		Groups: []core.Group{{A: k.entry(core.A, a0), B: k.entries(core.B, b0, b1)}}, Early: k.entries(core.A, a0), NullKeys: nulls,
		UnmatchedA: k.entries(core.A, five), UnmatchedB: k.refs(core.B, b0), WaitedB: k.entries(core.B, b1)}
	run := func() {
		if err := k.sink.Results(out); err != nil {
			t.Fatal(err)
		}
		for i := range k.out {
			k.out[i].Reset()
		}
	}
	run()
	if n := testing.AllocsPerRun(500, run); n >= 1 {
		t.Errorf("%v allocations", n)
	}
}
