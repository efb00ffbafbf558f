package core

import (
	"runtime"
	"testing"
	"time"
)

// TestAskCPU: time counts on one thread alone, and a thread's clock goes when it works and not when it waits.
func TestAskCPU(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	from := threadNow()
	if from == (threadMoment{}) {
		t.Skip("threads have no clock here")
	}
	start := time.Now()
	for threadNow().at < from.at+time.Millisecond {
	}
	var c AskCPU
	c.since(from, 7)
	if c.Probes != 7 || c.Time < time.Millisecond || c.Time > time.Since(start) {
		t.Errorf("%+v, in %v", c, time.Since(start))
	}
	had := c
	c.since(threadMoment{from.at, from.thread + 1}, 7)
	if c != had {
		t.Errorf("what another thread did is counted: %+v", c)
	}
}
