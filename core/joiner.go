package core

import (
	"joinbench/buckets"
	"joinbench/fusefilter"
)

// Joiner is what stands behind the engine: it holds the A of its part of the keys and answers its B. Task is one, on
// RocksDB; package baseline has others, so that what people would use instead meets the same gate, the same routing, the
// same order of commits and the same sink, and counts with the same TaskStats.
//
// The engine calls it batch by batch, one goroutine at a time, in this order: Begin, Store, Ask, Release, Found; while any joiner
// has More, GoOn and Found again; then Undo, or Commit and Maintain. All A of a batch are stored before its B ask (rules 2 and 12 are the gate's part), and
// rows of epochs below the floor of the last Maintain do not come any more. It may refer to chunks until the next Begin.
type Joiner interface {
	// Begin forgets the results of the last batch.
	Begin()
	// Store takes A, each with a key and a time.
	Store(a []Rows) error
	// Ask pairs B in their order, each with the A that rule 2 names.
	Ask(b []Rows) error
	// Release lets go what is over by time: A below the limits that never paired, if Config.WantA or Early want them.
	Release(by [2]Limits) error
	// Found is what the batch gave, or the next part of it; valid until the next Begin or GoOn.
	Found() Found
	// More says that Found is not all, and GoOn forgets it and finds the next part, which may be nothing.
	More() bool
	GoOn() error
	// Undo goes back to the last commit.
	Undo()
	// Changes appends what the batch did to the joiner's state; which task it is, the engine adds. The bytes are valid until
	// Commit or Undo, and nothing of the batch may come between.
	Changes(dst []Change) ([]Change, error)
	// Apply does, between Begin and Commit or Undo, what Changes of another joiner of this task said. By are the limits that
	// the batch let go by (Release); what it put out does not come out again.
	Apply(changes []Change, by [2]Limits) error
	// Commit makes the batch n last, with the commit record if it is not nil.
	Commit(n uint64, record []byte) error
	// WriteCommit keeps the commit record of several joiners. Only the first one's is called, after each has committed.
	WriteCommit(record []byte) error
	// Maintain comes between batches: buckets that are over go, those that take no more events may be sealed.
	Maintain(to [2]Bounds) error
	// Quiesce waits for what runs beside the batches and takes it in.
	Quiesce() error
	// MarkDrained says that the state is not to be resumed (rule 15). Only the first one's is called.
	MarkDrained() error
	// Close ends it. After a commit that failed nothing more may be written.
	Close(failed bool) error
	// Stats counts from the beginning. Its times are those of this joiner's part of the batches.
	Stats() *TaskStats
	// Levels are what it holds now; with deep also what costs a question to the system. Watermarks and Batch are left out.
	Levels(deep bool) Levels
	// Drops lists the buckets that went.
	Drops() []Drop
}

// Rows are rows of one chunk, in order.
type Rows = slice

// NewRows are rows of a chunk by number, ascending.
func NewRows(c *Chunk, index []uint32) Rows { return slice{chunk: c, rows: index} }

// Chunk is the chunk that the rows are of.
func (s slice) Chunk() *Chunk { return s.chunk }

// Index lists the numbers of the rows.
func (s slice) Index() []uint32 { return s.rows }

// Found is what one joiner found in one batch, or in a part of it. Matches and UnmatchedB are in the order of the B.
type Found struct {
	Matches    []Match
	Groups     []Group
	UnmatchedB []Ref
	Early      [][]byte // entries
	UnmatchedA [][]byte // entries
	WaitedB    [][]byte // entries of B that waited in vain
}

// NewMatch is the pair of an entry and the B at a position of its batch: the first row that Ask was given has position 0.
func NewMatch(b Ref, pos uint32, entry []byte) Match { return Match{Ref: b, pos: pos, Entry: entry} }

// taskJoiner is a Task as a Joiner.
type taskJoiner struct{ *Task }

func (t taskJoiner) Begin()                               { t.begin() }
func (t taskJoiner) Store(a []Rows) error                 { return t.store(a) }
func (t taskJoiner) Ask(b []Rows) error                   { return t.ask(b) }
func (t taskJoiner) More() bool                           { return t.more() }
func (t taskJoiner) GoOn() error                          { return t.goOn() }
func (t taskJoiner) Undo()                                { t.undo() }
func (t taskJoiner) Commit(n uint64, record []byte) error { return t.commit(n, record) }
func (t taskJoiner) WriteCommit(record []byte) error      { return t.ring.WriteCommit(record) }
func (t taskJoiner) Maintain(to [2]Bounds) error          { return t.maintain(to[A]) }
func (t taskJoiner) MarkDrained() error                   { return t.ring.MarkDrained() }
func (t taskJoiner) Stats() *TaskStats                    { return t.stats }
func (t taskJoiner) Drops() []Drop                        { return t.drops }

// Found implements Joiner.
func (t taskJoiner) Found() Found {
	f := Found{Matches: t.matches, UnmatchedB: t.inVain, Early: t.rel.early, UnmatchedA: t.rel.closed}
	if t.groups != nil {
		f.Groups = t.groups.found()
	}
	return f
}

// Changes implements Joiner.
func (t taskJoiner) Changes(dst []Change) ([]Change, error) { return t.changes(dst), nil }

// Apply implements Joiner.
func (t taskJoiner) Apply(changes []Change, by [2]Limits) error {
	t.releasesBelow(by[A])
	if err := t.apply(changes); err != nil {
		return err
	}
	t.fillIndexes(t.ring)
	if t.groups != nil {
		t.groups.fillIndexes(t.groups.ring)
	}
	return nil
}

// Release implements Joiner.
func (t taskJoiner) Release(by [2]Limits) error {
	t.releaseBelow(by[A])
	return t.releaseDue()
}

// Quiesce implements Joiner: a seal that is taken in may allow the next.
func (t taskJoiner) Quiesce() error {
	for {
		if err := t.collect(true); err != nil || !t.startSeals() {
			return err
		}
	}
}

// Close implements Joiner. After a commit that failed it leaves out what the helper did: a seal that is taken in writes
// the bitmaps as they are, and these may hold a batch that is not in the commit record (decision 6).
func (t taskJoiner) Close(failed bool) error {
	if failed {
		return t.abandon()
	}
	return t.shutdown()
}

// Levels implements Joiner.
func (t taskJoiner) Levels(deep bool) Levels {
	l := Levels{Pending: t.ring.Pending(), FilterBytes: t.set.Bytes(), ArenaBytes: t.ring.ArenaBytes()}
	for slot := range t.cfg.Slots {
		b := t.ring.AtSlot(slot)
		switch {
		case b == nil:
		case b.State() == buckets.Sealed:
			l.Sealed++
			l.SealedRows += int(b.Entries())
			if t.cfg.Filter.InRAM() && t.set.State(slot) == fusefilter.Maybe {
				l.Unfiltered++
			}
		default:
			l.Open++
		}
	}
	l.IndexBytes = t.bytes() + int(t.freshBytes())
	if t.groups != nil {
		l.IndexBytes += t.groups.bytes()
		l.ArenaBytes += t.groups.ring.ArenaBytes()
	}
	if t.help.seals > 0 || t.lanesBusy {
		l.Rotating++
	}
	if deep {
		l.StoreBytes, l.DiskBytes = t.ring.MemoryBytes(), t.ring.DiskBytes() // of all rings of the task
	}
	return l
}
