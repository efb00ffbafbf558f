package core

import (
	"context"
	"errors"
	"time"

	"joinbench/buckets"
	"joinbench/fusefilter"
)

// Side of the join.
type Side uint8

// The two sides: A waits, B asks.
const (
	A Side = iota
	B
)

// String is "a" or "b".
func (s Side) String() string { return string("ab"[s]) }

// Fate is what became of a record (rule 9: one for each).
type Fate uint8

// The fates. Decoding gives the first five, the gate the others.
const (
	Accepted Fate = iota
	NullKey
	BadKey
	Malformed
	BadTime
	Late
	LateIdle
	Redelivered
	fates
)

var fateNames = [fates]string{"accepted", "null_key", "bad_key", "malformed", "bad_time", "late", "late_idle", "redelivered"}

// String is the name of the counter.
func (f Fate) String() string { return fateNames[f] }

// Chunk is decoded records of one partition, in order, in flat arrays of N rows. Keys of row i are
// Keys[KeyOff[i]:KeyOff[i+1]], bodies likewise, so both offset arrays have N+1 elements. Place[i] is where the source
// can take up reading so that row i comes next; it has N+1 elements too.
type Chunk struct {
	Side      Side
	Part      int   // index of the partition in its side
	Partition int32 // its number
	N         int
	Fate      []Fate
	Time      []int64 // ms; of Accepted and NullKey
	Offset    []int64
	Place     []int64
	Keys      []byte // type-tagged join keys
	KeyOff    []uint32
	Body      []byte
	BodyOff   []uint32
	// Flags of the rows, for joins that need them; empty: none.
	Flags []RowFlags
	// Wanted is how many B complete the group of an A (rule 19, collect: {count: …}), 0 if that is no whole number from 1 to
	// MaxWanted; nil: there are no counts.
	Wanted []uint32

	// elsewhere is the gate's: by row, the epoch of the bucket in which an A waits that is not that of its time (rule 8); nil: none
	// does.
	elsewhere map[uint32]int64

	Owner any // the source's own
}

// RowFlags say what a decoder saw in a record beside key, time and body.
type RowFlags uint8

// What a B may say.
const (
	// Ends: the field of complete_on has its value (rule 18).
	Ends RowFlags = 1 << iota
	// Marks: the field of collect: {marker: …} has its value (rule 19).
	Marks
	// over is the gate's: every event of the other side that is still to come is too late for this one, which asks and does not
	// wait.
	over
)

// flag sets a flag of a row.
func (c *Chunk) flag(row uint32, f RowFlags) {
	if len(c.Flags) == 0 {
		c.Flags = append(c.Flags, make([]RowFlags, c.N)...)
	}
	c.Flags[row] |= f
}

// setElsewhere says in which bucket a row waits.
func (c *Chunk) setElsewhere(row uint32, epoch int64) {
	if c.elsewhere == nil {
		c.elsewhere = map[uint32]int64{}
	}
	c.elsewhere[row] = epoch
}

// epochOf is the epoch of the bucket in which a row waits.
func (c *Chunk) epochOf(row uint32, width int64) int64 {
	if c.elsewhere != nil {
		if e, ok := c.elsewhere[row]; ok {
			return e
		}
	}
	return buckets.EpochOf(c.Time[row], width)
}

// FlagsOf are the flags of a row.
func (c *Chunk) FlagsOf(row uint32) RowFlags {
	if len(c.Flags) == 0 {
		return 0
	}
	return c.Flags[row]
}

// Key is the type-tagged key of a row.
func (c *Chunk) Key(row uint32) []byte { return c.Keys[c.KeyOff[row]:c.KeyOff[row+1]] }

// BodyOf is the body of a row.
func (c *Chunk) BodyOf(row uint32) []byte { return c.Body[c.BodyOff[row]:c.BodyOff[row+1]] }

// Partition describes one input partition.
type Partition struct {
	ID       int32
	Timeless bool // holds what has no partition (damaged lines): left out of the watermarks
}

// Source hands over the records. Next is called by the engine's goroutine.
type Source interface {
	// Partitions of a side: all are known from the start.
	Partitions(side Side) []Partition
	// Start says where reading begins: place 0 is the beginning, others are what a chunk's Place said. It comes again, between
	// batches and for every partition, when the engine goes back (Engine.Rewind) or has taken over batches (Engine.Apply): what
	// was read ahead is forgotten then, and chunks that were handed out do not come back by Done.
	Start(side Side, part int, place int64) error
	// Next returns the next chunk with at least one row, or nil when the partition has ended.
	Next(side Side, part int) (*Chunk, error)
	// Done gives a chunk back: all of its rows are committed.
	Done(c *Chunk)
}

// ErrNotYet is what Next of a LiveSource answers for a partition that has no record now and is not at its end.
var ErrNotYet = errors.New("no record yet")

// LiveSource is a Source whose records come by and by: its Next does not wait, but answers ErrNotYet.
type LiveSource interface {
	Source
	// Await is called by the engine's goroutine before each batch. Idle says that the last one found no record: then it
	// returns when a partition for which Next answered ErrNotYet has one, has ended, or has failed. It returns the
	// context's error once that is done.
	// After most, unless that is negative, it returns whatever there is: time alone may let something go (rules 7 and 15), and a
	// batch that was full is not a reason to wait.
	Await(ctx context.Context, idle bool, most time.Duration) error
}

// Ref is one row of a chunk.
type Ref struct {
	Chunk *Chunk
	Row   uint32
}

// Reject is a record that takes no part, and why.
type Reject struct {
	Ref
	Fate Fate
	M    int64 // M(p) of its partition when its turn came (rule 7)
}

// Match is a pair: the event that asked, which is a B unless B wait (ProbeWait), and the stored entry (buckets.ParseEntry)
// of the other side.
type Match struct {
	Ref
	pos   uint32 // order of the asking event in its batch
	Kind  MatchKind
	Entry []byte
}

// MatchKind says what comes out of a match beside a plain pair, or in its place; in this order.
type MatchKind uint8

// The kinds.
const (
	// NullFirst: the null row of Entry (rule 17), which did not come before.
	NullFirst MatchKind = 1 << iota
	// Tombstone: one for the null row of Entry that came before (retract).
	Tombstone
	// Corrected: the pair says that it corrects a null row.
	Corrected
	// NullOnly: the null row of Entry as its end and no pair (complete_on with emit: unmatched).
	NullOnly
)

// Group is one A with all the B that it collected (rule 19).
type Group struct {
	Kind     MatchKind // NullFirst, Tombstone and Corrected, as of a pair
	Complete bool
	Wanted   uint32   // as Chunk.Wanted
	A        []byte   // entry
	B        [][]byte // entries, in the order (time, partition, offset); at least one
}

// Output is what one batch has to say, or a part of it: a batch with more than MaxMatches pairs comes in several parts,
// and the lists after Groups are in the last of them. Everything in it is valid until the sink returns.
type Output struct {
	Matches []Match
	Groups  []Group  // complete ones first, then those that closed
	Early   [][]byte // A whose null row comes out early, by time (rule 17)

	Rejects  []Reject
	NullKeys []Reject // counted, and emitted unmatched by joins that do

	// Events that closed without a partner, if wanted (Config.WantA, WantB), each once (rule 16): B that asked in vain and
	// do not wait, and entries of A and of waiting B.
	UnmatchedB []Ref
	UnmatchedA [][]byte
	WaitedB    [][]byte
}

// Sink takes the results. Its methods are called by the engine's goroutine.
type Sink interface {
	// Restore is called before anything else with what State had added to the last commit record, nil in a new state: the
	// sink goes back to it. It is called again when the engine goes back, or has taken over batches (as Source.Start), and then
	// what was added may be of a later batch than any that this sink has seen.
	Restore(state []byte) error
	// Results of one batch, before it is committed.
	Results(out *Output) error
	// State appends to the commit record what Restore needs to go back to this batch. It first makes sure that what
	// Results wrote has left the process.
	State(dst []byte) ([]byte, error)
}

// Syncer is a Sink that can make what it wrote up to the last State outlive a power cut. Sync is called before the log
// is synced that says so: with sync: batch by the engine, else beside it by a helper, once at a time.
type Syncer interface{ Sync() error }

// Cardinality of the join (rule 2).
type Cardinality uint8

// The cardinalities.
const (
	OneToOne Cardinality = iota
	OneToMany
	ManyToMany
)

// Probe says when a B asks (rule 12).
type Probe uint8

// The ways: when every A that could match has come; at once, and then it waits; at once and never again.
const (
	ProbeAligned Probe = iota
	ProbeWait
	ProbeImmediate
)

// Collect says when the group of an A comes out (rule 19).
type Collect uint8

// The ways: no groups; at the close; with the nth B; with a marker.
const (
	CollectEager Collect = iota
	CollectTimeout
	CollectCount
	CollectMarker
)

// Ending says what a B that ends its A gives (rule 18, complete_on.emit).
type Ending uint8

// The endings: there is no such B; the last pair; the null row unless the A has paired; neither.
const (
	EndNever Ending = iota
	EndPair
	EndUnmatched
	EndNothing
)

// MaxWanted is the largest count that closes a group (rule 19).
const MaxWanted = 999_999

// MaxMatches is about how many pairs an Output has at most: 50 bytes each. A hot key streams (rule 20).
const MaxMatches = 1 << 16

// Config is the join's own part of the configuration; times in ms.
type Config struct {
	Before, After int64 // tA-Before <= tB <= tA+After
	Grace         int64
	MaxSpread     int64
	Width         int64
	Slots         int
	Cardinality   Cardinality
	Probe         Probe
	Collect       Collect
	CompleteOn    Ending
	Early         int64 // null rows of A so long after their time (rule 17); 0: off
	Retract       bool
	MaxPending    int64 // entries that may wait (rule 20); 0: no limit
	Filter        fusefilter.Kind
	Summary       bool // filters of sealed buckets become lanes, which one look answers for
	BatchSize     int
	WantA, WantB  bool // fill Output.UnmatchedA; UnmatchedB and WaitedB
	// NoBodies has A wait without their bodies: the entries of A that come out have none, or the one that an earlier run stored,
	// and whoever prints them gets the bodies again. A that come out without having waited have theirs.
	NoBodies bool
	// IdleTimeout leaves a partition of a LiveSource out of its side's watermark that has had nothing to read for so long (rule 7);
	// IdleAdvance lets time go on with the wall clock, so far behind, when both sides have been quiet for so long (rule 15). 0: off.
	IdleTimeout, IdleAdvance int64
	// Now is the clock they are measured by, in ms from any moment; nil: the system's monotonic clock. Engine's goroutine.
	Now   func() int64
	Drain bool // partitions that have ended are left out, and the end closes everything (rule 15)
	// Inline runs the helper's jobs in the task's own goroutine, so that every run swaps at the same batch.
	Inline bool
	// SwapAfter, if not 0, has what the helper does taken in exactly so many batches after it was asked for, which is
	// waited for: every run swaps at the same batches, and counts the same.
	SwapAfter int
	// Hash replaces xxh3 (tests: weak and constant hashes must still give right joins).
	Hash func(key []byte) uint64
	// ArenaBytes is what the open buckets of one task may hold in RAM before the largest is spilled; 0: no limit.
	ArenaBytes int64
	// Watch, if set, is told what the results do not say.
	Watch Watcher
	// MaxOutput replaces MaxMatches (tests: outputs of a few matches must give the same joins); 0: MaxMatches.
	MaxOutput int
	// BuildFault, if set, is called before each filter is built; its error is the build's (tests).
	BuildFault func(kind fusefilter.Kind, keys int) error
}

// maxOutput is about how many matches an Output has at most.
func (c *Config) maxOutput() int {
	if c.MaxOutput > 0 {
		return c.MaxOutput
	}
	return MaxMatches
}
