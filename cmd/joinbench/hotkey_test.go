package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// TestRule20HotKey: 100,000 A under one key, ten B of it and a thousand others: every pair comes out, once, and the process that
// joins them needs no memory for the million.
func TestRule20HotKey(t *testing.T) {
	const hotA, hotB, others, most = 100_000, 10, 1_000, 256 << 20
	dir := t.TempDir()
	lines := func(name string, fill func(w *bufio.Writer)) string {
		path := filepath.Join(dir, name)
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w := bufio.NewWriter(f)
		fill(w)
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a := lines("a", func(w *bufio.Writer) {
		for i := range hotA {
			fmt.Fprintf(w, `{"id":"hot","ts":%d,"o":%d}`+"\n", 1000+i/100, i)
		}
		for i := range others {
			fmt.Fprintf(w, `{"id":"x%d","ts":2500,"o":%d}`+"\n", i, i)
		}
	})
	b := lines("b", func(w *bufio.Writer) {
		for i := range hotB {
			fmt.Fprintf(w, `{"id":"hot","ts":%d,"p":%d}`+"\n", 3500+i, i)
		}
		for i := range others {
			fmt.Fprintf(w, `{"id":"x%d","ts":3600,"p":%d}`+"\n", i, i)
		}
	})
	for _, probe := range []string{"aligned", "wait"} {
		conf := lines("join.yaml", func(w *bufio.Writer) {
			fmt.Fprintf(w, "a: {topic: orders, key: $.id, time: $.ts, keep: [$.o]}\nb: {topic: payments, key: $.id, time: $.ts, keep: [$.p]}\n"+
				"window: {after: 1h}\ncardinality: many-to-many\nprobe: %s\n", probe)
		})
		out := filepath.Join(dir, "out")
		run := startProgram(t, nil, "join", "-c", conf, "--a", a, "--b", b, "--out", out, "--progress", "none")
		tooLong := time.AfterFunc(2*time.Minute, func() { _ = run.Process.Kill() }) // one that never ends would fill the disk
		o, peak := run.endWatched()
		tooLong.Stop()
		o.want(t, 0)
		result, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for line := range bytes.Lines(result) {
			seen[string(line)] = true
		}
		if want := hotA*hotB + others; bytes.Count(result, []byte("\n")) != want || len(seen) != want {
			t.Errorf("%s: %d lines, %d of them different, want %d", probe, bytes.Count(result, []byte("\n")), len(seen), want)
		}
		if peak > most || peak == 0 && runtime.GOOS == "linux" { // elsewhere nobody knows
			t.Errorf("%s: %d MiB of memory at the most, want less than %d", probe, peak>>20, most>>20)
		}
	}
}
