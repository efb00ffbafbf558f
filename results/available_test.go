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
