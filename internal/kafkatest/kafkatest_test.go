package kafkatest

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestKafkaTransactions goes once through what the rest builds on, against whatever broker there is: records and offsets of a
// transaction that is committed are there, those of one that is aborted are not, and the helpers see it so.
func TestKafkaTransactions(t *testing.T) {
	b := Start(t)
	in, out, group := b.Topic(t, 2), b.Topic(t, 3, "cleanup.policy=delete"), Name(t)
	b.Produce(t, &kgo.Record{Topic: in, Partition: 1, Value: []byte("x")}, &kgo.Record{Topic: in, Partition: 1, Value: []byte("y")})
	if got := b.Ends(t, in); !maps.Equal(got, map[int32]int64{0: 0, 1: 2}) {
		t.Fatalf("ends %v", got)
	}
	cl := b.Client(t, kgo.TransactionalID(Name(t)), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for _, step := range []struct {
		value  string
		commit kgo.TransactionEndTry
		at     int64
	}{{"first", kgo.TryCommit, 1}, {"lost", kgo.TryAbort, 9}, {"second", kgo.TryCommit, 2}, {"lost too", kgo.TryAbort, 9}} {
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for p := range int32(2) {
			if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: out, Partition: p, Value: []byte(step.value)}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		b.commitInTransaction(t, cl, group, in, 1, step.at)
		if err := cl.EndTransaction(t.Context(), step.commit); err != nil {
			t.Fatal(err)
		}
	}
	want := map[int32][]string{0: {"first", "second"}, 1: {"first", "second"}}
	if got := b.Values(t, out); !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("committed records: %v, want %v", got, want)
	}
	if got := b.Committed(t, group, in); !maps.Equal(got, map[int32]int64{1: 2}) {
		t.Errorf("committed offsets: %v, want 1: 2", got)
	}
	if got := b.Ends(t, out); got[0] <= 4 || got[2] != 0 {
		t.Errorf("ends %v: ends of transactions must count, and partition 2 has nothing", got)
	}
}

// commitInTransaction adds a group's offset to a client's transaction, outside of a group's membership.
func (b *Broker) commitInTransaction(t *testing.T, cl *kgo.Client, group, topic string, partition int32, at int64) {
	t.Helper()
	pid, epoch, err := cl.ProducerID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	txid, _ := cl.OptValue(kgo.TransactionalID).(string)
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = txid, pid, epoch, group
	if resp, err := add.RequestWith(t.Context(), cl); err != nil || resp.ErrorCode != 0 {
		t.Fatal(err, resp)
	}
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = txid, pid, epoch, group
	rp := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	rp.Partition, rp.Offset = partition, at
	rt := kmsg.NewTxnOffsetCommitRequestTopic()
	topics, err := b.admin.ListTopics(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	rt.Topic, rt.TopicID, rt.Partitions = topic, topics[topic].ID, append(rt.Partitions, rp) // from version 6 on topics go by their ids
	req.Topics = append(req.Topics, rt)
	if resp, err := req.RequestWith(t.Context(), cl); err != nil || resp.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Fatal(err, resp)
	}
}

// TestProcess: a broker in a process of its own is killed and comes back with its data at the same address; frozen it does not answer.
func TestProcess(t *testing.T) {
	b := Start(t, Process())
	topic := b.Topic(t, 1)
	b.Produce(t, &kgo.Record{Topic: topic, Value: []byte("kept")})
	addr := b.process.addr
	b.Kill(t)
	b.Restart(t)
	if b.process.addr != addr {
		t.Errorf("came back at %s, was at %s", b.process.addr, addr)
	}
	b.Freeze(t)
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := b.client.Ping(short); err == nil {
		t.Error("a frozen broker answered")
	}
	b.Thaw(t)
	if err := b.client.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.Stop(t)
	b.Restart(t)
	if got := b.Values(t, topic)[0]; !slices.Equal(got, []string{"kept"}) {
		t.Errorf("after all that: %v", got)
	}
}
