package pipeline

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"joinbench/core"
	"joinbench/kafka"
	"joinbench/projection"
)

// TestLiveFeedOverKafka: partitions of a broker are read to their ends, from the beginning and from where a rewind went.
func TestLiveFeedOverKafka(t *testing.T) {
	const end = 5000
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "a"), kfake.SeedTopics(1, "b"),
		kfake.SyntheticFetch(kfake.SyntheticBatch{Records: 300}))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := kafka.NewConsumer(ctx, kafka.Options{Brokers: cluster.ListenAddrs()}, kafka.ConsumerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in := &kafkaInput{consumer: c, topics: [2]string{"a", "b"}, parts: [2][]core.Partition{{{ID: 0}, {ID: 1}}, {{ID: 0}}},
		ends: [2]map[int32]int64{{0: end, 1: end + 1}, {0: 17}}, fresh: true}
	spec, err := projection.Compile(projection.SideSpec{Key: []string{"@key"}})
	if err != nil {
		t.Fatal(err)
	}
	f := newLiveFeed(ctx, [2]*projection.Spec{spec, spec}, in.parts, in.open, true, livePace{Linger: time.Millisecond, Full: 500})
	defer f.Close()
	for _, place := range []int64{0, 1234, 0} {
		for s, parts := range in.parts {
			for i, p := range parts {
				if err := f.Start(core.Side(s), i, min(place, in.ends[s][p.ID])); err != nil {
					t.Fatal(err)
				}
			}
		}
		// Some of it, to go back from with much read ahead; the last time, all.
		for s, parts := range in.parts {
			for i, p := range parts {
				next, to := min(place, in.ends[s][p.ID]), in.ends[s][p.ID]
				if place > 0 {
					to = min(to, place+1000)
				}
				readPartition(t, ctx, f, core.Side(s), i, next, to, to == in.ends[s][p.ID])
			}
		}
	}
}

// readPartition reads from one offset to another, and to the end of the partition if that is there.
func readPartition(t *testing.T, ctx context.Context, f *liveFeed, side core.Side, part int, next, to int64, end bool) {
	t.Helper()
	idle := false
	for {
		if err := f.Await(ctx, idle, -1); err != nil {
			t.Fatalf("side %s, partition %d, at %d: %v", side, part, next, err)
		}
		c, err := f.Next(side, part)
		switch {
		case errors.Is(err, core.ErrNotYet):
			idle = true
			continue
		case err != nil:
			t.Fatal(err)
		case c == nil:
			if !end || next != to {
				t.Errorf("side %s, partition %d ended at %d, want %d", side, part, next, to)
			}
			return
		}
		for i := range c.N {
			if c.Offset[i] != next || c.Place[i] != next || c.Place[i+1] != next+1 {
				t.Fatalf("side %s, partition %d: offset %d, places %d and %d, want %d", side, part, c.Offset[i], c.Place[i], c.Place[i+1], next)
			}
			next++
		}
		f.Done(c)
		idle = false
		if !end && next >= to {
			return
		}
	}
}
