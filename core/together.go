package core

import (
	"fmt"

	"joinbench/buckets"
)

// checkTogether makes sure that several tasks' stores are of one moment. Each syncs its log by itself, and only one holds the
// commit record: after a power cut, unless each batch was synced, the record may name batches that a task has lost, or a task
// may have sealed and dropped by a commit record that is lost. Nothing is written here.
func checkTogether(stores []buckets.Backend, committed uint64) error {
	if len(stores) == 1 {
		return nil
	}
	for i, s := range stores {
		has, err := buckets.Journaled(s)
		if err != nil {
			return fmt.Errorf("task %d: %w", i, err)
		}
		switch {
		case has.Last < committed:
			return lost(i, committed-has.Last)
		case has.Folded > committed:
			return lost(0, has.Folded-committed)
		}
	}
	return nil
}

func lost(task int, batches uint64) error {
	what := fmt.Sprintf("last %d batches", batches)
	if batches == 1 {
		what = "last batch"
	}
	return fmt.Errorf("a power cut, or whoever changed these files, took the %s of task %d away, and the other tasks have built on them: "+
		"remove the directory and start anew (state.sync: batch outlives power cuts)", what, task)
}
