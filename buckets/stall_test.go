//go:build cgo

package buckets

import (
	"flag"
	"testing"
	"time"
)

var stallFor = flag.Duration("stall.for", 0, "how long the test of sustained writing goes on; 0: a hundred buckets")

// slow is a store that times its writes.
type slow struct {
	*Rocks
	longest, total time.Duration
	writes         int
}

func (s *slow) Write(w *Write) error {
	start := time.Now()
	err := s.Rocks.Write(w)
	took := time.Since(start)
	s.longest, s.total, s.writes = max(s.longest, took), s.total+took, s.writes+1
	return err
}

// TestSustainedWriting is B43, and B38 with the hundred drops that it asks for: at full rate batches are written while buckets are sealed and dropped beside. No write fails, and none stands still for a second; and after a crash every row is there that should be. Longer: go test ./buckets -run SustainedWriting -stall.for 5m.
func TestSustainedWriting(t *testing.T) {
	const perBatch, perBucket = 200, 12
	drops := 100
	if testing.Short() {
		drops = 30
	}
	k := newRocksKit(t)
	k.shared.journal = 2 << 20 // flushed now and then: that of a task among 16 in the default memory
	store := &slow{Rocks: k.openRocks(t)}
	opt := Options{Width: 1000, Slots: 8}
	r := mustRing(t, opt, store, 0)
	jobs, done := make(chan func() error, 64), make(chan error, 1)
	go func() { // the helper
		var first error
		for job := range jobs {
			if err := job(); err != nil && first == nil {
				first = err
			}
		}
		done <- first
	}()
	var sealing []*SealJob
	sealed := make(chan *SealJob, 64)
	finish := func(wait bool) {
		for len(sealing) > 0 {
			var j *SealJob
			if wait || len(sealing) > 3 {
				j = <-sealed
			} else {
				select {
				case j = <-sealed:
				default:
					return
				}
			}
			sealing = sealing[1:]
			drop, err := r.FinishSeal(j)
			must(t, err)
			if drop != nil {
				jobs <- drop.Run
			}
		}
	}
	batch, dropped, stopped := uint64(0), 0, 0
	start := time.Now()
	for epoch := int64(0); dropped < drops || time.Since(start) < *stallFor; epoch++ {
		for range perBucket {
			batch++
			fill(t, r, batch, epoch, perBatch)
			finish(false)
		}
		b := r.At(epoch)
		for row := uint32(0); row < perBatch; row++ { // uses of a sealed bucket are journaled too
			r.Use(b, row*3)
		}
		batch++
		must(t, r.Commit(batch, commitRecord(batch)))
		j := r.StartSeal(b)
		sealing = append(sealing, j)
		jobs <- func() error { err := j.Run(); sealed <- j; return err }
		if r.Stalls().Stopped {
			stopped++
		}
		gone, err := r.DropBelow(epoch - 4)
		must(t, err)
		for _, d := range gone {
			dropped++
			jobs <- d.Run
		}
	}
	finish(true)
	close(jobs)
	must(t, <-done)
	s := r.Stalls()
	t.Logf("%d batches, %d drops in %v; %d writes, the longest %v; stalls %+v", batch, dropped, time.Since(start).Round(time.Millisecond), store.writes, store.longest, s)
	// Three buffers may be full for some milliseconds while the first is flushed. A write that took long without a stall is the
	// machine's business.
	if s.Stopped || store.longest > time.Second && s.Time > time.Second {
		t.Errorf("the store stood still: %+v, seen stopped behind %d buckets; the longest write took %v", s, stopped, store.longest)
	}
	if s.Time > store.total {
		t.Errorf("the store says that it stood still %v, all writes together took %v", s.Time, store.total)
	}

	// Nothing of a bucket that is left was lost.
	k.crash(t)
	must(t, r.Close())
	again := k.openRocks(t)
	r = mustRing(t, opt, again, recorded(t, again))
	defer func() { must(t, r.Close()) }()
	if r.Committed() != batch {
		t.Errorf("batch %d of %d", r.Committed(), batch)
	}
	buckets := 0
	for slot := range opt.Slots {
		if b := r.AtSlot(slot); b != nil {
			buckets++
			if b.Rows() != perBatch*perBucket || b.Live() != b.Rows()-perBatch {
				t.Errorf("bucket %d: %d rows, %d of them wait", b.Epoch, b.Rows(), b.Live())
			}
		}
	}
	if buckets != 5 {
		t.Errorf("%d buckets are left", buckets)
	}
}

// TestStallsAreSeen: a store that slows writes down says so. Here it is told to do that as soon as it has two tables.
func TestStallsAreSeen(t *testing.T) {
	k := newRocksKit(t)
	store := k.openRocks(t)
	r := mustRing(t, testOptions, store, 0)
	defer func() { must(t, r.Close()) }()
	if s := r.Stalls(); s != (Stalls{}) {
		t.Errorf("a new store: %+v", s)
	}
	must(t, store.db.SetOptionsCF(store.fixed[2], []string{"level0_file_num_compaction_trigger", "level0_slowdown_writes_trigger"}, []string{"100", "2"}))
	batch := uint64(0)
	for range 4 {
		for range 5 {
			batch++
			fill(t, r, batch, 0, 5000)
		}
		k.flush(t, false, true)
	}
	s := r.Stalls()
	if s.Delays == 0 || s.Time <= 0 || s.Stopped || s.Stops != 0 {
		t.Errorf("a store with more tables than it likes: %+v", s)
	}
	var sum Stalls
	for range 2 {
		sum.Add(s)
	}
	sum.Add(Stalls{Stops: 3, Stopped: true})
	if want := (Stalls{Delays: 2 * s.Delays, Stops: 3, Time: 2 * s.Time, Stopped: true}); sum != want {
		t.Errorf("sum %+v, want %+v", sum, want)
	}
	for text, want := range map[string]time.Duration{
		"":                      0,
		"Cumulative stall: 1:2": 0,
		"x\nCumulative stall: 01:02:3.456 H:M:S, 0.1 percent\n": time.Hour + 2*time.Minute + 3456*time.Millisecond,
	} {
		if got := stallTime(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
