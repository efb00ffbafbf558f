package kafka

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func (b *broker) join(o MemberOptions) (*Member, error) {
	b.t.Helper()
	o.Group, o.Topics = "g", []string{"a", "b"}
	if o.SessionTimeout == 0 {
		o.SessionTimeout = 6 * time.Second
	}
	m, err := Join(within(b.t), b.options(), o)
	if err == nil {
		b.t.Cleanup(m.Close)
	}
	return m, err
}

func (b *broker) mustJoin(o MemberOptions) *Member {
	b.t.Helper()
	m, err := b.join(o)
	if err != nil {
		b.t.Fatal(err)
	}
	return m
}

func groupBroker(t *testing.T) *broker {
	return newBroker(t, kfake.SeedTopics(3, "a"), kfake.SeedTopics(2, "b"), kfake.GroupMinSessionTimeout(100*time.Millisecond))
}

// TestMemberCommits: offsets that were committed come back, with what was noted beside them, in the next life too, and nothing was fetched.
func TestMemberCommits(t *testing.T) {
	b := groupBroker(t)
	b.produce(b.cl, "a", 0, 0, 10)
	var fetches, beats atomic.Int64
	for key, n := range map[int16]*atomic.Int64{1: &fetches, 12: &beats} {
		b.ControlKey(key, func(kmsg.Request) (kmsg.Response, error, bool) {
			b.KeepControl()
			n.Add(1)
			return nil, nil, false
		})
	}
	m := b.mustJoin(MemberOptions{SessionTimeout: 300 * time.Millisecond})
	got, err := m.Committed(within(t))
	if err != nil || len(got) != 0 {
		t.Fatalf("a new group has %v, %v", got, err)
	}
	meta := m.Metadata()
	if meta.Group != "g" || meta.MemberID == "" || meta.Generation < 1 || meta.Instance != "" {
		t.Errorf("metadata %+v", meta)
	}
	want := map[string]map[int32]Committed{"a": {0: {7, "batch 3"}, 2: {0, ""}}, "b": {1: {9, "x"}}}
	if err := m.CommitOffsets(within(t), want); err != nil {
		t.Fatal(err)
	}
	wait(t, "the member is in the group for a while", func() bool { return beats.Load() >= 3 })
	if n := fetches.Load(); n != 0 {
		t.Errorf("the member fetched %d times", n)
	}
	m.Close()
	if err := m.CommitOffsets(within(t), want); err == nil {
		t.Error("a member that left has committed")
	}
	got, err = b.mustJoin(MemberOptions{}).Committed(within(t))
	if err != nil || got["a"][0] != want["a"][0] || got["a"][2] != want["a"][2] || got["b"][1] != want["b"][1] || len(got["a"]) != 2 {
		t.Errorf("committed %v, %v, want %v", got, err, want)
	}
}

// TestSecondMemberIsRefused: by a message that says who is there and what can be done, and the first one does not notice.
func TestSecondMemberIsRefused(t *testing.T) {
	b := groupBroker(t)
	first := b.mustJoin(MemberOptions{})
	before := first.Metadata()
	for _, o := range []MemberOptions{{}, {Instance: "x"}, {Patience: 30 * time.Millisecond}} {
		_, err := b.join(o)
		if !errors.Is(err, ErrOtherMember) {
			t.Fatalf("%+v: %v", o, err)
		}
		for _, says := range []string{`"test-join"`, "127.0.0.1", "group g", "a, b", "kafka.group", "kafka.instance"} {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%q does not say %s", err, says)
			}
		}
	}
	if after := first.Metadata(); after != before || first.Err() != nil {
		t.Errorf("the first member: %+v, was %+v; %v", after, before, first.Err())
	}
	// One that goes while the other waits.
	go func() { time.Sleep(50 * time.Millisecond); first.Close() }()
	b.mustJoin(MemberOptions{Patience: patience})
}

// TestAForeignConsumerTakesAway: one that came without asking ends the member.
func TestAForeignConsumerTakesAway(t *testing.T) {
	b := groupBroker(t)
	m := b.mustJoin(MemberOptions{})
	foreign := b.client(kgo.ConsumerGroup("g"), kgo.ConsumeTopics("a", "b"), kgo.Balancers(kgo.CooperativeStickyBalancer()))
	defer foreign.Close()
	select {
	case <-m.Lost():
	case <-time.After(patience):
		t.Fatal("nothing was taken away")
	}
	if err := m.Err(); !errors.Is(err, ErrLost) {
		t.Errorf("got %v", err)
	}
}

// TestStaticMemberTakesOver: a process of the same name fences the one before it, whose commits are refused from then on; the
// name outlives a close.
func TestStaticMemberTakesOver(t *testing.T) {
	b := groupBroker(t)
	old := b.mustJoin(MemberOptions{Instance: "one", SessionTimeout: 600 * time.Millisecond})
	if old.Metadata().Instance != "one" {
		t.Errorf("metadata %+v", old.Metadata())
	}
	b.mustJoin(MemberOptions{Instance: "one"})
	err := old.CommitOffsets(within(t), map[string]map[int32]Committed{"a": {0: {1, ""}}})
	if !errors.Is(err, kerr.FencedInstanceID) {
		t.Errorf("the old one committed: %v", err)
	}
	select {
	case <-old.Lost():
	case <-time.After(patience):
		t.Fatal("the old one was not told")
	}
	if err := old.Err(); !errors.Is(err, ErrLost) {
		t.Errorf("got %v", err)
	}
}

// TestCommittedWaitsForTransactions: offsets of a transaction that is not decided are waited for.
func TestCommittedWaitsForTransactions(t *testing.T) {
	b := groupBroker(t)
	m := b.mustJoin(MemberOptions{})
	if err := m.CommitOffsets(within(t), map[string]map[int32]Committed{"a": {0: {1, ""}}}); err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	b.ControlKey(9, func(req kmsg.Request) (kmsg.Response, error, bool) {
		b.KeepControl()
		if asked.Add(1) > 3 {
			return nil, nil, false
		}
		r := req.(*kmsg.OffsetFetchRequest)
		resp := r.ResponseKind().(*kmsg.OffsetFetchResponse)
		for _, g := range r.Groups {
			if !r.RequireStable {
				t.Error("offsets that may not stay were asked for")
			}
			rg := kmsg.NewOffsetFetchResponseGroup()
			rg.Group = g.Group
			rt := kmsg.NewOffsetFetchResponseGroupTopic()
			rt.Topic, rt.TopicID = "a", m.topics["a"].ID
			rp := kmsg.NewOffsetFetchResponseGroupTopicPartition()
			rp.ErrorCode = kerr.UnstableOffsetCommit.Code
			rt.Partitions = append(rt.Partitions, rp)
			rg.Topics = append(rg.Topics, rt)
			resp.Groups = append(resp.Groups, rg)
		}
		return resp, nil, true
	})
	got, err := m.Committed(within(t))
	if err != nil || got["a"][0].Offset != 1 || asked.Load() != 4 {
		t.Errorf("committed %v, %v, asked %d times", got, err, asked.Load())
	}
}

// TestJoinNeedsTheTopics names the one that is not there.
func TestJoinNeedsTheTopics(t *testing.T) {
	b := newBroker(t, kfake.SeedTopics(1, "a"))
	if _, err := b.join(MemberOptions{}); err == nil || !strings.Contains(err.Error(), "b") || errors.Is(err, ErrOtherMember) {
		t.Errorf("got %v", err)
	}
}

// TestFirstGroupOfACluster: a cluster that never had a group makes the place for them when it is first asked, and says until then that
// there is no coordinator.
func TestFirstGroupOfACluster(t *testing.T) {
	b := groupBroker(t)
	var refused atomic.Int64
	b.ControlKey(int16(kmsg.FindCoordinator), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		b.KeepControl()
		if refused.Add(1) > 2 {
			return nil, nil, false
		}
		req := kreq.(*kmsg.FindCoordinatorRequest)
		resp := req.ResponseKind().(*kmsg.FindCoordinatorResponse)
		resp.ErrorCode = kerr.CoordinatorNotAvailable.Code
		for _, key := range req.CoordinatorKeys {
			c := kmsg.NewFindCoordinatorResponseCoordinator()
			c.Key, c.ErrorCode = key, kerr.CoordinatorNotAvailable.Code
			resp.Coordinators = append(resp.Coordinators, c)
		}
		return resp, nil, true
	})
	b.mustJoin(MemberOptions{Patience: time.Minute})
	if n := refused.Load(); n < 3 {
		t.Errorf("a member after %d questions, of which two were refused", n)
	}
}
