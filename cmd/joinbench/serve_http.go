package main

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"joinbench/config"
	"joinbench/ops"
	"joinbench/pipeline"
)

// defaultHTTP is reached from this machine alone.
const defaultHTTP = "127.0.0.1:9464"

// pages starts the HTTP server, if there is to be one. The default address may be taken, by another join: that is said, and the join runs
// without. One that was asked for has to be had.
func (f *serveFlags) pages(cmd *cobra.Command, conf *config.Join, status *pipeline.Status, log *slog.Logger) (*ops.Server, error) {
	if f.http == "" {
		if f.pprof {
			return nil, &usageError{fmt.Errorf("--pprof needs an address: --http %s", defaultHTTP)}
		}
		return nil, nil
	}
	s, err := ops.Serve(ops.ServerOptions{Listen: f.http, Pprof: f.pprof, Log: log, Status: func() *ops.Status { return statusOf(status, conf) }})
	switch asked := cmd.Flags().Changed("http"); {
	case err != nil && asked:
		return nil, fmt.Errorf("--http: %w", err)
	case err != nil:
		log.Warn("no metrics and no status: give another address with --http, or none with --http \"\"", "error", err)
		return nil, nil
	}
	log.Info("metrics and status", "metrics", "http://"+s.Addr()+"/metrics", "status", "http://"+s.Addr()+"/status")
	return s, nil
}

// statusOf puts together what a running join says of itself.
func statusOf(p *pipeline.Status, conf *config.Join) *ops.Status {
	n := p.Snapshot()
	tool := toolVersion()
	l := &n.Levels
	s := &ops.Status{State: string(n.State), Since: n.Since, Version: tool.Version, RocksDB: tool.RocksDB, Group: conf.Kafka.Group, Delivery: conf.Delivery,
		Tasks: n.Tasks, Started: n.Started, Batch: n.Batch, Batches: n.Batches, LastBatchAt: n.LastAt, Aborted: n.Aborted, DataLoss: n.DataLoss,
		Counters: n.Counters, LastError: n.LastError, LastErrorAt: n.LastErrorAt,
		Levels: ops.Levels{PendingA: int64(l.Pending), PendingB: int64(l.PendingB), OpenBuckets: int64(l.Open), SealedBuckets: int64(l.Sealed), SealedRows: int64(l.SealedRows),
			UnfilteredCount: int64(l.Unfiltered), FilterBytes: int64(l.FilterBytes), IndexBytes: int64(l.IndexBytes), ArenaBytes: l.ArenaBytes},
		Watermarks: ops.Watermarks{A: ops.Event(l.Watermarks[0]), B: ops.Event(l.Watermarks[1])},
		Restore:    ops.Restore{Done: n.RestoreAt, All: n.RestoreEnd},
		CommitTime: ops.Histogram(n.CommitTime), BatchRecords: ops.Histogram(n.BatchRecords)}
	if !n.Started.IsZero() {
		s.UptimeS = time.Since(n.Started).Seconds()
	}
	if !n.BusySince.IsZero() {
		s.BusyS = time.Since(n.BusySince).Seconds()
	}
	s.Partitions = partitionsOf(&n)
	return s
}

func partitionsOf(n *pipeline.ServeSnapshot) []ops.Partition {
	all := []ops.Partition{}
	for side := range n.Places {
		for i, place := range n.Places[side] {
			p := ops.Partition{Side: "ab"[side : side+1], Topic: n.Topics[side], Partition: n.Partitions[side][i], Position: place, Time: ops.Event(n.Newest[side][i])}
			if ends := n.Ends[side]; i < len(ends) && ends[i] >= 0 {
				end := max(ends[i], place) // it was asked some seconds ago
				lag := end - place
				p.End, p.Lag = &end, &lag
			}
			all = append(all, p)
		}
	}
	return all
}
