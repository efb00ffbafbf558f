package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"joinbench/core"
	"joinbench/results"
)

// forgetful in the environment makes the memory arm lose its first pair.
const forgetful = "TEST_FORGETFUL_ARM"

// failingArm in the environment makes an arm's process say that and fail.
const failingArm = "TEST_FAILING_ARM"

// asArm makes this process, which is to be the program, what a test wants of an arm.
func asArm() {
	if text := os.Getenv(failingArm); text != "" && slices.Contains(os.Args, "--arm") {
		fmt.Fprintln(os.Stderr, text)
		os.Exit(7)
	}
	if os.Getenv(forgetful) != "" {
		right := engines["memory"]
		engines["memory"] = func(c *core.Config) core.Joiner { return &forgets{Joiner: right(c)} }
	}
}

// forgets is a joiner that is wrong once.
type forgets struct {
	core.Joiner
	done bool
}

func (f *forgets) Found() core.Found {
	found := f.Joiner.Found()
	if !f.done && len(found.Matches) > 0 {
		f.done = true
		found.Matches = found.Matches[1:]
	}
	return found
}

// arms calls run --arms with the small profile; the arms' processes are this test binary.
func (p place) arms(code int, arms string, args ...string) *results.Record {
	p.t.Helper()
	p.t.Setenv(asProgram, "1")
	return p.bench(code, append([]string{"--arms", arms}, args...)...)
}

func armOf(t *testing.T, rec *results.Record, name string) *results.Arm {
	t.Helper()
	for i := range rec.Arms {
		if rec.Arms[i].Name == name {
			return &rec.Arms[i]
		}
	}
	t.Fatalf("the record has no arm %s: %+v", name, rec.Arms)
	return nil
}

const everyArm = "fuse16,memory,memory-projection,none:8k,bloom:8k,fuse8,fuse32,null"

// TestArms: all of them join the same records, each is right, and the record sets them in relation to the first.
func TestArms(t *testing.T) {
	p := newBenchPlace(t)
	alone := p.bench(0)
	rec := p.arms(0, everyArm)
	if rec.Run.WorkloadFingerprint != alone.Run.WorkloadFingerprint || rec.Run.Seed != 5 || !rec.Run.Complete || rec.Verdict.Status != results.StatusOK {
		t.Fatalf("run %+v, verdict %+v", rec.Run, rec.Verdict)
	}
	if got := rec.Run.ConfigOrigin["join.state.filter"]; got != "flag --arms" {
		t.Errorf("the filter of the first arm comes from %q", got)
	}
	if j := &rec.Join; j.Truth == nil || j.Missing+j.Spurious+j.Duplicated != 0 || j.Matches == 0 || j.Matches != j.ExpectedMatches || j.Filter.Kind != "fuse16" {
		t.Errorf("join of the first arm: %+v %+v", rec.Join.Counters, rec.Join.Truth)
	}
	if rec.Recovery == nil || rec.Recovery.ReadyNs == nil {
		t.Error("the first arm was killed, and nothing is said of its recovery")
	}
	var names []string
	for i := range rec.Arms {
		a := &rec.Arms[i]
		names = append(names, a.Name)
		checkArm(t, a, alone)
	}
	if got := strings.Join(names, ","); got != strings.ReplaceAll(everyArm, ":8k", "") {
		t.Errorf("arms %s, asked for %s", got, everyArm)
	}
	none, fuse := armOf(t, rec, "none"), armOf(t, rec, "fuse16")
	if want := *none.LookupsPerProbe / *fuse.LookupsPerProbe; rec.Join.VsArm == nil || *rec.Join.VsArm != want || want < 10 {
		t.Errorf("vs_arm %v, lookups per B of none %v and of fuse16 %v", rec.Join.VsArm, *none.LookupsPerProbe, *fuse.LookupsPerProbe)
	}
	checkTurns(t, rec)
}

// checkArm holds one arm against what it must be, whatever it is; alone is a run of one arm on the same records.
func checkArm(t *testing.T, a *results.Arm, alone *results.Record) {
	t.Helper()
	if !a.Complete || len(a.Slices) != 10 || a.RSSMaxBytes == nil || *a.RSSMaxBytes == 0 {
		t.Errorf("%s: complete %v, slices %v, RSS %v", a.Name, a.Complete, a.Slices, a.RSSMaxBytes)
	}
	if a.Name == "null" {
		if a.Matches != 0 || a.Missing != nil || a.NsPerB != nil || a.Lost != nil || a.Probes != alone.Join.Probes || a.Note == "" {
			t.Errorf("null: %+v", *a)
		}
		return
	}
	if a.Missing == nil || *a.Missing+*a.Spurious+*a.Duplicated != 0 || a.NsPerB == nil || a.NsPerA == nil || a.RestartNs == nil || *a.RestartNs <= 0 || a.Lost == nil {
		t.Fatalf("%s: %+v", a.Name, *a)
	}
	if a.NsPerBRatio == nil || *a.NsPerBRatioLow > *a.NsPerBRatio || *a.NsPerBRatioHigh < *a.NsPerBRatio || a.Name == "fuse16" && *a.NsPerBRatio != 1 {
		t.Errorf("%s: ratio to the first %v, %v to %v", a.Name, a.NsPerBRatio, a.NsPerBRatioLow, a.NsPerBRatioHigh)
	}
	limited := a.Name == "none" || a.Name == "bloom"
	if limited != strings.Contains(a.Note, "8,000 B") {
		t.Errorf("%s: note %q", a.Name, a.Note)
	}
	if strings.HasPrefix(a.Name, "memory") {
		// It keeps nothing: what it lost is what waited.
		if *a.Lost < 8000 || a.Lookups != 0 || *a.DiskMaxBytes != 0 || a.Matches != alone.Join.Matches || a.Probes != alone.Join.Probes {
			t.Errorf("%s: lost %d, %+v", a.Name, *a.Lost, *a)
		}
		return
	}
	// The last slice ends ten elevenths on, or up to a batch later.
	all := alone.Join.Probes
	if limited {
		all = 8000
	}
	if *a.Lost != 0 || *a.DiskMaxBytes == 0 || a.Probes < all*10/11-100 || a.Probes >= all {
		t.Errorf("%s: lost %d, %d bytes on disk, %d of %d B before the kill", a.Name, *a.Lost, *a.DiskMaxBytes, a.Probes, all)
	}
}

// checkTurns: in each slice every arm has a place of its own, and the order is not always the same.
func checkTurns(t *testing.T, rec *results.Record) {
	t.Helper()
	orders := map[string]bool{}
	for slice := range 10 {
		var places []int64
		for i := range rec.Arms {
			places = append(places, rec.Arms[i].Turns[slice])
		}
		orders[fmt.Sprint(places)] = true
		slices.Sort(places)
		for i, at := range places {
			if at != int64(i+1) {
				t.Fatalf("slice %d: places %v", slice, places)
			}
		}
	}
	if len(orders) < 3 {
		t.Errorf("%d orders in 10 slices", len(orders))
	}
}

// TestArmsOrder: the order comes from the seed.
func TestArmsOrder(t *testing.T) {
	p := newBenchPlace(t)
	turns := func(seed string) string {
		rec := p.arms(0, "null,memory-projection,memory", "--seed", seed)
		var s []string
		for i := range rec.Arms {
			s = append(s, fmt.Sprint(rec.Arms[i].Turns))
		}
		return strings.Join(s, " ")
	}
	first, again, other := turns("5"), turns("5"), turns("6")
	if first != again || first == other {
		t.Errorf("seed 5: %s and %s; seed 6: %s", first, again, other)
	}
}

// TestArmsTable: one table, with every column that was promised.
func TestArmsTable(t *testing.T) {
	p := newBenchPlace(t)
	t.Setenv(asProgram, "1")
	o := joinbench("run", "--config", p.path("small.yaml"), "--out", p.path("r.json"), "--progress", "none", "--arms", "fuse16,memory,none:2k")
	o.want(t, 0)
	for _, want := range []string{"ns per B", "ns per A", "memory", "disk", "lookups", "restart", "kill -9", "fuse16", "memory", "none", "2,000 B"} {
		if !strings.Contains(o.out, want) {
			t.Errorf("the report lacks %q:\n%s", want, o.out)
		}
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "joinbench-arms-*")); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary directory: %v %v", left, err)
	}
}

// TestArmsWrongTruth: one arm that is wrong makes the run incorrect, and the verdict says which.
func TestArmsWrongTruth(t *testing.T) {
	p := newBenchPlace(t)
	t.Setenv(forgetful, "1")
	rec := p.arms(results.ExitIncorrect, "fuse16,memory")
	if rec.Verdict.Status != results.StatusIncorrect || !strings.Contains(strings.Join(rec.Verdict.Reasons, "\n"), "arm memory: expected lines that are missing: 1") {
		t.Errorf("verdict %+v", rec.Verdict)
	}
	if a := armOf(t, rec, "memory"); *a.Missing != 1 {
		t.Errorf("missing %d", *a.Missing)
	}
	if rec = p.arms(results.ExitIncorrect, "memory,fuse16"); rec.Join.Missing != 1 || len(rec.Verdict.Reasons) != 1 {
		t.Errorf("the first arm is wrong: missing %d, verdict %+v", rec.Join.Missing, rec.Verdict)
	}
}

// TestArmsUsage: what does not go is refused before anything starts.
func TestArmsUsage(t *testing.T) {
	p := newBenchPlace(t)
	for args, want := range map[string]string{
		"--arms fuse61":                         "did you mean fuse16?",
		"--arms memroy":                         "did you mean memory?",
		"--arms fuse16,":                        "is no arm",
		"--arms fuse16,memory,fuse16":           "twice",
		"--arms none:some":                      "the limit is a number of B",
		"--arms none:0":                         "the limit is a number of B",
		"--arms fuse16 --filter none":           "--filter does not go with --arms",
		"--arms fuse16 --duration 3s":           "--duration does not go with --arms",
		"--arms fuse16 --resume --dir " + p.dir: "--resume does not go with --arms",
		"--arm memory":                          "use --arms memory",
		"--arms memory --config " + p.write("never.yaml", strings.Replace(smallProfile, "pending: 8k", "pending: 8k\n  b_rate: 20k", 1)): "match_rate needs",
	} {
		o := joinbench(append([]string{"run", "--config", p.path("small.yaml"), "--out", p.path("none.json"), "--progress", "none"}, strings.Fields(args)...)...)
		o.want(t, results.ExitUsage, want)
	}
	if size(p.path("none.json")) > 0 {
		t.Error("a run that was refused left a record")
	}
}

// longArms is a run of arms that lasts until it is ended.
type longArms struct {
	*program
	p place
}

func startLongArms(t *testing.T, arms string) *longArms {
	p := newBenchPlace(t)
	p.write("small.yaml", strings.Replace(smallProfile, "b_events: 24k", "b_events: 50M", 1))
	return &longArms{startProgram(t, nil, "run", "--config", p.path("small.yaml"), "--out", p.path("r.json"), "--progress", "none", "--dir", p.path("states"),
		"--arms", arms), p}
}

// children are the processes of the arms, by name.
func (l *longArms) children() map[string]int {
	out := map[string]int{}
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range all {
		pid, _ := strconv.Atoi(filepath.Base(path))
		if stat := procStat(pid); len(stat) < 2 || stat[1] != strconv.Itoa(l.Process.Pid) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(path, "cmdline"))
		if _, name, ok := strings.Cut(string(line), "--arm\x00"); ok {
			out[strings.Trim(name, "\x00")] = pid
		}
	}
	return out
}

// procStat are the fields of a process from its state on, and then its parent.
func procStat(pid int) []string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
}

// inState says whether a process is in a state: T is stopped, Z has ended and nobody has asked how.
func inState(pid int, state string) bool {
	stat := procStat(pid)
	return len(stat) > 0 && stat[0] == state
}

// measuring waits until all arms are prepared and take turns: all but one stand still.
func (l *longArms) measuring(arms int) map[string]int {
	l.t.Helper()
	var all map[string]int
	waitFor(l.t, "the arms to take turns", func() bool {
		all = l.children()
		still := 0
		for _, pid := range all {
			if inState(pid, "T") {
				still++
			}
		}
		return len(all) == arms && still == arms-1
	})
	return all
}

// gone waits until none of the arms' processes is left.
func (l *longArms) gone(arms map[string]int) {
	l.t.Helper()
	for name, pid := range arms {
		waitFor(l.t, "the end of arm "+name, func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
	}
	if left, _ := filepath.Glob(l.p.path("states/*")); len(left) > 0 {
		l.t.Errorf("left behind: %v", left)
	}
}

// TestArmsInterrupted: SIGINT ends the arms, running and standing still, and leaves a record that is not complete.
func TestArmsInterrupted(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		l := startLongArms(t, "fuse16,memory,null")
		all := l.measuring(3)
		l.signal(s)
		o := l.end()
		o.want(t, 128+int(s))
		l.gone(all)
		rec := l.p.record()
		if rec.Run.Complete || rec.Verdict.Status != results.StatusInterrupted || len(rec.Arms) != 3 {
			t.Errorf("%v: complete %v, verdict %+v, %d arms", s, rec.Run.Complete, rec.Verdict, len(rec.Arms))
		}
		for i := range rec.Arms {
			if a := &rec.Arms[i]; a.Complete || a.Probes == 0 && a.Name != "null" { // which may not be prepared yet
				t.Errorf("%v: arm %+v", s, *a)
			}
		}
	}
}

// TestArmDies: the death of one arm ends the others; what was measured is saved, and the verdict names the arm.
func TestArmDies(t *testing.T) {
	l := startLongArms(t, "fuse16,memory,null")
	all := l.measuring(3)
	if err := syscall.Kill(all["memory"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	o := l.end()
	o.want(t, results.ExitFailed)
	l.gone(all)
	rec := l.p.record()
	if rec.Run.Complete || rec.Verdict.Status != results.StatusFailed || !strings.Contains(rec.Verdict.Reasons[0], "the process of arm memory ended: signal: killed") {
		t.Errorf("complete %v, verdict %+v", rec.Run.Complete, rec.Verdict)
	}
	if a := armOf(t, rec, "fuse16"); a.Complete || a.Probes == 0 || a.NsPerA == nil {
		t.Errorf("of the first arm is known: %+v", *a)
	}
}

// TestArmsFirstDies: the record is that of the next arm then.
func TestArmsFirstDies(t *testing.T) {
	l := startLongArms(t, "memory,fuse16")
	all := l.measuring(2)
	if err := syscall.Kill(all["memory"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	o := l.end()
	o.want(t, results.ExitFailed)
	l.gone(all)
	if rec := l.p.record(); rec.Join.Filter.Kind != "fuse16" || rec.Arms[0].Name != "memory" || rec.Join.Probes == 0 {
		t.Errorf("%+v, arms %+v", rec.Join.Counters, rec.Arms)
	}
}

// TestArmsParentDies: no arm outlives its parent, one that is stopped neither.
func TestArmsParentDies(t *testing.T) {
	l := startLongArms(t, "fuse16,memory,null")
	all := l.measuring(3)
	if err := l.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = l.Wait()
	for name, pid := range all {
		waitFor(t, "the end of arm "+name, func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || inState(pid, "Z") })
	}
}

// TestArmCannotStart: an arm whose process fails at once says what it said.
func TestArmCannotStart(t *testing.T) {
	p := newBenchPlace(t)
	if err := os.WriteFile(p.path("file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	o := joinbench("run", "--config", p.path("small.yaml"), "--out", p.path("r.json"), "--progress", "none", "--arms", "fuse16", "--dir", p.path("file"))
	o.want(t, results.ExitFailed, "file")
	t.Setenv(asProgram, "1")
	t.Setenv(failingArm, "the disk is made of cheese")
	o = joinbench("run", "--config", p.path("small.yaml"), "--out", p.path("r.json"), "--progress", "none", "--arms", "memory")
	o.want(t, results.ExitFailed, "the process of arm memory ended: exit status 7: the disk is made of cheese")
}
