package core

import (
	"time"

	"joinbench/buckets"
)

// What groups do between batches. The helper writes and removes files; the task swaps in what it did.

// groupSpill writes what a bucket of collected B has so far as a run.
type groupSpill struct {
	timed
	g    *groups
	seal *buckets.SealJob
	err  error
}

func (j *groupSpill) run(*helper) {
	defer j.since(time.Now())
	j.err = j.seal.Run()
}

// finish implements job.
func (j *groupSpill) finish(t *Task) error {
	t.stats.HelperTime += j.took
	if j.err != nil {
		return j.err
	}
	g, b := j.g, j.seal.Bucket()
	drop, err := g.ring.FinishSeal(j.seal)
	if err != nil {
		return err
	}
	if g.ring.AtSlot(b.Slot) != b { // dropped while it was being written
		if drop != nil {
			g.help.start(&groupDrop{drops: []*buckets.DropJob{drop}})
		}
		return nil
	}
	g.freePart(b.Slot)
	g.stats.Spills++
	return nil
}

// groupDrop removes the files of buckets.
type groupDrop struct {
	timed
	drops []*buckets.DropJob
	err   error
}

func (j *groupDrop) run(*helper) {
	defer j.since(time.Now())
	for _, d := range j.drops {
		if j.err = d.Run(); j.err != nil {
			return
		}
	}
}

// finish implements job.
func (j *groupDrop) finish(t *Task) error {
	t.stats.HelperTime += j.took
	t.stats.DropMax = max(t.stats.DropMax, j.took)
	return j.err
}

// maintain comes between batches, when the last one is committed: epochs below floor are over, as those of the A are.
func (g *groups) maintain(floor int64) error {
	for slot := range g.cfg.Slots {
		b := g.ring.AtSlot(slot)
		if b == nil || b.Epoch >= floor {
			continue
		}
		if x := g.index[slot]; x != nil {
			g.first = x.Len()
		}
		g.freeBoth(slot)
	}
	drops, err := g.ring.DropBelow(floor)
	if err != nil {
		return err
	}
	if len(drops) > 0 {
		g.help.start(&groupDrop{drops: drops})
	}
	return g.ring.Maintain()
}

// arenas sums up what collected B in RAM take, as Task.arenas: those that may be spilled, those that are being written; and of the
// first the largest bucket, nil if there is none.
func (g *groups) arenas() (open, writing, most int64, largest *buckets.Bucket) {
	for slot := range g.cfg.Slots {
		b := g.ring.AtSlot(slot)
		if b == nil {
			continue
		}
		n := b.OpenBytes() + int64(len(b.Hashes()))*indexBytes
		open += n
		if p := g.part[slot].OpenIndex; p != nil {
			writing += b.PartBytes() + int64(p.Len())*indexBytes
		}
		if n > most && !b.Writing() {
			most, largest = n, b
		}
	}
	return open, writing, most, largest
}

// spill has what a bucket has so far written as a run; no other run of it is being written. Call between batches.
func (g *groups) spill(b *buckets.Bucket) {
	seal := g.ring.StartSpill(b).RowsOnly()
	g.setApart(b, seal)
	g.help.start(&groupSpill{g: g, seal: seal})
}
