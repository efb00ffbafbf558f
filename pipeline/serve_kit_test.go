package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"joinbench/capture"
	"joinbench/config"
	"joinbench/internal/oracle"
	"joinbench/kafka"
	"joinbench/projection"
	"joinbench/results"
)

// serveScene is a join of two topics of a broker in this process, whose records are those of a random workload, and what must come
// out of it.
type serveScene struct {
	t       *testing.T
	cluster *kfake.Cluster
	opts    kafka.Options
	conf    *config.Join
	want    *oracle.Expected
	records [2][]projection.Record // by side, in the order of each partition
	parts   [2]int
	dir     string
	log     *slog.Logger
	status  *Status
}

// newServeScene makes the workload of a seed that lies in topics. Of the oracle's workloads it takes the records as they could lie in a
// topic: with offsets from 0 on, so that nothing is redelivered.
func newServeScene(t *testing.T, seed uint64, delivery string) *serveScene {
	t.Helper()
	rng := oracle.NewRand(seed)
	cfg, a, b, format := oracle.RandomWorkload(rng)
	cfg.Retract = false // a tombstone in a topic has no line
	s := &serveScene{t: t, dir: t.TempDir(), status: &Status{}, log: testLog(t)}
	var files [2][]byte
	for i, data := range [][]byte{a, b} {
		s.records[i], s.parts[i] = recordsOf(t, data, format, strings.HasPrefix([]string{cfg.A.Time, cfg.B.Time}[i], "$"))
		files[i] = kcatOf(s.records[i])
	}
	var err error
	if s.want, err = oracle.Expect(cfg, files[0], files[1], "kcat"); err != nil {
		t.Fatal(err)
	}
	if s.conf, err = joinConfig(cfg, variant{tasks: 1 + int(seed%2), buckets: 4, filter: "fuse8"}); err != nil {
		t.Fatal(err)
	}
	s.conf.MaxSkew, s.conf.Delivery = 87_600*time.Hour, delivery
	s.broker()
	return s
}

// broker starts the broker and fills the topics.
func (s *serveScene) broker() {
	s.t.Helper()
	var err error
	s.cluster, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(int32(s.parts[0]), "topic-a"), kfake.SeedTopics(int32(s.parts[1]), "topic-b"),
		kfake.SeedTopics(2, "out", "late", "dead"), kfake.GroupMinSessionTimeout(100*time.Millisecond))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(s.cluster.Close)
	s.opts = kafka.Options{Brokers: s.cluster.ListenAddrs()}
	c := s.conf
	c.A.Topic, c.B.Topic, c.Output.Topic = "topic-a", "topic-b", "out"
	c.Topics.Late, c.Topics.Dead = "late", "dead"
	c.Kafka.Brokers, c.Kafka.Group = s.opts.Brokers, "g"
	if err := c.ValidateServe(); err != nil {
		s.t.Fatal(err)
	}
	for side, topic := range []string{"topic-a", "topic-b"} {
		s.produce(topic, s.records[side])
	}
}

// produce writes records to the partitions that they name.
func (s *serveScene) produce(topic string, records []projection.Record) {
	s.t.Helper()
	l, err := kafka.NewLoader(s.opts, kafka.LoaderOptions{Compression: "none"})
	if err != nil {
		s.t.Fatal(err)
	}
	defer l.Close()
	for _, r := range records {
		l.Send(s.t.Context(), &kafka.Record{Topic: topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Timestamp: time.UnixMilli(r.Timestamp)}, func() {})
	}
	if err := l.Flush(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// recordsOf reads the records of a file that can lie in a topic, and gives them new offsets.
func recordsOf(t *testing.T, file []byte, format string, fieldTime bool) (all []projection.Record, parts int) {
	t.Helper()
	path := t.TempDir() + "/records"
	writeFile(t, path, file)
	f, err := capture.ParseFormat(format)
	if err != nil {
		t.Fatal(err)
	}
	in, err := capture.OpenContext(t.Context(), capture.OpenOptions{Path: path, Format: f, Topic: "t"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	for _, id := range in.Partitions() {
		if id < 0 {
			continue
		}
		parts = max(parts, int(id)+1)
		offset := int64(0)
		for c := in.NewCursor(id, 0); ; {
			var arena []byte
			rec := make([]projection.Record, 1)
			n, err := c.Read(rec, &arena)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			r := rec[0]
			if n == 0 || r.Damaged || r.Timestamp < 0 || !utf8.Valid(r.Value) || !utf8.Valid(r.Key) {
				continue
			}
			if fieldTime { // or it is too far ahead of the record's own (max_skew), which the oracle does not know
				r.Timestamp = 1_700_000_000_000
			}
			r.Offset = offset
			offset++
			all = append(all, r)
		}
	}
	return all, max(parts, 1)
}

// kcatOf writes records as lines of kcat.
func kcatOf(records []projection.Record) (file []byte) {
	text := func(b []byte) *string {
		if b == nil {
			return nil
		}
		s := string(b)
		return &s
	}
	for _, r := range records {
		line, err := json.Marshal(map[string]any{"topic": "t", "partition": r.Partition, "offset": r.Offset, "tstype": "create",
			"ts": r.Timestamp, "key": text(r.Key), "payload": text(r.Value)})
		if err != nil {
			panic(err)
		}
		file = append(append(file, line...), '\n')
	}
	return file
}

// serve is what runs over the scene.
func (s *serveScene) serve() ServeConfig {
	return ServeConfig{Config: s.conf, StateDir: s.dir + "/state", Drain: true, Cores: 2, Log: s.log, Status: s.status,
		CommitInterval: time.Millisecond, BatchRecords: 20, TransactionTimeout: 10 * time.Second, SessionTimeout: time.Second, StopTimeout: 5 * time.Second,
		trimEvery: time.Microsecond}
}

// output reads the lines of the output topic that are committed.
func (s *serveScene) output() (lines []string) {
	for _, r := range s.topic("out") {
		lines = append(lines, string(r.Value))
	}
	return lines
}

func (s *serveScene) topic(name string) []*kgo.Record {
	s.t.Helper()
	records, err := committedRecords(s.t.Context(), s.opts, name)
	if err != nil {
		s.t.Fatal(err)
	}
	return records
}

// committedRecords reads a topic as those do that read what is committed.
func committedRecords(ctx context.Context, o kafka.Options, topic string) (all []*kgo.Record, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	spans, err := kafka.Spans(ctx, o, topic)
	if err != nil {
		return nil, err
	}
	left := map[int32]int64{}
	for p, span := range spans {
		if span.End > span.Start {
			left[int32(p)] = span.End
		}
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(o.Brokers...), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	for len(left) > 0 {
		f := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%s: partitions %v are not at their ends: %w", topic, left, ctx.Err())
		}
		f.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() && r.Offset < spans[r.Partition].End {
				all = append(all, r)
			}
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
	}
	return all, nil
}

// check holds what came out against the oracle.
func (s *serveScene) check(counts *results.Counters) {
	s.t.Helper()
	lines := s.output()
	check := s.want.CheckValid
	if s.want.Exact {
		check = s.want.Compare
	}
	if err := check(lines); err != nil {
		s.t.Fatal(err)
	}
	if counts == nil {
		return
	}
	checkFates(s.t, variant{}, "a", &counts.A, s.want.CountersA)
	checkFates(s.t, variant{}, "b", &counts.B, s.want.CountersB)
	if counts.Outputs != int64(len(lines)) {
		s.t.Errorf("%d outputs counted, %d are in the topic", counts.Outputs, len(lines))
	}
}

// testLog prints what serve logs if the test fails.
func testLog(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s", p[:len(p)-1])
	return len(p), nil
}
