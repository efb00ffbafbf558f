package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"joinbench/results"
)

// What takes minutes and tells about the machine too is asked for by name: `make steady`, `make recovery`. The environment
// says what is to be done, and where the program lies that does it.
const (
	claimBin      = "CLAIM_BIN"      // the program; unset: this test
	claimDir      = "CLAIM_DIR"      // where records are kept; unset: nowhere
	claimSteady   = "CLAIM_STEADY"   // duration of the long run
	claimRecovery = "CLAIM_RECOVERY" // profile of the run that is killed
)

// claimed skips what was not asked for.
func claimed(t *testing.T, name string) (value, bin, record string) {
	t.Helper()
	if value = os.Getenv(name); value == "" {
		t.Skipf("%s is not set", name)
	}
	if bin = os.Getenv(claimBin); bin == "" {
		bin = os.Args[0]
		t.Setenv(asProgram, "1")
	}
	dir := os.Getenv(claimDir)
	if dir == "" {
		dir = t.TempDir()
	}
	return value, bin, filepath.Join(dir, strings.ToLower(strings.TrimPrefix(name, "CLAIM_"))+".json")
}

// limits collects what a record was to hold and does not.
type limits []string

func (l *limits) want(ok bool, format string, args ...any) {
	if !ok {
		*l = append(*l, fmt.Sprintf(format, args...))
	}
}

// steadyFaults: what a long run must show.
func steadyFaults(rec *results.Record) (l limits) {
	l.want(rec.Verdict.ExitCode == 0, "verdict %+v", rec.Verdict)
	s := rec.Steady
	if s == nil || s.RSS.SlopePer10Min == nil {
		return append(l, "too short for a slope")
	}
	l.want(*s.RSS.SlopePer10Min < 0.01, "memory rises by %.2f %% in 10 minutes: less than 1 %% is wanted", 100**s.RSS.SlopePer10Min)
	early, late := diskPeaks(rec)
	l.want(early > 0 && float64(late) < 1.1*float64(early), "the disk held %d bytes at most in the first half, %d in the second", early, late)
	l.want(rec.Join.Buckets.DroppedTotal > 100, "%d buckets dropped: more than 100 are wanted", rec.Join.Buckets.DroppedTotal)
	l.want(s.MaxGapNs <= 1e9, "%v without a finished batch, %v of it in the engine: 1 s at most is wanted",
		time.Duration(s.MaxGapNs), time.Duration(s.MaxGapEngineNs))
	return l
}

// diskPeaks are the greatest amounts on disk in the first and the second half of what was measured after the warm-up. A disk
// that fills has a greater one in the second; what logs and drops swing by is in both.
func diskPeaks(rec *results.Record) (early, late int64) {
	var from, to int64
	for _, p := range rec.Phases {
		if p.Name == "measure" {
			from, to = p.StartNs+rec.Steady.WarmUpNs, p.StartNs+p.DurationNs
		}
	}
	for _, i := range rec.Intervals {
		switch {
		case i.TNs < from || i.TNs > to || i.DiskBytes == nil:
		case i.TNs < (from+to)/2:
			early = max(early, *i.DiskBytes)
		default:
			late = max(late, *i.DiskBytes)
		}
	}
	return early, late
}

// recoveryFaults: what a run must show that was killed with millions of A on disk.
func recoveryFaults(rec *results.Record, pending int64) (l limits) {
	l.want(rec.Verdict.ExitCode == 0, "verdict %+v", rec.Verdict)
	r := rec.Recovery
	if r == nil {
		return append(l, "not resumed")
	}
	within := func(what string, ns *int64, limit time.Duration) {
		l.want(ns != nil && time.Duration(*ns) <= limit, "%s: %s, %v at most is wanted", what, orNever(ns), limit)
	}
	l.want(r.Pending >= pending, "only %d A waited", r.Pending)
	within("ready", r.ReadyNs, time.Second)
	within("lookups as before", r.LookupsSettledNs, 5*time.Second)
	return l
}

func orNever(ns *int64) string {
	if ns == nil {
		return "never"
	}
	return time.Duration(*ns).String()
}

// TestSteady runs the quick profile for the time that CLAIM_STEADY says.
func TestSteady(t *testing.T) {
	duration, bin, record := claimed(t, claimSteady)
	cmd := exec.Command(bin, "run", "--profile", "quick", "--duration", duration, "--out", record, "--progress", "none")
	report(t, cmd, record, steadyFaults)
}

// report runs a command, shows its report and holds its record against the limits.
func report(t *testing.T, cmd *exec.Cmd, record string, faults func(*results.Record) limits) {
	t.Helper()
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	t.Logf("%s\n%s", strings.Join(cmd.Args, " "), out)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := results.Read(record)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults(rec) {
		t.Error(f)
	}
}

// TestRecovery runs the profile that CLAIM_RECOVERY names in a directory, kills it when a million B have asked, and resumes it.
func TestRecovery(t *testing.T) {
	profile, bin, record := claimed(t, claimRecovery)
	dir, err := os.MkdirTemp(filepath.Dir(record), "recovery-") // a disk, where t.TempDir may be memory
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	run := exec.Command(bin, "run", "--profile", profile, "--dir", dir, "--out", record, "--progress", "json")
	progress, err := run.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	defer run.Process.Kill()
	var frame struct{ Probes, Pending int64 }
	for lines := bufio.NewScanner(progress); frame.Probes < 1e6; {
		if !lines.Scan() {
			t.Fatalf("it ended before a million B had asked: %v", run.Wait())
		}
		if err := json.Unmarshal(lines.Bytes(), &frame); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
	}
	if err := run.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = run.Wait() // killed
	t.Logf("killed after %d B with %d A waiting", frame.Probes, frame.Pending)
	cmd := exec.Command(bin, "run", "--profile", profile, "--dir", dir, "--resume", "--out", record, "--progress", "none")
	if more := os.Getenv("CLAIM_ARGS"); more != "" { // --cpuprofile
		cmd.Args = append(cmd.Args, strings.Fields(more)...)
	}
	report(t, cmd, record, func(rec *results.Record) limits { return recoveryFaults(rec, frame.Pending*9/10) })
}

// TestClaimsAreChecked: a record that keeps them all has no fault, and each that breaks one has that one.
func TestClaimsAreChecked(t *testing.T) {
	good := func() *results.Record {
		rec := &results.Record{}
		rec.Join.Buckets.DroppedTotal = 101
		rec.Steady = &results.Steady{MaxGapNs: 1e9}
		rec.Steady.RSS.SlopePer10Min, rec.Steady.WarmUpNs = new(0.0099), 10
		rec.Phases = []results.Phase{{Name: "prepare", DurationNs: 100}, {Name: "measure", StartNs: 100, DurationNs: 100}}
		for at := range int64(300) { // 400 bytes before, 300 after the warm-up, 320 in the second half
			size := int64(400)
			if at >= 110 {
				size = 300
			}
			if at >= 170 {
				size = 320
			}
			if at > 200 {
				size = 900
			}
			rec.Intervals = append(rec.Intervals, results.Interval{TNs: at, DiskBytes: &size})
		}
		rec.Recovery = &results.Recovery{Pending: 5e6, ReadyNs: new(int64(1e9)), LookupsSettledNs: new(int64(5e9))}
		return rec
	}
	all := func(rec *results.Record) []string { return slices.Concat(steadyFaults(rec), recoveryFaults(rec, 5e6)) }
	if faults := all(good()); len(faults) > 0 {
		t.Errorf("a good record has %q", faults)
	}
	for fault, spoil := range map[string]func(*results.Record){
		"memory rises by 1.00 %":                   func(r *results.Record) { r.Steady.RSS.SlopePer10Min = new(0.01) },
		"300 bytes at most in the first half, 330": func(r *results.Record) { *r.Intervals[200].DiskBytes = 330 },
		"100 buckets dropped":                      func(r *results.Record) { r.Join.Buckets.DroppedTotal = 100 },
		"without a finished":                       func(r *results.Record) { r.Steady.MaxGapNs++ },
		"too short for a slope":                    func(r *results.Record) { r.Steady.RSS.SlopePer10Min = nil },
		"not resumed":                              func(r *results.Record) { r.Recovery = nil },
		"only 4999999 A":                           func(r *results.Record) { r.Recovery.Pending-- },
		"ready: 1.000000001s":                      func(r *results.Record) { *r.Recovery.ReadyNs++ },
		"ready: never":                             func(r *results.Record) { r.Recovery.ReadyNs = nil },
		"as before: 5.000000001s":                  func(r *results.Record) { *r.Recovery.LookupsSettledNs++ },
	} {
		rec := good()
		spoil(rec)
		if faults := all(rec); len(faults) != 1 || !strings.Contains(faults[0], fault) {
			t.Errorf("%q: %q", fault, faults)
		}
	}
	rec := good()
	rec.Verdict.ExitCode = 4
	if faults := all(rec); len(faults) != 2 {
		t.Errorf("a wrong run: %q", faults)
	}
}
