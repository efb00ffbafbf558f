package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"joinbench/buckets"
	"joinbench/kafka"
	"joinbench/projection"
	"joinbench/results"
)

// cleanWithin is how long removing topics and groups may take.
const cleanWithin = 30 * time.Second

// close removes what the run made, and ends its broker.
func (k *kafkaBench) close() error {
	var err error
	if !k.Keep && len(k.topics) > 0 && !k.figures.Embedded {
		ctx, cancel := context.WithTimeout(context.Background(), cleanWithin)
		defer cancel()
		err = kafka.Delete(ctx, k.options, k.topics, k.groups)
	}
	if k.broker != nil {
		k.broker.stop()
	}
	if k.temp {
		err = errors.Join(err, os.RemoveAll(k.dir))
	}
	return err
}

// record puts the record together.
func (k *kafkaBench) record(runErr error) *results.Record {
	p := k.Profile
	rec := &results.Record{Environment: results.CollectEnvironment(os.TempDir()), Phases: k.phases, Load: k.offered}
	rec.Tool = k.Version
	rec.Tool.RocksDB, rec.Tool.RocksDBAssertions = buckets.Build()
	rec.Tool.JSONEngine = projection.Engine()
	rec.Run = results.Run{ID: k.id, Profile: k.Name, StartedAt: k.started.UTC().Format(time.RFC3339), EndedAt: time.Now().UTC().Format(time.RFC3339),
		Complete: runErr == nil, Argv: k.Argv, Seed: p.Load.Seed, WorkloadFingerprint: k.gen.gen.Fingerprint(),
		Tasks: p.Join.TaskCount(rec.Environment.GOMAXPROCS)}
	rec.Run.Config, rec.Run.ConfigOrigin = configOf(p)
	rec.Join.Counters = k.counts
	if runErr == nil {
		rec.Join.Truth = &k.truth
	}
	rec.Join.Derive()
	if k.e2e != nil {
		rec.Latency = &results.Latency{E2E: k.e2e}
	}
	if k.rss > 0 {
		rec.Cost.RSSMaxBytes = &k.rss
	}
	k.figures.Derive()
	rec.Kafka = &k.figures
	rec.Cost.CPUSPerMillion = k.cpu
	if s := k.figures.Split; s != nil && s.CPUNs != nil {
		rec.Cost.CPUSPerMillion = results.Known(*s.CPUNs / 1e3)
	}
	rec.SetThresholds(k.Thresholds)
	rec.Verdict = results.Judge(rec, k.findings(rec, runErr)...)
	return rec
}

func (k *kafkaBench) findings(rec *results.Record, runErr error) []results.Finding {
	var found []results.Finding
	add := func(status, format string, args ...any) {
		found = append(found, results.Finding{Status: status, Reason: fmt.Sprintf(format, args...)})
	}
	switch {
	case runErr == nil:
	case interrupted(runErr):
		add(results.StatusInterrupted, "interrupted")
	default:
		add(results.StatusFailed, "%v", runErr)
	}
	if f := &k.figures; runErr == nil && f.Consumed != f.Produced {
		add(results.StatusIncorrect, "%s records were loaded, and a join read %s", results.Count(f.Produced), results.Count(f.Consumed))
	}
	if rec.Tool.RocksDBAssertions {
		add(results.StatusInvalid, "RocksDB was compiled with assertions: build a release one with `make`")
	}
	for _, w := range k.warnings {
		add(results.StatusWarning, "%s", w)
	}
	return found
}
