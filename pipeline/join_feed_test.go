package pipeline

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"joinbench/capture"
	"joinbench/config"
	"joinbench/internal/oracle"
)

// keyConf joins on $.k with times in $.t.
func keyConf(t *testing.T, tasks int) *config.Join {
	t.Helper()
	conf := config.Default()
	for _, s := range []*config.Side{&conf.A, &conf.B} {
		s.Key, s.Time, s.Keep = []string{"$.k"}, "$.t", []config.KeepField{{Name: "id", Path: "$.id"}}
	}
	conf.Window.After, conf.State.Tasks, conf.State.Sync = time.Minute, tasks, "none"
	if err := conf.Validate(); err != nil {
		t.Fatal(err)
	}
	return conf
}

// TestBatchHoldsManyChunks: a batch may need more chunks of one partition than are read ahead, be it that it is large or
// that chunks are short, as those of long records are. It must not wait for itself.
func TestBatchHoldsManyChunks(t *testing.T) {
	for name, c := range map[string]struct{ records, pad, batch int }{
		"large batch":  {20_000, 0, 20_000},
		"long records": {60, 1 << 20, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var a, b bytes.Buffer
			pad := strings.Repeat("x", c.pad)
			for i := range c.records {
				fmt.Fprintf(&a, `{"k":%d,"t":%d,"id":%[1]d,"pad":"%[3]s"}`+"\n", i, 1_700_000_000_000+i, pad)
				fmt.Fprintf(&b, `{"k":%d,"t":%d,"id":%[1]d}`+"\n", i, 1_700_000_000_000+i)
			}
			dir := t.TempDir()
			writeFile(t, dir+"/a", a.Bytes())
			writeFile(t, dir+"/b", b.Bytes())
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			var out bytes.Buffer
			_, err := Join(ctx, JoinConfig{Config: keyConf(t, 1), A: dir + "/a", B: dir + "/b", Format: capture.Value, Batch: c.batch, Stdout: &out})
			if err != nil {
				t.Fatal(err)
			}
			lines, err := oracle.ReadLines(out.Bytes())
			if err != nil || len(lines) != c.records {
				t.Fatalf("%d lines, want %d (%v)", len(lines), c.records, err)
			}
		})
	}
}
