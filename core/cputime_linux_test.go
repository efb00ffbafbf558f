package core

import (
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// clockOf reads the CPU clock of any thread of this process: the kernel's number for it is made of the thread's (clock_getcpuclockid(3)).
func clockOf(t *testing.T, thread int) time.Duration {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^thread<<3|6), &ts); err != nil {
		t.Error(err)
	}
	return time.Duration(ts.Nano())
}

// TestThreadNowOfOneThread: time and thread are of one thread also when the goroutine moves on to another one, as many do here that
// are more than processors and call the system. It moved between the two in one of some thousand batches: then all that the one
// thread had ever worked more than the other was booked as time of that batch.
func TestThreadNowOfOneThread(t *testing.T) {
	if threadNow() == (threadMoment{}) {
		t.Skip("threads have no clock here")
	}
	end := time.Now().Add(500 * time.Millisecond)
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for time.Now().Before(end) && !t.Failed() {
				if now := threadNow(); now.at > clockOf(t, now.thread) {
					t.Errorf("thread %d had worked %v, and later %v", now.thread, now.at, clockOf(t, now.thread))
				}
			}
		})
	}
	wg.Wait()
}
