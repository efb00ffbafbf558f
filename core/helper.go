package core

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"joinbench/buckets"
	"joinbench/fusefilter"
)

// helper runs what takes long beside its task, one job after another in the order in which they were started:
// so a family is read for a filter before it is dropped.
type helper struct {
	inline  bool
	jobs    chan job
	results chan job
	ready   []job // results of inline jobs
	open    int   // jobs started and not collected
	seals   int   // of these, seals
	builder fusefilter.Builder
	done    chan struct{}
}

// job has a part that runs beside the task and one that its goroutine does between batches.
type job interface {
	run(h *helper)
	finish(t *Task) error
}

// maxSeals is how many seals may be open when a batch ends: with more the task waits, so that a backlog of them (a dump
// is read far faster than a stream) cannot hold more arenas than that. One batch starts at most a seal and a drop for
// each slot, and a filter and a summary may be open besides, which is why the queues never fill up.
const (
	maxSeals = 3
	maxQueue = maxSeals + 4*buckets.MaxSlots
)

func newHelper(cfg *Config) *helper {
	h := &helper{inline: cfg.Inline}
	h.builder.Before = cfg.BuildFault
	if !h.inline {
		h.jobs, h.results, h.done = make(chan job, maxQueue), make(chan job, maxQueue), make(chan struct{})
		go h.loop()
	}
	return h
}

func (h *helper) loop() {
	defer close(h.done)
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
	if h.inline {
		j.run(h)
		h.ready = append(h.ready, j)
		return
	}
	h.jobs <- j
}

// next returns a finished job, or nil: at once, or with wait as soon as there is one.
func (h *helper) next(wait bool) job {
	if h.open == 0 {
		return nil
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

// sealJob writes a bucket's family and builds its filter.
type sealJob struct {
	timed
	kind     fusefilter.Kind
	seal     *buckets.SealJob
	filter   *fusefilter.Filter
	err      error
	buildErr error
}

func (j *sealJob) run(h *helper) {
	defer j.since(time.Now())
	if j.err = j.seal.Run(); j.err == nil && j.kind != fusefilter.None {
		j.filter, j.buildErr = h.builder.Build(j.kind, slices.Clone(j.seal.Hashes))
	}
}

func (j *sealJob) finish(t *Task) error {
	t.stats.HelperTime += j.took
	if j.err != nil {
		return j.err
	}
	b := j.seal.Bucket()
	drop, err := t.ring.FinishSeal(j.seal)
	if err != nil {
		return err
	}
	if t.ring.AtSlot(b.Slot) != b { // dropped while it was being sealed
		if drop != nil {
			t.help.start(&dropJob{task: t, drop: drop})
		}
		return nil
	}
	t.stats.SealedTotal++
	t.rows = uint32(b.Rows())
	t.freeIndex(b.Slot)
	if b.Empty() {
		t.set.SetEmpty(b.Slot)
		return nil
	}
	t.set.SetMaybe(b.Slot)
	t.install(b.Slot, j.filter, j.seal.Hashes, j.buildErr)
	return nil
}

// install puts a filter in, if it could be built; a bucket without one stays maybe.
func (t *Task) install(slot int, f *fusefilter.Filter, hashes []uint64, err error) {
	if err != nil {
		t.stats.BuildFailed++
		return
	}
	if f == nil {
		return
	}
	t.stats.FiltersBuilt++
	t.stats.FilterKeys += uint64(f.Keys())
	t.stats.FilterBytes += uint64(f.Bytes())
	t.stats.BuildTime += f.BuildTime()
	t.set.Install(slot, f)
	if t.cfg.Summary {
		t.keys[slot] = hashes
	}
	t.summarise()
}

// scanJob builds the filter of a bucket that was sealed in an earlier life.
type scanJob struct {
	timed
	task     *Task
	scan     *buckets.HashScan
	filter   *fusefilter.Filter
	err      error
	buildErr error
}

func (j *scanJob) run(h *helper) {
	defer j.since(time.Now())
	if j.err = j.scan.Run(); j.err == nil {
		j.filter, j.buildErr = h.builder.Build(j.task.cfg.Filter, slices.Clone(j.scan.Hashes))
	}
}

func (j *scanJob) finish(t *Task) error {
	t.stats.HelperTime += j.took
	if j.err != nil {
		return fmt.Errorf("reading the hashes of bucket %d: %w", j.scan.Bucket.Epoch, j.err)
	}
	if slot := j.scan.Bucket.Slot; t.ring.AtSlot(slot) == j.scan.Bucket {
		t.install(slot, j.filter, j.scan.Hashes, j.buildErr)
	}
	return nil
}

// summaryAfter is how many filters stand outside the summary before a new one is built. Each of them costs every
// probe a look of its own, a new summary costs the helper one pass over the keys of all sealed buckets.
const summaryAfter = 1

// summaryKind is fuse8 whatever the filters are: what matters is how few cache lines a look may touch. It lets 0.4 % of
// absent keys through, to filters that deny them.
const summaryKind = fusefilter.Fuse8

// summarise starts a new summary when enough filters stand outside the last one.
func (t *Task) summarise() {
	if !t.cfg.Summary || t.summaryBusy {
		return
	}
	_, covered := t.set.Summary()
	if bits.OnesCount64(t.set.Filtered()&^covered) < summaryAfter {
		return
	}
	j := &summaryJob{kind: summaryKind, cover: t.set.Cover(t.set.Filtered())}
	for slot := range t.cfg.Slots {
		if j.cover.Mask()>>slot&1 != 0 {
			j.lists = append(j.lists, t.keys[slot])
		}
	}
	t.summaryBusy = true
	t.help.start(j)
}

// summaryJob builds one filter over the keys of several buckets. Their hashes are kept in RAM while summaries are on, 8
// bytes a row: to read them from the tables again took two thirds of the helper's time, and pushed what the task
// probes out of the caches.
type summaryJob struct {
	timed
	kind     fusefilter.Kind
	cover    fusefilter.Cover
	lists    [][]uint64 // ascending; shared, read only
	summary  *fusefilter.Summary
	buildErr error
}

func (j *summaryJob) run(h *helper) {
	defer j.since(time.Now())
	union := mergeAll(j.lists)
	if len(j.lists) == 1 {
		union = slices.Clone(union) // a build reorders what it is given
	}
	j.summary, j.buildErr = h.builder.BuildSummary(j.kind, union, j.cover)
}

// mergeAll merges ascending lists into one, each hash once, two and two: the lists are in order already, so nothing
// needs to be sorted.
func mergeAll(lists [][]uint64) []uint64 {
	for len(lists) > 1 {
		var next [][]uint64
		for i := 0; i+1 < len(lists); i += 2 {
			next = append(next, merge(lists[i], lists[i+1]))
		}
		if len(lists)%2 == 1 {
			next = append(next, lists[len(lists)-1])
		}
		lists = next
	}
	if len(lists) == 0 {
		return nil
	}
	return lists[0]
}

func merge(a, b []uint64) []uint64 {
	out := make([]uint64, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		x, y := a[0], b[0]
		out = append(out, min(x, y))
		if x <= y {
			a = a[1:]
		}
		if y <= x {
			b = b[1:]
		}
	}
	return append(append(out, a...), b...)
}

func (j *summaryJob) finish(t *Task) error {
	t.summaryBusy = false
	t.stats.HelperTime += j.took
	switch {
	case j.buildErr != nil:
		t.stats.BuildFailed++
	default:
		t.stats.BuildTime += j.summary.Filter().BuildTime()
		t.set.InstallSummary(j.summary)
		t.summarise() // over what was sealed meanwhile, if that is enough
	}
	return nil
}

// syncJob makes the log outlive a power cut.
type syncJob struct {
	timed
	sync *buckets.SyncJob
	err  error
}

func (j *syncJob) run(*helper) {
	defer j.since(time.Now())
	j.err = j.sync.Run()
}

func (j *syncJob) finish(t *Task) error {
	t.syncBusy = false
	return j.err
}

// dropJob removes a bucket's files.
type dropJob struct {
	timed
	task          *Task
	drop          *buckets.DropJob
	ended         time.Time
	before, after int64 // bytes on disk
	err           error
}

func (j *dropJob) run(*helper) {
	j.before = j.task.ring.DiskBytes()
	start := time.Now()
	j.err = j.drop.Run()
	j.since(start)
	j.ended = time.Now()
	j.after = j.task.ring.DiskBytes()
}

func (j *dropJob) finish(t *Task) error {
	t.stats.HelperTime += j.took
	t.stats.DropMax = max(t.stats.DropMax, j.took)
	if j.drop.HasFiles() && len(t.drops) < maxDrops {
		t.drops = append(t.drops, Drop{j.drop.Epoch, j.ended, j.took, j.before, j.after})
	}
	return j.err
}

// Drop is one bucket that went: how long its removal took and what the directory held before and after.
type Drop struct {
	Epoch         int64
	At            time.Time // when it had gone
	Took          time.Duration
	Before, After int64 // bytes
}

// maxDrops bounds the list that a report shows.
const maxDrops = 1 << 12

// maintain is what a task does between batches: takes in what the helper finished, seals and drops what the
// watermarks allow, and has the helper do the work. The last batch is committed.
func (t *Task) maintain(to bounds) error {
	start := time.Now()
	defer func() { t.stats.AskTime += time.Since(start) }()
	if err := t.collect(false); err != nil {
		return err
	}
	if err := t.dropBelow(to.floor); err != nil {
		return err
	}
	for slot := range t.cfg.Slots {
		if b := t.ring.AtSlot(slot); b != nil && b.State() == buckets.Open && b.Epoch < to.sealable {
			t.help.start(&sealJob{kind: t.cfg.Filter, seal: t.ring.StartSeal(b)})
		}
	}
	if !t.syncBusy {
		if j := t.ring.StartSync(start); j != nil {
			t.syncBusy = true
			t.help.start(&syncJob{sync: j})
		}
	}
	if err := t.collect(false); err != nil { // what ran inline
		return err
	}
	return t.ring.Maintain()
}

func (t *Task) dropBelow(floor int64) error {
	due := t.dueBelow(floor)
	jobs, err := t.ring.DropBelow(floor)
	if err != nil {
		return err
	}
	for _, b := range due {
		if b.State() == buckets.Open {
			t.freeIndex(b.Slot)
		} else {
			t.index[b.Slot] = nil // a seal that still runs reads no index
		}
		t.set.Clear(b.Slot)
		t.keys[b.Slot] = nil
		t.stats.DroppedTotal++
	}
	for _, j := range jobs {
		t.help.start(&dropJob{task: t, drop: j})
	}
	return nil
}

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
	err := t.collect(true)
	t.help.stop()
	return errors.Join(err, t.ring.Close())
}

// abandon waits for the helper, takes nothing in and closes the ring: a family without a mark is dropped when the
// state is opened again.
func (t *Task) abandon() error {
	for t.help.next(true) != nil {
	}
	t.help.stop()
	return t.ring.Close()
}
