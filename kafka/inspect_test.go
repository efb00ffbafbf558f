package kafka

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
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
