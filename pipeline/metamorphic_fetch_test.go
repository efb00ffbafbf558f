package pipeline

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"joinbench/core"
)

// Ways in which records may arrive; files are read evenly.
const (
	fetchEvenly = "evenly"
	fetchA      = "a first"
	fetchB      = "b first"
	fetchRandom = "random"
	fetchBehind = "one behind" // one partition comes when nothing else is left
)

var metaFetches = []string{fetchEvenly, fetchA, fetchB, fetchRandom, fetchBehind}

// fetched is a feed whose chunks arrive one by one in a certain order. It is a core.LiveSource: what has not arrived is not
// there yet, and the engine goes on with what is.
type fetched struct {
	*feed
	order string
	rng   *rand.Rand
	// By side and partition: chunks that have arrived and were not taken, and whether all were.
	waiting [2][]int
	ended   [2][]bool
	behind  fetchPart // that of fetchBehind
}

type fetchPart struct {
	side core.Side
	part int
}

// newFetched has the chunks of a feed, of at most size records, arrive in an order.
func newFetched(f *feed, order string, size int, rng *rand.Rand) *fetched {
	f.size = size
	s := &fetched{feed: f, order: order, rng: rng}
	var all []fetchPart
	for side := range s.waiting {
		s.waiting[side], s.ended[side] = make([]int, len(f.parts[side])), make([]bool, len(f.parts[side]))
		for part := range f.parts[side] {
			all = append(all, fetchPart{core.Side(side), part})
		}
	}
	if len(all) > 0 {
		s.behind = pickOf(rng, all)
	}
	return s
}

// Next implements core.Source.
func (s *fetched) Next(side core.Side, part int) (*core.Chunk, error) {
	if s.waiting[side][part] == 0 {
		return nil, core.ErrNotYet
	}
	s.waiting[side][part]--
	c, err := s.feed.Next(side, part)
	if s.ended[side][part] = c == nil && err == nil; s.ended[side][part] {
		s.waiting[side][part] = 1 // the end may be asked for again
	}
	return c, err
}

var errStarved = errors.New("the engine waits, and everything has arrived")

// Await implements core.LiveSource: one more chunk arrives, or the end of a partition. As long as the engine finds something
// to do, it is of those whose turn it is.
func (s *fetched) Await(ctx context.Context, idle bool, _ time.Duration) error {
	var first, then []fetchPart
	for side := range s.waiting {
		for part, n := range s.waiting[side] {
			switch p := (fetchPart{core.Side(side), part}); {
			case n > 0:
			case s.turn(p):
				first = append(first, p)
			default:
				then = append(then, p)
			}
		}
	}
	if len(first) == 0 && (idle || s.over()) {
		first = then
	}
	switch {
	case len(first) > 0:
		p := pickOf(s.rng, first)
		s.waiting[p.side][p.part]++
	case idle && len(then) == 0:
		return errors.Join(ctx.Err(), errStarved)
	}
	return ctx.Err()
}

// turn says whether a partition is of those that come first.
func (s *fetched) turn(p fetchPart) bool {
	switch s.order {
	case fetchA:
		return p.side == core.A
	case fetchB:
		return p.side == core.B
	case fetchBehind:
		return p != s.behind
	}
	return true
}

// over says whether those that come first have ended.
func (s *fetched) over() bool {
	for side := range s.ended {
		for part, ended := range s.ended[side] {
			if !ended && s.turn(fetchPart{core.Side(side), part}) {
				return false
			}
		}
	}
	return true
}
