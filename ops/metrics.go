package ops

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"joinbench/results"
)

// desc is a metric: its name without "joinbench_", and how it is taken out of a Status.
type desc struct {
	*prometheus.Desc
	name   string
	labels []string
	kind   prometheus.ValueType
	put    func(s *Status, put func(v float64, labels ...string))
}

func counter(name, help string, put func(s *Status, put func(float64, ...string)), labels ...string) *desc {
	return metric(prometheus.CounterValue, name+"_total", help, put, labels)
}

func gauge(name, help string, put func(s *Status, put func(float64, ...string)), labels ...string) *desc {
	return metric(prometheus.GaugeValue, name, help, put, labels)
}

func metric(kind prometheus.ValueType, name, help string, put func(s *Status, put func(float64, ...string)), labels []string) *desc {
	name = "joinbench_" + name
	return &desc{prometheus.NewDesc(name, help, labels, nil), name, labels, kind, put}
}

// one is a metric without labels.
func one(get func(*Status) int64) func(*Status, func(float64, ...string)) {
	return func(s *Status, put func(float64, ...string)) { put(float64(get(s))) }
}

// each is a metric of what is counted for each side.
func each(get func(*results.Side) int64) func(*Status, func(float64, ...string)) {
	return sides(func(s *Status) (a, b int64) { return get(&s.Counters.A), get(&s.Counters.B) })
}

// sides is a metric with the label side.
func sides(get func(*Status) (a, b int64)) func(*Status, func(float64, ...string)) {
	return func(s *Status, put func(float64, ...string)) {
		a, b := get(s)
		put(float64(a), "a")
		put(float64(b), "b")
	}
}

// partitions is a metric of each partition; what is not known is left out.
func partitions(get func(*Partition) *float64) func(*Status, func(float64, ...string)) {
	return func(s *Status, put func(float64, ...string)) {
		for i := range s.Partitions {
			p := &s.Partitions[i]
			if v := get(p); v != nil {
				put(*v, p.Side, p.Topic, itoa(p.Partition))
			}
		}
	}
}

// descs are all metrics but the histograms. Counters have the names of results.Counters (--stats, /status) with joinbench_ and _total; what
// stands there below a and b is one metric with the label side.
func descs() []*desc {
	return append(append(joinDescs(), stateDescs()...), runDescs()...)
}

// joinDescs are the join's counters.
func joinDescs() []*desc {
	return []*desc{
		counter("read", "Records that were read.", each(func(s *results.Side) int64 { return s.Read }), "side"),
		counter("accepted", "Records that take part in the join.", each(func(s *results.Side) int64 { return s.Accepted }), "side"),
		counter("null_key", "Records without a key.", each(func(s *results.Side) int64 { return s.NullKey }), "side"),
		counter("bad_key", "Records whose key is an object, an array or a boolean.", each(func(s *results.Side) int64 { return s.BadKey }), "side"),
		counter("malformed", "Records that are no JSON.", each(func(s *results.Side) int64 { return s.Malformed }), "side"),
		counter("bad_time", "Records without a time that can be used.", each(func(s *results.Side) int64 { return s.BadTime }), "side"),
		counter("late", "Records that came later than grace allows.", each(func(s *results.Side) int64 { return s.Late }), "side"),
		counter("late_idle", "Records of a side that was idle whose window was over.", each(func(s *results.Side) int64 { return s.LateIdle }), "side"),
		counter("redelivered", "Records that had been read before.", each(func(s *results.Side) int64 { return s.Redelivered }), "side"),
		counter("fetched", "Records that were fetched again for a result (store: offset).", each(func(s *results.Side) int64 { return s.Fetched }), "side"),
		counter("fetch_cache_hits", "Of these, those that were still at hand.", each(func(s *results.Side) int64 { return s.FetchCacheHits }), "side"),
		counter("deleted", "Records that were gone when a result needed them (store: offset).", each(func(s *results.Side) int64 { return s.Deleted }), "side"),
		counter("behind", "Records of a side that was idle which may have missed B.", each(func(s *results.Side) int64 { return s.Behind }), "side"),
		counter("outputs", "Results written.", one(func(s *Status) int64 { return s.Counters.Outputs })),
		counter("matches", "Pairs.", one(func(s *Status) int64 { return s.Counters.Matches })),
		counter("unmatched_a", "A that came out without a partner.", one(func(s *Status) int64 { return s.Counters.UnmatchedA })),
		counter("unmatched_b", "B that came out without a partner.", one(func(s *Status) int64 { return s.Counters.UnmatchedB })),
		counter("early", "Of unmatched a: rows before the window was over.", one(func(s *Status) int64 { return s.Counters.Early })),
		counter("corrected", "Pairs that correct such a row.", one(func(s *Status) int64 { return s.Counters.Corrected })),
		counter("retracted", "Tombstones for such rows.", one(func(s *Status) int64 { return s.Counters.Retracted })),
		counter("oversize", "Results that were too large for their topic.", one(func(s *Status) int64 { return s.Counters.Oversize })),
		counter("probes", "B that asked.", one(func(s *Status) int64 { return s.Counters.Probes })),
		counter("lookups", "Point reads of RocksDB.", one(func(s *Status) int64 { return s.Counters.Lookups })),
		counter("buckets_consulted", "Sealed buckets asked, summed over the B that asked.", one(func(s *Status) int64 { return s.Counters.BucketsConsulted })),
		counter("filter_present_queries", "B with a row in a sealed bucket that was asked.", one(func(s *Status) int64 { return s.Counters.Filter.PresentQueries })),
		counter("filter_absent_queries", "B without any row in the sealed buckets that were asked.", one(func(s *Status) int64 { return s.Counters.Filter.AbsentQueries })),
		counter("filter_false_positives", "Of those, the ones for which RocksDB was read all the same.", one(func(s *Status) int64 { return s.Counters.Filter.FalsePositives })),
		counter("filter_stale_positives", "B that found used rows alone.", one(func(s *Status) int64 { return s.Counters.Filter.StalePositives })),
		counter("filter_build_failed", "Filters that could not be built.", one(func(s *Status) int64 { return s.Counters.Filter.BuildFailed })),
		counter("filter_build_seconds", "Time that filters took to build.", func(s *Status, put func(float64, ...string)) { put(float64(s.Counters.Filter.BuildNs) / 1e9) }),
		counter("buckets_sealed", "Buckets that were sealed.", one(func(s *Status) int64 { return s.Counters.Buckets.SealedTotal })),
		counter("buckets_dropped", "Buckets that were dropped.", one(func(s *Status) int64 { return s.Counters.Buckets.DroppedTotal })),
		counter("buckets_spills", "Runs that open buckets were written to the disk as.", one(func(s *Status) int64 { return s.Counters.Buckets.Spills })),
	}
}

// stateDescs are what is there now.
func stateDescs() []*desc {
	return []*desc{
		gauge("pending", "Records that wait.", sides(func(s *Status) (int64, int64) { return s.Levels.PendingA, s.Levels.PendingB }), "side"),
		gauge("buckets_open", "Buckets that take what comes.", one(func(s *Status) int64 { return s.Levels.OpenBuckets })),
		gauge("buckets_sealed", "Buckets that nothing can enter any more.", one(func(s *Status) int64 { return s.Levels.SealedBuckets })),
		gauge("buckets_unfiltered", "Sealed buckets that are asked without their filter.", one(func(s *Status) int64 { return s.Levels.UnfilteredCount })),
		gauge("bucket_drop_max_seconds", "The longest time that dropping a bucket took.", func(s *Status, put func(float64, ...string)) { put(float64(s.Counters.Buckets.DropMaxNs) / 1e9) }),
		gauge("sealed_rows", "Rows in sealed buckets, used ones too.", one(func(s *Status) int64 { return s.Levels.SealedRows })),
		gauge("memory_bytes", "Memory of the state's own parts.", func(s *Status, put func(float64, ...string)) {
			put(float64(s.Levels.FilterBytes), "filters")
			put(float64(s.Levels.IndexBytes), "indexes")
			put(float64(s.Levels.ArenaBytes), "arenas")
		}, "part"),
		gauge("watermark_seconds", "Event time up to which a side has come.", func(s *Status, put func(float64, ...string)) {
			if s.Watermarks.A != nil {
				put(float64(*s.Watermarks.A)/1000, "a")
			}
			if s.Watermarks.B != nil {
				put(float64(*s.Watermarks.B)/1000, "b")
			}
		}, "side"),
		gauge("partition_position", "Offset that is read next.", partitions(func(p *Partition) *float64 { return float(&p.Position) }), "side", "topic", "partition"),
		gauge("partition_end", "Offset behind the last record that may be read, as of some seconds ago.", partitions(func(p *Partition) *float64 { return float(p.End) }), "side", "topic", "partition"),
		gauge("partition_lag", "Offsets that are not read yet.", partitions(func(p *Partition) *float64 { return float(p.Lag) }), "side", "topic", "partition"),
		gauge("partition_time_seconds", "Greatest event time of the partition.", partitions(func(p *Partition) *float64 {
			v := float(p.Time)
			if v != nil {
				*v /= 1000
			}
			return v
		}), "side", "topic", "partition"),
	}
}

// runDescs are about this process.
func runDescs() []*desc {
	return []*desc{
		gauge("info", "What runs; always 1.", func(s *Status, put func(float64, ...string)) { put(1, s.Version, s.RocksDB, s.Group, s.Delivery) },
			"version", "rocksdb", "group", "delivery"),
		gauge("state", "1 for the state that it is in.", func(s *Status, put func(float64, ...string)) {
			for _, name := range []string{Starting, Restoring, Running, Draining, Stopped} {
				put(boolean(s.State == name), name)
			}
		}, "state"),
		gauge("ready", "1 if the state is restored and records are joined.", func(s *Status, put func(float64, ...string)) { put(boolean(s.Ready())) }),
		gauge("tasks", "Tasks.", one(func(s *Status) int64 { return int64(s.Tasks) })),
		gauge("start_seconds", "When the join was started.", func(s *Status, put func(float64, ...string)) { at(s.Started, put) }),
		gauge("restore_offsets", "How far the state has caught up with the changelog.", func(s *Status, put func(float64, ...string)) {
			put(float64(s.Restore.Done), "done")
			put(float64(s.Restore.All), "all")
		}, "what"),
		gauge("busy_seconds", "For how long it has been at one batch; 0: it waits for records.", func(s *Status, put func(float64, ...string)) { put(s.BusyS) }),
		gauge("last_batch_seconds", "When Kafka had the last batch.", func(s *Status, put func(float64, ...string)) { at(s.LastBatchAt, put) }),
		gauge("last_error_seconds", "When the last error was.", func(s *Status, put func(float64, ...string)) { at(s.LastErrorAt, put) }),
		counter("batches", "Batches that are certain, in this process.", one(func(s *Status) int64 { return int64(s.Batches) })),
		counter("batches_aborted", "Batches that were undone (aborted transactions among them), in this process.", one(func(s *Status) int64 { return int64(s.Aborted) })),
		counter("data_loss", "Records that were deleted before they were read, in this process.", one(func(s *Status) int64 { return s.DataLoss })),
	}
}

// Names of the histograms.
const (
	commitName  = "joinbench_commit_seconds"
	recordsName = "joinbench_batch_records"
)

// collector makes metrics of a Status.
type collector struct {
	status          func() *Status
	descs           []*desc
	commit, records *prometheus.Desc
}

// NewRegistry gives a registry with all metrics of a join, and those of the process and of Go. status is asked at each scrape, by any
// goroutine.
func NewRegistry(status func() *Status) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(&collector{status: status, descs: descs(),
		commit:  prometheus.NewDesc(commitName, "Time until Kafka had a batch: results, changelog, offsets.", nil, nil),
		records: prometheus.NewDesc(recordsName, "Records of a batch.", nil, nil)},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d.Desc
	}
	ch <- c.commit
	ch <- c.records
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s := c.status()
	for _, d := range c.descs {
		d.put(s, func(v float64, labels ...string) { ch <- prometheus.MustNewConstMetric(d.Desc, d.kind, v, labels...) })
	}
	ch <- s.CommitTime.metric(c.commit)
	ch <- s.BatchRecords.metric(c.records)
}

func (h *Histogram) metric(d *prometheus.Desc) prometheus.Metric {
	upTo, n := map[float64]uint64{}, uint64(0)
	for i, c := range h.Counts {
		n += c
		if i < len(h.Bounds) {
			upTo[h.Bounds[i]] = n
		}
	}
	return prometheus.MustNewConstHistogram(d, n, h.Sum, upTo)
}

func at(t time.Time, put func(float64, ...string)) {
	if !t.IsZero() {
		put(float64(t.UnixMilli()) / 1000)
	}
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func float(v *int64) *float64 {
	if v == nil {
		return nil
	}
	f := float64(*v)
	return &f
}
