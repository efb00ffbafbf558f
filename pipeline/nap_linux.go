package pipeline

import (
	"syscall"
	"time"
)

// nap sleeps by the system's own timer.
func nap(d time.Duration) {
	ts := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&ts, nil) // a signal may end it sooner: the caller looks at the clock
}
