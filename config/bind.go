package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// place is where a value came from: a line of a file, or what the caller of Set said.
type place struct {
	text      string // the file's name, or the origin
	line, col int    // 0 if from no file
}

func (p place) String() string {
	switch {
	case p.line > 0:
		return fmt.Sprintf("file %s:%d", p.text, p.line)
	case p.text == "":
		return "default"
	}
	return p.text
}

// layer is what a value competes with: all flags are one layer, all variables another, the file a third.
func (p place) layer() string {
	if p.line > 0 {
		return "file"
	}
	word, _, _ := strings.Cut(p.text, " ")
	return word
}

// origins remembers the place of each value that is no default.
type origins struct {
	src   *source
	under string // "join." if the file holds the tree under that key
	at    map[string]place
}

// binder lays values over the fields behind a table of keys and collects what is wrong with them.
type binder struct {
	leaves []leaf
	from   *origins
	origin string // of values that are from no file
	faults []Fault
}

func (b *binder) find(key string) *leaf {
	i := slices.IndexFunc(b.leaves, func(l leaf) bool { return l.key == key })
	if i < 0 {
		return nil
	}
	return &b.leaves[i]
}

// children lists the names right below a prefix ("" or one that ends with a dot).
func (b *binder) children(prefix string) []string {
	var names []string
	for _, l := range b.leaves {
		rest, ok := strings.CutPrefix(l.key, prefix)
		name, _, _ := strings.Cut(rest, ".")
		if ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// walk applies a mapping whose keys stand below prefix.
func (b *binder) walk(prefix string, n node) {
	if n.kind == nullNode {
		return // a group of which every key is commented out
	}
	names := b.children(prefix)
	if n.kind != mapNode {
		key := strings.TrimSuffix(prefix, ".")
		if key == "" {
			key = "a configuration"
		}
		hint := ""
		if hasSecrets(prefix) { // maybe it is one
			b.fault(key, n.errorf("%s is a mapping of %s", key, strings.Join(names, ", ")))
			return
		}
		if key == "window" {
			hint = " (for example window: {after: 4h})"
		}
		b.fault(key, n.errorf("%s is a mapping of %s; got %s%s", key, strings.Join(names, ", "), n.brief(), hint))
		return
	}
	taken := map[string]bool{}
	for _, f := range n.fields {
		taken[f.name] = true
	}
	for _, f := range n.fields {
		if len(b.faults) >= maxFaults {
			return
		}
		key := prefix + f.name
		if l := b.find(key); l != nil {
			b.apply(l, f.value)
		} else if slices.Contains(names, f.name) {
			b.walk(key+".", f.value)
		} else {
			b.fault(key, placed{b.unknown(prefix, f.name, taken), f.line, f.col})
		}
	}
}

// unknown names a key that is not there and what was probably meant: a near key beside it, or the same
// name elsewhere in the tree.
func (b *binder) unknown(prefix, name string, taken map[string]bool) error {
	names := b.children(prefix)
	meant := ""
	if near := nearest(name, names, taken); near != "" {
		meant = prefix + near
	} else {
		for _, l := range b.leaves {
			if l.key == name || strings.HasSuffix(l.key, "."+name) {
				meant = l.key
				break
			}
		}
	}
	hint := "known here: " + strings.Join(names, ", ")
	if meant != "" {
		hint = fmt.Sprintf("did you mean %q?", b.from.under+meant)
	}
	return fmt.Errorf("unknown key %q (%s)", b.from.under+prefix+name, hint)
}

// apply gives one key its value.
func (b *binder) apply(l *leaf, n node) {
	here := place{b.origin, n.line, n.col}
	if n.line > 0 {
		here.text = b.from.src.name
	}
	if err := b.windowTwice(l.key, here); err != nil {
		b.fault(l.key, placed{err, n.line, n.col})
		return
	}
	err := l.set(n)
	if err == nil {
		err = l.fault()
	}
	if err != nil {
		if !errors.As(err, new(placed)) {
			err = placed{err, n.line, n.col}
		}
		b.fault(l.key, err)
		return
	}
	if b.from.at == nil {
		b.from.at = map[string]place{}
	}
	b.from.at[l.key] = here
	if l.key == "window.within" {
		b.from.at["window.before"], b.from.at["window.after"] = here, here
	}
}

// windowTwice refuses "within" beside "before" or "after" in one layer; a later layer may use the other form.
func (b *binder) windowTwice(key string, here place) error {
	at := b.from.at
	within, isSet := at["window.within"]
	switch key {
	case "window.before", "window.after":
		if isSet && within.layer() == here.layer() {
			return fmt.Errorf("%s: window.within has set it already; use within alone, or before and after", key)
		}
	case "window.within":
		for _, end := range []string{"window.before", "window.after"} {
			if p, ok := at[end]; ok && p != within && p.layer() == here.layer() {
				return fmt.Errorf("%s sets %s too; use within alone, or before and after", key, end)
			}
		}
	}
	return nil
}

const maxFaults = 20 // more help nobody

// fault notes what is wrong with a key. The place is the error's own, or that of the key's value.
func (b *binder) fault(key string, err error) {
	if len(b.faults) >= maxFaults {
		return
	}
	f := Fault{Key: b.from.under + key, Message: err.Error()}
	p := b.from.at[key]
	var own placed
	if errors.As(err, &own) {
		p = place{b.origin, own.line, own.col}
		if own.line > 0 && b.from.src != nil {
			p.text = b.from.src.name
		}
	}
	f.Place = p.text
	if p.line > 0 {
		f.Place = fmt.Sprintf("%s:%d", p.text, p.line)
		f.Excerpt = b.from.src.excerpt(p.line, p.col)
	}
	b.faults = append(b.faults, f)
}

// set gives a dotted key the text of a flag or an environment variable.
func (b *binder) set(key, value string) {
	if !utf8.ValidString(value) {
		b.fault(key, placed{error: fmt.Errorf("%s: invalid UTF-8", key)})
		return
	}
	l := b.find(key)
	names := b.children(key + ".")
	if l == nil && len(names) == 0 {
		prefix, name := "", key
		if i := strings.LastIndexByte(key, '.'); i >= 0 && len(b.children(key[:i+1])) > 0 {
			prefix, name = key[:i+1], key[i+1:]
		}
		b.fault(key, placed{error: b.unknown(prefix, name, nil)})
		return
	}
	n := node{kind: scalarNode, text: value}
	first := strings.TrimLeft(value, " ")
	if (l == nil || l.structured) && (strings.HasPrefix(first, "[") || strings.HasPrefix(first, "{")) {
		read, err := readYAML(value)
		if err != nil {
			if hasSecrets(key + ".") {
				err = errors.New("not readable as YAML")
			}
			b.fault(key, placed{error: fmt.Errorf("%s: %w", key, err)})
			return
		}
		n = read.unplaced()
	} else if l != nil && l.comma {
		n = node{kind: listNode}
		for _, s := range strings.Split(value, ",") {
			n.items = append(n.items, node{kind: scalarNode, text: strings.TrimSpace(s)})
		}
	}
	if l == nil {
		b.walk(key+".", n)
		return
	}
	b.apply(l, n)
}

// unplaced forgets the positions of a value that is from no file.
func (n node) unplaced() node {
	n.line, n.col = 0, 0
	for i := range n.items {
		n.items[i] = n.items[i].unplaced()
	}
	for i, f := range n.fields {
		n.fields[i] = field{name: f.name, value: f.value.unplaced()}
	}
	return n
}
