// Package buckets keeps the waiting events of one task: a ring of time buckets, each of them first an arena in
// RAM and then one immutable column family in RocksDB, dropped whole when its time is over.
//
// What comes in: entries (hash, event time, key bytes, body), the rows that a match used up, and one call a
// batch that makes both durable. What goes out: entries by row (open buckets) or by hash (sealed ones).
//
//  1. Append puts an entry into the open bucket of its time. Entries of one bucket have row numbers 0, 1, 2 …
//  2. Use marks a row as used up: a bit in the bucket's bitmap, wherever the row lies.
//  3. Commit writes what the batch appended and used as one journal record, together with the caller's commit
//     record, in one RocksDB batch. Undo goes back to the last commit instead.
//     Journal gives these records before they are written, and Apply does to a ring elsewhere what they say.
//  4. StartSeal hands an open bucket to a SealJob, whose Run (any goroutine) sorts the rows by hash, writes one
//     SST, a run, and ingests it into a family made for it. FinishSeal (the task's goroutine) swaps the run in and
//     writes one batch: mark, bitmaps, journal cut. Until then the arena answers. StartSpill does the same with
//     what a bucket has so far, which stays open: for want of memory.
//  5. Lookup reads many hashes of many sealed buckets in one crossing of the C boundary.
//  6. DropBelow takes buckets out of the ring; the returned DropJobs' Run (any goroutine) drops their families.
//  7. Open puts everything together again from marks, bitmaps and journal: families that no mark names are strays
//     and go, journal records above the given batch never happened.
//
// A Ring belongs to one goroutine, the task's; only the Run of a SealJob, DropJob, HashScan or SyncJob may be
// elsewhere, one of them at a time. The package starts no goroutine. It is the only importer of grocksdb; everything but
// the files that carry the cgo build constraint is plain Go and is tested over a store in memory as well.
package buckets
