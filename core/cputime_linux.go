package core

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// threadNow reads the clock of the calling thread: two system calls, a third of a microsecond, or one and a half in some virtual machines.
// The goroutine stays on its thread from the one to the other, else time and thread might be those of two.
func threadNow() threadMoment {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) != nil {
		return threadMoment{}
	}
	return threadMoment{time.Duration(ts.Nano()), unix.Gettid()}
}
