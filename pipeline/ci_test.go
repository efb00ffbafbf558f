package pipeline

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"joinbench/results"
)

var ciUpdate = flag.Bool("update", false, "write testdata/ci-counts.json anew")

const ciCounts = "testdata/ci-counts.json"

// TestCIProfile runs the profile ci and holds its counts against the file, exactly. A change that moves them on purpose is
// noted with: go test ./pipeline -run TestCIProfile -update
func TestCIProfile(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 20 s")
	}
	got := map[string]int64{}
	runCI(t, "fuse16", "fuse16", true, got)
	runCI(t, "fuse8-bare", "fuse8", false, got) // errs often enough to show how filters hash
	for _, name := range []string{"fuse16.join.buckets.spills", "fuse16.join.filter.stale_positives", "fuse16.join.filter.false_positives"} {
		if got[name] == 0 {
			t.Errorf("%s is 0: the profile counts too little", name)
		}
	}
	if got["fuse16.measured.buckets_sealed"] < 3 || got["fuse16.measured.buckets_dropped"] < 3 || got["fuse8-bare.join.filter.false_positives"] < 100_000 {
		t.Errorf("the profile counts too little: %v", got)
	}
	if *ciUpdate {
		writeCounts(t, got)
	}
	if diff := diffCounts(got, readCounts(t)); diff != "" {
		t.Errorf("counts of profile ci differ from %s:\n%s(if that is meant: go test ./pipeline -run TestCIProfile -update)", ciCounts, diff)
	}
}

// runCI runs the profile with a filter and adds its counts under a name.
func runCI(t *testing.T, name, filter string, summary bool, into map[string]int64) {
	t.Helper()
	p, err := Profile("ci")
	if err == nil {
		err = p.Set("state.filter", filter, "test")
	}
	if err == nil {
		err = p.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	rec, err := Bench(context.Background(), BenchConfig{Profile: p, Name: "ci", Summary: summary})
	if err != nil {
		t.Fatal(err)
	}
	if rec.Verdict.Status != results.StatusOK {
		t.Fatalf("%s: verdict %+v", name, rec.Verdict)
	}
	for k, n := range countsOf(t, rec) {
		into[name+"."+k] = n
	}
	var sum results.PerBucket
	for _, b := range rec.Join.PerBucket { // all buckets have gone
		sum.Lookups, sum.FalsePositives = sum.Lookups+b.Lookups, sum.FalsePositives+b.FalsePositives
		sum.StalePositives, sum.Rows, sum.Left = sum.StalePositives+b.StalePositives, sum.Rows+b.Rows, sum.Left+b.Left
	}
	j := &rec.Join
	if sum.Lookups != j.Lookups || sum.FalsePositives != j.Filter.FilterFalsePositives || sum.Rows < sum.Left || len(j.PerBucket) == 0 || len(j.PerBucket) > int(j.Buckets.DroppedTotal) {
		t.Errorf("%s: the buckets together have %+v, the join %d lookups, %d wrong", name, sum, j.Lookups, j.Filter.FilterFalsePositives)
	}
}

// countsOf are the whole numbers of a record that must be the same in every run, by dotted name.
func countsOf(t *testing.T, rec *results.Record) map[string]int64 {
	t.Helper()
	data, err := json.Marshal(map[string]any{"join": rec.Join, "cf_drops": rec.Storage.CFDrops, "cost": map[string]any{"filter_bytes": rec.Cost.FilterBytes},
		"measured": map[string]int64{"buckets_sealed": rec.SteadyState.BucketsSealed, "buckets_dropped": rec.SteadyState.BucketsDropped,
			"batches_inside": rec.Rotation.BatchesInside, "batches_outside": rec.Rotation.BatchesOutside}})
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.UseNumber()
	if err := dec.Decode(&tree); err != nil {
		t.Fatal(err)
	}
	for _, phase := range rec.Phases {
		n, _ := tree["phase."+phase.Name].(json.Number)
		before, _ := n.Int64()
		tree["phase."+phase.Name] = json.Number(fmt.Sprint(before + phase.Records))
	}
	counts := map[string]int64{}
	flatten("", tree, counts)
	return counts
}

// flatten collects whole numbers that are no times.
func flatten(name string, v any, into map[string]int64) {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			flatten(strings.TrimPrefix(name+"."+k, "."), inner, into)
		}
	case json.Number:
		if n, err := v.Int64(); err == nil && !strings.HasSuffix(name, "_ns") {
			into[name] = n
		}
	}
}

// diffCounts lists what differs, a line each; empty when nothing does.
func diffCounts(got, want map[string]int64) string {
	var b strings.Builder
	all := maps.Clone(got)
	maps.Copy(all, want)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		g, inGot := got[name]
		w, inWant := want[name]
		switch {
		case !inWant:
			fmt.Fprintf(&b, "  %-50s %12d, not in the file\n", name, g)
		case !inGot:
			fmt.Fprintf(&b, "  %-50s %12s, in the file %d\n", name, "missing", w)
		case g != w:
			fmt.Fprintf(&b, "  %-50s %12d, in the file %d (%+d)\n", name, g, w, g-w)
		}
	}
	return b.String()
}

func readCounts(t *testing.T) map[string]int64 {
	t.Helper()
	data, err := os.ReadFile(ciCounts)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]int64
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatalf("%s: %v", ciCounts, err)
	}
	return want
}

func writeCounts(t *testing.T, counts map[string]int64) {
	t.Helper()
	data, err := json.MarshalIndent(counts, "", "  ") // maps come out in the order of their keys
	if err == nil {
		err = os.WriteFile(ciCounts, append(data, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestDiffCounts: each kind of difference is said, and equality is silent.
func TestDiffCounts(t *testing.T) {
	got := diffCounts(map[string]int64{"same": 1, "more": 7, "new": 2}, map[string]int64{"same": 1, "more": 5, "gone": 3})
	for _, want := range []string{"more", "7, in the file 5 (+2)", "new", "not in the file", "gone", "missing, in the file 3"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q does not say %q", got, want)
		}
	}
	if diff := diffCounts(map[string]int64{"x": 1}, map[string]int64{"x": 1}); strings.Contains(got, "same") || diff != "" {
		t.Errorf("%q, %q", got, diff)
	}
}
