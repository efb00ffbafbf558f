package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"joinbench/internal/failpoint"
	"joinbench/internal/oracle"
)

var errInjected = errors.New("injected")

// serveFaults lets steps of serve fail, and processes be stopped, at moments that are drawn.
type serveFaults struct {
	mu    sync.Mutex
	rng   *rand.Rand
	rate  float64
	left  int // faults still to come
	stop  context.CancelFunc
	stops float64 // share of faults that stop the process instead
}

// points are those of serve, and of the commit of the state.
func (f *serveFaults) points() []string {
	return slices.Concat(failpoint.Kafka(), []string{failpoint.OutputBefore, failpoint.JournalBefore, failpoint.JournalAfter, failpoint.CommitBefore, failpoint.CommitAfter})
}

func (f *serveFaults) hit(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left == 0 || !slices.Contains(f.points(), name) || f.rng.Float64() > f.rate {
		return nil
	}
	f.left--
	if f.rng.Float64() < f.stops {
		f.stop()
		return nil
	}
	return errInjected
}

// TestServeLives (B22, B26): steps fail, brokers answer with errors, processes stop, directories are lost, and the results are those of
// a life without all that: exactly once, or each at least once.
func TestServeLives(t *testing.T) {
	defer failpoint.Set(nil)
	for _, delivery := range []string{"exactly-once", "at-least-once"} {
		for i := range uint64(6) {
			seed := *oracleSeed + i
			t.Run(fmt.Sprintf("%s/seed=%d", delivery, seed), func(t *testing.T) {
				rng := oracle.NewRand(seed ^ 0x11ed)
				s := newServeScene(t, seed, delivery)
				f := &serveFaults{rng: rng, rate: 0.04, left: 16, stops: 0.2}
				s.brokerFaults(rng)
				lives := 0
				for ; !s.life(f); lives++ {
					if lives > 60 {
						t.Fatal("60 lives, and no end")
					}
					if rng.IntN(4) == 0 {
						if err := os.RemoveAll(s.dir + "/state"); err != nil {
							t.Fatal(err)
						}
					}
				}
				t.Logf("%d lives, %d batches undone in the last", lives+1, s.status.Snapshot().Aborted)
				s.checkDelivery(delivery)
			})
		}
	}
}

// TestServeFailpoints (B26): each step of a batch fails, time and again; where the process ends by that, the state's directory stays or
// is lost.
func TestServeFailpoints(t *testing.T) {
	defer failpoint.Set(nil)
	points := (&serveFaults{}).points()
	for _, delivery := range []string{"exactly-once", "at-least-once"} {
		for i, point := range points {
			t.Run(delivery+"/"+point, func(t *testing.T) {
				s := newServeScene(t, *oracleSeed+1+uint64(i%2), delivery)
				s.conf.State.Tasks = 2
				var hits atomic.Int64 // of all tasks
				lives, inKafka := 0, slices.Contains(failpoint.Kafka(), point)
				fail := func(name string) error {
					if name != point {
						return nil
					}
					n := hits.Add(1)
					// A state that is made anew meets those of the state again: these fail later and later.
					if inKafka && n%2 == 0 || !inKafka && slices.Contains([]int64{2, 5, 11, 23, 47}, n) {
						return errInjected
					}
					return nil
				}
				for ended := false; !ended; lives++ {
					s.status = &Status{}
					failpoint.Set(fail)
					_, err := Serve(t.Context(), s.serve())
					failpoint.Set(nil)
					if ended = err == nil; ended {
						break
					}
					if !errors.Is(err, errInjected) || lives > 100 {
						t.Fatalf("life %d: %v", lives, err)
					}
					if lives%2 == 1 {
						s.forget()
					}
				}
				if hits.Load() < 2 && meets(delivery, point) {
					t.Errorf("%d batches met it", hits.Load())
				}
				s.checkDelivery(delivery)
			})
		}
	}
}

// meets says whether a batch of this delivery comes by a point.
func meets(delivery, point string) bool {
	switch point {
	case failpoint.KafkaOffsets, failpoint.KafkaEndBefore, failpoint.KafkaEndAfter:
		return delivery == "exactly-once"
	case failpoint.KafkaCommitBefore, failpoint.KafkaCommitAfter:
		return delivery == "at-least-once"
	}
	return true
}

// life is one process; it says whether it drained the topics.
func (s *serveScene) life(f *serveFaults) bool {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	f.stop = cancel
	failpoint.Set(f.hit)
	defer failpoint.Set(nil)
	s.status = &Status{}
	_, err := Serve(ctx, s.serve())
	switch {
	case err != nil && !errors.Is(err, errInjected):
		s.t.Fatal(err)
	case err == nil && ctx.Err() == nil:
		return true
	}
	return false
}

// brokerFaults has the broker answer with errors now and then, of which each means something else.
func (s *serveScene) brokerFaults(rng *rand.Rand) {
	var mu sync.Mutex
	left := 8
	draw := func(codes ...*kerr.Error) int16 {
		mu.Lock()
		defer mu.Unlock()
		if left == 0 || rng.Float64() > 0.1 {
			return 0
		}
		left--
		return codes[rng.IntN(len(codes))].Code
	}
	s.cluster.ControlKey(kmsg.EndTxn.Int16(), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		s.cluster.KeepControl()
		code := draw(kerr.UnknownServerError, kerr.InvalidProducerEpoch, kerr.ProducerFenced, kerr.CoordinatorNotAvailable, kerr.ConcurrentTransactions, kerr.InvalidTxnState)
		if code == 0 {
			return nil, nil, false
		}
		resp := kreq.ResponseKind().(*kmsg.EndTxnResponse)
		resp.ErrorCode = code
		return resp, nil, true
	})
	s.cluster.ControlKey(kmsg.TxnOffsetCommit.Int16(), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		s.cluster.KeepControl()
		code := draw(kerr.IllegalGeneration, kerr.RebalanceInProgress, kerr.UnknownServerError, kerr.TransactionAbortable)
		if code == 0 {
			return nil, nil, false
		}
		req, resp := kreq.(*kmsg.TxnOffsetCommitRequest), kreq.ResponseKind().(*kmsg.TxnOffsetCommitResponse)
		for _, rt := range req.Topics {
			st := kmsg.NewTxnOffsetCommitResponseTopic()
			st.Topic, st.TopicID = rt.Topic, rt.TopicID
			for _, rp := range rt.Partitions {
				st.Partitions = append(st.Partitions, kmsg.TxnOffsetCommitResponseTopicPartition{Partition: rp.Partition, ErrorCode: code})
			}
			resp.Topics = append(resp.Topics, st)
		}
		return resp, nil, true
	})
}

// checkDelivery holds what came out against what the delivery promises.
func (s *serveScene) checkDelivery(delivery string) {
	s.t.Helper()
	if delivery == "exactly-once" {
		s.check(nil)
		return
	}
	// Results that came twice are told by their headers, as a reader downstream would.
	seen := map[string]bool{}
	var lines []string
	for _, r := range s.topic("out") {
		id := string(r.Value)
		for _, h := range r.Headers {
			id += fmt.Sprintf(" %s=%s", h.Key, h.Value)
		}
		if !seen[id] {
			seen[id] = true
			lines = append(lines, string(r.Value))
		}
	}
	if !s.want.Exact { // a batch that comes again may pair otherwise
		return
	}
	if err := s.want.Compare(lines); err != nil {
		s.t.Fatal(err)
	}
}
