package core

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"joinbench/buckets"
)

// What has waited long enough comes out by the order of its time: null rows of A that are over (rules 10 and 16) or that are
// promised early (rule 17), and the groups of A that are over (rule 19). Both are a limit on the event time that only
// rises; what lies below the limits of the last commit has come out. So nothing more need be stored to know, after a restart
// or an undo, what came: a bucket is read again, from those limits on.
//
// A bucket is looked at for the first time when its first possible event is below a limit: its runs are read once, in the
// order of time, by the helper ahead of that moment where it can be foreseen; its rows in RAM are sorted.

// Limits are what the watermarks of a batch let go, of the side that a joiner stores.
type Limits struct {
	Closed int64 // events with lower times are closed (rule 10)
	Early  int64 // events with lower times that never paired give their null row (rule 17), if Config.Early is not 0
}

// limits by the watermarks, by the side that waits.
func (c *Config) limits(wm [2]int64) [2]Limits {
	return [2]Limits{
		A: {Closed: wm[B] - c.After - c.Grace, Early: wm[B] - c.Early - c.Grace},
		B: {Closed: wm[A] - c.Before - c.Grace, Early: minTime},
	}
}

// The kinds of release.
const (
	atClose = iota
	atEarly
	releaseKinds
)

// wants says whether anything comes out for being below a limit.
func (t *Task) wants(kind int) bool {
	if kind == atEarly {
		return t.cfg.Early > 0
	}
	return t.cfg.WantA && t.cfg.Early == 0 || t.groups != nil
}

// releases says whether an event may come out for the time alone.
func (c *Config) releases() bool { return c.WantA || c.Early > 0 || c.Collect != CollectEager }

// releaseState is what a task lets go by time.
type releaseState struct {
	let      [releaseKinds]int64 // the limits of the last commit
	due      [releaseKinds]int64 // those of this batch
	waited   time.Duration       // for the helper, by this part of the batch
	busy     bool                // this batch has not let go all yet
	buckets  [releaseKinds][buckets.MaxSlots]release
	starting []*buckets.Bucket // scratch
	early    [][]byte          // entries: what came out in this part of the batch
	closed   [][]byte
}

// release is one bucket on its way out.
type release struct {
	started bool
	job     *closeJob // of its runs; nil: it has none, or all of them have come out
	at      int       // the next of the job's rows
	ram     []uint64  // rows that are in no run and not yet out, ascending: time << rowBits | row
	seen    uint32    // rows below were looked at
}

// rowBits of a word in ram are the row, 268 million of them; the others the time from earliest before the bucket's beginning on: a
// year before it for those that wait in it although they are earlier (rule 8), and one in it.
const (
	rowBits  = 28
	earliest = 1 << (63 - rowBits)
)

// closeJob reads a bucket's runs.
type closeJob struct {
	timed
	scan *buckets.CloseScan
	err  error
	done chan struct{}
}

func (j *closeJob) run(*helper) {
	defer close(j.done)
	defer j.since(time.Now())
	j.err = j.scan.Run()
}

// finish implements job. Whoever needs the rows asks for the error.
func (j *closeJob) finish(t *Task) error {
	t.stats.HelperTime += j.took
	return nil
}

// releaseBelow says what this batch lets go.
func (t *Task) releaseBelow(l Limits) {
	t.rel.due, t.rel.busy = [releaseKinds]int64{atClose: l.Closed, atEarly: l.Early}, true
}

// release lets go what the limits allow, or as much of it as fits into one output: then it is busy.
func (t *Task) release() error {
	g := t.groups
	if g != nil {
		t.rel.early = g.lateNulls(t.rel.early, t.rel.due[atClose])
		if err := g.release(); err != nil || g.busy() {
			return err
		}
	}
	full, err := t.releaseBuckets()
	if err == nil && g != nil {
		err = g.release()
	}
	t.rel.busy = full || g != nil && g.busy()
	return err
}

// releaseBuckets lets go what is below the limits, up to a full output.
func (t *Task) releaseBuckets() (full bool, err error) {
	for kind, limit := range t.rel.due {
		if !t.wants(kind) {
			continue
		}
		for _, b := range t.startingBelow(limit) {
			if full, err = t.releaseBucket(kind, b, limit); err != nil {
				return false, fmt.Errorf("closing bucket %d: %w", b.Epoch, err)
			}
			if full {
				return true, nil
			}
		}
	}
	return false, nil
}

// startingBelow lists the buckets whose first possible event is below a limit, by time.
func (t *Task) startingBelow(limit int64) []*buckets.Bucket {
	list := t.rel.starting[:0]
	for slot := range t.cfg.Slots {
		if b := t.ring.AtSlot(slot); b != nil && (b.Epoch-t.back[b.Epoch])*t.cfg.Width < limit {
			list = append(list, b)
		}
	}
	slices.SortFunc(list, byEpoch)
	t.rel.starting = list
	return list
}

func (t *Task) releaseBucket(kind int, b *buckets.Bucket, limit int64) (full bool, err error) {
	r := &t.rel.buckets[kind][b.Slot]
	if !r.started {
		if err := t.startRelease(kind, b, r); err != nil {
			return false, err
		}
	}
	t.takeNew(kind, b, r)
	if full, err = t.letGoRuns(kind, b, r, limit); full || err != nil {
		return full, err
	}
	return t.letGoRAM(kind, b, r, limit), nil
}

// startRelease looks at a bucket for the first time, or again after a restart, an undo, or a run that was added to it: what
// is below the limit of the last commit has come out.
func (t *Task) startRelease(kind int, b *buckets.Bucket, r *release) error {
	let := t.rel.let[kind]
	r.started, r.seen = true, b.InRuns()
	if b.Empty() || t.bucketEnd(b) <= let {
		r.job = nil
		return nil
	}
	if r.job == nil {
		r.job = t.newCloseJob(b)
		r.job.run(nil)
	}
	waits := time.Now()
	<-r.job.done
	t.rel.waited += time.Since(waits)
	if r.job.err != nil {
		return r.job.err
	}
	return t.skipTo(r, let)
}

// skipTo passes over rows before a time.
func (t *Task) skipTo(r *release, let int64) error {
	for r.job != nil {
		scan := r.job.scan
		r.at = sort.Search(scan.Rows(), func(i int) bool { return scan.Time(i) >= let })
		if r.at < scan.Rows() {
			return nil
		}
		if err := t.nextScan(r); err != nil {
			return err
		}
	}
	return nil
}

// nextScan goes on with what lies behind a scan that has come out, if there is more.
func (t *Task) nextScan(r *release) error {
	scan := r.job.scan
	r.job, r.at = nil, 0
	if !scan.More() {
		return nil
	}
	r.job = &closeJob{scan: t.ring.NextClose(scan), done: make(chan struct{})}
	r.job.run(nil)
	return r.job.err
}

func (t *Task) newCloseJob(b *buckets.Bucket) *closeJob {
	what := buckets.UnusedRows
	if t.cfg.Collect != CollectEager {
		what = buckets.LiveRows
	}
	return &closeJob{scan: t.ring.StartClose(b, what, t.cfg.ArenaBytes/closeShare), done: make(chan struct{})}
}

// closeShare is the part of the arenas' limit that reading a closing bucket may take: for a bucket of more, its runs are
// read several times.
const closeShare = 4

// bucketEnd is behind the last time that a row can have.
func (t *Task) bucketEnd(b *buckets.Bucket) int64 { return (b.Epoch + 1) * t.cfg.Width }

// takeNew adds the rows that came since it was last called, and at first those that are in RAM.
func (t *Task) takeNew(kind int, b *buckets.Bucket, r *release) {
	rows := uint32(b.Rows())
	if r.seen == rows {
		return
	}
	have, let := len(r.ram), t.rel.let[kind]
	committed := uint32(b.CommittedRows()) + b.Base()
	for row := r.seen; row < rows; row++ {
		at := buckets.TimeOf(b.Entry(row))
		if at < let && row < committed {
			continue // it has come out
		}
		r.ram = append(r.ram, t.sinceBase(b, at)<<rowBits|uint64(row))
	}
	r.seen = rows
	added := r.ram[have:]
	slices.Sort(added)
	if have > 0 && len(added) > 0 { // within the grace they overlap what is there
		from, _ := slices.BinarySearch(r.ram[:have], added[0])
		slices.Sort(r.ram[from:])
	}
}

// letGoRuns puts out what lies below the limit in runs. It stops, full, when an output is.
func (t *Task) letGoRuns(kind int, b *buckets.Bucket, r *release, limit int64) (full bool, err error) {
	for r.job != nil {
		scan := r.job.scan
		for ; r.at < scan.Rows() && scan.Time(r.at) < limit; r.at++ {
			if t.full() {
				return true, nil
			}
			t.out(kind, b, scan.Row(r.at), scan.Entry(r.at))
		}
		if r.at < scan.Rows() {
			return false, nil
		}
		if err := t.nextScan(r); err != nil {
			return false, err
		}
	}
	return false, nil
}

// sinceBase is a time as words in ram have it.
func (t *Task) sinceBase(b *buckets.Bucket, at int64) uint64 {
	return uint64(max(at-b.Epoch*t.cfg.Width+earliest, 0))
}

// letGoRAM is letGoRuns of rows in RAM.
func (t *Task) letGoRAM(kind int, b *buckets.Bucket, r *release, limit int64) (full bool) {
	below := t.sinceBase(b, limit)
	i := 0
	for ; i < len(r.ram) && r.ram[i]>>rowBits < below; i++ {
		if full = t.full(); full {
			break
		}
		row := uint32(r.ram[i] & (1<<rowBits - 1))
		t.out(kind, b, row, b.Entry(row))
	}
	r.ram = r.ram[i:]
	return full
}

// out puts out one A: its null row, if it has not paired, or its group.
func (t *Task) out(kind int, b *buckets.Bucket, row uint32, entry []byte) {
	switch {
	case b.Ended(row):
	case kind == atEarly:
		if !b.Used(row) {
			t.rel.early = append(t.rel.early, entry)
		}
	case b.Used(row):
		if t.groups != nil {
			t.groups.due(b.Epoch, entry)
		}
	case t.cfg.WantA && t.cfg.Early == 0:
		t.rel.closed = append(t.rel.closed, entry)
	}
}

// full says that this part of the batch's output is large enough.
func (t *Task) full() bool {
	n := len(t.matches) + len(t.rel.early) + len(t.rel.closed)
	if g := t.groups; g != nil {
		return g.isFull() || n+g.queued() >= t.cfg.maxOutput()
	}
	return n >= t.cfg.maxOutput()
}

// foreseeReleases has the helper read what will be due soon, so that a batch need not wait for it: an eighth of a bucket ahead.
func (t *Task) foreseeReleases() {
	for kind, limit := range t.rel.let {
		if !t.wants(kind) {
			continue
		}
		for _, b := range t.startingBelow(limit + t.cfg.Width/8) {
			r := &t.rel.buckets[kind][b.Slot]
			if !r.started && r.job == nil && b.State() == buckets.Sealed && !b.Empty() && t.bucketEnd(b) > limit {
				r.job = t.newCloseJob(b)
				t.start(r.job)
			}
		}
	}
}

// forgetRelease is for a bucket that was dropped, or that got a run: rows that were in RAM are to be read from it.
func (t *Task) forgetRelease(slot int) {
	for kind := range t.rel.buckets {
		t.rel.buckets[kind][slot] = release{}
	}
}

// releasedUpTo notes that a batch was committed.
func (t *Task) releasedUpTo() { t.rel.let = t.rel.due }

// undoRelease forgets how far this batch had come.
func (t *Task) undoRelease() {
	t.rel.busy = false
	t.rel.buckets = [releaseKinds][buckets.MaxSlots]release{}
}
