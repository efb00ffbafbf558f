package pipeline

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"joinbench/internal/failpoint"
)

// What a status counts never goes back: a batch that is undone is not in it, not even until the join has gone back.
func TestStatusCountsNoBatchThatIsUndone(t *testing.T) {
	s := newServeScene(t, *oracleSeed, "exactly-once")
	defer failpoint.Set(nil)
	var before, between atomic.Pointer[ServeSnapshot]
	snapshot := func() *ServeSnapshot { n := s.status.Snapshot(); return &n }
	failpoint.Set(func(name string) error {
		n := snapshot()
		if name != failpoint.KafkaEndBefore || n.Counters.Outputs == 0 || before.Load() != nil {
			return nil
		}
		before.Store(n)
		return errInjected
	})
	s.cluster.ControlKey(int16(kmsg.InitProducerID), func(kmsg.Request) (kmsg.Response, error, bool) {
		s.cluster.KeepControl()
		if before.Load() != nil && between.Load() == nil {
			between.Store(snapshot())
		}
		return nil, nil, false
	})
	counts, err := Serve(t.Context(), s.serve())
	if err != nil {
		t.Fatal(err)
	}
	was, then, last := before.Load(), between.Load(), s.status.Snapshot()
	if was == nil || then == nil {
		t.Fatal("no batch failed: another seed")
	}
	if was.State != Draining || then.State != Restoring || then.Aborted != 1 || then.LastError == "" || !then.BusySince.IsZero() {
		t.Errorf("between: %+v", then)
	}
	if was.BusySince.IsZero() {
		t.Error("a batch is being committed, and the join seems to wait for records")
	}
	if then.Counters.Outputs != was.Counters.Outputs || then.Batch != was.Batch || !slices.Equal(then.Places[0], was.Places[0]) {
		t.Errorf("batch %d, %d outputs; while it goes back: batch %d, %d outputs", was.Batch, was.Counters.Outputs, then.Batch, then.Counters.Outputs)
	}
	if last.Counters.Outputs != counts.Outputs || last.Counters.A != counts.A || last.State != Stopped {
		t.Errorf("at the end %+v, counted %+v", last.Counters, counts)
	}
	sum := 0.0
	for _, h := range []Histogram{last.CommitTime, last.BatchRecords} {
		n := uint64(0)
		for _, c := range h.Counts {
			n += c
		}
		if n != last.Batches {
			t.Errorf("%d batches, the histogram has %d", last.Batches, n)
		}
		sum = h.Sum
	}
	if sum != float64(counts.A.Read+counts.B.Read) {
		t.Errorf("batches had %v records, %d were read", sum, counts.A.Read+counts.B.Read)
	}
	s.check(counts)
}

func TestHistogram(t *testing.T) {
	h := histogramOf([]float64{1, 10})
	for _, v := range []float64{0.5, 1, 1.5, 10, 11, 12} {
		h.add(v)
	}
	if !slices.Equal(h.Counts, []uint64{2, 2, 2}) || h.Sum != 36 {
		t.Errorf("%+v", h)
	}
}
