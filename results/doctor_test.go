package results

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// goodMachine is a tree of a machine that has nothing wrong; steals is what the hypervisor takes within the second.
func goodMachine() map[string]string {
	return map[string]string{
		"proc/cpuinfo":                         "model name\t: Fast 9000\nflags\t\t: fpu sse2 avx2 avx512f\nFeatures\t: asimd\n",
		"sys/devices/system/cpu/smt/active":    "0\n",
		"proc/meminfo":                         "MemTotal: 33554432 kB\nMemAvailable: 30000000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n",
		"proc/loadavg":                         "0.01 0.5 0.5 1/99 1234\n",
		"proc/stat":                            "cpu  100 0 100 1000 0 0 0 10 0 0\ncpu0 1 2 3\n",
		"sys/devices/system/cpu/cpufreq/boost": "0\n",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor":            "performance\n",
		"sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
		"sys/kernel/mm/transparent_hugepage/enabled":                      "always [madvise] never\n",
		"proc/self/mountinfo": "27 1 254:0 / / rw - ext4 /dev/vda rw\n",
	}
}

// probesOf gives probes of a machine with a tree, which reports stat after the second.
func probesOf(t *testing.T, files map[string]string, stat string) doctorProbes {
	s := tree(t, files)
	return doctorProbes{system: s,
		sleep: func(time.Duration) {
			if err := os.WriteFile(filepath.Join(s.root, "proc/stat"), []byte(stat), 0o666); err != nil {
				t.Fatal(err)
			}
		},
		limits: func() (uint64, bool) { return 65536, true },
		free:   func(string) (int64, bool) { return 100 << 30, true },
		disk: func(string) (diskProbe, error) {
			return diskProbe{20, time.Millisecond, 3 * time.Millisecond, 32 << 20, 100 * time.Millisecond}, nil
		},
		clock: func() time.Duration { return 30 * time.Nanosecond },
	}
}

const quietStat = "cpu  150 0 150 1100 0 0 0 10 0 0\n"

func goodTool() Tool {
	return Tool{Version: "0.1.0", Commit: "abc", Go: runtime.Version(), RocksDB: "9.10.0", JSONEngine: "onepass"}
}

func check(t *testing.T, d Diagnosis, name string) Check {
	t.Helper()
	for _, c := range d.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check %q", name)
	return Check{}
}

func TestDoctorOfAGoodMachine(t *testing.T) {
	d := examine(probesOf(t, goodMachine(), quietStat), "/data", goodTool())
	for _, c := range d.Checks {
		if c.Status != CheckOK && !(c.Name == "cpu" && runtime.NumCPU() < 2) && c.Name != "go" || c.Advice != "" && c.Status == CheckOK {
			t.Errorf("%+v", c)
		}
	}
	for name, want := range map[string]string{"cpu": "Fast 9000", "memory": "28.61 GiB available", "steal": "0 %", "disk": "ext4 on /dev/vda",
		"disk sync": "1.00 ms median of 20, longest 3.00 ms", "disk write": "336 MB/s", "open files": "65,536", "clock": "tsc, 30.0 ns"} {
		if c := check(t, d, name); !strings.Contains(c.Value, want) {
			t.Errorf("%s: %q, want %q", name, c.Value, want)
		}
	}
	if len(d.Bad()) != 0 {
		t.Errorf("bad: %q", d.Bad())
	}
}

// Each fault alone changes its own line, says what to do, and nothing else.
func TestDoctorFindsFaults(t *testing.T) {
	set := func(path, text string) func(map[string]string, *doctorProbes, *Tool) {
		return func(files map[string]string, _ *doctorProbes, _ *Tool) { files[path] = text }
	}
	mem := func(available, swapTotal, swapFree string) func(map[string]string, *doctorProbes, *Tool) {
		return set("proc/meminfo", "MemTotal: 33554432 kB\nMemAvailable: "+available+" kB\nSwapTotal: "+swapTotal+" kB\nSwapFree: "+swapFree+" kB\n")
	}
	group := func(file, text string) func(map[string]string, *doctorProbes, *Tool) {
		return func(files map[string]string, _ *doctorProbes, _ *Tool) {
			files["proc/self/cgroup"], files["sys/fs/cgroup/a/"+file] = "0::/a\n", text
		}
	}
	probe := func(change func(*doctorProbes)) func(map[string]string, *doctorProbes, *Tool) {
		return func(_ map[string]string, p *doctorProbes, _ *Tool) { change(p) }
	}
	tool := func(change func(*Tool)) func(map[string]string, *doctorProbes, *Tool) {
		return func(_ map[string]string, _ *doctorProbes, t *Tool) { change(t) }
	}
	disk := func(sync, writing time.Duration) func(map[string]string, *doctorProbes, *Tool) {
		return probe(func(p *doctorProbes) {
			p.disk = func(string) (diskProbe, error) { return diskProbe{20, sync, sync, 32 << 20, writing}, nil }
		})
	}
	mount := func(line string) func(map[string]string, *doctorProbes, *Tool) {
		return set("proc/self/mountinfo", line+"\n")
	}
	stat := ""
	steals := func(text string) func(map[string]string, *doctorProbes, *Tool) {
		return func(map[string]string, *doctorProbes, *Tool) { stat = text }
	}
	for _, c := range []struct {
		name, status, advice string
		change               func(map[string]string, *doctorProbes, *Tool)
	}{
		{"simd", CheckWarn, "AVX2", set("proc/cpuinfo", "model name : Old\nflags : fpu sse2\n")},
		{"smt", CheckWarn, "taskset", set("sys/devices/system/cpu/smt/active", "1\n")},
		{"governor", CheckWarn, "cpupower", set("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n")},
		{"turbo", CheckWarn, "echo 0 > /sys/devices/system/cpu/cpufreq/boost", set("sys/devices/system/cpu/cpufreq/boost", "1\n")},
		{"clock", CheckWarn, "available_clocksource", set("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n")},
		{"clock", CheckWarn, "available_clocksource", probe(func(p *doctorProbes) { p.clock = func() time.Duration { return time.Microsecond } })},
		{"load", CheckBad, "something else runs", set("proc/loadavg", "9999.5 0 0 1/2 3\n")},
		{"steal", CheckWarn, "other virtual machines", steals("cpu  150 0 150 1097 0 0 0 13 0 0\n")},
		{"steal", CheckBad, "other virtual machines", steals("cpu  150 0 150 1050 0 0 0 60 0 0\n")},
		{"cgroup cpu", CheckBad, "cpu.max", group("cpu.max", "50000 100000\n")},
		{"memory", CheckBad, "end other programs", mem("500000", "0", "0")},
		{"memory", CheckWarn, "end other programs", mem("2000000", "0", "0")},
		{"cgroup memory", CheckBad, "memory.max", group("memory.max", "536870912\n")},
		{"cgroup memory", CheckWarn, "memory.max", group("memory.max", "2147483648\n")},
		{"swap", CheckWarn, "swapoff", mem("30000000", "8000000", "7000000")},
		{"huge pages", CheckWarn, "echo madvise", set("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n")},
		{"disk", CheckWarn, "memory, not a disk", mount("27 1 0:9 / / rw - tmpfs none rw")},
		{"disk", CheckWarn, "--dir", mount("27 1 0:9 / / rw - overlay overlay rw")},
		{"disk space", CheckBad, "--dir", probe(func(p *doctorProbes) { p.free = func(string) (int64, bool) { return 1 << 20, true } })},
		{"disk space", CheckWarn, "--dir", probe(func(p *doctorProbes) { p.free = func(string) (int64, bool) { return 2 << 30, true } })},
		{"disk sync", CheckWarn, "state.sync: interval", disk(30*time.Millisecond, 100*time.Millisecond)},
		{"disk sync", CheckBad, "state.sync: interval", disk(300*time.Millisecond, 100*time.Millisecond)},
		{"disk sync", CheckBad, "directory of yours", probe(func(p *doctorProbes) {
			p.disk = func(string) (diskProbe, error) { return diskProbe{}, os.ErrPermission }
		})},
		{"disk write", CheckWarn, "slow", disk(time.Millisecond, time.Second)},
		{"disk write", CheckBad, "slow", disk(time.Millisecond, 10*time.Second)},
		{"open files", CheckWarn, "ulimit", probe(func(p *doctorProbes) { p.limits = func() (uint64, bool) { return 1024, true } })},
		{"open files", CheckBad, "ulimit", probe(func(p *doctorProbes) { p.limits = func() (uint64, bool) { return 100, true } })},
		{"rocksdb", CheckBad, "invalid", tool(func(t *Tool) { t.RocksDBAssertions = true })},
		{"rocksdb", CheckBad, "CGO_ENABLED=1", tool(func(t *Tool) { t.RocksDB = "none (built without cgo)" })},
		{"joinbench", CheckBad, "make", tool(func(t *Tool) { t.Instrumented = []string{"-race"} })},
	} {
		files, mended := goodMachine(), goodTool()
		stat = quietStat
		p := probesOf(t, nil, "")
		c.change(files, &p, &mended)
		full := probesOf(t, files, stat)
		full.limits, full.free, full.disk, full.clock = p.limits, p.free, p.disk, p.clock
		d := examine(full, "/data", mended)
		if got := check(t, d, c.name); got.Status != c.status || !strings.Contains(got.Advice, c.advice) {
			t.Errorf("%s: %+v, want %s with %q", c.name, got, c.status, c.advice)
		}
		for _, other := range d.Checks {
			if other.Name != c.name && other.Status != CheckOK && other.Name != "go" && other.Name != "cpu" && other.Name != "disk write" {
				t.Errorf("%s: %+v is touched too", c.name, other)
			}
		}
		if want := c.status == CheckBad; (d.Status == CheckBad) != want && check(t, d, "go").Status != CheckBad {
			t.Errorf("%s: all in all %s", c.name, d.Status)
		}
		if c.status == CheckBad && !slices.ContainsFunc(d.Bad(), func(s string) bool { return strings.HasPrefix(s, c.name+" ") }) {
			t.Errorf("%s is not among the bad: %q", c.name, d.Bad())
		}
	}
}

func TestDoctorOfGo(t *testing.T) {
	for _, c := range []struct {
		name   string
		e      Environment
		status string
		advice string
	}{
		{"good", Environment{Cores: 4, GOMAXPROCS: 4, GOGC: 50, MemBytes: 8 << 30}, CheckOK, ""},
		{"no bound", Environment{Cores: 4, GOMAXPROCS: 4, GOGC: -1}, CheckBad, "GOMEMLIMIT"},
		{"off, with a limit", Environment{Cores: 4, GOMAXPROCS: 4, GOGC: -1, GOMEMLIMIT: new(int64(2 << 30)), MemBytes: 8 << 30}, CheckOK, ""},
		{"tiny limit", Environment{Cores: 4, GOMAXPROCS: 4, GOGC: 50, GOMEMLIMIT: new(int64(1 << 20))}, CheckBad, "raise"},
		{"limit beyond the group's", Environment{Cores: 4, GOMAXPROCS: 4, GOGC: 50, GOMEMLIMIT: new(int64(2 << 30)), MemBytes: 8 << 30,
			Cgroup: Cgroup{MemoryBytes: new(int64(1 << 30))}}, CheckWarn, "lower it"},
		{"more threads than the group", Environment{Cores: 4, GOMAXPROCS: 4, GOGC: 50, Cgroup: Cgroup{CPUs: Known(1.5)}}, CheckWarn, "GOMAXPROCS=2"},
		{"as many as the group", Environment{Cores: 4, GOMAXPROCS: 2, GOGC: 50, Cgroup: Cgroup{CPUs: Known(2)}}, CheckOK, ""},
		{"fewer threads", Environment{Cores: 4, GOMAXPROCS: 2, GOGC: 50}, CheckWarn, "unset GOMAXPROCS"},
	} {
		d := &diagnosing{e: c.e, t: goodTool()}
		d.goSettings()
		if got := d.checks[0]; got.Status != c.status || !strings.Contains(got.Advice, c.advice) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// A system that shows nothing is not judged by what it hides.
func TestDoctorOfAnEmptyTree(t *testing.T) {
	p := probesOf(t, map[string]string{"proc/x": ""}, "")
	d := examine(p, t.TempDir(), goodTool())
	for _, name := range []string{"smt", "governor", "turbo", "load", "steal", "memory", "huge pages", "simd"} {
		if c := check(t, d, name); c.Status != CheckOK || !strings.Contains(c.Value, "not ") {
			t.Errorf("%+v", c)
		}
	}
}

func TestDoctorText(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	d := Diagnosis{Checks: []Check{{"cpu", CheckOK, "Fast 9000, 2 cores", ""}, {"disk sync", CheckWarn, strings.Repeat("long value ", 20), strings.Repeat("do this and that ", 12)},
		{"go", CheckBad, "GOGC off", "set GOMEMLIMIT"}}}
	var b, coloured bytes.Buffer
	if err := errors.Join(d.WriteText(&b, 80, false), d.WriteText(&coloured, 80, true)); err != nil {
		t.Fatal(err)
	}
	golden(t, "doctor.txt", b.Bytes())
	for line := range strings.Lines(b.String()) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("too wide: %q", line)
		}
	}
	text := coloured.String()
	for _, style := range []string{styleReset, styleRed, styleGreen, styleYellow} {
		if !strings.Contains(text, style) {
			t.Errorf("no style %q", style)
		}
		text = strings.ReplaceAll(text, style, "")
	}
	if text != b.String() {
		t.Error("colour changes more than colour")
	}
}

// The probe of the disk leaves nothing, not even the folders that it made.
func TestProbeDisk(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "there"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"there", "new", "there/a/b"} {
		p, err := probeDisk(filepath.Join(root, dir))
		if err != nil {
			t.Fatal(err)
		}
		if p.syncs != probeSyncs || p.median <= 0 || p.longest < p.median || p.bytes != probeBytes || p.writing <= 0 {
			t.Errorf("%+v", p)
		}
	}
	if left := must(os.ReadDir(root)); len(left) != 1 || left[0].Name() != "there" {
		t.Errorf("left behind: %v", left)
	}
	if left := must(os.ReadDir(filepath.Join(root, "there"))); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	file := filepath.Join(root, "there", "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := probeDisk(filepath.Join(file, "below")); err == nil {
		t.Error("a folder below a file was probed")
	}
}
