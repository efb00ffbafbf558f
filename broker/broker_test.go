package broker_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"joinbench/broker"
	"joinbench/internal/kafkatest"
	"joinbench/internal/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Check(m.Run(), nil)) }

// open starts a broker for the rest of the test, or until close is called.
func open(t *testing.T, dir string, topics map[string]int) (b *kafkatest.Broker, end func()) {
	t.Helper()
	running, err := broker.Open(broker.Options{Listen: "127.0.0.1:0", Data: dir, Partitions: 1, Topics: topics, Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	ended := false
	end = func() {
		if !ended {
			ended = true
			if err := running.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(end)
	return kafkatest.At(t, running.Addr()), end
}

// killed is a copy of a running broker's directory: what kill -9 would have left at this moment, for kfake buffers nothing.
func killed(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "killed")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func begin(t *testing.T, cl *kgo.Client, records ...*kgo.Record) {
	t.Helper()
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func record(topic string, partition int32, value string) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: partition, Value: []byte(value)}
}

func producer(t *testing.T, b *kafkatest.Broker, txid string) *kgo.Client {
	t.Helper()
	return b.Client(t, kgo.TransactionalID(txid), kgo.RecordPartitioner(kgo.ManualPartitioner()))
}

// TestKilled: what the broker has answered is there after kill -9; a transaction that was open is aborted and its producer fenced;
// and neither changes with a second kill.
func TestKilled(t *testing.T) {
	b := kafkatest.Start(t, kafkatest.Process())
	topic := b.Topic(t, 2)
	b.Produce(t, record(topic, 0, "plain"), record(topic, 1, "plain"))
	offsets := kadm.Offsets{}
	offsets.AddOffset(topic, 1, 7, -1)
	if err := b.Admin().CommitAllOffsets(t.Context(), "group", offsets); err != nil {
		t.Fatal(err)
	}
	first := producer(t, b, "tx")
	begin(t, first, record(topic, 0, "committed"), record(topic, 1, "committed"))
	if err := first.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	begin(t, first, record(topic, 0, "open"), record(topic, 1, "open"))

	want := []string{"plain", "committed"}
	check := func(when string) {
		t.Helper()
		if got := b.Values(t, topic); !slices.Equal(got[0], want) || !slices.Equal(got[1], want) {
			t.Errorf("%s: %v, want %v in both", when, got, want)
		}
		if got := b.Committed(t, "group", topic); !maps.Equal(got, map[int32]int64{1: 7}) {
			t.Errorf("%s: the group's offsets are %v", when, got)
		}
	}
	b.Kill(t)
	b.Restart(t)
	check("killed once")
	if err := first.EndTransaction(t.Context(), kgo.TryCommit); err == nil {
		t.Error("the transaction that was open could be committed")
	}
	second := producer(t, b, "tx")
	begin(t, second, record(topic, 0, "next"), record(topic, 1, "next"))
	if err := second.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	want = append(want, "next")
	check("went on")
	b.Kill(t)
	b.Restart(t)
	check("killed twice")
	b.Stop(t)
	b.Restart(t)
	check("closed")
}

// TestLogStaysWhereItWas: a partition whose records were all deleted goes on at its offset; a topic of the same name begins anew.
func TestLogStaysWhereItWas(t *testing.T) {
	dir := t.TempDir()
	b, end := open(t, dir, map[string]int{"a": 1})
	b.Produce(t, record("a", 0, "1"), record("a", 0, "2"), record("a", 0, "3"))
	cut := func(b *kafkatest.Broker, at int64) {
		t.Helper()
		offsets := kadm.Offsets{}
		offsets.AddOffset("a", 0, at, -1)
		if _, err := b.Admin().DeleteRecords(t.Context(), offsets); err != nil {
			t.Fatal(err)
		}
	}
	cut(b, 3)
	for what, dir := range map[string]string{"killed": killed(t, dir), "closed": dir} {
		end()
		b, end := open(t, dir, nil)
		if got := b.Ends(t, "a"); got[0] != 3 {
			t.Errorf("%s: the log ends at %d, want 3", what, got[0])
		}
		b.Produce(t, record("a", 0, "4"))
		if got := b.Values(t, "a")[0]; !slices.Equal(got, []string{"4"}) {
			t.Errorf("%s: %v, want 4 alone", what, got)
		}
		cut(b, 4)
		end()
	}
	b, end = open(t, dir, nil)
	if _, err := b.Admin().DeleteTopics(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	end()
	for range 2 { // made, and found
		b, end = open(t, dir, map[string]int{"a": 1})
		if got := b.Ends(t, "a"); got[0] != 0 {
			t.Errorf("an empty topic of the same name ends at %d", got[0])
		}
		end()
	}
	b, end = open(t, dir, nil)
	cut(b, 0)
	b.Produce(t, record("a", 0, "new"))
	cut(b, 1)
	b.Produce(t, record("a", 0, "newer"))
	end()
	b, _ = open(t, dir, nil)
	if got := b.Ends(t, "a"); got[0] != 2 {
		t.Errorf("a new topic of the same name ends at %d, want 2", got[0])
	}
}

// TestOpenRefuses: what cannot be opened is refused with its name.
func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	_, end := open(t, dir, map[string]int{"a": 3})
	o := broker.Options{Listen: "127.0.0.1:0", Data: dir, Partitions: 1, Log: io.Discard}
	if b, err := broker.Open(o); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a directory in use: %v %v", b, err)
	}
	end()
	o.Topics = map[string]int{"a": 4}
	if b, err := broker.Open(o); err == nil || !strings.Contains(err.Error(), "topic a has 3 partitions already, not 4") {
		t.Errorf("other partitions: %v %v", b, err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	o.Topics, o.Listen = nil, l.Addr().String()
	if b, err := broker.Open(o); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("an address in use: %v %v", b, err)
	}
	_, _ = open(t, dir, map[string]int{"a": 3}) // none of them left it locked
}

// TestMarkStays: who opens a directory while another broker lets it go must lock the file that a third one locks too.
func TestMarkStays(t *testing.T) {
	dir := t.TempDir()
	var marks [2]os.FileInfo
	for i := range marks {
		_, end := open(t, dir, nil)
		var err error
		if marks[i], err = os.Stat(filepath.Join(dir, "joinbench-broker.open")); err != nil {
			t.Fatal(err)
		}
		end()
	}
	if !os.SameFile(marks[0], marks[1]) {
		t.Error("each broker has a mark of its own")
	}
}

// TestNobodyBeforeItIsReady: a client that was waiting for the broker finds its topics, and does not make them as it likes.
func TestNobodyBeforeItIsReady(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	want := map[string]int{}
	for i := range 200 {
		want[fmt.Sprint("topic-", i)] = 3
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			cl, err := kgo.NewClient(kgo.SeedBrokers(addr))
			if err != nil {
				t.Error(err)
				return
			}
			short, stop := context.WithTimeout(ctx, time.Second)
			req := kmsg.NewPtrMetadataRequest()
			req.AllowAutoTopicCreation = true
			for name := range want {
				rt := kmsg.NewMetadataRequestTopic()
				rt.Topic = &name
				req.Topics = append(req.Topics, rt)
			}
			_, _ = req.RequestWith(short, cl)
			stop()
			cl.Close()
		}
	}()
	for range 20 {
		b, err := broker.Open(broker.Options{Listen: addr, Partitions: 1, Topics: want, Log: io.Discard})
		if err != nil {
			t.Error(err)
			break
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	cancel()
	<-done
}
