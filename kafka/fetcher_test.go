package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"joinbench/projection"
)

// fetchKit is a topic "events" of four partitions on two brokers, and what is in it.
type fetchKit struct {
	t    *testing.T
	c    *kfake.Cluster
	o    Options
	adm  *kadm.Client
	have map[Place]*kgo.Record
	all  []Place
}

func newFetchKit(t *testing.T) *fetchKit {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.SeedTopics(4, "events"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	k := &fetchKit{t: t, c: c, o: Options{Brokers: c.ListenAddrs()}, have: map[Place]*kgo.Record{}}
	cl, err := k.o.dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	k.adm = kadm.NewClient(cl)
	return k
}

// produce writes records, in batches of some; a transactional id commits or aborts them.
func (k *fetchKit) produce(txn string, end kgo.TransactionEndTry, recs ...*kgo.Record) {
	k.t.Helper()
	ctx := testContext(k.t)
	opts, err := k.o.clientOpts()
	if err != nil {
		k.t.Fatal(err)
	}
	opts = append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0), kgo.ProducerBatchMaxBytes(4<<20), kgo.DefaultProduceTopic("events"))
	if txn != "" {
		opts = append(opts, kgo.TransactionalID(txn))
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		k.t.Fatal(err)
	}
	defer cl.Close()
	if txn != "" {
		if err := cl.BeginTransaction(); err != nil {
			k.t.Fatal(err)
		}
	}
	for len(recs) > 0 {
		n := min(len(recs), 1+len(recs)%57)
		if err := cl.ProduceSync(ctx, recs[:n]...).FirstErr(); err != nil {
			k.t.Fatal(err)
		}
		for _, r := range recs[:n] {
			p := Place{r.Partition, r.Offset}
			k.have[p] = r
			k.all = append(k.all, p)
		}
		recs = recs[n:]
	}
	if txn != "" {
		if err := cl.EndTransaction(ctx, end); err != nil {
			k.t.Fatal(err)
		}
	}
}

// fill writes n records of random lengths, with null and empty keys and values among them.
func (k *fetchKit) fill(r *rand.Rand, n int) {
	k.t.Helper()
	recs := make([]*kgo.Record, n)
	for i := range recs {
		rec := &kgo.Record{Partition: r.Int32N(4), Timestamp: time.UnixMilli(r.Int64N(1 << 40)), Key: fmt.Appendf(nil, "key-%d", i),
			Value: fmt.Appendf(nil, `{"n":%d,"x":"%s"}`, i, strings.Repeat("x", r.IntN(500)))}
		switch r.IntN(12) {
		case 0:
			rec.Key = nil
		case 1:
			rec.Key = []byte{}
		case 2:
			rec.Value = nil
		}
		recs[i] = rec
	}
	k.produce("", false, recs...)
}

func (k *fetchKit) fetcher(cache int64) *Fetcher {
	k.t.Helper()
	f, err := NewFetcher(k.o, "events", FetcherOptions{CacheBytes: cache})
	if err != nil {
		k.t.Fatal(err)
	}
	f.backoff = [2]time.Duration{time.Millisecond, 5 * time.Millisecond}
	k.t.Cleanup(f.Close)
	return f
}

// check fetches places, and that each is answered once, with its record or, if it is not in want, as gone.
func (k *fetchKit) check(f *Fetcher, places []Place, want map[Place]*kgo.Record) {
	k.t.Helper()
	answers := make([]int, len(places))
	err := f.Fetch(testContext(k.t), places, func(i int, rec *projection.Record) {
		answers[i]++
		r, p := want[places[i]], places[i]
		switch {
		case r == nil && rec != nil:
			k.t.Errorf("%v: came, and should be gone", p)
		case r != nil && rec == nil:
			k.t.Errorf("%v: gone", p)
		case r != nil && (rec.Partition != p.Partition || rec.Offset != p.Offset || rec.Timestamp != r.Timestamp.UnixMilli() ||
			!same(rec.Key, r.Key) || !same(rec.Value, r.Value)):
			k.t.Errorf("%v: got key %q value %.60q time %d", p, rec.Key, rec.Value, rec.Timestamp)
		}
	})
	if err != nil {
		k.t.Fatal(err)
	}
	for i, n := range answers {
		if n != 1 {
			k.t.Fatalf("%v was answered %d times", places[i], n)
		}
	}
	if size := f.Stats().Cached; size > f.cache.max {
		k.t.Fatalf("the cache has %d bytes, and may have %d", size, f.cache.max)
	}
}

// same tells null from empty.
func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

func (k *fetchKit) pick(r *rand.Rand, n int) []Place {
	places := make([]Place, n)
	for i := range places {
		places[i] = k.all[r.IntN(len(k.all))]
	}
	return places
}

// TestFetcherReadsRecordsByTheirPlaces: any places in any order, some twice, with caches of all sizes.
func TestFetcherReadsRecordsByTheirPlaces(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	k := newFetchKit(t)
	k.fill(r, 3000)
	for _, cache := range []int64{0, 20_000, 1 << 30} {
		f := k.fetcher(cache)
		for range 20 {
			k.check(f, k.pick(r, 1+r.IntN(400)), k.have)
		}
		k.check(f, k.all, k.have)
		s := f.Stats()
		t.Logf("cache %d: %+v", cache, s)
		if got := s.Fetched + s.CacheHits; s.Gone != 0 || got < int64(len(k.all)) {
			t.Errorf("cache %d: %+v", cache, s)
		}
		if cache == 0 && s.CacheHits != 0 || cache > 0 && s.CacheHits == 0 {
			t.Errorf("cache %d: %d hits", cache, s.CacheHits)
		}
	}
}

// TestNeighboursAreFetchedTogether: what lies side by side is a request or two, and later questions for what came along none.
func TestNeighboursAreFetchedTogether(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	k := newFetchKit(t)
	k.fill(r, 2000)
	f := k.fetcher(1 << 30)
	var few []Place
	for _, p := range k.all {
		if p.Offset >= 100 && p.Offset < 200 && p.Offset%3 == 0 {
			few = append(few, p)
		}
	}
	k.check(f, few, k.have)
	before := f.Stats()
	if before.Requests > 8 {
		t.Errorf("%d requests for %d records side by side in 4 partitions", before.Requests, len(few))
	}
	for i := range few {
		few[i].Offset++
	}
	k.check(f, few[:len(few)-4], k.have)
	if after := f.Stats(); after.Requests > before.Requests+4 || after.CacheHits < int64(len(few)/2) {
		t.Errorf("neighbours were fetched again: %+v, before %+v", after, before)
	}
}

// TestGoneIsNotAnError: deleted records, markers of transactions, what compaction took, and offsets that the log does not have.
func TestGoneIsNotAnError(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	k := newFetchKit(t)
	k.fill(r, 1000)
	var txn []*kgo.Record
	for i := range 40 {
		txn = append(txn, &kgo.Record{Partition: int32(i % 4), Value: fmt.Appendf(nil, `{"txn":%d}`, i), Timestamp: time.UnixMilli(int64(i))})
	}
	k.produce("a", kgo.TryCommit, txn[:20]...)
	k.produce("b", kgo.TryAbort, txn[20:]...) // who asks knows the offset, so it comes
	k.fill(r, 500)
	ends, err := k.adm.ListEndOffsets(testContext(t), "events")
	if err != nil {
		t.Fatal(err)
	}
	all := k.all
	for p := range int32(4) {
		end, _ := ends.Lookup("events", p)
		for o := range end.Offset {
			if k.have[Place{p, o}] == nil { // a marker
				all = append(all, Place{p, o})
			}
		}
		all = append(all, Place{p, end.Offset}, Place{p, end.Offset + 10})
	}
	if len(all) != len(k.all)+8+8 {
		t.Fatalf("%d places, of %d records", len(all), len(k.all))
	}
	k.check(k.fetcher(1<<20), all, k.have)

	offsets := kadm.Offsets{}
	for p := range int32(4) {
		offsets.AddOffset("events", p, 70, -1)
	}
	cached := k.fetcher(1 << 30)
	k.check(cached, all, k.have)
	if _, err := k.adm.DeleteRecords(testContext(t), offsets); err != nil {
		t.Fatal(err)
	}
	left := map[Place]*kgo.Record{}
	for p, rec := range k.have {
		if p.Offset >= 70 {
			left[p] = rec
		}
	}
	f := k.fetcher(1 << 20)
	k.check(f, all, left)
	if s := f.Stats(); s.Gone != int64(4*70+16) || s.Fetched != int64(len(left)) {
		t.Errorf("%+v with %d records left", s, len(left))
	}
	k.check(cached, k.all, k.have) // what is kept is still right
}

// TestFetcherFollowsCompaction: holes in a log that was compacted are gone, and what is beside them comes.
func TestFetcherFollowsCompaction(t *testing.T) {
	k := newFetchKit(t)
	_, err := k.adm.AlterTopicConfigs(testContext(t), []kadm.AlterConfig{{Name: "cleanup.policy", Value: kadm.StringPtr("compact")},
		{Name: "min.cleanable.dirty.ratio", Value: kadm.StringPtr("0")}, {Name: "segment.bytes", Value: kadm.StringPtr("4096")}}, "events")
	if err != nil {
		t.Fatal(err)
	}
	var recs []*kgo.Record
	for i := range 800 {
		recs = append(recs, &kgo.Record{Partition: int32(i % 4), Key: fmt.Appendf(nil, "k%d", i%31), Value: fmt.Appendf(nil, "v%d-%0200d", i, i), Timestamp: time.UnixMilli(1)})
	}
	k.produce("", false, recs...)
	k.c.Compact()
	left := map[Place]*kgo.Record{}
	spans, err := Spans(testContext(t), k.o, "events")
	if err != nil {
		t.Fatal(err)
	}
	if err := Scan(testContext(t), k.o, "events", spans, func(r *kgo.Record) error {
		left[Place{r.Partition, r.Offset}] = k.have[Place{r.Partition, r.Offset}]
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(left) > 700 {
		t.Fatalf("%d of %d records are left: the log was not compacted", len(left), len(recs))
	}
	k.check(k.fetcher(1<<20), k.all, left)
}

// TestFetcherGoesOnAfterTrouble: leaders that move, brokers that answer with errors, connections that break: nothing is gone for that.
func TestFetcherGoesOnAfterTrouble(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	k := newFetchKit(t)
	k.fill(r, 1500)
	f := k.fetcher(0)
	k.check(f, k.pick(r, 50), k.have)
	errs := []*kerr.Error{kerr.NotLeaderForPartition, kerr.UnknownLeaderEpoch, kerr.KafkaStorageError, kerr.OffsetNotAvailable, kerr.UnknownTopicOrPartition,
		kerr.UnknownTopicID, kerr.OffsetOutOfRange, kerr.ReplicaNotAvailable}
	n := 0
	k.c.ControlKey(int16(kmsg.Fetch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		k.c.KeepControl()
		req := kreq.(*kmsg.FetchRequest)
		n++
		switch {
		case n%7 == 0:
			return nil, errors.New("the connection breaks"), true
		case n%3 != 0:
			return nil, nil, false
		}
		return answerAll(req, func(p *kmsg.FetchResponseTopicPartition) { p.ErrorCode = errs[n/3%len(errs)].Code }), nil, true
	})
	for range 12 {
		k.c.ShufflePartitionLeaders()
		k.check(f, k.pick(r, 200), k.have)
	}
	if s := f.Stats(); s.Gone != 0 {
		t.Errorf("%+v", s)
	}
}

// TestTroublesAreCountedApart: a topic that a broker had not heard of and a leader that was behind use up nothing of the patience with
// answers that hold no records.
func TestTroublesAreCountedApart(t *testing.T) {
	k := newFetchKit(t)
	k.fill(rand.New(rand.NewPCG(7, 7)), 100)
	said := slices.Concat(slices.Repeat([]int16{kerr.UnknownTopicOrPartition.Code}, unknownTries-1), slices.Repeat([]int16{kerr.OffsetOutOfRange.Code}, beyondTries-1),
		make([]int16, emptyTries-1))
	k.c.ControlKey(int16(kmsg.Fetch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		k.c.KeepControl()
		if len(said) == 0 {
			return nil, nil, false
		}
		code := said[0]
		said = said[1:]
		return answerAll(kreq.(*kmsg.FetchRequest), func(p *kmsg.FetchResponseTopicPartition) { p.ErrorCode, p.HighWatermark = code, 1000 }), nil, true
	})
	k.check(k.fetcher(0), k.all[:1], k.have)
	if len(said) != 0 {
		t.Errorf("%d answers were not asked for", len(said))
	}
}

// TestBehindTheEnd: many offsets behind the end of a log cost no request each.
func TestBehindTheEnd(t *testing.T) {
	k := newFetchKit(t)
	k.fill(rand.New(rand.NewPCG(8, 8)), 100)
	var beyond []Place
	for o := range int64(40) {
		beyond = append(beyond, Place{0, 500 + o})
	}
	f := k.fetcher(0)
	k.check(f, beyond, nil)
	if s := f.Stats(); s.Gone != 40 || s.Requests != beyondTries {
		t.Errorf("%+v, want 40 gone after %d requests", s, beyondTries)
	}
}

// TestLargeBatchesComeToo: a batch that no share of an answer has room for, in several partitions at once.
func TestLargeBatchesComeToo(t *testing.T) {
	k := newFetchKit(t)
	if _, err := k.adm.AlterTopicConfigs(testContext(t), []kadm.AlterConfig{{Name: "max.message.bytes", Value: kadm.StringPtr("8000000")}}, "events"); err != nil {
		t.Fatal(err)
	}
	var recs []*kgo.Record
	for p := range int32(4) {
		for i := range 8 {
			noise := make([]byte, 400_000)
			for j := range noise { // nothing to compress
				noise[j] = byte(rand.Uint32())
			}
			recs = append(recs, &kgo.Record{Partition: p, Key: fmt.Appendf(nil, "%d-%d", p, i), Value: noise, Timestamp: time.UnixMilli(1)})
		}
	}
	for p := range 4 {
		k.produce("", false, recs[8*p:8*p+8]...)
		if err := k.c.MoveTopicPartition("events", int32(p), 0); err != nil {
			t.Fatal(err)
		}
	}
	k.check(k.fetcher(4<<20), k.all, k.have)
	f := k.fetcher(1 << 20)
	for _, p := range k.all {
		k.check(f, []Place{p}, k.have)
	}
}

// TestFetchEndsWithItsContext: and is of use again with another one.
func TestFetchEndsWithItsContext(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	k := newFetchKit(t)
	k.fill(r, 100)
	f := k.fetcher(0)
	ctx, cancel := context.WithCancel(testContext(t))
	ended := make(chan struct{})
	k.c.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		cancel()
		k.c.SleepControl(func() { <-ended }) // and no answer till then
		return nil, nil, false
	})
	err := f.Fetch(ctx, k.all[:10], func(int, *projection.Record) {})
	close(ended)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	k.check(f, k.all, k.have)
}

// TestFetchErrorsThatDoNotMend: a topic that is not there, a right that is missing.
func TestFetchErrorsThatDoNotMend(t *testing.T) {
	k := newFetchKit(t)
	k.fill(rand.New(rand.NewPCG(6, 6)), 100)
	f := k.fetcher(0)
	f.topic = "nowhere"
	fetch := func(p Place) error {
		return f.Fetch(testContext(t), []Place{p}, func(i int, rec *projection.Record) { t.Errorf("%v is answered", p) })
	}
	if err := fetch(k.all[0]); !errors.Is(err, ErrFatal) || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("no such topic: %v", err)
	}
	f = k.fetcher(0)
	if err := fetch(Place{17, 0}); !errors.Is(err, ErrFatal) || !strings.Contains(err.Error(), "partition 17") {
		t.Errorf("no such partition: %v", err)
	}
	k.c.ControlKey(int16(kmsg.Fetch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		req := kreq.(*kmsg.FetchRequest)
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		resp.ErrorCode = kerr.TopicAuthorizationFailed.Code
		return resp, nil, true
	})
	if err := fetch(k.all[0]); !errors.Is(err, ErrFatal) || !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Errorf("no right: %v", err)
	}
}
