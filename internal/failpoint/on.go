//go:build failpoints

package failpoint

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// Enabled says whether this build can die at a point.
const Enabled = true

// Variable arms a point: NAME=N, the N-th Hit kills.
const Variable = "JOINBENCH_FAILPOINT"

var (
	armed, after = parse(os.Getenv(Variable))
	hits         atomic.Int64
)

func parse(text string) (string, int64) {
	name, count, _ := strings.Cut(text, "=")
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil || n < 1 {
		n = 1
	}
	return name, n
}

// Hit kills the process if this is the armed point and its turn. Any goroutine.
func Hit(name string) {
	if name == armed && hits.Add(1) == after {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way: nothing more happens here
	}
}
