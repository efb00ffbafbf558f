package kafka

import (
	"errors"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestFewestReplicas: the least of any partition counts, whichever has it, also if it is none.
func TestFewestReplicas(t *testing.T) {
	var f TopicFacts
	f.count(kadm.PartitionDetails{
		0: {Partition: 0, Leader: 1, Replicas: []int32{1, 2, 3}, ISR: []int32{1, 2, 3}},
		1: {Partition: 1, Leader: -1, Replicas: []int32{1, 2, 3}},
		2: {Partition: 2, Leader: 1, Replicas: []int32{1, 2}, ISR: []int32{1}},
	})
	if f.Replicas != 2 || f.InSync != 0 || f.Leaderless != 1 {
		t.Errorf("at least %d replicas and %d in sync, %d without a leader; want 2, 0 and 1", f.Replicas, f.InSync, f.Leaderless)
	}
}

// TestSampleTakesTheNewest: about as many offsets as were asked for, of each partition the last ones, and what was aborted if that is
// read too.
func TestSampleTakesTheNewest(t *testing.T) {
	b := newBroker(t, kfake.SeedTopics(3, "in"))
	b.produce(b.cl, "in", 0, 0, 10)
	b.produce(b.cl, "in", 1, 10, 1)
	b.transaction("t", "in", 1, 100, 1, kgo.TryAbort) // and a marker
	open := b.client(kgo.TransactionalID("open"))
	if err := open.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	b.produce(open, "in", 2, 11, 1)
	i, err := NewInspector(within(t), b.options())
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	for _, c := range []struct {
		n           int
		uncommitted bool
		offsets     int64
		want        []string
	}{{5, false, 13, []string{"v8", "v9"}}, {7, false, 13, []string{"v10", "v7", "v8", "v9"}}, {7, true, 14, []string{"v10", "v100", "v11", "v7", "v8", "v9"}}} {
		facts, err := i.Topic(within(t), "in", c.uncommitted)
		if err != nil {
			t.Fatal(err)
		}
		if n := facts.Records(); n != c.offsets {
			t.Errorf("%+v: %d offsets", c, n)
		}
		s, err := i.Sample(within(t), facts, c.n, c.uncommitted)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range s.Records {
			got = append(got, string(r.Value))
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: got %v", c, got)
		}
	}
	full := Sample{Bytes: sampleBytes}
	if err := full.take(&kgo.Record{}); !errors.Is(err, errFull) || len(full.Records) != 0 {
		t.Errorf("a sample that is full takes more: %v", err)
	}
}
