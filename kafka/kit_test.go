package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"joinbench/projection"
)

// patience is how long a test waits for what should come at once.
const patience = 20 * time.Second

// broker is a cluster of one, with a client that produces.
type broker struct {
	t testing.TB
	*kfake.Cluster
	cl  *kgo.Client
	adm *kadm.Client
}

func newBroker(t testing.TB, opts ...kfake.Opt) *broker {
	t.Helper()
	b := newBrokerWith(t, opts...)
	b.cl = b.client()
	b.adm = kadm.NewClient(b.cl)
	return b
}

// newBrokerWith has no client: one that wants more of it than an address.
func newBrokerWith(t testing.TB, opts ...kfake.Opt) *broker {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &broker{t: t, Cluster: c}
}

func (b *broker) client(opts ...kgo.Opt) *kgo.Client {
	b.t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(b.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0)}, opts...)...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(cl.Close)
	return cl
}

func (b *broker) options() Options {
	return Options{Brokers: b.ListenAddrs(), ClientID: "test-join"}
}

// within is a context for what should not take long.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// produce adds records with values from "v<first>" on, one batch each.
func (b *broker) produce(cl *kgo.Client, topic string, partition int32, first, n int) {
	b.t.Helper()
	for i := first; i < first+n; i++ {
		r := &kgo.Record{Topic: topic, Partition: partition, Key: []byte("k"), Value: []byte("v" + strconv.Itoa(i)), Timestamp: time.UnixMilli(int64(1000 + i))}
		if err := cl.ProduceSync(within(b.t), r).FirstErr(); err != nil {
			b.t.Fatal(err)
		}
	}
}

// transaction produces and then commits or aborts.
func (b *broker) transaction(id, topic string, partition int32, first, n int, end kgo.TransactionEndTry) {
	b.t.Helper()
	cl := b.client(kgo.TransactionalID(id))
	defer cl.Close()
	if err := cl.BeginTransaction(); err != nil {
		b.t.Fatal(err)
	}
	b.produce(cl, topic, partition, first, n)
	if err := cl.EndTransaction(within(b.t), end); err != nil {
		b.t.Fatal(err)
	}
}

// cut deletes what lies before an offset.
func (b *broker) cut(topic string, partition int32, offset int64) {
	b.t.Helper()
	var o kadm.Offsets
	o.AddOffset(topic, partition, offset, -1)
	if r, err := b.adm.DeleteRecords(within(b.t), o); err != nil || r.Error() != nil {
		b.t.Fatal(err, r.Error())
	}
}

func (b *broker) consumer(o Options, c ConsumerOptions) *Consumer {
	b.t.Helper()
	k, err := NewConsumer(within(b.t), o, c)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(k.Close)
	return k
}

func mustOpen(t testing.TB, c *Consumer, topic string, partition int32, offset, end int64) *Reader {
	t.Helper()
	r, err := c.Open(within(t), topic, partition, offset, end)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// readSome reads at most so many records, and fails the test if none come for long.
func readSome(t testing.TB, r *Reader, dst []projection.Record) (int, error) {
	t.Helper()
	type answer struct {
		n   int
		err error
	}
	got := make(chan answer, 1)
	go func() {
		n, err := r.Read(dst, nil)
		got <- answer{n, err}
	}()
	select {
	case a := <-got:
		return a.n, a.err
	case <-time.After(patience):
		t.Fatalf("nothing came in %v", patience)
		return 0, nil
	}
}

// read reads n records, or to the end if n is negative, and says their values and where reading would go on behind each.
func read(t testing.TB, r *Reader, n int) (values []string, places []int64, err error) {
	t.Helper()
	dst := make([]projection.Record, 7) // smaller than what a fetch brings
	for n < 0 || len(values) < n {
		most := len(dst)
		if n >= 0 {
			most = min(most, n-len(values))
		}
		got, err := readSome(t, r, dst[:most])
		if err != nil {
			return values, places, err
		}
		if got == 0 {
			t.Fatal("a read without a record and without an error")
		}
		for i := range dst[:got] {
			values = append(values, string(dst[i].Value))
			places = append(places, r.PlaceAfter(i))
		}
	}
	return values, places, nil
}

// wantValues wants "v<first>" … and says what is otherwise.
func wantValues(t testing.TB, got []string, first, n int) {
	t.Helper()
	var want []string
	for i := first; i < first+n; i++ {
		want = append(want, "v"+strconv.Itoa(i))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("read %v, want %v", got, want)
	}
}

func wantEOF(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

// lines is a log that a test can look into.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *lines) log() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// count is how many lines have a text.
func (l *lines) count(text string) int { return strings.Count(l.String(), text) }

// wait waits for something that has no signal.
func wait(t testing.TB, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); !is(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("not in %v: %s", patience, what)
		}
	}
}

// freePort is a port that nobody listens on.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// answerAll answers for each partition that is asked for.
func answerAll(req *kmsg.FetchRequest, with func(*kmsg.FetchResponseTopicPartition)) *kmsg.FetchResponse {
	resp := req.ResponseKind().(*kmsg.FetchResponse)
	for _, t := range req.Topics {
		rt := kmsg.NewFetchResponseTopic()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			rp := kmsg.NewFetchResponseTopicPartition()
			rp.Partition = p.Partition
			with(&rp)
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}
