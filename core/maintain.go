package core

import (
	"slices"
	"time"

	"joinbench/buckets"
	"joinbench/fusefilter"
)

// sealJob writes rows of a bucket as a run and builds the filter of all its runs.
type sealJob struct {
	timed
	kind     fusefilter.Kind
	seal     *buckets.SealJob
	hashes   []uint64 // of all runs, ascending
	filter   *fusefilter.Filter
	err      error
	buildErr error
}

func (j *sealJob) run(h *helper) {
	defer j.since(time.Now())
	if j.err = j.seal.Run(); j.err == nil && j.seal.Wrote() && j.kind.InRAM() {
		j.hashes = mergeAll(append(j.seal.Older, j.seal.Hashes))
		j.filter, j.buildErr = h.builder.Build(j.kind, slices.Clone(j.hashes))
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
	t.forgetRelease(b.Slot)
	if t.ring.AtSlot(b.Slot) != b { // dropped while it was being sealed
		if drop != nil {
			t.start(&dropJob{task: t, drop: drop})
		}
		return nil
	}
	if x := t.part[b.Slot].OpenIndex; x != nil {
		t.first = x.Len() + x.Len()/8
	}
	t.freePart(b.Slot)
	if b.State() == buckets.Sealed {
		t.stats.SealedTotal++
	} else {
		t.stats.Spills++
	}
	if !j.seal.Wrote() {
		return nil // what earlier runs have, their filter knows
	}
	t.set.SetMaybe(b.Slot)
	t.install(b.Slot, j.filter, j.hashes, j.buildErr)
	return nil
}

// syncJob makes the log outlive a power cut.
type syncJob struct {
	timed
	outputs Syncer // nil: none
	sync    *buckets.SyncJob
	err     error
}

func (j *syncJob) run(*helper) {
	defer j.since(time.Now())
	if j.outputs != nil {
		j.err = j.outputs.Sync()
	}
	if j.err == nil {
		j.err = j.sync.Run()
	}
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
	book          BucketBook
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
		t.drops = append(t.drops, Drop{j.drop.Epoch, j.ended, j.took, j.before, j.after, j.drop.Rows, j.drop.Left, j.book})
	}
	return j.err
}

// Drop is one bucket that went: how long its removal took and what the directory held before and after.
type Drop struct {
	Epoch         int64
	At            time.Time // when it had gone
	Took          time.Duration
	Before, After int64 // bytes
	Rows, Left    int64 // that it held; of them, those that no B had used
	BucketBook
}

// BucketBook is what a bucket's runs were asked, by this process.
type BucketBook struct {
	Lookups        uint64 // point reads
	FalsePositives uint64 // B for which they had no such hash
	Stale          uint64 // B that found used rows alone
}

// maxDrops bounds the list that a report shows.
const maxDrops = 1 << 12

// maintain is what a task does between batches: takes in what the helper finished, seals, spills and drops what
// watermarks and memory ask for, and has the helper do the work. The last batch is committed.
func (t *Task) maintain(to Bounds) error {
	start := time.Now()
	defer func() { t.stats.AskTime += time.Since(start) }()
	t.batches++
	t.help.batch = t.batches
	if err := t.collect(false); err != nil {
		return err
	}
	if err := t.dropBelow(to.Floor); err != nil {
		return err
	}
	if t.groups != nil {
		if err := t.groups.maintain(to.Floor); err != nil {
			return err
		}
	}
	t.sealable = to.Sealable
	t.startSeals()
	if !t.applying { // else the limits run ahead of what would be read
		t.foreseeReleases()
	}
	if err := t.spill(); err != nil {
		return err
	}
	t.mendFilters()
	if !t.syncBusy && t.side == A { // the others share its log
		if j := t.ring.StartSync(start); j != nil {
			t.syncBusy = true
			t.start(&syncJob{outputs: t.outputs, sync: j})
		}
	}
	if err := t.collect(false); err != nil { // what ran inline
		return err
	}
	return t.ring.Maintain()
}

// startSeals seals the open buckets into which nothing in time can come any more. One that is being spilled has to
// wait for that. It says whether it started any.
func (t *Task) startSeals() (any bool) {
	for slot := range t.cfg.Slots {
		b := t.ring.AtSlot(slot)
		if b != nil && b.State() == buckets.Open && b.Epoch < t.sealable && !b.Writing() {
			t.startRun(b, t.ring.StartSeal(b))
			any = true
		}
	}
	return any
}

// startRun has a job write rows that were set apart; their index goes with them.
func (t *Task) startRun(b *buckets.Bucket, seal *buckets.SealJob) {
	t.setApart(b, seal)
	t.start(&sealJob{kind: t.cfg.Filter, seal: seal})
}

const (
	// indexBytes is what the open index takes for a row, at its usual load.
	indexBytes = 20
	// spillAt of the limit is where the largest arena is spilled: what is left is for those that are being written.
	spillAt = 3.0 / 4
	// leastArenas is the share of the limit that arenas get however much the filters take.
	leastArenas = 1.0 / 8
)

// spill keeps the arenas below their limit: it has the largest written while they are still filling, and if that is
// not fast enough it waits.
func (t *Task) spill() error {
	if t.cfg.ArenaBytes <= 0 {
		return nil
	}
	limit := max(t.cfg.ArenaBytes-t.filterBytes(), int64(leastArenas*float64(t.cfg.ArenaBytes)))
	for {
		open, writing, most, largest := t.arenas()
		var collected *buckets.Bucket // the largest bucket, if it is of the groups
		if t.groups != nil {
			o, w, m, b := t.groups.arenas()
			open, writing = open+o, writing+w
			if m > most {
				collected, largest = b, b
			}
		}
		if largest != nil && open > int64(spillAt*float64(limit)) {
			if collected != nil {
				t.groups.spill(collected)
			} else {
				t.startRun(largest, t.ring.StartSpill(largest))
			}
			continue
		}
		if writing == 0 || open+writing <= limit {
			return nil
		}
		j, ok := t.help.next(true)
		if !ok {
			return nil
		}
		if err := t.finish(j); err != nil {
			return err
		}
		t.startSeals()
	}
}

// arenas sums up what rows in RAM take, their indexes included: those that may be spilled, those that are being
// written; and the largest bucket that may be.
func (t *Task) arenas() (open, writing, most int64, largest *buckets.Bucket) {
	for slot := range t.cfg.Slots {
		b := t.ring.AtSlot(slot)
		if b == nil || b.State() == buckets.Sealed {
			continue
		}
		n := b.OpenBytes() + int64(len(b.Hashes()))*indexBytes
		open += n
		if p := t.part[slot].OpenIndex; p != nil {
			writing += b.PartBytes() + int64(p.Len())*indexBytes
		}
		if n > most && !b.Writing() {
			most, largest = n, b
		}
	}
	return open, writing, most, largest
}

// filterBytes is what filters and hashes that wait to become lanes take.
func (t *Task) filterBytes() int64 { return int64(t.set.Bytes()) + t.freshBytes() }

func (t *Task) freshBytes() (n int64) {
	for slot := range t.cfg.Slots {
		n += 8 * int64(len(t.filters[slot].fresh))
	}
	return n
}

func (t *Task) dropBelow(floor int64) error {
	due := t.dueBelow(floor)
	jobs, err := t.ring.DropBelow(floor)
	if err != nil {
		return err
	}
	books := make(map[int64]BucketBook, len(due))
	for _, b := range due {
		books[b.Epoch], t.books[b.Slot] = t.books[b.Slot], BucketBook{}
		t.freeBoth(b.Slot)
		t.set.Clear(b.Slot)
		t.forgetFilter(b.Slot)
		t.forgetRelease(b.Slot)
		t.stats.DroppedTotal++
	}
	for _, j := range jobs {
		t.start(&dropJob{task: t, drop: j, book: books[j.Epoch]})
	}
	return nil
}
