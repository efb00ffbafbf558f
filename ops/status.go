package ops

import (
	"math"
	"time"

	"joinbench/results"
)

// The states of a join, in the order of a life.
const (
	Starting  = "starting"  // topics, group, transactional id
	Restoring = "restoring" // what the state lacks comes from the changelog
	Running   = "running"
	Draining  = "draining" // running to an end
	Stopped   = "stopped"
)

// Status is how a join goes, at one moment. It is what /status shows, what /metrics is made of, and what the probes ask. Whoever
// makes one gives it away: nothing in it is changed afterwards. There is no secret in it.
type Status struct {
	State string    `json:"state"`          // starting | restoring | running | draining | stopped
	Since time.Time `json:"since,omitzero"` // of the state

	Version  string `json:"version"`
	RocksDB  string `json:"rocksdb"`
	Group    string `json:"group"`
	Delivery string `json:"delivery"`
	Tasks    int    `json:"tasks"`

	Started time.Time `json:"started,omitzero"` // this process's join
	UptimeS float64   `json:"uptime_s"`

	Batch       uint64    `json:"batch"`   // the last that is certain, counted since the state was made
	Batches     uint64    `json:"batches"` // in this process
	LastBatchAt time.Time `json:"last_batch_at,omitzero"`
	Aborted     uint64    `json:"aborted"`   // batches that were undone, in this process
	DataLoss    int64     `json:"data_loss"` // records that were deleted before they were read, in this process
	// BusyS is for how long the join has been at work without asking for more to read; 0: it waits for records.
	BusyS float64 `json:"busy_s"`

	Counters   results.Counters `json:"counters"` // since the state was made, as in --stats
	Levels     Levels           `json:"levels"`
	Watermarks Watermarks       `json:"watermarks"`
	Partitions []Partition      `json:"partitions"`
	Restore    Restore          `json:"restore"`

	LastError   string    `json:"last_error"` // "": none
	LastErrorAt time.Time `json:"last_error_at,omitzero"`

	// Not shown as they are; /metrics has them.
	CommitTime   Histogram `json:"-"` // seconds until Kafka had a batch
	BatchRecords Histogram `json:"-"`
}

// Levels is what is there now.
type Levels struct {
	PendingA        int64 `json:"pending_a"` // A that wait
	PendingB        int64 `json:"pending_b"`
	OpenBuckets     int64 `json:"open_buckets"`
	SealedBuckets   int64 `json:"sealed_buckets"`
	SealedRows      int64 `json:"sealed_rows"`
	UnfilteredCount int64 `json:"unfiltered_buckets"` // sealed, and asked without their filter, for it is being built
	FilterBytes     int64 `json:"filter_bytes"`
	IndexBytes      int64 `json:"index_bytes"`
	ArenaBytes      int64 `json:"arena_bytes"`
}

// Watermarks are event times in ms; null: the side has none yet.
type Watermarks struct {
	A *int64 `json:"a"`
	B *int64 `json:"b"`
}

// Partition is one of those that are read.
type Partition struct {
	Side      string `json:"side"` // a | b
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Position  int64  `json:"position"` // the next offset to read; what is before it is joined and committed
	End       *int64 `json:"end"`      // behind the last record that may be read, as of some seconds ago; null: not known
	Lag       *int64 `json:"lag"`      // End − Position: records, and markers of transactions
	Time      *int64 `json:"time"`     // the greatest event time, ms; null: none
}

// Restore is how far the state has caught up with the changelog, in offsets of it.
type Restore struct {
	Done int64 `json:"done"`
	All  int64 `json:"all"`
}

// Histogram is a count of values by size: Counts[i] are those of at most Bounds[i], each once; the last, of one more than Bounds, those
// above all.
type Histogram struct {
	Bounds []float64
	Counts []uint64
	Sum    float64
}

// Event is an event time of the engine as Watermarks and Partition have it: null if there is none, and at the end of a drain.
func Event(ms int64) *int64 {
	if ms < 0 || ms > math.MaxInt64/2 {
		return nil
	}
	return &ms
}

// Ready says whether the state is restored and records are joined.
func (s *Status) Ready() bool { return s.State == Running || s.State == Draining }

// Stuck says whether the join has been at one batch for longer than a limit. Waiting for records is not that; nor is a start, which
// waits for brokers as long as it takes.
func (s *Status) Stuck(limit time.Duration) bool {
	return s.Ready() && time.Duration(s.BusyS*float64(time.Second)) > limit
}
