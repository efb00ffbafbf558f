package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Every message that a text can cause. The text is laid over small unless it brings sides of its own.
func TestMessages(t *testing.T) {
	const a, b, w = "a: {key: $.x}\n", "b: {key: $.y}\n", "window: {after: 4h}\n"
	for _, c := range []struct{ text, want string }{
		// what the cases ask for
		{"windw: 10s", `join.yaml:4: unknown key "windw" (did you mean "window"?)`},
		{a + b + "window: 10", `join.yaml:3: window is a mapping of before, after, within; got "10" (for example window: {after: 4h})`},
		{a + b + "window: {after: 10}", `join.yaml:3: window.after: 10 needs a unit, for example 10ms, 10s, 10m or 10h`},
		{"state: {buckets: 1}", `join.yaml:4: state.buckets: 1 is out of range (2 to 64)`},
		{"state: {buckets: 65}", `join.yaml:4: state.buckets: 65 is out of range (2 to 64)`},
		{"state: {width: 1000666ms}", `join.yaml:4: state.width: 16m40.666s is too small: (buckets - 1) x width must reach max(before, after) + grace + max_spread = 4h10m10s, with 16 buckets from 16m40.667s on (or auto)`},
		{"state: {width: 1000666ms, buckets: 17}", ""},

		// unknown keys
		{"state: {fliter: none}", `join.yaml:4: unknown key "state.fliter" (did you mean "state.filter"?)`},
		{"filter: none", `join.yaml:4: unknown key "filter" (did you mean "state.filter"?)`},
		{"maxSpread: 1h", `unknown key "maxSpread" (did you mean "max_spread"?)`},
		{"max-spread: 1h", `unknown key "max-spread" (did you mean "max_spread"?)`},
		{"topics: {zzzzzz: x}", `unknown key "topics.zzzzzz" (known here: late, dead, unmatched)`},
		{"? [x]\n: 1", `join.yaml:5: found an invalid key for this map`},

		// unknown values
		{"type: iner", `type: unknown value "iner" (allowed: inner, left, right, outer; did you mean "inner"?)`},
		{"state: {filter: off}", `state.filter: unknown value "off" (allowed: fuse8, fuse16, fuse32, bloom, none)`},
		{"state: {filter: Fuse8}", `state.filter: unknown value "Fuse8" (allowed: fuse8, fuse16, fuse32, bloom, none; did you mean "fuse8"?)`},
		{"state: {sync: always}", `state.sync: unknown value "always" (allowed: none, interval, batch)`},
		{"state: {filter: }", `state.filter has no value (leave the key out for its default)`},
		{"state: {filter: null}", `state.filter has no value`},
		{"state: {filter: [none]}", `state.filter: [none] is not a single value`},
		{"retract: off", `retract: unknown value "off" (allowed: true, false)`},
		{"retract: yes", `retract: unknown value "yes" (allowed: true, false)`},
		{"validate: lenent", `did you mean "lenient"?`},
		{"unmatched: topics", `did you mean "topic"?`},
		{a + b + w + "cardinality: 1:1", `cardinality: unknown value "1:1" (allowed: one-to-one, one-to-many, many-to-many)`},
		{"a: {key: $.x, time: timestamp}\n" + b + w, `a.time: unknown value "timestamp" (allowed: @timestamp, arrival, or a path like $.time; did you mean "@timestamp"?)`},
		{"a: {key: $.x, time: $.}\n" + b + w, `a.time: unknown value "$." (allowed`},
		{"a: {key: $.x, time_unit: sec}\n" + b + w, `a.time_unit: unknown value "sec" (allowed: ms, us, ns, s, rfc3339)`},
		{"a: {key: $.x, key_type: str}\n" + b + w, `a.key_type: unknown value "str" (allowed: exact, string)`},
		{"kafka: {isolation: committed}", `kafka.isolation: unknown value "committed" (allowed: read_committed, read_uncommitted)`},
		{"collect: eagr", `collect: unknown value "eagr" (allowed: eager, timeout, {count: path}, {marker: {field: path, equals: value}}; did you mean "eager"?)`},

		// durations, sizes, numbers
		{"grace: 0", `grace: 0 needs a unit, for example 0ms, 0s, 0m or 0h`},
		{"grace: 1.5", `grace: 1.5 needs a unit`},
		{"grace: 10 s", `grace: "10 s" is not a duration (a number with ms, s, m, h or d, for example 10s)`},
		{"grace: ten", `grace: "ten" is not a duration`},
		{"grace: 1d2", `grace: "1d2" is not a duration`},
		{"grace: -5s", `grace: -5s is less than 0s`},
		{"grace: 100us", `grace: 100µs is not a whole number of milliseconds`},
		{"grace: 3651d", `grace: 3651d is too long (at most 87600h)`},
		{"grace: 87601h", `grace: 87601h is too long (at most 87600h)`},
		{"grace: 3650d1h", `grace: 87601h is too long (at most 87600h)`},
		{"max_spread: 0s", `max_spread: 0s must be more than 0 (or auto)`},
		{"max_spread: 10s", `join.yaml:4: max_spread: 10s must be more than window.before + grace = 10s (or auto)`},
		{"max_spread: automatic", `max_spread: "automatic" is not a duration`},
		{"state: {width: 0s}", `state.width: 0s must be more than 0 (or auto)`},
		{"state: {width: -1m}", `state.width: -1m is less than 1ms`},
		{"state: {memory: 256}", `state.memory: 256 needs a unit, for example 256MiB`},
		{"state: {memory: 256Mb}", `state.memory: "256Mb" is not a size (unknown unit "Mb"; units B, KiB, MiB, GiB, TiB, kB, MB, GB, TB)`},
		{"state: {memory: 1KiB}", `state.memory: 1KiB is out of range (1MiB to 1024TiB)`},
		{"state: {memory: MiB}", `state.memory: "MiB" is not a size (no number at its start`},
		{"state: {memory: 9999999TiB}", `is not a size (not a whole number, or too large`},
		{"state: {buckets: many}", `state.buckets: "many" is not a whole number (2 to 64)`},
		{"state: {buckets: 1_6}", `state.buckets: "1_6" is not a whole number (2 to 64)`},
		{"state: {tasks: 0}", `state.tasks: "0" is neither auto nor a number from 1 to 1024`},
		{"state: {tasks: all}", `state.tasks: "all" is neither auto nor a number from 1 to 1024`},
		{"state: {tasks: 1025}", `state.tasks: 1025 is out of range (0 to 1024)`},
		{"state: {dir: ''}", `state.dir must not be empty`},
		{"kafka: {group: ''}", `kafka.group must not be empty`},
		{"kafka: {brokers: []}", `kafka.brokers: an empty list`},
		{"max_pending: 10m", `max_pending: "10m" is not a count (unknown unit "m"; a whole number, for example 500, 500k, 10M or 1G)`},
		{"max_pending: 0.5", `is not a count (not a whole number, or too large`},

		// keys and paths
		{"a: {key: []}\n" + b + w, `a.key: an empty list has no key`},
		{"a: {key: x}\n" + b + w, `a.key: "x" is not a path (a path begins with $, for example $.x)`},
		{"a: {key: .x}\n" + b + w, `a.key: ".x" is not a path (a path begins with $, for example $.x)`},
		{"a: {key: $x}\n" + b + w, `a.key: "$x" is not a path (after $ come .name, [0] or ["name"])`},
		{"a: {key: '@kye'}\n" + b + w, `a.key: "@kye" is neither @key nor a path (did you mean "@key"?)`},
		{"a: {key: ''}\n" + b + w, `a.key: an empty path (a path is like $.x.y)`},
		{"a: {key: [$.x, $.x]}\n" + b + w, `a.key: "$.x" is in the list twice`},
		{"a: {key: {x: y}}\n" + b + w, `a.key: {x: "y"} is not a single value`},
		{"a: {key: $.x, keep: ['@key']}\n" + b + w, `a.keep: "@key" is not a path`},
		{"a: {key: $.x, keep: [$]}\n" + b + w, `a.keep: $ has no last element to be named by, write {name: $}`},
		{"a: {key: $.x, keep: {n: $.y}}\n" + b + w, `a.keep is a list: write [{"n": $.y}]`},
		{"a: {key: $.x, keep: [{n: $.y, m: $.z}]}\n" + b + w, `is not {name: path} (one name, one path)`},
		{"a: {key: $.x, keep: [[$.y]]}\n" + b + w, `a.keep: [$.y] is not a single value`},
		{"a: {key: $.x, keep: [{n: [$.y]}]}\n" + b + w, `a.keep: [$.y] is not a single value`},
		{"a: {key: $.x, time_unit: s}\n" + b + w, `join.yaml:1: a.time_unit: s goes with a path only, and a.time is @timestamp`},
		{"a: {key: $.x, time: $.t, time_unit: s}\n" + b + w, ""},
		{a + "b: {key: $.x, time: arrival, time_unit: ns}\n" + w, `join.yaml:2: b.time_unit: ns goes with a path only, and b.time is arrival`},

		// what is missing
		{b + w + "grace: 1s", `join.yaml: missing key a.key (for example key: $.order.id)`},
		{a + w + "grace: 1s", `join.yaml: missing key b.key (for example key: "@key")`},
		{a + b + "grace: 1s", `join.yaml: missing key window (for example window: {after: 4h})`},
		{a + b + "window:", `join.yaml: missing key window`},
		{a + b + "window: {after: 0s}", ""},
		{a + b + "window: {within: 1h, after: 2h}", `join.yaml:3: window.after: window.within has set it already; use within alone, or before and after`},
		{a + b + "window: {before: 1h, within: 2h}", `join.yaml:3: window.within sets window.before too; use within alone, or before and after`},

		// what a later build will do
		{"a: {key: $.x, kind: table}\n" + b + w, `a.kind: table is not supported by this build yet (supported: stream)`},
		{a + "b: {key: $.x, kind: broadcast}\n" + w, `b.kind: broadcast is not supported by this build yet (supported: stream)`},
		{"a: {key: $.x}\nb: {key: $.y, store: offset}\n" + w, `b.store: offset is for a alone, whose events are the ones that wait: set b.store: projection or full`},
		{"state: {filter: fuse32}", ""},
		{"state: {filter: bloom}", ""},
		{"kafka: {repartition: true}", `kafka.repartition: true is not supported by this build yet (supported: false)`},
		{"kafka: {sasl: , tls: {}}", ""},
		{"kafka: {tls: on}", `kafka.tls is a mapping of enabled, ca, cert, key, server_name, insecure_skip_verify; got`},

		// inside the later values
		{"collect: {cuont: $.n}", `unknown key "collect.cuont" (did you mean "collect.count"?)`},
		{"collect: {count: n}", `collect: "n" is not a path`},
		{"collect: {count: $.n, marker: {}}", `collect: one of eager, timeout`},
		{"collect: {marker: x}", `collect.marker: x is not a mapping of field, equals`},
		{"collect: {marker: {field: x, equals: y}}", `collect: "x" is not a path`},
		{"collect: {marker: {feild: x, equals: y}}", `unknown key "collect.marker.feild" (did you mean "collect.marker.field"?)`},
		{"collect: {marker: {equals: y}}", `collect.marker: field is missing (needed: field, equals)`},
		{"collect: []", `collect: [] is not a single value`},
		{"complete_on: declined", `complete_on: declined is not a mapping of field, equals, emit`},
		{"complete_on: {field: $.s, equals: x}", `complete_on: emit is missing (needed: field, equals, emit)`},
		{"complete_on: {field: $.s, equals: x, emit: pairs}", `complete_on.emit: unknown value "pairs" (allowed: pair, unmatched, nothing; did you mean "pair"?)`},
		{"complete_on: {field: s, equals: x, emit: pair}", `complete_on.field: "s" is not a path`},

		// YAML
		{"grace: 1s\ngrace: 2s", `join.yaml:5: mapping key "grace" already defined`},
		{a + "b: {key: @key}\n" + w, `join.yaml:2: '@' is a reserved character (quote it: "@key")`},
		{"a: {key: [$.x[0]]}\n" + b + w, `(a path with [ ] inside a list or mapping needs quotes: ["$.x[0]"])`},
		{"state:\n\tdir: x", `join.yaml:5: a tab cannot indent YAML, use blanks`},
		{"state: {dir: x", `join.yaml:4: could not find flow mapping end token`},
		{"grace: &g 1s", `join.yaml:4: anchors (&) and aliases (*) are not supported: write the value out, or quote it`},
		{"grace: *g", `anchors (&) and aliases (*) are not supported`},
		{"<<: {grace: 1s}", `merge keys (<<) are not supported: write the keys out`},
		{"grace: !!str 1s", `tags (!) are not supported: leave the tag out, or quote the value`},
		{"? grace\n: 1s", `a key that begins with ? is not supported: write key: value`},
		{"---\ngrace: 1s", `a second document: a configuration is one document`},
		{"- a\n- b", `a configuration is a mapping of a, b, window,`},
		{"state: x\n", `state is a mapping of dir, buckets, width, filter, memory, tasks, sync; got x`},
		{"state:\n", ""},
		{"grace: \xff", `join.yaml:4: invalid UTF-8`},
		{"state: " + strings.Repeat("[", 40) + strings.Repeat("]", 40), `nested too deeply`},
		{"state: " + strings.Repeat("[", 2000), `join.yaml:4: nested too deeply`},
		{"# " + strings.Repeat("x", 64<<10), `bytes are too long for a configuration (at most 65536)`},
	} {
		text := small + c.text
		if strings.HasPrefix(c.text, "a: ") || strings.HasPrefix(c.text, "b: ") || strings.HasPrefix(c.text, "- ") {
			text = c.text
		}
		j, err := Parse([]byte(text), "join.yaml")
		if err == nil {
			err = j.Validate()
		}
		checkFault(t, c.text, err, c.want)
	}
}

// checkFault wants an *Error that says want, and no error if want is empty.
func checkFault(t *testing.T, what string, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("%.80q: %v", what, err)
		}
		return
	}
	if err == nil {
		t.Errorf("%.80q passes; want %s", what, want)
		return
	}
	var e *Error
	if !errors.As(fmt.Errorf("starting: %w", err), &e) || e.ExitCode() != 2 || len(e.Faults) == 0 {
		t.Errorf("%.80q: %T is no *Error with faults and exit code 2", what, err)
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("%.80q:\ngot  %v\nwant %s", what, err, want)
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%q: the message shows the password", what)
	}
}

func TestExcerpt(t *testing.T) {
	_, err := Parse([]byte("a: {key: $.x}\r\n\tb:"), "j")
	want := "j:2: a tab cannot indent YAML, use blanks\n     1 | a: {key: $.x}\n>    2 |  b:\n       | ^"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	_, err = Parse([]byte("grace: 1s\nstate: {buckets: 4, filter: é, width: 10}\ntype: iner\n"), "j")
	want = `j:2: state.filter: unknown value "é" (allowed: fuse8, fuse16, fuse32, bloom, none)
     1 | grace: 1s
>    2 | state: {buckets: 4, filter: é, width: 10}
       |                             ^
j:2: state.width: 10 needs a unit, for example 10ms, 10s, 10m or 10h
     1 | grace: 1s
>    2 | state: {buckets: 4, filter: é, width: 10}
       |                                       ^
j:3: type: unknown value "iner" (allowed: inner, left, right, outer; did you mean "inner"?)
     2 | state: {buckets: 4, filter: é, width: 10}
>    3 | type: iner
       |       ^`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	long := "state: {dir: \"" + strings.Repeat("x", 500) + "\", bukets: 4}"
	_, err = Parse([]byte(long), "j")
	lines := strings.Split(fmt.Sprint(err), "\n")
	if len(lines) != 3 || len(lines[1]) > 140 || !strings.HasPrefix(lines[1][strings.Index(lines[2], "^"):], "bukets") {
		t.Errorf("the caret of a long line:\n%v", err)
	}
}

func TestManyFaultsEnd(t *testing.T) {
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "k%d: 1\n", i)
	}
	_, err := Parse([]byte(text.String()), "j")
	var e *Error
	if !errors.As(err, &e) || len(e.Faults) != maxFaults {
		t.Errorf("%T with %d faults, want %d", err, len(e.Faults), maxFaults)
	}
}

func TestSetMessages(t *testing.T) {
	for _, c := range []struct{ key, value, want string }{
		{"state.filter", "fuse9", `flag --x: state.filter: unknown value "fuse9" (allowed: fuse8, fuse16, fuse32, bloom, none; did you mean "fuse8"?)`},
		{"state.fliter", "none", `flag --x: unknown key "state.fliter" (did you mean "state.filter"?)`},
		{"filter", "none", `unknown key "filter" (did you mean "state.filter"?)`},
		{"nothing.here", "1", `unknown key "nothing.here" (known here: a, b, window`},
		{"", "1", `unknown key "" (known here: a, b`},
		{"a.", "1", `unknown key "a." (`},
		{"grace", "10", `flag --x: grace: 10 needs a unit`},
		{"grace", "", `grace: "" is not a duration`},
		{"grace", "\xff", `grace: invalid UTF-8`},
		{"a.key", "[$.x", `flag --x: a.key: `},
		{"a.key", "[$.x, $.y]", ""},
		{"a.key", "@key", ""},
		{"a.keep", "[$.x, {n: $.y}]", ""},
		{"a.topic", "[x]", ""},
		{"window", "4h", `window is a mapping of before, after, within; got "4h"`},
		{"window", "{after: 1h}", ""},
		{"window", "{aftr: 1h}", `flag --x: unknown key "window.aftr" (did you mean "window.after"?)`},
		{"kafka.brokers", "h:1,,h:2", `kafka.brokers: an empty list, or an empty one in it`},
		{"type", "outer", ""},
		{"delivery", "exactly", `flag --x: delivery: unknown value "exactly" (allowed: at-least-once, exactly-once`},
		{"kafka.sasl", "{pasword: hunter2}", `flag --x: unknown key "kafka.sasl.pasword" (did you mean "kafka.sasl.password"?)`},
		{"kafka.sasl", "{password: hunter2}", ""},
		{"kafka.sasl.password", "hunter2", ""},
	} {
		checkFault(t, c.key+"="+c.value, mustParse(t, small).Set(c.key, c.value, "flag --x"), c.want)
	}
}

func TestEnvMessages(t *testing.T) {
	for _, c := range []struct{ env, want string }{
		{"JOINBENCH_STATE_FLITER=none", `env: unknown variable JOINBENCH_STATE_FLITER (did you mean JOINBENCH_STATE_FILTER?)`},
		{"JOINBENCH_FILTER=none", `unknown variable JOINBENCH_FILTER (did you mean JOINBENCH_STATE_FILTER?)`},
		{"JOINBENCH_Q=1", `unknown variable JOINBENCH_Q (`},
		{"JOINBENCH_GRACE=10", `env JOINBENCH_GRACE: grace: 10 needs a unit`},
		{"JOINBENCH_LOAD_SEED=1", `unknown variable JOINBENCH_LOAD_SEED`},
		{"joinbench_grace=10", ""},
		{"XJOINBENCH_GRACE=10", ""},
		{"JOINBENCH_OWN", ""},
		{"JOINBENCH_TEST_KAFKA=h:1", ""},
	} {
		checkFault(t, c.env, mustParse(t, small).ApplyEnv([]string{c.env}, "JOINBENCH_OWN"), c.want)
	}
}

// One variable must not stand for two keys, and the table must not hold a key twice.
func TestVariablesAreUnique(t *testing.T) {
	p := DefaultProfile()
	seen := map[string]string{}
	for _, l := range append(p.Join.binder("").leaves, p.binder("").leaves...) {
		if other, ok := seen[envName(l.key)]; ok {
			t.Errorf("%s stands for %s and %s", envName(l.key), other, l.key)
		}
		seen[envName(l.key)] = l.key
	}
}

// Values that the program itself puts into a field are judged too.
func TestValidateJudgesFields(t *testing.T) {
	j := mustParse(t, small)
	j.State.Filter, j.State.Buckets, j.Type, j.Grace, j.Collect.Mode = "x", 1, "", -1, ""
	j.Kafka.Brokers, j.MaxSpread = nil, -1
	err := j.Validate()
	for _, want := range []string{`state.filter: unknown value "x"`, "state.buckets: 1 is out of range",
		`type: unknown value ""`, "grace: -1ns is less than 0s", `collect: unknown value ""`, "kafka.brokers: ",
		"max_spread: -1ns is less than 1ms"} {
		checkFault(t, want, err, want)
	}
	err = Default().Validate() // every missing key at once
	for _, want := range []string{"missing key a.key", "missing key b.key", "missing key window"} {
		checkFault(t, want, err, want)
	}
	j = Default()
	j.A.Key, j.B.Key, j.Window.After = []string{"$.x"}, []string{"$.y"}, 1e9
	if err := j.Validate(); err != nil {
		t.Error(err)
	}
}

// slips are all words that are one slip of a finger away.
func slips(word string) []string {
	var out []string
	for i := range len(word) + 1 {
		out = append(out, word[:i]+"q"+word[i:])
		if i == len(word) {
			break
		}
		out = append(out, word[:i]+"q"+word[i+1:], word[:i]+word[i+1:])
		if i > 0 && word[i] != word[i-1] {
			out = append(out, word[:i-1]+string(word[i])+string(word[i-1])+word[i+1:])
		}
	}
	return out
}

// Each key, mutated by one letter in a file that has all keys, is refused with the right one named.
func TestMutatedKeys(t *testing.T) {
	p := DefaultProfile()
	for key, value := range map[string]string{"join.a.key": "$.x", "join.b.key": "$.y"} {
		if err := p.Set(key, value, "flag"); err != nil {
			t.Fatal(err)
		}
	}
	all := append([]Value{{Key: "join.complete_on", Text: "{field: $.s, equals: x, emit: pair}"}}, p.Values()...)
	refused := 0
	for _, level := range []int{0, 1, 2} {
		done := map[string]bool{}
		for _, v := range all {
			path := strings.Split(v.Key, ".")
			if level >= len(path) {
				continue
			}
			right := strings.Join(path[:level+1], ".")
			if done[right] {
				continue
			}
			done[right] = true
			for _, slip := range slips(path[level]) {
				wrong := strings.Join(append(path[:level:level], slip), ".")
				if slip == "" || wrong == right || done[wrong] {
					continue
				}
				refused++
				mutateAndParse(t, all, right, wrong)
			}
		}
	}
	if refused < 1000 {
		t.Errorf("only %d mutations were tried", refused)
	}
}

func mutateAndParse(t *testing.T, all []Value, right, wrong string) {
	t.Helper()
	mutated := make([]Value, len(all))
	for i, v := range all {
		mutated[i] = v
		if rest, ok := strings.CutPrefix(v.Key+".", right+"."); ok {
			mutated[i].Key = strings.TrimSuffix(wrong+"."+rest, ".")
		}
	}
	var text strings.Builder
	if err := printValues(&text, mutated); err != nil {
		t.Fatal(err)
	}
	_, err := ParseProfile([]byte(text.String()), "p.yaml")
	checkFault(t, wrong, err, fmt.Sprintf("unknown key %q (did you mean %q?)", wrong, right))
}
