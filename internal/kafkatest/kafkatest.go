// Package kafkatest gives tests a Kafka broker.
//
// Start's broker is one of three:
//
//   - by default kfake inside the test's process: it is there at once, and its faults can be planted (Fake);
//   - with Process a broker in a process of its own (what `joinbench broker --data` is), which can be killed, stopped and started
//     again on the same port with the same data; Apache is the same with an Apache Kafka;
//   - with JOINBENCH_TEST_KAFKA=host:port[,host:port…] in the environment an Apache Kafka that runs there (`make test-kafka`), instead of
//     the first. It is shared by many tests: topics have names of their own and are deleted at the end of the test.
//
// Tests that are to run against both have Kafka in their name: `make test-kafka` picks them by that.
package kafkatest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Env names the environment variable with the addresses of an Apache Kafka.
const Env = "JOINBENCH_TEST_KAFKA"

// patience is how long a broker may take for an answer: much longer than it ever does, so that a busy machine fails no test.
const patience = 60 * time.Second

// Broker is a broker for one test. Its methods end the test if they fail, and are called from the test's goroutine.
type Broker struct {
	Addrs []string // host:port

	fake    *kfake.Cluster
	process *process
	apache  *apache
	client  *kgo.Client
	admin   *kadm.Client
}

// Option changes what Start starts.
type Option func(*choice)

type choice struct {
	process bool
	apache  bool
	fake    bool
	opts    []kfake.Opt
}

// Process asks for a broker in a process of its own, with data that outlive it.
func Process() Option { return func(c *choice) { c.process = true } }

// Fake asks for kfake inside this process whatever the environment says, for tests that plant faults.
func Fake(opts ...kfake.Opt) Option {
	return func(c *choice) { c.fake, c.opts = true, append(c.opts, opts...) }
}

// Start gives a broker that lives as long as the test.
func Start(t testing.TB, options ...Option) *Broker {
	t.Helper()
	var c choice
	for _, o := range options {
		o(&c)
	}
	b := &Broker{}
	switch real := os.Getenv(Env); {
	case c.apache:
		b.apache, b.Addrs = startApache(t)
	case c.process:
		b.process = startProcess(t)
		b.Addrs = []string{b.process.addr}
	case real != "" && !c.fake:
		b.Addrs = strings.Split(real, ",")
	default:
		var err error
		opts := append([]kfake.Opt{kfake.NumBrokers(1), kfake.BrokerConfigs(map[string]string{"log.retention.ms": "-1"})}, c.opts...)
		if b.fake, err = kfake.NewCluster(opts...); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.fake.Close)
		b.Addrs = b.fake.ListenAddrs()
	}
	b.connect(t)
	return b
}

// At is a broker that the test has started itself, for the helpers alone.
func At(t testing.TB, addrs ...string) *Broker {
	t.Helper()
	b := &Broker{Addrs: addrs}
	b.connect(t)
	return b
}

func (b *Broker) connect(t testing.TB) {
	b.client = b.Client(t)
	b.admin = kadm.NewClient(b.client)
}

// Real says whether the broker is an Apache Kafka.
func (b *Broker) Real() bool { return b.fake == nil && b.process == nil }

// Mortal says whether the broker is the test's own, in a process that Kill, Stop and Restart are for.
func (b *Broker) Mortal() bool { return b.process != nil || b.apache != nil }

// Fake is the broker inside this process, for planting faults; nil if the broker is another.
func (b *Broker) Fake() *kfake.Cluster { return b.fake }

// Client makes a client of the broker; it is closed at the end of the test, before the broker.
func (b *Broker) Client(t testing.TB, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(b.Addrs...)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// Admin is an admin client that lives as long as the broker.
func (b *Broker) Admin() *kadm.Client { return b.admin }

var names atomic.Int64

// Name makes a name that no other test, and no other run on the same broker, has: for topics, groups and transactional ids.
func Name(t testing.TB) string {
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, t.Name())
	return fmt.Sprintf("%.120s-%x-%d", safe, time.Now().UnixNano(), names.Add(1))
}

// Topic creates a topic with a name of its own; it is deleted at the end of the test. Settings are key=value.
func (b *Broker) Topic(t testing.TB, partitions int, settings ...string) string {
	t.Helper()
	configs := map[string]*string{"retention.ms": new("-1")}
	for _, s := range settings {
		key, value, ok := strings.Cut(s, "=")
		if !ok {
			t.Fatalf("setting %q is not key=value", s)
		}
		configs[key] = &value
	}
	topic := Name(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := b.admin.CreateTopic(ctx, int32(partitions), -1, configs, topic); err != nil {
		t.Fatalf("creating topic %s: %v", topic, err)
	}
	b.awaitTopic(ctx, t, topic)
	t.Cleanup(func() {
		if !b.Real() {
			return // it ends with the test
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if _, err := b.admin.DeleteTopics(ctx, topic); err != nil {
			t.Errorf("deleting topic %s: %v", topic, err)
		}
	})
	return topic
}

// awaitTopic: Apache Kafka says that a topic is there a moment before its partitions answer.
func (b *Broker) awaitTopic(ctx context.Context, t testing.TB, topic string) {
	t.Helper()
	for {
		listed, err := b.admin.ListEndOffsets(ctx, topic)
		if err == nil {
			err = listed.Error()
		}
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("topic %s does not answer: %v", topic, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
