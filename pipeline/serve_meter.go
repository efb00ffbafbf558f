package pipeline

import (
	"context"
	"slices"
	"sync"
	"time"

	"joinbench/core"
)

// Histogram counts values by size: Counts[i] are those of at most Bounds[i] and above the bound before, the last of Counts those above all.
type Histogram struct {
	Bounds []float64
	Counts []uint64
	Sum    float64
}

func (h *Histogram) add(v float64) {
	i, _ := slices.BinarySearch(h.Bounds, v)
	h.Counts[i]++
	h.Sum += v
}

func (h *Histogram) clone() Histogram {
	return Histogram{h.Bounds, slices.Clone(h.Counts), h.Sum}
}

var (
	// commitBounds are seconds: from a broker in the same process to one that is away for a while.
	commitBounds = []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60}
	batchBounds  = []float64{1, 10, 100, 1000, 5000, 10_000, 20_000, 50_000, 100_000}
)

func histogramOf(bounds []float64) Histogram {
	return Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}
}

// settled is told how long Kafka took for a batch, by the engine's goroutine.
func (s *Status) settled(took time.Duration) {
	s.change(func(n *ServeSnapshot) {
		if n.CommitTime.Counts == nil {
			n.CommitTime = histogramOf(commitBounds)
		}
		n.CommitTime.add(took.Seconds())
	})
}

// batchOf is told how many records a batch had.
func (n *ServeSnapshot) batchOf(records int64) {
	if n.BatchRecords.Counts == nil {
		n.BatchRecords = histogramOf(batchBounds)
	}
	n.BatchRecords.add(float64(records))
}

// work and rest say whether the engine is at a batch, or waits for records.
func (s *Status) work() { s.busy.Store(time.Now().UnixNano()) }
func (s *Status) rest() { s.busy.Store(0) }

// watchedFeed tells a Status when the engine waits for records.
type watchedFeed struct {
	*liveFeed
	status *Status
}

// Await implements core.LiveSource.
func (w watchedFeed) Await(ctx context.Context, idle bool, most time.Duration) error {
	w.status.rest()
	defer w.status.work()
	return w.liveFeed.Await(ctx, idle, most)
}

// endsEvery is how often the topics' ends are asked for, so that a status can say how far behind the join is.
const endsEvery = 5 * time.Second

// endsWatch asks where the topics end, beside the join.
type endsWatch struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

func (u *unit) watchEnds() *endsWatch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &endsWatch{cancel: cancel}
	w.wg.Go(func() {
		tick := time.NewTicker(endsEvery)
		defer tick.Stop()
		for {
			u.askEnds(ctx)
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return w
}

func (w *endsWatch) close() {
	w.cancel()
	w.wg.Wait()
}

// askEnds notes where the topics end. Brokers that do not answer leave it unknown: the lag of a while ago would look like that of now.
func (u *unit) askEnds(ctx context.Context) {
	listed, err := u.consumer.EndOffsets(ctx, u.topics[core.A].Name, u.topics[core.B].Name)
	if ctx.Err() != nil {
		return
	}
	var ends [2][]int64
	for side, parts := range u.sink.parts {
		for _, p := range parts {
			at, ok := listed[u.topics[side].Name][p.ID]
			if err != nil || !ok {
				at = -1
			}
			ends[side] = append(ends[side], at)
		}
	}
	u.Status.change(func(n *ServeSnapshot) { n.Ends = ends })
}
