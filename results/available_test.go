package results

import (
	"os"
	"path/filepath"
	"testing"
)

// TestAvailableMemory: the kernel's figure, and less where a group's limit leaves less, the group's own or one above it.
func TestAvailableMemory(t *testing.T) {
	const meminfo = "MemTotal:  1000 kB\nMemAvailable:     800 kB\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
		known bool
	}{
		"no proc":  {map[string]string{}, 0, false},
		"no group": {map[string]string{"proc/meminfo": meminfo}, 800 << 10, true},
		"no limit": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n",
			"sys/fs/cgroup/a/memory.current": "5000\n"}, 800 << 10, true},
		"own limit": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "9000\n",
			"sys/fs/cgroup/a/memory.current": "5000\n", "sys/fs/cgroup/a/memory.stat": "anon 1\ninactive_file 300\n"}, 4300, true},
		"limit above": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "9000\n",
			"sys/fs/cgroup/a/memory.current": "5000\n", "sys/fs/cgroup/a/b/memory.max": "8000\n", "sys/fs/cgroup/a/b/memory.current": "1000"}, 4000, true},
		"over it": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "10\n",
			"sys/fs/cgroup/memory.current": "11\n"}, 0, true},
	} {
		root := t.TempDir()
		for path, text := range c.files {
			path = filepath.Join(root, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, known := (system{root: root}).availableMemory(); got != c.want || known != c.known {
			t.Errorf("%s: %d, %v, want %d, %v", name, got, known, c.want, c.known)
		}
	}
}

// TestArmRatio: the median over the slices that both arms have, and the extremes; without slices the quotient.
func TestArmRatio(t *testing.T) {
	f := func(v float64) *float64 { return &v }
	first := []*float64{f(10), f(20), nil, f(40), f(0)}
	for name, c := range map[string]struct {
		arm              Arm
		ratio, low, high *float64
	}{
		"slices":         {Arm{NsPerB: f(1), Slices: []*float64{f(20), f(100), f(7), f(40), f(5)}}, f(2), f(1), f(5)},
		"two":            {Arm{NsPerB: f(1), Slices: []*float64{f(20), f(100)}}, f(3.5), f(2), f(5)},
		"no slice":       {Arm{NsPerB: f(90), Slices: []*float64{nil, nil, f(7)}}, f(3), nil, nil},
		"never measured": {Arm{}, nil, nil, nil},
	} {
		a := c.arm
		a.SetRatio(f(30), first)
		for i, p := range [][2]*float64{{a.NsPerBRatio, c.ratio}, {a.NsPerBRatioLow, c.low}, {a.NsPerBRatioHigh, c.high}} {
			if (p[0] == nil) != (p[1] == nil) || p[0] != nil && *p[0] != *p[1] {
				t.Errorf("%s, value %d: %v, want %v", name, i, p[0], p[1])
			}
		}
	}
}
