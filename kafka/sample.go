package kafka

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"joinbench/projection"
)

// Sample is some of the newest records of a topic, taken from the ends of all of its partitions. Its bytes are its own.
type Sample struct {
	Topic      string
	Partitions int
	Records    []projection.Record
	Newest     int64 // the greatest record time, ms
	AppendTime bool  // of that one: the broker stamped it, not who sent it
	Bytes      int64 // keys and values of all
	Largest    int   // bytes of the largest value
}

const (
	// sampleBytes is what a sample may hold.
	sampleBytes = 32 << 20
	// sampleFetch is what an answer may hold while sampling.
	sampleFetch = 4 << 20
)

// Sample reads about n of the newest records of a topic. It reads as long as ctx lasts, and gives what it has then.
func (i *Inspector) Sample(ctx context.Context, t *TopicFacts, n int, uncommitted bool) (*Sample, error) {
	s := &Sample{Topic: t.Name, Partitions: t.Partitions}
	if t.Spans == nil {
		return nil, t.Lists
	}
	each := int64(max(1, (n+t.Partitions-1)/t.Partitions))
	spans := slices.Clone(t.Spans)
	for p := range spans {
		spans[p].Start = max(spans[p].Start, spans[p].End-each)
	}
	isolation := kgo.ReadCommitted()
	if uncommitted {
		isolation = kgo.ReadUncommitted()
	}
	r := scan{topic: t.Name, spans: spans, visit: s.take}
	err := r.run(ctx, i.o, kgo.FetchIsolationLevel(isolation), kgo.KeepControlRecords(), kgo.FetchMaxBytes(sampleFetch), kgo.FetchMaxPartitionBytes(sampleFetch/8))
	if err != nil && !errors.Is(err, errFull) && ctx.Err() == nil {
		return nil, err
	}
	return s, nil
}

// errFull ends reading when a sample holds what it may.
var errFull = errors.New("the sample is full")

// take adds a record.
func (s *Sample) take(r *kgo.Record) error {
	if s.Bytes >= sampleBytes {
		return errFull
	}
	at := r.Timestamp.UnixMilli()
	s.Records = append(s.Records, projection.Record{Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value), Timestamp: at,
		Partition: r.Partition, Offset: r.Offset})
	s.Bytes += int64(len(r.Key) + len(r.Value))
	s.Largest = max(s.Largest, len(r.Value))
	if at >= s.Newest {
		s.Newest, s.AppendTime = at, r.Attrs.TimestampType() == 1
	}
	return nil
}
