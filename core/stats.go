package core

import (
	"encoding/binary"
	"fmt"
	"time"
)

// TaskStats is what a task counted since it was made. Snapshots may be taken between batches.
type TaskStats struct {
	Stored uint64 // A rows put into buckets
	Probes uint64 // B that asked
	// Lookups are point reads. Present: B for whose hash some sealed bucket that was asked has a row, used or not.
	Lookups, Present uint64

	// The filters' books, over B that asked at least one sealed bucket while all of those had their filter. Absent:
	// none of the buckets has the hash. FalsePositives: of those, B that led to a lookup all the same.
	Absent, FalsePositives uint64
	Stale                  uint64  // B that found only used rows
	FilterQueries          uint64  // buckets consulted, summed over B
	FilterFalse            uint64  // of those, wrong maybes
	Queries                uint64  // B consulted
	Predicted              float64 // sum over B of the probability of a false positive

	SealedTotal, DroppedTotal uint64
	FiltersBuilt, BuildFailed uint64
	FiltersRebuilt            uint64        // of these, to leave used rows out
	Spills                    uint64        // runs written before their bucket was sealed
	FilterKeys                uint64        // keys of all filters built
	FilterBytes               uint64        // bytes of all filters built
	BuildTime                 time.Duration // of filters
	DropMax                   time.Duration
	StoreTime, AskTime        time.Duration // of the task's goroutine; commits are shared out by bytes
	HelperTime                time.Duration // of the helper's
}

// consult books n B that asked the sealed buckets of one window.
func (s *TaskStats) consult(w *window, n int) {
	if w.consulted == 0 || n == 0 {
		return
	}
	s.Queries += uint64(n)
	s.Absent += uint64(n) // those that turn out present are taken off again
	s.FilterQueries += uint64(n) * uint64(w.consulted)
	s.Predicted += float64(n) * w.predicted
}

// add sums the stats of tasks; DropMax is the greatest.
func (s *TaskStats) add(o *TaskStats) {
	s.Stored += o.Stored
	s.Probes += o.Probes
	s.Lookups += o.Lookups
	s.Present += o.Present
	s.Absent += o.Absent
	s.FalsePositives += o.FalsePositives
	s.Stale += o.Stale
	s.FilterQueries += o.FilterQueries
	s.FilterFalse += o.FilterFalse
	s.Queries += o.Queries
	s.Predicted += o.Predicted
	s.SealedTotal += o.SealedTotal
	s.DroppedTotal += o.DroppedTotal
	s.FiltersBuilt += o.FiltersBuilt
	s.BuildFailed += o.BuildFailed
	s.FiltersRebuilt += o.FiltersRebuilt
	s.Spills += o.Spills
	s.FilterKeys += o.FilterKeys
	s.FilterBytes += o.FilterBytes
	s.BuildTime += o.BuildTime
	s.DropMax = max(s.DropMax, o.DropMax)
	s.StoreTime += o.StoreTime
	s.AskTime += o.AskTime
	s.HelperTime += o.HelperTime
}

// Counters are what the join did, over its whole life: a resumed run goes on counting.
type Counters struct {
	Fates  [2][fates]uint64 // records by side and fate; their sum over the fates is read
	Behind [2]uint64
	// Matches are pairs; UnmatchedA and UnmatchedB events without a partner that were handed over, if wanted.
	Matches, UnmatchedA, UnmatchedB uint64
	// Early are null rows that came before their A closed, Corrected pairs and groups that say they correct one, Retracted
	// the tombstones for such rows (rule 17).
	Early, Corrected, Retracted uint64
	Tasks                       TaskStats
}

// Read is the number of records of a side that were read.
func (c *Counters) Read(s Side) uint64 {
	var n uint64
	for _, v := range c.Fates[s] {
		n += v
	}
	return n
}

func (c *Counters) append(dst []byte) []byte {
	out, err := binary.Append(dst, binary.LittleEndian, c)
	if err != nil {
		panic(err) // only if a field is not of fixed size: the first test that commits fails
	}
	return out
}

func (c *Counters) decode(b []byte) (rest []byte, err error) {
	n, err := binary.Decode(b, binary.LittleEndian, c)
	if err != nil {
		return nil, fmt.Errorf("counters: %w", err)
	}
	return b[n:], nil
}

// countGroups books groups: each B of one is a match.
func (c *Counters) countGroups(list []Group) {
	for i := range list {
		c.countKind(list[i].Kind, false)
		c.Matches += uint64(len(list[i].B))
	}
}

// countKind books what comes out beside a pair or in its place; an end without a pair is a null row if those are wanted.
func (c *Counters) countKind(k MatchKind, wantA bool) {
	if k&NullFirst != 0 {
		c.Early++
	}
	if k&Tombstone != 0 {
		c.Retracted++
	}
	if k&Corrected != 0 {
		c.Corrected++
	}
	if k&NullOnly != 0 {
		c.Matches--
		if wantA {
			c.UnmatchedA++
		}
	}
}
