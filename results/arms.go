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
	"background_ns_per_a": "beside, per A", "cpu_s_per_million": "CPU s/M", "lookups_per_probe": "lookups/B", "fp_ratio": "FP of B",
	"matches": "pairs", "restart_ns": "restart", "lost": "lost at kill -9"}

// armQuiet are fields that make no column where people read: other columns say what they say.
var armQuiet = []string{"probes", "lookups", "unit_ns"}

// armRatios are the fields that are set in relation to the first arm. Where an arm has a ratio of its own (ns_per_b_ratio,
// with _low and _high over the slices of an interleaved run), that one is shown.
var armRatios = []string{"ns_per_b", "ns_per_a", "rss_max_bytes", "disk_max_bytes"}

func armColumns() []armColumn {
	var out []armColumn
	for _, f := range jsonFields(reflect.TypeFor[Arm]()) {
		if !isNumber(f.Type) {
			continue
		}
		name := jsonName(f)
		c := armColumn{name: name, text: plain, ratio: slices.Contains(armRatios, name), value: func(a *Arm) *float64 { return armNumber(a, name) }}
		if c.head = armHeads[c.name]; c.head == "" {
			c.head = strings.ReplaceAll(c.name, "_", " ")
		}
		unit := unitOf(Metric{steps: []string{c.name}})
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
		base, _, isRatio := strings.Cut(c.name, "_ratio")
		if !known || slices.Contains(armQuiet, c.name) || isRatio && slices.Contains(armRatios, base) {
			continue
		}
		head = append(head, c.head)
		if c.ratio {
			head = append(head, "×")
		}
		for i := range arms {
			rows[i] = append(rows[i], orDash(c.value(&arms[i]), c.text))
			if c.ratio {
				rows[i] = append(rows[i], armRatioText(arms, i, &c))
			}
		}
	}
	return head, rows
}

// armNumber is a number of an arm by the name of its field; nil where the arm has none.
func armNumber(a *Arm, name string) *float64 {
	f := jsonField(reflect.TypeFor[Arm](), name)
	if f == nil {
		return nil
	}
	if n, ok := number(reflect.ValueOf(a).Elem().FieldByIndex(f.Index)); ok {
		return &n
	}
	return nil
}

// armRatio sets an arm's value in relation to that of the first.
func armRatio(arms []Arm, i int, c *armColumn) *float64 {
	if own := armNumber(&arms[i], c.name+"_ratio"); own != nil {
		return own
	}
	v, first := c.value(&arms[i]), c.value(&arms[0])
	if v == nil || first == nil {
		return nil
	}
	return RatioF(*v, *first)
}

// armRatioText adds the spread over the slices where there is one.
func armRatioText(arms []Arm, i int, c *armColumn) string {
	three := func(v float64) string { return significant(v, 3) }
	text := orDash(armRatio(arms, i, c), three)
	low, high := armNumber(&arms[i], c.name+"_ratio_low"), armNumber(&arms[i], c.name+"_ratio_high")
	if low != nil && high != nil && *low < *high {
		text += " (" + three(*low) + "–" + three(*high) + ")"
	}
	return text
}
