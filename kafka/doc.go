// Package kafka is the join's way to Kafka and back.
//
// What comes in: where the brokers are and how to prove who we are (Options), and for each partition the offset at which
// reading goes on.
//
//   - A Consumer reads partitions that it is told, at offsets that it is told. One client, one loop that polls; each partition has
//     a queue that is bounded by bytes, and a Reader that takes from it. No group tells it what to read: the join's own state says
//     where each partition was committed, together with everything else.
//   - A Member stands in the consumer group beside it, with a client of its own that never fetches: so that two processes do not
//     read the same topics unawares, that tools which show a group's lag show ours, and that what a transaction commits for the
//     group is fenced by the group's generation.
//
// What goes out: raw records (projection.Record), whose bytes lie in the buffers of the client until the reader's next read.
//
// Who owns what: a Consumer owns its readers; a Reader belongs to one goroutine at a time, but for Close, which any may call. Nothing
// here knows of the join, of its configuration or of its state.
//
// # What a position is
//
// Offsets of a partition have holes: the markers that end transactions, records of aborted ones, what compaction took. A
// reader's position is the offset that it would read next, and it moves over these too: so the consumer asks for the markers, which
// come where records come, and leaves them out of what it hands on. A reader that was given an end is through when its
// position is there, whether or not the last offsets before it hold a record.
package kafka
