package pipeline

import (
	"context"
	"math"
	"time"
)

// clock is the time of an open loop, in ns from some moment. now may be called from any goroutine.
type clock interface {
	now() int64
	// wait returns when until has come (never: not by time), when wake gives something, or when the context is done, and
	// sooner if it likes. Starved says that what was due is not there: only wake can help then. Engine's goroutine.
	wait(ctx context.Context, until int64, wake <-chan struct{}, starved bool)
}

const never = math.MaxInt64

// wallClock is the real one.
type wallClock struct {
	base  time.Time
	timer *time.Timer
}

func newWallClock() *wallClock {
	c := &wallClock{base: time.Now(), timer: time.NewTimer(time.Hour)}
	c.timer.Stop()
	return c
}

func (c *wallClock) now() int64 { return int64(time.Since(c.base)) }

// coarse is how long before the end of a wait Go's timers are left for the system's: Go sleeps in steps of a ms where
// nothing else happens, the system wakes within 0.1 ms.
const coarse = 1500 * time.Microsecond

func (c *wallClock) wait(ctx context.Context, until int64, wake <-chan struct{}, _ bool) {
	if until == never {
		select {
		case <-wake:
		case <-ctx.Done():
		}
		return
	}
	left := time.Duration(until - c.now())
	if left > coarse {
		c.timer.Reset(left - coarse)
		select {
		case <-c.timer.C:
		case <-wake:
			c.timer.Stop()
			return
		case <-ctx.Done():
			c.timer.Stop()
			return
		}
		left = time.Duration(until - c.now())
	}
	if left > 0 {
		nap(min(left, coarse))
	}
}
