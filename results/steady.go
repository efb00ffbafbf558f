package results

import "slices"

// Steady says whether a long measured phase kept its memory, its disk and its pace. What is said about amounts leaves out the
// warm-up at the beginning of the phase.
type Steady struct {
	MeasuredNs int64       `json:"measured_ns"` // the whole measured phase
	WarmUpNs   int64       `json:"warm_up_ns"`
	Samples    int64       `json:"samples"` // after the warm-up
	RSS        SteadyLevel `json:"rss"`     // anonymous
	GoHeap     SteadyLevel `json:"go_heap"` // arenas and filters are part of it
	RocksDB    SteadyLevel `json:"rocksdb"`
	Arenas     SteadyLevel `json:"arenas"`
	Filters    SteadyLevel `json:"filters"`
	Disk       SteadyLevel `json:"disk"`
	// MaxGapNs is the longest time between the ends of two batches. MaxGapEngineNs is what of it the engine did not spend
	// waiting for records (in a benchmark decoders and join take turns), MaxEngineNs the longest of that kind in any gap.
	MaxGapNs       int64  `json:"max_gap_ns"`
	MaxGapEngineNs int64  `json:"max_gap_engine_ns"`
	MaxEngineNs    int64  `json:"max_engine_ns"`
	WriteStalls    *int64 `json:"write_stalls"` // how often RocksDB slowed writes down or stopped them, since the state was opened
}

// SteadyLevel is an amount in bytes over the samples of a phase. SlopePer10Min is the line through them: which part of the
// median it rises in ten minutes, null with too few samples or a median of nothing.
type SteadyLevel struct {
	MinBytes      int64    `json:"min_bytes"`
	MedianBytes   int64    `json:"median_bytes"`
	MaxBytes      int64    `json:"max_bytes"`
	SlopePer10Min *float64 `json:"slope_per_10min"`
}

// Level describes amounts at times in seconds, one each, at least one; withSlope asks for the line too.
func Level(seconds, bytes []float64, withSlope bool) SteadyLevel {
	mid := median(slices.Clone(bytes))
	l := SteadyLevel{MinBytes: int64(slices.Min(bytes)), MedianBytes: int64(mid), MaxBytes: int64(slices.Max(bytes))}
	if slope, ok := TheilSen(seconds, bytes); ok && withSlope {
		l.SlopePer10Min = RatioF(slope*600, mid)
	}
	return l
}

// TheilSen is the slope of the line through points: the median of the slopes of all pairs. A saw's teeth do not tilt it, and up
// to 29 % of the points may be anything. False when no two points differ in x. It takes n²/2 steps.
func TheilSen(x, y []float64) (slope float64, ok bool) {
	var slopes []float64
	for i := range x {
		for j := range i {
			if x[i] != x[j] {
				slopes = append(slopes, (y[i]-y[j])/(x[i]-x[j]))
			}
		}
	}
	if len(slopes) == 0 {
		return 0, false
	}
	return median(slopes), true
}

// median sorts v, which is not empty.
func median(v []float64) float64 {
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// Recovery is how a run came back that was resumed. Times count from the start of the process unless they say otherwise; null
// is what did not come before the run ended.
type Recovery struct {
	Pending               int64    `json:"pending"`    // A that waited when the state was opened
	Unfiltered            int64    `json:"unfiltered"` // sealed buckets whose filter was to be built again
	OpenNs                int64    `json:"open_ns"`    // opening the databases and recovering the rings took
	OpenedNs              int64    `json:"opened_ns"`  // they were open
	EngineNs              int64    `json:"engine_ns"`  // the engine was ready for its first batch
	ReadyNs               *int64   `json:"ready_ns"`   // the first batch with probes had ended
	ReadyAfterOpenNs      *int64   `json:"ready_after_open_ns"`
	FiltersReadyNs        *int64   `json:"filters_ready_ns"`         // no filter was missing
	LookupsPerProbeBefore *float64 `json:"lookups_per_probe_before"` // over the earlier lives
	LookupsSettledNs      *int64   `json:"lookups_settled_ns"`       // a sample had at most 1.1 times that and 0.001 more
}
