package compare

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"joinbench/results"
)

// Class is the kind of a metric: what noise it has, and so how it is judged.
type Class string

// The classes.
const (
	Count  Class = "count"  // exact: one more is a regression, where the workload's counts are the same in every run
	Allocs Class = "allocs" // nearly exact: the runtime allocates a little by itself
	Memory Class = "memory" // by ratio
	Time   Class = "time"   // by ratio, with a test
)

// Limit is how much worse a metric may be: by a ratio, and beyond that by an absolute floor. Both must be exceeded.
type Limit struct {
	Ratio float64
	Floor float64
}

// DefaultLimits are those of the classes. Allocs have a floor of half an allocation a batch besides (see Rules).
func DefaultLimits() map[Class]Limit {
	return map[Class]Limit{Count: {}, Allocs: {}, Memory: {Ratio: 0.10}, Time: {Ratio: 0.05}}
}

// Rule is a metric that is judged.
type Rule struct {
	Metric results.Metric
	Class  Class
	Limit  Limit
	Higher bool // more is better
	Same   bool // any difference is worse: what the workload alone decides
	// Unit takes the machine's mood out: the metric is divided by cost.unit_ns of the same run.
	Unit bool

	asked bool // judged because a limit was set for it
}

// floorAsRatio has the floor turned into a ratio of what a run says.
func (r Rule) floorAsRatio(base *results.Record) Rule {
	if v, _ := r.Metric.Value(base); v != nil && *v > 0 {
		r.Limit.Ratio = max(r.Limit.Ratio, r.Limit.Floor / *v)
	}
	return r
}

// counted says that a run counts it over all that it does, so that one that ends early has another figure. Bytes allocated are: of short
// runs of equal builds medians differed by 15 %, as what is allocated once weighs more.
func (r *Rule) counted() bool {
	return r.Class == Count || r.Class == Allocs || r.Metric.String() == "cost.alloc_bytes_per_probe"
}

var builtIn = []struct {
	path  string
	class Class
	same  bool
	unit  bool
}{
	{"join.probes", Count, true, false},
	{"join.matches", Count, true, false},
	{"join.outputs", Count, true, false},
	{"join.lookups", Count, false, false},
	{"join.buckets_consulted", Count, false, false},
	{"join.filter.filter_queries", Count, false, false},
	{"join.filter.false_positives", Count, false, false},
	{"join.filter.stale_positives", Count, false, false},
	{"join.filter.rebuilt", Count, false, false},
	{"join.buckets.sealed_total", Count, false, false},
	{"join.buckets.spills", Count, false, false},
	{"cost.filter_bytes", Count, false, false},
	{"cost.allocs_per_probe", Allocs, false, false},
	{"cost.alloc_bytes_per_probe", Memory, false, false},
	{"cost.rss_max_bytes", Memory, false, false},
	{"cost.disk_max_bytes", Memory, false, false},
	{"cost.ns_per_b", Time, false, true},
	{"cost.cpu_ns_per_b", Time, false, false},
	{"cost.ns_per_a", Time, false, true},
	{"cost.cpu_s_per_million", Time, false, false},
}

var unitMetric = mustMetric("cost.unit_ns")

func mustMetric(path string) results.Metric {
	m, err := results.ParseMetric(path)
	if err != nil {
		panic(err) // a test parses all of them
	}
	return m
}

// Override is a limit that was set for a class or for one metric: time=3%, cost.rss_max_bytes=5%+4MiB, count=0.1%.
type Override struct {
	Name  string // of a class, or a metric's path
	Limit Limit
}

// ParseOverride reads name=ratio or name=ratio+floor. A floor needs a metric, whose unit it has. An error wraps
// results.ErrThreshold: a usage error.
func ParseOverride(text string) (Override, error) {
	no := func(format string, args ...any) (Override, error) {
		return Override{}, fmt.Errorf("%w %q: %s", results.ErrThreshold, text, fmt.Sprintf(format, args...))
	}
	name, value, ok := strings.Cut(text, "=")
	if name = strings.TrimSpace(name); !ok || name == "" {
		return no("not of the form name=ratio, such as time=5%% or cost.rss_max_bytes=5%%+4MiB")
	}
	o := Override{Name: name}
	ratio, floor, floored := strings.Cut(value, "+")
	percent, isPercent := strings.CutSuffix(strings.TrimSpace(ratio), "%")
	r, err := strconv.ParseFloat(strings.TrimSpace(percent), 64)
	if err != nil || !(r >= 0) || r > 1e6 {
		return no("%q is not a ratio, such as 5%% or 0.05", ratio)
	}
	if isPercent {
		r /= 100
	}
	o.Limit.Ratio = r
	_, isClass := DefaultLimits()[Class(name)]
	if isClass {
		if floored {
			return no("a floor has the unit of a metric: name the metric in place of the class")
		}
		return o, nil
	}
	m, err := results.ParseMetric(name)
	if err != nil {
		return no("%v, and no class (%s, %s, %s, %s)", err, Count, Allocs, Memory, Time)
	}
	if floored {
		if o.Limit.Floor, err = m.ParseBound(strings.TrimSpace(floor)); err != nil {
			return no("floor: %v", err)
		}
	}
	return o, nil
}

// ParseOverrides reads several, and stops at the first that is wrong.
func ParseOverrides(texts []string) ([]Override, error) {
	var out []Override
	for _, t := range texts {
		o, err := ParseOverride(t)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// OfProfile are the overrides that a record's profile asks for (load.limits).
func OfProfile(rec *results.Record) ([]Override, error) {
	text := strings.Trim(configValue(rec, "load.limits"), "[]")
	if text == "" {
		return nil, nil
	}
	parts := strings.Split(text, ",")
	for i := range parts {
		parts[i] = strings.Trim(strings.TrimSpace(parts[i]), `"'`)
	}
	return ParseOverrides(parts)
}

// configValue is a value of the configuration that a record carries, "" without one.
func configValue(rec *results.Record, key string) string {
	var values map[string]string
	if json.Unmarshal(rec.Run.Config, &values) != nil {
		return "" // of another build: it is only known less of it
	}
	return values[key]
}

// limitsOf are those of the classes, for a workload such as that of rec.
func limitsOf(rec *results.Record, overrides []Override) map[Class]Limit {
	limits := DefaultLimits()
	for _, o := range overrides {
		if _, ok := limits[Class(o.Name)]; ok {
			limits[Class(o.Name)] = o.Limit
		}
	}
	if !deterministic(rec) && limits[Count] == (Limit{}) {
		limits[Count] = Limit{Ratio: 0.01} // when helpers are taken in depends on their pace
	}
	return limits
}

// Rules are the metrics to judge, for a workload such as that of rec. Later overrides win; one that names a metric which
// is not judged yet adds it.
func Rules(rec *results.Record, overrides []Override) []Rule {
	limits := limitsOf(rec, overrides)
	var rules []Rule
	for _, b := range builtIn {
		r := Rule{Metric: mustMetric(b.path), Class: b.class, Limit: limits[b.class], Same: b.same, Unit: b.unit}
		if b.same {
			r.Limit = Limit{}
		}
		if r.Class == Allocs && r.Limit == (Limit{}) {
			r.Limit.Floor = 0.5 / batchOf(rec)
		}
		rules = append(rules, r)
	}
	for _, o := range overrides {
		if _, isClass := limits[Class(o.Name)]; isClass {
			continue
		}
		i := slices.IndexFunc(rules, func(r Rule) bool { return r.Metric.String() == o.Name })
		if i < 0 {
			rules = append(rules, added(o.Name))
			i = len(rules) - 1
		}
		rules[i].Limit = o.Limit
	}
	return rules
}

// added is a rule for a metric that is not judged by itself.
func added(path string) Rule {
	m := mustMetric(path) // ParseOverride has taken it
	r := Rule{Metric: m, Class: Memory, asked: true}
	switch {
	case strings.HasPrefix(path, "join.") && m.IsCount():
		r.Class = Count
	case m.IsTime():
		r.Class, r.Unit = Time, true
	case moreIsBetter(path):
		r.Class, r.Higher = Time, true
	}
	return r
}

// moreIsBetter is said of rates and reductions, by their names; not of the slope of a lag.
func moreIsBetter(path string) bool {
	return strings.HasSuffix(path, "per_s") && !strings.HasSuffix(path, "slope_per_s") || strings.HasSuffix(path, "reduction")
}

// Decides says whether runs that take turns can be told apart by a metric: not by one that is exact, of which one pair says all.
// An error wraps results.ErrThreshold: a usage error.
func Decides(path string) error {
	if _, err := results.ParseMetric(path); err != nil {
		return err
	}
	for _, b := range builtIn {
		if b.path == path && (b.class == Count || b.class == Allocs) {
			return fmt.Errorf("%w %q: it is judged exactly whatever decides; name a time, such as cost.ns_per_b", results.ErrThreshold, path)
		}
	}
	return nil
}

// deterministic: the profile takes in what helpers do at fixed batches, and one task does it.
func deterministic(rec *results.Record) bool {
	after := configValue(rec, "load.swap_after")
	return after != "" && after != "0" && rec.Run.Tasks == 1
}

// batchOf is the number of B of a batch.
func batchOf(rec *results.Record) float64 {
	if n, err := strconv.ParseFloat(configValue(rec, "load.batch"), 64); err == nil && n > 0 {
		return n * float64(max(rec.Run.Tasks, 1))
	}
	return 4096
}
