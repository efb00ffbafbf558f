//go:build crash

package main

import (
	"flag"
	"testing"
)

var (
	crashFaults = flag.Int("crash.faults", 100, "TestCrashKafka: what happens to each kind of delivery, at least")
	crashRandom = flag.Int("crash.random", 20, "TestCrashKafka: kills at random moments of each kind of delivery, at least")
	crashEach   = flag.Int("crash.each", 5, "TestCrashKafka: kills at each point of each kind of delivery, at least")
)

// TestCrashKafka (B26) kills serve at every failpoint of a batch and at random moments, stops it for longer than its transaction or its
// membership lasts, kills its broker and deletes its directory, over random workloads and joins, and holds the output topic against
// the truth. Run by `make crash-kafka`.
func TestCrashKafka(t *testing.T) { newKafkaCampaign(t).run(*crashFaults, *crashRandom, *crashEach) }
