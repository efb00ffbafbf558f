package core

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"joinbench/buckets"
	"joinbench/fusefilter"
)

// install puts a filter of all runs of a bucket in, if it could be built; a bucket without one stays maybe, and the
// build is tried again. The hashes are those of the filter.
func (t *Task) install(slot int, f *fusefilter.Filter, hashes []uint64, err error) {
	life := &t.filters[slot]
	life.building = false
	life.stale = 0
	if err != nil {
		t.stats.BuildFailed++
		life.failed++
		life.retryAt = t.batches + retryAfter<<min(life.failed-1, maxRetryShift)
		return
	}
	life.failed = 0
	if f == nil {
		return
	}
	t.bookBuild(f)
	t.set.Install(slot, f)
	if b := t.ring.AtSlot(slot); t.cfg.Summary && b.State() == buckets.Sealed {
		life.fresh = hashes
	}
	t.layLanes()
}

func (t *Task) bookBuild(f *fusefilter.Filter) {
	t.stats.FiltersBuilt++
	t.stats.FilterKeys += uint64(f.Keys())
	t.stats.FilterBytes += uint64(f.Bytes())
	t.stats.BuildTime += f.BuildTime()
}

// filterLife is what is to be done about a bucket's filter.
type filterLife struct {
	building bool   // a job builds it from the runs
	failed   int    // builds that failed one after another
	retryAt  uint64 // then: the batch after which the next is due
	stale    int    // B that found only used rows there, since the filter was built
	// fresh are the hashes that the filter was built of, ascending, while it waits to become a lane; nil: they are to be
	// read from the table.
	fresh []uint64
}

const (
	// retryAfter is how many batches pass before a failed build is tried again; each further failure doubles it.
	retryAfter    = 64
	maxRetryShift = 10
	// staleShare of a filter's keys is how many stale positives a bucket may cost before its filter is built anew from
	// the rows that wait. A stale positive costs a read (2 to 4 µs), a rebuild 0.5 to 1 µs a row: if as many come again as
	// did, it has paid for itself.
	staleShare = 1.0 / 4
)

// minStale keeps small buckets from being rebuilt over and over.
var minStale = 64 // a variable for tests

// mendFilters starts what is due: filters of buckets that have none, and of those whose filter mostly knows used rows.
func (t *Task) mendFilters() {
	if !t.cfg.Filter.InRAM() {
		return
	}
	for slot := range t.cfg.Slots {
		life := &t.filters[slot]
		switch {
		case life.building || life.failed == 0 && life.stale < minStale:
		case life.failed > 0:
			if b := t.ring.AtSlot(slot); t.batches >= life.retryAt && b != nil && !b.Empty() && !b.Writing() {
				life.building = true
				t.start(&scanJob{task: t, scan: t.ring.ScanHashes(b)})
			}
		default:
			t.mendStale(slot)
		}
	}
}

// mendStale has the filter of a bucket built anew if it mostly knows used rows.
func (t *Task) mendStale(slot int) {
	life, keys, b := &t.filters[slot], t.set.Keys(slot), t.ring.AtSlot(slot)
	_, laned := t.set.Lanes()
	switch {
	case keys == 0 || b == nil || b.State() != buckets.Sealed || !t.consumes:
		life.stale = 0
	case float64(life.stale) <= staleShare*float64(keys):
	case laned>>slot&1 == 0:
		life.building = true
		t.start(&scanJob{task: t, scan: t.ring.ScanLive(b), live: true})
	case !t.lanesBusy:
		life.stale = 0
		t.start(t.startLanes(1 << slot))
		t.stats.FiltersRebuilt++
	}
}

// forgetFilter is for a bucket that was dropped.
func (t *Task) forgetFilter(slot int) { t.filters[slot] = filterLife{} }

// loadTogether is how many filters are loaded at the same time after a restart.
const loadTogether = 4

// loadFilters has the filters of all runs built that were there when the state was opened, several at a time.
func (t *Task) loadFilters() {
	any := false
	defer func() {
		if any { // after the filters, which the B wait for
			t.start(&verifyJob{verify: t.ring.StartVerify()})
		}
	}()
	var load *loadJob
	for slot := range t.cfg.Slots {
		b := t.ring.AtSlot(slot)
		if b == nil || b.Empty() {
			continue
		}
		if any = true; !t.cfg.Filter.InRAM() {
			continue
		}
		if load == nil {
			load = &loadJob{}
		}
		t.filters[slot].building = true
		t.loading++
		load.scans = append(load.scans, &scanJob{task: t, scan: t.ring.ScanHashes(b)})
		if len(load.scans) == loadTogether {
			t.start(load)
			load = nil
		}
	}
	if load != nil {
		t.start(load)
	}
}

// verifyJob checks, after a restart, that the tables are what was written: lookups in hash tables do not.
type verifyJob struct {
	verify *buckets.VerifyJob
	err    error
}

func (j *verifyJob) run(*helper) { j.err = j.verify.Run() }

func (j *verifyJob) finish(*Task) error { return j.err }

// loadJob runs several scans side by side: after a restart the task needs them more than it needs the cores.
type loadJob struct {
	timed
	scans []*scanJob
}

func (j *loadJob) run(h *helper) {
	defer j.since(time.Now())
	var wg sync.WaitGroup
	for _, s := range j.scans {
		wg.Go(func() { s.build(&fusefilter.Builder{Before: h.builder.Before}) })
	}
	wg.Wait()
}

func (j *loadJob) finish(t *Task) error {
	t.stats.HelperTime += j.took
	var errs []error
	for _, s := range j.scans {
		errs = append(errs, s.finish(t))
	}
	t.loading -= len(j.scans)
	t.layLanes()
	return errors.Join(errs...)
}

// scanJob builds a filter from the runs of a bucket: one that was there when the state was opened, one whose filter
// could not be built, or with live one whose filter knows too many used rows.
type scanJob struct {
	timed
	task     *Task
	scan     *buckets.HashScan
	live     bool
	hashes   []uint64
	filter   *fusefilter.Filter
	err      error
	buildErr error
}

func (j *scanJob) run(h *helper) {
	defer j.since(time.Now())
	j.build(&h.builder)
}

func (j *scanJob) build(b *fusefilter.Builder) {
	if j.err = j.scan.Run(); j.err == nil {
		j.hashes = mergeAll(j.scan.Hashes)
		j.filter, j.buildErr = b.Build(j.task.cfg.Filter, slices.Clone(j.hashes))
	}
}

func (j *scanJob) finish(t *Task) error {
	t.stats.HelperTime += j.took
	if j.err != nil {
		return fmt.Errorf("reading the hashes of bucket %d: %w", j.scan.Bucket.Epoch, j.err)
	}
	slot := j.scan.Bucket.Slot
	if t.ring.AtSlot(slot) != j.scan.Bucket || j.scan.Bucket.Runs() != len(j.scan.Hashes) {
		// Dropped, or it got another run, whose seal has built a filter of all of them.
		return nil
	}
	if !j.live {
		t.install(slot, j.filter, j.hashes, j.buildErr)
		return nil
	}
	t.filters[slot].building, t.filters[slot].stale = false, 0
	if j.buildErr != nil {
		t.stats.BuildFailed++ // the old one goes on
		return nil
	}
	if t.set.State(slot) == fusefilter.Filtered {
		t.bookBuild(j.filter)
		t.stats.FiltersRebuilt++
		t.set.Replace(slot, j.filter)
		if t.cfg.Summary {
			t.filters[slot].fresh = j.hashes
		}
	}
	return nil
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
