package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fakeKafka is a cluster of one broker in this process, with a topic "out" of three partitions and "log" of one.
func fakeKafka(t *testing.T, opts ...kfake.Opt) (*kfake.Cluster, Options) {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(3, "out"), kfake.SeedTopics(1, "log", "in")}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, Options{Brokers: c.ListenAddrs()}
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// txnProducer takes over a transactional id.
func txnProducer(t *testing.T, o Options, id string) *Producer {
	t.Helper()
	p, err := NewProducer(testContext(t), o, ProducerOptions{TransactionalID: id, TransactionTimeout: 20 * time.Second, Numbered: []string{"log"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.cl.Close() })
	return p
}

// committed reads the values of a topic that were committed.
func committed(t *testing.T, o Options, topic string) []string {
	t.Helper()
	ctx := testContext(t)
	cl, err := o.dial()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListCommittedOffsets(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	opts, _ := o.clientOpts()
	rd, err := kgo.NewClient(append(opts, kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	left := map[int32]int64{}
	for p, e := range ends[topic] {
		if e.Offset > 0 {
			left[p] = e.Offset
		}
	}
	var values []string
	for len(left) > 0 {
		f := rd.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatalf("%v: partitions %v of %s are not at their ends", err, left, topic)
		}
		f.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				values = append(values, string(r.Value))
			}
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
	}
	slices.Sort(values)
	return values
}

func say(ctx context.Context, p *Producer, value string) {
	p.Produce(ctx, &Record{Topic: "out", Key: []byte(value), Value: []byte(value)})
}

// nobody is a group without members: anybody commits for it.
var nobody = Metadata{Group: "g", Generation: -1}

func offsetOf(t *testing.T, o Options) (int64, string) {
	t.Helper()
	cl, err := o.dial()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	got, err := kadm.NewClient(cl).FetchOffsets(testContext(t), "g")
	if at, ok := got.Lookup("in", 0); ok {
		return at.At, at.Metadata
	}
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		t.Fatal(err)
	}
	return -1, ""
}

// transaction writes a value and an offset, and stops short of the end.
func transaction(t *testing.T, p *Producer, value string, offset int64) {
	t.Helper()
	ctx := testContext(t)
	if err := p.Begin(); err != nil {
		t.Fatal(err)
	}
	say(ctx, p, value)
	if err := p.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if err := p.AddOffsets(ctx, nobody, map[string]map[int32]Committed{"in": {0: {offset, value}}}); err != nil {
		t.Fatal(err)
	}
}

// levels are clusters with either kind of transactions (before and since KIP-890).
func levels(t *testing.T, fn func(t *testing.T, c *kfake.Cluster, o Options)) {
	for _, implicit := range []bool{true, false} {
		t.Run(fmt.Sprintf("implicit=%v", implicit), func(t *testing.T) {
			c, o := fakeKafka(t)
			if !implicit {
				downgrade(t, o)
			}
			got, err := implicitOffsets(testContext(t), o, ProducerOptions{TransactionalID: "x"})
			if err != nil || got != implicit {
				t.Fatalf("the cluster adds offsets by itself: %v, %v; want %v", got, err, implicit)
			}
			fn(t, c, o)
		})
	}
}

// downgrade takes the cluster's transactions back to those before KIP-890.
func downgrade(t *testing.T, o Options) {
	t.Helper()
	cl, err := o.dial()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	got, err := kadm.NewClient(cl).UpdateFeatures(testContext(t), false, kadm.FeatureUpdate{Feature: "transaction.version", MaxVersionLevel: 1, UpgradeType: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range got {
		if f.Err != nil {
			t.Fatal(f.Err)
		}
	}
}

func TestTransactionIsAllOrNothing(t *testing.T) {
	levels(t, func(t *testing.T, _ *kfake.Cluster, o Options) {
		ctx := testContext(t)
		p := txnProducer(t, o, "unit")
		transaction(t, p, "one", 1)
		if got := committed(t, o, "out"); len(got) != 0 {
			t.Errorf("before the end readers of committed records see %q", got)
		}
		if err := p.End(ctx); err != nil {
			t.Fatal(err)
		}
		transaction(t, p, "two", 2)
		p.Close(ctx) // without End
		p = txnProducer(t, o, "unit")
		transaction(t, p, "three", 3)
		if err := p.End(ctx); err != nil {
			t.Fatal(err)
		}
		if got := committed(t, o, "out"); !slices.Equal(got, []string{"one", "three"}) {
			t.Errorf("committed: %q", got)
		}
		if at, meta := offsetOf(t, o); at != 3 || meta != "three" {
			t.Errorf("the group is at %d (%s), want 3", at, meta)
		}
	})
}

// TestSecondProducerFences: who has the id last is the only one to commit.
func TestSecondProducerFences(t *testing.T) {
	levels(t, func(t *testing.T, _ *kfake.Cluster, o Options) {
		ctx := testContext(t)
		first := txnProducer(t, o, "unit")
		transaction(t, first, "first", 1)
		second := txnProducer(t, o, "unit")
		if err := first.End(ctx); err == nil || first.implicit != errors.Is(err, kerr.InvalidTxnState) || first.implicit == errors.Is(err, ErrFenced) {
			t.Errorf("the first producer's end: %v, want it fenced", err) // this broker says it in another way since KIP-890
		}
		transaction(t, second, "second", 2)
		if err := second.End(ctx); err != nil {
			t.Fatal(err)
		}
		if got := committed(t, o, "out"); !slices.Equal(got, []string{"second"}) {
			t.Errorf("committed: %q", got)
		}
		if at, _ := offsetOf(t, o); at != 2 {
			t.Errorf("the group is at %d, want 2", at)
		}
	})
}

// TestUnknownOutcome: the broker's word about the end of a transaction is an error that says nothing. It may have ended it or not;
// taking the id over makes certain of it, and then one can look.
func TestUnknownOutcome(t *testing.T) {
	for _, happened := range []bool{true, false} {
		t.Run(fmt.Sprintf("happened=%v", happened), func(t *testing.T) {
			c, o := fakeKafka(t)
			ctx := testContext(t)
			p := txnProducer(t, o, "unit")
			transaction(t, p, "one", 1)
			if happened {
				// The end is done behind the producer's back, as if the answer had been lost.
				id, epoch, err := p.cl.ProducerID(ctx)
				if err != nil {
					t.Fatal(err)
				}
				req := kmsg.NewPtrEndTxnRequest()
				req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = "unit", id, epoch, true
				other, err := o.dial()
				if err != nil {
					t.Fatal(err)
				}
				defer other.Close()
				if resp, err := req.RequestWith(ctx, other); err != nil || resp.ErrorCode != 0 {
					t.Fatalf("%v %v", err, resp)
				}
			}
			c.ControlKey(kmsg.EndTxn.Int16(), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
				resp := kreq.ResponseKind().(*kmsg.EndTxnResponse)
				resp.ErrorCode = kerr.UnknownServerError.Code
				return resp, nil, true
			})
			if err := p.End(ctx); err == nil {
				t.Fatal("an answer that says nothing was taken for a commit")
			}
			p.cl.Close()
			p = txnProducer(t, o, "unit")
			want, at := []string(nil), int64(-1)
			if happened {
				want, at = []string{"one"}, 1
			}
			if got := committed(t, o, "out"); !slices.Equal(got, want) {
				t.Errorf("committed: %q, want %q", got, want)
			}
			if got, _ := offsetOf(t, o); got != at {
				t.Errorf("the group is at %d, want %d", got, at)
			}
			transaction(t, p, "two", 2)
			if err := p.End(ctx); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestFirstErrorIsKept: one record that is refused fails the Flush, and says which topic.
func TestFirstErrorIsKept(t *testing.T) {
	c, o := fakeKafka(t)
	c.KeepControl()
	p := txnProducer(t, o, "")
	c.ControlKey(kmsg.Produce.Int16(), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		req, resp := kreq.(*kmsg.ProduceRequest), kreq.ResponseKind().(*kmsg.ProduceResponse)
		for _, rt := range req.Topics {
			st := kmsg.NewProduceResponseTopic()
			st.Topic, st.TopicID = rt.Topic, rt.TopicID
			for _, rp := range rt.Partitions {
				sp := kmsg.NewProduceResponseTopicPartition()
				sp.Partition, sp.ErrorCode = rp.Partition, kerr.TopicAuthorizationFailed.Code
				st.Partitions = append(st.Partitions, sp)
			}
			resp.Topics = append(resp.Topics, st)
		}
		return resp, nil, true
	})
	ctx := testContext(t)
	say(ctx, p, "one")
	err := p.Flush(ctx)
	if !errors.Is(err, ErrFatal) || !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Fatalf("Flush: %v, want that the topic may not be written", err)
	}
	if err := p.Flush(ctx); err == nil {
		t.Error("the next Flush has forgotten it")
	}
}

// TestOffsetsOfAMemberThatIsGone: a transaction cannot take along the offsets of a member that the group does not know.
func TestOffsetsOfAMemberThatIsGone(t *testing.T) {
	levels(t, func(t *testing.T, _ *kfake.Cluster, o Options) {
		ctx := testContext(t)
		p := txnProducer(t, o, "unit")
		if err := p.Begin(); err != nil {
			t.Fatal(err)
		}
		say(ctx, p, "one")
		if err := p.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		gone := Metadata{Group: "g", MemberID: "somebody", Generation: 3}
		if err := p.AddOffsets(ctx, gone, map[string]map[int32]Committed{"in": {0: {1, ""}}}); !errors.Is(err, ErrNotMember) {
			t.Errorf("AddOffsets: %v, want ErrNotMember", err)
		}
	})
}
