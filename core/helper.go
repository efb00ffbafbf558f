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
	jobs    chan started
	results chan started
	ready   []started // results of inline jobs
	open    int       // jobs started and not collected
	seals   int       // of these, seals and spills
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

// newHelper makes the helper of as many rings.
func newHelper(cfg *Config, rings int) *helper {
	h := &helper{inline: cfg.Inline, after: uint64(cfg.SwapAfter)}
	h.builder.Before = cfg.BuildFault
	if !h.inline {
		h.jobs, h.results, h.done = make(chan started, rings*maxQueue), make(chan started, rings*maxQueue), make(chan struct{})
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

// started is a job and the task that takes it in; nil: whoever asks. With ProbeWait two tasks have one helper.
type started struct {
	job
	task *Task
}

// start has the helper do a job of a task.
func (t *Task) start(j job) { t.help.startFor(j, t) }

func (h *helper) start(j job) { h.startFor(j, nil) }

func (h *helper) startFor(what job, task *Task) {
	j := started{what, task}
	h.open++
	if _, ok := what.(*sealJob); ok {
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
func (h *helper) next(wait bool) (j started, ok bool) {
	if h.open == 0 {
		return j, false
	}
	if h.after > 0 {
		if h.asked[0]+h.after > h.batch && !wait {
			return j, false
		}
		wait, h.asked = true, h.asked[1:] // they finish in the order in which they were started
	}
	switch {
	case h.inline:
		j, h.ready = h.ready[0], h.ready[1:]
	case wait:
		j = <-h.results
	default:
		select {
		case j = <-h.results:
		default:
			return j, false
		}
	}
	h.open--
	if _, ok := j.job.(*sealJob); ok {
		h.seals--
	}
	return j, true
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
		j, ok := t.help.next(wait || t.help.seals > maxSeals)
		if !ok {
			return errors.Join(errs...)
		}
		errs = append(errs, t.finish(j))
	}
}

// finish takes in one job, of this task or of the one beside it.
func (t *Task) finish(j started) error {
	if j.task != nil {
		return j.job.finish(j.task)
	}
	return j.job.finish(t)
}

// shutdown waits for the helper, stops it and closes the rings.
func (t *Task) shutdown() error {
	t.closing = true
	err := t.collect(true)
	t.help.stop()
	return errors.Join(err, t.rings.Close())
}

// abandon waits for the helper, takes nothing in and closes the rings: a family without a mark is dropped when the
// state is opened again.
func (t *Task) abandon() error {
	for ok := true; ok; {
		_, ok = t.help.next(true)
	}
	t.help.stop()
	return t.rings.Close()
}
