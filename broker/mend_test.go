package broker_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"joinbench/internal/kafkatest"
)

// offsetInTransaction adds an offset of group g to a client's transaction.
func offsetInTransaction(t *testing.T, b *kafkatest.Broker, cl *kgo.Client, topic string, at int64) {
	t.Helper()
	pid, epoch, err := cl.ProducerID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	topics, err := b.Admin().ListTopics(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	txid, _ := cl.OptValue(kgo.TransactionalID).(string)
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = txid, pid, epoch, "g"
	rp := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	rp.Offset = at
	rt := kmsg.NewTxnOffsetCommitRequestTopic()
	rt.Topic, rt.TopicID, rt.Partitions = topic, topics[topic].ID, append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	if resp, err := req.RequestWith(t.Context(), cl); err != nil || resp.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Fatal(err, resp)
	}
}

// copyFile puts a file of one directory into another.
func copyFile(t *testing.T, from, to, name string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(from, name))
	if err == nil {
		err = os.WriteFile(filepath.Join(to, name), data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestHalfCommitted puts together every state that a kill inside the end of a transaction can leave: the intent is written, then some
// partitions have its end, then the group has its offset, then the producer's next epoch is known. Whatever is there, the whole
// transaction is; without the intent nothing is. And the client that asks again is told what happened.
func TestHalfCommitted(t *testing.T) {
	const partitions = 3
	dir := t.TempDir()
	b, end := open(t, dir, map[string]int{"out": partitions})
	cl := producer(t, b, "tx")
	begin(t, cl, record("out", 0, "1"), record("out", 1, "1"), record("out", 2, "1"))
	offsetInTransaction(t, b, cl, "out", 1)
	if err := cl.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	begin(t, cl, record("out", 0, "2"), record("out", 1, "2"), record("out", 2, "2"))
	offsetInTransaction(t, b, cl, "out", 2)
	pid, epoch, err := cl.ProducerID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := killed(t, dir)
	if err := cl.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	after := killed(t, dir)
	offsets := kadm.Offsets{}
	offsets.AddOffset("out", 0, 5, -1)
	if err := b.Admin().CommitAllOffsets(t.Context(), "g", offsets); err != nil {
		t.Fatal(err)
	}
	begin(t, cl, record("out", 0, "3"), record("out", 2, "3"))
	offsetInTransaction(t, b, cl, "out", 3)
	later := killed(t, dir)
	end()

	both, one := []string{"1", "2"}, []string{"1"}
	check := func(name, dir string, values []string, offset int64, answer int16) {
		t.Run(name, func(t *testing.T) {
			b, end := open(t, dir, nil)
			defer end()
			got := b.Values(t, "out")
			if !maps.EqualFunc(got, map[int32][]string{0: values, 1: values, 2: values}, slices.Equal) {
				t.Errorf("records %v, want %v in each", got, values)
			}
			if got := b.Committed(t, "g", "out"); got[0] != offset {
				t.Errorf("offset %v, want %d", got, offset)
			}
			req := kmsg.NewPtrEndTxnRequest()
			req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = "tx", pid, epoch, true
			resp, err := req.RequestWith(t.Context(), b.Client(t))
			if err != nil || resp.ErrorCode != answer {
				t.Errorf("asked again: %v, code %d, want %d", err, resp.ErrorCode, answer)
			}
		})
	}
	const fenced, invalid = 90, 48
	for done := range partitions + 3 {
		at := killed(t, before)
		copyFile(t, after, at, "joinbench-commit.json")
		for p := range min(done, partitions) {
			for _, file := range []string{"0.dat", "0.idx"} {
				copyFile(t, after, at, filepath.Join("partitions", fmt.Sprintf("out-%d", p), file))
			}
		}
		if done > partitions {
			copyFile(t, after, at, "groups.log")
		}
		if done > partitions+1 {
			copyFile(t, after, at, "pids.log")
		}
		check(fmt.Sprintf("%d steps", done), at, both, 2, 0)
	}
	check("no intent", before, one, 1, invalid)
	check("the next one open", later, both, 5, fenced)
}

// TestRetriedAfterKill: a producer that did not get its answer sends its batch again; the broker knows it.
func TestRetriedAfterKill(t *testing.T) {
	dir := t.TempDir()
	b, end := open(t, dir, map[string]int{"a": 1})
	b.Produce(t, record("a", 0, "once"))
	at := killed(t, dir)
	end()
	batch, err := os.ReadFile(filepath.Join(at, "partitions", "a-0", "0.dat"))
	if err != nil {
		t.Fatal(err)
	}
	b, _ = open(t, at, nil)
	topics, err := b.Admin().ListTopics(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 10_000
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Records = batch
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic, rt.TopicID, rt.Partitions = "a", topics["a"].ID, append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(t.Context(), b.Client(t))
	if err != nil || resp.Topics[0].Partitions[0].ErrorCode != 0 || resp.Topics[0].Partitions[0].BaseOffset != 0 {
		t.Errorf("sent again: %v %+v", err, resp)
	}
	if got := b.Values(t, "a")[0]; !slices.Equal(got, []string{"once"}) {
		t.Errorf("the log has %v", got)
	}
}

// TestTornFiles: what was being written when the broker was killed is cut off, and nothing that comes later is lost behind it.
func TestTornFiles(t *testing.T) {
	dir := t.TempDir()
	b, end := open(t, dir, map[string]int{"a": 1})
	b.Produce(t, record("a", 0, "1"))
	cl := producer(t, b, "tx")
	begin(t, cl, record("a", 0, "2"))
	offsetInTransaction(t, b, cl, "a", 1)
	if err := cl.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	begin(t, cl, record("a", 0, "lost"))
	at := killed(t, dir)
	end()
	log := filepath.Join(at, "partitions", "a-0", "0.dat")
	whole, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for path, more := range map[string][]byte{log: whole[:65], filepath.Join(at, "groups.log"): {200, 0, 0, 0, 1}} {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = f.Write(more)
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
	// The index lacks its last entries: that of the transaction's end, and of the next one.
	if err := os.Truncate(filepath.Join(at, "partitions", "a-0", "0.idx"), 2*15); err != nil {
		t.Fatal(err)
	}
	b, end = open(t, at, nil)
	// What was open has its end right behind what was whole: readers come past it.
	if got := b.Values(t, "a")[0]; !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("records %v, want 1 and 2", got)
	}
	if got := b.Ends(t, "a")[0]; got != 5 { // 1, 2, its end, lost, its end
		t.Errorf("the log ends at %d, want 5", got)
	}
	cl = producer(t, b, "tx")
	begin(t, cl, record("a", 0, "open"))
	if err := cl.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	begin(t, cl, record("a", 0, "3"))
	offsetInTransaction(t, b, cl, "a", 2)
	if err := cl.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	again := killed(t, at)
	end()
	b, _ = open(t, again, nil)
	if got := b.Values(t, "a")[0]; !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("records %v", got)
	}
	if got := b.Committed(t, "g", "a"); got[0] != 2 {
		t.Errorf("offset %v, want 2", got)
	}
}
