package pipeline

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestOpenWait: a wait is told of now and then, and one that is too long says what may be wrong and what to do.
func TestOpenWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		w := openWait{log: slog.New(slog.NewTextHandler(&out, nil)), usual: time.Minute}
		for range 4 * 60 {
			w.waits(77)
			time.Sleep(500 * time.Millisecond)
		}
		var levels []string
		for line := range strings.Lines(out.String()) {
			level := strings.Fields(line)[1]
			levels = append(levels, level)
			if !strings.Contains(line, "offset=77") || (level == "level=ERROR") != strings.Contains(line, "abort --topic TOPIC") {
				t.Error(line)
			}
		}
		if n := strings.Count(strings.Join(levels, " "), "WARN"); n != 7 || len(levels) != 12 {
			t.Errorf("in two minutes: %v", levels)
		}
	})
}
