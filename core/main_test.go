package core

import (
	"os"
	"testing"

	"joinbench/buckets"
	"joinbench/internal/leak"
)

// TestMain fails if objects of RocksDB or goroutines of ours outlive the tests.
func TestMain(m *testing.M) { os.Exit(leak.Check(m.Run(), buckets.LiveObjects())) }
