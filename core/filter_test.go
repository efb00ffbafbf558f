package core

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"joinbench/buckets"
	"joinbench/fusefilter"
)

// sealedLoad is a load whose A fill the buckets 0 to 11 (width 100) with perBucket keys each, sealed by one A at 1400
// before the first B asks: a batch takes exactly the A. The B ask from 950 to 1399 and find the buckets of the last 1,030
// ms; one in ten has a partner, the others are keys that no A has.
func sealedLoad(perBucket, probes int) (cfg *Config, a, b []scriptPart) {
	var as, bs []event
	for epoch := range 12 {
		for i := range perBucket {
			as = append(as, ev(fmt.Sprintf("k%d.%d", epoch, i), int64(epoch*100+i*100/perBucket)))
		}
	}
	as = append(as, ev("far", 1400))
	for i := range probes {
		e := ev(fmt.Sprintf("absent%d", i), 950+int64(i)*450/int64(probes))
		if i%10 == 0 { // of buckets 5 to 9, each key once, then again
			n := i / 10
			e.key = fmt.Sprintf("k%d.%d", 5+n%5, n/5%perBucket)
		}
		bs = append(bs, e)
	}
	cfg = &Config{After: 1030, MaxSpread: 470, Width: 100, Slots: 16, Filter: fusefilter.Fuse8, BatchSize: len(as), WantA: true, WantB: true,
		Inline: true}
	return cfg, []scriptPart{part(0, as...)}, []scriptPart{part(0, bs...)}
}

// TestFilterBooks: false positives and the rest against what the filters themselves say of each B.
func TestFilterBooks(t *testing.T) {
	defer func(old int) { minStale = old }(minStale)
	minStale = 1 << 30 // a filter that is built anew has other books
	for name, kind := range map[string]fusefilter.Kind{"fuse8": fusefilter.Fuse8, "fuse16": fusefilter.Fuse16, "none": fusefilter.None,
		"fuse8, lanes": fusefilter.Fuse8, "fuse16, lanes": fusefilter.Fuse16} {
		t.Run(name, func(t *testing.T) {
			cfg, a, b := sealedLoad(200, 20_000)
			cfg.Filter, cfg.Summary = kind, strings.HasSuffix(name, "lanes")
			sink := &joined{}
			e := open(t, cfg, memStores(1), newScript(t, 512, a, b), sink)
			var want TaskStats
			seen := map[string]bool{} // keys that were used up
			sink.fail = func(batch int, o *Output) error {
				if batch == 1 {
					return nil
				}
				if lanes, _ := e.tasks[0].set.Lanes(); cfg.Summary != (lanes != nil) {
					t.Fatalf("lanes: %v", lanes != nil)
				}
				refs := slices.Clone(o.UnmatchedB)
				for _, m := range o.Matches {
					refs = append(refs, m.Ref)
				}
				slices.SortFunc(refs, func(x, y Ref) int { return int(x.Chunk.Offset[x.Row] - y.Chunk.Offset[y.Row]) })
				for _, r := range refs {
					expectBooks(t, e.tasks[0], r, seen, &want)
				}
				return nil
			}
			must(t, e.Run(context.Background()))
			got := e.Counters().Tasks
			must(t, e.Close())
			if math.Abs(got.Predicted-want.Predicted) > 1e-6*want.Predicted {
				t.Errorf("predicted %v, want %v", got.Predicted, want.Predicted)
			}
			if kind == fusefilter.Fuse8 && (float64(got.FalsePositives) < 0.7*got.Predicted || float64(got.FalsePositives) > 1.3*got.Predicted) {
				t.Errorf("%d false positives, %.0f were predicted", got.FalsePositives, got.Predicted)
			}
			got = TaskStats{Lookups: got.Lookups, Present: got.Present, Absent: got.Absent, FalsePositives: got.FalsePositives, Stale: got.Stale,
				FilterQueries: got.FilterQueries, FilterFalse: got.FilterFalse, Queries: got.Queries, Probes: got.Probes}
			want.Predicted = 0
			if got != want {
				t.Errorf("the books\n got %+v\nwant %+v", got, want)
			}
			if want.Stale == 0 || want.Absent+want.Present != want.Queries || want.Queries != 20_000 {
				t.Fatalf("this test asks for less than it should: %+v", want)
			}
			if len(sink.pairs) != 5*200 {
				t.Errorf("%d pairs, want %d", len(sink.pairs), 5*200)
			}
		})
	}
}

// expectBooks books one B by asking every filter of its window alone.
func expectBooks(t *testing.T, task *Task, r Ref, seen map[string]bool, s *TaskStats) {
	key := string(r.Chunk.Key(r.Row))
	at, h := r.Chunk.Time[r.Row], task.hashOf([]byte(key))
	asked, falseMaybe, present := 0, uint64(0), false
	for epoch := (at - task.cfg.After) / 100; epoch <= at/100; epoch++ {
		b := task.ring.At(epoch)
		if b == nil || b.State() != buckets.Sealed {
			continue
		}
		asked++
		var has int64
		if n, err := fmt.Sscanf(key, "k%d.", &has); n == 1 && err == nil && has == epoch {
			present = true
			s.Lookups++
		} else if len(task.set.Probe([]uint64{h}, 1<<b.Slot, nil)) > 0 {
			falseMaybe++
			s.Lookups++
		}
	}
	s.Probes++
	if asked == 0 {
		return
	}
	s.Queries++
	s.FilterQueries += uint64(asked)
	s.FilterFalse += falseMaybe
	if task.cfg.Filter == fusefilter.None {
		s.Predicted++
	} else {
		s.Predicted += fusefilter.Predict(task.cfg.Filter, asked)
	}
	switch {
	case present && seen[key]:
		s.Present++
		s.Stale++
	case present:
		s.Present++
		seen[key] = true
	default:
		s.Absent++
		if falseMaybe > 0 {
			s.FalsePositives++
		}
	}
}

// TestMergeAll: ascending lists come out as one, each hash once, whatever their number.
func TestMergeAll(t *testing.T) {
	eachSeed(t, 50, func(t *testing.T, r *rand.Rand) {
		lists := make([][]uint64, r.IntN(20))
		var want []uint64
		for i := range lists {
			for range r.IntN(30) {
				lists[i] = append(lists[i], r.Uint64N(60))
			}
			slices.Sort(lists[i])
			lists[i] = slices.Compact(lists[i])
			want = append(want, lists[i]...)
		}
		slices.Sort(want)
		if want = slices.Compact(want); !slices.Equal(mergeAll(lists), want) {
			t.Fatalf("%v, want %v", mergeAll(lists), want)
		}
	})
}

// TestBuildFails: B52. A filter that cannot be built costs lookups and nothing else.
func TestBuildFails(t *testing.T) {
	cfg, a, b := sealedLoad(50, 2000)
	cfg.Summary = true
	for _, inline := range []bool{true, false} {
		cfg.Inline = inline
		right, good := runAll(t, cfg, 1, newScript(t, 512, a, b))
		for name, c := range map[string]struct {
			fails  func(build, keys int) bool
			failed uint64
		}{
			"all":   {func(int, int) bool { return true }, 12},
			"lanes": {func(_, keys int) bool { return keys > 50 }, 0}, // of more than one bucket: each try
			"half":  {func(build, _ int) bool { return build%2 == 0 }, 0},
		} {
			t.Run(fmt.Sprintf("%s/inline=%v", name, inline), func(t *testing.T) {
				sink, build, failed := &joined{}, 0, uint64(0)
				e := open(t, cfg, memStores(1), newScript(t, 512, a, b), sink)
				e.tasks[0].help.builder.Before = func(_ fusefilter.Kind, keys int) error {
					build++
					if c.fails(build, keys) {
						failed++
						return errEnd
					}
					return nil
				}
				must(t, e.Run(context.Background()))
				must(t, e.Quiesce())
				k := e.Counters().Tasks
				must(t, e.Close())
				sameList(t, "pairs", sink.pairs, right.pairs)
				sameList(t, "unmatched B", sink.unmatchedB, right.unmatchedB)
				if failed == 0 || k.BuildFailed != failed || c.failed != 0 && failed != c.failed || good.Tasks.BuildFailed != 0 {
					t.Errorf("%d builds failed, %d are counted", failed, k.BuildFailed)
				}
				if inline && name != "lanes" && k.Lookups < 5*good.Tasks.Lookups {
					t.Errorf("%d lookups without filters, %d with: should be many more", k.Lookups, good.Tasks.Lookups)
				}
				if name == "all" && (k.Queries != 0 || k.Absent != 0 || k.FalsePositives != 0 || k.FiltersBuilt != 0) {
					t.Errorf("the books of filters that are not there: %+v", k)
				}
			})
		}
	}
}

// TestFilterRebuild: a bucket whose filter mostly leads to used rows gets one of the rows that wait. The outputs are the
// same, with lanes and without, and a B of a used key ends in RAM again.
func TestFilterRebuild(t *testing.T) {
	for _, lanes := range []bool{false, true} {
		cfg, a, b := sealedLoad(100, 200)
		for i := range 10 { // each key of bucket 5 but the last ten once, then most of them ten times more
			for k := range 90 {
				b[0].events = append(b[0].events, event{time: 1399, key: fmt.Sprintf("k5.%d", k), offset: int64(1000 + 90*i + k)})
			}
		}
		for k := 90; k < 100; k++ {
			b[0].events = append(b[0].events, event{time: 1399, key: fmt.Sprintf("k5.%d", k), offset: int64(3000 + k)})
		}
		cfg.BatchSize, cfg.Summary, cfg.Filter = 64, lanes, fusefilter.Fuse16
		func() {
			defer func(old int) { minStale = old }(minStale)
			minStale = 1 << 30
			want, plain := runAll(t, cfg, 1, newScript(t, 512, a, b))
			minStale = 64
			got, rebuilt := runAll(t, cfg, 1, newScript(t, 512, a, b))
			sameList(t, "pairs", got.pairs, want.pairs)
			sameList(t, "unmatched B", got.unmatchedB, want.unmatchedB)
			if rebuilt.Tasks.FiltersRebuilt == 0 || plain.Tasks.FiltersRebuilt != 0 {
				t.Errorf("%d filters were rebuilt, %d with rebuilding off", rebuilt.Tasks.FiltersRebuilt, plain.Tasks.FiltersRebuilt)
			}
			if rebuilt.Tasks.Stale*2 > plain.Tasks.Stale || rebuilt.Tasks.Lookups >= plain.Tasks.Lookups {
				t.Errorf("stale positives %d of %d, lookups %d of %d", rebuilt.Tasks.Stale, plain.Tasks.Stale, rebuilt.Tasks.Lookups, plain.Tasks.Lookups)
			}
		}()
	}
}

// TestBuildRetry: a build that failed is tried again, until it succeeds.
func TestBuildRetry(t *testing.T) {
	cfg, a, b := sealedLoad(50, 40_000)
	cfg.BatchSize = 16 // so that there are batches enough
	fails := 3
	cfg.BuildFault = func(_ fusefilter.Kind, keys int) error {
		if fails--; fails >= 0 {
			return errEnd
		}
		return nil
	}
	_, counts := runAll(t, cfg, 1, newScript(t, 512, a, b))
	if k := counts.Tasks; k.BuildFailed != 3 || k.FiltersBuilt-k.FiltersRebuilt < 12 {
		t.Errorf("%d builds failed and %d filters were built for the first time, want 3 and one for each of 12 buckets", k.BuildFailed, k.FiltersBuilt-k.FiltersRebuilt)
	}
}

// slowScans is a store that gives the hashes of n families, and those of the others when it is told to go on.
type slowScans struct {
	buckets.Backend
	n  atomic.Int64
	on chan struct{}
}

func (s *slowScans) ScanHashes(f buckets.Family, dst []uint64) ([]uint64, error) {
	if s.n.Add(-1) < 0 {
		<-s.on
	}
	return s.Backend.ScanHashes(f, dst)
}

// TestFiltersLoad: B49. After a restart a bucket without its filter is maybe: every match is found, at every moment of
// the rebuild.
func TestFiltersLoad(t *testing.T) {
	for left := range 13 {
		cfg, a, b := sealedLoad(50, 2000)
		b[0].events = b[0].events[:600] // up to 1085, so that nothing is dropped: that would have to wait for the scans
		right, _ := runAll(t, cfg, 1, newScript(t, 512, a, b))
		cfg.Inline = false
		stores, sink := memStores(1), &joined{}
		e := open(t, cfg, stores, newScript(t, 512, a, b), sink)
		ctx, cancel := context.WithCancel(context.Background())
		e.Observe = watch(func(*Engine) { cancel() })
		if err := e.Run(ctx); !errors.Is(err, context.Canceled) || len(sink.pairs) != 0 {
			t.Fatal(err, len(sink.pairs))
		}
		must(t, e.Close())

		slow := &slowScans{Backend: stores[0], on: make(chan struct{})}
		slow.n.Store(int64(12 - left))
		e = open(t, cfg, []buckets.Backend{slow}, newScript(t, 512, a, b), sink)
		must(t, e.tasks[0].collect(false))
		loading := e.tasks[0].loading
		sink.fail = func(int, *Output) error {
			for slot := range cfg.Slots {
				if b := e.tasks[0].ring.AtSlot(slot); b != nil && b.State() == buckets.Sealed && e.tasks[0].set.State(slot) == fusefilter.Empty {
					t.Errorf("bucket %d counts as empty", b.Epoch)
				}
			}
			return nil
		}
		must(t, e.Run(context.Background()))
		k := e.Counters().Tasks
		if loading < left || left == 12 && k.Queries != 0 {
			t.Errorf("%d filters were loading, want at least %d; %d B asked filters only", loading, left, k.Queries)
		}
		close(slow.on)
		must(t, e.Quiesce())
		if got := e.Counters().Tasks.FiltersBuilt; got != 12 && left == 0 {
			t.Errorf("%d filters were built again, want 12", got)
		}
		must(t, e.Close())
		sameList(t, "pairs", sink.pairs, right.pairs)
		sameList(t, "unmatched B", sink.unmatchedB, right.unmatchedB)
	}
}

// TestWindows: which sealed buckets a B asks, from one B to the next, is what its time says alone, also when the times go to
// and fro over one border or several.
func TestWindows(t *testing.T) {
	cfg, a, b := sealedLoad(5, 10)
	e := open(t, cfg, memStores(1), newScript(t, 100, a, b), &joined{})
	task := e.tasks[0]
	ctx, cancel := context.WithCancel(context.Background())
	e.Observe = watch(func(*Engine) { cancel() })
	if err := e.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	eachSeed(t, 200, func(t *testing.T, r *rand.Rand) {
		cfg.Before, cfg.After = r.Int64N(250), r.Int64N(500)
		times := make([]int64, 300)
		now, far := r.Int64N(1300), r.Int64N(2)*r.Int64N(400)
		for i := range times { // far: partitions that are read side by side
			now = max(0, now+r.Int64N(5)-2)
			times[i] = now + int64(i%3)*far
		}
		rows := rowsOf(B, 0, len(times), keyOf, func(i int) int64 { return times[i] })
		before := *task.stats
		task.gather(rows)
		asked, queries, all := uint64(0), uint64(0), uint64(0)
		masks := map[uint64]bool{}
		for _, at := range times {
			want := uint64(0)
			for epoch := range int64(12) {
				if epoch*100 <= at+cfg.Before && epoch*100+99 >= at-cfg.After {
					want |= 1 << buckets.SlotOf(epoch, cfg.Slots)
				}
			}
			asked += uint64(bits.OnesCount64(want))
			if want != 0 {
				queries++
			}
			all |= want
			masks[want] = true
			if w := task.moveWindow(at); w.sealed != want || at < w.from || at >= w.to {
				t.Fatalf("a B at %d (before %d, after %d) asks %b, want %b; window %d to %d", at, cfg.Before, cfg.After, w.sealed, want, w.from, w.to)
			}
		}
		if task.win.sealed != all || len(masks) > 1 && !task.win.several {
			t.Fatalf("all together ask %b, several %v; want %b, of %d windows", task.win.sealed, task.win.several, all, len(masks))
		}
		if q, f := task.stats.Queries-before.Queries, task.stats.FilterQueries-before.FilterQueries; q != queries || f != asked {
			t.Fatalf("%d B asked %d buckets by the books, want %d and %d", q, f, queries, asked)
		}
	})
	must(t, e.Close())
}

// TestDroppedWhileSealing: a bucket whose time is over while the helper still works on it, in this life or for the
// filter of an earlier one, leaves nothing in its slot, which another bucket has taken meanwhile.
func TestDroppedWhileSealing(t *testing.T) {
	for name, restart := range map[string]bool{"a seal": false, "a scan": true} {
		t.Run(name, func(t *testing.T) {
			// Bucket 0 is sealed when 250 is in and over when B stands at 340; 410 takes its slot.
			cfg := &Config{After: 140, MaxSpread: 160, Width: 100, Slots: 4, Filter: fusefilter.Fuse16, BatchSize: 1, Inline: restart}
			a := []scriptPart{part(0, ev("old", 10), ev("x", 250), ev("new", 410), ev("x", 480))}
			b := []scriptPart{part(0, ev("z", 150), ev("x", 340), ev("new", 430), ev("old", 431))}
			stores, sink := memStores(1), &joined{}
			slow := &slowScans{Backend: stores[0], on: make(chan struct{})}
			src := newScript(t, 1, a, b)
			if restart { // the first life seals bucket 0
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				e := open(t, cfg, stores, src, sink)
				e.Observe = watch(func(*Engine) {
					if e.Levels(false).Sealed == 1 {
						cancel()
					}
				})
				if err := e.Run(ctx); !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				must(t, e.Close())
				cfg.Inline, stores[0] = false, slow
			}
			e := open(t, cfg, stores, src.again(), sink)
			task := e.tasks[0]
			if !restart {
				task.help.builder.Before = func(fusefilter.Kind, int) error { <-slow.on; return nil }
			}
			taken := false
			e.Observe = watch(func(*Engine) {
				if b := task.ring.AtSlot(0); b != nil && b.Epoch == 4 && !taken {
					taken = true
					if task.stats.SealedTotal != 0 || task.stats.DroppedTotal != 1 {
						t.Errorf("%d buckets sealed, %d dropped when 410 came", task.stats.SealedTotal, task.stats.DroppedTotal)
					}
					close(slow.on)
					must(t, task.collect(true))
					if task.index[0] == nil || task.set.State(0) != fusefilter.Empty || task.set.Filtered() != 1<<2 {
						t.Errorf("the slot of 410: index %v, state %d", task.index[0], task.set.State(0))
					}
				}
			})
			must(t, e.Run(context.Background()))
			must(t, e.Close())
			if !taken {
				t.Fatal("410 never took the slot")
			}
			wantList(t, "pairs", sink.pairs, "a0.1+b0.1 a0.2+b0.2")
			if f := stores[0].Families(); len(f) > 2 {
				t.Errorf("%d families are left", len(f))
			}
		})
	}
}
