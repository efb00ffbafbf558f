package kafka

import (
	"errors"
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
