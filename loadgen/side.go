package loadgen

// side is what A and B have in common: base times, disorder, and which records
// have a part in a pair and which are late.
type side struct {
	base0    int64  // base time of record 0, ms
	step     uint64 // distance of base times, ms·2^40
	parts    int64
	lanes    int64 // partitions whose records at one offset are matched or not as one; 1: each by itself
	disorder int64 // ms
	grace    int64
	matched  strata // of all records
	odd      strata // of the records that are not matched: those with something amiss
	late     strata // of the odd ones
	salt     uint64
	gone     *pairing // A with Steady: those whose B would come before B 0 are no records; else nil
}

// base returns the base time of record i: monotone in i.
func (s *side) base(i int64) int64 { return s.base0 + stepTime(uint64(i), s.step) }

// inTime returns the event time of record i as one that is in time: at most Disorder
// before its base time. No earlier record of its partition is ahead of the base time,
// so it is at most Disorder <= Grace/2 behind M(p).
func (s *side) inTime(i int64) int64 {
	t := s.base(i)
	if s.disorder > 0 {
		t -= int64(below(mix(uint64(i)^s.salt), uint64(s.disorder)+1))
	}
	return t
}

// maxAnchorSteps bounds the search for the record that a late one is late against.
const maxAnchorSteps = 32

// candidate says whether record i is one of those that shall be late. They are chosen
// from the unmatched, so a late record never takes a partner away.
func (s *side) candidate(i int64) bool {
	if s.odd.p == 0 {
		return false
	}
	n, matched := s.at(i)
	if matched {
		return false
	}
	n, odd := s.odd.at(n)
	if !odd {
		return false
	}
	_, late := s.late.at(n)
	return late
}

// anchor returns the last record before i in its partition that is no candidate. It is
// surely accepted, so its time is in M(p) when i is read. The first records of a
// partition have none, nor has one with too many left out before it.
func (s *side) anchor(i int64) (prev int64, ok bool) {
	for range maxAnchorSteps {
		if i -= s.parts; i < 0 {
			return 0, false
		}
		if !s.candidate(i) && !s.leftOut(i) {
			return i, true
		}
	}
	return 0, false
}

// lateTime returns the event time of a late record with the given anchor: more than
// Grace, at most 2·Grace+1 ms, behind the anchor's time.
func (s *side) lateTime(i, anchor int64) int64 {
	return s.inTime(anchor) - s.grace - 1 - int64(below(mix(^uint64(i)^s.salt), uint64(s.grace)+1))
}

// lateness says whether record i is late, and its event time in either case.
func (s *side) lateness(i int64) (t int64, late bool) {
	if s.candidate(i) {
		if a, ok := s.anchor(i); ok {
			return s.lateTime(i, a), true
		}
	}
	return s.inTime(i), false
}
