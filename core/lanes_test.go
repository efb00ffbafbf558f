package core

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"testing"

	"joinbench/buckets"
	"joinbench/fusefilter"
)

// streamLoad is a load whose buckets (width 100) are sealed one after another: bucket e gets per(e) keys, spread over its
// time, and as soon as the next has begun, ask(e) B ask for its first keys, each once. A tenth as many B as there are A ask
// for what nobody has.
func streamLoad(epochs int, per, ask func(epoch int) int) (cfg *Config, a, b []scriptPart) {
	var as, bs []event
	total := 0
	for epoch := range epochs {
		for i := range ask(epoch - 1) {
			bs = append(bs, ev(fmt.Sprintf("k%d.%d", epoch-1, i), int64(epoch*100+10)))
		}
		for i := range per(epoch) {
			at := int64(epoch*100 + i*100/per(epoch))
			as = append(as, ev(fmt.Sprintf("k%d.%d", epoch, i), at))
			if total++; total%10 == 0 {
				bs = append(bs, ev(fmt.Sprint("absent", total), max(at, int64(epoch*100+10))))
			}
		}
	}
	as = append(as, ev("far", int64(epochs*100)))
	cfg = &Config{After: 1030, MaxSpread: 10, Width: 100, Slots: 16, Filter: fusefilter.Fuse16, BatchSize: 20, WantA: true, WantB: true,
		Summary: true, Inline: true}
	return cfg, []scriptPart{part(0, as...)}, []scriptPart{part(0, bs...)}
}

func constant(n int) func(int) int { return func(int) int { return n } }

// laneOf says whether the bucket of an epoch is sealed and has a filter, whether that is a lane, and of how many keys.
func laneOf(task *Task, epoch int64) (filtered, lane bool, keys int) {
	b := task.ring.At(epoch)
	if b == nil || b.State() != buckets.Sealed || task.set.State(b.Slot) != fusefilter.Filtered {
		return false, false, 0
	}
	_, laned := task.set.Lanes()
	return true, laned>>b.Slot&1 == 1, task.set.Keys(b.Slot)
}

// TestLanesChangeNothing: with lanes the outputs are those without, for all kinds, in both cardinalities, inline and not.
func TestLanesChangeNothing(t *testing.T) {
	for _, kind := range []fusefilter.Kind{fusefilter.None, fusefilter.Fuse8, fusefilter.Fuse16, fusefilter.Fuse32, fusefilter.Bloom} {
		for _, card := range []Cardinality{OneToOne, OneToMany} {
			for _, inline := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/cardinality %d/inline=%v", kind, card, inline), func(t *testing.T) {
					cfg, a, b := streamLoad(30, func(e int) int { return 20 + e*37%100 }, func(e int) int { return max(0, min(e, 15)) })
					cfg.Filter, cfg.Cardinality, cfg.Inline, cfg.Summary = kind, card, inline, false
					src := newScript(t, 64, a, b)
					want, c1 := runAll(t, cfg, 1, src)
					cfg.Summary = true
					sink, most := &joined{}, 0
					e := open(t, cfg, memStores(1), src.again(), sink)
					e.Observe = watch(func(*Engine) {
						_, laned := e.tasks[0].set.Lanes()
						most = max(most, bits.OnesCount64(laned))
					})
					must(t, e.Run(context.Background()))
					must(t, e.Quiesce())
					c2 := e.Counters()
					must(t, e.Close())
					sameList(t, "pairs", sink.pairs, want.pairs)
					sameList(t, "unmatched A", sink.unmatchedA, want.unmatchedA)
					sameList(t, "unmatched B", sink.unmatchedB, want.unmatchedB)
					if inline && c1.Tasks.Present != c2.Tasks.Present || len(want.pairs) == 0 {
						t.Errorf("%d B met a sealed bucket that has their hash, %d without lanes", c2.Tasks.Present, c1.Tasks.Present)
					}
					if inline && kind.InRAM() != (most >= 8) || !kind.InRAM() && most > 0 {
						t.Errorf("%d lanes at most", most)
					}
				})
			}
		}
	}
}

// only is n for one epoch and another number for the rest.
func only(epoch, n, rest int) func(e int) int {
	return func(e int) int {
		if e == epoch {
			return n
		}
		return rest
	}
}

// TestLargeBucketBecomesALaneLater: a bucket with more keys than the lanes were made for stands alone until the next is
// sealed. By then most of its rows are used, and it becomes a lane of the others; the lanes do not grow.
func TestLargeBucketBecomesALaneLater(t *testing.T) {
	const large, n, used = 4, 200, 170
	cfg, a, b := streamLoad(8, only(large, n, 50), only(large, used, 0))
	sink := &joined{}
	e := open(t, cfg, memStores(1), newScript(t, 16, a, b), sink)
	task := e.tasks[0]
	alone, lanes, capacity := 0, 0, 0
	e.Observe = watch(func(*Engine) {
		filtered, lane, keys := laneOf(task, large)
		l, _ := task.set.Lanes()
		switch {
		case !filtered:
			return
		case !lane:
			alone++
			if lanes > 0 || keys != n {
				t.Errorf("alone with %d keys, after %d batches as a lane", keys, lanes)
			}
			if task.ring.At(large+1) != nil && task.ring.At(large+1).State() == buckets.Sealed {
				t.Error("still alone although the next bucket is sealed")
			}
		default:
			lanes++
			if keys != n-used {
				t.Errorf("a lane of %d keys, %d wait", keys, n-used)
			}
		}
		if capacity = max(capacity, l.Capacity()); capacity >= n-used+50 {
			t.Errorf("lanes for %d keys", l.Capacity())
		}
	})
	must(t, e.Run(context.Background()))
	must(t, e.Close())
	if alone == 0 || lanes == 0 || len(sink.pairs) != used {
		t.Errorf("%d batches alone, %d as a lane, %d pairs", alone, lanes, len(sink.pairs))
	}
	cfg.Summary = false
	want, _ := runAll(t, cfg, 1, newScript(t, 16, a, b))
	sameList(t, "pairs", sink.pairs, want.pairs)
	sameList(t, "unmatched B", sink.unmatchedB, want.unmatchedB)
}

// TestLargeBucketTakesTwoLanes: a bucket with less than twice the keys that the lanes were made for takes the lane of the open
// bucket besides its own, and one alone when the next is sealed. The outputs are those without lanes.
func TestLargeBucketTakesTwoLanes(t *testing.T) {
	const large, n, used = 4, 1700, 1200
	cfg, a, b := streamLoad(8, only(large, n, 1000), only(large, used, 0))
	cfg.Inline = true
	most := 0
	cfg.BuildFault = func(_ fusefilter.Kind, keys int) error { most = max(most, keys); return nil }
	sink := &joined{}
	e := open(t, cfg, memStores(1), newScript(t, 64, a, b), sink)
	task := e.tasks[0]
	two, one := 0, 0
	e.Observe = watch(func(*Engine) {
		l, laned := task.set.Lanes()
		slot := buckets.SlotOf(large, cfg.Slots)
		if l == nil || task.ring.At(large) == nil || laned>>slot&1 == 0 {
			return
		}
		switch keys := task.set.Keys(slot); {
		case l.Split()>>slot&1 == 1:
			if two++; two == 1 {
				most = 0 // what the next seal builds counts
			}
			if keys != n || one > 0 {
				t.Errorf("two lanes of %d keys, after %d batches with one", keys, one)
			}
		default:
			one++
			if keys != n-used {
				t.Errorf("one lane of %d keys, %d wait", keys, n-used)
			}
		}
		if l.Capacity() >= n {
			t.Errorf("lanes for %d keys", l.Capacity())
		}
	})
	must(t, e.Run(context.Background()))
	must(t, e.Close())
	if two == 0 || one == 0 || len(sink.pairs) != used {
		t.Errorf("%d batches with two lanes, %d with one, %d pairs", two, one, len(sink.pairs))
	}
	if most > n {
		t.Errorf("a build of %d keys: all lanes were built anew", most)
	}
	cfg.Summary = false
	want, _ := runAll(t, cfg, 1, newScript(t, 64, a, b))
	sameList(t, "pairs", sink.pairs, want.pairs)
	sameList(t, "unmatched B", sink.unmatchedB, want.unmatchedB)
}

// TestLanesGrowAndShrink: when all buckets become larger, so do the lanes; when all are small again, the lanes are made
// smaller.
func TestLanesGrowAndShrink(t *testing.T) {
	per := func(e int) int {
		if e >= 10 && e < 20 {
			return 300
		}
		return 60
	}
	cfg, a, b := streamLoad(50, per, constant(0))
	cfg.BatchSize = 200
	e := open(t, cfg, memStores(1), newScript(t, 64, a, b), &joined{})
	task := e.tasks[0]
	var sizes []int
	e.Observe = watch(func(*Engine) {
		if l, laned := task.set.Lanes(); l != nil && (len(sizes) == 0 || sizes[len(sizes)-1] != l.Capacity()) {
			sizes = append(sizes, l.Capacity())
			if most := l.MostKeys(laned); most > l.Capacity() {
				t.Errorf("%d keys in lanes for %d", most, l.Capacity())
			}
		}
	})
	must(t, e.Run(context.Background()))
	failed := e.Counters().Tasks.BuildFailed
	must(t, e.Close())
	if len(sizes) != 3 || sizes[0] > 62 || sizes[1] < 300 || sizes[1] > 310 || sizes[2] > 62 || failed != 0 {
		t.Errorf("lanes for %v keys, one after another; %d builds failed", sizes, failed)
	}
}

// TestStaleLane: a lane that mostly leads to used rows is made anew of those that wait, beside the others, and never
// stands alone meanwhile.
func TestStaleLane(t *testing.T) {
	defer func(old int) { minStale = old }(minStale)
	minStale = 16
	cfg, a, b := sealedLoad(100, 100)
	at := int64(b[0].events[len(b[0].events)-1].offset)
	add := func(from, to int) {
		for k := from; k < to; k++ {
			at++
			b[0].events = append(b[0].events, event{time: 1399, key: fmt.Sprintf("k5.%d", k), offset: at})
		}
	}
	for range 5 {
		add(0, 80)
	}
	add(80, 100)
	cfg.BatchSize, cfg.Summary, cfg.Filter = 64, true, fusefilter.Fuse16
	sink := &joined{}
	e := open(t, cfg, memStores(1), newScript(t, 64, a, b), sink)
	task := e.tasks[0]
	var sizes []int
	e.Observe = watch(func(*Engine) {
		filtered, lane, keys := laneOf(task, 5)
		if filtered && !lane && len(sizes) > 0 {
			t.Error("it left the lanes")
		}
		if lane && (len(sizes) == 0 || sizes[len(sizes)-1] != keys) {
			sizes = append(sizes, keys)
		}
		if _, other, keys := laneOf(task, 7); lane && other && keys != 100 {
			t.Errorf("another lane has %d keys", keys)
		}
	})
	must(t, e.Run(context.Background()))
	k := e.Counters().Tasks
	must(t, e.Close())
	if len(sizes) < 2 || sizes[0] != 100 || sizes[len(sizes)-1] > 20 {
		t.Errorf("the lane had %v keys", sizes)
	}
	if k.FiltersRebuilt == 0 || k.Stale == 0 || k.Stale > 320 {
		t.Errorf("%d filters were rebuilt, %d stale positives", k.FiltersRebuilt, k.Stale)
	}
	minStale = 1 << 30
	want, _ := runAll(t, cfg, 1, newScript(t, 64, a, b))
	sameList(t, "pairs", sink.pairs, want.pairs)
	sameList(t, "unmatched B", sink.unmatchedB, want.unmatchedB)
}

// TestLanesFail: lanes that cannot be built leave the filters alone, and the next seal tries again.
func TestLanesFail(t *testing.T) {
	for name, fails := range map[string]int{"always": 1 << 30, "three times": 3} {
		t.Run(name, func(t *testing.T) {
			cfg, a, b := streamLoad(12, constant(60), constant(20))
			cfg.Summary = false
			want, plain := runAll(t, cfg, 1, newScript(t, 64, a, b))
			cfg.Summary = true
			sink := &joined{}
			e := open(t, cfg, memStores(1), newScript(t, 64, a, b), sink)
			task := e.tasks[0]
			failed := 0
			task.help.builder.Before = func(fusefilter.Kind, int) error {
				if task.lanesBusy && failed < fails { // inline: whatever is built while lanes are due is lanes
					failed++
					return errEnd
				}
				return nil
			}
			e.Observe = watch(func(*Engine) {
				lanes, laned := task.set.Lanes()
				if failed < fails && lanes != nil {
					t.Errorf("lanes %b although none could be built", laned)
				}
				for epoch := range int64(12) {
					if b := task.ring.At(epoch); b != nil && b.State() == buckets.Sealed && task.set.State(b.Slot) != fusefilter.Filtered {
						t.Errorf("bucket %d lost its filter", epoch)
					}
				}
			})
			must(t, e.Run(context.Background()))
			k := e.Counters().Tasks
			lanes, laned := task.set.Lanes()
			laned |= 1 << task.ring.At(11).Slot // the newest may be too large for them
			must(t, e.Close())
			sameList(t, "pairs", sink.pairs, want.pairs)
			sameList(t, "unmatched A", sink.unmatchedA, want.unmatchedA)
			sameList(t, "unmatched B", sink.unmatchedB, want.unmatchedB)
			if failed < 3 || k.BuildFailed != uint64(failed) || k.FiltersBuilt != plain.Tasks.FiltersBuilt {
				t.Errorf("%d builds of lanes failed, %d are counted; %d filters built, %d without lanes", failed, k.BuildFailed, k.FiltersBuilt, plain.Tasks.FiltersBuilt)
			}
			if (fails == 3) != (lanes != nil) || fails == 3 && laned != task.set.Filtered() {
				t.Errorf("in the end lanes of %b, filters of %b", laned, task.set.Filtered())
			}
			if fails > 3 && k.Lookups != plain.Tasks.Lookups {
				t.Errorf("%d lookups by the same filters, %d without lanes", k.Lookups, plain.Tasks.Lookups)
			}
		})
	}
}

// TestLanesComeBack: after a restart all filters are lanes again, once the last has been loaded.
func TestLanesComeBack(t *testing.T) {
	for _, inline := range []bool{true, false} {
		cfg, a, b := sealedLoad(50, 2000)
		cfg.Filter, cfg.Summary, cfg.Inline = fusefilter.Fuse16, true, inline
		right, _ := runAll(t, cfg, 1, newScript(t, 512, a, b))
		stores, sink := memStores(1), &joined{}
		e := open(t, cfg, stores, newScript(t, 512, a, b), sink)
		ctx, cancel := context.WithCancel(context.Background())
		e.Observe = watch(func(*Engine) { cancel() })
		if err := e.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		must(t, e.Close())

		slow := &slowScans{Backend: stores[0], on: make(chan struct{})}
		slow.n.Store(1 << 40)
		if !inline {
			slow.n.Store(11) // the last filter waits
		}
		e = open(t, cfg, []buckets.Backend{slow}, newScript(t, 512, a, b), sink)
		task := e.tasks[0]
		for task.loading > loadTogether {
			j, _ := task.help.next(true)
			must(t, j.finish(task))
		}
		if l, _ := task.set.Lanes(); !inline && (l != nil || task.lanesBusy || task.loading == 0) {
			t.Errorf("lanes %v, in the making %v, while %d filters are loading", l != nil, task.lanesBusy, task.loading)
		}
		close(slow.on)
		must(t, task.collect(true))
		if _, laned := task.set.Lanes(); bits.OnesCount64(laned) != 12 || laned != task.set.Filtered() {
			t.Errorf("lanes of %b, filters of %b", laned, task.set.Filtered())
		}
		for epoch := range int64(12) {
			if _, lane, keys := laneOf(task, epoch); !lane || keys != 50 {
				t.Errorf("bucket %d: lane %v of %d keys", epoch, lane, keys)
			}
		}
		must(t, e.Run(context.Background()))
		must(t, e.Quiesce())
		k := e.Counters().Tasks
		must(t, e.Close())
		if k.BuildFailed != 0 {
			t.Errorf("%d builds failed", k.BuildFailed)
		}
		sameList(t, "pairs", sink.pairs, right.pairs)
		sameList(t, "unmatched B", sink.unmatchedB, right.unmatchedB)
	}
}

// TestLanesTakeInWhatWasSealedMeanwhile: what is sealed while lanes are built becomes part of them right after.
func TestLanesTakeInWhatWasSealedMeanwhile(t *testing.T) {
	cfg, a, b := sealedLoad(50, 100)
	cfg.Summary = true
	e := open(t, cfg, memStores(1), newScript(t, 512, a, b), &joined{})
	builds := 0
	e.tasks[0].help.builder.Before = func(fusefilter.Kind, int) error {
		if e.tasks[0].lanesBusy {
			builds++
		}
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	e.Observe = watch(func(*Engine) { // the first batch seals twelve buckets at once
		cancel()
		if _, laned := e.tasks[0].set.Lanes(); bits.OnesCount64(laned) != 12 || laned != e.tasks[0].set.Filtered() || builds < 2 {
			t.Errorf("lanes of %b, filters of %b, after %d builds", laned, e.tasks[0].set.Filtered(), builds)
		}
	})
	if err := e.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	must(t, e.Close())
}
