package main

import (
	"slices"
	"strings"
	"testing"

	"joinbench/results"
)

// TestSteadyStateIsDemanded: a run whose profile demands a steady state says why it has none and ends with exit code 3; one that does
// not demand it ends well and says so too. B of the warm-up come on top of those that are measured.
func TestSteadyStateIsDemanded(t *testing.T) {
	p := newBenchPlace(t)
	profile := strings.NewReplacer("b_events: 24k", "b_events: 100k", "grace: 1s", "grace: 1s\n  max_spread: 20s").Replace(smallProfile) + "  steady: true\n  warm: 4k\n  swap_after: 3\n"
	p.write("small.yaml", profile+"  require_steady: true\n")
	rec := p.bench(results.ExitInvalid)
	if v := rec.Verdict; v.Status != results.StatusInvalid || len(v.Reasons) != 1 || !strings.Contains(v.Reasons[0], "steady state was required and not attained: ") ||
		!strings.Contains(v.Reasons[0], "samples of the measured phase, 24 are needed") {
		t.Errorf("verdict %+v", v)
	}
	if s := rec.SteadyState; s == nil || !s.Required || s.Attained || len(s.Criteria) == 0 || s.BucketsSealed < 3 || s.BucketsDropped < 3 {
		t.Errorf("steady state %+v", s)
	}
	var phases []string
	records := map[string]int64{}
	for _, phase := range rec.Phases {
		phases = append(phases, phase.Name)
		records[phase.Name] += phase.Records
	}
	if !slices.Equal(phases, []string{"prepare", "settle", "warm", "settle", "measure", "drain"}) {
		t.Errorf("phases %v", phases)
	}
	if rec.Join.B.Read != 104_000 || records["warm"] < 4000 || records["warm"] > 5000 || records["measure"] < 99_000 {
		t.Errorf("%d A and %d B read, phases %+v", rec.Join.A.Read, rec.Join.B.Read, rec.Phases)
	}
	if r := rec.Rotation; r == nil || r.BatchesInside == 0 || r.BatchesOutside == 0 || r.Rotations != rec.SteadyState.BucketsSealed ||
		r.BatchesInside+r.BatchesOutside < 100_000/256 || *r.P99InsideNs <= 0 || *r.P99OutsideNs <= 0 || r.P99Ratio == nil {
		t.Errorf("rotation %+v", r)
	}
	p.write("small.yaml", profile)
	rec = p.bench(0)
	checkRight(t, "not demanded", rec)
	if s := rec.SteadyState; s.Required || s.Attained || len(s.Reasons) == 0 {
		t.Errorf("steady state %+v", s)
	}
}

// TestProfilesAreWhole: every built-in profile is valid.
func TestProfilesAreWhole(t *testing.T) {
	for _, name := range strings.Fields("ci dense hot quick recovery reference rotation worst") {
		o := joinbench("run", "--profile", name, "--print-config")
		o.want(t, 0)
	}
}
