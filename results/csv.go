package results

import (
	"encoding/csv"
	"io"
	"reflect"
	"strconv"
	"strings"
)

// csvHead are the columns of WriteCSV.
var csvHead = []string{"run", "label", "profile", "started_at", "arm", "metric", "value", "unit"}

// WriteCSV writes one row for each number of each record (RFC 4180): a form that several files can be put together in, and
// from which a spreadsheet's pivot table makes any other. metric is the path that thresholds take (cost.ns_per_b), value
// the number in full, unit ns, bytes, 1/s, or empty. What a record does not know has no row. Rows of an arm have its name in the
// column arm, the field's as metric, and for time and memory another row that sets them in relation to the first arm
// (ns_per_b_ratio). The records are only read.
func WriteCSV(w io.Writer, recs ...*Record) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	if err := out.Write(csvHead); err != nil {
		return err
	}
	for _, rec := range recs {
		r := &rec.Run
		row := func(arm, metric string, value float64) error {
			return out.Write([]string{r.ID, r.Label, r.Profile, r.StartedAt, arm, metric, strconv.FormatFloat(value, 'f', -1, 64), csvUnit(metric)})
		}
		if err := eachNumber(rec, func(path string, v float64) error { return row("", path, v) }); err != nil {
			return err
		}
		for i := range rec.Arms {
			if err := csvArm(rec.Arms, i, row); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

func csvArm(arms []Arm, i int, row func(arm, metric string, value float64) error) error {
	for _, c := range armColumns() {
		v := c.value(&arms[i])
		if v == nil {
			continue
		}
		if err := row(arms[i].Name, c.name, *v); err != nil {
			return err
		}
		if r := armRatio(arms, i, &c); c.ratio && r != nil && armNumber(&arms[i], c.name+"_ratio") == nil {
			if err := row(arms[i].Name, c.name+"_ratio", *r); err != nil {
				return err
			}
		}
	}
	return nil
}

// eachNumber calls fn for every metric of a record that has a value, arms left out.
func eachNumber(rec *Record, fn func(path string, v float64) error) error {
	for _, path := range Metrics() {
		if strings.HasPrefix(path, "arms.") {
			continue
		}
		for _, path := range namedPaths(rec, path) {
			m, err := ParseMetric(path)
			if err != nil {
				continue // the name of an element has a dot in it: no path leads there
			}
			if v, _ := m.Value(rec); v != nil {
				if err := fn(path, *v); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// namedPaths puts the names of a list's elements in the place of <name>.
func namedPaths(rec *Record, path string) []string {
	before, after, ok := strings.Cut(path, ".<name>")
	if !ok {
		return []string{path}
	}
	v := reflect.ValueOf(rec).Elem()
	for step := range strings.SplitSeq(before, ".") {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return nil
			}
			v = v.Elem()
		}
		v = v.FieldByIndex(jsonField(v.Type(), step).Index)
	}
	var out []string
	for i := range v.Len() {
		e := v.Index(i)
		out = append(out, before+"."+e.FieldByIndex(nameField(e.Type()).Index).String()+after)
	}
	return out
}

// number is the value of a field that holds one.
func number(v reflect.Value) (float64, bool) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return 0, false
		}
		v = v.Elem()
	}
	switch {
	case v.CanInt():
		return float64(v.Int()), true
	case v.CanUint():
		return float64(v.Uint()), true
	case v.CanFloat():
		return v.Float(), Known(v.Float()) != nil
	}
	return 0, false
}

func csvUnit(metric string) string {
	last := metric[strings.LastIndexByte(metric, '.')+1:]
	switch {
	case strings.HasSuffix(last, "_ratio"), strings.HasPrefix(last, "slope"):
		return ""
	case strings.HasSuffix(last, "_per_s"):
		return "1/s"
	}
	switch unitOf(Metric{steps: []string{last}}) {
	case unitNs:
		return "ns"
	case unitBytes:
		return "bytes"
	}
	return ""
}
