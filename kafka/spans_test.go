package kafka

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestAwaitCommitted waits as long as a transaction is open, and no longer.
func TestAwaitCommitted(t *testing.T) {
	b := newBroker(t, kfake.SeedTopics(2, "in"))
	cl := b.client(kgo.TransactionalID("loader"))
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := cl.ProduceSync(within(t), &kgo.Record{Topic: "in", Partition: 1, Value: []byte("v")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	b.ControlKey(kmsg.ListOffsets.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.KeepControl()
		asked.Add(1)
		return nil, nil, false
	})
	done := make(chan error, 1)
	go func() { done <- AwaitCommitted(within(t), b.options(), "in") }()
	wait(t, "it asks again", func() bool { return asked.Load() > 4 })
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	if err := cl.EndTransaction(within(t), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := AwaitCommitted(within(t), b.options(), "nowhere"); !errors.Is(err, ErrFatal) {
		t.Errorf("a topic that is not there: %v", err)
	}
}

// TestScanReadsSpans: of each partition the committed records of its span and no others, to a marker that ends it.
func TestScanReadsSpans(t *testing.T) {
	b := newBroker(t, kfake.SeedTopics(4, "in"))
	b.produce(b.cl, "in", 0, 0, 5)                    // 0 to 4
	b.transaction("t", "in", 0, 100, 2, kgo.TryAbort) // 5 6, marker 7
	b.produce(b.cl, "in", 0, 5, 1)                    // 8, behind the span
	b.transaction("t", "in", 1, 6, 2, kgo.TryCommit)  // 0 1, marker 2
	b.produce(b.cl, "in", 2, 200, 3)                  // without a span
	spans := []Span{{2, 8}, {0, 3}, {3, 3}, {}}
	want := []string{"0/2 v2", "0/3 v3", "0/4 v4", "1/0 v6", "1/1 v7"}
	var got []string
	visit := func(r *kgo.Record) error {
		got = append(got, fmt.Sprintf("%d/%d %s", r.Partition, r.Offset, r.Value))
		return nil
	}
	if err := Scan(within(t), b.options(), "in", spans, visit); err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
	var records, bytes int64
	if err := Bare(within(t), b.options(), "in", spans, func(n, size int64) { records, bytes = n, size }); err != nil {
		t.Fatal(err)
	}
	if records != 5 || bytes != 5*int64(len("kv2")) {
		t.Errorf("%d records of %d bytes, want %d of %d", records, bytes, 5, 15)
	}
	stop := errors.New("enough")
	if err := Scan(within(t), b.options(), "in", spans, func(*kgo.Record) error { return stop }); err != stop {
		t.Errorf("the visitor's error: %v", err)
	}
}
