package pipeline

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"joinbench/results"
)

// rotation keeps what batches cost the task while a bucket rotates, that is from the start of its seal until its rows are
// found by their final filter, and what they cost otherwise. Of several tasks the times are added.
type rotation struct {
	going           bool                    // after the last batch
	inside, outside *hdrhistogram.Histogram // ns; nil before the first batch
}

// batch takes in that a batch has ended. One that starts a seal counts outside, one that swaps a filter inside.
func (r *rotation) batch(before, now reading) {
	if r.inside == nil {
		r.inside, r.outside = newNanos(), newNanos()
	}
	if now.probes == before.probes {
		return
	}
	h := r.outside
	if r.going {
		h = r.inside
	}
	_ = h.RecordValue(min(int64(now.onB-before.onB), h.HighestTrackableValue()))
}

// newNanos is a histogram of 100 ns to 100 s to three digits.
func newNanos() *hdrhistogram.Histogram { return hdrhistogram.New(100, int64(100*time.Second), 3) }

// record is what the result says; nil without a measured batch.
func (r *rotation) record(sealed uint64) (*results.Rotation, error) {
	if r.inside == nil {
		return nil, nil
	}
	inside, err := results.Summarize(r.inside)
	if err != nil {
		return nil, err
	}
	outside, err := results.Summarize(r.outside)
	if err != nil {
		return nil, err
	}
	return results.NewRotation(int64(sealed), inside, outside), nil
}
