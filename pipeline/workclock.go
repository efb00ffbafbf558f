package pipeline

import "time"

// workClock is a clock that stands still while a run does: what is timed by it is as if there had been no pause.
type workClock struct {
	pauses []pause
	total  time.Duration
}

type pause struct {
	from time.Time
	took time.Duration
}

func (c *workClock) now() time.Time { return time.Now().Add(-c.total) }

// at is what the clock showed at a time.
func (c *workClock) at(t time.Time) time.Time {
	for i := len(c.pauses) - 1; i >= 0; i-- {
		if p := c.pauses[i]; t.After(p.from) {
			return t.Add(-min(p.took, t.Sub(p.from)) - c.before(i))
		}
	}
	return t
}

// before is the length of the first n pauses.
func (c *workClock) before(n int) (d time.Duration) {
	for _, p := range c.pauses[:n] {
		d += p.took
	}
	return d
}

func (c *workClock) pause(from, to time.Time) {
	c.pauses = append(c.pauses, pause{from, to.Sub(from)})
	c.total += to.Sub(from)
}
