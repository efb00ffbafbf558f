package kafka

import (
	"bytes"
	"context"
	"fmt"

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
	Cut        bool  // the time was over, or it was more than a sample may hold, before the ends were reached
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
	left := map[int32]int64{} // partitions that are not read to their ends
	from := map[int32]kgo.Offset{}
	for p, s := range t.Spans {
		if s.End > s.Start {
			left[int32(p)] = s.End
			from[int32(p)] = kgo.NewOffset().At(max(s.Start, s.End-each))
		}
	}
	if len(left) == 0 {
		return s, nil
	}
	opts, err := i.o.clientOpts()
	if err != nil {
		return nil, err
	}
	isolation := kgo.ReadCommitted()
	if uncommitted {
		isolation = kgo.ReadUncommitted()
	}
	cl, err := kgo.NewClient(append(opts, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{t.Name: from}),
		kgo.FetchIsolationLevel(isolation),
		kgo.KeepControlRecords(), // a partition may end with a marker
		kgo.FetchMaxBytes(sampleFetch), kgo.FetchMaxPartitionBytes(sampleFetch/8))...)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	for len(left) > 0 && s.Bytes < sampleBytes {
		f := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			break
		}
		if err := firstError(f); err != nil {
			return nil, fmt.Errorf("reading topic %s: %w", t.Name, explain(err))
		}
		f.EachRecord(func(r *kgo.Record) { s.take(r, left) })
	}
	s.Cut = len(left) > 0
	return s, nil
}

func firstError(f kgo.Fetches) (first error) {
	f.EachError(func(_ string, _ int32, err error) {
		if first == nil {
			first = err
		}
	})
	return first
}

// take adds a record, unless it is behind the end as it was.
func (s *Sample) take(r *kgo.Record, left map[int32]int64) {
	end, wanted := left[r.Partition]
	if !wanted {
		return
	}
	if r.Offset >= end-1 {
		delete(left, r.Partition)
	}
	if r.Offset >= end || r.Attrs.IsControl() || s.Bytes >= sampleBytes {
		return
	}
	at := r.Timestamp.UnixMilli()
	s.Records = append(s.Records, projection.Record{Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value), Timestamp: at,
		Partition: r.Partition, Offset: r.Offset})
	s.Bytes += int64(len(r.Key) + len(r.Value))
	s.Largest = max(s.Largest, len(r.Value))
	if at >= s.Newest {
		s.Newest, s.AppendTime = at, r.Attrs.TimestampType() == 1
	}
}
