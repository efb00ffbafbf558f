// Package pipeline wires the parts together: a source of raw records, the decoders, the join of package core, and
// what takes its results.
//
//	bytes ─► reader ─► Decoder (a goroutine for each partition) ─► chunks ─► core.Engine ─► sink ─► bytes
//
// It has two users. Join runs it over two record files and writes result lines; Bench runs it over the load
// generator and holds the results against the truth. Both take a Config struct and know nothing of flags. What
// differs is the reader and the sink; decoders, gate, tasks, commit and recovery are the same code that production
// runs.
//
// RunArms is several Bench, each an arm in a process of its own (RunArm), which take turns: arms.go gives the orders,
// arm_proc.go has the process, arm_child.go obeys, arms_record.go puts the records together.
//
// A feed owns the decoder goroutines: newFeed starts them, Close stops them and waits. Chunks go round: feed →
// engine → Source.Done → feed, so that a running join allocates nothing for its records.
package pipeline
