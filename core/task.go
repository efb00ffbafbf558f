package core

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/zeebo/xxh3"

	"joinbench/buckets"
	"joinbench/fusefilter"
)

// Task joins one part of the keys. One goroutine at a time calls it; between batches that is the engine's.
type Task struct {
	cfg    *Config
	hash   func(key []byte) uint64 // nil: xxh3
	ring   *buckets.Ring
	askCPU AskCPU
	rings  *buckets.Rings // ring, and those that share its store: what the task commits and closes
	set    *fusefilter.Set
	openIndexes
	filters [buckets.MaxSlots]filterLife
	books   [buckets.MaxSlots]BucketBook // of the bucket that is in the slot
	back    map[int64]int64              // Gate.back of the side that it stores
	loading int                          // filters that a restart still waits for
	help    *helper

	// The batch in progress. All of it is reused.
	hashes   []uint64
	hits     []fusefilter.Hit
	found    []fusefilter.Found
	probes   []buckets.Probe
	cands    []candidate
	win      windows
	groups   *groups // of collected B; nil: none are
	asks     asking
	rel      releaseState
	side     Side // that it stores: Config's A, or with ProbeWait in a task of its own its B
	all      bool // an event pairs with all that fit, not with the earliest alone
	consumes bool // what has paired is gone
	plain    bool // a pair is all that becomes of a B and its A: inner one-to-one without more
	marks    bool // who has paired is to be known
	matches  []Match
	inVain   []Ref
	copies   []byte
	journals []buckets.RingJournal
	touched  byte // sum of what was read ahead, so that it is read

	stats      *TaskStats
	drops      []Drop
	batches    uint64 // since it was made
	bloomWrong uint64 // as of the last batch
	sealable   int64  // epochs below may be sealed
	lanesBusy  bool
	leftOut    int64 // epoch of a bucket that does not fit into the lanes while it is the newest
	applying   bool  // the last batch was applied: nothing is put out
	closing    bool  // nothing new is begun: after a drop that failed, the set may know buckets that the ring no longer has
	syncBusy   bool
	outputs    Syncer // synced before this task's log, which has the commit record
}

// candidate is one place where a B may find its A, in the order of the B.
type candidate struct {
	pos  uint32
	slot uint16
	in   place
	at   uint32 // inArena, inPart: newest row of the chain, by the index; inRun: index of the value of the last Lookup
}

// place is where a bucket keeps rows.
type place uint8

const (
	inRun place = iota
	inArena
	inPart
)

// newTask makes the task of a ring, of which everything below the limits has come out; its open buckets get their indexes again and whose sealed ones their
// filters, by the helper; until then they are maybe.
func newTask(cfg *Config, ring *buckets.Ring, let Limits, help *helper) *Task {
	t := &Task{cfg: cfg, hash: cfg.Hash, ring: ring, help: help, stats: &TaskStats{},
		set: fusefilter.NewSet(cfg.Filter, cfg.Slots), leftOut: noEpoch}
	more := cfg.Early > 0 || cfg.CompleteOn != EndNever || cfg.Collect != CollectEager
	t.all = cfg.Cardinality == ManyToMany
	t.consumes = cfg.Cardinality == OneToOne
	t.plain = t.consumes && !more && cfg.Watch == nil
	t.marks = t.consumes || cfg.WantA || more
	t.rel.let = [releaseKinds]int64{atClose: let.Closed, atEarly: let.Early}
	for slot := range cfg.Slots {
		t.set.SetEmpty(slot)
		b := ring.AtSlot(slot)
		if b == nil {
			continue
		}
		if !b.Empty() {
			t.set.SetMaybe(slot)
		}
	}
	t.fillIndexes(ring)
	t.loadFilters()
	return t
}

// begin forgets the last batch's results.
func (t *Task) begin() {
	t.applying = false
	t.forget()
	t.inVain = t.inVain[:0]
}

// forget is for what was handed over.
func (t *Task) forget() {
	clear(t.matches) // they point into chunks
	t.matches, t.copies = t.matches[:0], t.copies[:0]
	t.rel.early, t.rel.closed = t.rel.early[:0], t.rel.closed[:0]
	if t.groups != nil {
		t.groups.begin()
	}
}

// more says that the batch has not given everything yet.
func (t *Task) more() bool { return t.asks.busy || t.rel.busy }

// goOn forgets what was handed over and gives the next part of it.
func (t *Task) goOn() error {
	t.begin()
	if err := t.pairOn(); err != nil {
		return err
	}
	return t.releaseDue()
}

// pairOn goes on with B that have not all asked.
func (t *Task) pairOn() error {
	if !t.asks.busy {
		return nil
	}
	began, start := threadNow(), time.Now()
	defer func() {
		t.stats.AskTime += time.Since(start)
		t.askCPU.since(began, 0) // ask counted them
	}()
	return t.pair()
}

// releaseDue lets go by time what is due, once all B have asked (rule 16: within a batch matching comes first).
func (t *Task) releaseDue() error {
	if !t.rel.busy || t.asks.busy {
		return nil
	}
	start := time.Now()
	t.rel.waited = 0
	err := t.release()
	// What closing costs is the A's; who waits for a helper that is behind does so at the end of other batches too (maintain).
	t.stats.StoreTime += time.Since(start) - t.rel.waited
	t.stats.AskTime += t.rel.waited
	return err
}

// store puts rows into the open buckets of their time.
func (t *Task) store(rows []slice) error { return t.storeAll(rows, false) }

// storeAll is store, of rows that have paired already or have not.
func (t *Task) storeAll(rows []slice, paired bool) error {
	if len(rows) == 0 {
		return nil
	}
	start := time.Now()
	var bucket *buckets.Bucket
	var index *fusefilter.OpenIndex
	epoch := int64(noEpoch)
	counts := t.groups != nil && t.cfg.Collect == CollectCount
	bodies := t.side == B || !t.cfg.NoBodies
	n := 0
	for _, s := range rows {
		c := s.chunk
		e := buckets.Entry{Partition: c.Partition, SideB: t.side == B}
		for i, row := range s.rows {
			e.Time, e.Offset, e.Key = c.Time[row], c.Offset[row], c.Key(row)
			if bodies {
				e.Body = c.BodyOf(row)
			}
			if now := c.epochOf(row, t.cfg.Width); now != epoch {
				b, x, err := t.openBucket(now)
				if err != nil {
					return err
				}
				epoch, bucket, index = now, b, x
			}
			if counts {
				e.Wanted = c.Wanted[row]
			}
			h := t.hashAt(s, i)
			at, err := t.ring.Append(bucket, h, &e)
			if err != nil {
				return err
			}
			index.Insert(h, at-bucket.Base())
			if paired {
				t.ring.Use(bucket, at)
			}
		}
		n += len(s.rows)
	}
	t.stats.Stored += uint64(n)
	t.stats.StoreTime += time.Since(start)
	return nil
}

// hashAt is the hash of a slice's i-th row: the router's when it divided by it, else computed here.
func (t *Task) hashAt(s slice, i int) uint64 {
	if s.hashes != nil {
		return s.hashes[i]
	}
	return t.hashOf(s.chunk.Key(s.rows[i]))
}

// hashOf calls xxh3 directly and not through a variable, so that the hash of a short key is inlined.
func (t *Task) hashOf(key []byte) uint64 {
	if t.hash != nil {
		return t.hash(key)
	}
	return xxh3.Hash(key)
}

func (t *Task) openBucket(epoch int64) (*buckets.Bucket, *fusefilter.OpenIndex, error) {
	b, err := t.ring.Bucket(epoch)
	if err != nil {
		return nil, nil, err
	}
	return b, t.indexOf(b), nil
}

// ask lets B rows ask, in order: hash all, find the candidates of all, read the sealed ones in one go, then pair
// one B after another, since an A that one of them uses up is gone for the next.
func (t *Task) ask(rows []slice) error {
	if len(rows) == 0 {
		return nil
	}
	began, start := threadNow(), time.Now() // in this order, since system calls are no part of asking
	t.gather(rows)
	if err := t.findCandidates(rows); err != nil {
		return err
	}
	t.asks = asking{rows: rows, busy: true}
	if err := t.pair(); err != nil {
		return err
	}
	if t.cfg.Filter == fusefilter.Bloom && t.side == A { // the store counts for all of its rings
		t.bookBloom()
	}
	if t.side == A { // who asks is a B
		t.stats.Probes += uint64(len(t.hashes))
	}
	t.stats.AskTime += time.Since(start)
	t.askCPU.since(began, len(t.hashes))
	return nil
}

// bookBloom takes over what RocksDB counted of its own filters. It counts reads, not B: a B that two tables let through
// in vain is two false positives, so the ratio is a little too high.
func (t *Task) bookBloom() {
	wrong := t.ring.BloomWrong()
	t.stats.FilterFalse += wrong - t.bloomWrong
	t.stats.FalsePositives += wrong - t.bloomWrong
	t.bloomWrong = wrong
}

// gather hashes the keys, finds by time which buckets the B may ask, and counts that.
func (t *Task) gather(rows []slice) {
	t.hashes = t.hashes[:0]
	t.win.reset()
	w := t.win.now
	at, counted := 0, 0
	for _, s := range rows {
		times := s.chunk.Time
		for _, row := range s.rows {
			if now := times[row]; now < w.from || now >= w.to {
				t.stats.consult(w, at-counted)
				counted = at
				w = t.moveWindow(now)
			}
			at++
		}
		if s.hashes != nil {
			t.hashes = append(t.hashes, s.hashes...)
			continue
		}
		for _, row := range s.rows {
			t.hashes = append(t.hashes, t.hashOf(s.chunk.Key(row)))
		}
	}
	t.stats.consult(w, at-counted)
}

// findCandidates asks open indexes and filters, and reads what the filters let through.
func (t *Task) findCandidates(rows []slice) error {
	t.cands, t.probes = t.cands[:0], t.probes[:0]
	for m := t.win.open; m != 0; m &= m - 1 {
		slot := bits.TrailingZeros64(m)
		t.askIndex(t.index[slot], slot, inArena)
		t.askIndex(t.part[slot].OpenIndex, slot, inPart)
	}
	t.hits = t.set.Probe(t.hashes, t.win.sealed, t.hits[:0])
	for _, h := range t.hits {
		mask := h.Mask
		if t.win.several { // a B asks those of its own window
			chunk, row := locate(rows, int(h.Pos))
			mask &= t.moveWindow(chunk.Time[row]).sealed
		}
		for ; mask != 0; mask &= mask - 1 {
			slot := bits.TrailingZeros64(mask)
			for run := range t.ring.AtSlot(slot).Runs() {
				t.probes = append(t.probes, buckets.Probe{Hash: t.hashes[h.Pos], Slot: uint16(slot), Run: uint16(run), Tag: h.Pos})
				t.books[slot].Lookups++
			}
		}
	}
	if len(t.probes) > 0 {
		t.stats.Lookups += uint64(len(t.probes))
		if err := t.ring.Lookup(t.probes); err != nil {
			return err
		}
		for i, p := range t.probes {
			t.cands = append(t.cands, candidate{pos: p.Tag, slot: p.Slot, at: uint32(i)})
		}
	}
	slices.SortFunc(t.cands, func(a, b candidate) int { return int(a.pos) - int(b.pos) })
	return nil
}

// locate finds the row at a position of the batch.
func locate(rows []slice, pos int) (*Chunk, uint32) {
	for _, s := range rows {
		if pos < len(s.rows) {
			return s.chunk, s.rows[pos]
		}
		pos -= len(s.rows)
	}
	panic("core: a position beyond the batch")
}

// askIndex asks one index for the whole batch.
func (t *Task) askIndex(x *fusefilter.OpenIndex, slot int, in place) {
	if x == nil {
		return
	}
	t.found = x.FindBatch(t.hashes, t.found[:0])
	for _, f := range t.found {
		t.cands = append(t.cands, candidate{pos: f.Pos, slot: uint16(slot), in: in, at: f.Head})
	}
}

// dueBelow lists the live buckets under a floor by time.
func (t *Task) dueBelow(floor int64) []*buckets.Bucket {
	var due []*buckets.Bucket
	for slot := range t.cfg.Slots {
		if b := t.ring.AtSlot(slot); b != nil && b.Epoch < floor {
			due = append(due, b)
		}
	}
	slices.SortFunc(due, byEpoch)
	return due
}

func byEpoch(x, y *buckets.Bucket) int { return cmp.Compare(x.Epoch, y.Epoch) }

// commit journals the batch; with one task the commit record goes with it.
func (t *Task) commit(n uint64, record []byte) error {
	start := time.Now()
	err := t.rings.Commit(n, record)
	t.releasedUpTo()
	took := time.Since(start)
	// Shared out by bytes: what the journal holds of A, and what it holds of pairs.
	appended, used := t.ring.JournalBytes()
	if appended+used > 0 {
		forA := time.Duration(float64(took) * float64(appended) / float64(appended+used))
		t.stats.StoreTime += forA
		took -= forA
	}
	t.stats.AskTime += took
	return err
}

// undo goes back to the last commit: what the batch stored and used is as it was.
func (t *Task) undo() {
	t.asks.busy = false
	t.undoRelease()
	if t.groups != nil {
		t.groups.undo()
	}
	t.undoRing(t.ring)
}
