package pipeline

import (
	"errors"
	"strings"
	"testing"

	"joinbench/config"
	"joinbench/core"
	"joinbench/projection"
)

// Each word of the configuration reaches core, and the fields of rules 18 and 19 the decoder of their side.
func TestCompileReachesCore(t *testing.T) {
	type words struct {
		card         core.Cardinality
		probe        core.Probe
		collect      core.Collect
		end          core.Ending
		early        int64
		retract      bool
		maxPending   int64
		wantA, wantB bool
	}
	for yaml, want := range map[string]words{
		"":                                       {},
		"cardinality: one-to-many\ntype: left\n": {card: core.OneToMany, wantA: true},
		"cardinality: many-to-many\ntype: right\nprobe: wait\n":                                         {card: core.ManyToMany, probe: core.ProbeWait, wantB: true},
		"type: outer\nprobe: immediate\nmax_pending: 7\n":                                               {probe: core.ProbeImmediate, wantA: true, wantB: true, maxPending: 7},
		"type: left\nearly: 90s\nretract: true\n":                                                       {early: 90_000, retract: true, wantA: true},
		"complete_on: {field: $.s, equals: x, emit: pair}\n":                                            {end: core.EndPair},
		"complete_on: {field: $.s, equals: x, emit: unmatched}\n":                                       {end: core.EndUnmatched},
		"complete_on: {field: $.s, equals: x, emit: nothing}\n":                                         {end: core.EndNothing},
		"cardinality: one-to-many\ncollect: timeout\n":                                                  {card: core.OneToMany, collect: core.CollectTimeout},
		"cardinality: one-to-many\ncollect: {count: $.n}\n":                                             {card: core.OneToMany, collect: core.CollectCount},
		"cardinality: one-to-many\ncollect: {marker: {field: $.s, equals: x}}\ntype: left\nearly: 1s\n": {card: core.OneToMany, collect: core.CollectMarker, early: 1000, wantA: true},
	} {
		c, err := compileText(yaml)
		if err != nil {
			t.Errorf("%s: %v", yaml, err)
			continue
		}
		k := c.core
		got := words{k.Cardinality, k.Probe, k.Collect, k.CompleteOn, k.Early, k.Retract, k.MaxPending, k.WantA, k.WantB}
		if got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", yaml, got, want)
		}
		// What both sides' decoders see in the same record.
		for side, flags := range [2]projection.Flags{0, watchedBy(k)} {
			var rows projection.Rows
			c.spec[side].NewDecoder().Append(&rows, &projection.Record{Value: []byte(`{"k":"k","t":1,"s":"x","n":3}`)})
			var have projection.Flags
			if len(rows.Flags) > 0 {
				have = rows.Flags[0]
			}
			counts := len(rows.Wanted) > 0 && rows.Wanted[0] == 3
			if have != flags || counts != (side == 0 && k.Collect == core.CollectCount) {
				t.Errorf("%s: side %c sees flags %b, count %v", yaml, "ab"[side], have, rows.Wanted)
			}
		}
	}
}

func watchedBy(k core.Config) (f projection.Flags) {
	if k.CompleteOn != core.EndNever {
		f |= projection.Ends
	}
	if k.Collect == core.CollectMarker {
		f |= projection.Marks
	}
	return f
}

// Paths that are none, equal output names (rule 23) and an output.key that names no field are faults of the configuration.
func TestCompileFaults(t *testing.T) {
	const bWith = "\nb: {key: $.k, time: $.t, keep: [%]}\nwindow: {after: 1h}\n"
	sides := func(a, b string) string {
		return "a: {key: $.k, time: $.t, keep: [" + a + "]}" + strings.Replace(bWith, "%", b, 1)
	}
	for _, c := range []struct{ yaml, want string }{
		{"complete_on: {field: '$.s[x]', equals: x, emit: pair}\n", `complete_on.field: path "$.s[x]", column 5`},
		{"cardinality: one-to-many\ncollect: {marker: {field: $.s..x, equals: x}}\n", `collect.marker.field: path "$.s..x", column 5`},
		{"cardinality: one-to-many\ncollect: {count: '$.n[-1]'}\n", `collect.count: path "$.n[-1]", column 5`},
		{sides("$.x.id, $.y.id", "$.n"), `a: keep: $.x.id and $.y.id have the same output name "id": write {name: path} for one`},
		{sides("$.n", "$.n, {n: $.m}"), `b: keep: $.n and $.m have the same output name "n"`},
		{sides("$.id", "$.id"), ""}, // a and b are objects of their own

		{"output: {key: as}\n", ""},
		{"output: {key: bs}\n", ""},
		{"output: {key: n}\n", `output.key: n is a field of a and of b: give one of them another name, {name: path} in a.keep or b.keep`},
		{"output: {key: order}\n", `output.key: order is no field that a.keep or b.keep names (there are n, as, bs; or join-key)`},
		{"output: {key: joinkey}\n", `output.key: joinkey is no field that a.keep or b.keep names (did you mean "join-key"?)`},
		{sides("", "") + "output: {key: id}\n", `output.key: id must be the name of a kept field, and a.keep and b.keep are empty: list it in one of them, or use join-key`},
		{"output: {key: bs}\ntype: left\nearly: 1s\n", `output.key: bs is a field of b, and rows that come early have no b: with early it must be join-key or a field of a`},
		{"output: {key: as}\ntype: left\nearly: 1s\nretract: true\n", ""},
		{"output: {key: bs}\ncardinality: one-to-many\ncollect: timeout\n", `output.key: bs is a field of b, and a group has many b: with collect it must be join-key or a field of a`},
		{"output: {key: as}\ncardinality: one-to-many\ncollect: timeout\n", ""},
	} {
		_, err := compileText(c.yaml)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.yaml, err)
			}
			continue
		}
		var fault *config.Error
		if !errors.As(err, &fault) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\n got %v\nwant %s", c.yaml, err, c.want)
		}
	}
}

// Rule 23: a record is keyed by the field that output.key names, or by the join key where a row lacks it.
func TestRecordKey(t *testing.T) {
	a, b := []byte(`{"n":1,"as":"one"}`), []byte(`{"n":2,"bs":-1.0}`)
	for _, c := range []struct {
		conf string
		out  [2][]byte
		want string
	}{
		{"", [2][]byte{a, b}, `"k"`},
		{"output: {key: as}\n", [2][]byte{a, b}, `"one"`},
		{"output: {key: as}\n", [2][]byte{a, nil}, `"one"`},
		{"output: {key: as}\n", [2][]byte{nil, b}, `"k"`},
		{"output: {key: as}\n", [2][]byte{[]byte(`{"n":1}`), b}, `"k"`},
		{"output: {key: as}\n", [2][]byte{[]byte(`{"as":null}`), b}, `"k"`},
		{"output: {key: bs}\n", [2][]byte{a, b}, `-1.0`},
		{"output: {key: bs}\n", [2][]byte{a, nil}, `"k"`},
	} {
		k, err := compileText(c.conf)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(k.key.of([]byte("#"), []byte("sk"), c.out)); got != "#"+c.want {
			t.Errorf("%q of %s: %s, want #%s", c.conf, c.out, got, c.want)
		}
	}
}

// A tombstone has the key of the row that it takes back also when whole records are stored and fields taken out at the end.
func TestTombstoneOfAFullStore(t *testing.T) {
	k := newSinkKit(t, strings.Replace(sinkSides, "keep: [$.n, {as", "store: full, keep: [$.n, {as", 1)+"type: left\nearly: 1s\nretract: true\noutput: {key: as}\n", false)
	got, _, _ := k.print(&core.Output{Matches: []core.Match{{Ref: k.ref(core.B, b0), Kind: core.Tombstone | core.Corrected, Entry: k.entry(core.A, a0)}}})
	if want := joinLines(`{"key":"one","retract":true}`, pair0+`,"corrected":true}`); got != want {
		t.Errorf("printed\n%swant\n%s", got, want)
	}
}

// A run that was cut short may be resumed with a higher max_pending, but with nothing that decides its results.
func TestFingerprint(t *testing.T) {
	printOf := func(yaml string) uint64 {
		conf, err := config.Parse([]byte(sinkSides+yaml), "join.yaml")
		if err != nil {
			t.Fatal(err)
		}
		return (&fileJoin{JoinConfig: JoinConfig{Config: conf}}).fingerprint()
	}
	if printOf("max_pending: 5\n") != printOf("max_pending: 6\n") {
		t.Error("max_pending decides whether a run may be resumed")
	}
	seen := map[uint64]string{}
	for _, yaml := range []string{"", "type: left\n", "type: left\nearly: 1s\n", "probe: wait\n", "cardinality: many-to-many\n", "output: {key: as}\n",
		"complete_on: {field: $.s, equals: x, emit: pair}\n", "complete_on: {field: $.s, equals: y, emit: pair}\n",
		"cardinality: one-to-many\ncollect: timeout\n", "cardinality: one-to-many\ncollect: {count: $.n}\n"} {
		h := printOf(yaml)
		if other, ok := seen[h]; ok {
			t.Errorf("%q and %q are one and the same", yaml, other)
		}
		seen[h] = yaml
	}
}
