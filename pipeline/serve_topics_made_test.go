package pipeline

import (
	"net"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Brokers say that a topic is made before all of them know it: serve waits until they do.
func TestServeWaitsForTheTopicsThatItMade(t *testing.T) {
	s := newServeScene(t, *oracleSeed, "exactly-once")
	host, port, err := net.SplitHostPort(s.cluster.ListenAddrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	var made, hidden atomic.Int32
	s.cluster.ControlKey(int16(kmsg.CreateTopics), func(kmsg.Request) (kmsg.Response, error, bool) {
		made.Add(1)
		return nil, nil, false
	})
	s.cluster.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		s.cluster.KeepControl()
		m := req.(*kmsg.MetadataRequest)
		if made.Load() == 0 || len(m.Topics) == 0 || hidden.Load() == 3 {
			return nil, nil, false
		}
		hidden.Add(1)
		resp := m.ResponseKind().(*kmsg.MetadataResponse)
		resp.Brokers = []kmsg.MetadataResponseBroker{{Host: host, Port: int32(n)}}
		for _, topic := range m.Topics {
			resp.Topics = append(resp.Topics, kmsg.MetadataResponseTopic{Topic: topic.Topic, ErrorCode: kerr.UnknownTopicOrPartition.Code})
		}
		return resp, nil, true
	})
	counts, err := Serve(t.Context(), s.serve())
	if err != nil {
		t.Fatal(err)
	}
	if made.Load() != 1 || hidden.Load() != 3 {
		t.Errorf("%d topics made, hidden %d times", made.Load(), hidden.Load())
	}
	s.check(counts)
}
