//go:build failpoints

package buckets

import (
	"fmt"
	"strconv"

	"joinbench/internal/failpoint"
)

// checkpointVariable sets how many bytes of journal lie between two seals before it is cut. A crash test has not the
// minutes that 64 MiB take, and without this would never meet the points of the cut.
const checkpointVariable = "JOINBENCH_FAILPOINT_CHECKPOINT"

func init() {
	text := failpoint.Take(checkpointVariable)
	if text == "" {
		return
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		failpoint.Refuse(fmt.Errorf("%s=%s: want a number of bytes", checkpointVariable, text))
	}
	checkpointBytes = n
}
