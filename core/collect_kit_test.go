package core

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"joinbench/buckets"
)

// collected is a plain map that says what groups should hold.
type collected struct {
	as    map[int64]*modelA // by offset; all are of partition 3
	order []int64
}

type modelA struct {
	found
	epoch  int64
	time   int64
	wanted uint32
	kind   MatchKind
	fresh  bool // the first B came in this batch
	bs     []modelB
	over   bool // came out, or its bucket went
}

type modelB struct {
	time      int64
	partition int32
	offset    int64
}

func (m *collected) clone() *collected {
	c := &collected{maps.Clone(m.as), slices.Clone(m.order)}
	for k, a := range c.as {
		copied := *a
		copied.bs = slices.Clone(a.bs)
		c.as[k] = &copied
	}
	return c
}

// groupRig drives groups beside a ring of A and a model.
type groupRig struct {
	t         testing.TB
	r         *rand.Rand
	cfg       *Config
	ring      *buckets.Ring // of A
	aStore    buckets.Backend
	open      func() buckets.Backend // the store of the groups, again
	g         *groups
	hash      func([]byte) uint64
	task      *Task
	now, last *collected // of this batch, of the commit
	late      []int64
	batch     uint64
	floor     int64
	nextA     int64
	nextB     [3]int64
	did       map[string]int
}

const rigWidth, rigSlots = 100, 5

func newGroupRig(t testing.TB, r *rand.Rand, how Collect, open func() buckets.Backend) *groupRig {
	rig := &groupRig{t: t, r: r, cfg: &Config{Width: rigWidth, Slots: rigSlots, Collect: how, Inline: true}, open: open,
		aStore: &spoiling{buckets.NewMemBackend()}, task: &Task{stats: &TaskStats{}}, now: &collected{as: map[int64]*modelA{}}, did: map[string]int{}}
	rig.last = rig.now.clone()
	return rig
}

// start opens the rings at the last commit.
func (rig *groupRig) start() {
	opt := buckets.Options{Width: rigWidth, Slots: rigSlots}
	ring, err := buckets.NewRing(opt, rig.aStore, rig.batch)
	must(rig.t, err)
	own, err := buckets.NewRing(opt, rig.open(), rig.batch)
	must(rig.t, err)
	rig.ring = ring
	rig.g = newGroups(rig.cfg, own, newHelper(rig.cfg, 1))
	rig.g.hash = rig.hash
	rig.g.take.most, rig.g.take.mostRead = 1+rig.r.IntN(40), 1<<rig.r.IntN(18)
	rig.find()
}

// find looks the A up again, after a restart.
func (rig *groupRig) find() {
	for slot := range rigSlots {
		b := rig.ring.AtSlot(slot)
		if b == nil {
			continue
		}
		for row := range uint32(b.Rows()) {
			e, err := buckets.ParseEntry(b.Entry(row))
			must(rig.t, err)
			at := found{b, row, b.Entry(row)}
			rig.now.as[e.Offset].found, rig.last.as[e.Offset].found = at, at
		}
	}
}

func (rig *groupRig) bucketTime(epoch int64) int64 { return epoch*rigWidth + rig.r.Int64N(rigWidth) }

func (rig *groupRig) newA() {
	epoch := rig.floor + rig.r.Int64N(rigSlots)
	a := &modelA{epoch: epoch, time: rig.bucketTime(epoch), wanted: uint32(rig.r.IntN(5))}
	if rig.r.IntN(10) == 0 {
		a.time -= rigWidth // woke behind its bucket
	}
	if rig.r.IntN(8) == 0 {
		a.wanted = 50
	}
	b, err := rig.ring.Bucket(epoch)
	must(rig.t, err)
	id := rig.nextA
	rig.nextA++
	row, err := rig.ring.Append(b, uint64(id), &buckets.Entry{Partition: 3, Offset: id, Time: a.time, Key: []byte("sk"), Body: []byte("A"), Wanted: a.wanted})
	must(rig.t, err)
	a.found = found{b, row, b.Entry(row)}
	rig.now.as[id] = a
	rig.now.order = append(rig.now.order, id)
}

// pick is an A that still collects; some more often than others.
func (rig *groupRig) pick() (id int64, a *modelA) {
	for range 20 {
		n := len(rig.now.order)
		if n == 0 {
			return 0, nil
		}
		id = rig.now.order[rig.r.IntN(n)]
		if rig.r.IntN(2) == 0 {
			id = rig.now.order[n-1-rig.r.IntN(min(n, 4))]
		}
		if a = rig.now.as[id]; !a.over {
			return id, a
		}
	}
	return 0, nil
}

func (rig *groupRig) body(b modelB) string { return fmt.Sprintf("B%d.%d", b.partition, b.offset) }

// ask lets a B of an A ask.
func (rig *groupRig) ask() {
	id, a := rig.pick()
	if a == nil {
		return
	}
	b := modelB{time: rig.bucketTime(a.epoch + rig.r.Int64N(3)), partition: int32(rig.r.IntN(3))}
	b.offset = rig.nextB[b.partition]
	rig.nextB[b.partition]++
	body := rig.body(b)
	c := &Chunk{Side: B, Partition: b.partition, N: 1, Time: []int64{b.time}, Offset: []int64{b.offset}, Keys: []byte("sk"), KeyOff: []uint32{0, 2},
		Body: []byte(body), BodyOff: []uint32{0, uint32(len(body))}, Flags: []RowFlags{0}}
	marks := rig.r.IntN(4) == 0
	if marks {
		c.Flags[0] = Marks
	}
	first, kind := len(a.bs) == 0, MatchKind(0)
	if first {
		kind = []MatchKind{0, Corrected, NullFirst | Corrected, NullFirst | Tombstone | Corrected}[rig.r.IntN(4)]
		a.kind, a.fresh = kind, true
	}
	a.bs = append(a.bs, b)
	rig.g.begin()
	f := a.found
	f.entry = slices.Clone(f.entry)
	defer clear(f.entry) // it may be a copy of the task's, for this part of the batch
	out, err := rig.g.meet(f, Ref{c, 0}, kind, first)
	must(rig.t, err)
	clear(c.Body) // whoever keeps a piece of it shows
	clear(c.Keys)
	want := rig.cfg.Collect == CollectMarker && marks || rig.cfg.Collect == CollectCount && int(a.wanted) == len(a.bs)
	if out != want {
		rig.t.Fatalf("A %d of %d wanted with %d B: out is %v", id, a.wanted, len(a.bs), out)
	}
	if out {
		rig.gone(a, true)
	} else if kind&NullFirst != 0 {
		rig.late = append(rig.late, id)
	}
}

// gone checks the one group that came out.
func (rig *groupRig) gone(a *modelA, complete bool) {
	full := rig.g.take.full
	if len(full) != 1 || len(rig.g.take.closed) != 0 {
		rig.t.Fatalf("%d groups came out", len(full))
	}
	rig.check(&full[0], a, complete)
	rig.ring.End(a.bucket, a.row)
	a.over = true
	rig.did["full"]++
}

func (rig *groupRig) check(got *Group, a *modelA, complete bool) {
	rig.t.Helper()
	want := slices.Clone(a.bs)
	slices.SortFunc(want, func(x, y modelB) int {
		if x.time != y.time {
			return int(x.time - y.time)
		}
		if x.partition != y.partition {
			return int(x.partition - y.partition)
		}
		return int(x.offset - y.offset)
	})
	kind := a.kind
	if !a.fresh {
		kind &^= NullFirst
	}
	var g, w []string
	for _, raw := range got.B {
		e, err := buckets.ParseEntry(raw)
		must(rig.t, err)
		if !e.SideB || string(e.Body) != rig.body(modelB{partition: e.Partition, offset: e.Offset}) {
			rig.t.Fatalf("a B that is none: %+v", e)
		}
		g = append(g, fmt.Sprintf("%d:%s", e.Time, e.Body))
	}
	for _, b := range want {
		w = append(w, fmt.Sprintf("%d:%s", b.time, rig.body(b)))
	}
	if !slices.Equal(g, w) {
		rig.t.Fatalf("group of %d B, want %d\n%s\n%s", len(g), len(w), strings.Join(g, " "), strings.Join(w, " "))
	}
	if got.Kind != kind || got.Complete != complete || got.Wanted != a.wanted || string(got.A) != string(a.entry) {
		rig.t.Fatalf("kind %d, want %d; complete %v, want %v; %d of %d wanted; right A: %v", got.Kind, kind, got.Complete, complete, got.Wanted,
			a.wanted, string(got.A) == string(a.entry))
	}
}

// end ends an A that has collected.
func (rig *groupRig) end() {
	if _, a := rig.pick(); a != nil && len(a.bs) > 0 {
		rig.g.begin()
		must(rig.t, rig.g.end(a.found))
		rig.gone(a, rig.cfg.Collect == CollectTimeout)
	}
}

// closeSome closes one in n A that collect, and checks their groups part by part.
func (rig *groupRig) closeSome(n int) {
	var list []*modelA
	for _, id := range rig.now.order {
		if a := rig.now.as[id]; !a.over && len(a.bs) > 0 && rig.r.IntN(n) == 0 {
			list = append(list, a)
		}
	}
	slices.SortStableFunc(list, func(x, y *modelA) int { return int(x.epoch - y.epoch) })
	for _, a := range list {
		rig.g.due(a.epoch, a.entry)
		a.over = true
		rig.did["closed"]++
	}
	for parts := 0; rig.g.busy(); parts++ {
		if n > 1 && rig.r.IntN(10) == 0 {
			rig.undo() // in the middle
			return
		}
		rig.g.begin()
		must(rig.t, rig.g.release())
		got := rig.g.take.closed
		if len(got) == 0 {
			rig.t.Fatal("a part without a group")
		}
		bs, read := 0, 0
		for i := range got {
			if i > 0 && (bs >= rig.g.take.most || read >= 200*rig.g.take.mostRead) {
				rig.t.Fatalf("%d groups in a part with %d B, which was full before", len(got), bs)
			}
			rig.check(&got[i], list[i], rig.cfg.Collect == CollectTimeout)
			bs += len(got[i].B)
		}
		list = list[len(got):]
		if parts > 0 {
			rig.did["parts"]++
		}
	}
	if len(list) > 0 {
		rig.t.Fatalf("%d groups never came out", len(list))
	}
}

// lateNulls checks which null rows come out by themselves.
func (rig *groupRig) lateNulls() {
	limit := rig.bucketTime(rig.floor)
	var want, got []int64
	for _, id := range rig.late {
		if a := rig.now.as[id]; !a.bucket.Ended(a.row) && a.time >= limit {
			want = append(want, id)
		}
	}
	for _, raw := range rig.g.lateNulls(nil, limit) {
		e, err := buckets.ParseEntry(raw)
		must(rig.t, err)
		got = append(got, e.Offset)
	}
	if !slices.Equal(got, want) {
		rig.t.Fatalf("null rows of %d, want %d", got, want)
	}
	rig.did["late"] += len(want)
	rig.late = nil
}

func (rig *groupRig) commit() {
	rig.lateNulls()
	rig.batch++
	must(rig.t, rig.g.ring.Commit(rig.batch, nil))
	must(rig.t, rig.ring.Commit(rig.batch, nil))
	for _, a := range rig.now.as {
		a.fresh = false
	}
	rig.last = rig.now.clone()
}

func (rig *groupRig) undo() {
	rig.g.undo()
	rig.ring.Undo()
	rig.back()
}

func (rig *groupRig) back() {
	rig.now, rig.late = rig.last.clone(), nil
	rig.nextA = 0
	for id := range rig.now.as {
		rig.nextA = max(rig.nextA, id+1)
	}
}

// between does what happens between batches.
func (rig *groupRig) between() {
	switch rig.r.IntN(8) {
	case 0, 1, 2:
		_, _, _, largest := rig.g.arenas()
		if largest != nil {
			rig.g.spill(largest)
			rig.did["spills"]++
		}
	case 3, 4:
		rig.finish(1 + rig.r.IntN(3))
	case 5:
		rig.floor += rig.r.Int64N(2)
		for _, a := range rig.now.as {
			a.over = a.over || a.epoch < rig.floor
		}
		_, err := rig.ring.DropBelow(rig.floor)
		must(rig.t, err)
		must(rig.t, rig.g.maintain(rig.floor))
		rig.last = rig.now.clone()
		rig.did["drops"]++
	}
}

// finish takes in what the helper did.
func (rig *groupRig) finish(n int) {
	for ; n > 0; n-- {
		j, ok := rig.g.help.next(true)
		if !ok {
			return
		}
		must(rig.t, j.finish(rig.task))
	}
}

// restart ends a life, in the middle of a batch too, with or without taking in what the helper did.
func (rig *groupRig) restart() {
	if rig.r.IntN(2) == 0 {
		rig.undo()
		rig.finish(1 << 30)
	}
	for ok := true; ok; {
		_, ok = rig.g.help.next(true)
	}
	must(rig.t, rig.g.ring.Close())
	must(rig.t, rig.ring.Close())
	rig.back()
	rig.start()
	rig.did["restarts"]++
}

func (rig *groupRig) run(steps int) {
	rig.start()
	for range steps {
		switch n := rig.r.IntN(100); {
		case n < 15:
			rig.newA()
		case n < 75:
			rig.ask()
		case n < 78:
			rig.end()
		case n < 82:
			rig.closeSome(6)
		case n < 94:
			rig.commit()
			rig.between()
		case n < 97:
			rig.undo()
		default:
			rig.restart()
		}
		rig.pending()
	}
	rig.commit()
	rig.closeSome(1)
	must(rig.t, rig.g.maintain(rig.floor+2*rigSlots))
	buckets := 0
	for slot := range rigSlots {
		if rig.g.ring.AtSlot(slot) != nil {
			buckets++
		}
	}
	if index := rig.g.bytes(); rig.g.ring.Pending() != 0 || buckets != 0 || index != 0 {
		rig.t.Fatalf("all is over, and there is left: %d B, %d buckets, %d bytes of indexes", rig.g.ring.Pending(), buckets, index)
	}
	rig.finish(1 << 30)
	must(rig.t, rig.g.ring.Close())
	must(rig.t, rig.ring.Close())
}

// pending: what is in the ring is what did not come out before its close and whose bucket is not over.
func (rig *groupRig) pending() {
	want := 0
	for _, a := range rig.now.as {
		if a.epoch >= rig.floor && !a.bucket.Ended(a.row) {
			want += len(a.bs)
		}
	}
	if have := rig.g.ring.Pending(); have != want {
		rig.t.Fatalf("%d B are kept, want %d", have, want)
	}
}
