package config

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

func (j *Join) binder(origin string) *binder {
	return &binder{leaves: joinLeaves(j), from: &j.from, origin: origin}
}

// Parse lays the text of a join.yaml over Default. name is what errors and origins call the file. The error
// is an *Error with every fault of the single values; what is missing and what does not go together is for
// Validate, after environment and flags. The bytes stay the caller's.
func Parse(data []byte, name string) (*Join, error) {
	j := Default()
	text, root, err := readFile(data, name)
	if err != nil {
		return nil, err
	}
	j.from.src = text
	b := j.binder("")
	b.walk("", root)
	if len(b.faults) > 0 {
		return nil, asError(b.faults)
	}
	return j, nil
}

// readFile parses a file's text; the error is an *Error with an excerpt.
func readFile(data []byte, name string) (*source, node, error) {
	text := strings.TrimPrefix(string(data), "\ufeff")
	src := newSource(name, text)
	root, err := readYAML(text)
	if err != nil {
		b := binder{from: &origins{src: src}}
		b.fault("", err)
		return nil, node{}, asError(b.faults)
	}
	return src, root, nil
}

// Set lays one value over those so far: a flag or an environment variable. key is dotted (state.filter);
// value is the text as a user types it, lists and mappings as YAML ([$.x, {name: $.y}]), brokers with commas
// too; a group of keys takes a mapping ("window", "{within: 4h}"). origin begins with the word for all values
// of the same rank and says the rest for people: "flag --filter". After an error the configuration is not to
// be used.
func (j *Join) Set(key, value, origin string) error {
	b := j.binder(origin)
	b.set(key, value)
	return asError(b.faults)
}

// ApplyEnv lays the variables JOINBENCH_* of environ ("NAME=value") over the values so far, state.filter from
// JOINBENCH_STATE_FILTER. One that names no key is an error, but for those that the caller says are its own, and JOINBENCH_TEST_*,
// which are for the project's tests.
func (j *Join) ApplyEnv(environ []string, own ...string) error {
	return applyEnv(environ, own, j.binder("").leaves, j.Set)
}

const (
	envPrefix  = "JOINBENCH_"
	testPrefix = envPrefix + "TEST_"
)

func envName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

func applyEnv(environ, own []string, leaves []leaf, set func(key, value, origin string) error) error {
	keys := map[string]string{}
	var names []string
	for _, l := range leaves {
		name := envName(l.key)
		keys[name] = l.key
		names = append(names, name)
	}
	var faults []Fault
	for _, v := range slices.Sorted(slices.Values(environ)) { // in one order, whatever the shell's is
		name, value, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, envPrefix) || strings.HasPrefix(name, testPrefix) || slices.Contains(own, name) {
			continue
		}
		key, ok := keys[name]
		if !ok {
			faults = append(faults, Fault{Key: name, Place: "env", Message: unknownVariable(name, names)})
			continue
		}
		if err := set(key, value, "env "+name); err != nil {
			faults = append(faults, err.(*Error).Faults...)
		}
	}
	return asError(faults)
}

func unknownVariable(name string, names []string) string {
	rest := strings.TrimPrefix(name, envPrefix)
	near := nearest(name, names, nil)
	for _, n := range names { // JOINBENCH_FILTER for JOINBENCH_STATE_FILTER is further than any slip
		if strings.HasSuffix(n, "_"+rest) {
			near = n
			break
		}
	}
	if near == "" {
		return fmt.Sprintf("unknown variable %s (a key is upper case with _ for dots: state.filter is %s)", name,
			envName("state.filter"))
	}
	return fmt.Sprintf("unknown variable %s (did you mean %s?)", name, near)
}

// Validate names every fault that is left once all layers are on: a value out of range or not supported (also
// one that the program has put in a field itself), a key that is missing, values that do not go together. The
// error is an *Error.
func (j *Join) Validate() error {
	b := j.binder("")
	for i := range b.leaves {
		if err := b.leaves[i].fault(); err != nil {
			b.fault(b.leaves[i].key, err)
		}
	}
	if len(b.faults) > 0 {
		return asError(b.faults) // what follows reckons with values that are sound by themselves
	}
	j.checkMissing(b)
	j.checkTogether(b)
	return asError(b.faults)
}

func (j *Join) checkMissing(b *binder) {
	missing := func(key, example string) {
		f := Fault{Key: b.from.under + key}
		f.Message = fmt.Sprintf("missing key %s (for example %s)", f.Key, example)
		if b.from.src != nil {
			f.Place = b.from.src.name
		}
		b.faults = append(b.faults, f)
	}
	if len(j.A.Key) == 0 {
		missing("a.key", "key: $.order.id")
	}
	if len(j.B.Key) == 0 {
		missing("b.key", `key: "@key"`)
	}
	if !j.hasWindow() {
		missing("window", "window: {after: 4h}")
	}
}

// hasWindow says whether a window was given, be it one of no length.
func (j *Join) hasWindow() bool {
	_, before := j.from.at["window.before"]
	_, after := j.from.at["window.after"]
	return before || after || j.Window != Window{}
}

func (j *Join) checkTogether(b *binder) {
	if least := j.Window.Before + j.Grace; j.Spread() <= least {
		b.fault("max_spread", fmt.Errorf("max_spread: %s must be more than window.before + grace = %s (or auto)",
			formatDuration(j.MaxSpread), formatDuration(least)))
	}
	if least := j.leastWidth(); j.Width() < least {
		b.fault("state.width", fmt.Errorf("state.width: %s is too small: (buckets - 1) x width must reach "+
			"max(before, after) + grace + max_spread = %s, with %d buckets from %s on (or auto)",
			formatDuration(j.State.Width), formatDuration(j.mustCover()), j.State.Buckets, formatDuration(least)))
	}
	for _, s := range []struct {
		key  string
		side *Side
	}{{"a", &j.A}, {"b", &j.B}} {
		if !strings.HasPrefix(s.side.Time, "$") && s.side.TimeUnit != "ms" {
			b.fault(s.key+".time_unit", fmt.Errorf("%s.time_unit: %s goes with a path only, and %[1]s.time is %[3]s",
				s.key, s.side.TimeUnit, s.side.Time))
		}
	}
	j.checkKafka(b)
	j.checkRules(b)
}

// Value is one key of the effective configuration.
type Value struct {
	Key    string // dotted
	Text   string // as YAML on one line, passwords left out
	Origin string // "default", "file NAME:LINE", or what Set was given
	Note   string // what "auto" stands for, as "= 10m"; "" if there is nothing to say
}

// Values lists the effective configuration in the order of join.yaml, keys without a value left out.
func (j *Join) Values() []Value { return j.binder("").values() }

func (b *binder) values() []Value {
	var vs []Value
	for _, l := range b.leaves {
		v := Value{Key: l.key, Text: l.get(), Origin: b.from.at[l.key].String()}
		if l.note != nil {
			v.Note = l.note()
		}
		if v.Text != "" {
			vs = append(vs, v)
		}
	}
	return vs
}

// Print writes the effective configuration as YAML that Parse reads, with the origin of each value in a
// comment.
func (j *Join) Print(w io.Writer) error { return printValues(w, j.Values()) }

const commentColumn = 40 // where comments begin, unless the value is longer

func printValues(w io.Writer, vs []Value) error {
	var out strings.Builder
	var open []string // the groups that the last key was in
	for _, v := range vs {
		path := strings.Split(v.Key, ".")
		groups := path[:len(path)-1]
		for i, g := range groups {
			if i >= len(open) || open[i] != g {
				fmt.Fprintf(&out, "%s%s:\n", strings.Repeat("  ", i), g)
				open = nil
			}
		}
		open = groups
		comment := v.Origin
		if v.Note != "" {
			comment += ", " + v.Note
		}
		line := strings.Repeat("  ", len(groups)) + path[len(path)-1] + ": " + v.Text
		fmt.Fprintf(&out, "%-*s # %s\n", commentColumn, line, oneLine(comment))
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// oneLine keeps a comment in its line, whatever the file is called.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\u0085' || r == '\u2028' || r == '\u2029' || r == '\ufeff' {
			return '?'
		}
		return r
	}, s)
}
