package pipeline

import (
	"sync"
	"time"

	"joinbench/core"
	"joinbench/results"
)

// ServeState is what a unit does.
type ServeState string

// The states, in the order of a life.
const (
	Starting  ServeState = "starting"  // topics, group, transactional id
	Restoring ServeState = "restoring" // the changelog's tail is applied
	Running   ServeState = "running"
	Draining  ServeState = "draining" // running to an end
	Stopped   ServeState = "stopped"
)

// Status is how a Serve goes, for whoever asks from any goroutine. The zero value is ready.
type Status struct {
	mu   sync.Mutex
	snap ServeSnapshot
}

// ServeSnapshot is a Status at one moment.
type ServeSnapshot struct {
	State    ServeState
	Since    time.Time // of the state
	Counters results.Counters
	Levels   core.Levels
	Batch    uint64
	Batches  uint64    // of this life
	LastAt   time.Time // when the last batch was kept
	Aborted  uint64    // batches that were undone
	DataLoss int64     // records that were gone before they were read
	// Places are where each partition is read on, by side and partition.
	Places [2][]int64
	// RestoreAt and RestoreEnd are offsets of the changelog: how far restoring is.
	RestoreAt, RestoreEnd int64
	LastError             string
	LastErrorAt           time.Time
}

// Snapshot is the status now.
func (s *Status) Snapshot() ServeSnapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := s.snap
	for i, p := range snap.Places {
		snap.Places[i] = append([]int64(nil), p...)
	}
	return snap
}

func (s *Status) change(fn func(*ServeSnapshot)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn(&s.snap)
}

func (s *Status) set(state ServeState) {
	s.change(func(n *ServeSnapshot) { n.State, n.Since = state, time.Now() })
}

func (s *Status) failed(err error) {
	s.change(func(n *ServeSnapshot) { n.LastError, n.LastErrorAt = err.Error(), time.Now() })
}

func (s *Status) aborted(err error) {
	s.failed(err)
	s.change(func(n *ServeSnapshot) { n.Aborted++ })
}

func (s *Status) lostRecords(n int64) { s.change(func(snap *ServeSnapshot) { snap.DataLoss += n }) }

func (s *Status) ended(err error) {
	if err != nil {
		s.failed(err)
	}
	s.set(Stopped)
}

// copy takes everything the engine knows. Engine's goroutine, between batches.
func (s *Status) copy(u *unit) {
	e := u.state.engine
	c, l := u.counters(), e.Levels(false)
	s.change(func(n *ServeSnapshot) {
		n.Counters, n.Levels, n.Batch, n.LastAt = c, l, e.Batch(), time.Now()
		for side := range n.Places {
			n.Places[side] = n.Places[side][:0]
			for i := range u.sink.parts[side] {
				n.Places[side] = append(n.Places[side], e.Place(core.Side(side), i))
			}
		}
	})
}
