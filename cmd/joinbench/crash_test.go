package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"joinbench/internal/failpoint"
	"joinbench/results"
)

var (
	crashSeed = flag.Uint64("crash.seed", 1, "seed of the workloads that are crashed")
	crashCase = flag.String("crash.case", "", "crash this workload alone: kind and number, join:17")
	crashPlan = flag.String("crash.plan", "", "with -crash.case: how each life ends, mark.after=3,40ms")
)

// TestCrashShort is TestCrash in little: the always-on part of it.
func TestCrashShort(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	newCampaign(t, 20, 0).run()
}

// campaign kills and restarts the program until there are enough crashes.
type campaign struct {
	t       *testing.T
	binary  string
	seed    uint64
	crashes int // wanted at least
	each    int // and so many at each point

	mu        sync.Mutex
	next      int
	count     map[string]map[string]int // by kind and point, "" for a random moment
	ready     map[string][]time.Duration
	sum       wrong
	workloads int
	tried     int
	spilled   int // of these, with a bucket that was written while it was open
	failed    int
}

// trials is how many runs of a workload are broken: each workload costs an unbroken one.
const trials = 3

func newCampaign(t *testing.T, crashes, each int) *campaign {
	return &campaign{t: t, binary: buildForCrashes(t), seed: *crashSeed, crashes: crashes, each: each,
		count: map[string]map[string]int{"join": {}, "run": {}}, ready: map[string][]time.Duration{}}
}

func (c *campaign) run() {
	if *crashCase == "" && *crashPlan != "" {
		c.t.Fatal("-crash.plan goes with -crash.case")
	}
	if *crashCase != "" {
		kind, number, _ := strings.Cut(*crashCase, ":")
		i, err := strconv.Atoi(number)
		if err != nil || kind != "join" && kind != "run" {
			c.t.Fatalf("-crash.case=%s: want join:17 or run:17", *crashCase)
		}
		c.t.Run(*crashCase, func(t *testing.T) { c.workload(t, kind, i) })
		return
	}
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 4) {
		wg.Go(func() {
			for {
				i, more := c.more()
				if !more {
					return
				}
				kind := "join"
				if i%3 == 2 {
					kind = "run"
				}
				c.t.Run(fmt.Sprintf("%s:%d", kind, i), func(t *testing.T) { c.workload(t, kind, i) })
			}
		})
	}
	wg.Wait()
	c.report()
}

// more hands out the number of the next workload, while there are not enough crashes.
func (c *campaign) more() (int, bool) {
	if c.enough() {
		return 0, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	return c.next - 1, true
}

// enough says that there are the crashes that are wanted, or that there is no hope for them.
func (c *campaign) enough() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	enough := c.total("") >= c.crashes
	for _, p := range failpoint.All() {
		enough = enough && c.at(p) >= c.each
	}
	return enough || c.next > 20+c.crashes || c.failed >= 5
}

func (c *campaign) at(point string) int { return c.count["join"][point] + c.count["run"][point] }

// total is all crashes, of one kind or of both.
func (c *campaign) total(kind string) int {
	n := 0
	for k, points := range c.count {
		for _, x := range points {
			if kind == "" || kind == k {
				n += x
			}
		}
	}
	return n
}

// workload makes one and breaks several runs of it.
func (c *campaign) workload(t *testing.T, kind string, i int) {
	rng := rand.New(rand.NewPCG(c.seed, uint64(i)))
	make := newJoinWorkload
	if kind == "run" {
		make = newRunWorkload
	}
	w := make(t, rng)
	w.unbroken(t, c.binary)
	c.mu.Lock()
	c.workloads++
	c.mu.Unlock()
	if *crashPlan != "" {
		p, err := parsePlan(*crashPlan)
		if err != nil {
			t.Fatal(err)
		}
		c.trial(t, w, i, rng, p)
		return
	}
	for n := 0; n < trials && (*crashCase != "" || !c.enough()); n++ {
		c.trial(t, w, i, rng, nil)
	}
}

// choose says how the next life of a trial ends: the first at the point that was met least, later ones at any point or
// at a random moment.
func (c *campaign) choose(rng *rand.Rand, w *workload, first bool, before map[string]int) crash {
	c.mu.Lock()
	defer c.mu.Unlock()
	points := slices.DeleteFunc(failpoint.All(), func(p string) bool { return w.hits[p] == 0 })
	if len(points) == 0 || !first && rng.IntN(3) > 0 {
		return crash{after: time.Duration(rng.Int64N(int64(w.took)))}
	}
	rng.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	if first {
		slices.SortStableFunc(points, func(x, y string) int { return c.count[w.kind][x] - c.count[w.kind][y] })
	}
	return w.draw(rng, points[0], before)
}

// trial starts the workload and kills it up to four times, then lets it finish and checks what it left. fixed is a plan to
// be repeated.
func (c *campaign) trial(t *testing.T, w *workload, number int, rng *rand.Rand, fixed plan) {
	dir, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	lives, before := 1+rng.IntN(4), map[string]int{}
	if fixed != nil {
		lives = len(fixed)
	}
	var p plan
	fail := func(bad wrong) {
		c.mu.Lock()
		c.sum.add(bad)
		c.failed++
		c.mu.Unlock()
		t.Errorf("%v\n%s\nlives that ended at %v\nagain: make crash CRASH='-crash.seed=%d -crash.case=%s:%d -crash.plan=%v'", bad, w.about, p, c.seed, w.kind, number, p)
	}
	for n, finished := 0, false; !finished; n++ {
		var end *crash
		if n < lives {
			x := c.choose(rng, w, n == 0, before)
			if fixed != nil {
				x = fixed[n]
			}
			end, p = &x, append(p, x)
		}
		l, err := w.live(c.binary, dir, n, end)
		switch {
		case err != nil:
			fail(wrong{other: []string{err.Error()}})
			return
		case w.kind == "run" && n > 0 && l.code == 1 && strings.Contains(l.said, "has finished: leave out --resume"):
			// It was killed when its record was written, which is what the check looks for.
			finished = true
			continue
		case l.killed && end == nil:
			fail(wrong{other: []string{"killed, and not by this test"}})
			return
		case !l.killed && l.code != 0:
			bad := wrong{other: []string{fmt.Sprintf("exit code %d: %.2000s", l.code, l.said)}}
			if l.code == results.ExitIncorrect { // it found that by itself; how many there are is in its record
				bad.add(w.check(dir))
			}
			fail(bad)
			return
		}
		c.note(w, end, l, n > 0)
		for point, hits := range l.hits {
			before[point] += hits
		}
		finished = !l.killed
	}
	bad := w.check(dir)
	if left, _ := filepath.Glob(filepath.Join(dir, "state", "task-*", "ingest-*")); len(left) > 0 {
		bad.say("half-made tables are left: %v", left)
	}
	if bad.is() {
		fail(bad)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tried++
	if w.spills > 0 {
		c.spilled++
	}
}

// note counts a life.
func (c *campaign) note(w *workload, end *crash, l life, again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.killed {
		c.count[w.kind][end.point]++
	}
	if again && l.ready > 0 {
		c.ready[w.kind] = append(c.ready[w.kind], l.ready)
	}
}

// report prints the table, and fails if there were too few crashes.
func (c *campaign) report() {
	var s strings.Builder
	fmt.Fprintf(&s, "seed %d: %d workloads, %d runs of them broken and checked, %d with spills\n\n%-16s %6s %6s\n", c.seed, c.workloads, c.tried, c.spilled, "crashes at", "join", "run")
	for _, p := range append(failpoint.All(), "") {
		name := p
		if p == "" {
			name = "random moments"
		}
		fmt.Fprintf(&s, "%-16s %6d %6d\n", name, c.count["join"][p], c.count["run"][p])
		if p != "" && c.at(p) < c.each {
			c.t.Errorf("only %d crashes at %s, want %d", c.at(p), p, c.each)
		}
	}
	fmt.Fprintf(&s, "%-16s %6d %6d   %d in all\n\n", "sum", c.total("join"), c.total("run"), c.total(""))
	fmt.Fprintf(&s, "missing %d, spurious %d, duplicated %d, other faults %d\n", c.sum.missing, c.sum.spurious, c.sum.duplicated, len(c.sum.other))
	for _, kind := range []string{"join", "run"} {
		if d := c.ready[kind]; len(d) > 0 {
			slices.Sort(d)
			fmt.Fprintf(&s, "%s: from restart to the first batch: median %v, max %v of %d\n", kind, d[len(d)/2].Round(time.Millisecond), d[len(d)-1].Round(time.Millisecond), len(d))
		}
	}
	c.t.Log(s.String())
	if c.total("") < c.crashes {
		c.t.Errorf("only %d crashes, want %d", c.total(""), c.crashes)
	}
}
