package config

import "strings"

// briefKeys decide which results there are. The first briefAlways are always said, the others if they are not as in Default.
var briefKeys = []string{"type", "cardinality", "probe", "window.before", "window.after", "grace",
	"early", "retract", "complete_on", "collect", "max_pending", "idle_advance", "unmatched", "validate", "output.key"}

const briefAlways = 6

// Brief is the join in one line of keys and values: "type: left, cardinality: one-to-one, …". It names what decides which
// results there are; Print has everything.
func (j *Join) Brief() string {
	now, plain := j.binder("").texts(), Default().binder("").texts()
	var parts []string
	for i, key := range briefKeys {
		if text := now[key]; i < briefAlways || text != plain[key] {
			parts = append(parts, key+": "+text)
		}
	}
	return strings.Join(parts, ", ")
}

// texts are the values by key.
func (b *binder) texts() map[string]string {
	m := make(map[string]string, len(b.leaves))
	for _, l := range b.leaves {
		m[l.key] = l.get()
	}
	return m
}
