package pipeline

import (
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestServeWaitsForBrokers: whatever serve asks for when it starts, brokers that have trouble for a while are asked again.
func TestServeWaitsForBrokers(t *testing.T) {
	trouble := kerr.UnknownServerError.Code
	for name, c := range map[string]struct {
		key    kmsg.Key
		answer func(kmsg.Request) kmsg.Response
	}{
		"who is in the group": {kmsg.DescribeGroups, func(kreq kmsg.Request) kmsg.Response {
			resp := kreq.ResponseKind().(*kmsg.DescribeGroupsResponse)
			g := kmsg.NewDescribeGroupsResponseGroup()
			g.Group, g.ErrorCode = kreq.(*kmsg.DescribeGroupsRequest).Groups[0], trouble
			resp.Groups = append(resp.Groups, g)
			return resp
		}},
		"where partitions begin and end": {kmsg.ListOffsets, func(kreq kmsg.Request) kmsg.Response {
			resp := kreq.ResponseKind().(*kmsg.ListOffsetsResponse)
			for _, rt := range kreq.(*kmsg.ListOffsetsRequest).Topics {
				st := kmsg.NewListOffsetsResponseTopic()
				st.Topic = rt.Topic
				for _, rp := range rt.Partitions {
					sp := kmsg.NewListOffsetsResponseTopicPartition()
					sp.Partition, sp.ErrorCode = rp.Partition, trouble
					st.Partitions = append(st.Partitions, sp)
				}
				resp.Topics = append(resp.Topics, st)
			}
			return resp
		}},
	} {
		for skip := range int64(8) { // the first ones are well
			t.Run(name, func(t *testing.T) {
				s := plainScene(t, "delivery: exactly-once\n", 2, 2)
				s.produce("topic-a", plainRecords("a", 0, 10, 2))
				s.produce("topic-b", plainRecords("b", 0, 10, 2))
				var asked, refused atomic.Int64
				s.cluster.ControlKey(c.key.Int16(), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
					s.cluster.KeepControl()
					if n := asked.Add(1); n <= skip || n > skip+3 {
						return nil, nil, false
					}
					refused.Add(1)
					return c.answer(kreq), nil, true
				})
				counts, err := Serve(t.Context(), s.serve())
				if err != nil {
					t.Fatal(err)
				}
				if counts.Matches != 10 || refused.Load() == 0 && skip == 0 {
					t.Errorf("%d matches, want 10; %d questions were refused", counts.Matches, refused.Load())
				}
			})
		}
	}
}
