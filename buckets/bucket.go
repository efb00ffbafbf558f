package buckets

// State of a bucket.
type State uint8

// Open takes entries; Sealing takes none and still answers from RAM; Sealed answers from its runs alone.
const (
	Open State = iota
	Sealing
	Sealed
)

// Bucket is one slice of event time. All methods are for the task's goroutine.
//
// Its rows, counted from 0 as they came, lie in up to three places: the first in runs (tables, each in a family of its
// own), then those that are being written as the next run, then the arena. Most buckets have one run, made when they
// are sealed; an open one is spilled to runs when memory is short.
type Bucket struct {
	Epoch int64 // floor(time / width)
	Slot  int   // Epoch modulo the ring's slots: its bit in masks

	state State
	gone  bool // dropped while a run was being written
	pool  *chunkPool
	arena arena
	base  uint32   // row of the arena's first
	part  *writing // being written as a run; nil when nothing is
	runs  []run
	done  uint32 // rows below are in runs, or were over before these were written
	upTo  uint64 // rows that batches up to this one appended are below done
	rows  uint32 // rows ever appended, so the next row's number
	live  int    // rows that are not over
	keep  bool   // Options.KeepUsed
	used  bitmap // has all rows
	ended bitmap // with keep alone; nil until the first End

	first     uint64    // batch of the arena's first row: the journal is needed from here
	mark      arenaMark // state at the last commit
	log       []uint32  // rows used since then
	endLog    []uint32  // rows ended since then
	touched   bool      // in the ring's list of this batch
	bitsDirty bool      // bitmaps differ from the checkpointed ones
}

// run is one table of a bucket, in a family of its own.
type run struct {
	family Family
	stats  RunStats
}

// writing is the rows that a SealJob writes. They answer from RAM until it is finished.
type writing struct {
	arena arena
	base  uint32 // row of the arena's first
	first uint64 // batch of that row
	upTo  uint64 // and the last batch that appended one
}

// State says whether the bucket takes entries, and whether it answers from RAM.
func (b *Bucket) State() State { return b.state }

// Rows is the number of entries that ever entered.
func (b *Bucket) Rows() int { return int(b.rows) }

// Live is the number of rows that are not over: that no B used, or with KeepUsed that none ended.
func (b *Bucket) Live() int { return b.live }

// Runs is the number of tables that hold rows of the bucket: a lookup asks each of them.
func (b *Bucket) Runs() int { return len(b.runs) }

// Empty says that a bucket has no run. If it is sealed, everything in it was over while it was open.
func (b *Bucket) Empty() bool { return len(b.runs) == 0 }

// Entries is the number of rows in the runs, used ones too.
func (b *Bucket) Entries() (n int64) {
	for _, r := range b.runs {
		n += r.stats.Entries
	}
	return n
}

// Bytes is the size of the runs' files.
func (b *Bucket) Bytes() (n int64) {
	for _, r := range b.runs {
		n += r.stats.Bytes
	}
	return n
}

// ArenaBytes is what the bucket holds in RAM: its rows until a run has them, and its bitmaps.
func (b *Bucket) ArenaBytes() int64 {
	n := b.arena.size() + int64(cap(b.used)+cap(b.ended))*8
	if b.part != nil {
		n += b.part.arena.size()
	}
	return n
}

// OpenBytes is how much of it the rows take that no run has and no job is writing: what a spill would free.
func (b *Bucket) OpenBytes() int64 { return b.arena.filled() }

// PartBytes is how much of it the rows take that a job is writing.
func (b *Bucket) PartBytes() int64 {
	if b.part == nil {
		return 0
	}
	return b.part.arena.filled()
}

// Writing says that a job is writing a run of the bucket. There is one at a time.
func (b *Bucket) Writing() bool { return b.part != nil }

// Entry returns a row that is in no run yet; valid until the next FinishSeal.
func (b *Bucket) Entry(row uint32) []byte {
	if row < b.base {
		return b.part.arena.entry(row - b.part.base)
	}
	return b.arena.entry(row - b.base)
}

// Touch reads a little of a row that Entry may be asked for, and gives back a sum of it: reads of several rows overlap.
func (b *Bucket) Touch(row uint32) byte {
	if row < b.base {
		return b.part.arena.touch(row - b.part.base)
	}
	return b.arena.touch(row - b.base)
}

// InRuns is how many of its rows are in runs, used ones too: rows from here on are in RAM.
func (b *Bucket) InRuns() uint32 { return b.done }

// Base is the row of the arena's first: Hashes()[i] is that of row Base()+i.
func (b *Bucket) Base() uint32 { return b.base }

// Hashes are those of the rows in the arena; read only.
func (b *Bucket) Hashes() []uint64 { return b.arena.hashes }

// CommittedRows is how many rows in the arena the last commit had: what Undo would leave.
func (b *Bucket) CommittedRows() int {
	if b.touched {
		return b.mark.rows
	}
	return b.arena.rows()
}

// Used says whether a row was used: a pair took it.
func (b *Bucket) Used(row uint32) bool { return b.used[row>>6]&(1<<(row&63)) != 0 }

// Ended says whether a row is over: with KeepUsed one that was ended, else one that was used. It answers no B any more.
func (b *Bucket) Ended(row uint32) bool { return b.over().has(row) }

// over has the rows that neither wait nor answer any more: what a seal leaves out.
func (b *Bucket) over() bitmap {
	if b.keep {
		return b.ended
	}
	return b.used
}

// freeze sets the arena's rows, which batches up to upTo appended, apart for a job to write, and starts a new arena.
func (b *Bucket) freeze(upTo uint64) {
	b.part = &writing{arena: b.arena, base: b.base, first: b.first, upTo: upTo}
	b.arena, b.base, b.first = arena{pool: b.pool}, b.rows, 0
}

// needs is the first batch whose journal record holds rows that no run has; 0 when there is none.
func (b *Bucket) needs() uint64 {
	if b.part != nil && b.part.first != 0 {
		return b.part.first
	}
	return b.first
}
