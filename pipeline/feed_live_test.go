package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"joinbench/core"
	"joinbench/projection"
)

// livePipe is a partition to which a test adds records. Those that were read are spoilt at the next Read.
type livePipe struct {
	mu     sync.Mutex
	more   *sync.Cond
	n      int64 // records that there are
	end    error // behind them, if there is an end
	opened []int64
}

func newLivePipe() *livePipe {
	p := &livePipe{}
	p.more = sync.NewCond(&p.mu)
	return p
}

// put adds n records, and an end behind them unless that is nil.
func (p *livePipe) put(n int64, end error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n += n
	p.end = end
	p.more.Broadcast()
}

func (p *livePipe) open(place int64) *livePipeReader {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opened = append(p.opened, place)
	return &livePipeReader{p: p, at: place}
}

type livePipeReader struct {
	p      *livePipe
	at     int64
	closed bool
	last   []byte
}

func (r *livePipeReader) Read(dst []projection.Record, _ *[]byte) (int, error) {
	for i := range r.last {
		r.last[i] = '#'
	}
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	for r.at == r.p.n && r.p.end == nil && !r.closed {
		r.p.more.Wait()
	}
	switch {
	case r.closed:
		return 0, errors.New("closed")
	case r.at == r.p.n:
		return 0, r.p.end
	}
	k := int(min(int64(len(dst)), r.p.n-r.at, 100))
	r.last = r.last[:0]
	ends := []int{0}
	for i := range k {
		r.last = fmt.Appendf(r.last, `{"id":"key-%d","t":%[1]d}`, r.at+int64(i))
		ends = append(ends, len(r.last))
	}
	for i := range k {
		dst[i] = projection.Record{Value: r.last[ends[i]:ends[i+1]], Offset: r.at + int64(i)}
	}
	r.at += int64(k)
	return k, nil
}

// placeAfter is right behind the last record of a read alone, which is all that whoever copies places has.
func (r *livePipeReader) placeAfter(i int) int64 {
	return r.at - int64(strings.Count(string(r.last), "{")) + int64(i) + 1
}

func (r *livePipeReader) Close() {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	r.closed = true
	r.p.more.Broadcast()
}

// liveKit is a feed over such partitions, all of A.
func liveKit(t *testing.T, n int, keepRaw bool, pace livePace) (*liveFeed, []*livePipe) {
	t.Helper()
	spec, err := projection.Compile(projection.SideSpec{Key: []string{"$.id"}, Time: "$.t", TimeUnit: "ms", Store: "projection"})
	if err != nil {
		t.Fatal(err)
	}
	var parts []core.Partition
	var pipes []*livePipe
	for i := range n {
		parts, pipes = append(parts, core.Partition{ID: int32(i)}), append(pipes, newLivePipe())
	}
	f := newLiveFeed(context.Background(), [2]*projection.Spec{spec, spec}, [2][]core.Partition{parts, nil},
		func(_ core.Side, part int, place int64) (liveReader, error) { return pipes[part].open(place), nil }, keepRaw, pace)
	t.Cleanup(f.Close)
	for i := range parts {
		if err := f.Start(core.A, i, 0); err != nil {
			t.Fatal(err)
		}
	}
	return f, pipes
}

// liveRows reads like an engine until every partition has given so many rows, and checks that they come in order, with their
// places and their raw records. It returns how many batches that took.
func liveRows(t *testing.T, f *liveFeed, next []int64, upTo int64) (batches int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	idle := false
	for {
		if err := f.Await(ctx, idle, -1); err != nil {
			t.Fatalf("partitions are at %v: %v", next, err)
		}
		idle = true
		var done []*core.Chunk
		for p := range next {
			for next[p] < upTo {
				c, err := f.Next(core.A, p)
				if errors.Is(err, core.ErrNotYet) {
					break
				}
				if err != nil || c == nil {
					t.Fatalf("partition %d at %d: %v, %v", p, next[p], c, err)
				}
				idle = false
				next[p] = checkLive(t, f, c, next[p])
				done = append(done, c)
			}
		}
		for _, c := range done {
			f.Done(c)
		}
		if !idle {
			batches++
		}
		all := true
		for _, n := range next {
			all = all && n >= upTo
		}
		if all {
			return batches
		}
	}
}

func checkLive(t *testing.T, f *liveFeed, c *core.Chunk, next int64) int64 {
	t.Helper()
	if c.N == 0 || c.Place[0] != next {
		t.Fatalf("a chunk of %d rows from place %d, want place %d", c.N, c.Place[0], next)
	}
	for i := range c.N {
		want := fmt.Sprintf("skey-%d", next)
		if c.Offset[i] != next || string(c.Key(uint32(i))) != want || c.Place[i+1] != next+1 || c.Time[i] != next {
			t.Fatalf("row %d: offset %d, key %s, time %d, place %d; want those of %d", i, c.Offset[i], c.Key(uint32(i)), c.Time[i], c.Place[i+1], next)
		}
		if f.keepRaw {
			if r := record(core.Ref{Chunk: c, Row: uint32(i)}); !strings.Contains(string(r.Value), want[1:]+`"`) || r.Offset != next {
				t.Fatalf("row %d: the raw record is %+v, want that of %d", i, r, next)
			}
		}
		next++
	}
	return next
}

// TestLiveFeedGivesAllInOrder: what trickles in and what comes in floods, from several partitions at once.
func TestLiveFeedGivesAllInOrder(t *testing.T) {
	for _, keepRaw := range []bool{false, true} {
		f, pipes := liveKit(t, 3, keepRaw, livePace{Linger: time.Millisecond, Full: 2000})
		const total = 20_000
		for i, p := range pipes {
			go func() {
				for sent := int64(0); sent < total; {
					n := min(total-sent, 1+sent%int64(7+i*400))
					p.put(n, nil)
					sent += n
					if sent%3 == 0 {
						time.Sleep(10 * time.Microsecond) // a trickle is what is looked for
					}
				}
			}()
		}
		next := make([]int64, 3)
		liveRows(t, f, next, total)
		f.Close()
	}
}

// TestLiveFeedGoesBack: Start has reading begin anew at the places that it is told, and what was read ahead does not come.
func TestLiveFeedGoesBack(t *testing.T) {
	f, pipes := liveKit(t, 2, false, livePace{Linger: time.Millisecond, Full: 100})
	for _, p := range pipes {
		p.put(5000, nil)
	}
	next := make([]int64, 2)
	for _, place := range []int64{3, 1500, 0} {
		liveRows(t, f, next, 2000)
		for i := range pipes {
			if err := f.Start(core.A, i, place); err != nil {
				t.Fatal(err)
			}
			next[i] = place
		}
		if n := len(pipes[0].opened); pipes[0].opened[n-1] == place {
			t.Error("Start opened a partition, which is for Await to do")
		}
	}
	liveRows(t, f, next, 5000)
	if fmt.Sprint(pipes[1].opened) != "[0 3 1500 0]" {
		t.Errorf("opened at %v", pipes[1].opened)
	}
}

// TestLiveFeedWaits: without a record Next says so and Await waits, at most so long; with a few it waits for more while it may
// linger, with many it does not, and an end is no wait at all.
func TestLiveFeedWaits(t *testing.T) {
	const linger = 100 * time.Millisecond
	f, pipes := liveKit(t, 1, false, livePace{Linger: linger, Full: 1000})
	ctx := context.Background()
	took := func(idle bool, most time.Duration) time.Duration {
		t.Helper()
		start := time.Now()
		if err := f.Await(ctx, idle, most); err != nil {
			t.Fatal(err)
		}
		return time.Since(start)
	}
	nothing := func() {
		t.Helper()
		if c, err := f.Next(core.A, 0); !errors.Is(err, core.ErrNotYet) {
			t.Fatalf("got %v, %v", c, err)
		}
	}
	took(false, -1)
	nothing()
	if d := took(true, 20*time.Millisecond); d < 20*time.Millisecond || d >= linger*50 {
		t.Errorf("waited %v for nothing, at most 20 ms were asked for", d)
	}
	nothing()
	cancelled, cancel := context.WithCancel(ctx)
	time.AfterFunc(time.Millisecond, cancel)
	if err := f.Await(cancelled, true, -1); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait that was ended: %v", err)
	}
	pipes[0].put(1, nil)
	took(true, -1)
	if c, err := f.Next(core.A, 0); err != nil || c.N != 1 {
		t.Fatal(c, err)
	}
	nothing()
	pipes[0].put(5, nil)
	if d := took(false, -1); d < linger*9/10 {
		t.Errorf("a small batch came %v after the last one, it may linger %v", d, linger)
	}
	if c, err := f.Next(core.A, 0); err != nil || c.N != 5 {
		t.Fatal(c, err)
	}
	nothing()
	f.pace.Linger = time.Hour
	pipes[0].put(1000, nil)
	took(false, -1) // would wait for an hour
	pipes[0].put(1, nil)
	for got := 0; got < 1000; {
		c, err := f.Next(core.A, 0)
		if err != nil {
			t.Fatal(err)
		}
		got += c.N
	}
	took(false, 0)                 // as after a full batch, for the last one did not come to the end
	for got := 1006; got < 1007; { // the last one was put while the large batch was read, or is on its way
		c, err := f.Next(core.A, 0)
		if err != nil && !errors.Is(err, core.ErrNotYet) {
			t.Fatal(err)
		}
		if c != nil {
			got = int(c.Offset[c.N-1]) + 1
		}
	}
	nothing()
	pipes[0].put(0, io.EOF)
	took(false, -1)
	if c, err := f.Next(core.A, 0); c != nil || err != nil {
		t.Errorf("at the end: %v, %v", c, err)
	}
}

// TestLiveFeedReadsAhead: as much is decoded ahead as makes a batch, be it of all partitions or of one that alone has something; so
// none waits to be full that never can be.
func TestLiveFeedReadsAhead(t *testing.T) {
	const parts, full = 4, 16 * chunkRecords
	for _, busy := range []int{parts, 1} {
		f, pipes := liveKit(t, parts, false, livePace{Linger: time.Hour, Full: full})
		for _, p := range pipes[:busy] {
			p.put(5*full, nil)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		last := full
		for b := range 4 {
			most := time.Duration(-1)
			if b > 0 && last >= full { // as the engine
				most = 0
			}
			if err := f.Await(ctx, false, most); err != nil {
				t.Fatalf("%d of %d partitions have records: batch %d: %v", busy, parts, b, err)
			}
			got := 0
			for i := range parts {
				for got < full {
					c, err := f.Next(core.A, i)
					if errors.Is(err, core.ErrNotYet) {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
					got += c.N
				}
			}
			if want := full / parts; last < full && got < want {
				t.Errorf("%d of %d partitions have records: batch %d has %d, and %d could be read ahead", busy, parts, b, got, want)
			}
			last = got
		}
		cancel()
		f.Close()
	}
}

// TestLiveFeedFails: what a reader says comes out of Next with its partition, behind what was read before.
func TestLiveFeedFails(t *testing.T) {
	f, pipes := liveKit(t, 1, false, livePace{})
	pipes[0].put(3, errors.New("the broker burnt down"))
	next := []int64{0}
	liveRows(t, f, next, 3)
	if err := f.Await(context.Background(), true, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Next(core.A, 0); err == nil || err.Error() != "side a, partition 0: the broker burnt down" {
		t.Errorf("got %v", err)
	}
	no := errors.New("no such topic")
	f.open = func(core.Side, int, int64) (liveReader, error) { return nil, no }
	if err := f.Start(core.A, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Await(context.Background(), false, -1); !errors.Is(err, no) {
		t.Errorf("a partition that cannot be opened: %v", err)
	}
}
