package core

import (
	"context"
	"runtime"
	"testing"
	"time"

	"joinbench/fusefilter"
)

// TestAskCPU: time counts on one thread alone, and a thread's clock goes when it works and not when it waits.
func TestAskCPU(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const waits = 20 * time.Millisecond
	start := time.Now()
	from := threadNow()
	if from == (threadMoment{}) {
		t.Skip("threads have no clock here")
	}
	for threadNow().at < from.at+time.Millisecond {
	}
	time.Sleep(waits)
	var c AskCPU
	c.since(from, 7)
	if took := time.Since(start); c.Probes != 7 || c.Time < time.Millisecond || c.Time > took-waits/2 {
		t.Errorf("%+v, in %v, of which it waited %v", c, took, waits)
	}
	had := c
	c.since(threadMoment{from.at, from.thread + 1}, 7)
	if c != had {
		t.Errorf("what another thread did is counted: %+v", c)
	}
}

// TestAskCPUOfEngine: all B that ask count, when the goroutine keeps its thread.
func TestAskCPUOfEngine(t *testing.T) {
	if threadNow() == (threadMoment{}) {
		t.Skip("threads have no clock here")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cfg := &Config{Before: 10, After: 100, MaxSpread: 50, Width: 50, Slots: 8, Filter: fusefilter.Fuse16, BatchSize: 3, Inline: true, Drain: true}
	e := open(t, cfg, memStores(1), newScript(t, 4, []scriptPart{times(0, "k", 1, 2, 30)}, []scriptPart{times(0, "k", 3, 4, 5, 40, 41)}), &joined{})
	start := time.Now()
	must(t, e.Run(context.Background()))
	if c := e.AskCPU(); c.Probes != 5 || c.Time <= 0 || c.Time > time.Since(start) {
		t.Errorf("%+v of 5 B, in %v", c, time.Since(start))
	}
	must(t, e.Close())
}

// partsWatch notes what was booked when the first part of an output came.
type partsWatch struct {
	echo
	e     *Engine
	parts int
	first AskCPU
}

func (w *partsWatch) Results(*Output) error {
	if w.parts++; w.parts == 1 {
		w.first = w.e.AskCPU()
	}
	return nil
}

// TestAskCPUOfParts: an output that comes in parts is made while B ask, each part.
func TestAskCPUOfParts(t *testing.T) {
	if threadNow() == (threadMoment{}) {
		t.Skip("threads have no clock here")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cfg := &Config{After: 100, MaxSpread: 50, Width: 50, Slots: 8, Filter: fusefilter.Fuse16, BatchSize: 100, Inline: true, Drain: true,
		Cardinality: ManyToMany, MaxOutput: 1}
	w := &partsWatch{}
	w.e = open(t, cfg, memStores(1), newScript(t, 4, []scriptPart{times(0, "k", 1, 2, 3, 4, 5)}, []scriptPart{times(0, "k", 6)}), w)
	must(t, w.e.Run(context.Background()))
	if c := w.e.AskCPU(); w.parts < 5 || w.first.Probes != 1 || c.Probes != 1 || c.Time <= w.first.Time {
		t.Errorf("%d parts: %+v after the first, %+v after the last", w.parts, w.first, c)
	}
	must(t, w.e.Close())
}
