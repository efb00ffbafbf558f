package kafkatest

import (
	"context"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Produce writes records, in order, and waits until the broker has them. A record's partition counts.
func (b *Broker) Produce(t testing.TB, records ...*kgo.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cl := b.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer cl.Close()
	if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatalf("producing: %v", err)
	}
}

// Consume reads all that a topic holds now, as a reader of committed records sees it: for each partition the records in order. It
// waits for transactions that are open, until their end.
func (b *Broker) Consume(t testing.TB, topic string) map[int32][]*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ends, starts := b.Ends(t, topic), b.Starts(t, topic)
	from := map[int32]kgo.Offset{}
	left := map[int32]int64{}
	for p, end := range ends {
		from[p] = kgo.NewOffset().At(starts[p])
		if end > starts[p] {
			left[p] = end
		}
	}
	cl := b.Client(t, kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), // ends of transactions have offsets too
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}))
	defer cl.Close()
	all := map[int32][]*kgo.Record{}
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			t.Fatalf("consuming %s, with %v still to come: %v", topic, left, err)
		}
		fetches.EachError(func(_ string, p int32, err error) { t.Fatalf("consuming %s/%d: %v", topic, p, err) })
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				all[r.Partition] = append(all[r.Partition], r)
			}
		})
		// What was aborted at the end of a partition comes as nothing at all: the position says that it has passed.
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			if end, ok := left[p.Partition]; ok && position(p) >= end {
				delete(left, p.Partition)
			}
		})
	}
	return all
}

// position is how far a fetch of a partition came.
func position(p kgo.FetchTopicPartition) int64 {
	if n := len(p.Records); n > 0 {
		return p.Records[n-1].Offset + 1
	}
	return 0
}

// Values is what Consume reads, as texts.
func (b *Broker) Values(t testing.TB, topic string) map[int32][]string {
	t.Helper()
	values := map[int32][]string{}
	for p, records := range b.Consume(t, topic) {
		for _, r := range records {
			values[p] = append(values[p], string(r.Value))
		}
	}
	return values
}

// Ends are the offsets behind each partition's last record, ends of transactions included.
func (b *Broker) Ends(t testing.TB, topic string) map[int32]int64 {
	t.Helper()
	return offsets(t, topic, b.admin.ListEndOffsets)
}

// Starts are the offsets at which each partition's log begins.
func (b *Broker) Starts(t testing.TB, topic string) map[int32]int64 {
	t.Helper()
	return offsets(t, topic, b.admin.ListStartOffsets)
}

func offsets(t testing.TB, topic string, list func(context.Context, ...string) (kadm.ListedOffsets, error)) map[int32]int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	listed, err := list(ctx, topic)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		t.Fatalf("ends or starts of %s: %v", topic, err)
	}
	at := map[int32]int64{}
	for p, o := range listed[topic] {
		at[p] = o.Offset
	}
	return at
}

// Committed are a group's offsets in a topic; partitions without one are not in it, nor is a group that nobody knows.
func (b *Broker) Committed(t testing.TB, group, topic string) map[int32]int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	listed, err := b.admin.FetchOffsets(ctx, group)
	if err == nil {
		err = listed.Error()
	}
	if errors.Is(err, kerr.GroupIDNotFound) { // nobody was in it yet
		return nil
	}
	if err != nil {
		t.Fatalf("offsets of group %s: %v", group, err)
	}
	at := map[int32]int64{}
	for p, o := range listed[topic] {
		at[p] = o.At
	}
	return at
}
