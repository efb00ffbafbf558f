// Package compare decides whether one build of the join is worse than another, from the records that both left.
//
// What comes in: records of package results, some of the base and some of the build in question. What goes out: a
// Comparison, a verdict for each metric and one for the whole, and what CI shows of it.
//
//  1. Rules says which metrics are judged, and what kind of thing each is. Counts are exact where the workload makes them
//     so; allocations have a floor of half of one a batch; memory and time have a ratio that matters in practice.
//  2. Records pools the runs of each build and judges metric by metric. What cannot be told apart from noise is
//     inconclusive, never passed; what cannot be compared (another workload) is refused.
//  3. Pairs does the same for time with runs that took turns, and may be asked after every pair: each look has its own
//     share of the error that is allowed (see Pairs).
//  4. Write renders a Comparison: text, Markdown, JSON, benchstat's format, github-action-benchmark, Bencher, JUnit.
//
// AB runs two programs by turns and asks Pairs; all else here starts no process and touches no file. Nothing is safe for several
// goroutines at once.
package compare
