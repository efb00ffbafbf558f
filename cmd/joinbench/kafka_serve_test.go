package main

import (
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"joinbench/internal/kafkatest"
)

// eventTime is when the records of these tests begin.
const eventTime = 1_700_000_000_000

// served are two topics that a test fills itself, and a join of them.
type served struct {
	place
	broker      *kafkatest.Broker
	a, b, out   string
	group, conf string
}

// newServed makes topics with so many partitions and a join.yaml: sides is a text with two %s for the topics, and more lines.
func newServed(t *testing.T, b *kafkatest.Broker, partsA, partsB int, sides string, settings ...string) *served {
	t.Helper()
	s := &served{place: newPlace(t), broker: b, a: b.Topic(t, partsA, settings...), b: b.Topic(t, partsB, settings...), out: b.Topic(t, 3), group: kafkatest.Name(t)}
	s.conf = s.write("join.yaml", fmt.Sprintf(sides, s.a, s.b)+fmt.Sprintf("output: {topic: %s}\nkafka: {brokers: [\"%s\"], group: %s, instance: one}\nstate: {dir: %s, tasks: 2, memory: 16MiB}\n",
		s.out, strings.Join(b.Addrs, `", "`), s.group, s.path("state")))
	t.Cleanup(func() {
		if b.Real() {
			_, _ = b.Admin().DeleteTopics(t.Context(), s.group+"-changelog")
		}
	})
	return s
}

const keyedSides = "a: {topic: %s, key: \"@key\"}\nb: {topic: %s, key: \"@key\"}\nwindow: {within: 1h}\n"

func (s *served) args(more ...string) []string {
	return append([]string{"serve", "-c", s.conf, "--session-timeout", "6s", "--commit-interval", "5ms"}, more...)
}

// at is the i-th record of a topic, in one of so many partitions.
func at(topic string, i, parts int, value string) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: int32(i % parts), Key: fmt.Appendf(nil, "k%d", i), Value: []byte(value), Timestamp: time.UnixMilli(eventTime + int64(i))}
}

func (s *served) reads(from, to int, topic string, parts int) (all []*kgo.Record) {
	for i := from; i < to; i++ {
		all = append(all, at(topic, i, parts, fmt.Sprintf(`{"n":%d}`, i)))
	}
	return all
}

// keys are those of the output, sorted.
func (s *served) keys(t *testing.T) (keys []string) {
	for _, records := range s.broker.Consume(t, s.out) {
		for _, r := range records {
			keys = append(keys, string(r.Key))
		}
	}
	slices.Sort(keys)
	return keys
}

// TestKafkaServeOtherPartitions: orders keyed by their id in 12 partitions, payments keyed by theirs in 8: joined on a field of the
// body, equal keys lie in any partitions of both, and each pair comes once.
func TestKafkaServeOtherPartitions(t *testing.T) {
	b := kafkatest.Start(t)
	s := newServed(t, b, 12, 8, "a: {topic: %s, key: $.payment_ref, keep: [$.order_id]}\nb: {topic: %s, key: $.payment_ref, keep: [$.payment_id]}\nwindow: {within: 1h}\ndelivery: exactly-once\ncardinality: many-to-many\n")
	cl := b.Client(t) // its partitioner is the usual one: murmur2 of the key
	var records []*kgo.Record
	orders, payments := map[string][]string{}, map[string][]string{}
	for i := range 2_000 {
		order, payment := fmt.Sprintf("O%d", i), fmt.Sprintf("P%d", i)
		refA, refB := fmt.Sprintf("r%d", i%1_900), fmt.Sprintf("r%d", i*7%4_000)
		orders[refA], payments[refB] = append(orders[refA], order), append(payments[refB], payment)
		when := time.UnixMilli(eventTime + int64(i))
		records = append(records,
			&kgo.Record{Topic: s.a, Key: []byte(order), Timestamp: when, Value: fmt.Appendf(nil, `{"order_id":%q,"payment_ref":%q}`, order, refA)},
			&kgo.Record{Topic: s.b, Key: []byte(payment), Timestamp: when, Value: fmt.Appendf(nil, `{"payment_id":%q,"payment_ref":%q}`, payment, refB)})
	}
	if err := cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	for topic, parts := range map[string]int{s.a: 12, s.b: 8} {
		for p, n := range b.Ends(t, topic) {
			if n == 0 {
				t.Errorf("%s/%d of %d has nothing: this test shows less than it says", topic, p, parts)
			}
		}
	}
	joinbench(s.args("--drain")...).want(t, 0)
	var want, got []string
	for ref, list := range orders {
		for _, order := range list {
			for _, payment := range payments[ref] {
				want = append(want, order+" "+payment)
			}
		}
	}
	for _, records := range b.Consume(t, s.out) {
		for _, r := range records {
			var row struct {
				A struct {
					ID string `json:"order_id"`
				}
				B struct {
					ID string `json:"payment_id"`
				}
			}
			if err := json.Unmarshal(r.Value, &row); err != nil {
				t.Fatal(err)
			}
			got = append(got, row.A.ID+" "+row.B.ID)
		}
	}
	if bad := compareBags("pairs", got, want); bad.is() || len(want) < 900 {
		t.Errorf("%d pairs, want %d: %v", len(got), len(want), bad)
	}
}

// TestKafkaServeTransactionalInput: topics that end in the marker of a transaction, committed or aborted, are caught up with within five
// seconds; what was aborted joins nothing; and so it is when they are drained.
func TestKafkaServeTransactionalInput(t *testing.T) {
	const parts, n = 3, 60
	b := kafkatest.Start(t)
	s := newServed(t, b, parts, parts, keyedSides+"probe: wait\ndelivery: exactly-once\n")
	cl := b.Client(t, kgo.TransactionalID(kafkatest.Name(t)), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	transaction := func(end kgo.TransactionEndTry, records ...*kgo.Record) {
		t.Helper()
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := cl.EndTransaction(t.Context(), end); err != nil {
			t.Fatal(err)
		}
	}
	transaction(kgo.TryCommit, s.reads(0, n, s.a, parts)...)
	transaction(kgo.TryAbort, s.reads(n, 2*n, s.a, parts)...)
	transaction(kgo.TryAbort, s.reads(0, n, s.b, parts)...)
	transaction(kgo.TryCommit, s.reads(n/2, 2*n, s.b, parts)...)
	began := time.Now()
	p := startProgram(t, nil, s.args()...)
	waitFor(t, "all results", func() bool { return len(s.keys(t)) == n/2 })
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("caught up after %v", took)
	}
	// More of it, while it runs: one that is aborted alone, which moves nothing, and one behind it.
	transaction(kgo.TryAbort, append(s.reads(0, 3, s.a, parts), s.reads(0, 3, s.b, parts)...)...)
	transaction(kgo.TryCommit, append(s.reads(9_000, 9_003, s.a, parts), s.reads(9_000, 9_003, s.b, parts)...)...)
	began = time.Now()
	waitFor(t, "the results of the other", func() bool { return len(s.keys(t)) == n/2+3 })
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("passed after %v", took)
	}
	transaction(kgo.TryAbort, append(s.reads(0, 3, s.a, parts), s.reads(0, 3, s.b, parts)...)...) // nothing but this is behind the last record
	p.signal(syscall.SIGTERM)
	p.end().want(t, 0)
	began = time.Now()
	joinbench(s.args("--drain")...).want(t, 0)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("drained after %v", took)
	}
	var want []string
	for i := n / 2; i < n; i++ {
		want = append(want, fmt.Sprintf("k%d", i))
	}
	want = append(want, "k9000", "k9001", "k9002")
	if bad := compareBags("keys", s.keys(t), want); bad.is() {
		t.Error(bad)
	}
}

// TestKafkaServeOversize: a result of more than 2 MiB, which the output topic does not take, goes to the dead-letter topic without its
// body and is counted; all others come out.
func TestKafkaServeOversize(t *testing.T) {
	const n = 50
	b := kafkatest.Start(t)
	dead := b.Topic(t, 1)
	s := newServed(t, b, 2, 2, keyedSides+"delivery: exactly-once\ntopics: {dead: "+dead+"}\n", "max.message.bytes=3000000")
	large := fmt.Sprintf(`{"pad":"%s"}`, strings.Repeat("x", 1_100_000))
	records := append(s.reads(0, n, s.a, 2), s.reads(0, n, s.b, 2)...)
	records[7].Value, records[n+7].Value = []byte(large), []byte(large)
	cl := b.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(3_000_000), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err := cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	joinbench(s.args("--drain", "--stats", s.path("stats"))...).want(t, 0, "larger than the topic takes")
	if c := s.stats("stats"); c.Oversize != 1 || c.Matches != n || c.Outputs != n-1 {
		t.Errorf("oversize %d, matches %d, outputs %d", c.Oversize, c.Matches, c.Outputs)
	}
	if keys := s.keys(t); len(keys) != n-1 || slices.Contains(keys, "k7") {
		t.Errorf("%d keys: %q", len(keys), keys)
	}
	of := b.Consume(t, dead)[0]
	if len(of) != 1 || string(of[0].Key) != "k7" || len(of[0].Value) != 0 {
		t.Fatalf("the dead-letter topic has %d records", len(of))
	}
	headers := map[string]string{}
	for _, h := range of[0].Headers {
		headers[h.Key] = string(h.Value)
	}
	if bytes, _ := strconv.Atoi(headers["bytes"]); headers["reason"] != "oversize" || bytes < 2<<20 || headers["a"] != s.a+"/1/3" || headers["b"] != s.b+"/1/3" {
		t.Errorf("headers %q", headers)
	}
}

// TestKafkaServePartitionsGrow: partitions that are added while it runs end it, by a message that names the topic and both counts: equal
// keys may lie in other partitions from then on.
func TestKafkaServePartitionsGrow(t *testing.T) {
	t.Parallel() // it looks every 30 seconds
	b := kafkatest.Start(t)
	s := newServed(t, b, 3, 3, keyedSides)
	b.Produce(t, s.reads(0, 9, s.a, 3)...)
	p := startProgram(t, nil, s.args()...)
	waitFor(t, "A being committed", func() bool { return maps.Equal(b.Committed(t, s.group, s.a), b.Ends(t, s.a)) })
	added, err := b.Admin().CreatePartitions(t.Context(), 2, s.a)
	if err == nil {
		err = added.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.end().want(t, 1, s.a, "had 3 partitions and has 5")
}

// TestKafkaServeDataLoss (B30): 500 records were read, the next 500 are gone when it comes back, and another 500 are there: these are read,
// the gap is told by its size, and nothing is skipped.
func TestKafkaServeDataLoss(t *testing.T) {
	b := kafkatest.Start(t)
	s := newServed(t, b, 1, 1, keyedSides)
	b.Produce(t, s.reads(0, 500, s.a, 1)...)
	p := startProgram(t, nil, s.args()...)
	waitFor(t, "500 being committed", func() bool { return b.Committed(t, s.group, s.a)[0] == 500 })
	p.signal(syscall.SIGTERM)
	p.end().want(t, 0)
	b.Produce(t, s.reads(500, 1_500, s.a, 1)...)
	b.Produce(t, s.reads(0, 1_500, s.b, 1)...)
	var gone kadm.Offsets
	gone.AddOffset(s.a, 0, 1_000, -1)
	deleted, err := b.Admin().DeleteRecords(t.Context(), gone)
	if err == nil {
		err = deleted.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	o := joinbench(s.args("--drain", "--stats", s.path("stats"))...)
	o.want(t, 0, "data loss", "from=500 to=1000 records=500")
	if c := s.stats("stats"); c.A.Read != 1_000 || c.Matches != 1_000 {
		t.Errorf("%d A read, %d matches, want 1000 of each", c.A.Read, c.Matches)
	}
}

// TestKafkaServeSecondProcess (B37): a second process over the same directory ends within two seconds and names the directory and who
// has it; the first one goes on.
func TestKafkaServeSecondProcess(t *testing.T) {
	b := kafkatest.Start(t)
	s := newServed(t, b, 1, 1, keyedSides)
	b.Produce(t, s.reads(0, 10, s.a, 1)...)
	first := startProgram(t, nil, s.args()...)
	waitFor(t, "the first one", func() bool { return b.Committed(t, s.group, s.a)[0] == 10 })
	began := time.Now()
	second := startProgram(t, nil, s.args()...).end()
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the second one took %v", took)
	}
	second.want(t, 1, s.path("state"), strconv.Itoa(first.Process.Pid))
	b.Produce(t, s.reads(10, 20, s.a, 1)...)
	waitFor(t, "the first one going on", func() bool { return b.Committed(t, s.group, s.a)[0] == 20 })
	first.signal(syscall.SIGTERM)
	first.end().want(t, 0)
}

// TestKafkaServeBlockedSink (B36): records of 150 KiB, and an output that takes nothing for a while: serve stays below the memory that it
// may have, does next to nothing meanwhile, and loses no row when it goes on.
func TestKafkaServeBlockedSink(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	const (
		parts, n, row = 3, 2_000, 150 << 10
		memory        = 256 << 20 // state.memory
	)
	t.Setenv("JOINBENCH_STATE_MEMORY", "256MiB")
	t.Setenv("JOINBENCH_KAFKA_CHANGELOG", "off")
	b := kafkatest.Start(t, kafkatest.Fake())
	s := newServed(t, b, parts, parts, "a: {topic: %s, key: \"@key\", keep: [$.n]}\nb: {topic: %s, key: \"@key\", keep: [$.n, $.pad]}\nwindow: {within: 1h}\nprobe: wait\n")
	b.Produce(t, s.reads(0, n, s.a, parts)...)
	pad := make([]byte, row/2)
	for from := 0; from < n; from += 100 {
		var records []*kgo.Record
		for i := from; i < from+100; i++ {
			_, _ = rand.Read(pad) // so that nothing is smaller than it looks
			records = append(records, at(s.b, i, parts, fmt.Sprintf(`{"n":%d,"pad":"%x"}`, i, pad)))
		}
		b.Produce(t, records...)
	}
	blocked, resume := make(chan struct{}), make(chan struct{})
	once := sync.OnceFunc(func() { close(blocked) })
	b.Fake().ControlKey(kmsg.Produce.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.Fake().KeepControl()
		b.Fake().SleepControl(func() { once(); <-resume })
		return nil, nil, false
	})
	p := startProgram(t, nil, s.args("--drain", "--stats", s.path("stats"))...)
	select {
	case <-blocked:
	case <-time.After(hangs):
		t.Fatal("nothing was written")
	}
	idle := func() bool { // what it could read meanwhile it has read; on a machine that stood still for a moment it only seems so
		from := p.ticks()
		<-time.After(time.Second)
		return p.ticks()-from <= 1
	}
	waitFor(t, "it having nothing to do", idle)
	most, from := int64(0), p.ticks()
	for end := time.After(*blockedFor); end != nil; {
		select {
		case <-time.After(50 * time.Millisecond):
			most = max(most, p.anonymous())
		case <-end:
			end = nil
		}
	}
	used := time.Duration(p.ticks()-from) * time.Second / 100
	t.Logf("blocked for %v: %v of CPU, %d MiB", *blockedFor, used, most>>20)
	if used > *blockedFor/20 {
		t.Errorf("%v of CPU in %v in which nothing could be done", used, *blockedFor)
	}
	if most > memory {
		t.Errorf("%d bytes of memory, it may have %d", most, memory)
	}
	close(resume)
	p.end().want(t, 0)
	if c, keys := s.stats("stats"), s.keys(t); c.Matches != n || len(keys) != n || len(slices.Compact(keys)) != n {
		t.Errorf("%d matches, %d results, want %d, each once", c.Matches, len(keys), n)
	}
}

var blockedFor = flag.Duration("blocked", 3*time.Second, "TestKafkaServeBlockedSink: how long nothing can be written")

// ticks are the hundredths of a second of CPU that the process has used.
func (p *program) ticks() (sum int64) {
	p.t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Process.Pid))
	_, rest, ok := strings.Cut(string(data), ") ")
	if fields := strings.Fields(rest); err == nil && ok && len(fields) > 12 {
		for _, f := range fields[11:13] {
			n, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				p.t.Fatal(err)
			}
			sum += n
		}
		return sum
	}
	p.t.Fatalf("%q, %v", data, err)
	return 0
}

// anonymous is the memory that the process has of its own.
func (p *program) anonymous() int64 {
	p.t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if text, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 10, 64)
			if err != nil {
				p.t.Fatal(err)
			}
			return n << 10
		}
	}
	p.t.Fatalf("no RssAnon in %s", data)
	return 0
}
