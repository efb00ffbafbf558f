package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"joinbench/results"
)

// The cases of the field for joins other than inner ones, through the command.

// nulls are null rows, given as "side key ts v"; the key - is none.
func nulls(list ...string) (lines []string) {
	for _, s := range list {
		f := strings.Fields(s)
		key, v := fmt.Sprintf("%q", f[1]), fmt.Sprintf(`{"v":%q}`, f[3])
		if f[1] == "-" {
			key = "null"
		}
		a, b := v, "null"
		if f[0] == "b" {
			a, b = b, a
		}
		lines = append(lines, fmt.Sprintf(`{"key":%s,"ts":%s,"a":%s,"b":%s}`, key, f[2], a, b))
	}
	return lines
}

// joinTyped joins with batches of one record, of a few, and whole, and wants the same lines each time. Every line written is
// an output, and each output is one of the things that are counted.
func joinTyped(t *testing.T, conf string, a, b, want []string) (c results.Counters) {
	t.Helper()
	for _, batch := range []string{"1", "3", "4096"} {
		p := newPlace(t)
		o := joinbench("join", "-c", p.write("join.yaml", conf), "--a", p.write("a.ndjson", a...), "--b", p.write("b.ndjson", b...),
			"--dead", p.path("dead"), "--late", p.path("late"), "--stats", p.path("stats"), "--progress", "none", "--batch", batch)
		o.want(t, 0)
		wantLines(t, o.lines(t), want...)
		c = p.stats("stats")
		sum := c.Matches + c.Retracted + c.UnmatchedA + c.UnmatchedB // without a file for others these are null rows
		if c.Outputs != int64(len(want)) || c.Outputs != sum {
			t.Errorf("batch %s: %d lines, %d outputs, and %d pairs + %d retracted + unmatched %d, %d", batch, len(want), c.Outputs, c.Matches,
				c.Retracted, c.UnmatchedA, c.UnmatchedB)
		}
		if c.A.Fates() != c.A.Read || c.B.Fates() != c.B.Read {
			t.Errorf("fates: %+v, %+v", c.A, c.B)
		}
	}
	return c
}

// TestTypes: B01, B02, B04, B05, B06, B11 and B13, of each type of join, with B that ask late and B that wait (rule 12: the same outputs).
func TestTypes(t *testing.T) {
	for _, c := range []struct {
		name                 string
		before, after, grace int
		more                 string
		a, b                 []string
		pairs, nullA, nullB  []string
	}{
		{name: "B01", before: 10, after: 10, a: rows("k1 0 a1", "z 11 _", "z 40 _"), b: rows("k1 5 b1"),
			pairs: pairs("k1 5 a1 b1"), nullA: nulls("a z 11 _", "a z 40 _")},
		{name: "B02", after: 100, more: "cardinality: one-to-many\n", a: rows("k 100 a"), b: rows("k 99 b99", "k 100 b100", "k 200 b200", "k 201 b201"),
			pairs: pairs("k 100 a b100", "k 200 a b200"), nullB: nulls("b k 99 b99", "b k 201 b201")},
		{name: "B02 backwards", after: 100, grace: 200, more: "cardinality: one-to-many\n", a: rows("k 100 a"), b: rows("k 201 b201", "k 200 b200", "k 100 b100", "k 99 b99"),
			pairs: pairs("k 100 a b100", "k 200 a b200"), nullB: nulls("b k 99 b99", "b k 201 b201")},
		{name: "B04", before: 10, after: 10, grace: 20, a: rows("z 100 _", "k 85 a"), b: rows("k 88 b"),
			pairs: pairs("k 88 a b"), nullA: nulls("a z 100 _")},
		{name: "B05", before: 10, after: 10, grace: 5, a: rows("z 100 _", "k 80 a", "k 95 a95"),
			nullA: nulls("a z 100 _", "a k 95 a95")},
		{name: "B06", before: 10, after: 10, a: rows("k 0 a"), nullA: nulls("a k 0 a")},
		{name: "B11", before: 10, after: 10, a: []string{`{"t":1,"v":"1"}`, `{"k":null,"t":2,"v":"2"}`, `{"k":"","t":3,"v":"3"}`, `{"k":[],"t":3,"v":"4"}`},
			b:     []string{`{"t":1,"v":"1"}`, `{"k":null,"t":2,"v":"2"}`, `{"k":"","t":3,"v":"3"}`, `{"k":true,"t":3,"v":"4"}`},
			pairs: []string{`{"key":"","ts":3,"a":{"v":"3"},"b":{"v":"3"}}`}, nullA: nulls("a - 1 1", "a - 2 2"), nullB: nulls("b - 1 1", "b - 2 2")},
		{name: "B13", before: 10, after: 10, more: "cardinality: many-to-many\n", a: rows("k 5 a1", "k 5 a2", "k 5 a3"), b: rows("k 6 b", "m 6 b"),
			pairs: pairs("k 6 a1 b", "k 6 a2 b", "k 6 a3 b"), nullB: nulls("b m 6 b")},
	} {
		for typ, lists := range map[string][][]string{"inner": {c.pairs}, "left": {c.pairs, c.nullA}, "right": {c.pairs, c.nullB}, "outer": {c.pairs, c.nullA, c.nullB}} {
			for _, probe := range []string{"aligned", "wait"} {
				t.Run(c.name+" "+typ+" "+probe, func(t *testing.T) {
					joinTyped(t, caseConf(c.before, c.after, c.grace, c.more+"probe: "+probe+"\ntype: "+typ+"\n"), c.a, c.b, slices.Concat(lists...))
				})
			}
		}
	}
}

// TestWaitingEventsAtTheEnd: B06. With --no-drain nothing comes out before its time: what waits is counted as pending.
func TestWaitingEventsAtTheEnd(t *testing.T) {
	p := newPlace(t)
	o := joinbench("join", "-c", p.write("join.yaml", caseConf(10, 10, 0, "type: left\n")), "--a", p.write("a", rows("k 0 a")...), "--b", p.write("b"),
		"--no-drain", "--stats", p.path("stats"), "--progress", "none")
	o.want(t, 0)
	if c := p.stats("stats"); o.out != "" || c.A.Pending != 1 || c.Outputs != 0 || c.UnmatchedA != 0 {
		t.Errorf("%q, counters %+v", o.out, c)
	}
}

// TestRule17EarlyRows: rule 17. The null row of an A that has no B in time, the pair that corrects it, and with retract the tombstone
// under the key of that row.
func TestRule17EarlyRows(t *testing.T) {
	a, b := rows("k 0 a", "m 0 a", "n 0 a", "z 200 a"), rows("m 3 b", "k 7 b", "y 300 b")
	corrected := strings.TrimSuffix(pairs("k 7 a b")[0], "}") + `,"corrected":true}`
	want := slices.Concat(nulls("a k 0 a", "a n 0 a", "a z 200 a"), pairs("m 3 a b"), []string{corrected})
	c := joinTyped(t, caseConf(0, 50, 0, "early: 5ms\ntype: left\n"), a, b, want)
	if c.Early != 3 || c.Corrected != 1 || c.Retracted != 0 || c.Matches != 2 || c.UnmatchedA != 3 || c.UnmatchedB != 0 {
		t.Errorf("counters %+v", c)
	}
	keyed := strings.Replace(caseConf(0, 50, 0, "early: 5ms\nretract: true\noutput: {key: v}\ntype: left\n"), "b: {key: $.k, time: $.t, keep: [$.v]", "b: {key: $.k, time: $.t, keep: [{w: $.v}]", 1)
	for conf, key := range map[string]string{caseConf(0, 50, 0, "early: 5ms\nretract: true\ntype: left\n"): "k", keyed: "a"} {
		want := append(slices.Clone(want), fmt.Sprintf(`{"key":%q,"retract":true}`, key))
		if conf == keyed {
			for i := range want {
				want[i] = strings.ReplaceAll(want[i], `"b":{"v"`, `"b":{"w"`)
			}
		}
		c = joinTyped(t, conf, a, b, want)
		if c.Early != 3 || c.Corrected != 1 || c.Retracted != 1 || c.Matches != 2 {
			t.Errorf("counters %+v", c)
		}
	}
}

// TestRule18Endings: rule 18, what a B that ends its A gives.
func TestRule18Endings(t *testing.T) {
	a, b := rows("k 0 a", "m 0 a"), rows("m 2 ok", "k 3 declined", "k 4 ok", "m 5 declined", "m 6 ok")
	for emit, want := range map[string][]string{
		"pair":      pairs("m 2 a ok", "k 3 a declined", "m 5 a declined"),
		"unmatched": append(pairs("m 2 a ok"), nulls("a k 0 a")...),
		"nothing":   pairs("m 2 a ok"),
	} {
		t.Run(emit, func(t *testing.T) {
			conf := caseConf(0, 50, 0, "cardinality: one-to-many\ncomplete_on: {field: $.v, equals: declined, emit: "+emit+"}\n")
			joinTyped(t, conf+"type: left\n", a, b, want)
			// An inner join has no null rows.
			joinTyped(t, conf, a, b, slices.DeleteFunc(want, func(line string) bool { return strings.Contains(line, "null") }))
		})
	}
}

// What decides the results is said at the start of a join, on standard error, unless nothing is to be said.
func TestJoinSaysWhatItDoes(t *testing.T) {
	const says = "joinbench: type: left, cardinality: one-to-many, probe: aligned, window.before: 0s, window.after: 50ms, grace: 0s, early: 5ms\n"
	for progress, want := range map[string]bool{"auto": true, "plain": true, "json": false, "none": false} {
		p := newPlace(t)
		o := joinbench("join", "-c", p.write("join.yaml", caseConf(0, 50, 0, "type: left\nearly: 5ms\ncardinality: one-to-many\n")), "--a", p.write("a"), "--b", p.write("b"),
			"--progress", progress)
		o.want(t, 0)
		if strings.Contains(o.err, says) != want || strings.Contains(o.err, "type: left") != want {
			t.Errorf("--progress %s: standard error is %q", progress, o.err)
		}
	}
}
