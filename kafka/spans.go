package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A Span is what a partition holds for readers, of committed records if nothing else is said: the offsets from Start to End-1. There
// may be holes.
type Span struct{ Start, End int64 }

// Spans are those of all partitions of a topic, by number; nil if there is no such topic.
func Spans(ctx context.Context, o Options, topic string) ([]Span, error) {
	cl, err := o.dial()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	meta, err := adm.Metadata(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("asking about topic %s: %w", topic, err)
	}
	t, ok := meta.Topics[topic]
	if !ok || errors.Is(t.Err, kerr.UnknownTopicOrPartition) {
		return nil, nil
	}
	if t.Err != nil {
		return nil, fmt.Errorf("topic %s: %w", topic, t.Err)
	}
	list, err := listSpans(ctx, adm, topic, len(t.Partitions), false)
	if err != nil {
		return nil, fmt.Errorf("offsets of topic %s: %w", topic, err)
	}
	return list, nil
}

// listSpans are those of a topic with so many partitions; uncommitted: for who reads records whose transaction is open too.
func listSpans(ctx context.Context, adm *kadm.Client, topic string, partitions int, uncommitted bool) ([]Span, error) {
	ends := adm.ListCommittedOffsets
	if uncommitted {
		ends = adm.ListEndOffsets
	}
	var at [2]kadm.ListedOffsets
	for i, ask := range []func(context.Context, ...string) (kadm.ListedOffsets, error){adm.ListStartOffsets, ends} {
		var err error
		if at[i], err = ask(ctx, topic); err == nil {
			err = at[i].Error()
		}
		if err != nil {
			return nil, explain(err)
		}
	}
	list := make([]Span, partitions)
	for p := range list {
		start, hasStart := at[0].Lookup(topic, int32(p))
		end, hasEnd := at[1].Lookup(topic, int32(p))
		if !hasStart || !hasEnd {
			return nil, fmt.Errorf("partition %d: no answer", p)
		}
		list[p] = Span{start.Offset, end.Offset}
	}
	return list, nil
}

// markerAgain is how often is asked whether the ends of transactions are written.
const markerAgain = 20 * time.Millisecond

// AwaitCommitted waits until readers of committed records can read a topic to its end. A producer is told that its transaction is
// committed before the partitions are.
func AwaitCommitted(ctx context.Context, o Options, topic string) error {
	cl, err := o.dial()
	if err != nil {
		return err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	ends, err := adm.ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	for err == nil {
		var stable kadm.ListedOffsets
		if stable, err = adm.ListCommittedOffsets(ctx, topic); err == nil {
			err = stable.Error()
		}
		open := false
		ends.Each(func(end kadm.ListedOffset) {
			at, ok := stable.Lookup(topic, end.Partition)
			open = open || ok && at.Offset < end.Offset
		})
		if err == nil && !open {
			return nil
		}
		err = errors.Join(err, pause(ctx, markerAgain))
	}
	return fmt.Errorf("topic %s: waiting for the ends of transactions: %w", topic, explain(err))
}

// GroupOffsets are where a group goes on reading a topic; 0 in a partition of which it has committed nothing. nil if it has
// committed nothing at all.
func GroupOffsets(ctx context.Context, o Options, group, topic string, partitions int) ([]int64, error) {
	cl, err := o.dial()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	resp, err := kadm.NewClient(cl).FetchOffsetsForTopics(ctx, group, topic)
	if err == nil {
		err = resp.Error()
	}
	if errors.Is(err, kerr.GroupIDNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("offsets of group %s: %w", group, err)
	}
	var list []int64
	for p := range partitions {
		if r, ok := resp.Lookup(topic, int32(p)); ok && r.At >= 0 {
			if list == nil {
				list = make([]int64, partitions)
			}
			list[p] = r.At
		}
	}
	return list, nil
}

// Scan reads the committed records of a topic, in each partition those of its span, and hands them to visit, of each
// partition in order. visit is called from this goroutine and must not keep the record. Partitions without a span are not read. A
// span that ends in records of a transaction that was aborted behind it (two producers wrote to the partition at the same time)
// comes to its end only with the next record or marker.
func Scan(ctx context.Context, o Options, topic string, of []Span, visit func(*kgo.Record) error) error {
	s := scan{topic: topic, spans: of, visit: visit}
	return s.run(ctx, o, kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.FetchMaxBytes(32<<20), kgo.FetchMaxPartitionBytes(4<<20), kgo.MaxConcurrentFetches(2))
}

// scan reads spans of a topic to their ends.
type scan struct {
	topic  string
	spans  []Span
	visit  func(*kgo.Record) error
	polled func(*kgo.Client) // after each poll; may be nil

	left map[int32]kgo.Offset // partitions that have not come to their end
}

// run reads. The options are how; markers have to be kept, for a span may end with one.
func (s *scan) run(ctx context.Context, o Options, how ...kgo.Opt) error {
	s.left = map[int32]kgo.Offset{}
	for p, span := range s.spans {
		if span.Start < span.End {
			s.left[int32(p)] = kgo.NewOffset().At(span.Start)
		}
	}
	if len(s.left) == 0 {
		return nil
	}
	opts, err := o.clientOpts()
	if err != nil {
		return err
	}
	cl, err := kgo.NewClient(append(append(opts, how...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{s.topic: maps.Clone(s.left)}))...)
	if err != nil {
		return err
	}
	defer cl.Close()
	for len(s.left) > 0 {
		fetches := cl.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.take(cl, fetches); err != nil {
			return err
		}
		if s.polled != nil {
			s.polled(cl)
		}
	}
	return nil
}

func (s *scan) take(cl *kgo.Client, fetches kgo.Fetches) (err error) {
	fetches.EachPartition(func(f kgo.FetchTopicPartition) {
		switch {
		case err != nil:
		case f.Err != nil && f.Partition < 0: // of all of them
			err = fmt.Errorf("reading topic %s: %w", s.topic, explain(f.Err))
		case f.Err != nil:
			err = fmt.Errorf("reading %s/%d: %w", s.topic, f.Partition, explain(f.Err))
		default:
			err = s.partition(cl, &f.FetchPartition)
		}
	})
	return err
}

// partition takes what came of one. Its end is known by the markers of transactions too, which are the last that some partitions
// have.
func (s *scan) partition(cl *kgo.Client, f *kgo.FetchPartition) error {
	if _, reading := s.left[f.Partition]; !reading {
		return nil
	}
	end := s.spans[f.Partition].End
	for _, r := range f.Records {
		if r.Offset >= end {
			break
		}
		if !r.Attrs.IsControl() {
			if err := s.visit(r); err != nil {
				return err
			}
		}
	}
	if n := len(f.Records); n > 0 && f.Records[n-1].Offset >= end-1 {
		delete(s.left, f.Partition)
		cl.PauseFetchPartitions(map[string][]int32{s.topic: {f.Partition}})
	}
	return nil
}
