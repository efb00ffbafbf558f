//go:build failpoints

package pipeline

import (
	"fmt"
	"time"

	"joinbench/internal/failpoint"
)

// trimVariable sets how often the changelog is cut. A crash test has not the minutes in which that happens by itself; and it pulls
// no plug, so what is not needed now is not needed.
const trimVariable = "JOINBENCH_FAILPOINT_TRIM"

func init() {
	text := failpoint.Take(trimVariable)
	if text == "" {
		return
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		failpoint.Refuse(fmt.Errorf("%s=%s: want a duration", trimVariable, text))
	}
	trimEvery = d
}
