//go:build failpoints

package failpoint

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// Variable arms a point: NAME=N, the N-th Hit kills.
const Variable = "JOINBENCH_FAILPOINT"

func init() {
	text := os.Getenv(Variable)
	if text == "" {
		return
	}
	name, count, _ := strings.Cut(text, "=")
	at, err := strconv.ParseInt(count, 10, 64)
	if err != nil || at < 1 || !slices.Contains(All(), name) {
		fmt.Fprintf(os.Stderr, "%s=%s: want NAME=N with N from 1 and one of %s\n", Variable, text, strings.Join(All(), " "))
		os.Exit(2)
	}
	var hits atomic.Int64
	Set(func(hit string) error {
		if hit == name && hits.Add(1) == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal is on its way: nothing more happens here
		}
		return nil
	})
}
