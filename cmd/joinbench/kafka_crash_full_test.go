//go:build crash

package main

import (
	"flag"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"joinbench/internal/kafkatest"
)

var (
	crashApache = flag.Bool("crash.apache", false, "TestCrashKafka with an Apache Kafka")
	crashFaults = flag.Int("crash.faults", 100, "TestCrashKafka: what happens to each kind of delivery, at least")
	crashRandom = flag.Int("crash.random", 20, "TestCrashKafka: kills at random moments of each kind of delivery, at least")
	crashEach   = flag.Int("crash.each", 5, "TestCrashKafka: kills at each step of a batch in each kind of delivery, at least; and if not 0, one at each step of a seal and a drop")
)

// TestCrashKafka (B26) kills serve at every failpoint of a batch and at random moments, stops it for longer than its transaction or its
// membership lasts, kills its broker and deletes its directory, over random workloads and joins, and holds the output topic against
// the truth. Run by `make crash-kafka`.
func TestCrashKafka(t *testing.T) {
	(&crashRun{kafkaCampaign: newKafkaCampaign(t)}).run(*crashFaults, *crashRandom, *crashEach)
}

// crashRun is a campaign over as many scenes as it takes.
type crashRun struct {
	*kafkaCampaign
	next int // scene
}

// run goes through scenes until there are so many faults of each kind of delivery, so many kills at random moments and so many at each
// point.
func (c *crashRun) run(faults, random, each int) {
	workers := min(runtime.GOMAXPROCS(0), 4)
	if *crashApache {
		c.shared, workers = kafkatest.Start(c.t, kafkatest.Apache()), 1 // or one scene would kill the other's broker
	}
	if *crashCase != "" {
		var i, kind int
		if n, err := fmt.Sscanf(*crashCase, "kafka:%d:%d", &i, &kind); n != 2 || err != nil || i < 0 || kind >= len(sceneJoins) {
			c.t.Fatalf("-crash.case=%s: want kafka:17:2, the scene and its kind of join, or kafka:17:-1", *crashCase)
		}
		c.t.Run(*crashCase, func(t *testing.T) { c.scene(t, i, kind, *crashPlan) })
		return
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				i, more := c.more(faults, random, each)
				if !more {
					return
				}
				c.t.Run(fmt.Sprintf("kafka:%d", i), func(t *testing.T) { c.scene(t, i, -1, "") })
			}
		})
	}
	wg.Wait()
	c.report(each, random, pointsOf)
	for _, p := range storePoints() {
		if each > 0 && c.killsAt(p) == 0 {
			c.t.Errorf("no kill at %s", p)
		}
	}
}

// more hands out the number of the next scene.
func (c *crashRun) more(faults, random, each int) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	enough := true
	for d, count := range c.count {
		sum := 0
		for _, n := range count {
			sum += n
		}
		enough = enough && sum >= faults && count[atRandom] >= random
		for _, p := range pointsOf(d) {
			enough = enough && count[p] >= each
		}
	}
	for _, p := range storePoints() {
		enough = enough && (each == 0 || c.killsAt(p) > 0)
	}
	if enough || c.next > 20+faults || c.failed >= 3 {
		return 0, false
	}
	c.next++
	return c.next - 1, true
}
