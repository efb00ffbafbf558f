//go:build crash

package main

import (
	"flag"
	"testing"
)

var crashCount = flag.Int("crash.n", 300, "crashes, at least")

// TestCrash kills join and run at every failpoint, at least ten times each, and at random moments, over random workloads,
// starts them again and holds what they leave against what an unbroken run leaves. Run by `make crash`.
func TestCrash(t *testing.T) { newCampaign(t, *crashCount, 10).run() }
