package config

import (
	"fmt"
	"slices"
)

// checkRules refuses what the rules of the join do not allow together. Each fault is noted at the key that asks for too much
// and says what to do.
func (j *Join) checkRules(b *binder) {
	j.checkProbe(b)
	j.checkEarly(b)
	for _, k := range []struct {
		key, text string
		set       bool
	}{{"a.deleted", j.Deleted, j.Deleted != deletedDefault}, {"a.fetch_cache", formatSize(j.FetchCache), j.FetchCache != fetchCacheDefault}} {
		if k.set && j.A.Store != "offset" {
			b.fault(k.key, fmt.Errorf("%s: %s goes with a.store: offset only, and a.store is %s: leave %[1]s out, or set a.store: offset", k.key, k.text, j.A.Store))
		}
	}
	if j.B.Store == "offset" {
		b.fault("b.store", fmt.Errorf("b.store: offset is for a alone, whose events are the ones that wait: set b.store: projection or full"))
	}
	if j.Collect.Mode != "eager" && j.Cardinality != "one-to-many" {
		b.fault("collect", fmt.Errorf("collect: %s gathers the B of one A: set cardinality: one-to-many (it is %s), or collect: eager",
			j.Collect, j.Cardinality))
	}
	if j.Unmatched == "topic" && j.Type != "inner" {
		b.fault("unmatched", fmt.Errorf("unmatched: topic goes with type: inner: with type: %s events without a partner come out as "+
			"results; leave the key out", j.Type))
	}
}

// checkProbe: what looks at the order in which B ask needs them aligned (rule 12).
func (j *Join) checkProbe(b *binder) {
	if j.Probe == "aligned" {
		return
	}
	for _, needs := range []struct {
		key  string
		text string
		on   bool
	}{
		{"early", formatDuration(j.Early), j.Early > 0},
		{"complete_on", "…", j.CompleteOn != nil},
		{"collect", j.Collect.String(), j.Collect.Mode != "eager"},
	} {
		if needs.on {
			b.fault(needs.key, fmt.Errorf("%s: %s needs probe: aligned, and probe is %s: set probe: aligned, or leave %[1]s out",
				needs.key, needs.text, j.Probe))
		}
	}
}

// checkEarly is rule 17.
func (j *Join) checkEarly(b *binder) {
	if j.Retract && j.Early == 0 {
		b.fault("retract", fmt.Errorf("retract: true takes back rows that came early, and early is off: set early, or leave retract out"))
	}
	if j.Early == 0 {
		return
	}
	if !slices.Contains([]string{"left", "outer"}, j.Type) {
		hint := "set type: left or outer"
		if j.Type == "right" {
			hint = "swap a and b and set type: left, or set type: outer"
		}
		b.fault("early", fmt.Errorf("early: %s is about null rows of a, and type: %s has none: %s, or leave early out",
			formatDuration(j.Early), j.Type, hint))
	}
	if j.Early >= j.Window.After {
		b.fault("early", fmt.Errorf("early: %s must be less than window.after = %s (without a correction, window.after is the timeout)",
			formatDuration(j.Early), formatDuration(j.Window.After)))
	}
}

// String is the key's value as it is written.
func (c Collect) String() string {
	switch c.Mode {
	case "count":
		return "{count: " + quote(c.Count) + "}"
	case "marker":
		return "{marker: {field: " + quote(c.Marker.Field) + ", equals: " + quote(c.Marker.Equals) + "}}"
	}
	return quote(c.Mode)
}
