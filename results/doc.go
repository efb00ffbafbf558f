// Package results holds what one run of joinbench leaves behind: a single self-describing JSON record, and everything
// that is made from it or shown while it grows.
//
// What comes in: counters of the join core and of the sink, costs measured round them, and the truth that the load
// generator knows. What goes out: a file, a report that a person reads, and lines of progress on stderr.
//
//  1. CollectEnvironment describes the machine; NewRunID names the run.
//  2. While the run goes on, Live asks a callback for a small Snapshot about once a second and shows it; MemSampler keeps
//     the peak of anonymous and of file-mapped memory. Both watch from beside: the hot path does nothing for them but the
//     atomic adds that it does per batch anyway.
//  3. When the run ends, its owner fills a Record. Counters.Derive and Join.Derive compute every ratio from the counts
//     that stand beside it; a ratio whose denominator is zero is nil, in JSON null. There is no NaN anywhere.
//  4. Judge reads the record and what else was found wrong, and says the Verdict: a status, an exit code and the reasons.
//  5. Write saves the record (whole or not at all), Read brings it back and refuses what is not one of ours.
//  6. Render shows it again: text, JSON, Markdown, CSV, the Go benchmark format, a picture, a page. Every rendering starts
//     from the record and nothing else, so what a saved file shows later is what the run showed.
//
// A Metric is a number of the record by its dotted path in the JSON; a Limit is what one must be (ParseThreshold). Both
// follow the structs by reflection, as JSONSchema does: a new field needs no other code. Examine judges the machine before
// a run.
//
// Units are in the names: _ns is nanoseconds, _bytes is bytes, _per_s is per second; ratios are 0 to 1.
//
// Ownership: a Record and its parts belong to one goroutine at a time; nothing here locks them. Live and MemSampler own one
// goroutine each, from Start to Stop, and may be used from any goroutine in between. The package imports none of ours but
// internal/near.
package results
