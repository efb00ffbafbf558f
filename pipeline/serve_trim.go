package pipeline

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"joinbench/kafka"
)

// trimmer has the changelog cut off before what is needed, beside the join: now and then, and so long after it was not needed any more
// that a power cut has not taken the state back behind it.
type trimmer struct {
	every  time.Duration
	to     chan int64
	wg     sync.WaitGroup
	asked  time.Time
	before int64 // not needed when it was last asked
	done   int64
}

// trimEvery is long against what a power cut may cost (a second), and short against the time in which buckets go. A build for crashes
// may change it.
var trimEvery = 10 * time.Second

const trimWait = 30 * time.Second

func newTrimmer(c *kafka.Changelog, every time.Duration, log *slog.Logger) *trimmer {
	t := &trimmer{every: every, to: make(chan int64, 1)}
	t.wg.Go(func() {
		for offset := range t.to {
			ctx, cancel := context.WithTimeout(context.Background(), trimWait)
			if err := c.Trim(ctx, offset); err != nil {
				log.Warn("the changelog could not be cut; it grows until it can", "topic", c.Topic, "error", err)
			}
			cancel()
		}
	})
	return t
}

// ask says what is not needed any more. Engine's goroutine.
func (t *trimmer) ask(needed int64) {
	now := time.Now()
	if now.Sub(t.asked) < t.every {
		return
	}
	t.asked = now
	if t.before > t.done {
		select {
		case t.to <- t.before:
			t.done = t.before
		default: // still at the last one
		}
	}
	t.before = needed
}

func (t *trimmer) close() {
	close(t.to)
	t.wg.Wait()
}

// reporter says in the log how it goes.
type reporter struct {
	quit chan struct{}
	wg   sync.WaitGroup
}

// reportEvery is often enough to see from a log when something went wrong, and seldom enough to keep it for years.
const reportEvery = time.Minute

func startReporter(s *Status, log *slog.Logger) *reporter {
	r := &reporter{quit: make(chan struct{})}
	r.wg.Go(func() {
		tick := time.NewTicker(reportEvery)
		defer tick.Stop()
		for last := s.Snapshot(); ; {
			select {
			case <-r.quit:
				return
			case <-tick.C:
			}
			n := s.Snapshot()
			c, was := &n.Counters, &last.Counters
			log.Info("progress", "state", n.State, "batch", n.Batch, "a", c.A.Read-was.A.Read, "b", c.B.Read-was.B.Read, "outputs", c.Outputs-was.Outputs,
				"pending", c.A.Pending+c.B.Pending, "undone", n.Aborted-last.Aborted)
			last = n
		}
	})
	return r
}

func (r *reporter) stop() {
	if r != nil {
		close(r.quit)
		r.wg.Wait()
	}
}
