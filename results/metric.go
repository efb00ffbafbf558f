package results

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"joinbench/internal/near"
)

// Metric is one number of a record, by its dotted path in the JSON: join.filter.fp_ratio. An element of a list is named by
// its "name" or "metric" (arms.memory.ns_per_b, phases.measure.duration_ns), one of a pair of numbers by 0 or 1
// (join.filter.fp_ci95.1).
type Metric struct {
	path  string
	steps []string
}

// String is the path.
func (m Metric) String() string { return m.path }

// ParseMetric checks a path against the record's form. What an element of a list is called is known only once there is a
// record, so any name is taken there. The error names the nearest metric.
func ParseMetric(path string) (Metric, error) {
	steps := strings.Split(path, ".")
	t := reflect.TypeFor[Record]()
	for i, step := range steps {
		next, ok := child(t, step)
		if !ok {
			return Metric{}, unknownMetric(path, steps[:i], t)
		}
		t = next
	}
	if !isNumber(t) {
		if under := metricsUnder(t, path); len(under) > 0 {
			return Metric{}, fmt.Errorf("%s is a group, not a number (its metrics: %s)", path, strings.Join(under, ", "))
		}
		return Metric{}, fmt.Errorf("%s is not a number", path)
	}
	return Metric{path, steps}, nil
}

// Value reads the metric; nil comes with the reason why there is none.
func (m Metric) Value(rec *Record) (value *float64, reason string) {
	v := reflect.ValueOf(rec).Elem()
	for i, step := range m.steps {
		at := strings.Join(m.steps[:i], ".")
		switch v.Kind() {
		case reflect.Struct:
			f := jsonField(v.Type(), step)
			next, err := v.FieldByIndexErr(f.Index)
			if err != nil { // an embedded part that is not there
				return nil, fmt.Sprintf("%s: the record does not know it", m.path)
			}
			v = next
		case reflect.Slice:
			if v = named(v, step); !v.IsValid() {
				return nil, fmt.Sprintf("%s has none of the name %q", at, step)
			}
		case reflect.Array:
			n, _ := strconv.Atoi(step)
			v = v.Index(n)
		}
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return nil, strings.Join(m.steps[:i+1], ".") + " is null: this run did not measure it"
			}
			v = v.Elem()
		}
	}
	switch {
	case v.CanInt():
		return new(float64(v.Int())), ""
	case v.CanUint():
		return new(float64(v.Uint())), ""
	}
	if f := Known(v.Float()); f != nil {
		return f, ""
	}
	return nil, m.path + " is not finite"
}

// Metrics lists every path that ParseMetric takes; <name> stands for the name of a list's element.
func Metrics() []string { return metricsUnder(reflect.TypeFor[Record](), "") }

func metricsUnder(t reflect.Type, path string) []string {
	var out []string
	below := func(name string, t reflect.Type) {
		out = append(out, metricsUnder(t, strings.TrimPrefix(path+"."+name, "."))...)
	}
	switch t = pointee(t); {
	case isNumber(t):
		return []string{path}
	case t.Kind() == reflect.Struct:
		for _, f := range jsonFields(t) {
			below(jsonName(f), f.Type)
		}
	case t.Kind() == reflect.Slice && isNamed(t.Elem()):
		below("<name>", t.Elem())
	case t.Kind() == reflect.Array:
		for i := range t.Len() {
			below(strconv.Itoa(i), t.Elem())
		}
	}
	return out
}

// child is the type of a step's value.
func child(t reflect.Type, step string) (reflect.Type, bool) {
	switch t = pointee(t); t.Kind() {
	case reflect.Struct:
		if f := jsonField(t, step); f != nil {
			return pointee(f.Type), true
		}
	case reflect.Slice:
		return pointee(t.Elem()), isNamed(t.Elem()) && step != ""
	case reflect.Array:
		n, err := strconv.Atoi(step)
		return t.Elem(), err == nil && n >= 0 && n < t.Len() && strconv.Itoa(n) == step
	}
	return nil, false
}

// unknownMetric names what was probably meant: the same ending elsewhere, or else the path that differs least.
func unknownMetric(path string, known []string, t reflect.Type) error {
	all := Metrics()
	last := path[strings.LastIndexByte(path, '.')+1:]
	best := ""
	for _, m := range all {
		if strings.HasSuffix(m, "."+last) && (best == "" || near.Distance(path, m) < near.Distance(path, best)) {
			best = m
		}
	}
	if best == "" {
		within := all
		if len(known) > 0 {
			within = metricsUnder(t, strings.Join(known, "."))
		}
		best = slices.MinFunc(within, func(a, b string) int { return near.Distance(path, a) - near.Distance(path, b) })
	}
	return fmt.Errorf("unknown metric %q (did you mean %q?)", path, best)
}

// named is the element of a list that bears a name.
func named(list reflect.Value, name string) reflect.Value {
	key := nameField(list.Type().Elem())
	for i := range list.Len() {
		if list.Index(i).FieldByIndex(key.Index).String() == name {
			return list.Index(i)
		}
	}
	return reflect.Value{}
}

func isNamed(t reflect.Type) bool { return t.Kind() == reflect.Struct && nameField(t) != nil }

// nameField is the field by which elements of a list are told apart.
func nameField(t reflect.Type) *reflect.StructField {
	if f := jsonField(t, "name"); f != nil {
		return f
	}
	return jsonField(t, "metric")
}

func isNumber(t reflect.Type) bool {
	switch pointee(t).Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64, reflect.Float64:
		return true
	}
	return false
}

func pointee(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// jsonFields lists the fields of a struct as encoding/json sees them: those of embedded structs count as its own.
func jsonFields(t reflect.Type) []reflect.StructField {
	var out []reflect.StructField
	for _, f := range reflect.VisibleFields(t) {
		if f.IsExported() && !f.Anonymous && f.Tag.Get("json") != "-" {
			out = append(out, f)
		}
	}
	return out
}

func jsonField(t reflect.Type, name string) *reflect.StructField {
	for _, f := range jsonFields(t) {
		if jsonName(f) == name {
			return &f
		}
	}
	return nil
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" {
		return f.Name
	}
	return name
}
