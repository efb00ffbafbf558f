package results

import (
	"encoding/json"
	"slices"
)

// Schema names our record; SchemaVersion is a semantic version: a reader accepts every record of its own major version.
const (
	Schema        = "joinbench.result"
	SchemaVersion = "1.3.0"
)

// Record is one run. Floats are pointers, and nil means that the value was not measured or does not exist; lists are never
// null once the record has been written.
type Record struct {
	Schema        string       `json:"schema"`
	SchemaVersion string       `json:"schema_version"`
	Tool          Tool         `json:"tool"`
	Run           Run          `json:"run"`
	Environment   Environment  `json:"environment"`
	Phases        []Phase      `json:"phases"`
	SteadyState   *SteadyState `json:"steady_state"`
	Load          *Load        `json:"load"`
	Latency       *Latency     `json:"latency"`
	Join          Join         `json:"join"`
	Storage       Storage      `json:"storage"`
	Cost          Cost         `json:"cost"`
	Steady        *Steady      `json:"steady"`   // null without a measured phase
	Rotation      *Rotation    `json:"rotation"` // likewise
	Recovery      *Recovery    `json:"recovery"` // null in a run that was not resumed
	Intervals     []Interval   `json:"intervals"`
	Repetitions   []Repetition `json:"repetitions"` // empty when the measured phase was too short to be cut in ten
	Drops         []Drop       `json:"drops"`
	Arms          []Arm        `json:"arms"`
	Kafka         *Kafka       `json:"kafka"` // null in a run without a broker
	Thresholds    []Threshold  `json:"thresholds"`
	Verdict       Verdict      `json:"verdict"`
}

// Tool is the program that ran.
type Tool struct {
	Version           string   `json:"version"`
	Commit            string   `json:"commit"`
	Dirty             bool     `json:"dirty"`
	Go                string   `json:"go"`
	RocksDB           string   `json:"rocksdb"`
	RocksDBAssertions bool     `json:"rocksdb_assertions"` // true makes every figure slower than a release build's
	JSONEngine        string   `json:"json_engine"`        // which path of the JSON library is live
	BuildTags         []string `json:"build_tags"`
	Instrumented      []string `json:"instrumented"` // what slows this build down besides: -race, -asan, -msan, -N, failpoints
}

// Run is what was asked for and when. Times are RFC 3339 in UTC. Config is the effective configuration as JSON, and
// ConfigOrigin says for each of its keys where the value came from (default, file, env, flag).
type Run struct {
	ID                  string            `json:"id"`
	Label               string            `json:"label"`
	Profile             string            `json:"profile"`
	StartedAt           string            `json:"started_at"`
	EndedAt             string            `json:"ended_at"`
	Complete            bool              `json:"complete"` // false: interrupted or failed, the record holds what there was
	Argv                []string          `json:"argv"`
	Seed                uint64            `json:"seed"`
	WorkloadFingerprint string            `json:"workload_fingerprint"`
	Tasks               int               `json:"tasks"`
	Config              json.RawMessage   `json:"config"`
	ConfigOrigin        map[string]string `json:"config_origin"`
}

// Environment is the machine as the process saw it. Empty strings and nil are what could not be read.
type Environment struct {
	HostID     string `json:"host_id"` // a hash: tells like hosts from unlike ones, and names none
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`      // that this process may run on
	GOMAXPROCS int    `json:"gomaxprocs"` // that Go uses
	NUMA       int    `json:"numa"`       // nodes, 0 = unknown
	Governor   string `json:"governor"`
	Cgroup     Cgroup `json:"cgroup"`
	MemBytes   int64  `json:"mem_bytes"`
	THP        string `json:"thp"` // transparent huge pages: always, madvise, never
	Kernel     string `json:"kernel"`
	Disk       string `json:"disk"` // the device that the file system of the data lies on
	FS         string `json:"fs"`
	GOGC       int64  `json:"gogc"`       // percent, -1 = off
	GOMEMLIMIT *int64 `json:"gomemlimit"` // bytes, null = none
}

// Cgroup holds the tightest limits from the process's own group up to the root; null = no limit.
type Cgroup struct {
	CPUs        *float64 `json:"cpus"`
	MemoryBytes *int64   `json:"memory_bytes"`
}

// Phase is a stretch of the run: prepare, warm, settle, measure, drain. StartNs counts from the start of the run.
type Phase struct {
	Name       string `json:"name"`
	StartNs    int64  `json:"start_ns"`
	DurationNs int64  `json:"duration_ns"`
	Records    int64  `json:"records"` // of both sides
}

// Storage is what the state cost the disk. Bytes are those of the whole process while it joined, as the kernel counts them:
// what it dirtied in the page cache (null on a file system in memory) and what it fetched from the device.
type Storage struct {
	BytesWritten           *int64   `json:"bytes_written"`
	BytesRead              *int64   `json:"bytes_read"`
	WriteAmp               *float64 `json:"write_amp"`                // bytes written ÷ keys and bodies of the A that were read
	StallRatio             *float64 `json:"stall_ratio"`              // share of the time for which RocksDB held writes up
	PendingCompactionBytes *int64   `json:"pending_compaction_bytes"` // at the end
	CFDrops                int64    `json:"cf_drops"`
	CFDropMaxNs            int64    `json:"cf_drop_max_ns"`
}

// Cost is what the join took. NsPerB and NsPerA are wall time of the task's goroutine from prepared batches to matches handed
// over; RecordNsPerB is the same from raw JSON records; UnitNs (one xxh3 of the key and one look into a plain 16-bit fuse
// filter) makes machines comparable. RSSMaxBytes is the peak of anonymous memory, RSSFileMaxBytes that of mapped files. All
// byte counts are peaks, each at its own moment. ArenaBytes (the rows of open buckets), FilterBytes and IndexBytes (of open
// buckets, and the hashes that summaries are made of) lie in the Go heap, RocksDBBytes is what RocksDB accounts for.
type Cost struct {
	NsPerB *float64 `json:"ns_per_b"`
	// CPUNsPerB is CPU time of the tasks' threads while B asked, without commits and what is done between batches; null where
	// threads have no clock.
	CPUNsPerB *float64 `json:"cpu_ns_per_b"`
	// CPUParts is the same along the measured phase.
	CPUParts         *CPUParts `json:"cpu_parts"`
	NsPerA           *float64  `json:"ns_per_a"`
	BackgroundNsPerA *float64  `json:"background_ns_per_a"` // sealing and filters, beside the task's goroutine
	UnitNs           *float64  `json:"unit_ns"`
	RecordNsPerB     *float64  `json:"record_ns_per_b"`
	GeneratorNsPerB  *float64  `json:"generator_ns_per_b"`
	RSSMaxBytes      *int64    `json:"rss_max_bytes"`
	RSSFileMaxBytes  *int64    `json:"rss_file_max_bytes"`
	GoHeapBytes      *int64    `json:"go_heap_bytes"`
	RocksDBBytes     *int64    `json:"rocksdb_bytes"`
	ArenaBytes       *int64    `json:"arena_bytes"`
	FilterBytes      *int64    `json:"filter_bytes"`
	IndexBytes       *int64    `json:"index_bytes"`
	DiskMaxBytes     *int64    `json:"disk_max_bytes"`
	CPUSPerMillion   *float64  `json:"cpu_s_per_million"` // CPU-seconds of the whole process per million B
	AllocsPerProbe   *float64  `json:"allocs_per_probe"`
	// AllocBytesPerProbe is what the Go heap handed out, GCPauseP99Ns and GCPauseMaxNs how long the collector stopped the
	// program at a time, each as the upper edge of its class in the runtime's histogram; all of the measured phase.
	AllocBytesPerProbe *float64 `json:"alloc_bytes_per_probe"`
	GCPauseP99Ns       *int64   `json:"gc_pause_p99_ns"`
	GCPauseMaxNs       *int64   `json:"gc_pause_max_ns"`
}

// CPUParts is CPU time per B in parts of the measured phase, of Probes B each, in their order; the last part may have fewer, and null is a
// part in which no thread kept its goroutine. Where batches end, parts share what they took by the B in each.
type CPUParts struct {
	Probes int64      `json:"probes"`
	NsPerB []*float64 `json:"ns_per_b"`
	// ClockNsPerB is what a B took by the clock, the mean over the parts without a tenth at either end: so it is known of a run that is stopped
	// and goes on now and then, if parts are short.
	ClockNsPerB *float64 `json:"clock_ns_per_b"`
}

// Interval is one sample of the run; rates are over the time since the sample before. TNs counts from the start of the run.
type Interval struct {
	TNs             int64    `json:"t_ns"`
	Phase           string   `json:"phase"`
	ProbesPerS      *float64 `json:"probes_per_s"`
	APerS           *float64 `json:"a_per_s"`
	LookupsPerProbe *float64 `json:"lookups_per_probe"`
	NsPerB          *float64 `json:"ns_per_b"`        // of the task's goroutine, as in cost
	BatchP99Ns      *int64   `json:"batch_p99_ns"`    // from the end of a batch to the end of the next, less waiting for records
	Seals           int64    `json:"seals"`           // buckets that were sealed in it
	Pending         int64    `json:"pending"`         // of both sides
	ResponseP50Ns   *int64   `json:"response_p50_ns"` // null in a closed loop, and where no B was answered
	ResponseP99Ns   *int64   `json:"response_p99_ns"`
	DiskBytes       *int64   `json:"disk_bytes"`
	RSSBytes        *int64   `json:"rss_bytes"` // anonymous; this and the Go heap are averages over the interval
	GoHeapBytes     *int64   `json:"go_heap_bytes"`
	RocksDBBytes    *int64   `json:"rocksdb_bytes"`
	ArenaBytes      *int64   `json:"arena_bytes"`
	FilterBytes     *int64   `json:"filter_bytes"`
}

// Repetition is one of ten parts of the measured phase, one after another: what statistics are made of.
type Repetition struct {
	Probes          int64    `json:"probes"`
	NsPerB          *float64 `json:"ns_per_b"`
	ProbesPerS      *float64 `json:"probes_per_s"`
	LookupsPerProbe *float64 `json:"lookups_per_probe"`
}

// Drop is one bucket that went away whole: the disk in use before and after, and how long the drop took.
type Drop struct {
	Epoch           int64  `json:"epoch"` // of the bucket
	TNs             int64  `json:"t_ns"`  // from the start of the run
	DiskBeforeBytes *int64 `json:"disk_before_bytes"`
	DiskAfterBytes  *int64 `json:"disk_after_bytes"`
	DropNs          int64  `json:"drop_ns"`
	Rows            int64  `json:"rows"` // in its runs
	Left            int64  `json:"left"` // of them, those that no B had used
}

// Arm is the same data through another way of joining (no filter, another filter), for comparison.
//
// NsPerB is that of the slices alone, in which the arms took their turns; Slices has it slice by slice, null where an arm had
// nothing to do, and Turns the place that it had in the order of each, from 1. NsPerBRatio is the median over the slices of its
// ns per B to the first arm's, low and high are the extremes. Counts are those of the slices' life too. RestartNs is
// the time from the start of a process until B are joined again: after kill -9, or, for an arm that keeps nothing, of reading
// everything anew. Lost is what kill -9 took: pairs that did not come, or, for an arm that keeps nothing, what waited then.
type Arm struct {
	Name             string     `json:"name"`
	NsPerB           *float64   `json:"ns_per_b"`
	NsPerBRatio      *float64   `json:"ns_per_b_ratio"`
	NsPerBRatioLow   *float64   `json:"ns_per_b_ratio_low"`
	NsPerBRatioHigh  *float64   `json:"ns_per_b_ratio_high"`
	NsPerA           *float64   `json:"ns_per_a"`
	NsPerARatio      *float64   `json:"ns_per_a_ratio"` // of the slices alone, without what was loaded before
	NsPerARatioLow   *float64   `json:"ns_per_a_ratio_low"`
	NsPerARatioHigh  *float64   `json:"ns_per_a_ratio_high"`
	BackgroundNsPerA *float64   `json:"background_ns_per_a"`
	UnitNs           *float64   `json:"unit_ns"`
	CPUSPerMillion   *float64   `json:"cpu_s_per_million"`
	RSSMaxBytes      *int64     `json:"rss_max_bytes"`
	DiskMaxBytes     *int64     `json:"disk_max_bytes"`
	Probes           int64      `json:"probes"`
	Matches          int64      `json:"matches"`
	Lookups          int64      `json:"lookups"`
	LookupsPerProbe  *float64   `json:"lookups_per_probe"`
	FPRatio          *float64   `json:"fp_ratio"`
	RestartNs        *int64     `json:"restart_ns"`
	Lost             *int64     `json:"lost"`
	Missing          *int64     `json:"missing"` // these three are null where there is no truth to hold the arm against
	Spurious         *int64     `json:"spurious"`
	Duplicated       *int64     `json:"duplicated"`
	Slices           []*float64 `json:"slices"`
	Turns            []int64    `json:"turns"`
	Complete         bool       `json:"complete"`
	Note             string     `json:"note"`
}

// SetRatio sets the arm's ns per B in relation to that of the first arm: the median over the slices that both have and
// the extremes, or, without such slices, the quotient.
func (a *Arm) SetRatio(first *float64, slicesOfFirst []*float64) {
	a.NsPerBRatio, a.NsPerBRatioLow, a.NsPerBRatioHigh = sliceRatio(a.Slices, slicesOfFirst)
	if a.NsPerBRatio != nil {
		return
	}
	if a.NsPerB != nil && first != nil && *first > 0 {
		a.NsPerBRatio = Known(*a.NsPerB / *first)
	}
}

// SetRatioA sets the arm's ns per A, slice by slice, in relation to that of the first arm.
func (a *Arm) SetRatioA(own, first []*float64) {
	a.NsPerARatio, a.NsPerARatioLow, a.NsPerARatioHigh = sliceRatio(own, first)
}

// sliceRatio is the median of the quotients of the slices that both have, and their extremes; nil without such slices.
func sliceRatio(own, first []*float64) (mid, low, high *float64) {
	var all []float64
	for i := range min(len(own), len(first)) {
		if x, y := own[i], first[i]; x != nil && y != nil && *y > 0 {
			all = append(all, *x / *y)
		}
	}
	n := len(all)
	if n == 0 {
		return nil, nil, nil
	}
	slices.Sort(all)
	return Known((all[(n-1)/2] + all[n/2]) / 2), &all[0], &all[n-1]
}

// Threshold is a limit that was asked for, e.g. "join.filter.fp_ratio<0.0005". One whose value is null has failed.
type Threshold struct {
	Expr   string   `json:"expr"`
	Value  *float64 `json:"value"`
	OK     bool     `json:"ok"`
	Reason string   `json:"reason"` // why there is no value
}

// Verdict is the outcome: one of the statuses of verdict.go, the exit code, why, and doubts that do not change it.
type Verdict struct {
	Status   string   `json:"status"`
	ExitCode int      `json:"exit_code"`
	Reasons  []string `json:"reasons"`
	Warnings []string `json:"warnings"`
}
