package results

import (
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
)

// CollectEnvironment describes the machine, and the file system that dir lies on (dir itself need not exist yet; "" leaves it
// out). It takes a few milliseconds and never fails: what cannot be read, as on systems other than Linux, stays empty.
func CollectEnvironment(dir string) Environment {
	return system{root: "/"}.environment(dir)
}

// system is a file tree with /proc and /sys in it: the machine's own, or a made-up one in tests.
type system struct{ root string }

// read gives a small file's content without blanks round it, "" if there is none.
func (s system) read(path string) string {
	data, err := os.ReadFile(filepath.Join(s.root, path))
	if err != nil {
		return ""
	}
	return strings.Trim(string(data), " \t\n\x00")
}

func (s system) environment(dir string) Environment {
	e := Environment{
		OS: runtime.GOOS, Arch: runtime.GOARCH,
		Cores: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0),
		CPU:      s.cpuModel(),
		NUMA:     s.numaNodes(),
		Governor: s.read("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
		Cgroup:   s.cgroup(),
		MemBytes: s.memTotal(),
		THP:      chosen(s.read("sys/kernel/mm/transparent_hugepage/enabled")),
		Kernel:   s.read("proc/sys/kernel/osrelease"),
	}
	e.GOGC, e.GOMEMLIMIT = goLimits()
	if dir != "" {
		if e.FS, e.Disk = s.fileSystem(dir); e.FS == "" {
			e.FS = fileSystemType(nearest(dir))
		}
	}
	e.HostID = s.hostID(&e)
	return e
}

// field gives the value of the first "name : value" line of a file.
func (s system) field(path, name string) string {
	for line := range strings.Lines(s.read(path)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (s system) cpuModel() string {
	if name := s.field("proc/cpuinfo", "model name"); name != "" {
		return name
	}
	if name := s.read("sys/firmware/devicetree/base/model"); name != "" { // most arm64 boards
		return name
	}
	return runtime.GOARCH
}

func (s system) numaNodes() int {
	nodes, _ := filepath.Glob(filepath.Join(s.root, "sys/devices/system/node/node[0-9]*"))
	return len(nodes)
}

func (s system) memTotal() int64 {
	kb, _ := strconv.ParseInt(strings.TrimSuffix(s.field("proc/meminfo", "MemTotal"), " kB"), 10, 64)
	return kb * 1024
}

// chosen picks "madvise" out of "always [madvise] never".
func chosen(text string) string {
	if _, rest, ok := strings.Cut(text, "["); ok {
		text, _, _ = strings.Cut(rest, "]")
		return text
	}
	return ""
}

// hostID makes one of what tells hosts apart. The machine's id is hashed with what changes when a virtual machine is resized,
// since figures of the two sizes do not compare. A container without a machine id falls back to the host name.
func (s system) hostID(e *Environment) string {
	id := s.read("etc/machine-id")
	if id == "" {
		id, _ = os.Hostname()
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s|%s|%d|%d", id, e.CPU, e.Cores, e.MemBytes)
	return fmt.Sprintf("%016x", h.Sum64())
}

// goLimits reads GOGC and GOMEMLIMIT as the runtime has them now, whether from the environment or set by code.
func goLimits() (gogc int64, memlimit *int64) {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}, {Name: "/gc/gomemlimit:bytes"}}
	metrics.Read(sample)
	if v := sample[0].Value.Uint64(); v > math.MaxInt32 {
		gogc = -1 // off
	} else {
		gogc = int64(v)
	}
	if v := sample[1].Value.Uint64(); v < math.MaxInt64 {
		memlimit = new(int64(v))
	}
	return gogc, memlimit
}

// cgroup finds the tightest CPU and memory limit between the process's groups and their roots, in version 2 and version 1.
func (s system) cgroup() Cgroup {
	var out Cgroup
	for line := range strings.Lines(s.read("proc/self/cgroup")) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if parts[0] == "0" && parts[1] == "" {
			s.climb("sys/fs/cgroup", parts[2], &out)
			s.climb("sys/fs/cgroup/unified", parts[2], &out)
			continue
		}
		for _, controller := range strings.Split(parts[1], ",") {
			if controller == "cpu" || controller == "memory" {
				s.climb("sys/fs/cgroup/"+controller, parts[2], &out)
			}
		}
	}
	return out
}

// climb reads the limits of group path and of each group above it. Inside a container the path may not exist below the
// mount, which then shows the container's group at its root; so the missing ones are passed over.
func (s system) climb(mount, path string, out *Cgroup) {
	for path = filepath.Clean("/" + path); ; path = filepath.Dir(path) {
		dir := filepath.Join(mount, path)
		if cpus := cpuMax(s.read(filepath.Join(dir, "cpu.max"))); cpus > 0 {
			out.limitCPU(cpus)
		}
		quota, period := s.number(filepath.Join(dir, "cpu.cfs_quota_us")), s.number(filepath.Join(dir, "cpu.cfs_period_us"))
		if quota > 0 && period > 0 {
			out.limitCPU(float64(quota) / float64(period))
		}
		out.limitMemory(s.number(filepath.Join(dir, "memory.max")))
		out.limitMemory(s.number(filepath.Join(dir, "memory.limit_in_bytes")))
		if path == "/" {
			return
		}
	}
}

// number gives a file's integer, 0 when there is none ("max" too).
func (s system) number(path string) int64 {
	n, err := strconv.ParseInt(s.read(path), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// cpuMax reads "200000 100000" as 2 and "max 100000" as 0 (no limit).
func cpuMax(text string) float64 {
	quota, period, _ := strings.Cut(text, " ")
	q, err1 := strconv.ParseFloat(quota, 64)
	p, err2 := strconv.ParseFloat(period, 64)
	if err1 != nil || err2 != nil || p <= 0 {
		return 0
	}
	return q / p
}

func (c *Cgroup) limitCPU(cpus float64) {
	if c.CPUs == nil || cpus < *c.CPUs {
		c.CPUs = &cpus
	}
}

func (c *Cgroup) limitMemory(bytes int64) {
	const none = 1 << 62 // version 1 writes "no limit" as a number a little below 2^63
	if bytes > 0 && bytes < none && (c.MemoryBytes == nil || bytes < *c.MemoryBytes) {
		c.MemoryBytes = &bytes
	}
}

// fileSystem gives the type of the file system that dir lies on, and its device with model and kind if they are known.
func (s system) fileSystem(dir string) (fs, disk string) {
	dir = nearest(dir)
	longest := -1
	var device string
	for line := range strings.Lines(s.read("proc/self/mountinfo")) {
		// 27 1 254:0 / /mnt rw,relatime shared:1 - ext4 /dev/vda rw
		before, after, ok := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 2 {
			continue
		}
		mount := unescapeMount(left[4])
		if below(dir, mount) && len(mount) >= longest { // of equal ones the later hides the earlier
			longest, fs, disk, device = len(mount), right[0], unescapeMount(right[1]), left[2]
		}
	}
	if longest < 0 {
		return "", ""
	}
	return fs, strings.TrimSpace(disk + s.diskKind(device))
}

// diskKind describes the block device major:minor, "" if it is none.
func (s system) diskKind(device string) string {
	base := "sys/dev/block/" + device
	var parts []string
	for _, dir := range []string{base, base + "/.."} { // a partition's disk is one above it
		if model := s.read(dir + "/device/model"); model != "" {
			parts = append(parts, model)
			break
		}
	}
	for _, dir := range []string{base, base + "/.."} {
		switch s.read(dir + "/queue/rotational") {
		case "0":
			parts = append(parts, "not rotating")
		case "1":
			parts = append(parts, "rotating")
		default:
			continue
		}
		break
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// nearest resolves dir, or the closest folder above it that exists.
func nearest(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return dir
	}
	for {
		if real, err := filepath.EvalSymlinks(abs); err == nil {
			return real
		}
		up := filepath.Dir(abs)
		if up == abs {
			return abs
		}
		abs = up
	}
}

func below(dir, mount string) bool {
	return dir == mount || mount == "/" || strings.HasPrefix(dir, mount+"/")
}

// unescapeMount undoes the octal escapes that the kernel uses for blanks in mountinfo.
func unescapeMount(text string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(text)
}
