// Package fusefilter answers, for a batch of 64-bit hashes at once, which buckets may hold each of them.
// It is what keeps the store out of the path: of a hundred events that ask, ninety-nine end here.
//
// What comes in are hashes of join keys (xxh3 of the decoded key, see package projection). Nothing here
// sees a key or an event; a *maybe* is only ever a reason to look, and the reader of the store decides
// by the key itself. So a weak or a constant hash costs time and never a wrong answer.
//
//  1. While a bucket is open, an [OpenIndex] holds it exactly: hash to newest row, rows of one hash
//     chained. A static filter cannot take inserts; the index can, and it can go back (Undo).
//  2. When a bucket is sealed, a [Builder] turns its distinct hashes into a [Filter], a binary fuse filter
//     with 8, 16 or 32-bit fingerprints. This runs beside the hot path, on any goroutine. It may fail; the
//     bucket then stays *maybe*, and the build can be tried again.
//  3. The task installs the filter in its [Set], which has one slot (one bit of a mask) for each bucket
//     of the ring. A slot that nobody said anything about is *maybe*: a filter that is missing after a
//     restart must not lose matches. An empty bucket is *no*.
//  4. Filters of sealed buckets can be put side by side: [Builder.NewLanes] and [Builder.AddLanes] build [Lanes] out of
//     the hashes of the buckets, again on any goroutine, and [Set.InstallLanes] puts them in place of the filters that
//     stood alone. All lanes have one seed and one geometry, so that a hash has the same three places in each, and what
//     lies at a place is a row of one fingerprint a bucket: three reads answer for all buckets. A slot whose bucket
//     changes while the lanes are built, or later, is not covered by them ([Cover]).
//  5. [Set.Probe] takes a batch of hashes and the mask of buckets to ask, and appends a [Hit] for each hash that some
//     bucket does not deny: first those of the *maybe* buckets, then those of the lanes, then of one filter after another.
//
// What goes out are hits (positions in the batch and masks of buckets) and row numbers.
//
// # Ownership and goroutines
//
// An OpenIndex and a Set belong to one goroutine, that of the task; they have no locks. A Builder belongs
// to one goroutine at a time. A Filter and Lanes are immutable once built and own their memory, so
// they may be handed from the goroutine that built them to the one that installs them; AddLanes reads the lanes
// that the task is probing meanwhile.
//
// # C and Go
//
// The inner loops of Probe and of [OpenIndex.FindBatch] are C (kernel.c), because only there a line can be fetched before it
// is read. kernel_go.go has the same functions for builds without cgo; they give the same answers and are slower.
//
// # What it costs
//
// A binary fuse filter reads three places of one array for one answer and needs about 9 bits a key for
// 8-bit fingerprints, 18 for 16-bit ones and 36 for 32-bit ones; small sets cost more (TestFilterSize has the table):
//
//	keys        100   1,000   10,000   100,000   1,000,000
//	fuse8      15.4    11.3     10.2       9.5         9.0   bits a key
//	fuse16     30.7    22.5     20.5      19.0        18.1   bits a key
//	fuse32     61.4    45.1     41.0      38.0        36.2   bits a key
//
// The false-positive probability of one filter is 2^-8, 2^-16 or 2^-32 whatever the size. A probe that asks many
// filters pays for each (see [Predict]): sixteen buckets of fuse8 let 6.1 % of absent hashes through,
// sixteen of fuse16 0.024 %, sixteen of fuse32 one in 270 million. It is the same in lanes. Building a filter takes 25 to 28
// bytes a key of memory, building a lane 45 to 50, which the Builder keeps.
//
// A lane has as many cells as the filter of the largest bucket would have, and one segment more: one seed has to suit all
// lanes. Sixteen full lanes of 312,500 keys take 9.3, 18.7 and 37.3 bits a key (TestLanesSize). A smaller bucket leaves the
// rest of its lane unused, and so does a slot without a bucket, up to the next power of two of 64-bit words a row: 17
// slots of fuse16 take as much as 32.
//
// Asking 16 buckets, 5 million keys in all, for hashes that none of them has (BenchmarkProbe, Zen 3, 512 KiB of L2, the other
// core busy):
//
//	         alone    in lanes
//	fuse8      180          32   ns a hash
//	fuse16     325          35   ns a hash
//	fuse32     363          58   ns a hash
//
// Adding one lane to fifteen costs 130 to 200 ns a key beside the hot path, the copy of the fifteen included (BenchmarkLane).
// One bucket in a hundred does not fit beside the lanes that stand, with their seed ([ErrNoFit]): then all have to be built
// anew.
//
// # Without a filter here
//
// Two kinds build nothing, and every bucket that holds something is *maybe*: None, where each of them is
// looked up, and Bloom, where the store is expected to keep a bloom filter of its own in the tables. It is
// listed here so that a configuration has one list of kinds and a report a prediction ([PerFilter]);
// [Kind.InRAM] tells them from the others.
//
// # Not saved
//
// Filters are not written to disk. A bucket is read back and its filter built anew after a restart, which
// costs 50 to 140 ns a key beside the hot path (BenchmarkBuild), and as a lane as much again; until then it is *maybe*. So a filter that comes back
// damaged, or was made with another hash, cannot exist.
package fusefilter
