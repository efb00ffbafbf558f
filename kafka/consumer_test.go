package kafka

import (
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"joinbench/projection"
)

// TestReadsWhatWasCommitted: markers, aborted records and an open transaction are not handed on, positions move over the
// first two, and a partition that ends in a marker has an end.
func TestReadsWhatWasCommitted(t *testing.T) {
	b := newBroker(t, kfake.SeedTopics(2, "in"))
	b.produce(b.cl, "in", 0, 0, 3)                     // 0 1 2
	b.transaction("t1", "in", 0, 100, 2, kgo.TryAbort) // 3 4, marker 5
	b.transaction("t1", "in", 0, 3, 2, kgo.TryCommit)  // 6 7, marker 8
	b.transaction("t1", "in", 0, 200, 1, kgo.TryAbort) // 9, marker 10
	open := b.client(kgo.TransactionalID("t2"))
	if err := open.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	b.produce(open, "in", 0, 300, 1) // 11, not decided
	b.produce(b.cl, "in", 0, 400, 1) // 12, behind the open one

	c := b.consumer(b.options(), ConsumerOptions{})
	ends, err := c.EndOffsets(within(t), "in")
	if err != nil {
		t.Fatal(err)
	}
	if ends["in"][0] != 11 || ends["in"][1] != 0 {
		t.Fatalf("ends %v, want 11 and 0", ends)
	}
	r := mustOpen(t, c, "in", 0, Earliest, ends["in"][0])
	values, places, err := read(t, r, -1)
	wantEOF(t, err)
	wantValues(t, values, 0, 5)
	if want := []int64{1, 2, 3, 7, 11}; !slices.Equal(places, want) { // the last one is behind the markers that follow
		t.Errorf("places %v", places)
	}
	if r.PlaceAfter(-1) > 11 || r.pos != 11 {
		t.Errorf("at the end the position is %d, want 11: behind the last marker", r.pos)
	}
	if _, err := r.Read(make([]projection.Record, 1), nil); err != io.EOF {
		t.Errorf("once more at the end: %v", err)
	}
	empty := mustOpen(t, c, "in", 1, Earliest, ends["in"][1])
	_, _, err = read(t, empty, -1)
	wantEOF(t, err)
	// From a place in the middle, which is a marker.
	values, _, err = read(t, mustOpen(t, c, "in", 0, 5, ends["in"][0]), -1)
	wantEOF(t, err)
	wantValues(t, values, 3, 2)
	// What was open comes once it is decided, and what lies behind it.
	live := mustOpen(t, c, "in", 0, 9, NoEnd)
	if err := open.EndTransaction(within(t), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	values, _, err = read(t, live, 1)
	if err != nil {
		t.Fatal(err)
	}
	wantValues(t, values, 400, 1)
}

// TestReadUncommitted hands over what was aborted too.
func TestReadUncommitted(t *testing.T) {
	b := newBroker(t, kfake.SeedTopics(1, "in"))
	b.transaction("t1", "in", 0, 0, 2, kgo.TryAbort)
	c := b.consumer(b.options(), ConsumerOptions{ReadUncommitted: true})
	ends, err := c.EndOffsets(within(t), "in")
	if err != nil {
		t.Fatal(err)
	}
	values, _, err := read(t, mustOpen(t, c, "in", 0, 0, ends["in"][0]), -1)
	wantEOF(t, err)
	wantValues(t, values, 0, 2)
}

// TestRecordsAreAsTheyWere: null is not empty, times are ms.
func TestRecordsAreAsTheyWere(t *testing.T) {
	b := newBroker(t, kfake.SeedTopics(1, "in"))
	for _, r := range []*kgo.Record{
		{Topic: "in", Key: nil, Value: []byte{}, Timestamp: time.UnixMilli(1)},
		{Topic: "in", Key: []byte{}, Value: nil, Timestamp: time.UnixMilli(1_700_000_000_123)},
	} {
		if err := b.cl.ProduceSync(within(t), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	c := b.consumer(b.options(), ConsumerOptions{})
	for _, copied := range []bool{false, true} {
		r := mustOpen(t, c, "in", 0, 0, 2)
		if copied {
			wait(t, "both are there", func() bool { r.mu.Lock(); defer r.mu.Unlock(); return r.next == 2 })
			r.mu.Lock()
			r.pause()
			r.mu.Unlock()
		}
		dst := make([]projection.Record, 1)
		var got []projection.Record
		for {
			n, err := readSome(t, r, dst)
			if err != nil {
				wantEOF(t, err)
				break
			}
			got = append(got, dst[:n]...)
		}
		if len(got) != 2 || got[0].Key != nil || got[0].Value == nil || got[1].Key == nil || got[1].Value != nil ||
			got[0].Timestamp != 1 || got[1].Timestamp != 1_700_000_000_123 || got[1].Offset != 1 {
			t.Errorf("copied %v: %+v", copied, got)
		}
	}
}

// TestB22ReadingGoesOnWhereItWasCommitted: after a rewind, whatever was fetched ahead, the next record is that of the position
// that was set (case B22).
func TestB22ReadingGoesOnWhereItWasCommitted(t *testing.T) {
	b := newBroker(t, kfake.SeedTopics(3, "in"))
	for p := range int32(3) {
		b.produce(b.cl, "in", p, 0, 60)
	}
	c := b.consumer(b.options(), ConsumerOptions{FetchMaxBytes: 2000})
	for round := range 30 {
		p := int32(round % 3)
		from := int64(round * 7 % 50)
		r := mustOpen(t, c, "in", p, from, NoEnd)
		values, places, err := read(t, r, 1+round%9)
		if err != nil {
			t.Fatal(err)
		}
		wantValues(t, values, int(from), 1+round%9)
		if at := places[len(places)-1]; at != from+int64(len(values)) {
			t.Errorf("position %d after %d records from %d", at, len(values), from)
		}
	}
	old := mustOpen(t, c, "in", 0, 0, NoEnd)
	mustOpen(t, c, "in", 0, 0, NoEnd)
	if _, err := readSome(t, old, make([]projection.Record, 1)); !errors.Is(err, ErrClosed) {
		t.Errorf("the reader whose partition was opened again: %v", err)
	}
}

// TestB30OutOfRange: what retention took is reported as lost and reading goes on where the log begins; behind the end of the log
// there is nothing to go on with (case B30).
func TestB30OutOfRange(t *testing.T) {
	b := newBroker(t, kfake.SeedTopics(1, "in"))
	b.produce(b.cl, "in", 0, 0, 150)
	b.cut("in", 0, 100)
	var lost [2]atomic.Int64
	var out lines
	o := b.options()
	o.Log = out.log()
	c := b.consumer(o, ConsumerOptions{Gap: func(topic string, p int32, from, to int64) {
		if topic != "in" || p != 0 {
			t.Errorf("gap of %s/%d", topic, p)
		}
		lost[0].Store(from)
		lost[1].Store(to)
	}})
	values, _, err := read(t, mustOpen(t, c, "in", 0, 50, 150), -1)
	wantEOF(t, err)
	wantValues(t, values, 100, 50)
	if from, to := lost[0].Load(), lost[1].Load(); from != 50 || to != 100 {
		t.Errorf("told of a gap %d to %d, want 50 to 100", from, to)
	}
	if !strings.Contains(out.String(), "data_loss=50") {
		t.Errorf("the log does not say what was lost:\n%s", &out)
	}
	_, _, err = read(t, mustOpen(t, c, "in", 0, 151, NoEnd), 1)
	if err == nil || !strings.Contains(err.Error(), "topic in, partition 0") || !strings.Contains(err.Error(), "151") || !strings.Contains(err.Error(), "150") {
		t.Errorf("behind the end: %v", err)
	}
	// Exactly at the end there is something to wait for.
	r := mustOpen(t, c, "in", 0, 150, NoEnd)
	b.produce(b.cl, "in", 0, 150, 1)
	values, _, err = read(t, r, 1)
	if err != nil {
		t.Fatal(err)
	}
	wantValues(t, values, 150, 1)
	// The log that is cut while it is read.
	b.produce(b.cl, "in", 0, 151, 9)
	lost[0].Store(0)
	r = mustOpen(t, c, "in", 0, 20, 155) // the end itself lies behind the cut
	b.cut("in", 0, 158)
	if values, _, err = read(t, r, -1); len(values) > 55 {
		t.Errorf("read %v", values)
	}
	wantEOF(t, err)
}

// TestPartitionsThatGrow end the join, by a message that says what to do.
func TestPartitionsThatGrow(t *testing.T) {
	b := newBroker(t, kfake.SeedTopics(2, "in"))
	c := b.consumer(b.options(), ConsumerOptions{Watch: 20 * time.Millisecond})
	r := mustOpen(t, c, "in", 0, 0, NoEnd)
	if _, err := b.adm.CreatePartitions(within(t), 1, "in"); err != nil {
		t.Fatal(err)
	}
	_, err := readSome(t, r, make([]projection.Record, 1))
	if err == nil || !strings.Contains(err.Error(), "topic in had 2 partitions and has 3") {
		t.Errorf("got %v", err)
	}
	if _, err := c.Open(within(t), "in", 2, 0, NoEnd); err == nil {
		t.Error("a partition that was not there was opened")
	}
}

// TestTopicThatIsMadeAnew ends the join.
func TestTopicThatIsMadeAnew(t *testing.T) {
	b := newBroker(t, kfake.SeedTopics(1, "in"))
	c := b.consumer(b.options(), ConsumerOptions{Watch: 20 * time.Millisecond})
	r := mustOpen(t, c, "in", 0, 0, NoEnd)
	if _, err := b.adm.DeleteTopics(within(t), "in"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.adm.CreateTopics(within(t), 1, 1, nil, "in"); err != nil {
		t.Fatal(err)
	}
	_, err := readSome(t, r, make([]projection.Record, 1))
	if err == nil || !strings.Contains(err.Error(), "topic in") {
		t.Errorf("got %v", err)
	}
	if _, err := c.Open(within(t), "none", 0, 0, NoEnd); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("a topic that is not there: %v", err)
	}
}

// TestBrokerComesBack: reading goes on by itself, and both moments are told once.
func TestBrokerComesBack(t *testing.T) {
	dir, port := t.TempDir(), freePort(t)
	start := func() *kfake.Cluster {
		c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port), kfake.DataDir(dir), kfake.SeedTopics(1, "in"))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := start()
	b := &broker{t: t, Cluster: first}
	b.cl = b.client()
	b.produce(b.cl, "in", 0, 0, 3)
	var out lines
	o := b.options()
	o.Log = out.log()
	c := b.consumer(o, ConsumerOptions{})
	r := mustOpen(t, c, "in", 0, 0, NoEnd)
	values, _, err := read(t, r, 3)
	if err != nil {
		t.Fatal(err)
	}
	wantValues(t, values, 0, 3)
	first.Close()
	wait(t, "the outage is told", func() bool { return out.count("cannot be reached") > 0 })
	again := start()
	defer again.Close()
	b.produce(b.cl, "in", 0, 3, 2)
	if values, _, err = read(t, r, 2); err != nil {
		t.Fatal(err)
	}
	wantValues(t, values, 3, 2)
	if gone, back := out.count("cannot be reached"), out.count("is back"); gone == 0 || gone > 2 || back > gone { // by seed and by id
		t.Errorf("told %d times that the broker is gone, and %d times that it is back:\n%s", gone, back, &out)
	}
}

// TestFatalErrorEndsTheReader: what will not get better is told, with the partition.
func TestFatalErrorEndsTheReader(t *testing.T) {
	b := newBroker(t, kfake.SeedTopics(1, "in"))
	c := b.consumer(b.options(), ConsumerOptions{})
	b.ControlKey(1, func(req kmsg.Request) (kmsg.Response, error, bool) {
		b.KeepControl()
		return answerAll(req.(*kmsg.FetchRequest), func(p *kmsg.FetchResponseTopicPartition) { p.ErrorCode = kerr.TopicAuthorizationFailed.Code }), nil, true
	})
	_, err := readSome(t, mustOpen(t, c, "in", 0, 0, NoEnd), make([]projection.Record, 1))
	if err == nil || !strings.Contains(err.Error(), "topic in, partition 0") || !strings.Contains(err.Error(), "AUTHORIZATION") {
		t.Errorf("got %v", err)
	}
}

// TestCloseEndsWhoWaits: readers that wait are ended by Close, theirs and the consumer's.
func TestCloseEndsWhoWaits(t *testing.T) {
	b := newBroker(t, kfake.SeedTopics(2, "in"))
	c := b.consumer(b.options(), ConsumerOptions{})
	for _, end := range []func(*Reader){(*Reader).Close, func(*Reader) { c.Close() }} {
		r := mustOpen(t, c, "in", 0, 0, NoEnd)
		got := make(chan error)
		go func() {
			_, err := r.Read(make([]projection.Record, 1), nil)
			got <- err
		}()
		end(r)
		if err := <-got; !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := c.Open(within(t), "in", 0, 0, NoEnd); err == nil {
		t.Error("a consumer that is closed opened a partition")
	}
}
