package fusefilter

import "math/bits"

// Stats counts what Probe asked and heard since the set was made. Differences of two snapshots are the
// counts of the time between.
type Stats struct {
	Hashes       uint64 // hashes that were probed
	SummaryAsked uint64 // hashes that asked for at least one covered slot
	SummaryNo    uint64 // of those, the ones the summary denied
	FilterAsked  uint64 // (hash, slot) pairs put to a slot's own filter
	FilterMaybe  uint64 // of those, the ones it did not deny: present, stale or false positive
}

// Stats is a snapshot of the counts.
func (s *Set) Stats() Stats { return s.probes }

// chunk is how many hashes go through the steps together: all of them read one slot's table before the
// next one's. Table by table was 1.3 to 2 times as fast as hash by hash (16 tables of 5,000, 62,500 and
// 312,500 keys), since the table stays in the core's cache and no loop's length depends on the data.
// From 256 to 8,192 the size of the chunk made no difference above noise; at 1,024 the scratch is 28 KiB.
const chunk = 1024

// scratch is the working memory of one chunk: hashes that ask the same tables, side by side.
type scratch struct {
	hash  [chunk]uint64
	mixed [chunk]uint64 // hash mixed with the seed of the table that is being read
	mask  [chunk]uint64
	from  [chunk]uint32 // position in the batch
}

// Probe clears in masks[i] the bits of buckets that do not hold hashes[i]. On entry a mask has the slots
// to ask, on return those that may hold the hash: its *maybe* slots and the ones whose filter does not
// deny it. A bit of a slot that holds the hash is never cleared, nor is one beyond the set's slots.
// Repeated hashes are allowed. masks is at least as long as hashes. It allocates nothing.
func (s *Set) Probe(hashes, masks []uint64) {
	masks = masks[:len(hashes)]
	s.probes.Hashes += uint64(len(hashes))
	// In the order of cost: what needs no hash, what one question settles, and the rest filter by filter. Each step
	// goes over all hashes, so that the summary is not pushed out of the caches by the tables behind it.
	if s.empty != 0 {
		for i := range masks {
			masks[i] &^= s.empty
		}
	}
	if s.sum != nil {
		switch s.sum.kind {
		case Fuse8:
			askSummary(s, &s.sum.t8, hashes, masks)
		case Fuse16:
			askSummary(s, &s.sum.t16, hashes, masks)
		case Fuse32:
			askSummary(s, &s.sum.t32, hashes, masks)
		}
	}
	// Apart, because few hashes have a covered slot left to ask, and all of them the others: together every hash would
	// read every table as soon as one hash of the chunk asks it.
	s.askFilters(hashes, masks, s.filtered&s.covered)
	s.askFilters(hashes, masks, s.filtered&^s.covered)
}

// askFilters puts the hashes to the filters of some slots, a chunk of those that ask one at a time.
func (s *Set) askFilters(hashes, masks []uint64, slots uint64) {
	if slots == 0 {
		return
	}
	for at := 0; at < len(hashes); {
		var n int
		var union uint64
		n, union, at = s.gather(hashes, masks, slots, at)
		switch s.kind {
		case Fuse8:
			askSlots(&s.t8, union, &s.work, n)
		case Fuse16:
			askSlots(&s.t16, union, &s.work, n)
		case Fuse32:
			askSlots(&s.t32, union, &s.work, n)
		}
		s.scatter(masks, n, slots)
	}
}

// askSummary clears the covered bits of every hash that the summary denies. There is no branch on the
// answer: at a few per cent of hits each would be guessed wrong, and the loads of the next hashes could
// not start before.
func askSummary[T fingerprint](s *Set, t *table[T], hashes, masks []uint64) {
	covered := s.covered
	var asked, denied uint64
	masks = masks[:len(hashes)]
	for i, h := range hashes {
		m := masks[i]
		ask := nonzero(m & covered)
		no := nonzero(uint64(t.residue(mix(h, t.seed))))
		masks[i] = m &^ (covered & -no)
		asked += ask
		denied += ask & no
	}
	s.probes.SummaryAsked += asked
	s.probes.SummaryNo += denied
}

// gather collects, from a position on, the hashes that have one of these slots left to ask, and the union of what they
// ask. It ends when a chunk is full, and says where.
func (s *Set) gather(hashes, masks []uint64, slots uint64, at int) (n int, union uint64, next int) {
	w := &s.work
	masks = masks[:len(hashes)]
	asked := 0
	for ; at < len(hashes) && n < chunk; at++ {
		m := masks[at]
		k := n & (chunk - 1) // n < chunk; the mask tells the compiler
		w.hash[k], w.mask[k], w.from[k] = hashes[at], m, uint32(at)
		m &= slots
		union |= m
		asked += bits.OnesCount64(m)
		n += int(nonzero(m))
	}
	s.probes.FilterAsked += uint64(asked)
	return n, union, at
}

// askSlots reads the tables of the union one after another, each for all n hashes. A hash that does not
// ask this slot is read for too: its bit is clear already, and to skip it would cost a guess.
func askSlots[T fingerprint](tables *[MaxSlots]table[T], union uint64, w *scratch, n int) {
	hash, mixed, mask := w.hash[:n], w.mixed[:n], w.mask[:n]
	var seed uint64
	for first := true; union != 0; union &= union - 1 {
		slot := bits.TrailingZeros64(union)
		t := &tables[slot]
		// Nearly all builds succeed at the first seed, so one mixing serves nearly all tables.
		if first || t.seed != seed {
			first, seed = false, t.seed
			for i, h := range hash {
				mixed[i] = mix(h, seed)
			}
		}
		for i, m := range mixed {
			mask[i] &^= nonzero(uint64(t.residue(m))) << (slot & 63)
		}
	}
}

// scatter writes the masks of the n gathered hashes back to their places.
func (s *Set) scatter(masks []uint64, n int, slots uint64) {
	w := &s.work
	maybe := 0
	for i := range n {
		m := w.mask[i]
		masks[w.from[i]] = m
		maybe += bits.OnesCount64(m & slots)
	}
	s.probes.FilterMaybe += uint64(maybe)
}

// nonzero is 1 for every x but 0, without a branch.
func nonzero(x uint64) uint64 { return (x | -x) >> 63 }
