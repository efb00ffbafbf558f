package pipeline

import (
	"bytes"
	"slices"

	"joinbench/core"
	"joinbench/loadgen"
)

// indexSpan are B from lo to hi-1.
type indexSpan struct{ lo, hi int64 }

// dropFrom drops B that find the queue full.
func (p *pacer) dropFrom(lo, hi int64) {
	p.dropped += hi - lo
	p.skipped.add(lo, hi)
	if k := len(p.gone); k > 0 && p.gone[k-1].hi == lo {
		p.gone[k-1].hi = hi
		return
	}
	p.gone = append(p.gone, indexSpan{lo, hi})
}

// skipDropped moves the partition past rows that were dropped.
func (p *pacer) skipDropped(q *pacedPart) {
	if !p.drop || q.side != core.B {
		return
	}
	for _, span := range p.gone {
		if i := q.index(q.chunk.Offset[q.at]); i < span.lo || i >= span.hi {
			continue
		}
		q.at += int(min(int64(q.chunk.N-q.at), q.below(span.hi)-q.chunk.Offset[q.at]))
		if q.at == q.chunk.N {
			p.discard(q)
			return
		}
	}
}

// untilDropped is how many of the next n rows come before the first that was dropped.
func (p *pacer) untilDropped(q *pacedPart, n int) int {
	next := q.chunk.Offset[q.at]
	for _, span := range p.gone {
		if lo := q.below(span.lo); lo > next {
			return int(min(int64(n), lo-next))
		}
	}
	return n
}

// forget removes the spans that every partition has passed.
func (p *pacer) forget() {
	low := int64(never)
	for _, q := range p.parts[core.B] {
		if !q.ended {
			low = min(low, q.index(q.recorded))
		}
	}
	n := 0
	for n < len(p.gone) && p.gone[n].hi <= low {
		n++
	}
	p.gone = slices.Delete(p.gone, 0, n)
}

// skippedPairs are what B that were dropped leave of the truth: their pairs are not expected. One-to-one, a later B with the
// key of one that was dropped may pair in its place; that is right, but not demanded.
type skippedPairs struct {
	gen     *loadgen.Gen
	many    bool            // one-to-many
	list    []int64         // B with a partner
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
