package baseline

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"joinbench/buckets"
	"joinbench/core"
	"joinbench/internal/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Check(m.Run(), buckets.LiveObjects())) }

var seedFlag = flag.Uint64("baseline.seed", 1, "first seed of the random test")

// waits is an A of the model, which is a slice and a loop.
type waits struct {
	key          string
	time, offset int64
	partition    int32
	paired       bool
	id           string
}

// model is the joiner in the plainest words.
type model struct {
	cfg *core.Config
	as  []waits
}

// ask pairs one B (rules 1 and 2).
func (m *model) ask(key string, at int64) (id string) {
	best := -1
	for i := range m.as {
		a := &m.as[i]
		if a.key != key || at < a.time-m.cfg.Before || at > a.time+m.cfg.After || a.paired && m.cfg.Cardinality == core.OneToOne {
			continue
		}
		if best < 0 || earlier(a, &m.as[best]) {
			best = i
		}
	}
	if best < 0 {
		return ""
	}
	m.as[best].paired = true
	return m.as[best].id
}

func earlier(a, b *waits) bool {
	return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.partition, b.partition), cmp.Compare(a.offset, b.offset)) < 0
}

// close takes the A below a floor away and lists those that never paired.
func (m *model) close(floor int64) (never []string) {
	m.as = slices.DeleteFunc(m.as, func(a waits) bool {
		over := buckets.EpochOf(a.time, m.cfg.Width) < floor
		if over && !a.paired {
			never = append(never, a.id)
		}
		return over
	})
	return never
}

// pending counts the A that a B could still find.
func (m *model) pending() (n int) {
	for i := range m.as {
		if !m.as[i].paired || m.cfg.Cardinality == core.OneToMany {
			n++
		}
	}
	return n
}

// chunkOf collects rows of one partition.
type chunkOf struct{ core.Chunk }

func newChunk(side core.Side, partition int32) *chunkOf {
	return &chunkOf{core.Chunk{Side: side, Partition: partition, KeyOff: []uint32{0}, BodyOff: []uint32{0}}}
}

func (c *chunkOf) add(key, body string, time, offset int64) {
	c.Time, c.Offset = append(c.Time, time), append(c.Offset, offset)
	c.Keys, c.Body = append(c.Keys, key...), append(c.Body, body...)
	c.KeyOff, c.BodyOff = append(c.KeyOff, uint32(len(c.Keys))), append(c.BodyOff, uint32(len(c.Body)))
	c.N++
}

func (c *chunkOf) rows() core.Rows {
	var index []uint32
	for i := range c.N {
		index = append(index, uint32(i))
	}
	return core.NewRows(&c.Chunk, index)
}

// spoil overwrites a chunk that was given back: whoever kept a piece of it shows.
func (c *chunkOf) spoil() {
	for i := range c.Keys {
		c.Keys[i] = 0xEE
	}
	for i := range c.Body {
		c.Body[i] = 0xEE
	}
}

// trial plays random batches to a Memory and to the model.
type trial struct {
	t      *testing.T
	r      *rand.Rand
	m      *Memory
	model  model
	keys   int
	now    int64
	floor  int64
	offset int64
}

// TestMemoryEqualsModel: whatever comes, is taken back and expires, pairs, rest and count are those of a slice and a loop.
func TestMemoryEqualsModel(t *testing.T) {
	for i := range uint64(200) {
		seed := *seedFlag + i
		r := rand.New(rand.NewPCG(seed, 7))
		cfg := core.Config{Before: r.Int64N(40), After: r.Int64N(100), Width: 1 + r.Int64N(60), WantA: r.IntN(2) == 0, WantB: r.IntN(2) == 0,
			Cardinality: core.Cardinality(r.IntN(2))}
		tr := &trial{t: t, r: r, m: NewMemory(&cfg), model: model{cfg: &cfg}, keys: 1 + r.IntN(30), now: 1000}
		for batch := range 60 {
			if !tr.batch() {
				t.Fatalf("batch %d, %+v\nagain: go test ./baseline -run Model -baseline.seed %d", batch, cfg, seed)
			}
		}
	}
}

// batch plays one, and commits it or takes it back.
func (tr *trial) batch() bool {
	before, offset := slices.Clone(tr.model.as), tr.offset
	tr.now += tr.r.Int64N(30)
	floor := max(tr.floor, buckets.EpochOf(tr.now-200+tr.r.Int64N(100), tr.model.cfg.Width))
	tr.m.Begin()
	a, wantPairs, wantVain, b := tr.play()
	ok := tr.check(wantPairs, wantVain, floor)
	if tr.r.IntN(4) == 0 {
		tr.m.Undo()
		tr.model.as, tr.offset = before, offset
	} else if ok {
		must(tr.t, tr.m.Commit(1, nil))
		must(tr.t, tr.m.Maintain([2]core.Bounds{{Floor: floor, Sealable: floor}}))
		tr.model.close(floor)
		tr.floor = floor
	}
	a.spoil()
	b.spoil()
	if got, want := tr.m.Levels(true).Pending, tr.model.pending(); got != want {
		tr.t.Errorf("%d pending, want %d", got, want)
		return false
	}
	return ok
}

// play stores and asks.
func (tr *trial) play() (a *chunkOf, pairs, vain []string, b *chunkOf) {
	a, b = newChunk(core.A, int32(tr.r.IntN(3))), newChunk(core.B, 0)
	for range tr.r.IntN(40) {
		w := waits{key: fmt.Sprint("s", tr.r.IntN(tr.keys)), partition: a.Partition, offset: tr.offset, id: fmt.Sprint("a", tr.offset)}
		w.time = max(tr.now-tr.r.Int64N(60), tr.floor*tr.model.cfg.Width)
		a.add(w.key, w.id, w.time, w.offset)
		tr.model.as = append(tr.model.as, w)
		tr.offset++
	}
	must(tr.t, tr.m.Store([]core.Rows{a.rows()}))
	for i := range tr.r.IntN(40) {
		key, at, id := fmt.Sprint("s", tr.r.IntN(2*tr.keys)), tr.now-tr.r.Int64N(100), fmt.Sprint("b", i)
		b.add(key, id, at, 0)
		if found := tr.model.ask(key, at); found != "" {
			pairs = append(pairs, found+"+"+id)
		} else {
			vain = append(vain, id)
		}
	}
	must(tr.t, tr.m.Ask([]core.Rows{b.rows()}))
	return a, pairs, vain, b
}

// check holds what was found against the model.
func (tr *trial) check(wantPairs, wantVain []string, floor int64) bool {
	must(tr.t, tr.m.Release([2]core.Limits{{Closed: floor * tr.model.cfg.Width}}))
	copied := model{tr.model.cfg, slices.Clone(tr.model.as)}
	wantClosed := copied.close(floor)
	if !tr.model.cfg.WantA {
		wantClosed = nil
	}
	if !tr.model.cfg.WantB {
		wantVain = nil
	}
	f := tr.m.Found()
	var pairs, vain, closed []string
	for _, p := range f.Matches {
		pairs = append(pairs, body(tr.t, p.Entry)+"+"+string(p.Chunk.BodyOf(p.Row)))
	}
	for _, r := range f.UnmatchedB {
		vain = append(vain, string(r.Chunk.BodyOf(r.Row)))
	}
	for _, e := range f.UnmatchedA {
		closed = append(closed, body(tr.t, e))
	}
	slices.Sort(closed)
	slices.Sort(wantClosed)
	for _, l := range []struct {
		what      string
		got, want []string
	}{{"pairs", pairs, wantPairs}, {"B in vain", vain, wantVain}, {"closed A", closed, wantClosed}} {
		if !slices.Equal(l.got, l.want) {
			tr.t.Errorf("%s\n got %v\nwant %v", l.what, l.got, l.want)
			return false
		}
	}
	return true
}

func body(t *testing.T, entry []byte) string {
	e, err := buckets.ParseEntry(entry)
	must(t, err)
	return string(e.Body)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestMemoryHotKey: a key with very many events costs no more for each of them, in order of time.
func TestMemoryHotKey(t *testing.T) {
	const n = 200_000
	cfg := core.Config{After: 10 * n, Width: 1000}
	m := NewMemory(&cfg)
	a, b := newChunk(core.A, 0), newChunk(core.B, 0)
	for i := range int64(n) {
		a.add("shot", "", i, i)
		b.add("shot", "", n+i, i)
	}
	must(t, m.Store([]core.Rows{a.rows()}))
	must(t, m.Ask([]core.Rows{b.rows()}))
	for i, p := range m.Found().Matches {
		if e, err := buckets.ParseEntry(p.Entry); err != nil || e.Offset != int64(i) || p.Row != uint32(i) {
			t.Fatalf("pair %d: A %d and B %d (%v)", i, e.Offset, p.Row, err)
		}
	}
	if got := len(m.Found().Matches); got != n {
		t.Fatalf("%d pairs, want %d", got, n)
	}
	must(t, m.Commit(1, nil))
	m.Begin()
	must(t, m.Store([]core.Rows{a.rows()}))
	must(t, m.Commit(2, nil))
	must(t, m.Maintain([2]core.Bounds{{Floor: buckets.EpochOf(n, cfg.Width)}}))
	if l := m.Levels(false); l.Pending != 0 || l.ArenaBytes != 0 || l.Open != 0 || len(m.waiting) != 0 {
		t.Fatalf("after everything has expired: %+v, %d keys", l, len(m.waiting))
	}
}

// TestMemoryFreesWhatPaired: the bytes of an A that has paired go at the commit, not with its bucket.
func TestMemoryFreesWhatPaired(t *testing.T) {
	m := NewMemory(&core.Config{After: 10, Width: 100})
	a, b := newChunk(core.A, 0), newChunk(core.B, 0)
	a.add("sk", "the body", 5, 0)
	b.add("sk", "", 6, 0)
	must(t, m.Store([]core.Rows{a.rows()}))
	must(t, m.Ask([]core.Rows{b.rows()}))
	if got := body(t, m.Found().Matches[0].Entry); got != "the body" {
		t.Fatalf("the pair has %q", got)
	}
	must(t, m.Commit(1, nil))
	if e := m.buckets[0][0]; e.entry != nil || e.key != "" || !e.gone {
		t.Fatalf("after the commit its bucket holds %+v", e)
	}
}

// TestNull: it counts and finds nothing.
func TestNull(t *testing.T) {
	n := NewNull()
	a := newChunk(core.A, 0)
	a.add("sk", "", 5, 0)
	a.add("sk", "", 6, 1)
	must(t, n.Store([]core.Rows{a.rows()}))
	must(t, n.Ask([]core.Rows{a.rows(), a.rows()}))
	if s := n.Stats(); s.Stored != 2 || s.Probes != 4 || len(n.Found().Matches) != 0 {
		t.Fatalf("%+v, %d pairs", *s, len(n.Found().Matches))
	}
}
