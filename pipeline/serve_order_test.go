package pipeline

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// At least once, the changes of a batch say that its outputs are out: where the broker refuses outputs, nothing of their batch is in the
// changelog. Whoever goes on would take the batch over from there, and its outputs would be lost.
func TestServeWritesChangesAfterOutputs(t *testing.T) {
	s := plainScene(t, "delivery: at-least-once\n", 1, 1)
	s.produce("topic-a", plainRecords("a", 0, 10, 1))
	s.produce("topic-b", plainRecords("b", 0, 10, 1))
	var refused, together atomic.Int64
	s.cluster.ControlKey(kmsg.Produce.Int16(), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		s.cluster.KeepControl()
		req := kreq.(*kmsg.ProduceRequest)
		to := s.writesTo(req)
		if !slices.Contains(to, "out") {
			return nil, nil, false
		}
		if len(to) > 1 {
			together.Add(1)
		}
		if refused.Load() > 0 {
			return nil, nil, false
		}
		refused.Add(1)
		return refuseProduce(req, kerr.InvalidRecord), nil, true
	})
	counts, err := Serve(t.Context(), s.serve())
	if err != nil {
		t.Fatal(err)
	}
	if refused.Load() != 1 || s.status.Snapshot().Aborted != 1 {
		t.Errorf("%d requests refused, %d batches undone", refused.Load(), s.status.Snapshot().Aborted)
	}
	if n := together.Load(); n > 0 {
		t.Errorf("%d requests had outputs and changes", n)
	}
	if got := len(s.output()); got != 10 || counts.Outputs != 10 {
		t.Errorf("%d results, %d counted, want 10", got, counts.Outputs)
	}
}

// writesTo are the topics of a request, which may name them by id.
func (s *serveScene) writesTo(req *kmsg.ProduceRequest) (names []string) {
	for _, t := range req.Topics {
		name := t.Topic
		if name == "" {
			name = s.cluster.TopicIDInfo(t.TopicID).Topic
		}
		names = append(names, name)
	}
	return names
}

// refuseProduce answers a request that none of its batches was taken.
func refuseProduce(req *kmsg.ProduceRequest, why *kerr.Error) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	for _, rt := range req.Topics {
		st := kmsg.NewProduceResponseTopic()
		st.Topic, st.TopicID = rt.Topic, rt.TopicID
		for _, rp := range rt.Partitions {
			sp := kmsg.NewProduceResponseTopicPartition()
			sp.Partition, sp.ErrorCode = rp.Partition, why.Code
			st.Partitions = append(st.Partitions, sp)
		}
		resp.Topics = append(resp.Topics, st)
	}
	return resp
}
