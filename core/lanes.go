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

// A sealed bucket's filter stands alone at first and then becomes a lane beside those of the others (Config.Summary), where
// one look answers for all. A lane has the keys that wait when it is built: a bucket whose events mostly find their
// partners soon is sealed with twice the keys that it has a bucket later. If it is larger than the lanes, it takes two of
// them, its own and that of the open bucket, or stands alone until the next is sealed, instead of making all lanes as
// wide as that: 16 lanes of 5 million keys are 12 MB, of 9 million 22, and the caches hold about that.

// layLanes has the filters that stand alone made into lanes, when that is due.
func (t *Task) layLanes() {
	if !t.cfg.Summary || t.closing || t.lanesBusy || t.loading > 0 || !t.cfg.Filter.InRAM() {
		return
	}
	alone, newest := t.aloneSlots()
	if alone == 0 {
		return
	}
	epoch := t.ring.AtSlot(newest).Epoch
	if epoch == t.leftOut {
		if alone &^= 1 << newest; alone == 0 {
			return
		}
	}
	lanes, laned := t.set.Lanes()
	if lanes != nil {
		alone |= lanes.Split() & laned // the bucket that comes may need their second lane
	}
	j := t.startLanes(alone)
	if lanes != nil && alone>>newest&1 != 0 && t.set.Keys(newest) > lanes.Capacity() {
		j.large, j.epoch = newest, epoch
	}
	t.start(j)
}

// aloneSlots are the sealed buckets whose filter stands alone, and the newest of them.
func (t *Task) aloneSlots() (alone uint64, newest int) {
	_, laned := t.set.Lanes()
	epoch := int64(noEpoch)
	for m := t.set.Filtered() &^ laned; m != 0; m &= m - 1 {
		slot := bits.TrailingZeros64(m)
		b := t.ring.AtSlot(slot)
		if b == nil || b.State() != buckets.Sealed || t.filters[slot].building {
			continue // its filter will be another one soon
		}
		alone |= 1 << slot
		if epoch == noEpoch || b.Epoch > epoch {
			newest, epoch = slot, b.Epoch
		}
	}
	return alone, newest
}

// startLanes makes a job that builds lanes of the filters of these slots, and of those that are lanes already.
func (t *Task) startLanes(slots uint64) *laneJob {
	lanes, laned := t.set.Lanes()
	keep := laned &^ slots
	j := &laneJob{kind: t.cfg.Filter, slots: t.cfg.Slots, base: lanes, keep: keep, cover: t.set.Cover(keep | slots), large: -1}
	for m := keep | slots; m != 0; m &= m - 1 {
		slot := bits.TrailingZeros64(m)
		p := &lanePart{slot: slot, hashes: t.filters[slot].fresh}
		if p.hashes == nil || slots>>slot&1 == 0 || laned>>slot&1 != 0 {
			p.hashes, p.scan = nil, t.scanForLane(t.ring.AtSlot(slot))
		}
		if slots>>slot&1 != 0 {
			j.parts = append(j.parts, p)
		} else {
			j.others = append(j.others, p)
		}
		t.filters[slot].fresh = nil
	}
	t.lanesBusy = true
	return j
}

// scanForLane reads the hashes of rows that a B may still find.
func (t *Task) scanForLane(b *buckets.Bucket) *buckets.HashScan {
	if t.consumes {
		return t.ring.ScanLive(b)
	}
	return t.ring.ScanHashes(b)
}

// laneJob builds lanes.
type laneJob struct {
	timed
	kind   fusefilter.Kind
	slots  int
	base   *fusefilter.Lanes // that stand now; nil: none
	keep   uint64            // its lanes that stay as they are
	parts  []*lanePart       // what becomes a lane
	others []*lanePart       // what is one, to be read only if all have to be built anew
	cover  fusefilter.Cover
	large  int   // slot of the newest, if it is larger than the lanes: it may stay alone; else -1
	epoch  int64 // of its bucket
	left   bool  // it did

	lanes    *fusefilter.Lanes
	built    time.Duration
	err      error // of reading
	buildErr error
}

// lanePart is a bucket that becomes a lane: its hashes, or what reads them.
type lanePart struct {
	slot   int
	hashes []uint64
	scan   *buckets.HashScan
}

func (p *lanePart) read() error {
	if p.scan == nil || p.hashes != nil {
		return nil
	}
	if err := p.scan.Run(); err != nil {
		return fmt.Errorf("reading the hashes of bucket %d: %w", p.scan.Bucket.Epoch, err)
	}
	p.hashes = mergeAll(p.scan.Hashes)
	return nil
}

func (j *laneJob) run(h *helper) {
	defer j.since(time.Now())
	var parts []fusefilter.Part
	if parts, j.err = readParts(j.parts); j.err != nil {
		return
	}
	if j.base != nil && !j.roomy(parts) {
		j.lanes, j.built, j.buildErr = h.builder.AddLanes(j.base, j.keep, parts, j.cover)
		if errors.Is(j.buildErr, fusefilter.ErrNoFit) && j.large >= 0 {
			j.left = true
			if parts = slices.DeleteFunc(parts, func(p fusefilter.Part) bool { return p.Slot == j.large }); len(parts) == 0 {
				j.buildErr = nil
				return
			}
			j.cover = j.cover.Without(j.large)
			j.lanes, j.built, j.buildErr = h.builder.AddLanes(j.base, j.keep, parts, j.cover)
		}
		if !errors.Is(j.buildErr, fusefilter.ErrNoFit) {
			return
		}
	}
	var others []fusefilter.Part
	if others, j.err = readParts(j.others); j.err != nil {
		return
	}
	j.lanes, j.built, j.buildErr = h.builder.NewLanes(j.kind, j.slots, append(parts, others...), j.cover)
}

// roomy says that lanes were made for buckets of more than twice the size of those that they would have.
func (j *laneJob) roomy(parts []fusefilter.Part) bool {
	most := j.base.MostKeys(j.keep)
	for _, p := range parts {
		most = max(most, len(p.Hashes))
	}
	return most < j.base.Capacity()/2
}

func readParts(list []*lanePart) (parts []fusefilter.Part, err error) {
	for _, p := range list {
		if err := p.read(); err != nil {
			return nil, err
		}
		parts = append(parts, fusefilter.Part{Slot: p.slot, Hashes: p.hashes})
	}
	return parts, nil
}

func (j *laneJob) finish(t *Task) error {
	t.lanesBusy = false
	t.stats.HelperTime += j.took
	if j.left {
		t.leftOut = j.epoch
	}
	switch {
	case j.err != nil:
		return j.err
	case j.lanes == nil && j.buildErr == nil: // nothing but the large one, which stays alone
	case j.buildErr != nil:
		t.stats.BuildFailed++ // the filters go on alone; the next seal tries again
	default:
		t.stats.BuildTime += j.built
		t.set.InstallLanes(j.lanes)
		t.layLanes() // what was sealed meanwhile
	}
	return nil
}
