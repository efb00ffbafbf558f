package results

import (
	"reflect"
	"slices"
	"strings"
)

// armColumn is one column of the table of arms: every number that an arm has is one. Those with a ratio are set in relation to
// the first arm.
type armColumn struct {
	name  string // of the field
	head  string
	value func(*Arm) *float64
	text  func(float64) string
	ratio bool
}

// armHeads are the columns that have a better name than their field.
var armHeads = map[string]string{"ns_per_b": "ns per B", "ns_per_a": "ns per A", "rss_max_bytes": "memory", "disk_max_bytes": "disk",
	"lookups_per_probe": "lookups/B", "fp_ratio": "FP of B", "matches": "pairs"}

// armQuiet are fields that make no column where people read: other columns say what they say.
var armQuiet = []string{"probes", "lookups"}

func armColumns() []armColumn {
	var out []armColumn
	for _, f := range jsonFields(reflect.TypeFor[Arm]()) {
		if !isNumber(f.Type) {
			continue
		}
		c := armColumn{name: jsonName(f), text: plain, value: func(a *Arm) *float64 {
			if n, ok := number(reflect.ValueOf(a).Elem().FieldByIndex(f.Index)); ok {
				return &n
			}
			return nil
		}}
		if c.head = armHeads[c.name]; c.head == "" {
			c.head = strings.ReplaceAll(c.name, "_", " ")
		}
		unit := unitOf(Metric{steps: []string{c.name}})
		c.ratio = unit != unitNone
		switch {
		case unit == unitBytes:
			c.text = func(v float64) string { return Bytes(int64(v)) }
		case strings.HasPrefix(c.name, "ns_per"):
			c.text = func(v float64) string { return fixed(v, 1) }
		case unit == unitNs:
			c.text = Nanoseconds
		case strings.HasSuffix(c.name, "_ratio"):
			c.text = Percent
		case pointee(f.Type).Kind() != reflect.Float64:
			c.text = func(v float64) string { return Count(int64(v)) }
		}
		out = append(out, c)
	}
	return out
}

// armTable is the table of arms for people: head and rows. Columns of which no arm knows anything are left out.
func armTable(arms []Arm) (head []string, rows [][]string) {
	head = []string{"arm"}
	rows = make([][]string, len(arms))
	for i := range arms {
		rows[i] = []string{arms[i].Name}
	}
	for _, c := range armColumns() {
		known := false
		for i := range arms {
			known = known || c.value(&arms[i]) != nil
		}
		if !known || slices.Contains(armQuiet, c.name) {
			continue
		}
		head = append(head, c.head)
		if c.ratio {
			head = append(head, "×")
		}
		for i := range arms {
			rows[i] = append(rows[i], orDash(c.value(&arms[i]), c.text))
			if c.ratio {
				rows[i] = append(rows[i], orDash(armRatio(arms, i, c.value), func(v float64) string { return significant(v, 3) }))
			}
		}
	}
	return head, rows
}

// armRatio sets an arm's value in relation to that of the first.
func armRatio(arms []Arm, i int, value func(*Arm) *float64) *float64 {
	v, first := value(&arms[i]), value(&arms[0])
	if v == nil || first == nil {
		return nil
	}
	return RatioF(*v, *first)
}
