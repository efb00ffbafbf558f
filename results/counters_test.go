package results

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// keysOf lists the names of a JSON object in order.
func keysOf(t *testing.T, data []byte, path ...string) []string {
	t.Helper()
	for _, name := range path {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(data, &object); err != nil {
			t.Fatal(err)
		}
		data = object[name]
	}
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.Token()
	var keys []string
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, name.(string))
		var skip json.RawMessage
		if err := dec.Decode(&skip); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

// The names are an interface: scripts read them. --stats prints the counters and nothing else.
func TestCounterNames(t *testing.T) {
	data, err := MarshalCounters(&exampleRecord().Join.Counters)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, names string }{
		{"", "a b outputs matches unmatched_a unmatched_b early corrected retracted oversize probes lookups lookups_per_probe " +
			"lookup_reduction vs_arm buckets_consulted buckets_consulted_per_probe filter buckets unvalidated"},
		{"a", "read accepted null_key bad_key malformed bad_time late late_idle redelivered behind pending fetched fetch_cache_hits deleted"},
		{"b", "read accepted null_key bad_key malformed bad_time late late_idle redelivered behind pending fetched fetch_cache_hits deleted"},
		{"filter", "kind summary bits_per_key bytes_per_row present_queries absent_queries false_positives stale_positives fp_ratio fp_ci95 fp_predicted " +
			"fp_per_filter filter_queries filter_false_positives false_negatives build_ns build_failed rebuilt"},
		{"buckets", "open sealed sealed_total dropped_total drop_max_ns spills"},
	} {
		var path []string
		if c.path != "" {
			path = []string{c.path}
		}
		if got := strings.Join(keysOf(t, data, path...), " "); got != c.names {
			t.Errorf("%s has\n%s, want\n%s", c.path, got, c.names)
		}
	}
	whole, err := Marshal(exampleRecord())
	if err != nil {
		t.Fatal(err)
	}
	join := keysOf(t, whole, "join")
	for _, name := range append(keysOf(t, data), "match_ratio", "missing", "spurious", "duplicated", "expected_matches",
		"expected_match_ratio", "sealed_partner_probes") {
		if !slices.Contains(join, name) {
			t.Errorf("join lacks %s", name)
		}
	}
}

func TestDerive(t *testing.T) {
	c := Counters{Probes: 1000, Lookups: 20, Filter: Filter{AbsentQueries: 900, FalsePositives: 9, FilterQueries: 14_400, FilterFalsePositives: 9}}
	c.Derive()
	near := func(name string, got *float64, want float64) {
		t.Helper()
		if got == nil || math.Abs(*got-want) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, orDash(got, plain), want)
		}
	}
	near("lookups_per_probe", c.LookupsPerProbe, 0.02)
	near("lookup_reduction", c.LookupReduction, 50)
	near("fp_ratio", c.Filter.FPRatio, 0.01)
	near("fp_per_filter", c.Filter.FPPerFilter, 0.000625)
	if c.Filter.FPCI95 == nil || c.Filter.FPCI95[0] > 0.01 || c.Filter.FPCI95[1] < 0.01 {
		t.Errorf("fp_ci95: %v", c.Filter.FPCI95)
	}
	c = Counters{Filter: Filter{FPRatio: Known(1)}}
	c.Derive() // also takes back a ratio that no longer exists
	if c.LookupsPerProbe != nil || c.LookupReduction != nil || c.Filter.FPRatio != nil || c.Filter.FPCI95 != nil || c.Filter.FPPerFilter != nil {
		t.Errorf("ratios of nothing: %+v", c)
	}
	j := Join{Counters: Counters{Probes: 200, Matches: 4}, Truth: &Truth{ExpectedMatches: 5}}
	j.Derive()
	near("match_ratio", j.MatchRatio, 0.02)
	near("expected_match_ratio", j.ExpectedMatchRatio, 0.025)
	j.ExpectedMatchRatio = Known(0.03)
	j.Derive()
	near("expected_match_ratio that was set", j.ExpectedMatchRatio, 0.03)
}

// MarshalCounters derives on a copy, and has null for what is NaN.
func TestMarshalCounters(t *testing.T) {
	c := Counters{Probes: 4, Lookups: 2, Filter: Filter{BitsPerKey: new(math.NaN())}}
	data, err := MarshalCounters(&c)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"lookups_per_probe": 0.5`, `"vs_arm": null`, `"bits_per_key": null`, `"fp_ci95": null`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("lacks %s:\n%s", want, data)
		}
	}
	if !strings.HasSuffix(string(data), "}\n") {
		t.Error("does not end in a line feed")
	}
	if c.LookupsPerProbe != nil || c.Filter.BitsPerKey == nil {
		t.Error("the counters were changed")
	}
}

// fill sets every integer of a struct to a value of its own, so that a field that Add or Sub forgets shows.
func fill(v reflect.Value, next *int64) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), next)
		}
	case reflect.Int64:
		*next++
		v.SetInt(*next)
	}
}

// each calls f with every integer of two like structs and its path.
func each(path string, a, b reflect.Value, f func(path string, a, b int64)) {
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			each(path+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i), f)
		}
	case reflect.Int64:
		f(path, a.Int(), b.Int())
	}
}

func TestAddAndSub(t *testing.T) {
	levels := map[string]bool{".A.Pending": true, ".B.Pending": true, ".Buckets.Open": true, ".Buckets.Sealed": true, ".Buckets.DropMaxNs": true}
	var one Counters
	next := int64(0)
	fill(reflect.ValueOf(&one).Elem(), &next)
	if next < 40 {
		t.Fatalf("only %d integers were found", next)
	}
	sum := one
	sum.Add(&one)
	each("", reflect.ValueOf(sum), reflect.ValueOf(one), func(path string, sum, one int64) {
		want := 2 * one
		if path == ".Buckets.DropMaxNs" {
			want = one // the longest of two alike
		}
		if sum != want {
			t.Errorf("Add: %s is %d, want %d", path, sum, want)
		}
	})
	rest := one
	rest.Sub(&one)
	each("", reflect.ValueOf(rest), reflect.ValueOf(one), func(path string, rest, one int64) {
		want := int64(0)
		if levels[path] {
			want = one
		}
		if rest != want {
			t.Errorf("Sub: %s is %d, want %d", path, rest, want)
		}
	})
	var total Counters // the sum over tasks starts from zero and takes on what the tasks have in common
	total.Add(&Counters{Filter: Filter{Kind: "fuse16", Summary: true, BitsPerKey: Known(18), FPPredicted: Known(0.1)}})
	if f := total.Filter; f.Kind != "fuse16" || !f.Summary || f.BitsPerKey == nil || f.FPPredicted == nil {
		t.Errorf("the filter got lost: %+v", f)
	}
}
