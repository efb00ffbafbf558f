package pipeline

import (
	"slices"
	"sync"
	"sync/atomic"
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
	busy atomic.Int64 // since when the engine is at a batch (ns); 0: it waits for records
	read uint64       // records that were read up to the last batch; the engine's
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
	Started  time.Time
	Tasks    int
	// Topics and Partitions are what is read, by side; Places where each partition is read on, Newest the greatest event time of each
	// (ms; negative: none), Ends where each ends for a reader, as of some seconds ago (negative: not known; nil: not asked yet).
	Topics               [2]string
	Partitions           [2][]int32
	Places, Newest, Ends [2][]int64
	// BusySince is since when the engine is at one batch; zero: it waits for records.
	BusySince time.Time
	// CommitTime is how long Kafka took for batches, in seconds; BatchRecords how many records they had.
	CommitTime, BatchRecords Histogram
	// RestoreAt and RestoreEnd are offsets of the changelog: how far restoring is.
	RestoreAt, RestoreEnd int64
	LastError             string
	LastErrorAt           time.Time
}

// Snapshot is the status now; the caller owns it.
func (s *Status) Snapshot() ServeSnapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := s.snap
	for _, of := range []*[2][]int64{&snap.Places, &snap.Newest, &snap.Ends} {
		for i := range of {
			of[i] = slices.Clone(of[i])
		}
	}
	snap.CommitTime, snap.BatchRecords = snap.CommitTime.clone(), snap.BatchRecords.clone()
	if at := s.busy.Load(); at != 0 {
		snap.BusySince = time.Unix(0, at)
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

// opened is told what is joined.
func (s *Status) opened(u *unit) {
	s.change(func(n *ServeSnapshot) {
		n.Started, n.Tasks = u.started, u.tasks
		for side := range u.topics {
			n.Topics[side], n.Partitions[side] = u.topics[side].Name, nil
			for _, p := range u.sink.parts[side] {
				n.Partitions[side] = append(n.Partitions[side], p.ID)
			}
		}
	})
}

// batch is told of each batch that was kept, by the engine's goroutine.
func (s *Status) batch(u *unit) {
	before := s.read
	s.copy(u)
	s.change(func(n *ServeSnapshot) {
		n.Batches++
		n.LastAt = time.Now()
		n.batchOf(int64(s.read - before))
	})
}

// copy takes everything the engine knows: some microseconds, where a batch takes a thousand or more. Engine's goroutine, between batches,
// or where none is at work.
func (s *Status) copy(u *unit) {
	e := u.state.engine
	c, l := u.counters(), e.Levels(false)
	s.read = uint64(c.A.Read + c.B.Read)
	s.change(func(n *ServeSnapshot) {
		n.Counters, n.Levels, n.Batch = c, l, e.Batch()
		for side := range n.Places {
			n.Places[side], n.Newest[side] = n.Places[side][:0], n.Newest[side][:0]
			for i := range u.sink.parts[side] {
				n.Places[side] = append(n.Places[side], e.Place(core.Side(side), i))
				n.Newest[side] = append(n.Newest[side], e.Newest(core.Side(side), i))
			}
		}
	})
}
