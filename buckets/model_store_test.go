package buckets

import (
	"math/rand/v2"
	"testing"
)

// modelStore is one run of the model test: a store and its rings, each with what it should hold.
type modelStore struct {
	t     *testing.T
	rng   *rand.Rand
	kit   kit
	runs  []*modelRun
	all   *Rings
	batch uint64

	// The helper goroutine's jobs, in order.
	jobs   chan func() error
	jobErr chan error
	queued int
}

// modelRun is one ring of the test.
type modelRun struct {
	*modelStore
	opt  Options
	ring *Ring

	now   world // with the batch in progress
	saved world // at the last commit
	lo    int64 // lowest epoch that appends use

	sealing  *SealJob
	sealDone chan struct{}
	hot      uint64
	counts   map[string]int
}

func newModelStore(t *testing.T, k kit, opts ...Options) *modelStore {
	s := &modelStore{t: t, rng: newRand(t), kit: k, jobs: make(chan func() error, 64), jobErr: make(chan error, 64)}
	for _, opt := range opts {
		m := &modelRun{modelStore: s, opt: opt, lo: -3, now: world{-1 << 62, map[int64]*modelBucket{}}, hot: 7, counts: map[string]int{}}
		m.saved = m.now.clone()
		s.runs = append(s.runs, m)
	}
	go func() {
		for job := range s.jobs {
			s.jobErr <- job()
		}
	}()
	s.open(k.open(t))
	return s
}

// open makes the rings of a store.
func (s *modelStore) open(store Backend) {
	var opts []Options
	for _, m := range s.runs {
		opts = append(opts, m.opt)
	}
	var err error
	s.all, err = NewRings(opts, store, s.batch)
	must(s.t, err)
	for i, m := range s.runs {
		m.ring = s.all.At(i)
	}
}

func (s *modelStore) queue(job func() error) {
	if s.queued == cap(s.jobErr) { // the helper would wait for somebody to take its errors
		s.drain()
	}
	s.queued++
	s.jobs <- job
}

// drain waits for the helper goroutine.
func (s *modelStore) drain() {
	for ; s.queued > 0; s.queued-- {
		if err := <-s.jobErr; err != nil {
			s.t.Error(err)
		}
	}
}

// end closes the rings, also after a failure: the helper goroutine may still be in C.
func (s *modelStore) end() {
	close(s.jobs)
	s.drain()
	if s.all != nil {
		if err := s.all.Close(); err != nil {
			s.t.Error(err)
		}
	}
}

func (s *modelStore) chance(percent int) bool { return s.rng.IntN(100) < percent }

// count counts what happens to all rings.
func (s *modelStore) count(what string) {
	for _, m := range s.runs {
		m.counts[what]++
	}
}

func (s *modelStore) commit(record bool) {
	s.batch++
	var rec []byte
	two := s.chance(30) // the way of several tasks: record after the journal
	if record && !two {
		rec = commitRecord(s.batch)
	}
	must(s.t, s.all.Commit(s.batch, rec))
	if record && two {
		must(s.t, s.all.At(0).WriteCommit(commitRecord(s.batch)))
	}
	if !record {
		return
	}
	for _, m := range s.runs {
		m.saved = m.now.clone()
	}
}

func (s *modelStore) undo() {
	s.all.Undo()
	for _, m := range s.runs {
		m.now = m.saved.clone()
	}
	s.count("undo")
}

// reopen restarts; what was not committed is gone.
func (s *modelStore) reopen() {
	s.drain()
	if s.chance(50) {
		s.kit.crash(s.t)
		s.count("crash")
	}
	must(s.t, s.all.Close())
	s.all = nil
	for _, m := range s.runs {
		m.ring, m.sealing = nil, nil
		m.now = m.saved.reopened()
		m.saved = m.now.clone()
	}
	store := s.kit.open(s.t)
	if at := recorded(s.t, store); at != s.batch {
		s.t.Fatalf("commit record of batch %d, expected %d", at, s.batch)
	}
	s.open(store)
	for _, m := range s.runs {
		m.checkReopened(store)
	}
	s.count("reopen")
}

// reopenWithout journals a batch that no commit record follows, and restarts: it never happened.
func (s *modelStore) reopenWithout() {
	s.inBatch()
	s.commit(false)
	s.batch--
	s.reopen()
	s.count("reopen without the last batch")
}

func (s *modelStore) inBatch() {
	for _, m := range s.runs {
		m.inBatch()
	}
}

func (s *modelStore) step() {
	s.inBatch()
	if s.chance(20) {
		s.check()
	}
	switch n := s.rng.IntN(100); {
	case n < 12:
		s.undo()
	case n < 15:
		s.reopen() // in the middle of a batch
	default:
		s.commit(true)
		for _, m := range s.runs {
			m.betweenBatches()
			m.betweenBatches()
		}
		if s.chance(5) {
			s.reopenWithout()
		}
	}
	s.check()
}

func (s *modelStore) check() {
	s.t.Helper()
	for _, m := range s.runs {
		m.check()
	}
}

// missing lists the events that each ring should see and did not yet.
func (s *modelStore) missing() (out []string) {
	for _, what := range []string{"append", "refused", "use open", "use sealing", "use sealed", "end open", "end sealing", "end sealed", "undo",
		"seal", "spill", "spilled again", "drop", "dropped while sealing", "maintain", "crash", "reopen", "reopen without the last batch",
		"looked up", "nothing to write", "closed", "closed in parts"} {
		for _, m := range s.runs {
			if m.counts[what] == 0 {
				out = append(out, what)
			}
		}
	}
	return out
}

var modelOptions = Options{Width: 1000, Slots: 5, Sync: SyncNone}

func TestModelConsume(t *testing.T) { testModel(t, modelOptions) }

func TestModelMark(t *testing.T) { testModel(t, keeping(modelOptions)) }

// TestModelRings: two rings in one store, of other sizes, one that keeps used rows and one that does not.
func TestModelRings(t *testing.T) {
	testModel(t, keeping(modelOptions), Options{Width: 700, Slots: 7, Space: 'w'})
}

// keeping are the options of a ring that keeps used rows.
func keeping(o Options) Options { o.KeepUsed = true; return o }

func testModel(t *testing.T, opts ...Options) {
	defer func(old int64) { checkpointBytes = old }(checkpointBytes)
	checkpointBytes = 20_000
	eachKit(t, func(t *testing.T, k kit) {
		s := newModelStore(t, k, opts...)
		defer s.end()
		steps := 150
		if _, mem := k.(*memKit); mem {
			steps = 800
		}
		for n := 0; n < steps || n < 10*steps && len(s.missing()) > 0; n++ {
			s.step()
		}
		for _, m := range s.runs {
			t.Log(m.counts)
		}
		if missing := s.missing(); len(missing) > 0 {
			t.Errorf("the run never came to %q", missing)
		}
	})
}
