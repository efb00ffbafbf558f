package pipeline

import (
	"testing"

	"joinbench/buckets"
	"joinbench/internal/leak"
)

// runAndCheck runs the tests and fails if objects of RocksDB or goroutines of ours outlive them.
func runAndCheck(m *testing.M) int { return leak.Check(m.Run(), buckets.LiveObjects()) }
