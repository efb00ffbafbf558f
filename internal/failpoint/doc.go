// Package failpoint has named places at which a test lets the process die or a step fail, so that crashes and errors
// hit each step of a commit, a seal and a drop on purpose and not by luck.
//
// Unarmed, Hit is one load: the points lie on steps that are taken once a batch or less. There are two ways to arm them:
//
//   - A test sets a function with Set; what it returns is the result of the step.
//   - A build with the tag `failpoints` reads the environment: JOINBENCH_FAILPOINT=journal.after=3 kills the process, as
//     kill -9 does, at the third Hit of that point (journal.after=3:stop stops it, until SIGCONT), and JOINBENCH_FAILPOINT_LOG names a file that gets a line for each Hit
//     of any point: its name and the time in ns. No other build looks at these variables.
package failpoint

import (
	"fmt"
	"sync/atomic"
)

// The points, in the order in which an event meets them.
const (
	JournalBefore = "journal.before" // a task's journal record is not written yet
	JournalAfter  = "journal.after"  // it is, and with one task the commit record too
	CommitBefore  = "commit.before"  // several tasks: all have journaled, the commit record is not written
	CommitAfter   = "commit.after"   // it is
	OutputBefore  = "output.before"  // results are computed, none of them has left the process
	OutputAfter   = "output.after"   // all have, nothing is committed
	SSTFinish     = "sst.finish"     // a run is a file, and in no family
	IngestBefore  = "ingest.before"  // the file is about to become a family
	IngestAfter   = "ingest.after"   // the family has the file, and no mark says so
	MarkBefore    = "mark.before"    // mark, bitmaps and journal cut are not written
	MarkAfter     = "mark.after"     // they are
	CutBefore     = "cut.before"     // the journal is about to be shortened between two seals
	CutAfter      = "cut.after"      // it has been
	FloorBefore   = "floor.before"   // a bucket is due to drop, its mark is still there
	FloorAfter    = "floor.after"    // the mark is gone, the family is there
	DropBefore    = "drop.before"    // the helper is about to drop the family
	DropAfter     = "drop.after"     // it has
)

// The points of serve, where a batch is certain when Kafka has it. JournalBefore comes after them, and JournalAfter before the last
// two.
const (
	KafkaOutputs         = "kafka.outputs"          // outputs are on their way, the changelog has nothing of the batch
	KafkaChangelogBefore = "kafka.changelog.before" // at least once: outputs are acknowledged
	KafkaChangelogAfter  = "kafka.changelog.after"  // the changelog has acknowledged the batch
	KafkaOffsets         = "kafka.offsets"          // exactly once: the transaction has no offsets yet
	KafkaEndBefore       = "kafka.end.before"       // it has, and is open
	KafkaEndAfter        = "kafka.end.after"        // it is committed, the state does not have the batch
	KafkaCommitBefore    = "kafka.commit.before"    // at least once: the state has the batch, the offsets are not committed
	KafkaCommitAfter     = "kafka.commit.after"     // they are
)

// Kafka lists the points of serve, in the order in which a batch meets them.
func Kafka() []string {
	return []string{KafkaOutputs, KafkaChangelogBefore, KafkaChangelogAfter, KafkaOffsets, KafkaEndBefore, KafkaEndAfter, KafkaCommitBefore,
		KafkaCommitAfter}
}

// All lists the points of a join of files.
func All() []string {
	return []string{JournalBefore, JournalAfter, CommitBefore, CommitAfter, OutputBefore, OutputAfter, SSTFinish, IngestBefore,
		IngestAfter, MarkBefore, MarkAfter, CutBefore, CutAfter, FloorBefore, FloorAfter, DropBefore, DropAfter}
}

var hook atomic.Pointer[func(name string) error]

// Set arms all points with a function, nil disarms them. It is called at each Hit, from any goroutine; an error that it
// returns is the step's. For tests: one process has one function.
func Set(fn func(name string) error) {
	if fn == nil {
		hook.Store(nil)
		return
	}
	hook.Store(&fn)
}

// Hit is called at a point; an error means that the step there failed. Any goroutine.
func Hit(name string) error {
	fn := hook.Load()
	if fn == nil {
		return nil
	}
	if err := (*fn)(name); err != nil {
		return fmt.Errorf("failpoint %s: %w", name, err)
	}
	return nil
}
