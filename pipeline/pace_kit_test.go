package pipeline

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"joinbench/buckets"
	"joinbench/config"
	"joinbench/core"
	"joinbench/projection"
)

// playedClock stands still but for what is played: waits pass at once, work takes what a test says it does. While the
// source lacks what is due, time waits for the decoders, so what a test sees does not depend on the machine.
type playedClock struct{ ns atomic.Int64 }

func (c *playedClock) now() int64 { return c.ns.Load() }

func (c *playedClock) pass(d time.Duration) { c.ns.Add(int64(d)) }

func (c *playedClock) wait(ctx context.Context, until int64, wake <-chan struct{}, starved bool) {
	if !starved && until != never {
		c.ns.Store(max(c.ns.Load(), until))
		return
	}
	select {
	case <-wake:
	case <-ctx.Done():
	}
}

// playedRun is an open loop in played time, over a join in memory.
type playedRun struct {
	t       *testing.T
	profile *config.Profile
	clock   *playedClock
	pace    *pacer
	sink    *truthSink
	gen     *generator
	engine  *core.Engine

	perB, perBatch time.Duration    // what the join takes, in played time
	before         func(*playedRun) // before each batch is given up
	warmed         func() error     // when the queue is empty after warm B
	warm           int64
	started        bool
	made           sync.WaitGroup // until all B are decoded: time may jump then
}

// open says when a partition of B has ended.
func (r *playedRun) open(side core.Side, part int, place int64) (reader, error) {
	from, err := r.gen.open(side, part, place)
	if err != nil || side == core.A {
		return from, err
	}
	return &lastRead{reader: from, done: sync.OnceFunc(r.made.Done)}, nil
}

type lastRead struct {
	reader
	done func()
}

func (l *lastRead) Read(dst []projection.Record, arena *[]byte) (int, error) {
	n, err := l.reader.Read(dst, arena)
	if err != nil {
		l.done()
	}
	return n, err
}

const pacedProfile = `join:
  a: {topic: orders, key: $.payment_ref, time: $.ts, keep: [$.order_id]}
  b: {topic: payments, key: "@key", keep: [$.status]}
  window: {before: 0s, after: 10m}
  grace: 1s
  state: {buckets: 8, sync: none}
load:
  pending: 2k
  match_rate: 0.2
  duplicates: 0.02
  late_share: 0.002
  disorder: 400ms
  seed: 5
`

// newPlayedRun prepares a run of so many B.
func newPlayedRun(t *testing.T, pace Pace, bEvents int64, partitions, batch int) *playedRun {
	t.Helper()
	profile, err := config.ParseProfile([]byte(pacedProfile), "paced")
	if err != nil {
		t.Fatal(err)
	}
	profile.Load.BEvents, profile.Load.Partitions, profile.Load.Batch = bEvents, partitions, batch
	c, err := compile(profile.Join, true)
	if err != nil {
		t.Fatal(err)
	}
	c.core.BatchSize = batch
	r := &playedRun{t: t, profile: profile, clock: &playedClock{}, perB: 200 * time.Nanosecond, perBatch: 400 * time.Microsecond}
	if r.gen, err = newGenerator(profile); err != nil {
		t.Fatal(err)
	}
	feed := newFeed(t.Context(), c.spec, r.gen.partitions(), r.open, false, false)
	t.Cleanup(feed.Close)
	feed.readAhead(core.B, int(bEvents)/partitions/minChunk+2)
	r.made.Add(partitions)
	r.pace = newPacer(&waitingSource{feed: feed}, r.gen, pace, batch, r.clock)
	truth, err := truthOf(r.gen, &c.core)
	if err != nil {
		t.Fatal(err)
	}
	r.sink = newTruthSink(r.gen.gen, truth, "", false)
	r.sink.skipped = r.pace.skipped
	rings, record, err := core.OpenRings(&c.core, buckets.SyncNone, []buckets.Backend{buckets.NewMemBackend()})
	if err != nil {
		t.Fatal(err)
	}
	if r.engine, err = core.NewEngine(&c.core, rings, record, r.pace, r); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.engine.Close() })
	r.engine.Observe = r.observe
	r.pace.still = r.still
	return r
}

// Restore, Results and State make it the sink.
func (r *playedRun) Restore(state []byte) error { return r.sink.Restore(state) }

func (r *playedRun) State(dst []byte) ([]byte, error) { return r.sink.State(dst) }

func (r *playedRun) Results(out *core.Output) error {
	if r.before != nil {
		r.before(r)
	}
	return r.sink.Results(out)
}

func (r *playedRun) observe(e *core.Engine) error {
	before := r.pace.committed
	taken := int64(0)
	for i, q := range r.pace.parts[core.B] {
		taken += e.Place(core.B, i) - q.recorded
	}
	r.clock.pass(r.perBatch + time.Duration(taken)*r.perB)
	r.pace.took(e)
	if r.started && r.pace.committed < before {
		r.t.Error("fewer B are committed than before")
	}
	return nil
}

// still begins, and begins again when it is warm.
func (r *playedRun) still() error {
	if r.started {
		return r.warmed()
	}
	r.started = true
	r.made.Wait()
	r.pace.begin(r.warm)
	return nil
}

// run joins to the end, and holds pairs and counts against the truth.
func (r *playedRun) run() {
	r.t.Helper()
	ctx, stop := context.WithTimeout(r.t.Context(), 2*time.Minute) // nothing here takes a second
	defer stop()
	if err := r.engine.Run(ctx); err != nil {
		r.t.Fatal(err)
	}
	r.pace.lat.response.fold()
	r.pace.lat.lag.fold()
	r.judge()
	n := r.gen.sent(core.B)
	c := r.engine.Counters()
	if got := int64(c.Read(core.B)) + r.pace.earlier + r.pace.dropped; got != n {
		r.t.Errorf("%d B were read or dropped of %d", got, n)
	}
	for _, h := range []struct {
		name  string
		count int64
	}{{"response", r.pace.lat.response.total.TotalCount()}, {"service", r.pace.lat.service.TotalCount()}, {"lag", r.pace.lat.lag.total.TotalCount()}} {
		if h.count != n-r.pace.dropped {
			r.t.Errorf("%s: %d of %d B", h.name, h.count, n-r.pace.dropped)
		}
	}
	if r.pace.queue() != 0 {
		r.t.Errorf("%d B are left in the queue", r.pace.queue())
	}
	if r.pace.held != 0 {
		r.t.Errorf("%d times B were due and A not far enough", r.pace.held)
	}
}

// judge holds the pairs against the truth.
func (r *playedRun) judge() {
	r.t.Helper()
	end := r.gen.ends()
	cut := r.gen.gen.Whole(end[core.A], end[core.B])
	v := r.sink.verifier.ResultAt(&cut)
	(&bench{sink: r.sink}).leaveOutDropped(&v, &cut)
	if !v.Right() || v.Expected == 0 {
		r.t.Errorf("verdict %+v", v)
	}
}
