package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"joinbench/capture"
	"joinbench/config"
	"joinbench/internal/oracle"
	"joinbench/results"
)

// explainSides are keyed by $.k and timed by $.t; what follows is in ms.
const explainSides = `a: {key: $.k, time: $.t, keep: [$.v]}
b: {key: $.k, time: $.t, keep: [$.v]}
window: {before: 10ms, after: 50ms}
grace: 5ms
max_spread: 100ms
state: {sync: none, tasks: 2}
`

// explainOf explains a key of two files of lines, one record a batch unless it says otherwise.
func explainOf(t *testing.T, conf string, a, b []string, key string, more func(*ExplainConfig)) *Explanation {
	t.Helper()
	dir := t.TempDir()
	j, err := config.Parse([]byte(conf), "join.yaml")
	if err == nil {
		err = j.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	ec := ExplainConfig{Key: key, JoinConfig: JoinConfig{Config: j, A: filepath.Join(dir, "a"), B: filepath.Join(dir, "b"), Batch: 1}}
	writeFile(t, ec.A, []byte(joinLines(a...)))
	writeFile(t, ec.B, []byte(joinLines(b...)))
	if more != nil {
		more(&ec)
	}
	x, err := Explain(context.Background(), ec)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func textOf(t *testing.T, x *Explanation) string {
	t.Helper()
	var text bytes.Buffer
	if err := x.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// ev are records given as "key time value".
func ev(list ...string) (lines []string) {
	for _, s := range list {
		f := strings.Fields(s)
		lines = append(lines, fmt.Sprintf(`{"k":%q,"t":%s,"v":%q}`, f[0], f[1], f[2]))
	}
	return lines
}

// TestExplainFates: what is said of each fate and each kind of join, in this order; what must not be said has a ! before it.
func TestExplainFates(t *testing.T) {
	many, far := "cardinality: one-to-many\n", ev("z 900 z")
	for _, c := range []struct {
		name, conf string
		a, b       []string
		noDrain    bool
		want       []string
	}{
		{"pair", "", append(ev("k 100 a"), far...), append(ev("k 120 b"), far...), false, []string{
			"key \"k\": 1 of A, 1 of B", "a a/0@0: paired with b b/0@0", "line 1, time 100 (1970-01-01T00:00:00.100Z)", "waits in the bucket of",
			"until WM_B > tA + after + G = 155 (rule 10)", "paired with b b/0@0, tB = tA + 20ms (rule 1)", `→ results: {"key":"k","ts":120,"a":{"v":"a"},"b":{"v":"b"}}`,
			"b b/0@0: paired with a a/0@0", "held back in batch", "asks when WM_A > tB + before + G = 135, and WM_A was 100 (rule 12)",
			"asks: WM_A = ", "> tB + before + G = 135, so every A that could match has come (rule 12)", "paired with a a/0@0 (rule 1)"}},
		{"sealed, then alone", "type: left\n", append(ev("k 0 a", "y 400 y"), far...), append(ev("x 30 x"), ev("x 80 x", "z 900 z")...), false, []string{
			"a a/0@0: no partner: null row", "waits in the bucket of 0 to", "its bucket is sealed: WM_A − G = ", "is at its end (rule 11)",
			"it closes alone: WM_B = 80 > tA + after + G = 55 (rule 16)", `→ results: {"key":"k","ts":0,"a":{"v":"a"},"b":null}`, "why       no record of B has this key"}},
		{"inner, alone: window", "", ev("k 100 a"), ev("k 89 b", "k 151 b"), false, []string{
			"a a/0@0: no partner: no result", "→ unmatched: ", "why       b b/0@0: tB = tA − 11ms, and the window begins at tA − 10ms (rule 1)",
			"b b/0@1: tB = tA + 51ms, and the window ends at tA + 50ms (rule 1)", "b b/0@0: no partner: no result", "no A that it may pair with is there (rule 16)"}},
		{"used up", "", ev("k 100 a"), ev("k 101 b1", "k 102 b2"), false, []string{
			"a a/0@0: paired with b b/0@0", "b b/0@1: no partner", "why       a a/0@0: in the window, but paired with b b/0@0 (rule 2)"}},
		{"late", "type: outer\n", ev("z 100 z", "k 94 a"), ev("k 95 b"), false, []string{
			"a a/0@1: late: joins nothing", "late: t + G = 94 + 5 < M(p) = 100, the greatest time of its partition (rule 8)", "→ late: ", `"reason":"late"`,
			"b b/0@0: no partner: null row", "why       a a/0@1: late: joins nothing"}},
		{"no key", "type: left\n", []string{`{"k":null,"t":1,"v":"k"}`, `{"k":["k"],"t":2}`, `{"k":"k","t":-1}`, `{"k":"k","t":3`, `{"k":null,"t":4}`}, ev("k 1 b"), false, []string{
			"key \"k\": 4 of A, 1 of B", "a a/0@0: null_key: joins nothing", "its key is absent or null: it joins nothing (rule 4)", `→ results: {"key":null,"ts":1,"a":{"v":"k"},"b":null}`,
			"a a/0@1: bad_key: joins nothing", "(rule 4)", "→ dead: ", "a a/0@2: bad_time: joins nothing", "line 3", "it has no usable event time (rule 9)",
			"a a/0@3: malformed: joins nothing", "it is not one whole valid JSON value (rule 5)", "!a/0@4"}},
		{"one-to-many", many, append(ev("k 100 a"), far...), append(ev("k 110 b1", "k 150 b2"), ev("x 400 x", "z 900 z")...), false, []string{
			"a a/0@0: paired with 2 of B", "paired with b b/0@0", "paired with b b/0@1", "closes, and has paired: WM_B = 400 > tA + after + G = 155 (rule 10)"}},
		{"waits at the end", "", ev("k 100 a", "k 101 a"), ev("k 90 b", "k 120 b"), true, []string{
			"a a/0@0: still waits", "still waits at the end of the input (no drain), until WM_B > tA + after + G = 155; WM_B is 90 (rule 15)",
			"b b/0@0: still held back", "asks when WM_A > tB + before + G = 105, and WM_A was", "is still held back at the end of the input (no drain) (rule 15)",
			"b b/0@1: still held back", "it stands behind offset 0 of its partition: asks when WM_A > tB + before + G = 105"}},
		{"held by the spread", "probe: immediate\n", ev("x 0 x", "k 400 a"), ev("k 200 b"), false, []string{
			"a a/0@1", "held back in batch 2: more than max_spread ahead of B, whose next event had not reached 300 (rule 13)"}},
		{"wait", "probe: wait\ntype: right\n", ev("k 100 a", "y 140 y"), ev("k 120 b", "k 130 c"), true, []string{
			"b b/0@0: paired with a a/0@0", "asks at once (probe: wait) (rule 12)", "!waits in the bucket of 110", "b b/0@1: still waits", "asks at once",
			"waits in the bucket of 121 to 131, until WM_A > tB + before + G = 145 (rule 10)", "still waits at the end of the input (no drain), until WM_A > tB + before + G = 145; WM_A is 140 (rule 15)"}},
		{"wait, closed", "probe: wait\ntype: right\n", append(ev("k 100 a"), far...), ev("k 120 b", "k 130 c"), false, []string{
			"b b/0@1: no partner: null row", "it waits nowhere (rule 10)", "it closes alone: WM_A = 900 > tB + before + G = 145 (rule 16)"}},
		{"immediate", "probe: immediate\ntype: left\n", ev("x 0 x", "k 100 a"), ev("k 100 b"), false, []string{"asks at once and never again (probe: immediate) (rule 12)"}},
		{"many-to-many", "cardinality: many-to-many\n", ev("k 100 a1", "k 100 a2"), ev("k 101 b"), false, []string{
			"a a/0@0: paired with b b/0@0", "a a/0@1: paired with b b/0@0", "b b/0@0: paired with 2 of A"}},
		{"early, corrected", "type: left\nearly: 20ms\nretract: true\n", append(ev("k 100 a"), far...), append(ev("x 130 x", "k 140 b"), far...), false, []string{
			"a a/0@0: null row early, then paired with b b/0@1", "its null row comes early: WM_B = 130 > tA + early + G = 125 (rule 17)", `→ results: {"key":"k","ts":100,"a":{"v":"a"},"b":null}`,
			"paired with b b/0@1, tB = tA + 40ms; too late for early (tA + 20ms), so it corrects a null row (rule 17)", `→ results: {"key":"k","retract":true}`, `"corrected":true`}},
		{"early, just before", "type: left\nearly: 20ms\n", append(ev("k 100 a"), far...), append(ev("k 121 b"), far...), false, []string{
			"a a/0@0: paired with", "so it corrects a null row (rule 17), which comes just before", `"b":null}`, `"corrected":true`}},
		{"early, alone", "type: left\nearly: 20ms\n", append(ev("k 100 a"), far...), ev("x 300 x"), false, []string{
			"a a/0@0: no partner: null row early", "early: WM_B = 300", "closes, and its null row has come"}},
		{"ended with a pair", many + "complete_on: {field: $.v, equals: no, emit: pair}\n", ev("k 100 a"), ev("k 101 no", "k 102 b"), false, []string{
			"a a/0@0: paired with b b/0@0", "ended by b b/0@0 (complete_on) (rule 18)", "b b/0@1: no partner", "in the window, but paired with"}},
		{"ended alone", "type: left\ncomplete_on: {field: $.v, equals: no, emit: unmatched}\n", ev("k 100 a"), ev("k 101 no"), false, []string{
			"a a/0@0: no partner: null row", "ended by b b/0@0 (complete_on) (rule 18)", "its end lets it out alone", `"b":null}`, "b b/0@0: ends a a/0@0"}},
		{"ended silently", "type: left\ncomplete_on: {field: $.v, equals: no, emit: nothing}\n", ev("k 100 a"), ev("k 101 no"), false, []string{
			"a a/0@0: ended by b b/0@0: no result", "!results", "b b/0@0: ends a a/0@0"}},
		{"count", many + "collect: {count: $.n}\n", append([]string{`{"k":"k","t":100,"n":2,"v":"a"}`, `{"k":"k","t":101,"n":2,"v":"a"}`}, far...), append(ev("k 102 b1", "k 103 b2", "k 104 b3"), far...), false, []string{
			"a a/0@0: grouped with 2 of B", "collects b b/0@0, tB = tA + 2ms (rule 19)", "its group of 2 B comes out, complete (rule 19)", `"complete":true`,
			"a a/0@1: grouped with b b/0@2", "its group of 1 B comes out, incomplete, 2 wanted, because it closes: WM_B = 900 > tA + after + G = 156", `"complete":false,"got":1,"wanted":2`,
			"b b/0@0: in the group of a a/0@0", "collected with a a/0@0", "comes out in the group of a a/0@0"}},
		{"marker", many + "collect: {marker: {field: $.v, equals: end}}\n", ev("k 100 a"), ev("k 101 b", "k 102 end"), false, []string{
			"a a/0@0: grouped with 2 of B", "its group of 2 B comes out, complete (rule 19)"}},
		{"timeout, still waits", many + "collect: timeout\n", ev("k 100 a", "x 300 x"), ev("k 101 b"), true, []string{
			"a a/0@0: still waits", "collects b b/0@0", "still waits at the end", "b b/0@0: taken by a a/0@0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := explainOf(t, explainSides+c.conf, c.a, c.b, "k", func(ec *ExplainConfig) { ec.NoDrain = c.noDrain })
			text := textOf(t, x)
			rest := text
			for _, w := range c.want {
				if not, is := strings.CutPrefix(w, "!"); is {
					if strings.Contains(text, not) {
						t.Errorf("says %q", not)
					}
					continue
				}
				_, after, found := strings.Cut(rest, w)
				if !found {
					t.Fatalf("does not say %q, or not in its place:\n%s", w, text)
				}
				rest = after
			}
		})
	}
}

// Redelivered records, and places of envelopes.
func TestExplainRedelivered(t *testing.T) {
	line := func(offset int, key string) string {
		return fmt.Sprintf(`{"topic":"orders","partition":3,"offset":%d,"tstype":"create","ts":100,"key":%q,"payload":"{\"t\":100}"}`, offset, key)
	}
	conf := strings.ReplaceAll(explainSides, "key: $.k", `key: "@key"`)
	x := explainOf(t, conf, []string{line(7, "k"), line(8, "x"), line(7, "k")}, []string{line(0, "k")}, "k", nil)
	text := textOf(t, x)
	for _, w := range []string{"a orders/3@7: paired with b orders/3@0", "line 1", "a orders/3@7: redelivered: joins nothing", "line 3", "its partition was read beyond this offset before (rule 3)"} {
		if !strings.Contains(text, w) {
			t.Errorf("does not say %q:\n%s", w, text)
		}
	}
}

// A key that nobody has: the nearest, or the same text of the other type.
func TestExplainUnknownKey(t *testing.T) {
	a := append(ev("PAY-1 1 a", "PAY-12 1 a", "ORD-9 1 a"), `{"k":42,"t":1}`)
	for key, want := range map[string][]string{"PAY-2": {`"PAY-1"`, `"PAY-12"`}, "42": {"42"}, "quite another": nil, "": nil} {
		x := explainOf(t, explainSides, a, nil, key, nil)
		if x.Found() || !slices.Equal(x.Near, want) || x.OtherType != (key == "42") {
			t.Errorf("%q: found %v, near %q, other type %v", key, x.Found(), x.Near, x.OtherType)
		}
	}
	x := explainOf(t, explainSides, a, nil, "42", func(ec *ExplainConfig) { ec.Number = true })
	if !x.Found() || x.Key != "42" {
		t.Errorf("number: found %v, key %s", x.Found(), x.Key)
	}
}

// Each step and each verdict is one JSON object.
func TestExplainJSON(t *testing.T) {
	x := explainOf(t, explainSides, ev("k 100 a"), ev("k 120 b", "k 800 b"), "k", nil)
	var out bytes.Buffer
	if err := x.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	verdicts := map[string]string{}
	n := 0
	for dec := json.NewDecoder(&out); dec.More(); n++ {
		var o struct {
			Event, Side, Topic, Step, Text string
			Time                           *int64
			Output                         []struct {
				To   string
				Line json.RawMessage
			}
			With []string
		}
		if err := dec.Decode(&o); err != nil {
			t.Fatal(err)
		}
		if o.Step == "verdict" {
			verdicts[o.Event] = o.Text
		}
		if o.Side == "a" && o.Step == "pair" && (len(o.Output) != 1 || string(o.Output[0].Line) != `{"key":"k","ts":120,"a":{"v":"a"},"b":{"v":"b"}}` || !slices.Equal(o.With, []string{"b b/0@0"})) {
			t.Errorf("pair %+v", o)
		}
		if o.Time == nil || o.Text == "" || o.Topic != o.Side {
			t.Errorf("step %+v", o)
		}
	}
	want := map[string]string{"a a/0@0": "paired with b b/0@0", "b b/0@0": "paired with a a/0@0", "b b/0@1": "no partner: no result"}
	if n != len(x.Steps)+3 || !maps.Equal(verdicts, want) {
		t.Errorf("%d objects of %d steps, verdicts %v", n, len(x.Steps), verdicts)
	}
}

// TestExplainEqualsJoin: on random workloads with random rules, what explain says is written because of the keys is what join
// writes: all results and unmatched lines but those without a key, and of late and dead lines no other ones.
func TestExplainEqualsJoin(t *testing.T) {
	cases, keysEach := 24, 6
	if testing.Short() {
		cases = 6
	}
	explained := 0
	for i := range uint64(cases) {
		seed := *oracleSeed + i
		cfg, a, b, format := oracle.RandomRules(oracle.NewRand(seed))
		s := &scene{t: t, seed: seed, dir: t.TempDir()}
		v := variants()[int(seed)*variantStride%len(variants())]
		v.tasks = 1
		var err error
		if s.conf, err = joinConfig(cfg, v); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if s.format, err = capture.ParseFormat(format); err != nil {
			t.Fatal(err)
		}
		s.conf.Output.Key = oracle.JoinKey // so that tombstones say whose they are
		writeFile(t, s.path("a.ndjson"), a)
		writeFile(t, s.path("b.ndjson"), b)
		jc := s.join("run", v)
		jc.NoDrain = seed%4 == 0
		counts, err := Join(context.Background(), jc)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		explained += s.explainAll(jc, counts, keysEach)
		if t.Failed() {
			t.Fatalf("seed %d, %s, no drain %v", seed, s.conf.Brief(), jc.NoDrain)
		}
	}
	if explained < cases {
		t.Errorf("only %d keys explained", explained)
	}
}

// explainAll explains keys of the results, and compares; it says how many. If those are all keys, so are the lines.
func (s *scene) explainAll(jc JoinConfig, counts *results.Counters, most int) int {
	s.t.Helper()
	byKey := map[string][]string{}
	for _, l := range s.lines(s.path("run-out")) {
		byKey[keyOfLine(s.t, l)] = append(byKey[keyOfLine(s.t, l)], l)
	}
	written := map[string]map[string]int{}
	for _, name := range []string{"late", "dead", "unmatched"} {
		written[name] = map[string]int{}
		for _, l := range s.lines(s.path("run-" + name)) {
			written[name][l]++
		}
	}
	n := 0
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		if key == "null" || n == most {
			continue
		}
		n++
		ec := ExplainConfig{JoinConfig: jc, Key: key, Number: key[0] != '"'}
		if !ec.Number {
			if err := json.Unmarshal([]byte(key), &ec.Key); err != nil {
				s.t.Fatal(err)
			}
		}
		x, err := Explain(context.Background(), ec)
		if err != nil {
			s.t.Fatal(err)
		}
		if strings.Contains(key, "\ufffd") {
			continue // bytes that are no UTF-8 print alike
		}
		said := map[string][]string{}
		for _, st := range x.Steps {
			for _, l := range st.Output {
				said[l.To] = append(said[l.To], l.Line)
			}
		}
		var got []string
		for _, l := range said["results"] {
			if keyOfLine(s.t, l) != "null" {
				got = append(got, l)
			}
		}
		if want := byKey[key]; !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
			s.t.Errorf("key %s: results\n%s\njoin writes\n%s\n%s", key, strings.Join(got, "\n"), strings.Join(want, "\n"), textOf(s.t, x))
		}
		for name, lines := range written {
			for _, l := range said[name] {
				if lines[l]--; lines[l] < 0 && name != "dead" { // a line may have the text of several keys
					s.t.Errorf("key %s: join does not write %s line %s\n%s", key, name, l, textOf(s.t, x))
				}
			}
		}
		s.verdicts(x)
	}
	return n
}

// verdicts: an event's verdict and its steps say the same.
func (s *scene) verdicts(x *Explanation) {
	s.t.Helper()
	for _, e := range x.Events {
		did := map[string]int{}
		for _, st := range e.Steps {
			did[st.Step]++
		}
		v := e.Verdict
		ok := true
		switch {
		case strings.HasPrefix(v, "no partner"):
			ok = did["pair"]+did["group"]+did["collected"] == 0
		case strings.Contains(v, "paired with"):
			ok = did["pair"] > 0 && did["unmatched"] == 0
		case strings.Contains(v, "group"):
			ok = did["group"] == 1 && did["unmatched"] == 0
		case strings.Contains(v, "joins nothing"):
			ok = did["refused"] == 1 && did["pair"] == 0
		case v == "no result":
			ok = false
		}
		if !ok {
			s.t.Errorf("%s: %s, steps %v\n%s", e.ID, v, did, textOf(s.t, x))
		}
	}
}

func keyOfLine(t *testing.T, line string) string {
	t.Helper()
	var o struct{ Key json.RawMessage }
	if err := json.Unmarshal([]byte(line), &o); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return string(o.Key)
}
