package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"joinbench/buckets"
	"joinbench/config"
	"joinbench/core"
	"joinbench/internal/failpoint"
	"joinbench/internal/oracle"
	"joinbench/kafka"
	"joinbench/projection"
)

// TestOffsetStoreGivesTheSame: what comes out with store: offset is what the oracle says, of all kinds of joins, in either delivery.
func TestOffsetStoreGivesTheSame(t *testing.T) {
	var fetched, hits int64
	for _, delivery := range []string{"exactly-once", "at-least-once"} {
		for i := range uint64(12) {
			seed := *oracleSeed + i
			t.Run(fmt.Sprintf("%s/seed=%d", delivery, seed), func(t *testing.T) {
				s := newServeScene(t, seed, delivery)
				s.conf.A.Store = "offset"
				s.conf.FetchCache = 1 << 20
				if err := s.conf.ValidateServe(); err != nil {
					t.Fatal(err)
				}
				counts, err := Serve(t.Context(), s.serve())
				if err != nil {
					t.Fatal(err)
				}
				s.check(counts)
				if counts.A.Deleted != 0 {
					t.Errorf("%d records were not there", counts.A.Deleted)
				}
				fetched, hits = fetched+counts.A.Fetched, hits+counts.A.FetchCacheHits
			})
		}
	}
	if fetched == 0 || hits == 0 {
		t.Errorf("%d records were fetched, %d were kept from before", fetched, hits)
	}
}

// TestOffsetStoreLives: steps fail, brokers answer fetches and ends of transactions with errors, processes stop and directories are lost,
// and the results are those of a life without all that, bodies included.
func TestOffsetStoreLives(t *testing.T) {
	defer failpoint.Set(nil)
	for i := range uint64(4) {
		seed := *oracleSeed + 100 + i
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			rng := oracle.NewRand(seed ^ 0x0ff5e7)
			s := newServeScene(t, seed, "exactly-once")
			s.conf.A.Store = "offset"
			f := &serveFaults{rng: rng, rate: 0.04, left: 12, stops: 0.3}
			s.brokerFaults(rng)
			s.fetchFaults()
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
			t.Logf("%d lives", lives+1)
			s.checkDelivery("exactly-once")
		})
	}
}

// fetchFaults has the broker answer each ninth fetch of topic-a with an error.
func (s *serveScene) fetchFaults() {
	errs := []*kerr.Error{kerr.NotLeaderForPartition, kerr.KafkaStorageError, kerr.OffsetNotAvailable}
	n := 0
	s.cluster.ControlKey(kmsg.Fetch.Int16(), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		s.cluster.KeepControl()
		req, resp := kreq.(*kmsg.FetchRequest), kreq.ResponseKind().(*kmsg.FetchResponse)
		if req.SessionEpoch != -1 || len(req.Topics) != 1 { // of who reads everything
			return nil, nil, false
		}
		if n++; n%9 != 0 {
			return nil, nil, false
		}
		rt := kmsg.NewFetchResponseTopic()
		rt.Topic, rt.TopicID = req.Topics[0].Topic, req.Topics[0].TopicID
		for _, p := range req.Topics[0].Partitions {
			rp := kmsg.NewFetchResponseTopicPartition()
			rp.Partition, rp.ErrorCode = p.Partition, errs[n/9%len(errs)].Code
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
		return resp, nil, true
	})
}

// offsetScene is a join of topics in which all A wait before the first B comes: A with keys k0, k1, …, one pair each.
type offsetScene struct {
	*serveScene
	n    int
	base int64
}

const offsetParts = 2

func newOffsetScene(t *testing.T, delivery string, n int) *offsetScene {
	t.Helper()
	s := &serveScene{t: t, dir: t.TempDir(), status: &Status{}, log: testLog(t), parts: [2]int{offsetParts, 1}}
	o := &offsetScene{s, n, 1_700_000_000_000}
	for i := range n {
		s.records[0] = append(s.records[0], projection.Record{Partition: int32(i % offsetParts), Offset: int64(i / offsetParts), Key: fmt.Appendf(nil, "k%d", i),
			Value: fmt.Appendf(nil, `{"x":%d, "y": {"z":"%s"}}`, i, strings.Repeat("z", i%50)), Timestamp: o.base + int64(i)})
	}
	j := config.Default()
	j.A.Key, j.B.Key = []string{"@key"}, []string{"$.k"}
	j.A.Keep, j.A.Store = []config.KeepField{{Path: "$.x"}}, "offset"
	j.B.Keep = []config.KeepField{{Path: "$.b"}}
	j.Window.After, j.Delivery, j.MaxSkew = time.Hour, delivery, 87_600*time.Hour
	j.State.Tasks, j.State.Sync = 2, "none"
	j.IdleTimeout = 10 * time.Millisecond // A are taken in before the first B
	s.conf = j
	s.broker()
	return o
}

// waitAll serves until all A wait, and stops.
func (o *offsetScene) waitAll() {
	o.t.Helper()
	ctx, cancel := context.WithCancel(o.t.Context())
	defer cancel()
	sc := o.serve()
	sc.Drain = false
	done := make(chan error)
	go func() {
		_, err := Serve(ctx, sc)
		done <- err
	}()
	for o.readUpTo() < o.n {
		select {
		case err := <-done:
			o.t.Fatalf("serve ended: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if err := <-done; err != nil {
		o.t.Fatal(err)
	}
}

// readUpTo is how many A are in batches that are kept.
func (o *offsetScene) readUpTo() (n int) {
	o.t.Helper()
	cl := o.client()
	defer cl.Close()
	of, err := kadm.NewClient(cl).FetchOffsets(o.t.Context(), "g")
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		o.t.Fatal(err)
	}
	for _, at := range of["topic-a"] {
		n += int(max(at.At, 0))
	}
	return n
}

// ask produces a B for each A.
func (o *offsetScene) ask() {
	o.t.Helper()
	var all []projection.Record
	for i := range o.n {
		all = append(all, projection.Record{Value: fmt.Appendf(nil, `{"k":"k%d","b":%d}`, i, i), Timestamp: o.base + int64(o.n+i)})
	}
	o.produce("topic-b", all)
}

// lines are what comes out of each A, whose bodies are made by a.
func (o *offsetScene) lines(a func(i int) string) (all []string) {
	for i := range o.n {
		all = append(all, fmt.Sprintf(`{"key":"k%d","ts":%d,"a":%s,"b":{"b":%[1]d}}`, i, o.base+int64(o.n+i), a(i)))
	}
	return all
}

func (o *offsetScene) checkLines(got, want []string) {
	o.t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		o.t.Fatalf("%d lines came, %d expected:\n%s\nexpected:\n%s", len(got), len(want), strings.Join(got[:min(5, len(got))], "\n"), strings.Join(want[:min(5, len(want))], "\n"))
	}
}

// TestBodiesAreThoseOfTheConfigurationInForce: with store: offset the fields that are kept may change while A wait, and those that come
// out have the new ones. With store: projection such a state is refused.
func TestBodiesAreThoseOfTheConfigurationInForce(t *testing.T) {
	o := newOffsetScene(t, "exactly-once", 300)
	o.waitAll()
	o.ask()
	o.conf.A.Keep = []config.KeepField{{Path: "$.y"}, {Name: "n", Path: "$.x"}}
	counts, err := Serve(t.Context(), o.serve())
	if err != nil {
		t.Fatal(err)
	}
	o.checkLines(o.output(), o.lines(func(i int) string { return fmt.Sprintf(`{"y":{"z":"%s"},"n":%d}`, strings.Repeat("z", i%50), i) }))
	if counts.A.Fetched+counts.A.FetchCacheHits != 300 {
		t.Errorf("%+v", counts.A)
	}

	o = newOffsetScene(t, "exactly-once", 10)
	o.conf.A.Store = "projection"
	o.waitAll()
	o.conf.A.Keep = []config.KeepField{{Path: "$.y"}}
	if _, err := Serve(t.Context(), o.serve()); err == nil || !strings.Contains(err.Error(), "another configuration") {
		t.Errorf("other fields under store: projection: %v", err)
	}
}

// TestDeletedRecords: what a.deleted says becomes of results whose A is gone; and what was stopped for it goes on with another word.
func TestDeletedRecords(t *testing.T) {
	const n, gone = 200, 60 // of each partition
	isGone := func(i int) bool { return i/offsetParts < gone }
	for _, delivery := range []string{"exactly-once", "at-least-once"} {
		for _, policy := range []string{"emit", "dead", "stop"} {
			t.Run(delivery+"/"+policy, func(t *testing.T) {
				o := newOffsetScene(t, delivery, n)
				o.waitAll()
				o.ask()
				for p := range int32(offsetParts) {
					o.deleteBefore("topic-a", p, gone)
				}
				o.conf.Deleted = policy
				counts, err := Serve(t.Context(), o.serve())
				if policy == "stop" {
					if err == nil || !strings.Contains(err.Error(), "topic-a, partition ") || !strings.Contains(err.Error(), "a.deleted: emit") {
						t.Fatalf("error %v", err)
					}
					o.conf.Deleted = "emit"
					counts, err = Serve(t.Context(), o.serve())
				}
				if err != nil {
					t.Fatal(err)
				}
				if counts.A.Deleted != offsetParts*gone || counts.Matches != n {
					t.Errorf("%d deleted, %d matches", counts.A.Deleted, counts.Matches)
				}
				want := o.lines(func(i int) string {
					if isGone(i) {
						return "{}"
					}
					return fmt.Sprintf(`{"x":%d}`, i)
				})
				got := o.output()
				if policy == "dead" {
					if counts.Outputs != n-offsetParts*gone || len(got) != int(counts.Outputs) {
						t.Errorf("%d outputs counted, %d in the topic", counts.Outputs, len(got))
					}
					got = append(got, o.dead()...)
				}
				o.checkLines(got, want)
			})
		}
	}
}

// dead reads the dead letters, each of which must say why and where its A was.
func (o *offsetScene) dead() (lines []string) {
	o.t.Helper()
	for _, r := range o.topic("dead") {
		headers := map[string]string{}
		for _, h := range r.Headers {
			headers[h.Key] = string(h.Value)
		}
		if headers["reason"] != "deleted" || !strings.HasPrefix(headers["a"], "topic-a/") || !strings.HasPrefix(headers["b"], "topic-b/0/") || len(r.Key) == 0 {
			o.t.Errorf("key %q headers %v", r.Key, headers)
		}
		lines = append(lines, string(r.Value))
	}
	return lines
}

// ledgerRecorder is a ledger that keeps what it is told, and what goes to the dead letters behind the rest.
type ledgerRecorder struct {
	core.Ledger
	said, dead []string
	pieces     int
}

func (l *ledgerRecorder) Results(out *core.Output) error {
	l.pieces++
	l.said = appendSaid(l.said, out)
	return nil
}

func (l *ledgerRecorder) lost(out *core.Output) error {
	l.dead = appendSaid(l.dead, out)
	return nil
}

// appendSaid is an output as text, in the order in which sinks take it.
func appendSaid(said []string, out *core.Output) []string {
	entry := func(what string, raw []byte) {
		e, err := buckets.ParseEntry(raw)
		if err != nil {
			panic(err)
		}
		said = append(said, fmt.Sprintf("%s %+v", what, e))
	}
	for _, m := range out.Matches {
		entry(fmt.Sprint("match ", m.Row, m.Kind), m.Entry)
	}
	for _, g := range out.Groups {
		entry(fmt.Sprint("group ", g.Complete, len(g.B)), g.A)
	}
	for _, e := range out.Early {
		entry("early", e)
	}
	for _, r := range out.Rejects {
		said = append(said, fmt.Sprint("reject ", r.Row))
	}
	for _, r := range out.NullKeys {
		said = append(said, fmt.Sprint("null key ", r.Row))
	}
	for _, r := range out.UnmatchedB {
		said = append(said, fmt.Sprint("alone ", r.Row))
	}
	for _, e := range out.UnmatchedA {
		entry("unmatched", e)
	}
	for _, e := range out.WaitedB {
		entry("waited", e)
	}
	return said
}

// TestBodiesComeInOrderAndInPieces: outputs of all kinds of lists, longer than a piece, with A that have bodies and A that have none,
// the same one many times: the sink is told what it would have been told had all waited with their bodies, in that order, and what the
// engine gave is as it was. A record that is gone, or has another key, has its results among the dead letters.
func TestBodiesComeInOrderAndInPieces(t *testing.T) {
	const topic, n = "events", 9000
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, topic))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := &serveScene{t: t, opts: kafka.Options{Brokers: c.ListenAddrs()}}
	rng := rand.New(rand.NewPCG(7, 7))
	var records []projection.Record
	for i := range n {
		records = append(records, projection.Record{Partition: int32(i % 3), Offset: int64(i / 3), Key: fmt.Appendf(nil, "k%d", i),
			Value: fmt.Appendf(nil, `{"x":"%d-%s"}`, i, strings.Repeat("x", rng.IntN(100))), Timestamp: 1})
	}
	s.produce(topic, records)
	s.deleteBefore(topic, 1, 200)
	spec, err := projection.Compile(projection.SideSpec{Key: []string{"@key"}, Store: "offset"})
	if err != nil {
		t.Fatal(err)
	}
	f, err := kafka.NewFetcher(s.opts, topic, kafka.FetcherOptions{CacheBytes: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	to := &ledgerRecorder{}
	sink := newBodySink(&kafkaSink{ctx: t.Context(), log: slog.New(slog.DiscardHandler)}, f, spec, "dead")
	sink.Ledger, sink.lost = to, to.lost

	other := map[int]bool{} // of another key than its record
	lost := func(i int) bool { return other[i] || i%3 == 1 && i/3 < 200 }
	var all []int // the records of entries in the order in which they were made
	entry := func(body bool) []byte {
		i := rng.IntN(n)
		if rng.IntN(4) == 0 && len(all) > 0 {
			i = all[len(all)-1] // the same again
		}
		all = append(all, i)
		if i%50 == 0 {
			other[i] = true
		}
		r := &records[i]
		e := buckets.Entry{Partition: r.Partition, Offset: r.Offset, Time: int64(i), Key: append([]byte("s"), r.Key...)}
		if other[i] {
			e.Key = append(e.Key, '!')
		}
		switch {
		case body && lost(i):
			e.Body = []byte(noBody)
		case body:
			e.Body = r.Value
		}
		return e.AppendTo(nil)
	}
	waits := buckets.Entry{SideB: true, Key: []byte("sb")} // a B without a body stays one
	// The same with bodies and without.
	make2 := func(body bool) *core.Output {
		rng, all = rand.New(rand.NewPCG(8, 8)), nil
		out := &core.Output{}
		for i := range 10_000 {
			out.Matches = append(out.Matches, core.Match{Ref: core.Ref{Row: uint32(i)}, Kind: core.Corrected, Entry: entry(body)})
		}
		out.Matches[17].Entry = waits.AppendTo(nil)
		for i := range 5000 {
			out.Groups = append(out.Groups, core.Group{Complete: i%2 == 0, A: entry(body), B: make([][]byte, 1+i%3)})
			out.Early = append(out.Early, entry(body))
			out.UnmatchedA = append(out.UnmatchedA, entry(body || i%7 == 0)) // some have one already
			out.UnmatchedB = append(out.UnmatchedB, core.Ref{Row: uint32(i)})
		}
		out.Rejects, out.NullKeys = []core.Reject{{}}, []core.Reject{{}, {}}
		out.WaitedB = [][]byte{waits.AppendTo(nil)}
		return out
	}
	given, untouched := make2(false), appendSaid(nil, make2(false))
	if err := sink.Results(given); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(appendSaid(nil, given), untouched) {
		t.Error("what the engine gave was changed")
	}
	var want, dead []string
	full := appendSaid(nil, make2(true))
	bare := untouched
	for i, line := range full {
		if strings.Contains(line, fmt.Sprintf("Body:%v", []byte(noBody))) && !strings.Contains(bare[i], fmt.Sprintf("Body:%v", []byte(noBody))) {
			dead = append(dead, line)
		} else {
			want = append(want, line)
		}
	}
	if len(dead) == 0 {
		t.Fatal("nothing is gone")
	}
	same := func(what string, got, want []string) {
		if len(got) != len(want) {
			t.Errorf("%s: %d lines, want %d", what, len(got), len(want))
		}
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Fatalf("%s, line %d:\n%s\nwant\n%s", what, i, got[i], want[i])
			}
		}
	}
	same("results", to.said, want)
	same("dead letters", to.dead, dead)
	if to.pieces < 10 {
		t.Errorf("%d pieces", to.pieces)
	}
	if st := f.Stats(); st.Cached > 1<<16 {
		t.Errorf("%d bytes are kept", st.Cached)
	}
}

// deleteBefore deletes the records of a partition before an offset.
func (s *serveScene) deleteBefore(topic string, partition int32, offset int64) {
	s.t.Helper()
	cl := s.client()
	defer cl.Close()
	before := kadm.Offsets{}
	before.AddOffset(topic, partition, offset, -1)
	if _, err := kadm.NewClient(cl).DeleteRecords(s.t.Context(), before); err != nil {
		s.t.Fatal(err)
	}
}

func (s *serveScene) client() *kgo.Client {
	s.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.opts.Brokers...))
	if err != nil {
		s.t.Fatal(err)
	}
	return cl
}
