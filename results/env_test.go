package results

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// tree makes a file tree with /proc and /sys in it.
func tree(t *testing.T, files map[string]string) system {
	t.Helper()
	root := t.TempDir()
	for path, content := range files {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return system{root: root}
}

func TestEnvironmentOfATree(t *testing.T) {
	data := t.TempDir()
	s := tree(t, map[string]string{
		"proc/cpuinfo": "processor\t: 0\nmodel name\t: AMD EPYC 9005\n\nprocessor\t: 1\nmodel name\t: other\n",
		"proc/meminfo": "MemTotal:       24683656 kB\nMemFree: 1 kB\n",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
		"sys/devices/system/node/node0/x":                      "",
		"sys/devices/system/node/node1/x":                      "",
		"sys/devices/system/node/online":                       "0-1",
		"sys/kernel/mm/transparent_hugepage/enabled":           "always [madvise] never\n",
		"proc/sys/kernel/osrelease":                            "6.18.44-x\n",
		"etc/machine-id":                                       "abc\n",
		"proc/self/mountinfo": "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n" +
			"30 27 259:3 / " + strings.ReplaceAll(filepath.Dir(data), " ", `\040`) + " rw shared:1 master:2 - xfs /dev/nvme0n1p1 rw\n" +
			"31 27 0:9 / " + data + "x rw - tmpfs other rw\nnonsense\n",
		"sys/dev/block/259:3/queue/rotational": "0\n",
		"sys/dev/block/device/model":           "Fast Disk 3000 \n", // "259:3/.." in this tree
	})
	e := s.environment(filepath.Join(data, "not", "yet", "there"))
	if e.CPU != "AMD EPYC 9005" || e.MemBytes != 24683656*1024 || e.Governor != "performance" || e.NUMA != 2 ||
		e.THP != "madvise" || e.Kernel != "6.18.44-x" {
		t.Errorf("read as %+v", e)
	}
	if e.FS != "xfs" || e.Disk != "/dev/nvme0n1p1 (Fast Disk 3000, not rotating)" {
		t.Errorf("the data lies on %q, %q", e.FS, e.Disk)
	}
	if e.Cores != runtime.NumCPU() || e.GOMAXPROCS != runtime.GOMAXPROCS(0) || e.OS != runtime.GOOS {
		t.Errorf("the process: %+v", e)
	}
	again := s.environment("")
	if again.HostID != e.HostID || len(e.HostID) != 16 {
		t.Errorf("host ids %q, %q", e.HostID, again.HostID)
	}
	if again.FS != "" {
		t.Errorf("without a folder it lies on %q", again.FS)
	}
	if other := tree(t, map[string]string{"etc/machine-id": "abd\n"}).environment(""); other.HostID == e.HostID || other.CPU == "" {
		t.Errorf("another machine: %+v", other)
	}
}

func TestCgroup(t *testing.T) {
	for _, c := range []struct {
		name   string
		files  map[string]string
		cpus   *float64
		memory *int64
	}{
		{"none", map[string]string{}, nil, nil},
		{"v2 without limits", map[string]string{"proc/self/cgroup": "0::/a\n",
			"sys/fs/cgroup/a/cpu.max": "max 100000\n", "sys/fs/cgroup/a/memory.max": "max\n"}, nil, nil},
		{"v2, the tightest of all levels", map[string]string{"proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/cpu.max": "400000 100000\n", "sys/fs/cgroup/a/b/memory.max": "max\n",
			"sys/fs/cgroup/a/cpu.max": "150000 100000\n", "sys/fs/cgroup/a/memory.max": "1073741824\n"}, Known(1.5), new(int64(1 << 30))},
		{"v2 in a container whose path is not below its mount", map[string]string{"proc/self/cgroup": "0::/../../x\n",
			"sys/fs/cgroup/cpu.max": "50000 100000\n", "sys/fs/cgroup/memory.max": "4096\n"}, Known(0.5), new(int64(4096))},
		{"v1", map[string]string{"proc/self/cgroup": "4:memory:/docker/1\n2:cpu,cpuacct:/docker/1\n1:name=systemd:/\n0::/\n",
			"sys/fs/cgroup/cpu/docker/1/cpu.cfs_quota_us": "200000\n", "sys/fs/cgroup/cpu/docker/1/cpu.cfs_period_us": "100000\n",
			"sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": "2147483648\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":          "9223372036854771712\n"}, Known(2), new(int64(2 << 30))},
		{"v1 without limits", map[string]string{"proc/self/cgroup": "4:memory:/\n2:cpu:/\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, nil, nil},
	} {
		got := tree(t, c.files).cgroup()
		if orDash(got.CPUs, plain) != orDash(c.cpus, plain) || orDash(got.MemoryBytes, Bytes) != orDash(c.memory, Bytes) {
			t.Errorf("%s: %s cores, %s", c.name, orDash(got.CPUs, plain), orDash(got.MemoryBytes, Bytes))
		}
	}
}

func TestIO(t *testing.T) {
	got := tree(t, map[string]string{"proc/self/io": "rchar: 1\nwchar: 2\nread_bytes: 4096\nwrite_bytes: 12288\ncancelled_write_bytes: 7\n"}).io()
	if got != (IO{4096, 12288, true}) {
		t.Errorf("%+v", got)
	}
	if got := tree(t, nil).io(); got.Known {
		t.Errorf("without the file: %+v", got)
	}
}

func TestEnvironmentOfThisMachine(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(77))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(3 << 30))
	e := CollectEnvironment(t.TempDir())
	if e.GOGC != 77 || e.GOMEMLIMIT == nil || *e.GOMEMLIMIT != 3<<30 {
		t.Errorf("Go's limits are %d, %v", e.GOGC, e.GOMEMLIMIT)
	}
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(1<<63 - 1)
	if e := CollectEnvironment(""); e.GOGC != -1 || e.GOMEMLIMIT != nil {
		t.Errorf("Go's limits, off, are %d, %v", e.GOGC, e.GOMEMLIMIT)
	}
	if runtime.GOOS != "linux" {
		return
	}
	if e.CPU == "" || e.MemBytes == 0 || e.Kernel == "" || e.FS == "" {
		t.Errorf("not found on Linux: %+v", e)
	}
	// The list of mounts and the kernel agree, where both know. In a chroot only the kernel does.
	fs, _ := system{root: "/"}.fileSystem(t.TempDir())
	if kernel := fileSystemType(t.TempDir()); fs != "" && kernel != "" && fs != kernel && kernel != "ext4" {
		t.Errorf("the list of mounts says %s, the kernel %s", fs, kernel)
	}
}
