// Package failpoint has named places at which a test lets the process die, so that crashes hit each step of a commit,
// a seal and a drop on purpose and not by luck.
//
// In a normal build Hit is an empty function and costs nothing. With the build tag `failpoints` the environment variable
// JOINBENCH_FAILPOINT arms one point: "journal.after=3" kills the process, as kill -9 does, at its third Hit. Nothing
// else of the program changes.
package failpoint

// The points, in the order in which an event meets them.
const (
	JournalBefore = "journal.before" // a task's journal record is not written yet
	JournalAfter  = "journal.after"  // it is, and with one task the commit record too
	CommitBefore  = "commit.before"  // several tasks: all have journaled, the commit record is not written
	CommitAfter   = "commit.after"   // it is
	OutputBefore  = "output.before"  // results are computed, none of them has left the process
	OutputAfter   = "output.after"   // all have, nothing is committed
	SSTFinish     = "sst.finish"     // a run is a file, and in no family
	IngestBefore  = "ingest.before"  // its family is made and empty
	IngestAfter   = "ingest.after"   // the family has the file, and no mark says so
	MarkBefore    = "mark.before"    // sealed mark, bitmaps and journal cut are not written
	MarkAfter     = "mark.after"     // they are
	FloorBefore   = "floor.before"   // a bucket is due to drop, its mark is still there
	FloorAfter    = "floor.after"    // the mark is gone, the family is there
	DropBefore    = "drop.before"    // the helper is about to drop the family
	DropAfter     = "drop.after"     // it has
)

// All lists the points.
func All() []string {
	return []string{JournalBefore, JournalAfter, CommitBefore, CommitAfter, OutputBefore, OutputAfter, SSTFinish, IngestBefore,
		IngestAfter, MarkBefore, MarkAfter, FloorBefore, FloorAfter, DropBefore, DropAfter}
}
