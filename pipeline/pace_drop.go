package pipeline

import (
	"bytes"
	"slices"

	"joinbench/loadgen"
)

// skippedPairs are what B that were dropped leave of the truth: their pairs are not expected. One-to-one, a later B with the
// key of one that was dropped may pair in its place; that is right, but not demanded.
type skippedPairs struct {
	gen     *loadgen.Gen
	many    bool            // one-to-many
	list    []int64         // B with a partner, rising
	free    map[int64]int64 // one-to-one: B by A
	excused []int64         // B that paired instead
}

func newSkippedPairs(gen *loadgen.Gen) *skippedPairs {
	return &skippedPairs{gen: gen, many: gen.Config().OneToMany, free: map[int64]int64{}}
}

// add takes in that B from lo to hi-1 were dropped.
func (s *skippedPairs) add(lo, hi int64) {
	for j := lo; j < hi; j++ {
		i, ok := s.gen.Expected(j)
		if !ok {
			continue
		}
		s.list = append(s.list, j)
		if !s.many {
			s.free[i] = j
		}
	}
}

// excuses says whether B j may pair with A i because the B before it was dropped; once for each A.
func (s *skippedPairs) excuses(j, i int64) bool {
	first, ok := s.free[i]
	if !ok || j <= first || s.gen.KindB(j) != loadgen.KindDuplicate ||
		!bytes.Equal(s.gen.AppendBKey(nil, j), s.gen.AppendAKey(nil, i)) {
		return false
	}
	delete(s.free, i)
	s.excused = append(s.excused, j)
	return true
}

// below is how many pairs fewer are expected of the B below n.
func (s *skippedPairs) below(n int64) int64 {
	k, _ := slices.BinarySearch(s.list, n)
	return int64(k)
}

// excusedBelow is how many B below n paired instead.
func (s *skippedPairs) excusedBelow(n int64) (count int64) {
	for _, j := range s.excused {
		if j < n {
			count++
		}
	}
	return count
}
