package config

import (
	"fmt"
	"slices"
	"strings"
)

// The keys whose values are lists or mappings.

// pathShape refuses what is obviously no JSON path; the projection compiles it and judges the rest.
func pathShape(p string) error {
	switch {
	case p == "":
		return fmt.Errorf("an empty path (a path is like $.x.y)")
	case p[0] != '$':
		return fmt.Errorf("%q is not a path (a path begins with $, for example $.%s)", p, strings.TrimLeft(p, ".@$"))
	case p != "$" && p[1] != '.' && p[1] != '[', strings.HasSuffix(p, "."):
		return fmt.Errorf("%q is not a path (after $ come .name, [0] or [\"name\"])", p)
	}
	return nil
}

func keyShape(p string) error {
	if p == "@key" {
		return nil
	}
	if near := nearest(p, []string{"@key"}, nil); near != "" && !strings.HasPrefix(p, "$") {
		return fmt.Errorf("%q is neither @key nor a path (did you mean %q?)", p, near)
	}
	return pathShape(p)
}

// stringList reads a list of scalars; a single scalar is a list of one.
func stringList(key string, n node) ([]string, error) {
	items := n.items
	if n.kind != listNode {
		items = []node{n}
	}
	var out []string
	for _, it := range items {
		s, err := scalar(key, it)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func flow(items []string) string {
	quoted := make([]string, len(items))
	for i, s := range items {
		quoted[i] = quote(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// pathsLeaf is a join key: one path, or a list of which the first that exists counts.
func pathsLeaf(key string, p *[]string) leaf {
	return leaf{
		key: key, structured: true,
		get: func() string {
			switch len(*p) {
			case 0:
				return "" // missing: Validate says so
			case 1:
				return quote((*p)[0])
			}
			return flow(*p)
		},
		set: func(n node) error {
			list, err := stringList(key, n)
			if err == nil && len(list) == 0 {
				err = n.errorf("%s: an empty list has no key", key)
			}
			if err == nil {
				*p = list
			}
			return err
		},
		check: func() error {
			for i, s := range *p {
				if err := keyShape(s); err != nil {
					return fmt.Errorf("%s: %w", key, err)
				}
				if slices.Contains((*p)[:i], s) {
					return fmt.Errorf("%s: %q is in the list twice", key, s)
				}
			}
			return nil
		},
	}
}

func listLeaf(key string, p *[]string) leaf {
	return leaf{
		key: key, structured: true, comma: true,
		get: func() string { return flow(*p) },
		set: func(n node) error {
			list, err := stringList(key, n)
			if err == nil {
				*p = list
			}
			return err
		},
		check: func() error {
			if len(*p) == 0 || slices.Contains(*p, "") {
				return fmt.Errorf("%s: an empty list, or an empty one in it", key)
			}
			return nil
		},
	}
}

func timeLeaf(key string, p *string) leaf {
	l := stringLeaf(key, p, true)
	l.check = func() error {
		if *p == "@timestamp" || *p == "arrival" || strings.HasPrefix(*p, "$") && pathShape(*p) == nil {
			return nil
		}
		hint := ""
		if near := nearest(*p, []string{"@timestamp", "arrival"}, nil); near != "" {
			hint = fmt.Sprintf("; did you mean %q?", near)
		}
		return fmt.Errorf("%s: unknown value %q (allowed: @timestamp, arrival, or a path like $.time%s)", key, *p, hint)
	}
	return l
}

// keepLeaf is the list of fields that the output carries: a path, or {name: path}.
func keepLeaf(key string, p *[]KeepField) leaf {
	return leaf{
		key: key, structured: true,
		get: func() string {
			parts := make([]string, len(*p))
			for i, k := range *p {
				parts[i] = quote(k.Path)
				if k.Name != "" {
					parts[i] = "{" + quote(k.Name) + ": " + quote(k.Path) + "}"
				}
			}
			return "[" + strings.Join(parts, ", ") + "]"
		},
		set: func(n node) error {
			fields, err := keepFields(key, n)
			if err == nil {
				*p = fields
			}
			return err
		},
		check: func() error {
			for _, k := range *p {
				if k.Path == "$" && k.Name == "" {
					return fmt.Errorf("%s: $ has no last element to be named by, write {name: $}", key)
				}
				if err := pathShape(k.Path); err != nil {
					return fmt.Errorf("%s: %w", key, err)
				}
			}
			return nil
		},
	}
}

func keepFields(key string, n node) ([]KeepField, error) {
	if n.kind == mapNode {
		return nil, n.errorf("%s is a list: write [%s]", key, n.brief())
	}
	items := n.items
	if n.kind != listNode {
		items = []node{n}
	}
	var out []KeepField
	for _, it := range items {
		if it.kind != mapNode {
			path, err := scalar(key, it)
			if err != nil {
				return nil, err
			}
			out = append(out, KeepField{Path: path})
			continue
		}
		if len(it.fields) != 1 || it.fields[0].name == "" {
			return nil, it.errorf("%s: %s is not {name: path} (one name, one path)", key, it.brief())
		}
		path, err := scalar(key, it.fields[0].value)
		if err != nil {
			return nil, err
		}
		out = append(out, KeepField{Name: it.fields[0].name, Path: path})
	}
	return out, nil
}

// members reads a mapping whose keys are all needed, in the order asked, as scalars.
func members(key string, n node, names ...string) ([]string, error) {
	if n.kind != mapNode {
		return nil, n.errorf("%s: %s is not a mapping of %s", key, n.brief(), strings.Join(names, ", "))
	}
	values := make([]string, len(names))
	found := map[string]bool{}
	for _, f := range n.fields {
		found[f.name] = true
	}
	for _, f := range n.fields {
		i := slices.Index(names, f.name)
		if i < 0 {
			return nil, unknownMember(key, f, names, found)
		}
		s, err := scalar(key+"."+f.name, f.value)
		if err != nil {
			return nil, err
		}
		values[i] = s
	}
	for _, name := range names {
		if !found[name] {
			return nil, n.errorf("%s: %s is missing (needed: %s)", key, name, strings.Join(names, ", "))
		}
	}
	return values, nil
}

func unknownMember(key string, f field, names []string, taken map[string]bool) error {
	hint := "known here: " + strings.Join(names, ", ")
	if near := nearest(f.name, names, taken); near != "" {
		hint = fmt.Sprintf("did you mean %q?", key+"."+near)
	}
	return placed{fmt.Errorf("unknown key %q (%s)", key+"."+f.name, hint), f.line, f.col}
}

func collectLeaf(key string, p *Collect) leaf {
	return leaf{
		key: key, structured: true,
		get: func() string { return p.String() },
		set: func(n node) error {
			c, err := collectValue(key, n)
			if err == nil {
				*p = c
			}
			return err
		},
		check: func() error { return checkCollect(key, p) },
	}
}

func collectValue(key string, n node) (Collect, error) {
	if n.kind != mapNode {
		s, err := scalar(key, n)
		if err != nil || s == "eager" || s == "timeout" {
			return Collect{Mode: s}, err
		}
		return Collect{}, n.errorf("%s: %w", key, unknownValue(s, collectForms))
	}
	if len(n.fields) != 1 {
		return Collect{}, n.errorf("%s: one of %s", key, strings.Join(collectForms, ", "))
	}
	switch f := n.fields[0]; f.name {
	case "count":
		s, err := scalar(key+".count", f.value)
		return Collect{Mode: "count", Count: s}, err
	case "marker":
		v, err := members(key+".marker", f.value, "field", "equals")
		if err != nil {
			return Collect{}, err
		}
		return Collect{Mode: "marker", Marker: Marker{v[0], v[1]}}, nil
	default:
		return Collect{}, unknownMember(key, f, []string{"count", "marker"}, nil)
	}
}

var collectForms = []string{"eager", "timeout", "{count: path}", "{marker: {field: path, equals: value}}"}

func checkCollect(key string, c *Collect) error {
	var err error
	switch c.Mode {
	case "eager", "timeout":
	case "count":
		err = pathShape(c.Count)
	case "marker":
		err = pathShape(c.Marker.Field)
	default:
		err = unknownValue(c.Mode, collectForms)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

func completeLeaf(key string, p **CompleteOn) leaf {
	return leaf{
		key: key, structured: true,
		get: func() string {
			c := *p
			if c == nil {
				return ""
			}
			return "{field: " + quote(c.Field) + ", equals: " + quote(c.Equals) + ", emit: " + quote(c.Emit) + "}"
		},
		set: func(n node) error {
			if n.kind == scalarNode {
				return n.errorf("%s: %s is not a mapping of field, equals, emit", key, n.brief())
			}
			v, err := members(key, n, "field", "equals", "emit")
			if err == nil {
				*p = &CompleteOn{v[0], v[1], v[2]}
			}
			return err
		},
		check: func() error {
			c := *p
			if c == nil {
				return nil
			}
			if err := pathShape(c.Field); err != nil {
				return fmt.Errorf("%s.field: %w", key, err)
			}
			if emits := []string{"pair", "unmatched", "nothing"}; !slices.Contains(emits, c.Emit) {
				return fmt.Errorf("%s.emit: %w", key, unknownValue(c.Emit, emits))
			}
			return nil
		},
	}
}
