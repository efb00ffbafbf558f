// Package projection turns raw records into what the join needs of them: a key, a time, a body, and a fate.
//
// What comes in: records as a source hands them over (Record), and for each side a spec of the configuration
// (SideSpec), compiled once (Compile).
//
//  1. The paths of key, time and kept fields are laid over each other as a tree (plan).
//  2. One pass over the value (scanner.scan) checks that it is one whole valid JSON value and notes where
//     each place of the tree lies. Nothing is copied or decoded yet. The verdict does not depend on what is
//     asked for, nor on where it stands. In lenient mode the pass (scanner.scanLoose) ends when all is
//     found, and checks only what is taken out.
//  3. The key becomes typed bytes, the time whole milliseconds, the kept fields one JSON object on one line;
//     all are appended to flat arrays (Rows).
//
// What goes out: one row for each record, in order, with exactly one fate; decoding never fails. AppendKey and
// Spec.AppendOutput turn what a row holds into the JSON of output lines.
//
// Who owns what: the source owns the bytes of a record, and may reuse them when Append returns. The caller
// owns the rows. A Decoder belongs to one goroutine; a Spec is immutable and for all of them. The package
// starts no goroutines.
//
// # Why a scanner of our own
//
// Measured in ns a record on an AMD EPYC with AVX2 (best of 3,000 bursts, on a busy machine; payment-like
// records of bench_test.go; "fields" are taken from the top level):
//
//	                                            297 B, 0 fields  4 fields    920 B, 0 fields  4 fields
//	scan: checks all, one pass                       311           317            876           896
//	the same without guessing names (guess.go)       373           440            994         1,090
//	sonic.Valid, then a Get for each field           311           663            778         1,132
//	encoding/json.Valid                            1,094                       3,935
//	scanLoose: lenient                                             182                          182
//	sonic Get for each field, no check                             352                          354
//
// One lenient field: 82 by scanLoose, 62 by sonic. A whole decode (fields, key and time into rows) takes some 90 ns
// more than the scan. Documents whose members come and go keep what guessing saves (320 to 450 without);
// those in no order at all lose it.
//
// sonic's check is the faster one on long documents with few fields, but it is not the check that the rules ask
// for: sonic 1.15.5 finds bad escapes ("\x", "\u12"), raw control characters, invalid UTF-8 and lone surrogates valid. A
// second pass for these would cost more than is won. So one pass of plain Go is what runs, on every
// platform alike, and sonic is what the benchmarks compare with.
package projection

// Engine names the way in which JSON is read, for results and version output. It is the same for both modes of
// validation and on every platform.
func Engine() string { return "onepass-go (8 bytes at a time)" }
