package results

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ErrThreshold is in the error of ParseThreshold: a usage error, exit code 2, to be told before a run starts.
var ErrThreshold = errors.New("threshold")

// Limit is a threshold that was understood: a metric, or one divided by another, and what it must be.
type Limit struct {
	expr   string
	metric Metric
	per    *Metric // nil: the metric by itself
	op     string
	bound  float64
}

// String is the expression as it was given.
func (l *Limit) String() string { return l.expr }

var limitForm = regexp.MustCompile(`^\s*([^<>=!/\s]+)\s*(?:/\s*([^<>=!/\s]+)\s*)?(<=|>=|==|<|>)\s*([^<>=!\s]+(?: [A-Za-zµ%]+)?)\s*$`)

// ParseThreshold reads "metric op bound" or "metric/metric op bound"; op is one of < <= > >= ==. The bound of a metric in
// nanoseconds may be a duration (5ms), of one in bytes a size (600MiB), of any other a count (2M) or a percentage (0.05%).
func ParseThreshold(expr string) (*Limit, error) {
	no := func(format string, args ...any) (*Limit, error) {
		return nil, fmt.Errorf("%w %q: %s", ErrThreshold, expr, fmt.Sprintf(format, args...))
	}
	m := limitForm.FindStringSubmatch(expr)
	if m == nil {
		return no("not of the form metric op bound, op one of < <= > >= == (for example join.filter.fp_ratio<0.0005 or cost.ns_per_b/cost.unit_ns<=2.5)")
	}
	l := &Limit{expr: strings.TrimSpace(expr), op: m[3]}
	var err error
	if l.metric, err = ParseMetric(m[1]); err != nil {
		return no("%v", err)
	}
	kind := unitOf(l.metric)
	if m[2] != "" {
		per, err := ParseMetric(m[2])
		if err != nil {
			return no("%v", err)
		}
		l.per, kind = &per, unitNone
	}
	if l.bound, err = parseBound(m[4], kind); err != nil {
		return no("%v", err)
	}
	return l, nil
}

// ParseThresholds reads several, and stops at the first that is wrong.
func ParseThresholds(exprs []string) ([]*Limit, error) {
	var out []*Limit
	for _, expr := range exprs {
		l, err := ParseThreshold(expr)
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}

// Check holds a record against the limit. A value that is not there fails, with the reason.
func (l *Limit) Check(rec *Record) Threshold {
	t := Threshold{Expr: l.expr}
	if t.Value, t.Reason = l.metric.Value(rec); t.Value == nil {
		return t
	}
	if l.per != nil {
		var by *float64
		if by, t.Reason = l.per.Value(rec); by == nil {
			t.Value = nil
			return t
		}
		if t.Value = RatioF(*t.Value, *by); t.Value == nil {
			t.Reason = l.per.path + " is 0"
			return t
		}
	}
	t.OK = holds(*t.Value, l.op, l.bound)
	return t
}

func holds(v float64, op string, bound float64) bool {
	switch op {
	case "<":
		return v < bound
	case "<=":
		return v <= bound
	case ">":
		return v > bound
	case ">=":
		return v >= bound
	}
	return v == bound
}

// SetThresholds holds rec against limits and notes the outcome in it, in place of an earlier one of the same expression.
// Judge reads it there.
func (rec *Record) SetThresholds(limits []*Limit) {
	for _, l := range limits {
		t := l.Check(rec)
		if i := slices.IndexFunc(rec.Thresholds, func(o Threshold) bool { return o.Expr == t.Expr }); i >= 0 {
			rec.Thresholds[i] = t
		} else {
			rec.Thresholds = append(rec.Thresholds, t)
		}
	}
}

// Rejudge holds a record that has a verdict against more limits, and adds to the verdict what they say. What the run itself
// found stays.
func (rec *Record) Rejudge(limits []*Limit) {
	had := failedThresholds(rec)
	rec.SetThresholds(limits)
	v := &rec.Verdict
	v.Reasons = slices.DeleteFunc(v.Reasons, func(r string) bool {
		return slices.ContainsFunc(had, func(f Finding) bool { return f.Reason == r })
	})
	failed := failedThresholds(rec)
	for _, f := range failed {
		v.Reasons = append(v.Reasons, f.Reason)
	}
	switch {
	case len(failed) > 0 && moreSerious(StatusThreshold, v.Status):
		v.Status, v.ExitCode = StatusThreshold, ExitThreshold
	case len(failed) == 0 && v.Status == StatusThreshold:
		v.Status, v.ExitCode = StatusOK, ExitOK
	}
}

// The kinds of unit that a metric's name tells.
type unitKind string

const (
	unitNone  unitKind = ""
	unitNs    unitKind = "nanoseconds"
	unitBytes unitKind = "bytes"
)

// unitOf reads the unit out of the name: …_ns and ns_per_…, …_bytes and bytes_….
func unitOf(m Metric) unitKind {
	words := strings.Split(m.steps[len(m.steps)-1], "_")
	switch {
	case slices.Contains(words, "ns"):
		return unitNs
	case slices.Contains(words, "bytes"):
		return unitBytes
	}
	return unitNone
}

var boundUnits = map[unitKind]map[string]float64{
	unitNs: {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "min": 60e9, "h": 3600e9},
	unitBytes: {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
		"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12},
	unitNone: {"k": 1e3, "M": 1e6, "G": 1e9, "%": 0.01, "k/s": 1e3, "M/s": 1e6, "G/s": 1e9, "/s": 1},
}

// ParseBound reads a value of the metric with the units that thresholds take: 5ms, 600MiB, 2M, 0.05%.
func (m Metric) ParseBound(text string) (float64, error) { return parseBound(text, unitOf(m)) }

// IsTime and IsBytes tell the metric's unit by its name.
func (m Metric) IsTime() bool  { return unitOf(m) == unitNs }
func (m Metric) IsBytes() bool { return unitOf(m) == unitBytes }

// IsCount says that the metric is a whole number without a unit.
func (m Metric) IsCount() bool {
	t := reflect.TypeFor[Record]()
	for _, step := range m.steps {
		t, _ = child(t, step)
	}
	return unitOf(m) == unitNone && pointee(t).Kind() != reflect.Float64
}

var boundForm = regexp.MustCompile(`^([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(\D*)$`)

func parseBound(text string, kind unitKind) (float64, error) {
	m := boundForm.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%q is not a number", text)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, fmt.Errorf("%q is too large", text)
	}
	if m[2] == "" {
		return v, nil
	}
	if by, ok := boundUnits[kind][m[2]]; ok {
		return v * by, nil
	}
	of := "it has no unit of this kind"
	if kind != unitNone {
		of = "it is in " + string(kind)
	}
	return 0, fmt.Errorf("the unit %q does not fit the metric: %s", m[2], of)
}
