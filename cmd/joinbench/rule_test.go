package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"joinbench/results"
)

// The rules of the join, one test each, through the command: those that tests of the gate and of the task do not have by name.

// TestRule01Window: both ends count, the formula is the same whoever came first, and keys must be equal.
func TestRule01Window(t *testing.T) {
	a, b := rows("k 100 a", "m 100 a"), rows("k 89 b", "k 90 b", "k 120 b", "k 121 b", "n 100 b")
	for _, probe := range []string{"aligned", "wait"} {
		joinTyped(t, caseConf(10, 20, 0, "cardinality: one-to-many\nprobe: "+probe+"\n"), a, b, pairs("k 100 a b", "k 120 a b"))
		// The window is tA − before to tA + after, so the other way round it is another one.
		joinTyped(t, caseConf(20, 10, 0, "cardinality: one-to-many\nprobe: "+probe+"\n"), a, b, pairs("k 100 a b", "k 100 a b"))
	}
}

// TestRule02Cardinality: who pairs with whom. The earliest A first, then the lowest offset.
func TestRule02Cardinality(t *testing.T) {
	a, b := rows("k 100 a1", "k 100 a2", "k 90 a0"), rows("k 100 b1", "k 101 b2", "k 102 b3", "k 103 b4")
	for cardinality, want := range map[string][]string{
		"one-to-one":   pairs("k 100 a0 b1", "k 101 a1 b2", "k 102 a2 b3"),
		"one-to-many":  pairs("k 100 a0 b1", "k 101 a0 b2", "k 102 a0 b3", "k 103 a0 b4"),
		"many-to-many": nil,
	} {
		if cardinality == "many-to-many" {
			for i := range 4 {
				for _, v := range []string{"a0", "a1", "a2"} {
					want = append(want, pairs(fmt.Sprintf("k %d %s b%d", 100+i, v, i+1))...)
				}
			}
		}
		joinTyped(t, caseConf(0, 50, 20, "cardinality: "+cardinality+"\n"), a, b, want)
	}
}

// TestRule03Identity: A of one key and time are several; a record that is read twice is one, whether or not its entry is there.
func TestRule03Identity(t *testing.T) {
	line := func(offset, ts int, v string) string {
		payload, _ := json.Marshal(fmt.Sprintf(`{"v":%q}`, v)) // a string always marshals
		return fmt.Sprintf(`{"topic":"t","partition":0,"offset":%d,"ts":%d,"key":"k","payload":%s}`, offset, ts, payload)
	}
	a := []string{line(0, 100, "a0"), line(1, 100, "a1"), line(0, 100, "a0"), line(2, 100, "a2"), line(3, 900, "late a"), line(0, 100, "a0")}
	b := []string{line(0, 101, "b0"), line(0, 101, "b0"), line(1, 102, "b1"), line(2, 103, "b2"), line(3, 104, "b3")}
	conf := "a: {key: \"@key\", keep: [$.v]}\nb: {key: \"@key\", keep: [$.v]}\nwindow: {after: 50ms}\ngrace: 0s\nstate: {sync: none, tasks: 2}\n"
	c := joinTyped(t, conf, a, b, pairs("k 101 a0 b0", "k 102 a1 b1", "k 103 a2 b2"))
	if c.A.Redelivered != 2 || c.A.Accepted != 4 || c.B.Redelivered != 1 || c.B.Accepted != 4 {
		t.Errorf("counters %+v %+v", c.A, c.B)
	}
}

// TestRule04Keys: what is a key, and which are equal.
func TestRule04Keys(t *testing.T) {
	rec := func(key string) string { return `{"k":` + key + `,"t":1,"v":"x"}` }
	pair := func(key string) string { return `{"key":` + key + `,"ts":1,"a":{"v":"x"},"b":{"v":"x"}}` }
	null := `{"key":null,"ts":1,"a":{"v":"x"},"b":null}`
	left := caseConf(0, 50, 0, "type: left\n")
	for name, c := range map[string]struct {
		conf string
		a, b []string
		want []string
	}{
		"null and absent":      {left, []string{rec("null"), `{"t":1,"v":"x"}`}, []string{rec("null"), `{"t":1,"v":"x"}`}, []string{null, null}},
		"empty":                {left, []string{rec(`""`)}, []string{rec(`""`)}, []string{pair(`""`)}},
		"bad keys":             {left, []string{rec("{}"), rec("[1]"), rec("true")}, []string{rec("{}"), rec("[1]"), rec("true")}, nil},
		"exact numbers":        {caseConf(0, 50, 0, ""), []string{rec("9007199254740993"), rec("1.0")}, []string{rec("9007199254740992"), rec("9007199254740993"), rec("1"), rec(`"1.0"`)}, []string{pair("9007199254740993")}},
		"numbers as text":      {strings.ReplaceAll(caseConf(0, 50, 0, ""), "key: $.k", "key: $.k, key_type: string"), []string{rec("5"), rec(`"6"`)}, []string{rec(`"5"`), rec("6")}, []string{pair(`"5"`), pair(`"6"`)}},
		"escapes":              {caseConf(0, 50, 0, ""), []string{rec(`"k\u0031"`), rec(`"\ud83d\ude00"`)}, []string{rec(`"k1"`), rec(`"😀"`)}, []string{pair(`"k1"`), pair(`"😀"`)}},
		"lone surrogate":       {left, []string{`{"k":"k","t":1,"v":"\ud800"}`}, []string{rec(`"k"`)}, nil},
		"first of equal names": {caseConf(0, 50, 0, ""), []string{`{"k":"a","k":"b","t":1,"v":"x"}`}, []string{rec(`"b"`), rec(`"a"`)}, []string{pair(`"a"`)}},
		"list of paths": {strings.ReplaceAll(caseConf(0, 50, 0, ""), "key: $.k", "key: [$.j, $.k]"), []string{`{"j":null,"k":"n","t":1,"v":"x"}`, rec(`"k"`)},
			[]string{rec(`"n"`), `{"j":"k","k":"other","t":1,"v":"x"}`}, []string{pair(`"k"`)}},
	} {
		t.Run(name, func(t *testing.T) { joinTyped(t, c.conf, c.a, c.b, c.want) })
	}
	record := `{"topic":"b","partition":0,"offset":%d,"ts":1,"key":%s,"payload":"{\"t\":1,\"v\":\"x\"}"}`
	conf := strings.Replace(caseConf(0, 50, 0, ""), "b: {key: $.k", `b: {key: "@key"`, 1)
	joinTyped(t, conf, []string{rec(`"k"`), rec("5")}, []string{fmt.Sprintf(record, 0, `"k"`), fmt.Sprintf(record, 1, `"5"`), fmt.Sprintf(record, 2, "null")}, []string{pair(`"k"`)})
}

// TestRule05Malformed: it is counted and dead-lettered with its place, and what follows joins.
func TestRule05Malformed(t *testing.T) {
	bad := []string{`{"k":"k","t":1`, `{"k":"k","t":1} x`, `{"k":"k","t":1,"bad":}`, "{\"k\":\"\xff\",\"t\":1}", "", `{"k":"k","t":1}{}`, `{"k":"k","t":01}`}
	p := newPlace(t)
	a := append(slices.Clone(bad), rows("k 2 a")...)
	args := func(conf string) []string {
		return []string{"join", "-c", p.write("join.yaml", conf), "--a", p.write("a", a...), "--b", p.write("b", rows("k 3 b")...), "--dead", p.path("dead"), "--stats", p.path("stats"), "--progress", "none"}
	}
	o := joinbench(args(caseConf(0, 50, 0, ""))...)
	o.want(t, 0)
	wantLines(t, o.lines(t), pairs("k 3 a b")...)
	if c := p.stats("stats"); c.A.Malformed != int64(len(bad)) || c.A.Accepted != 1 || c.Unvalidated {
		t.Errorf("counters %+v", c.A)
	}
	for i, line := range p.lines("dead") {
		if want := fmt.Sprintf(`{"topic":"a","partition":0,"offset":%d,`, i); !strings.HasPrefix(line, want) || !strings.HasSuffix(line, `"reason":"malformed"}`) {
			t.Errorf("dead line %s, want %s", line, want)
		}
	}
	// A null payload is malformed in a stream, and lenient does not look at the whole document.
	tomb := `{"topic":"a","partition":7,"offset":70,"ts":1,"key":"k","payload":null}`
	c := joinTyped(t, caseConf(0, 50, 0, ""), []string{tomb}, rows("k 3 b"), nil)
	if c.A.Malformed != 1 {
		t.Errorf("tombstone: %+v", c.A)
	}
	c = joinTyped(t, caseConf(0, 50, 0, "validate: lenient\n"), []string{`{"k":"k","t":1,"v":"a","bad":}`}, rows("k 3 b"), pairs("k 3 a b"))
	if c.A.Malformed != 0 || !c.Unvalidated {
		t.Errorf("lenient: %+v", c)
	}
}

// TestRule06EventTime: the units, which are cut to ms, the record's time, and the wall clock.
func TestRule06EventTime(t *testing.T) {
	for unit, at := range map[string]string{"ms": "1700000000123", "us": "1700000000123999", "ns": "1700000000123999999", "rfc3339": `"2023-11-14T23:13:20.1239+01:00"`, "s": "1700000000"} {
		ms := int64(1700000000123)
		if unit == "s" {
			ms = 1700000000000
		}
		conf := strings.Replace(caseConf(0, 0, 0, "type: left\n"), "a: {key: $.k, time: $.t", "a: {key: $.k, time_unit: "+unit+", time: $.t", 1)
		joinTyped(t, conf, []string{`{"k":"k","t":` + at + `,"v":"a"}`}, rows(fmt.Sprintf("k %d b", ms), fmt.Sprintf("k %d c", ms+1)), pairs(fmt.Sprintf("k %d a b", ms)))
	}
	conf := strings.Replace(caseConf(0, 5, 0, ""), "b: {key: $.k, time: $.t", "b: {key: $.k", 1)
	joinTyped(t, conf, rows("k 10 a"), []string{`{"topic":"b","partition":0,"offset":0,"ts":15,"key":null,"payload":"{\"k\":\"k\",\"t\":999,\"v\":\"b\"}"}`}, pairs("k 15 a b"))
	p := newPlace(t)
	before := time.Now().UnixMilli()
	o := joinbench("join", "-c", p.write("join.yaml", strings.ReplaceAll(caseConf(3600_000, 3600_000, 3600_000, ""), "$.t", "arrival")), "--a", p.write("a", rows("k 1 a")...),
		"--b", p.write("b", rows("k 9000000 b")...), "--progress", "none")
	o.want(t, 0)
	var r struct{ TS int64 }
	if err := json.Unmarshal([]byte(o.out), &r); err != nil || r.TS < before || r.TS > time.Now().UnixMilli() {
		t.Errorf("arrival: %s (%v), began at %d", o.out, err, before)
	}
}

// TestRule10Closes: an A closes when WM_B passes tA + after + G, a waiting B when WM_A passes tB + before + G; not at equality.
func TestRule10Closes(t *testing.T) {
	for _, c := range []struct {
		conf string
		a, b []string
		want []string
	}{
		{"type: left\n", rows("k 0 a"), rows("x 55 x"), nil},
		{"type: left\n", rows("k 0 a"), rows("x 56 x"), nulls("a k 0 a")},
		{"type: right\nprobe: wait\n", rows("x 115 x"), rows("k 100 b"), nil},
		{"type: right\nprobe: wait\n", rows("x 116 x"), rows("k 100 b"), nulls("b k 100 b")},
	} {
		p := newPlace(t)
		o := joinbench("join", "-c", p.write("join.yaml", caseConf(10, 50, 5, "max_spread: 1h\n"+c.conf)), "--a", p.write("a", c.a...), "--b", p.write("b", c.b...),
			"--no-drain", "--stats", p.path("stats"), "--progress", "none")
		o.want(t, 0)
		wantLines(t, o.lines(t), c.want...)
	}
}

// TestRule16Unmatched: once, when it closes; within a batch matching comes before closing; what was matched never comes out alone.
func TestRule16Unmatched(t *testing.T) {
	a, b := rows("k 0 a", "m 1 a", "z 900 z"), rows("k 50 b", "n 51 b", "z 900 z")
	pair := pairs("k 50 a b", "z 900 z z")
	for _, probe := range []string{"aligned", "wait"} {
		for typ, want := range map[string][]string{"inner": pair, "left": append(nulls("a m 1 a"), pair...), "right": append(nulls("b n 51 b"), pair...),
			"outer": append(nulls("a m 1 a", "b n 51 b"), pair...)} {
			joinTyped(t, caseConf(0, 50, 0, "type: "+typ+"\nprobe: "+probe+"\n"), a, b, want)
		}
	}
	p, got := joinFiles(t, caseConf(0, 50, 0, "unmatched: topic\n"), a, b, "--unmatched", newPlace(t).path("unmatched"))
	wantLines(t, got, pair...)
	if c := p.stats("stats"); c.UnmatchedA != 1 || c.UnmatchedB != 1 {
		t.Errorf("counters %+v", c)
	}
}

// TestRule19Groups: when a group comes out, what it has, and what is counted.
func TestRule19Groups(t *testing.T) {
	a := []string{`{"k":"k","t":0,"v":"a","n":2}`, `{"k":"k","t":1,"v":"a2","n":2}`, `{"k":"m","t":2,"v":"a","n":1.5}`, `{"k":"o","t":3,"v":"a","n":1}`}
	b := rows("k 20 b2", "k 10 b1", "k 30 b3", "m 30 b", "m 31 end", "m 32 b")
	group := func(key string, ts int, v, bs, more string) string {
		return fmt.Sprintf(`{"key":%q,"ts":%d,"a":{"v":%q},"b":[%s],"complete":%s}`, key, ts, v, bs, more)
	}
	const b1, b2, b3, x, end = `{"v":"b1"}`, `{"v":"b2"}`, `{"v":"b3"}`, `{"v":"b"}`, `{"v":"end"}`
	null := nulls("a o 3 a", "a k 1 a2")
	for how, want := range map[string][]string{
		// In the order of time, not of coming; the third goes to the next A.
		"{count: $.n}":                        {group("k", 20, "a", b1+","+b2, "true"), group("k", 30, "a2", b3, `false,"got":1,"wanted":2`), group("m", 32, "a", x+","+end+","+x, `false,"got":3`), null[0]},
		"{marker: {field: $.v, equals: end}}": {group("k", 30, "a", b1+","+b2+","+b3, `false,"got":3`), group("m", 31, "a", x+","+end, "true"), null[0], null[1]},
		"timeout":                             {group("k", 30, "a", b1+","+b2+","+b3, "true"), group("m", 32, "a", x+","+end+","+x, "true"), null[0], null[1]},
	} {
		for _, batch := range []string{"1", "3", "4096"} {
			p := newPlace(t)
			o := joinbench("join", "-c", p.write("join.yaml", caseConf(0, 50, 20, "type: left\ncardinality: one-to-many\ncollect: "+how+"\n")), "--a", p.write("a", a...),
				"--b", p.write("b", b...), "--batch", batch, "--stats", p.path("stats"), "--progress", "none")
			o.want(t, 0)
			wantLines(t, o.lines(t), want...)
			c := p.stats("stats")
			inGroups := int64(strings.Count(o.out, `"v":"b`) + strings.Count(o.out, `"v":"end`))
			if c.Matches != inGroups || c.Outputs != int64(len(want)) {
				t.Errorf("%s: %d matches of %d B in groups, %d outputs of %d", how, c.Matches, inGroups, c.Outputs, len(want))
			}
		}
	}
}

// TestRule20MaxPending: an A beyond the limit ends the run and is named; nothing of its batch is committed.
func TestRule20MaxPending(t *testing.T) {
	p := newPlace(t)
	args := func(limit int) []string {
		return []string{"join", "-c", p.write("join.yaml", caseConf(0, 50, 0, fmt.Sprintf("max_pending: %d\n", limit))), "--a", p.write("a", rows("k 1 a", "l 1 a", "m 1 a")...),
			"--b", p.write("b", rows("k 2 b", "m 2 b")...), "--state-dir", p.path("state"), "--batch", "2", "--out", p.path("out"), "--progress", "none"}
	}
	joinbench(args(2)...).want(t, results.ExitFailed, "max_pending", "side a, partition 0, offset 2", "raise max_pending")
	if p.read("out") != "" {
		t.Errorf("printed %s", p.read("out"))
	}
	joinbench(args(3)...).want(t, 0, "") // the same run goes on
	wantLines(t, p.lines("out"), pairs("k 2 a b", "m 2 a b")...)
}

// TestRule23Output: what a line has, in its order; an absent field is left out, and kept values stay as written but for blanks.
func TestRule23Output(t *testing.T) {
	conf := "a: {key: $.k, time: $.t, keep: [$.v, {deep: $.o.p}, $.w]}\nb: {key: $.k, time: $.t}\nwindow: {within: 50ms}\ngrace: 0s\ntype: outer\nstate: {sync: none, tasks: 2}\n"
	joinTyped(t, conf, []string{`{"k":"k","t":30,"w":1.50,"o":{"p":[1, {"q":null}]}}`, `{"k":7,"t":31,"v":null}`}, []string{`{"t":20, "k":"k"}`, `{"k":"x","t":32}`}, []string{
		`{"key":"k","ts":30,"a":{"deep":[1,{"q":null}],"w":1.50},"b":{"t":20,"k":"k"}}`, `{"key":7,"ts":31,"a":{"v":null},"b":null}`, `{"key":"x","ts":32,"a":null,"b":{"k":"x","t":32}}`})
	p := newPlace(t)
	twice := strings.Replace(conf, "{deep: $.o.p}", "{v: $.o.p}", 1)
	joinbench("join", "-c", p.write("join.yaml", twice), "--a", p.write("a"), "--b", p.write("b")).want(t, results.ExitUsage, `"v"`)
}
