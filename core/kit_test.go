package core

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"joinbench/buckets"
)

// Random tests take their seeds from here on: go test ./core -run Property -core.seed 123 -core.n 1 replays one.
var (
	seedFlag = flag.Uint64("core.seed", 1, "first seed of the random tests")
	runsFlag = flag.Int("core.n", 0, "random workloads of each test, 0 for its own number")
)

// eachSeed runs a random test n times, each with a generator of its own and a line that replays it.
func eachSeed(t *testing.T, n int, fn func(t *testing.T, r *rand.Rand)) {
	if *runsFlag > 0 {
		n = *runsFlag
	}
	if testing.Short() {
		n = max(1, n/5)
	}
	for i := range n {
		seed := *seedFlag + uint64(i)
		r := rand.New(rand.NewPCG(seed, 0))
		ok := t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { fn(t, r) })
		if !ok {
			t.Fatalf("again: go test ./core -run '^%s$' -core.seed=%d -core.n=1", t.Name(), seed)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// event is one record of a script: as it is decoded, so that its fate is one of the first five.
type event struct {
	time   int64
	key    string
	fate   Fate
	offset int64 // its index in the partition if the script says nothing else
	ends   bool  // a B that says so (complete_on)
	marks  bool  // likewise (collect: marker)
	wanted uint32
}

// ev makes an event whose offset is filled in by part.
func ev(key string, time int64) event { return event{time: time, key: key, offset: -1} }

// bad makes an event of another fate than Accepted.
func bad(fate Fate, time int64) event { return event{time: time, fate: fate, offset: -1} }

// scriptPart is one partition of a script.
type scriptPart struct {
	Partition
	events []event
}

func part(id int32, events ...event) scriptPart {
	events = slices.Clone(events)
	for i := range events {
		if events[i].offset < 0 {
			events[i].offset = int64(i)
		}
	}
	return scriptPart{Partition{ID: id}, events}
}

// times is a partition of events with one key.
func times(id int32, key string, at ...int64) scriptPart {
	events := make([]event, 0, len(at))
	for _, t := range at {
		events = append(events, ev(key, t))
	}
	return part(id, events...)
}

// idOf names an event: side, partition, offset. It is the body of its record, so that outputs can be told apart.
func idOf(s Side, partition int32, offset int64) string {
	return fmt.Sprintf("%s%d.%d", s, partition, offset)
}

// script is a Source that plays what it was given. Memory of a chunk that was given back is spoilt, so that whoever
// kept a piece of it shows.
type script struct {
	t      testing.TB
	parts  [2][]scriptPart
	chunk  int // rows a chunk has
	rewind int // Start goes back so many records: a source that delivers again
	at     [2][]int
	out    map[*Chunk]bool // handed out and not given back
}

func newScript(t testing.TB, chunk int, a, b []scriptPart) *script {
	s := &script{t: t, parts: [2][]scriptPart{a, b}, chunk: chunk, out: map[*Chunk]bool{}}
	for side := range s.parts {
		s.at[side] = make([]int, len(s.parts[side]))
	}
	return s
}

// again is the same script for another engine.
func (s *script) again() *script {
	n := newScript(s.t, s.chunk, s.parts[A], s.parts[B])
	n.rewind = s.rewind
	return n
}

func (s *script) Partitions(side Side) []Partition {
	out := make([]Partition, 0, len(s.parts[side]))
	for _, p := range s.parts[side] {
		out = append(out, p.Partition)
	}
	return out
}

func (s *script) Start(side Side, part int, place int64) error {
	if n := len(s.parts[side][part].events); place < 0 || place > int64(n) {
		return fmt.Errorf("place %d of %d records", place, n)
	}
	s.at[side][part] = max(0, int(place)-s.rewind)
	for c := range s.out { // those of before an engine went back
		if c.Side == side && c.Part == part {
			delete(s.out, c)
			c.spoil()
		}
	}
	return nil
}

func (s *script) Next(side Side, part int) (*Chunk, error) {
	p := &s.parts[side][part]
	at := s.at[side][part]
	n := min(s.chunk, len(p.events)-at)
	if n == 0 {
		return nil, nil
	}
	c := &Chunk{Side: side, Part: part, Partition: p.ID, N: n, KeyOff: []uint32{0}, BodyOff: []uint32{0}, Place: []int64{int64(at)}}
	for i, e := range p.events[at : at+n] {
		c.Fate, c.Time, c.Offset = append(c.Fate, e.fate), append(c.Time, e.time), append(c.Offset, e.offset)
		c.Keys, c.Body = append(c.Keys, e.key...), append(c.Body, idOf(side, p.ID, e.offset)...)
		c.KeyOff, c.BodyOff = append(c.KeyOff, uint32(len(c.Keys))), append(c.BodyOff, uint32(len(c.Body)))
		c.Place = append(c.Place, int64(at+i+1))
		c.Flags = append(c.Flags, map[bool]RowFlags{true: Ends}[e.ends]|map[bool]RowFlags{true: Marks}[e.marks])
		c.Wanted = append(c.Wanted, e.wanted)
	}
	s.at[side][part] = at + n
	s.out[c] = true
	return c, nil
}

func (s *script) Done(c *Chunk) {
	if !s.out[c] {
		s.t.Errorf("a chunk of side %s, partition %d was given back twice", c.Side, c.Partition)
	}
	delete(s.out, c)
	c.spoil()
}

func (c *Chunk) spoil() {
	for i := range c.Keys {
		c.Keys[i] = 0xEE
	}
	for i := range c.Body {
		c.Body[i] = 0xEE
	}
	for i := range c.Time {
		c.Time[i] = -1
	}
}

// joined is a Sink that remembers what it was given and can be set back, as a file can.
type joined struct {
	pairs      []string // "a0.1+b0.7", in the order in which they came
	early      []string // "a0.1 early", "a0.1 retract"
	matches    int      // B of groups, over all lives and with what was undone
	rejects    []string // "b0.3 late"
	nulls      []string
	unmatchedA []string
	unmatchedB []string
	batches    int

	fail      func(batch int, out *Output) error // called by Results when it has taken everything in
	failState func(batch int) error
}

func (j *joined) lists() []*[]string {
	return []*[]string{&j.pairs, &j.early, &j.rejects, &j.nulls, &j.unmatchedA, &j.unmatchedB}
}

func (j *joined) Restore(state []byte) error {
	if state == nil {
		for _, l := range j.lists() {
			*l = nil
		}
		return nil
	}
	for i, l := range j.lists() {
		*l = (*l)[:binary.LittleEndian.Uint32(state[4*i:])]
	}
	return nil
}

func (j *joined) State(dst []byte) ([]byte, error) {
	if j.failState != nil {
		if err := j.failState(j.batches); err != nil {
			return nil, err
		}
	}
	for _, l := range j.lists() {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(*l)))
	}
	return dst, nil
}

func (j *joined) group(g *Group) error {
	a, err := buckets.ParseEntry(g.A)
	if err != nil {
		return err
	}
	var bs []string
	for _, raw := range g.B {
		b, err := buckets.ParseEntry(raw)
		if err != nil || !b.SideB {
			return fmt.Errorf("%+v is no B of a group (%w)", b, err)
		}
		bs = append(bs, string(b.Body))
	}
	j.matches += len(bs)
	suffix, err := j.kind(string(a.Body), g.Kind)
	j.pairs = append(j.pairs, groupText(string(a.Body), bs, g.Complete, g.Wanted, suffix))
	return err
}

// kind takes in what comes before a pair or a group.
func (j *joined) kind(a string, k MatchKind) (suffix string, err error) {
	if k&NullFirst != 0 {
		j.early = append(j.early, a+" early")
	}
	if k&Tombstone != 0 {
		j.early = append(j.early, a+" retract")
	}
	if k&Corrected != 0 {
		if suffix = " corrected"; !slices.Contains(j.early, a+" early") {
			return "", fmt.Errorf("%s is corrected, and no null row came before", a)
		}
	}
	return suffix, nil
}

func (j *joined) match(m *Match) error {
	e, err := buckets.ParseEntry(m.Entry)
	if err != nil {
		return err
	}
	a, b, stored := string(e.Body), string(m.Chunk.BodyOf(m.Row)), A
	if m.Chunk.Side == A {
		a, b, stored = b, a, B
	}
	if string(e.Key) != string(m.Chunk.Key(m.Row)) || string(e.Body) != idOf(stored, e.Partition, e.Offset) || e.SideB != (stored == B) {
		return fmt.Errorf("the entry of a pair is not what was stored: %+v", e)
	}
	if m.Kind&NullOnly != 0 {
		j.unmatchedA = append(j.unmatchedA, a)
		return nil
	}
	suffix, err := j.kind(a, m.Kind)
	j.pairs = append(j.pairs, a+"+"+b+suffix)
	return err
}

func (j *joined) Results(o *Output) error {
	j.batches++
	for i := range o.Matches {
		if err := j.match(&o.Matches[i]); err != nil {
			return err
		}
	}
	for i := range o.Groups {
		if err := j.group(&o.Groups[i]); err != nil {
			return err
		}
	}
	for _, raw := range o.Early {
		a, err := buckets.ParseEntry(raw)
		if err != nil {
			return err
		}
		j.early = append(j.early, string(a.Body)+" early")
	}
	for _, r := range o.Rejects {
		j.rejects = append(j.rejects, string(r.Chunk.BodyOf(r.Row))+" "+r.Fate.String())
	}
	for _, r := range o.NullKeys {
		j.nulls = append(j.nulls, string(r.Chunk.BodyOf(r.Row)))
	}
	for _, raw := range o.UnmatchedA {
		a, err := buckets.ParseEntry(raw)
		if err != nil {
			return err
		}
		j.unmatchedA = append(j.unmatchedA, string(a.Body))
	}
	for _, raw := range o.WaitedB {
		b, err := buckets.ParseEntry(raw)
		if err != nil || !b.SideB {
			return fmt.Errorf("%+v is no B that waited (%w)", b, err)
		}
		j.unmatchedB = append(j.unmatchedB, string(b.Body))
	}
	for _, r := range o.UnmatchedB {
		j.unmatchedB = append(j.unmatchedB, string(r.Chunk.BodyOf(r.Row)))
	}
	if j.fail != nil {
		return j.fail(j.batches, o)
	}
	return nil
}

// sameList compares two lists as multisets.
func sameList(t testing.TB, what string, got, want []string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if slices.Equal(got, want) {
		return
	}
	count := map[string]int{}
	for _, s := range want {
		count[s]++
	}
	for _, s := range got {
		count[s]--
	}
	var missing, extra []string
	for s, n := range count {
		if n > 0 {
			missing = append(missing, s)
		} else if n < 0 {
			extra = append(extra, s)
		}
	}
	slices.Sort(missing)
	slices.Sort(extra)
	t.Fatalf("%s: %d, want %d\nmissing: %s\nextra: %s", what, len(got), len(want), few(missing), few(extra))
}

func few(list []string) string {
	if len(list) > 12 {
		return strings.Join(list[:12], " ") + " …"
	}
	return strings.Join(list, " ")
}

// memStores makes empty stores in memory, one for each task.
func memStores(n int) []buckets.Backend {
	out := make([]buckets.Backend, n)
	for i := range out {
		out[i] = &spoiling{buckets.NewMemBackend()}
	}
	return out
}

// spoiling is a store whose values go bad as soon as they are no longer valid, as those of RocksDB may.
type spoiling struct{ buckets.Backend }

func (s *spoiling) ScanValues(f buckets.Family, over []uint64, rows uint32, fn func(key, value []byte) error) error {
	return s.Backend.ScanValues(f, over, rows, func(key, value []byte) error {
		key, value = bytes.Clone(key), bytes.Clone(value)
		err := fn(key, value)
		for i := range value {
			value[i] = 0xEE
		}
		return err
	})
}

// open makes an engine over stores, which may hold a state.
func open(t testing.TB, cfg *Config, stores []buckets.Backend, src Source, sink Sink) *Engine {
	t.Helper()
	e, err := tryOpen(cfg, stores, src, sink)
	must(t, err)
	return e
}

func tryOpen(cfg *Config, stores []buckets.Backend, src Source, sink Sink) (*Engine, error) {
	rings, record, err := OpenRings(cfg, buckets.SyncNone, stores)
	if err != nil {
		for _, s := range stores {
			err = errors.Join(err, s.Close())
		}
		return nil, err
	}
	return NewEngine(cfg, rings, record, src, sink)
}

// watch makes an Observe of a function that cannot fail.
func watch(fn func(*Engine)) func(*Engine) error {
	return func(e *Engine) error {
		fn(e)
		return nil
	}
}

// runAll joins a script to its end in one life and returns the sink; the engine is closed, its counters are kept.
func runAll(t testing.TB, cfg *Config, tasks int, src *script) (*joined, Counters) {
	t.Helper()
	sink := &joined{}
	e := open(t, cfg, memStores(tasks), src, sink)
	must(t, e.Run(context.Background()))
	must(t, e.Quiesce())
	c := e.Counters()
	must(t, e.Close())
	if len(src.out) > 0 && e.Finished() {
		t.Fatalf("%d chunks were never given back", len(src.out))
	}
	return sink, c
}
