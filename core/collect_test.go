package core

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"joinbench/buckets"
)

// drawRig draws how groups come out, and a hash that may be weak.
func drawRig(t *testing.T, r *rand.Rand, open func() buckets.Backend) *groupRig {
	rig := newGroupRig(t, r, []Collect{CollectTimeout, CollectCount, CollectMarker}[r.IntN(3)], open)
	switch r.IntN(4) {
	case 0:
		rig.hash = func([]byte) uint64 { return 7 }
	case 1:
		rig.hash = func(id []byte) uint64 { return uint64(id[ownerSize-1] % 5) }
	}
	return rig
}

// TestGroupsModel: adds, completions, closes, undo, restarts, spills and drops leave what a plain map has.
func TestGroupsModel(t *testing.T) {
	did := map[string]int{}
	eachSeed(t, 80, func(t *testing.T, r *rand.Rand) {
		store := &spoiling{buckets.NewMemBackend()}
		rig := drawRig(t, r, func() buckets.Backend { return store })
		rig.run(300 + r.IntN(500))
		for k, n := range rig.did {
			did[k] += n
		}
	})
	t.Log(did)
	for _, k := range []string{"full", "closed", "parts", "late", "spills", "drops", "restarts"} {
		if did[k] == 0 && *runsFlag == 0 {
			t.Errorf("no %s in any run", k)
		}
	}
}

// TestGroupsRocks is the same over RocksDB.
func TestGroupsRocks(t *testing.T) {
	eachSeed(t, 5, func(t *testing.T, r *rand.Rand) {
		db := newRocks(t, 1)
		drawRig(t, r, func() buckets.Backend { return db.open(t)[0] }).run(300)
	})
}

// TestRule19Completes: rule 19, when a B completes its group.
func TestRule19Completes(t *testing.T) {
	for _, c := range []struct {
		how          Collect
		wanted, have uint32
		marks, want  bool
	}{
		{CollectCount, 3, 2, false, false}, {CollectCount, 3, 3, false, true}, {CollectCount, 1, 1, false, true},
		{CollectCount, 0, 1, false, false}, {CollectCount, 0, 1 << 20, false, false}, {CollectCount, 3, 2, true, false},
		{CollectCount, MaxWanted, MaxWanted - 1, false, false}, {CollectCount, MaxWanted, MaxWanted, false, true},
		{CollectMarker, 0, 1, true, true}, {CollectMarker, 0, 9, false, false}, {CollectMarker, 2, 2, false, false},
		{CollectTimeout, 1, 1, false, false}, {CollectTimeout, 0, 1, true, false},
	} {
		if got := completes(c.how, c.wanted, c.have, c.marks); got != c.want {
			t.Errorf("completes(%d, wanted %d, have %d, marks %v) = %v", c.how, c.wanted, c.have, c.marks, got)
		}
	}
}

// TestHashOfA: the upper bits of the hash are the time in the bucket, and A of one time differ.
func TestHashOfA(t *testing.T) {
	var id [ownerSize]byte
	const width = 10 * 365 * 86400 * 1000
	last, seen := uint64(0), map[uint64]bool{}
	for i := range int64(10_000) {
		binary.BigEndian.PutUint64(id[4:], uint64(i))
		h := hashOfA(id[:], i*(width/10_000), width)
		if h>>(64-timeBits) < last {
			t.Fatalf("the hash of time %d lies below that of an earlier one", i)
		}
		last = h >> (64 - timeBits)
		seen[hashOfA(id[:], -5, width)] = true
		if low := hashOfA(id[:], width+5, width); low != uint64(1<<timeBits-1)<<(64-timeBits)|xxh3.Hash(id[:])>>timeBits {
			t.Fatalf("the hash of a time behind the bucket is %x", low)
		}
	}
	if len(seen) != 10_000 {
		t.Fatalf("10,000 A of one time have %d hashes", len(seen))
	}
}

// TestGroupsHot: a group of many B over several runs and what is in RAM is counted to its end, and comes out whole.
func TestGroupsHot(t *testing.T) {
	for _, n := range []int{1000, 1001} { // the last B completes it, or the close finds it one short
		rig := newGroupRig(t, rand.New(rand.NewPCG(1, 0)), CollectCount, func() buckets.Backend { return &spoiling{buckets.NewMemBackend()} })
		rig.start()
		rig.newA()
		a := rig.now.as[0]
		a.entry = (&buckets.Entry{Partition: 3, Key: []byte("sk"), Body: []byte("A"), Wanted: uint32(n)}).AppendTo(nil)
		rows := rowsOf(B, 0, 1000, keyOf, func(i int) int64 { return int64(i * 7919 % 1000) })[0]
		out := false
		for i := range uint32(1000) {
			var err error
			out, err = rig.g.meet(a.found, Ref{rows.chunk, i}, 0, i == 0)
			must(t, err)
			if out != (i == 999 && n == 1000) {
				t.Fatalf("%d of %d: out is %v", i+1, n, out)
			}
			if i%300 == 200 {
				must(t, rig.g.ring.Commit(uint64(i), nil))
				_, _, _, largest := rig.g.arenas()
				rig.g.spill(largest)
				rig.finish(1)
			}
		}
		if !out {
			rig.g.due(a.epoch, a.entry)
			must(t, rig.g.release())
		}
		group := append(rig.g.take.full, rig.g.take.closed...)[0]
		if len(group.B) != 1000 || group.Complete != out || rig.g.ring.At(a.epoch).Runs() != 3 {
			t.Fatalf("%d B, complete %v, %d runs", len(group.B), group.Complete, rig.g.ring.At(a.epoch).Runs())
		}
		for i, raw := range group.B {
			if at := buckets.TimeOf(raw); at != int64(i) {
				t.Fatalf("B %d is of time %d", i, at)
			}
		}
	}
}

// TestGroupsReads: runs are asked only for a group that has B in them, and only once between two spills.
func TestGroupsReads(t *testing.T) {
	m := newManyGroups(t, CollectCount, 3, 10)
	m.as, m.asked = m.as[:5], 0
	m.ask(5)
	m.spillAll()
	old, young := m.as[0], m.as[:10][5:]
	want := func(n uint64, what string) {
		t.Helper()
		if m.stats.Lookups != n {
			t.Fatalf("%d lookups after %s, want %d", m.stats.Lookups, what, n)
		}
	}
	meet := func(f found, row uint32, first, out bool) {
		t.Helper()
		if got, err := m.meet(f, Ref{m.b, row}, 0, first); err != nil || got != out {
			t.Fatalf("out is %v, %v", got, err)
		}
	}
	for _, f := range young { // three B each, which lie in RAM
		for i := range uint32(3) {
			meet(f, i, i == 0, i == 2)
		}
	}
	want(0, "groups of which no run has a B")
	meet(old, 1, false, false)
	want(1, "the second B of a group that was spilled")
	meet(old, 2, false, true)
	want(2, "its third, which takes the group")
	if n := len(m.take.full[5].B); n != 3 {
		t.Fatalf("%d B in the group of RAM and a run", n)
	}
}

// TestGroupsLost: an A that says it has collected B, of which there are none, is an error that says what to do.
func TestGroupsLost(t *testing.T) {
	for _, how := range []Collect{CollectTimeout, CollectCount} {
		rig := newGroupRig(t, rand.New(rand.NewPCG(1, 0)), how, func() buckets.Backend { return buckets.NewMemBackend() })
		rig.start()
		rig.newA()
		a := rig.now.as[0]
		rig.g.due(a.epoch, a.entry)
		if err := rig.g.release(); err == nil || !strings.Contains(err.Error(), "start anew") {
			t.Errorf("closing: %v", err)
		}
		c := rowsOf(B, 0, 1, keyOf, func(int) int64 { return a.time })[0].chunk
		if _, err := rig.g.meet(a.found, Ref{c, 0}, 0, false); err == nil || !strings.Contains(err.Error(), "partition 3, offset 0") {
			t.Errorf("collecting: %v", err)
		}
	}
}

// TestGroupsReadsAreLookups: what a group reads of runs is in the counters of the join.
func TestGroupsReadsAreLookups(t *testing.T) {
	cfg := &Config{After: 1000, MaxSpread: 20, Width: 500, Slots: 8, BatchSize: 1, Inline: true, Cardinality: OneToMany, Collect: CollectTimeout,
		ArenaBytes: 1, Drain: true}
	var a, b []event
	for i := range 80 {
		if i < 40 {
			a = append(a, ev(seqKey(i), int64(i)))
		}
		b = append(b, ev(seqKey(i%40), int64(100+i)))
	}
	_, c := runAll(t, cfg, 1, newScript(t, 4, []scriptPart{part(0, a...)}, []scriptPart{part(0, b...)}))
	cfg.Collect = CollectEager
	_, eager := runAll(t, cfg, 1, newScript(t, 4, []scriptPart{part(0, a...)}, []scriptPart{part(0, b...)}))
	if c.Matches != 80 || c.Tasks.Lookups <= eager.Tasks.Lookups || c.Tasks.Spills <= eager.Tasks.Spills {
		t.Errorf("%d B in groups; %d lookups and %d spills, without groups %d and %d", c.Matches, c.Tasks.Lookups, c.Tasks.Spills, eager.Tasks.Lookups, eager.Tasks.Spills)
	}
}
