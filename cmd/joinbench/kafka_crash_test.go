package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"joinbench/internal/failpoint"
	"joinbench/internal/kafkatest"
)

// kafkaCampaign breaks serve, its state and its broker, and holds what comes out against the truth.
type kafkaCampaign struct {
	t      *testing.T
	binary string
	seed   uint64
	shared *kafkatest.Broker // nil: each scene has its own

	mu         sync.Mutex
	failed     int
	scenes     int
	asked      map[string]int    // of a point of the buckets: kills that were drawn, met or not
	count      [3]map[string]int // by delivery, of what: kill@kafka.offsets, kill at random, lost, …
	rows       [3]int64
	duplicated [3]int64
	ready      []time.Duration
}

func newKafkaCampaign(t *testing.T) *kafkaCampaign {
	c := &kafkaCampaign{t: t, binary: buildForCrashes(t), seed: *crashSeed, asked: map[string]int{}}
	for d := range c.count {
		c.count[d] = map[string]int{}
	}
	t.Logf("seed %d", c.seed)
	return c
}

// TestKafkaCrashShort (B26) is TestCrashKafka in little: each step of a batch is where serve is killed once, in each kind of delivery; it
// is stopped for longer than a transaction may take, its broker is killed and its directory lost. Exactly once, nothing is missing,
// spurious or twice; at least once, nothing is missing or spurious.
func TestKafkaCrashShort(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	t.Parallel()
	c := newKafkaCampaign(t)
	if os.Getenv(kafkatest.Env) != "" {
		c.shared = kafkatest.Start(t)
	}
	kafka := func(points ...string) (p []string) {
		for _, name := range points {
			p = append(p, "kill@"+name+"=4")
		}
		return p
	}
	kinds := []int{1, 2, 0} // left; outer with B that wait; inner
	var wg sync.WaitGroup
	for d, plan := range [][]string{
		append(kafka(failpoint.KafkaOutputs, failpoint.KafkaChangelogBefore, failpoint.KafkaChangelogAfter, failpoint.KafkaOffsets, failpoint.KafkaEndBefore,
			failpoint.KafkaEndAfter, failpoint.JournalBefore, failpoint.JournalAfter), "stop@kafka.end.before=4", "broker@kafka.end.before=4", "lost+kill@250ms", "drain+lost+kill@kafka.offsets=3"),
		append(kafka(failpoint.KafkaOutputs, failpoint.KafkaChangelogBefore, failpoint.KafkaChangelogAfter, failpoint.KafkaCommitBefore, failpoint.KafkaCommitAfter),
			"broker@kafka.changelog.before=4", "lost+kill@300ms", "drain+lost+kill@kafka.commit.before=3"),
		append(kafka(failpoint.KafkaOutputs, failpoint.KafkaCommitBefore, failpoint.KafkaCommitAfter), "broker@kafka.outputs=4", "lost+kill@kafka.outputs=3", "drain+kill@kafka.outputs=3"),
	} {
		wg.Go(func() {
			c.t.Run(deliveries[d].name, func(t *testing.T) { c.scene(t, d, kinds[d], strings.Join(plan, ",")) })
		})
	}
	wg.Wait()
	c.report(1, 0, ledgerPoints)
}

// scene makes the i-th scene, of a kind of join or of one that is drawn, and lets its plan, or one that is drawn, happen.
func (c *kafkaCampaign) scene(t *testing.T, i, kind int, plan string) {
	rng := rand.New(rand.NewPCG(c.seed, uint64(i)+1<<32))
	delivery := i % len(deliveries)
	if n := rng.IntN(len(sceneJoins)); kind < 0 {
		kind = n
	}
	var fixed kafkaPlan
	if plan != "" {
		var err error
		if fixed, err = parseKafkaPlan(plan); err != nil {
			t.Fatal(err)
		}
	}
	lives := 4 + rng.IntN(3)
	if fixed != nil {
		lives = len(fixed)
	}
	b := c.shared
	if b == nil {
		b = kafkatest.Start(t, kafkatest.Process())
	} else if !b.Mortal() {
		fixed = slices.DeleteFunc(fixed, kafkaFault.ofBroker)
		lives = len(fixed)
	}
	s := drawScene(t, c.binary, b, rng, delivery, kind, int64(lives)+2)
	apache := ""
	if b.Real() {
		apache = " -crash.apache"
	}
	var p kafkaPlan
	fail := func(err error) {
		c.mu.Lock()
		c.failed++
		c.mu.Unlock()
		t.Errorf("%v\n%s\nlives: %v\nagain: make crash-kafka CRASH='-crash.seed=%d -crash.case=kafka:%d:%d -crash.plan=%v%s'", err, s.about, p, c.seed, i, kind, p, apache)
	}
	for n, finished := 0, false; !finished; n++ {
		f := kafkaFault{drain: true, kind: faultTerm, crash: crash{after: hangs}} // to the end
		switch {
		case n < len(fixed):
			f = fixed[n]
		case n < lives:
			f = c.choose(rng, delivery, n >= lives-2)
		}
		if f.drain { // it drains what there is, so all is there
			for s.loaded < s.events {
				if err := s.load(""); err != nil {
					fail(err)
					return
				}
			}
		}
		if n < lives {
			p = append(p, f)
		}
		r, err := s.live(f, pick(rng, "", "1k/s"))
		if err != nil {
			fail(err)
			return
		}
		c.note(delivery, f, r, n > 0)
		finished = r.finished
		if n > lives+3 {
			fail(fmt.Errorf("%d lives, and the topics are not drained", n))
			return
		}
	}
	r, err := s.verify()
	if err != nil {
		fail(err)
		return
	}
	t.Logf("%s: %d rows, %d of them twice; lives: %v", s.about, r.Records, r.Duplicated, p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scenes++
	if s.cut() {
		c.count[delivery][cutOnes]++
	}
	c.rows[delivery] += r.Records
	c.duplicated[delivery] += r.Duplicated
}

// what a fault is counted as.
const (
	atRandom = "at random moments"
	lostOnes = "directory lost"
	cutOnes  = "changelog cut, scenes"
)

func (c *kafkaCampaign) note(delivery int, f kafkaFault, r faulted, again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if again && r.ready > 0 && !f.lost {
		c.ready = append(c.ready, r.ready)
	}
	if f.lost {
		c.count[delivery][lostOnes]++
	}
	if !r.happened {
		return
	}
	if f.kind == faultKill && f.point != "" {
		c.count[delivery][f.point]++
	} else if f.kind == faultKill {
		c.count[delivery][atRandom]++
	} else {
		c.count[delivery][f.kind]++
	}
}

// ledgerPoints are the points between Kafka and the state that a batch meets.
func ledgerPoints(delivery int) []string {
	return [][]string{
		{failpoint.KafkaOutputs, failpoint.KafkaChangelogBefore, failpoint.KafkaChangelogAfter, failpoint.KafkaOffsets, failpoint.KafkaEndBefore, failpoint.KafkaEndAfter},
		{failpoint.KafkaOutputs, failpoint.KafkaChangelogBefore, failpoint.KafkaChangelogAfter, failpoint.KafkaCommitBefore, failpoint.KafkaCommitAfter},
		{failpoint.KafkaOutputs, failpoint.KafkaCommitBefore, failpoint.KafkaCommitAfter},
	}[delivery]
}

// pointsOf are the points that every life with a batch meets.
func pointsOf(delivery int) []string {
	return append(ledgerPoints(delivery), failpoint.OutputBefore, failpoint.OutputAfter, failpoint.JournalBefore, failpoint.JournalAfter)
}

// choose draws what happens next: every other time a kill where there were the fewest.
func (c *kafkaCampaign) choose(rng *rand.Rand, delivery int, drain bool) kafkaFault {
	c.mu.Lock()
	defer c.mu.Unlock()
	points := pointsOf(delivery)
	f := kafkaFault{drain: drain, lost: rng.IntN(6) == 0, kind: faultKill}
	moment := time.Duration(rng.Int64N(int64(700 * time.Millisecond)))
	switch n := rng.IntN(20); {
	case n < 9:
		rng.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
		slices.SortStableFunc(points, func(x, y string) int { return c.count[delivery][x] - c.count[delivery][y] })
		f.crash = crash{point: points[0], at: 1 + rng.IntN(4)}
	case n < 12:
		f.crash = crash{point: c.fewest(rng), at: 1}
	case n < 16:
		f.crash = crash{after: moment}
	default:
		f.kind = kafkaFaults[1+rng.IntN(len(kafkaFaults)-1)]
		if f.kind == faultTwin && delivery != 0 { // only transactions keep out who was thought to be gone
			f.kind = faultStop
		}
		if f.crash = (crash{point: pick(rng, points...), at: 1 + rng.IntN(4)}); rng.IntN(2) == 0 || f.kind == faultTerm {
			f.crash = crash{after: moment}
		}
	}
	return f
}

// storePoints are the points of the state's buckets: seals, cuts and drops, of which there are few in a scene.
func storePoints() []string {
	return slices.DeleteFunc(failpoint.All(), func(p string) bool { return slices.Contains(pointsOf(0), p) })
}

// killsAt sums the kills at a point over all kinds of delivery.
func (c *kafkaCampaign) killsAt(point string) (sum int) {
	for _, count := range c.count {
		sum += count[point]
	}
	return sum
}

// fewest is a point of the buckets at which there were the fewest kills, or asked for and not met: some scenes do not come so far.
func (c *kafkaCampaign) fewest(rng *rand.Rand) string {
	points := storePoints()
	rng.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	slices.SortStableFunc(points, func(x, y string) int { return c.killsAt(x)*4 + c.asked[x] - c.killsAt(y)*4 - c.asked[y] })
	c.asked[points[0]]++
	return points[0]
}

// report prints the table, and fails if there was too little of what it counts.
func (c *kafkaCampaign) report(each, random int, points func(delivery int) []string) {
	for d, count := range c.count {
		for _, p := range points(d) {
			if count[p] < each {
				c.t.Errorf("%s: %d kills at %s, want %d", deliveries[d].name, count[p], p, each)
			}
		}
		if count[atRandom] < random {
			c.t.Errorf("%s: %d kills at random moments, want %d", deliveries[d].name, count[atRandom], random)
		}
	}
	var s strings.Builder
	fmt.Fprintf(&s, "seed %d: %d scenes, %d of them wrong\n\n%-24s %14s %14s %14s\n", c.seed, c.scenes, c.failed, "", "exactly-once", "at-least-once", "no changelog")
	line := func(name string, v func(d int) int64) {
		fmt.Fprintf(&s, "%-24s %14d %14d %14d\n", name, v(0), v(1), v(2))
	}
	for _, what := range slices.Concat([]string{atRandom}, kafkaPoints(), kafkaFaults[1:], []string{lostOnes, cutOnes}) {
		line(what, func(d int) int64 { return int64(c.count[d][what]) })
	}
	line("rows", func(d int) int64 { return c.rows[d] })
	line("duplicated", func(d int) int64 { return c.duplicated[d] })
	if len(c.ready) > 0 {
		slices.Sort(c.ready)
		fmt.Fprintf(&s, "\nfrom a restart to its first batch: median %v, max %v of %d\n", c.ready[len(c.ready)/2].Round(time.Millisecond), c.ready[len(c.ready)-1].Round(time.Millisecond), len(c.ready))
	}
	c.t.Log(s.String())
}
