package core

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"joinbench/buckets"
)

// bucketState is what a task has in one slot: the bucket, and what its index answers.
type bucketState struct {
	epoch int64
	state buckets.State
	rows  int
	live  int
	used  []uint32
	index string // rows of each key's chain, newest first
}

// stateOf takes down a task's buckets and indexes; keys are those that the indexes are asked for.
func stateOf(task *Task, keys []string) []bucketState {
	all := make([]bucketState, 0, task.cfg.Slots)
	for slot := range task.cfg.Slots {
		b := task.ring.AtSlot(slot)
		if b == nil {
			s := bucketState{}
			if task.index[slot] != nil {
				s.index = "of no bucket"
			}
			all = append(all, s)
			continue
		}
		s := bucketState{epoch: b.Epoch, state: b.State(), rows: b.Rows(), live: b.Live()}
		for row := range uint32(b.Rows()) {
			if b.Used(row) {
				s.used = append(s.used, row)
			}
		}
		if x := task.index[slot]; x != nil {
			s.index = fmt.Sprintf("%d keys %d rows", x.Keys(), x.Len())
			for _, k := range keys {
				for row, ok := x.Find(task.hashOf([]byte(k))); ok; row, ok = x.Next(row) {
					s.index += fmt.Sprintf(" %s:%d", k, row)
				}
			}
		}
		all = append(all, s)
	}
	return all
}

// noReads is a store that fails to read once it is told to.
type noReads struct {
	buckets.Backend
	on *bool
}

func (n *noReads) Lookup(l *buckets.Lookups) error {
	if *n.on {
		return errEnd
	}
	return n.Backend.Lookup(l)
}

// TestUndo: a batch that fails, in the sink or half-way through the tasks, leaves the tasks as if they had never seen
// it, and the next life joins it as if nothing had been.
func TestUndo(t *testing.T) {
	eachSeed(t, 100, func(t *testing.T, r *rand.Rand) {
		l := randomLoad(r, 20+r.IntN(600))
		l.cfg.Inline = true // so that twins seal at the same batch
		l.cfg.BatchSize = 1 + r.IntN(50)
		t.Log(l.desc)
		src := newScript(t, l.chunk, l.a, l.b)
		want := expect(&l.cfg, src)
		var keys []string
		for _, p := range l.a {
			for _, e := range p.events {
				keys = append(keys, e.key)
			}
		}
		slices.Sort(keys)
		keys = slices.Compact(keys)

		// One engine fails in batch k+1, or in the first later one that reads; its twin stops before that one.
		k, reading := r.IntN(20), r.IntN(2) == 0
		stores, sink := memStores(l.tasks), &joined{}
		failing := slices.Clone(stores)
		fail := false
		for i := range failing {
			failing[i] = &noReads{failing[i], &fail}
		}
		committed := 0
		e := open(t, &l.cfg, failing, src.again(), sink)
		e.Observe = watch(func(*Engine) {
			committed++
			fail = reading && committed >= k
		})
		if !reading {
			sink.fail = func(batch int, _ *Output) error {
				if batch > k {
					return errEnd
				}
				return nil
			}
		}
		if err := e.Run(context.Background()); err == nil {
			return // over before it could fail
		} else if !errors.Is(err, errEnd) {
			t.Fatal(err)
		}

		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		twinSink := &joined{}
		twin := open(t, &l.cfg, memStores(l.tasks), src.again(), twinSink)
		if committed == 0 {
			cancel()
		}
		twin.Observe = watch(func(*Engine) {
			if twinSink.batches == committed {
				cancel()
			}
		})
		if err := twin.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		for i := range e.tasks {
			if got, want := e.tasks[i].ring.Pending(), twin.tasks[i].ring.Pending(); got != want {
				t.Fatalf("task %d: %d pending after the undo, its twin has %d", i, got, want)
			}
			got, want := stateOf(e.tasks[i], keys), stateOf(twin.tasks[i], keys)
			for slot := range got {
				if g, w := fmt.Sprintf("%+v", got[slot]), fmt.Sprintf("%+v", want[slot]); g != w {
					t.Fatalf("task %d, slot %d after %d batches\n got %s\nwant %s", i, slot, committed, g, w)
				}
			}
		}
		must(t, e.Close())
		must(t, twin.Close())

		sink.fail = nil
		e = open(t, &l.cfg, stores, src.again(), sink)
		must(t, e.Run(context.Background()))
		must(t, e.Close())
		checkOutputs(t, sink, want)
	})
}
