package config

import (
	"strings"
	"testing"
	"time"
)

// What the rules of the join allow together, and what not. Each refusal names the key, its line and the way out.
func TestCombinations(t *testing.T) {
	const (
		complete = "complete_on: {field: $.s, equals: declined, emit: unmatched}"
		count    = "collect: {count: $.n}"
		marker   = "collect: {marker: {field: $.t, equals: end}}"
		many     = "cardinality: one-to-many; "
	)
	for _, c := range []struct{ text, want string }{
		{"type: left", ""},
		{"type: right", ""},
		{"type: outer; cardinality: many-to-many; probe: wait", ""},
		{"type: right; probe: immediate", ""},
		{"max_pending: 5M; idle_advance: 2s", ""},

		// rule 17
		{"type: left; early: 0s", ""},
		{"early: 0s", ""},
		{"type: left; early: 3h59m59s", ""},
		{"type: outer; early: 1ms; retract: true", ""},
		{"type: left; early: 4h", "join.yaml:5: early: 4h must be less than window.after = 4h (without a correction, window.after is the timeout)"},
		{"type: outer; window: {before: 5h}; early: 1s", "early: 1s must be less than window.after = 0s"},
		{"type: left; early: -1s", "early: -1s is less than 0s"},
		{"early: 1s", "join.yaml:4: early: 1s is about null rows of a, and type: inner has none: set type: left or outer, or leave early out"},
		{"type: right; early: 1s", "join.yaml:5: early: 1s is about null rows of a, and type: right has none: swap a and b and set type: left, or set type: outer, or leave early out"},
		{"retract: true", "join.yaml:4: retract: true takes back rows that came early, and early is off: set early, or leave retract out"},
		{"type: left; retract: true; early: 0s", "join.yaml:5: retract: true takes back rows that came early, and early is off"},
		{"type: left; retract: false", ""},

		// rule 18
		{complete, ""},
		{"type: outer; cardinality: many-to-many; early: 1s; " + complete, ""},
		{many + marker + "; " + complete, ""}, // the end lets the group out

		// rule 19
		{many + "collect: timeout", ""},
		{many + count + "; type: left; early: 1s; retract: true", ""},
		{many + marker, ""},
		{"collect: eager", ""},
		{"collect: timeout", "join.yaml:4: collect: timeout gathers the B of one A: set cardinality: one-to-many (it is one-to-one), or collect: eager"},
		{"cardinality: many-to-many; " + count, "join.yaml:5: collect: {count: $.n} gathers the B of one A: set cardinality: one-to-many (it is many-to-many), or collect: eager"},
		{marker, "collect: {marker: {field: $.t, equals: end}} gathers"},

		// rule 12: these need the order in which aligned B ask
		{"probe: wait; type: left; early: 1s", "join.yaml:6: early: 1s needs probe: aligned, and probe is wait: set probe: aligned, or leave early out"},
		{"probe: immediate; " + complete, "join.yaml:5: complete_on: … needs probe: aligned, and probe is immediate: set probe: aligned, or leave complete_on out"},
		{"probe: wait; " + many + "collect: timeout", "join.yaml:6: collect: timeout needs probe: aligned, and probe is wait: set probe: aligned, or leave collect out"},
		{"probe: wait; " + many + "collect: eager", ""},

		// rule 16
		{"unmatched: topic", ""},
		{"type: left; unmatched: topic", "join.yaml:5: unmatched: topic goes with type: inner: with type: left events without a partner come out as results; leave the key out"},
		{"type: right; unmatched: drop", ""},
	} {
		text := small + strings.ReplaceAll(c.text, "; ", "\n")
		if strings.Contains(c.text, "window: ") {
			text = strings.Replace(text, "window: {after: 4h}\n", "", 1)
		}
		j, err := Parse([]byte(text), "join.yaml")
		if err == nil {
			err = j.Validate()
		}
		checkFault(t, c.text, err, c.want)
	}
}

// Each fault of a combination is named, not the first alone; and it does not matter where the values came from.
func TestCombinationsAreAllNamed(t *testing.T) {
	j := mustParse(t, small)
	for _, set := range [][2]string{{"probe", "wait"}, {"early", "5h"}, {"collect", "{count: $.n}"}, {"unmatched", "topic"}, {"type", "right"}} {
		if err := j.Set(set[0], set[1], "flag --"+set[0]); err != nil {
			t.Fatal(err)
		}
	}
	err := j.Validate()
	for _, want := range []string{"flag --early: early: 5h needs probe", "early: 5h is about null rows", "early: 5h must be less",
		"flag --collect: collect: {count: $.n} needs probe", "gathers the B of one A", "flag --unmatched: unmatched: topic goes with"} {
		checkFault(t, want, err, want)
	}
}

// A new key reaches its field and stands in the printed configuration as it was read.
func TestRuleKeysReachTheirFields(t *testing.T) {
	const text = `cardinality: one-to-many
type: outer
early: 90s
retract: true
max_pending: 3M
idle_advance: 2s
complete_on: {field: "$.a[0]", equals: "true", emit: nothing}
output: {key: order_id}
`
	for collect, want := range map[string]Collect{
		"timeout":                             {Mode: "timeout"},
		"{count: $.n}":                        {Mode: "count", Count: "$.n"},
		"{marker: {field: $.t, equals: 010}}": {Mode: "marker", Marker: Marker{"$.t", "010"}},
	} {
		j := mustValidate(t, small+text+"collect: "+collect+"\n")
		if j.Type != "outer" || j.Early != 90*time.Second || !j.Retract || j.MaxPending != 3e6 || j.IdleAdvance != 2*time.Second ||
			*j.CompleteOn != (CompleteOn{"$.a[0]", "true", "nothing"}) || j.Output.Key != "order_id" || j.Collect != want {
			t.Errorf("%+v", bare(j))
		}
		var out strings.Builder
		if err := j.Print(&out); err != nil {
			t.Fatal(err)
		}
		again := mustValidate(t, out.String())
		if *again.CompleteOn != *j.CompleteOn || again.Collect != j.Collect || again.Early != j.Early || again.Type != j.Type {
			t.Errorf("printed it reads\n%s", out.String())
		}
	}
}
