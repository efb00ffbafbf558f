package core

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"joinbench/buckets"
)

// frail is a store in memory that notes what is done to it, so that a power cut can take the last of that away: what was
// written since the last sync.
type frail struct {
	*buckets.MemBackend
	mu     sync.Mutex // helpers write runs and drop them
	ops    []op
	synced int // so many ops are on disk
}

// op is one change. A run is on disk at once, under its own name: only the log's order binds the rest.
type op struct {
	do  func(m *buckets.MemBackend) error
	run bool
}

func newFrail() *frail { return &frail{MemBackend: buckets.NewMemBackend()} }

func (f *frail) note(o op, sync bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ops = append(f.ops, o)
	if sync {
		f.synced = len(f.ops)
	}
	return o.do(f.MemBackend)
}

func (f *frail) Write(w *buckets.Write) error {
	c := w.Clone()
	return f.note(op{do: func(m *buckets.MemBackend) error { return m.Write(c) }}, w.Sync)
}

func (f *frail) SyncLog() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.synced = len(f.ops)
	return f.MemBackend.SyncLog()
}

type keptRun struct {
	keys, values [][]byte
	at           int
}

func (k *keptRun) Next() (key, value []byte, ok bool) {
	if k.at == len(k.keys) {
		return nil, nil, false
	}
	k.at++
	return k.keys[k.at-1], k.values[k.at-1], true
}

func (k *keptRun) Size() int64 { return 0 }

func (f *frail) WriteRun(name buckets.RunName, rows buckets.RunSource) (fam buckets.Family, stats buckets.RunStats, err error) {
	kept := &keptRun{}
	for k, v, ok := rows.Next(); ok; k, v, ok = rows.Next() {
		kept.keys, kept.values = append(kept.keys, bytes.Clone(k)), append(kept.values, bytes.Clone(v))
	}
	err = f.note(op{run: true, do: func(m *buckets.MemBackend) (err error) {
		again := *kept
		fam, stats, err = m.WriteRun(name, &again)
		return err
	}}, false)
	return fam, stats, err
}

// DropFamily syncs the log first, as Rocks does.
func (f *frail) DropFamily(fam buckets.Family) error {
	if err := f.SyncLog(); err != nil {
		return err
	}
	name := fam.Name()
	return f.note(op{do: func(m *buckets.MemBackend) error {
		for _, x := range m.Families() {
			if x.Name() == name {
				return m.DropFamily(x)
			}
		}
		return errors.New("no such family")
	}}, true)
}

// cut is the store after a power cut that left the first n changes of the log.
func (f *frail) cut(t *testing.T, n int) *frail {
	t.Helper()
	after := newFrail()
	for i, o := range f.ops {
		if i < n || o.run {
			must(t, after.note(o, true))
		}
	}
	return after
}

// TestPowerCut: after power cuts that took the last changes of each task's log, as many as they liked beyond what was synced, a
// join goes on exactly or says that it cannot; with one task, or when each batch was synced, it always can.
func TestPowerCut(t *testing.T) {
	cuts, refused, wentOn := 0, 0, 0
	eachSeed(t, 150, func(t *testing.T, r *rand.Rand) {
		l := randomLoad(r, 20+r.IntN(600))
		size := l.cfg.BatchSize
		mode := []buckets.SyncMode{buckets.SyncNone, buckets.SyncBatch}[r.IntN(2)]
		t.Logf("sync mode %d, %s", mode, l.desc)
		src := newScript(t, l.chunk, l.a, l.b)
		want, sink := expect(&l.cfg, src), &joined{}
		stores := make([]*frail, l.tasks)
		for i := range stores {
			stores[i] = newFrail()
		}
		far := 1 + r.IntN(60)
		for life, done := 0, false; !done; life++ {
			n := int64(1 + r.IntN(far))
			l.cfg.BatchSize = 1 + r.IntN(2*size) // the next life cuts its batches elsewhere
			if life > 25 {
				n = 1 << 40
			}
			disks := make([]buckets.Backend, len(stores))
			for i, s := range stores {
				disks[i] = s
			}
			err := oneLife(t, &l.cfg, mode, disks, src.again(), sink, n)
			switch {
			case err == nil:
				done = true
				continue
			case life > 0 && strings.Contains(err.Error(), "a power cut"):
				if refused++; len(stores) == 1 || mode == buckets.SyncBatch {
					t.Fatalf("life %d: %v", life, err)
				}
				return
			case !errors.Is(err, errEnd):
				t.Fatal(err)
			}
			if life > 0 {
				wentOn++
			}
			for i, s := range stores {
				keep := len(s.ops)
				if r.IntN(3) > 0 {
					keep -= r.IntN(min(len(s.ops)-s.synced, 12) + 1)
				}
				cuts += len(s.ops) - keep
				stores[i] = s.cut(t, keep)
			}
		}
		checkOutputs(t, sink, want)
	})
	t.Logf("power cuts took %d changes; %d times the state was refused, %d times it went on", cuts, refused, wentOn)
	if *runsFlag == 0 && !testing.Short() && (refused < 5 || wentOn < 50) {
		t.Error("that is too few")
	}
}

// oneLife joins until the n-th write, or to the end.
func oneLife(t *testing.T, cfg *Config, mode buckets.SyncMode, stores []buckets.Backend, src *script, sink *joined, n int64) error {
	t.Helper()
	stores = mortals(stores, n, true)
	rings, record, err := OpenRings(cfg, mode, stores)
	if err != nil {
		return err
	}
	e, err := NewEngine(cfg, rings, record, src, sink)
	if err != nil {
		return err
	}
	err = e.Run(context.Background())
	if err == nil {
		err = e.Quiesce()
	}
	return errors.Join(err, e.Close())
}

// TestCutOfLaterBatchesIsSynced: what a task journaled beyond the commit record is cut off for good before its numbers are given
// to other batches: after a power cut that took the cut back as well it would pass for these.
func TestCutOfLaterBatchesIsSynced(t *testing.T) {
	cfg := &Config{After: 100, MaxSpread: 1000, Width: 1000, Slots: 4, BatchSize: 2, Drain: true, Inline: true}
	src := newScript(t, 10, []scriptPart{times(0, "x", 1, 2, 3, 4, 5, 6)}, []scriptPart{times(0, "y", 1, 2, 3, 4, 5, 6)})
	ahead := 0
	for writes := int64(3); writes < 12; writes++ {
		stores, sink := []*frail{newFrail(), newFrail()}, &joined{}
		if err := oneLife(t, cfg, buckets.SyncNone, []buckets.Backend{stores[0], stores[1]}, src.again(), sink, writes); !errors.Is(err, errEnd) {
			t.Fatal(err)
		}
		record, err := buckets.CommitRecord(stores[0])
		must(t, err)
		committed, err := CommittedBatch(record)
		must(t, err)
		var later [2]bool
		for i, s := range stores {
			has, err := buckets.Journaled(s)
			must(t, err)
			if later[i] = has.Last > committed; later[i] {
				ahead++
			}
			stores[i] = s.cut(t, len(s.ops))
		}
		rings, _, err := OpenRings(cfg, buckets.SyncNone, []buckets.Backend{stores[0], stores[1]})
		must(t, err)
		for i, s := range stores {
			has, err := buckets.Journaled(s)
			must(t, err)
			if later[i] && (s.synced != len(s.ops) || has.Last != committed) {
				t.Errorf("%d writes: task %d: %d of %d changes are on disk, its last batch is %d and should be %d", writes, i, s.synced, len(s.ops), has.Last, committed)
			}
		}
		must(t, rings.close())
	}
	if ahead == 0 {
		t.Error("no task was ahead of the commit record")
	}
}
