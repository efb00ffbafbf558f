package results

import (
	"path/filepath"
	"strconv"
	"strings"
)

// AvailableMemory is how many bytes processes can still get without swapping: what the kernel says, and no more than the
// limits of the process's groups leave. False where the system does not tell.
func AvailableMemory() (int64, bool) { return system{root: "/"}.availableMemory() }

func (s system) availableMemory() (int64, bool) {
	kb, err := strconv.ParseInt(strings.TrimSuffix(s.field("proc/meminfo", "MemAvailable"), " kB"), 10, 64)
	if err != nil {
		return 0, false
	}
	free := kb * 1024
	for line := range strings.Lines(s.read("proc/self/cgroup")) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) == 3 && parts[0] == "0" {
			free = min(free, s.leftInGroup(parts[2], free))
		}
	}
	return free, true
}

// leftInGroup is what the tightest of a group and those above it leaves (cgroup version 2); pages of files that are
// not in use count as free, since the kernel takes them away first.
func (s system) leftInGroup(path string, free int64) int64 {
	for path = filepath.Clean("/" + path); ; path = filepath.Dir(path) {
		dir := filepath.Join("sys/fs/cgroup", path)
		if limit := s.number(filepath.Join(dir, "memory.max")); limit > 0 {
			used := s.number(filepath.Join(dir, "memory.current"))
			for line := range strings.Lines(s.read(filepath.Join(dir, "memory.stat"))) {
				if n, ok := strings.CutPrefix(strings.TrimSpace(line), "inactive_file "); ok {
					cached, _ := strconv.ParseInt(n, 10, 64)
					used -= cached
				}
			}
			free = min(free, max(0, limit-used))
		}
		if path == "/" {
			return free
		}
	}
}
