package core

import (
	"errors"
	"time"

	"joinbench/buckets"
	"joinbench/fusefilter"
)

// helper runs what takes long beside its task, one job after another in the order in which they were started:
// so a family is read for a filter before it is dropped.
type helper struct {
	inline  bool
	after   uint64   // Config.SwapAfter
	batch   uint64   // the task's
	asked   []uint64 // with after: the batches at which the open jobs were started, in their order
	jobs    chan job
	results chan job
	ready   []job // results of inline jobs
	open    int   // jobs started and not collected
	seals   int   // of these, seals and spills
	builder fusefilter.Builder
	done    chan struct{}
}

// job has a part that runs beside the task and one that its goroutine does between batches.
type job interface {
	run(h *helper)
	finish(t *Task) error
}

// maxSeals is how many seals may be open when a batch ends: with more the task waits, so that a backlog of them (a dump
// is read far faster than a stream) cannot hold more arenas than that. One batch starts at most a run, a drop and a
// filter for each slot, of collected B a run for each and a drop, and lanes and two syncs may be open besides, which is why the
// queues never fill up.
const (
	maxSeals = 3
	maxQueue = maxSeals + 5*buckets.MaxSlots
)

func newHelper(cfg *Config) *helper {
	h := &helper{inline: cfg.Inline, after: uint64(cfg.SwapAfter)}
	h.builder.Before = cfg.BuildFault
	if !h.inline {
		h.jobs, h.results, h.done = make(chan job, maxQueue), make(chan job, maxQueue), make(chan struct{})
		go h.loop()
	}
	return h
}

func (h *helper) loop() {
	defer close(h.done)
	standBehind()
	for j := range h.jobs {
		j.run(h)
		h.results <- j
	}
}

func (h *helper) start(j job) {
	h.open++
	if _, ok := j.(*sealJob); ok {
		h.seals++
	}
	if h.after > 0 {
		h.asked = append(h.asked, h.batch)
	}
	if h.inline {
		j.run(h)
		h.ready = append(h.ready, j)
		return
	}
	h.jobs <- j
}

// next returns a finished job, or nil: at once, or with wait as soon as there is one. With SwapAfter it is the job that is
// due, and without wait none other.
func (h *helper) next(wait bool) job {
	if h.open == 0 {
		return nil
	}
	if h.after > 0 {
		if h.asked[0]+h.after > h.batch && !wait {
			return nil
		}
		wait, h.asked = true, h.asked[1:] // they finish in the order in which they were started
	}
	var j job
	switch {
	case h.inline:
		j, h.ready = h.ready[0], h.ready[1:]
	case wait:
		j = <-h.results
	default:
		select {
		case j = <-h.results:
		default:
			return nil
		}
	}
	h.open--
	if _, ok := j.(*sealJob); ok {
		h.seals--
	}
	return j
}

// stop ends the goroutine; everything that was started was collected before.
func (h *helper) stop() {
	if !h.inline {
		close(h.jobs)
		<-h.done
	}
}

// timed measures a run.
type timed struct{ took time.Duration }

func (t *timed) since(start time.Time) { t.took = time.Since(start) }

// collect takes in finished jobs: those that are there, or with wait all that were started.
func (t *Task) collect(wait bool) error {
	var errs []error
	for {
		j := t.help.next(wait || t.help.seals > maxSeals)
		if j == nil {
			return errors.Join(errs...)
		}
		errs = append(errs, j.finish(t))
	}
}

// shutdown waits for the helper, stops it and closes the ring.
func (t *Task) shutdown() error {
	t.closing = true
	err := t.collect(true)
	t.help.stop()
	return errors.Join(err, t.closeRings())
}

func (t *Task) closeRings() error {
	if t.groups == nil {
		return t.ring.Close()
	}
	return errors.Join(t.ring.Close(), t.groups.close())
}

// abandon waits for the helper, takes nothing in and closes the ring: a family without a mark is dropped when the
// state is opened again.
func (t *Task) abandon() error {
	for t.help.next(true) != nil {
	}
	t.help.stop()
	return t.closeRings()
}
