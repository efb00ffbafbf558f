// Package capture reads record files (NDJSON) as a source of raw records and writes the lines that a
// join of files leaves behind.
//
// What comes in: a path ("-" is stdin), a format, a directory for spools. What happens:
//
//  1. Open. A regular file is read where it lies. Stdin, pipes and files that end in .gz or .zst cannot be
//     read twice or at a place, so they are copied (decompressed) into the spool directory first.
//  2. Format auto is decided by the first line of the file that is not blank.
//  3. One first pass over the whole content finds which partitions there are and where the lines of each
//     lie, counts lines, and takes size and xxh3: the identity by which a later run knows the file again.
//     Consecutive lines of one partition are one run. Runs are kept as a few bytes each, in pages, and
//     pages beyond a memory limit go to a file: neither the order of the lines nor the size of the file
//     decides how much memory is used.
//  4. A Cursor follows one partition over its runs, through a window of its own, and hands out
//     projection.Records. It can start again at any Position that it gave out.
//  5. A Writer takes result and side lines, reports how long its file is, and cuts it back to a committed
//     length when a run is resumed. AppendSide makes the line of a record that was left out of the join.
//
// What a line is. Lines end with \n or \r\n, the last one may end with the file. In format "value" each line
// is a record of partition 0, whose offset is its line number from 0, time 0, key null. A blank line, and a
// line over the length limit, is Damaged there. In "kcat" and "rpk" a line is an envelope: one JSON object
// with the fields of that tool (see Format). It is read strictly: a line that is not one valid JSON object
// with the required fields in their JSON types is Damaged, whatever is wrong with it. Fields unknown to us
// are tolerated, of duplicate names the first counts. Damaged lines of envelope files have no partition
// that could be trusted: they are handed out as partition DamagedPartition, offset = line number from 0, so
// that they are counted and dead-lettered, and no partition's time waits for them.
//
// The topic named by an envelope is checked to be a string and is otherwise not used: a file that mixes
// topics is read as if it were one, by partition number alone. ForeignTopics says how many lines differ
// from the first good one, for a warning.
//
// Ownership: records point into the arena that the caller hands to Cursor.Read and live until the caller
// reuses it. Goroutines: an Input may be shared, each Cursor and each Writer belongs to one goroutine at a
// time; the package starts none that outlive a call.
package capture
