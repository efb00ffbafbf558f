package results

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

const notShown = "not shown by this system"

func (d *diagnosing) processor() {
	d.judge("cpu", fmt.Sprintf("%s, %d cores", d.e.CPU, d.e.Cores), false, d.e.Cores < 2,
		"the join and its helper share one core: measure on two or more")
}

func (d *diagnosing) simd() {
	if !slices.Contains([]string{"amd64", "arm64"}, d.e.Arch) {
		d.ok("simd", "not looked for on "+d.e.Arch)
		return
	}
	flags := d.p.field("proc/cpuinfo", "flags") + " " + d.p.field("proc/cpuinfo", "Features")
	var found []string
	for _, f := range []string{"avx2", "avx512f", "asimd", "crc32"} {
		if slices.Contains(strings.Fields(flags), f) {
			found = append(found, f)
		}
	}
	switch {
	case strings.TrimSpace(flags) == "":
		d.ok("simd", notShown)
	default:
		wide := slices.Contains(found, "avx2") || slices.Contains(found, "asimd")
		d.judge("simd", when(len(found) > 0, strings.Join(found, ", "))+when(len(found) == 0, "none"), false, !wide,
			"hashing and JSON take slower paths: a processor with AVX2 (or a virtual machine that passes it on) gives other figures")
	}
}

func (d *diagnosing) smt() {
	switch d.p.read("sys/devices/system/cpu/smt/active") {
	case "0":
		d.ok("smt", "off")
	case "1":
		d.add("smt", CheckWarn, "on", "two goroutines may share one core's caches: pin the run to one thread a core with taskset, or echo off > /sys/devices/system/cpu/smt/control")
	default:
		d.ok("smt", notShown)
	}
}

func (d *diagnosing) governor() {
	g := d.e.Governor
	if g == "" {
		d.ok("governor", notShown)
		return
	}
	d.judge("governor", g, false, g != "performance", "the clock follows the load: cpupower frequency-set -g performance while measuring")
}

func (d *diagnosing) turbo() {
	const cpu = "sys/devices/system/cpu/"
	noTurbo, boost := d.p.read(cpu+"intel_pstate/no_turbo"), d.p.read(cpu+"cpufreq/boost")
	const advice = "the clock depends on heat and on the other cores: echo %s > /%s while measuring"
	switch {
	case noTurbo == "1" || boost == "0":
		d.ok("turbo", "off")
	case noTurbo == "0":
		d.add("turbo", CheckWarn, "on", fmt.Sprintf(advice, "1", cpu+"intel_pstate/no_turbo"))
	case boost == "1":
		d.add("turbo", CheckWarn, "on", fmt.Sprintf(advice, "0", cpu+"cpufreq/boost"))
	default:
		d.ok("turbo", notShown)
	}
}

// slowClocks need a call to the system, or a slow device, for each reading.
var slowClocks = []string{"hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies", "xen"}

func (d *diagnosing) clock() {
	source := d.p.read("sys/devices/system/clocksource/clocksource0/current_clocksource")
	cost := d.p.clock()
	value := source
	if value == "" {
		value = notShown
	}
	d.judge("clock", fmt.Sprintf("%s, %s a reading", value, Nanoseconds(float64(cost))), false,
		slices.Contains(slowClocks, source) || cost > 500*time.Nanosecond,
		"times of single batches get blurred: see available_clocksource beside current_clocksource in /sys/devices/system/clocksource/clocksource0 for tsc or the hypervisor's own")
}

// others looks at who else uses the processors: the load before, and what the hypervisor took within a second.
func (d *diagnosing) others() {
	load, err := strconv.ParseFloat(strings.SplitN(d.p.read("proc/loadavg")+" ", " ", 2)[0], 64)
	if err != nil {
		d.ok("load", notShown)
	} else {
		per := load / float64(max(d.e.Cores, 1))
		d.judge("load", fmt.Sprintf("%s over the last minute, %d cores", significant(load, 3), d.e.Cores), per > 1.5, per > 0.5,
			"something else runs here: end it, or measure when it has ended")
	}
	steal1, total1, ok1 := d.p.steal()
	d.p.sleep(time.Second)
	steal2, total2, ok2 := d.p.steal()
	if !ok1 || !ok2 || total2 <= total1 {
		d.ok("steal", notShown)
		return
	}
	share := float64(steal2-steal1) / float64(total2-total1)
	d.judge("steal", Percent(share)+" of one second", share > 0.05, share > 0.01,
		"other virtual machines take this one's time: use a machine of your own, or repeat and keep the medians")
}

// steal reads how much of the processors' time the hypervisor gave to others, in ticks.
func (s system) steal() (steal, total int64, ok bool) {
	first, _, _ := strings.Cut(s.read("proc/stat"), "\n")
	f := strings.Fields(first)
	if len(f) < 9 || f[0] != "cpu" {
		return 0, 0, false
	}
	for i, text := range f[1:9] { // user nice system idle iowait irq softirq steal; guests are part of user
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, 0, false
		}
		total += n
		if i == 7 {
			steal = n
		}
	}
	return steal, total, true
}

func (d *diagnosing) limitCPU() {
	c := d.e.Cgroup.CPUs
	if c == nil {
		d.ok("cgroup cpu", "no limit")
		return
	}
	d.judge("cgroup cpu", plain(*c)+" cores", *c < 1, *c < float64(d.e.Cores),
		"a group that has used its share stands still until its period ends, up to 100 ms: raise cpu.max, or give whole cores with cpuset.cpus")
}

const (
	quickNeeds     = 1 << 30 // memory that the profile quick needs, with its page cache
	referenceNeeds = 4 << 30
)

func (d *diagnosing) memory() {
	total, available := d.e.MemBytes, d.p.meminfo("MemAvailable")
	if total == 0 {
		d.ok("memory", notShown)
		return
	}
	d.judge("memory", Bytes(total)+", "+Bytes(available)+" available", available < quickNeeds, available < referenceNeeds,
		"profile quick needs 1 GiB, five million waiting A and their page cache 4 GiB: end other programs or take a larger machine")
}

func (s system) meminfo(name string) int64 {
	kb, _ := strconv.ParseInt(strings.TrimSuffix(s.field("proc/meminfo", name), " kB"), 10, 64)
	return kb * 1024
}

func (d *diagnosing) limitMemory() {
	m := d.e.Cgroup.MemoryBytes
	if m == nil {
		d.ok("cgroup memory", "no limit")
		return
	}
	d.judge("cgroup memory", Bytes(*m), *m < quickNeeds, *m < referenceNeeds,
		"the page cache of tables counts in it: raise memory.max, or expect reads from the disk")
}

func (d *diagnosing) swap() {
	total := d.p.meminfo("SwapTotal")
	used := total - d.p.meminfo("SwapFree")
	switch {
	case total == 0:
		d.ok("swap", "none")
	default:
		d.judge("swap", Bytes(used)+" of "+Bytes(total)+" used", false, used > 64<<20,
			"what is swapped out comes back while measuring: swapoff -a, then swapon -a")
	}
}

func (d *diagnosing) hugePages() {
	if d.e.THP == "" {
		d.ok("huge pages", notShown)
		return
	}
	d.judge("huge pages", d.e.THP, false, d.e.THP == "always",
		"memory figures come out larger and waver: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled")
}

// layered file systems do more than a disk does, and unlike ones each in its own way.
var layered = []string{"overlay", "nfs", "nfs4", "cifs", "smb3", "9p", "fuse", "fuseblk", "virtiofs", "vboxsf", "aufs"}

func (d *diagnosing) fileSystem() {
	value := d.e.FS
	if value == "" {
		d.ok("disk", notShown)
		return
	}
	if d.e.Disk != "" {
		value += " on " + d.e.Disk
	}
	// Whether it rotates is not judged: virtual disks say so whatever they are. How fast it syncs is measured.
	inMemory := d.e.FS == "tmpfs" || d.e.FS == "ramfs"
	advice := "not a file system on a disk of this machine: use --dir for one"
	if inMemory {
		advice = "memory, not a disk, and the state counts as such: use --dir for figures about disks"
	}
	d.judge("disk", value, false, inMemory || slices.Contains(layered, d.e.FS), advice)
}

func (d *diagnosing) space() {
	free, ok := d.p.free(nearest(d.dir))
	if !ok {
		d.ok("disk space", notShown)
		return
	}
	d.judge("disk space", Bytes(free)+" free in "+d.dir, free < 1<<30, free < 8<<30,
		"profile quick writes 0.3 GiB, five million A of 1 KB 6 GiB: free some, or use --dir for another disk")
}

// FreeBytes is what is free for us where dir is, or would be made; false where the system does not say.
func FreeBytes(dir string) (int64, bool) { return freeBytes(nearest(dir)) }

func (d *diagnosing) diskSpeed() {
	speed, err := d.p.disk(d.dir)
	if err != nil {
		d.add("disk sync", CheckBad, err.Error(), "no state can be written there: use --dir for a directory of yours")
		return
	}
	d.judge("disk sync", fmt.Sprintf("%s median of %d, longest %s", Nanoseconds(float64(speed.median)), speed.syncs, Nanoseconds(float64(speed.longest))),
		speed.median > 200*time.Millisecond, speed.median > 20*time.Millisecond,
		"with state.sync: batch each batch waits for that: use a faster disk, or state.sync: interval")
	rate := float64(speed.bytes) / speed.writing.Seconds()
	d.judge("disk write", fmt.Sprintf("%s MB/s, %s and a sync", significant(rate/1e6, 3), Bytes(speed.bytes)), rate < 5e6, rate < 50e6,
		"sealing writes whole buckets: a disk this slow makes the join wait for it")
}

func (d *diagnosing) files() {
	n, ok := d.p.limits()
	if !ok {
		d.ok("open files", notShown)
		return
	}
	d.judge("open files", "at most "+Count(int64(min(n, math.MaxInt64))), n < 256, n < 4096,
		"each task keeps its tables and logs open: ulimit -n 65536 (LimitNOFILE= in a unit)")
}

func (d *diagnosing) goSettings() {
	e := &d.e
	gogc, limit := fmt.Sprintf("GOGC %d", e.GOGC), "no GOMEMLIMIT"
	if e.GOGC < 0 {
		gogc = "GOGC off"
	}
	if e.GOMEMLIMIT != nil {
		limit = "GOMEMLIMIT " + Bytes(*e.GOMEMLIMIT)
	}
	value := fmt.Sprintf("%s, GOMAXPROCS %d, %s, %s", d.t.Go, e.GOMAXPROCS, gogc, limit)
	cpus := e.Cgroup.CPUs
	tightest := e.MemBytes
	if m := e.Cgroup.MemoryBytes; m != nil {
		tightest = min(tightest, *m)
	}
	switch {
	case e.GOGC < 0 && e.GOMEMLIMIT == nil:
		d.add("go", CheckBad, value, "nothing bounds the heap: unset GOGC, or set GOMEMLIMIT")
	case e.GOMEMLIMIT != nil && *e.GOMEMLIMIT < 256<<20:
		d.add("go", CheckBad, value, "the collector will run without end: raise GOMEMLIMIT, or unset it")
	case e.GOMEMLIMIT != nil && tightest > 0 && *e.GOMEMLIMIT > tightest:
		d.add("go", CheckWarn, value, "GOMEMLIMIT is more than there is ("+Bytes(tightest)+"): lower it")
	case cpus != nil && float64(e.GOMAXPROCS) > math.Ceil(*cpus):
		d.add("go", CheckWarn, value, fmt.Sprintf("more threads than the cgroup's %s cores: GOMAXPROCS=%d, or unset it", plain(*cpus), int(max(1, math.Ceil(*cpus)))))
	case e.GOMAXPROCS < e.Cores && (cpus == nil || float64(e.GOMAXPROCS) < math.Floor(*cpus)):
		d.add("go", CheckWarn, value, "fewer threads than cores: unset GOMAXPROCS")
	default:
		d.ok("go", value)
	}
}

func (d *diagnosing) rocksDB() {
	switch {
	case strings.HasPrefix(d.t.RocksDB, "none"):
		d.add("rocksdb", CheckBad, d.t.RocksDB, "neither run nor join work; build with make, which sets CGO_ENABLED=1")
	case d.t.RocksDBAssertions:
		d.add("rocksdb", CheckBad, d.t.RocksDB+", with assertions", "figures are worthless and every run is invalid: build a release one with make")
	default:
		d.ok("rocksdb", d.t.RocksDB+", release build")
	}
}

func (d *diagnosing) build() {
	value := d.t.Version + ", commit " + d.t.Commit
	if d.t.Commit == "" {
		value = d.t.Version + ", commit unknown"
	}
	if d.t.Dirty {
		value += " with changes"
	}
	if in := d.t.Instrumented; len(in) > 0 {
		d.add("joinbench", CheckBad, value+", built with "+strings.Join(in, ", "), "that slows it down: build it with make")
		return
	}
	d.ok("joinbench", value)
}

func (d *diagnosing) json() { d.ok("json", d.t.JSONEngine) }

// clockCost is what a reading of the clock takes: the least of some rounds, since anything else is somebody else's.
func clockCost() time.Duration {
	const rounds, readings = 16, 1000
	best := time.Duration(math.MaxInt64)
	for range rounds {
		start := time.Now()
		for range readings {
			_ = time.Now()
		}
		best = min(best, time.Since(start)/readings)
	}
	return best
}
