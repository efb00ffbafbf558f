package results

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latency holds the three views of an open-loop run, each null when it was not measured: response (from the intended time),
// service (from the start of the work) and schedule lag (intended to start); e2e is through Kafka.
type Latency struct {
	Response    *Summary `json:"response"`
	Service     *Summary `json:"service"`
	ScheduleLag *Summary `json:"schedule_lag"`
	E2E         *Summary `json:"e2e"`
}

// Summary is a histogram in a few numbers, and the whole of it in HDR: base64 of the compressed V2 encoding, which every
// HdrHistogram library reads.
type Summary struct {
	Count   int64    `json:"count"`
	MinNs   int64    `json:"min_ns"`
	MeanNs  *float64 `json:"mean_ns"`
	P50Ns   int64    `json:"p50_ns"`
	P75Ns   int64    `json:"p75_ns"`
	P90Ns   int64    `json:"p90_ns"`
	P95Ns   int64    `json:"p95_ns"`
	P99Ns   int64    `json:"p99_ns"`
	P999Ns  int64    `json:"p99_9_ns"`
	P9999Ns int64    `json:"p99_99_ns"`
	MaxNs   int64    `json:"max_ns"`
	HDR     string   `json:"hdr"`
}

// Summarize condenses a histogram of nanoseconds. A histogram that is nil or empty gives nil: there is no latency of
// nothing. h is read only; nobody may record into it meanwhile.
func Summarize(h *hdrhistogram.Histogram) (*Summary, error) {
	if h == nil || h.TotalCount() == 0 {
		return nil, nil
	}
	encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil, fmt.Errorf("encode latency histogram: %w", err)
	}
	at := h.ValueAtPercentilesSlice([]float64{50, 75, 90, 95, 99, 99.9, 99.99})
	return &Summary{
		Count: h.TotalCount(), MinNs: h.Min(), MeanNs: Known(h.Mean()), MaxNs: h.Max(),
		P50Ns: at[0], P75Ns: at[1], P90Ns: at[2], P95Ns: at[3], P99Ns: at[4], P999Ns: at[5], P9999Ns: at[6],
		HDR: string(encoded),
	}, nil
}

// Histogram gives back the whole histogram that the summary was made from.
func (s *Summary) Histogram() (*hdrhistogram.Histogram, error) {
	h, err := hdrhistogram.Decode([]byte(s.HDR))
	if err != nil {
		return nil, fmt.Errorf("decode latency histogram: %w", err)
	}
	return h, nil
}
