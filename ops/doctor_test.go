package ops

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"joinbench/config"
	"joinbench/internal/kafkatest"
	"joinbench/kafka"
	"joinbench/projection"
	"joinbench/results"
)

// world is a broker with the topics of a join, and the join.
type world struct {
	*kafkatest.Broker
	a, b, out string
	conf      *config.Join
	x         Examination
}

// newWorld makes topics a and b with so many partitions, and a configuration that joins them by their record keys, or
// what else more says (lines of YAML).
func newWorld(t *testing.T, partsA, partsB int, more string, settings ...string) *world {
	t.Helper()
	w := &world{Broker: kafkatest.Start(t)}
	w.a, w.b, w.out = w.Topic(t, partsA, settings...), w.Topic(t, partsB, settings...), w.Topic(t, 2)
	w.known(t, w.a, w.b, w.out)
	w.configure(t, more)
	return w
}

// known waits until the broker shows topics that were created: Apache Kafka says that they are made some time before.
func (w *world) known(t *testing.T, topics ...string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if found, err := w.Admin().ListTopics(t.Context(), topics...); err == nil && found.Error() == nil && len(found) == len(topics) {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("topics %v: %v, %v", topics, found, err)
		}
	}
}

func (w *world) configure(t *testing.T, more string) {
	t.Helper()
	key := "key: \"@key\""
	if strings.Contains(more, "body-key") {
		key, more = "key: $.k", strings.ReplaceAll(more, "body-key", "")
	}
	text := fmt.Sprintf("a: {topic: %s, %s}\nb: {topic: %s, %s}\noutput: {topic: %s}\nwindow: {after: 4h}\nkafka: {brokers: [%s], group: %s}\n%s",
		w.a, key, w.b, key, w.out, strings.Join(w.Addrs, ", "), kafkatest.Name(t), more)
	conf, err := config.Parse([]byte(text), "join.yaml")
	if err == nil {
		err = conf.ValidateServe()
	}
	if err != nil {
		t.Fatal(err)
	}
	w.conf = conf
	w.x = Examination{Config: conf, Kafka: kafka.Options{Brokers: w.Addrs}, Try: decode, TransactionTimeout: time.Minute,
		free: func(string) (int64, bool) { return 1 << 40, true }}
}

// decode stands for the join's decoder: values that are JSON objects are taken, those without "k" have no key.
func decode(_ string, recs []projection.Record) (*Trial, error) {
	t := &Trial{Records: len(recs), Fates: map[string]int{}}
	for _, r := range recs {
		switch {
		case !strings.HasPrefix(string(r.Value), "{"):
			t.Fates["malformed"]++
		case !strings.Contains(string(r.Value), `"k"`):
			t.Fates["null_key"]++
		default:
			t.Fates["accepted"]++
		}
		t.Bytes += int64(len(r.Value))
	}
	return t, nil
}

// fill writes records with the keys of key-0 … to a topic, where a partitioner puts them, the last one now.
func (w *world) fill(t *testing.T, topic, partitioner string, partitions, n int) {
	t.Helper()
	now := time.Now()
	var recs []*kgo.Record
	for _, p := range kafka.Partitioners() {
		if p.Name != partitioner {
			continue
		}
		for i := range n {
			key := fmt.Appendf(nil, "key-%d", i)
			recs = append(recs, &kgo.Record{Topic: topic, Key: key, Value: []byte(`{"k":1}`), Partition: int32(p.Of(key, partitions)),
				Timestamp: now.Add(time.Duration(i-n) * 10 * time.Millisecond)})
		}
	}
	w.Produce(t, recs...)
}

func (w *world) run(t *testing.T) []results.Check {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	checks := w.x.Run(ctx)
	for _, c := range checks {
		if (c.Status == results.CheckOK) != (c.Advice == "") {
			t.Errorf("%s is %s and its advice is %q", c.Name, c.Status, c.Advice)
		}
	}
	return checks
}

// want finds a check and fails unless it is as it should be.
func want(t *testing.T, checks []results.Check, name, status string, texts ...string) {
	t.Helper()
	for _, c := range checks {
		if c.Name != name {
			continue
		}
		all := c.Value + " → " + c.Advice
		if c.Status != status {
			t.Errorf("%s is %s, want %s: %s", name, c.Status, status, all)
		}
		for _, text := range texts {
			if !strings.Contains(all, text) {
				t.Errorf("%s does not say %q: %s", name, text, all)
			}
		}
		return
	}
	t.Errorf("no check %q in %v", name, checks)
}

// without fails if there is such a check.
func without(t *testing.T, checks []results.Check, name string) {
	t.Helper()
	for _, c := range checks {
		if c.Name == name {
			t.Errorf("%s is looked at: %v", name, c)
		}
	}
}

// Case B33: the same number of partitions, another partitioner.
func TestKafkaPartitionersDiffer(t *testing.T) {
	w := newWorld(t, 8, 8, "")
	w.fill(t, w.a, "murmur2", 8, 1000)
	w.fill(t, w.b, "crc32", 8, 1000)
	checks := w.run(t)
	want(t, checks, "partitions", results.CheckOK, "has 8")
	want(t, checks, "partitioner", results.CheckWarn,
		w.a+": 1,000 sampled keys where murmur2 puts them", "of 1,000 sampled keys are not where murmur2 puts them; they look like crc32 (librdkafka's default",
		"of 1,000 keys in both samples", "lie in different partitions", "misses these pairs")
	for _, c := range checks {
		if c.Name != "partitioner" {
			continue
		}
		var share float64
		_, rest, _ := strings.Cut(c.Value, w.b+": ")
		if _, err := fmt.Sscanf(rest, "%f", &share); err != nil || share < 84 || share > 91 { // 7 of 8 by chance: 87.5
			t.Errorf("share of misplaced keys %v (%v), want about 87 %%: %s", share, err, c.Value)
		}
	}
}

// Without a key in common it is the hashes that tell.
func TestKafkaPartitionersDifferWithoutCommonKeys(t *testing.T) {
	w := newWorld(t, 8, 8, "")
	w.fill(t, w.a, "murmur2", 8, 300)
	for _, p := range kafka.Partitioners() {
		if p.Name == "crc32" {
			recs := make([]*kgo.Record, 300)
			for i := range recs {
				key := fmt.Appendf(nil, "other-%d", i)
				recs[i] = &kgo.Record{Topic: w.b, Key: key, Value: []byte(`{"k":1}`), Partition: int32(p.Of(key, 8))}
			}
			w.Produce(t, recs...)
		}
	}
	want(t, w.run(t), "partitioner", results.CheckWarn, "they look like crc32")
}

// Equal partitioners are well whichever they are; keys that nobody can explain are told.
func TestKafkaPartitionersAgree(t *testing.T) {
	w := newWorld(t, 6, 6, "")
	w.fill(t, w.a, "fnv1a", 6, 300)
	w.fill(t, w.b, "fnv1a", 6, 200)
	want(t, w.run(t), "partitioner", results.CheckOK, "they look like fnv1a (Sarama", "of 200 keys in both samples 0")
}

func TestKafkaPartitionsByHand(t *testing.T) {
	w := newWorld(t, 3, 3, "")
	for i := range 60 { // by turns
		key, value := fmt.Appendf(nil, "key-%d", i), []byte(`{"k":1}`)
		w.Produce(t, &kgo.Record{Topic: w.a, Key: key, Value: value, Partition: int32(i % 3)}, &kgo.Record{Topic: w.b, Key: key, Value: value, Partition: int32(i % 3)})
	}
	want(t, w.run(t), "partitioner", results.CheckWarn, "nor where any partitioner known here would have", "placed by hand")
}

// Case B32: different numbers of partitions.
func TestKafkaPartitionCountsDiffer(t *testing.T) {
	w := newWorld(t, 4, 6, "")
	want(t, w.run(t), "partitions", results.CheckBad, w.a+" has 4", w.b+" has 6", "serve refuses this")
	w.configure(t, "body-key")
	want(t, w.run(t), "partitions", results.CheckOK, w.a+" has 4", w.b+" has 6", "need not agree")
}

// All is well: nothing is warned of but that there is one broker.
func TestKafkaAllIsWell(t *testing.T) {
	w := newWorld(t, 2, 2, "delivery: exactly-once\n", "retention.ms=604800000")
	w.fill(t, w.a, "murmur2", 2, 500)
	w.fill(t, w.b, "murmur2", 2, 500)
	checks := w.run(t)
	for _, c := range checks {
		if c.Status == results.CheckBad || c.Status == results.CheckWarn && !strings.Contains(c.Advice, "replication factor") {
			t.Errorf("%s %s: %s → %s", c.Status, c.Name, c.Value, c.Advice)
		}
	}
	want(t, checks, "kafka", results.CheckOK, "1 broker", "Kafka ")
	want(t, checks, "topic "+w.a, results.CheckOK, "2 partitions", "500 offsets")
	want(t, checks, "records "+w.a, results.CheckOK, "500 of the newest: 500 accepted", "about 100 records a second")
	want(t, checks, "retention "+w.a, results.CheckOK, "retention.ms is 168h", "looks back 4h10m10s", "163h49m50s more")
	want(t, checks, "clock "+w.a, results.CheckOK, "ago, as its sender stamped it")
	want(t, checks, "output", results.CheckWarn, w.out+": 2 partitions", "replication factor of 3")
	want(t, checks, "changelog", results.CheckOK, "is not there yet")
	want(t, checks, "group "+w.conf.Kafka.Group, results.CheckOK, "new: both topics are read from their beginning")
	want(t, checks, "state space", results.CheckOK, "1,50", "events of "+w.a) // 100 a second for 4h10m10s
}

func TestKafkaRetention(t *testing.T) {
	w := newWorld(t, 1, 1, "", "retention.ms=7200000")
	want(t, w.run(t), "retention "+w.a, results.CheckWarn, "retention.ms is 2h", "looks back 4h10m10s", "retention.ms=30020000", "comes back from the changelog")
	w.conf.Kafka.Changelog = "off"
	checks := w.run(t)
	want(t, checks, "retention "+w.a, results.CheckBad, "without a changelog", "retention.ms is 2h")
	want(t, checks, "changelog", results.CheckWarn, "off", "results come twice")
	w.conf.Window.After = 110 * time.Minute
	w.conf.MaxSpread = time.Minute
	want(t, w.run(t), "retention "+w.a, results.CheckWarn, "an outage of more than")
}

func TestKafkaTopicsThatAreMissingOrCompacted(t *testing.T) {
	w := newWorld(t, 1, 1, "topics: {late: nowhere}\n", "cleanup.policy=compact")
	checks := w.run(t)
	want(t, checks, "topic "+w.a, results.CheckWarn, "cleanup.policy compact", "events of a stream that share a record key are lost")
	want(t, checks, "retention "+w.a, results.CheckOK, "nothing is deleted by age")
	want(t, checks, "topics.late", results.CheckBad, "nowhere is not there", "topics.late")
	w.conf.A.Topic, w.conf.Output.Topic = "no-such-topic", "no-output"
	checks = w.run(t)
	want(t, checks, "topic no-such-topic", results.CheckBad, "not there", "a.topic")
	want(t, checks, "output", results.CheckBad, "no-output is not there", "output.topic")
	without(t, checks, "retention no-such-topic")
	want(t, checks, "group "+w.conf.Kafka.Group, results.CheckOK, "new")
}

// The commonest mistakes are a key that is not where the configuration says, and values that are no JSON.
func TestKafkaRecordsThatDoNotFit(t *testing.T) {
	w := newWorld(t, 1, 1, "body-key")
	for i := range 50 {
		w.Produce(t, &kgo.Record{Topic: w.a, Value: []byte(`{"other":1}`)})
		value := []byte(`{"k":1}`)
		if i%10 == 0 {
			value = []byte("\x00avro")
		}
		w.Produce(t, &kgo.Record{Topic: w.b, Value: value})
	}
	checks := w.run(t)
	want(t, checks, "records "+w.a, results.CheckBad, "50 null_key", "is a.key ($.k) where the key is?")
	want(t, checks, "records "+w.b, results.CheckWarn, "45 accepted, 5 malformed", "their value is not JSON")
}

// With whole values kept, what the output topic takes is held against what comes in.
func TestKafkaOutputSize(t *testing.T) {
	w := newWorld(t, 1, 1, "", "max.message.bytes=3000000")
	want(t, w.run(t), "output size", results.CheckWarn, "a record of "+w.a, "2.861 MiB", "counted as oversize")
	w = newWorld(t, 1, 1, "")
	without(t, w.run(t), "output size")
	w.Produce(t, &kgo.Record{Topic: w.b, Value: []byte(`{"k":"` + strings.Repeat("x", 600_000) + `"}`)})
	want(t, w.run(t), "output size", results.CheckWarn, "the largest of the sampled records are 585.9 KiB together")
}

func TestKafkaClockAhead(t *testing.T) {
	w := newWorld(t, 1, 1, "")
	w.fill(t, w.a, "murmur2", 1, 20)
	w.x.now = func() time.Time { return time.Now().Add(-20 * time.Minute) } // ours is behind
	want(t, w.run(t), "clock "+w.a, results.CheckWarn, "ahead of this machine's clock, as its sender stamped it", "NTP")
	w.x.now = func() time.Time { return time.Now().Add(-2 * time.Hour) }
	want(t, w.run(t), "clock "+w.a, results.CheckBad, "max_skew (1h)")
}

func TestKafkaStateSpace(t *testing.T) {
	w := newWorld(t, 1, 1, "")
	w.fill(t, w.a, "murmur2", 1, 500)
	w.x.free = func(string) (int64, bool) { return 1 << 20, true }
	want(t, w.run(t), "state space", results.CheckBad, "1.000 MiB free", "a larger disk")
}

// What retention took before the group read it is gone, and the doctor says so before serve does.
func TestKafkaGroupBehindTheLog(t *testing.T) {
	w := newWorld(t, 1, 1, "")
	w.fill(t, w.a, "murmur2", 1, 100)
	at := kadm.Offsets{}
	at.Add(kadm.Offset{Topic: w.a, At: 10})
	if err := w.Admin().CommitAllOffsets(t.Context(), w.conf.Kafka.Group, at); err != nil {
		t.Fatal(err)
	}
	cut := kadm.Offsets{}
	cut.Add(kadm.Offset{Topic: w.a, At: 40})
	if _, err := w.Admin().DeleteRecords(t.Context(), cut); err != nil {
		t.Fatal(err)
	}
	want(t, w.run(t), "group "+w.conf.Kafka.Group, results.CheckBad, "30 offsets that it has not read are deleted", "60 offsets behind", "data_loss")
}

func TestKafkaUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	w := newWorld(t, 1, 1, "")
	w.x.Kafka.Brokers = []string{addr}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	checks := w.x.Run(ctx)
	if len(checks) != 1 {
		t.Errorf("went on without brokers: %v", checks)
	}
	want(t, checks, "kafka", results.CheckBad, addr, "are the brokers running")
}

// A user without rights is told which right it is, and where.
func TestFakeKafkaRights(t *testing.T) {
	allow := func(topic string, op kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: topic, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true}
	}
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "root", "root-secret"),
		kfake.SeedTopics(1, "orders", "payments", "joined", "hidden"),
		kfake.User("PLAIN", "joiner", "joiner-secret", allow("orders", kmsg.ACLOperationDescribe), allow("payments", kmsg.ACLOperationRead),
			allow("joined", kmsg.ACLOperationDescribe)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	conf, err := config.Parse([]byte("a: {topic: orders, key: $.k}\nb: {topic: payments, key: $.k}\nwindow: {after: 1h}\n"), "join.yaml")
	if err == nil {
		err = conf.ValidateServe()
	}
	if err != nil {
		t.Fatal(err)
	}
	x := Examination{Config: conf, Try: decode, Kafka: kafka.Options{Brokers: c.ListenAddrs(),
		SASL: &kafka.SASLOptions{Mechanism: kafka.Plain, User: "joiner", Secret: kafka.Secret{Text: "joiner-secret"}}}}
	checks := x.Run(t.Context())
	want(t, checks, "topic orders", results.CheckBad, "we may DESCRIBE", "reading is a right that is missing", "kafka-acls")
	want(t, checks, "output", results.CheckBad, "writing is a right that is missing")
	want(t, checks, "group joinbench", results.CheckBad, "right")
	for _, check := range checks {
		if strings.Contains(check.Value+check.Advice, "joiner-secret") {
			t.Errorf("%s shows the secret: %v", check.Name, check)
		}
	}
	x.Kafka.SASL.Secret.Text = "wrong"
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	checks = x.Run(ctx)
	want(t, checks, "kafka", results.CheckBad, "are user and secret right")
}

// A changelog that the broker would cut, and one of several partitions, are of no use.
func TestKafkaChangelog(t *testing.T) {
	w := newWorld(t, 1, 1, "")
	make := func(partitions int32, retention string) {
		t.Helper()
		settings := map[string]*string{"retention.ms": &retention, "retention.bytes": new("-1")}
		if _, err := w.Admin().CreateTopic(t.Context(), partitions, -1, settings, w.conf.ChangelogTopic()); err != nil {
			t.Fatal(err)
		}
		w.known(t, w.conf.ChangelogTopic())
	}
	make(1, "3600000")
	want(t, w.run(t), "changelog", results.CheckBad, "retention.ms 3600000", "retention.ms=-1")
	w.conf.Kafka.Group += "-two"
	make(2, "-1")
	want(t, w.run(t), "changelog", results.CheckBad, "has 2 partitions")
	w.conf.Kafka.Group += "-three"
	make(1, "-1")
	want(t, w.run(t), "changelog", results.CheckWarn, "1 partition, 1 replica", "replication factor")
}

func TestFakeKafkaTransactionTimeout(t *testing.T) {
	w := newWorld(t, 1, 1, "delivery: exactly-once\n")
	w.Broker = kafkatest.Start(t, kafkatest.Fake(kfake.BrokerConfigs(map[string]string{"transaction.max.timeout.ms": "30000"})))
	w.x.Kafka.Brokers = w.Addrs
	want(t, w.run(t), "transactions", results.CheckBad, "transaction.max.timeout.ms is 30s", "asks for 1m")
}
