package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"joinbench/config"
	"joinbench/core"
	"joinbench/projection"
)

// recordKey says what the record of an output is keyed by: the join key, or a field of one side (output.key, rule 23).
// What takes back a row is keyed as the row was, so that a compacted topic keeps the last word about each. The zero value is
// the join key. It belongs to one goroutine.
type recordKey struct {
	side  core.Side
	field *projection.Member // nil: the join key
}

// of appends the record's key as JSON. A row without that field (a null row of the other side, a record that lacks it) is
// keyed by the join key: a compacted topic takes no record without a key. out is what the row prints for each side, nil for
// null.
func (k *recordKey) of(dst, joinKey []byte, out [2][]byte) []byte {
	if k.field != nil {
		if value := k.field.Find(out[k.side]); value != nil {
			return append(dst, value...)
		}
	}
	return projection.AppendKey(dst, joinKey)
}

const joinKey = "join-key" // of output.key

// compileKey finds the field that output.key names. Errors are *config.Error.
func compileKey(j *config.Join, spec *[2]*projection.Spec) (recordKey, error) {
	name := j.Output.Key
	if name == joinKey {
		return recordKey{}, nil
	}
	a, b := spec[core.A].Names(), spec[core.B].Names()
	inA, inB := slices.Contains(a, name), slices.Contains(b, name)
	group := j.Collect.Mode != "eager"
	var wrong string
	switch {
	case inA && inB:
		wrong = fmt.Sprintf("%s is a field of a and of b: give one of them another name, {name: path} in a.keep or b.keep", name)
	case !inA && !inB:
		b = slices.DeleteFunc(b, func(n string) bool { return slices.Contains(a, n) })
		wrong = unknownOutput(name, slices.Concat(a, b))
	case inB && j.Early > 0:
		wrong = fmt.Sprintf("%s is a field of b, and rows that come early have no b: with early it must be %s or a field of a", name, joinKey)
	case inB && group:
		wrong = fmt.Sprintf("%s is a field of b, and a group has many b: with collect it must be %s or a field of a", name, joinKey)
	case inB:
		return recordKey{core.B, projection.NewMember(name)}, nil
	default:
		return recordKey{core.A, projection.NewMember(name)}, nil
	}
	return recordKey{}, &config.Error{Faults: []config.Fault{{Key: "output.key", Message: "output.key: " + wrong}}}
}

func unknownOutput(name string, names []string) string {
	if len(names) == 0 {
		return fmt.Sprintf("%s must be the name of a kept field, and a.keep and b.keep are empty: list it in one of them, or use %s", name, joinKey)
	}
	if near := config.Nearest(name, append(names, joinKey)); near != "" {
		return fmt.Sprintf("%s is no field that a.keep or b.keep names (did you mean %q?)", name, near)
	}
	return fmt.Sprintf("%s is no field that a.keep or b.keep names (there are %s; or %s)", name, strings.Join(names, ", "), joinKey)
}
