package core

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"joinbench/buckets"
)

// fault is what happens to a join on its way.
type fault uint8

const (
	abortGoesOn   fault = iota // a batch is aborted, the engine goes back and on
	abortReopens               // a batch is aborted, the engine is closed and opened again
	lostGoesOn                 // the answer of a ledger is lost: the engine goes back and takes the batch over
	lostReopens                // likewise, and is opened again before
	resultsFail                // the sink takes no results
	stateFails                 // nor says its state
	commitFails                // the state does not take a batch that the ledger has
	directoryLost              // the state is gone, and comes back from the changelog
	changelogCut               // likewise, and what nobody needs of the changelog is gone as well
	faults
)

var faultNames = [faults]string{"abort", "abort, reopen", "lost answer", "lost answer, reopen", "results", "state", "commit", "directory lost", "changelog cut"}

// ledgerRig is a join over a ledger.
type ledgerRig struct {
	t      *testing.T
	r      *rand.Rand
	load   *load
	src    *script
	source func() Source            // src for another engine
	fresh  func() []buckets.Backend // stores of a new directory
	again  func() []buckets.Backend // those of the same
	ledger *ledger
	e      *Engine
	fuse   *fuse
	cuts   int
}

// open opens the state and takes over what it lacks, now and then with an end half-way.
func (g *ledgerRig) open(stores []buckets.Backend) {
	g.t.Helper()
	for ; g.r.IntN(2) == 0; stores = g.again() {
		l := g.ledger
		if g.start(stores); g.r.IntN(2) == 0 {
			g.fuse.left.Store(g.r.Int64N(int64(2*(len(l.log)-l.from) + 1)))
		}
		if err := l.tryApply(g.e, l.from+g.r.IntN(len(l.log)-l.from+1)); err != nil && !errors.Is(err, errEnd) {
			g.t.Fatal(err)
		}
		if err := g.e.Close(); err != nil && !errors.Is(err, errEnd) {
			g.t.Fatal(err)
		}
	}
	g.start(stores)
	g.ledger.apply(g.e)
}

// start opens the state.
func (g *ledgerRig) start(stores []buckets.Backend) {
	g.t.Helper()
	g.fuse = &fuse{forAll: true}
	g.fuse.left.Store(1 << 60)
	for i := range stores {
		stores[i] = &mortal{stores[i], g.fuse}
	}
	rings, record, err := OpenRings(&g.load.cfg, buckets.SyncNone, stores)
	must(g.t, err)
	g.e, err = NewEngine(&g.load.cfg, rings, record, g.source(), g.ledger)
	must(g.t, err)
	g.ledger.e = g.e
}

// fail has one thing go wrong, and mends it. It says whether the join came to its end.
func (g *ledgerRig) fail(how fault, after int) (done bool) {
	t, l := g.t, g.ledger
	if how == commitFails {
		after++
	}
	l.left, l.answer = after, map[fault]answer{abortGoesOn: aborts, abortReopens: aborts, lostGoesOn: forgets, lostReopens: forgets,
		resultsFail: rejects, stateFails: mistakes}[how]
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	g.e.Observe = watch(func(e *Engine) {
		checkLevels(t, e)
		switch after--; {
		case after == 0 && how == commitFails:
			g.fuse.left.Store(0)
		case after < 0 && how == commitFails:
			t.Error("a commit worked that was to fail")
		case after < 0 && how > commitFails:
			cancel()
		}
	})
	err := g.e.Run(ctx)
	if err == nil && how != commitFails {
		return true
	}
	if err != nil && !is(err, ErrAborted, errEnd, context.Canceled) {
		t.Fatal(err)
	}
	if g.e.failed != (how == commitFails && err != nil) {
		t.Fatalf("%s: failed %v: %v", faultNames[how], g.e.failed, err)
	}
	switch how {
	case abortGoesOn, resultsFail, stateFails:
		if g.r.IntN(2) == 0 { // Run does it as well
			must(t, g.e.Rewind())
		}
	case lostGoesOn:
		if g.r.IntN(2) == 0 {
			must(t, g.e.Rewind())
		}
		l.apply(g.e)
	case abortReopens, lostReopens, commitFails:
		if g.e.failed {
			if s := l.log[len(l.log)-1]; g.e.Rewind() == nil || g.e.Apply(s.n, s.changes, s.record) == nil {
				t.Fatal("an engine whose commit failed goes on")
			}
		}
		if err := g.e.Close(); err != nil && !errors.Is(err, errEnd) {
			t.Fatal(err)
		}
		g.open(g.again())
	case directoryLost, changelogCut:
		if how == changelogCut && len(l.log) > 0 {
			g.cuts += l.cut()
		}
		must(t, g.e.Quiesce())
		old := g.e
		g.open(g.fresh())
		g.same(old)
		must(t, old.Close())
	}
	return false
}

// same holds a state that was built from the changelog against that which is gone.
func (g *ledgerRig) same(old *Engine) {
	t, e := g.t, g.e
	t.Helper()
	must(t, e.Quiesce())
	_, err := e.goBack() // as Run does
	must(t, err)
	_, err = old.goBack()
	must(t, err)
	if got, want := fmt.Sprintf("%+v", e.gate.parts), fmt.Sprintf("%+v", old.gate.parts); got != want {
		t.Fatalf("partitions\n got %s\nwant %s", got, want)
	}
	got, want := *e.gate, *old.gate
	got.parts, want.parts, got.time, want.time, got.src, want.src = [2][]gatePart{}, [2][]gatePart{}, liveTime{}, liveTime{}, nil, nil
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		t.Fatalf("gate\n got %s\nwant %s", g, w)
	}
	old.moved, e.moved = true, true
	a, b := e.Counters(), old.Counters()
	a.Tasks, b.Tasks = TaskStats{Stored: a.Tasks.Stored, Probes: a.Tasks.Probes}, TaskStats{Stored: b.Tasks.Stored, Probes: b.Tasks.Probes}
	if a != b {
		t.Fatalf("counters\n got %+v\nwant %+v", a, b)
	}
	for i := range e.rings {
		if g, w := rowsOfRings(t, e.rings[i]), rowsOfRings(t, old.rings[i]); !slices.Equal(g, w) {
			sameList(t, fmt.Sprintf("rows of task %d", i), g, w)
		}
		if e.rings[i].At(0).Pending() != old.rings[i].At(0).Pending() {
			t.Fatalf("task %d: %d rows wait, want %d", i, e.rings[i].At(0).Pending(), old.rings[i].At(0).Pending())
		}
	}
}

// rowsOfRings lists what waits in the rings of a task.
func rowsOfRings(t testing.TB, rings *buckets.Rings) (all []string) {
	rings.EachBucket(func(space byte, b *buckets.Bucket) {
		all = append(all, fmt.Sprintf("%q bucket %d: %d rows, %d live", space, b.Epoch, b.Rows(), b.Live()))
		r := rings.At(0)
		if space != 0 {
			r = rings.At(1)
		}
		must(t, r.EachLive(b, func(row uint32, entry []byte) error {
			all = append(all, fmt.Sprintf("%q bucket %d row %d used %v: %x", space, b.Epoch, row, b.Used(row), entry))
			return nil
		}))
	})
	return all
}

// play joins a load with faults on its way.
func (g *ledgerRig) play() {
	t := g.t
	want := expect(&g.load.cfg, g.src)
	g.open(g.fresh())
	var story []string
	for {
		how, after := fault(g.r.IntN(int(faults))), g.r.IntN(12)
		if len(story) > 25 {
			how, after = abortGoesOn, 1<<40
		}
		story = append(story, fmt.Sprintf("%s after %d", faultNames[how], after))
		if g.fail(how, after) {
			break
		}
	}
	t.Log(strings.Join(story, "; "))
	must(t, g.e.Quiesce())
	checkOutputs(t, &g.ledger.joined, want)
	c := g.e.Counters()
	checkEarlyCounts(t, &c, &g.ledger.joined)
	if c.Fates != want.fates || c.Matches != want.matchCount(&g.load.cfg) || c.UnmatchedA != uint64(len(want.unmatchedA)) ||
		c.UnmatchedB != uint64(len(want.unmatchedB)) || c.Tasks.Probes != want.fates[B][Accepted] {
		t.Fatalf("counters %+v\nfates %v", c, want.fates)
	}
	must(t, g.e.Close())
}

func newLedgerRig(t *testing.T, r *rand.Rand, l *load) *ledgerRig {
	g := &ledgerRig{t: t, r: r, load: l, src: newScript(t, l.chunk, l.a, l.b), ledger: newLedger(t)}
	g.source = func() Source { return g.src.again() }
	if r.IntN(3) == 0 { // records come by and by
		var comes [2][][]int64
		for s, side := range g.src.parts {
			for _, p := range side {
				at, now := make([]int64, len(p.events)), int64(0)
				for i := range at {
					now += r.Int64N(3) * r.Int64N(3)
					at[i] = now
				}
				comes[s] = append(comes[s], at)
			}
		}
		src := newLive(t, l.a, l.b, comes)
		src.ends = true
		g.source = func() Source { return src.again() }
	}
	var now []buckets.Backend
	g.fresh = func() []buckets.Backend { now = memStores(l.tasks); return slices.Clone(now) }
	g.again = func() []buckets.Backend { return slices.Clone(now) }
	return g
}

// TestLedger: a join whose batches go by a ledger first, with everything that can happen to it, puts out and counts what one
// does to which nothing happens.
func TestLedger(t *testing.T) {
	cuts := 0
	for name, random := range map[string]func(*rand.Rand, int) *load{"aligned": randomLoad, "waiting": waitingLoad} {
		t.Run(name, func(t *testing.T) {
			eachSeed(t, 120, func(t *testing.T, r *rand.Rand) {
				l := random(r, 20+r.IntN(800))
				l.tasks = 1 + r.IntN(3)
				t.Log(l.desc)
				g := newLedgerRig(t, r, l)
				g.play()
				cuts += g.cuts
			})
		})
	}
	if cuts == 0 && *runsFlag == 0 {
		t.Error("the changelog was never cut")
	}
}

// TestLedgerRocks is TestLedger over RocksDB.
func TestLedgerRocks(t *testing.T) {
	eachSeed(t, 6, func(t *testing.T, r *rand.Rand) {
		l := randomLoad(r, 200+r.IntN(600))
		l.cfg.BatchSize = max(l.cfg.BatchSize, 50)
		l.cfg.Width *= 8 // a family costs 10 ms to make and to drop
		l.tasks = min(l.tasks, 2)
		t.Log(l.desc)
		g := newLedgerRig(t, r, l)
		var db *rocks
		g.fresh = func() []buckets.Backend { db = newRocks(t, l.tasks); return db.open(t) }
		g.again = func() []buckets.Backend { return db.open(t) }
		g.play()
	})
}

// TestLedgerCutTooFar: a state is not used in which rows are missing that wait.
func TestLedgerCutTooFar(t *testing.T) {
	cfg := &Config{Before: 1000, After: 5000, MaxSpread: 10_000, Width: 4000, Slots: 8, BatchSize: 2, Inline: true, Drain: true}
	src := newScript(t, 2, []scriptPart{times(0, "k", 0, 100, 200, 300, 400, 500)}, []scriptPart{times(0, "x", 100)})
	l := newLedger(t)
	l.e = open(t, cfg, memStores(1), src, l)
	ctx, cancel := context.WithCancel(context.Background())
	l.e.Observe = watch(func(e *Engine) {
		if e.Batch() == 3 {
			cancel()
		}
	})
	if err := l.e.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	must(t, l.e.Close())
	l.from = 1
	l.e = open(t, cfg, memStores(1), src.again(), l)
	l.apply(l.e)
	for what, err := range map[string]error{"Run": l.e.Run(context.Background()), "Rewind": l.e.Rewind()} {
		if err == nil || !strings.Contains(err.Error(), "lacks the beginning of buckets [0] of task 0") {
			t.Errorf("%s: error %v", what, err)
		}
	}
	must(t, l.e.Close())
}

// TestRewindListensAnew: an engine that goes back takes no partition for idle, since what it had read comes again. Who goes on being
// silent is idle in the end, after as long as at first.
func TestRewindListensAnew(t *testing.T) {
	c := leftJoin(10, 0)
	c.IdleTimeout = 1000
	a := []scriptPart{times(0, "k", 100, 300, 900, 950, 960), times(1, "k", 100, 200, 350)}
	// Partition 1 of A is idle from 1300 on. The engine goes back at 2000 and at 4000.
	src := newLive(t, a, []scriptPart{times(0, "k", 100)}, [2][][]int64{{{100, 1500, 2300, 3600, 5500}, {100, 300, 2500}}, {{100}}})
	e := live(t, src.config(c), memStores(1), src, &joined{}, 2000)
	wm := func(what string, want int64) {
		t.Helper()
		if got := e.gate.wm[A]; got != want {
			t.Errorf("%s: WM_A %d, want %d", what, got, want)
		}
	}
	goOn := func(until int64) {
		t.Helper()
		src.until = until
		must(t, ignore(e.Run(context.Background()), errUntil))
	}
	wm("partition 1 is idle", 300)
	*src.clock = 2000
	must(t, e.Rewind())
	if e.gate.parts[A][1].idle || e.gate.idle != [2]bool{} {
		t.Error("it went back, and did not listen anew")
	}
	goOn(2400)
	wm("partition 1 may still speak", 300)
	goOn(2600)
	wm("it has spoken", 350)
	goOn(4000)
	wm("it is idle again", 950)
	*src.clock = 4000
	must(t, e.Rewind())
	goOn(5600)
	wm("it was silent for longer", 960)
	must(t, e.Close())
}
