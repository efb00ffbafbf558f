// Package core is the join: it decides which records may take part, when a B may ask, which A it pairs with and
// when an A is over (rules 1 to 20). It knows no Kafka, no files and no JSON.
//
// What comes in: chunks of decoded records, each of one partition, in order. What goes out, batch by batch: pairs
// (a B and the stored entry of its A), groups, null rows of what found no partner or not in time, and the records
// that were turned away and why.
//
//  1. The Gate takes records from the partitions: it gives each its fate (late, redelivered …), keeps M(p) and
//     the watermarks of both sides, lets A go ahead by max_spread at most, and holds each B back until every A
//     that could match it has come (rules 7, 8, 9, 12, 13). With probe: wait neither side is held back, and a joiner is
//     two tasks, one for the waiting events of each side.
//  2. The Engine routes the batch to its tasks by hash; watermarks are the gate's, so all tasks share them.
//  3. A Task stores its A in the open buckets of their time; then its B ask: open indexes, one filter probe that
//     answers with a mask of sealed buckets, one batched read of those in the mask, and the pairs in the order
//     of the B. Then it releases what lies below the limits that the watermarks set: null rows, groups.
//  4. The results are handed to the Sink, in the order of the B, whatever the number of tasks.
//  5. Commit: each task journals its part, then the commit record (positions, M(p), counters, what the sink
//     wants kept) is written. Undo instead goes back to the last commit.
//     A sink that is a Ledger keeps the batch before that, outputs and journals: what it does not keep is undone and read
//     again (Rewind), and what the state lacks is taken over from it (Apply).
//     What stands behind the engine is an interface, Joiner, called a few times a batch: a Task is one of several.
//  6. Between batches buckets are sealed and dropped. What takes long (sorting, writing and ingesting a table,
//     building a filter, removing files) is done by the task's helper goroutine; the task only swaps the result in.
//
// Ownership: a chunk is the engine's from Source.Next until Source.Done. Entries in an Output are valid until the
// sink returns. The engine's goroutine owns the gate; each task is called by one goroutine at a time. Engine.Run
// starts all goroutines and returns when they have ended.
package core
