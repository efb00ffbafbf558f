package ops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"joinbench/config"
	"joinbench/kafka"
	"joinbench/projection"
	"joinbench/results"
)

// Examination looks at Kafka before a join runs.
type Examination struct {
	Config *config.Join // as ValidateServe wants it
	Kafka  kafka.Options
	// Try decodes records of a side, "a" or "b", as the join would.
	Try func(side string, recs []projection.Record) (*Trial, error)
	// TransactionTimeout is how long a transaction of the join may be open before the broker ends it.
	TransactionTimeout time.Duration

	// What tests make up; zero: the real ones.
	now  func() time.Time
	free func(dir string) (int64, bool)
}

// Trial is what became of records that were decoded as the join would.
type Trial struct {
	Records int
	Fates   map[string]int // by the names of the counters
	Bytes   int64          // keys and bodies that the state would keep
}

const (
	reachTimeout  = 10 * time.Second // for the first answer of any broker
	askTimeout    = 30 * time.Second // for all questions together
	sampleTimeout = 10 * time.Second // for the records of one topic
	sampleSize    = 4000             // about so many of the newest records of each input are looked at
)

// Run looks. It never fails: what cannot be known is said, and what does not work is a check that is bad.
func (e *Examination) Run(ctx context.Context) []results.Check {
	if e.now == nil {
		e.now = time.Now
	}
	if e.free == nil {
		e.free = results.FreeBytes
	}
	x := &examining{Examination: e, j: e.Config, topics: map[string]*kafka.TopicFacts{}}
	x.run(ctx)
	return x.checks
}

// examining is an examination on its way.
type examining struct {
	*Examination
	j       *config.Join
	in      *kafka.Inspector
	cluster *kafka.ClusterFacts
	topics  map[string]*kafka.TopicFacts // those that are there
	inputs  [2]input
	checks  []results.Check
}

// input is what is known of a side.
type input struct {
	name   string // of the side in the configuration
	conf   *config.Side
	topic  *kafka.TopicFacts // nil: not there, and nothing below is
	sample *kafka.Sample
	trial  *Trial
	rate   float64 // records a second of record time; 0: unknown
}

func (x *examining) run(ctx context.Context) {
	reach, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	in, err := kafka.NewInspector(reach, x.Kafka)
	if err != nil {
		x.bad("kafka", err.Error(), reachAdvice(err))
		return
	}
	defer in.Close()
	x.in = in
	ask, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if !x.brokers(ask) {
		return
	}
	x.inputs = [2]input{{name: "a", conf: &x.j.A}, {name: "b", conf: &x.j.B}}
	for i := range x.inputs {
		x.input(ask, &x.inputs[i])
	}
	x.partitions()
	x.partitioners()
	for i := range x.inputs {
		if in := &x.inputs[i]; in.topic != nil {
			x.retention(in)
			x.records(in)
			x.clock(in)
		}
	}
	x.output(ask)
	x.sideTopics(ask)
	x.changelog(ask)
	x.transactions()
	x.group(ask)
	x.stateSpace()
}

func (x *examining) ok(name, value string) { x.add(name, results.CheckOK, value, "") }

func (x *examining) warn(name, value, advice string) { x.add(name, results.CheckWarn, value, advice) }

func (x *examining) bad(name, value, advice string) { x.add(name, results.CheckBad, value, advice) }

func (x *examining) add(name, status, value, advice string) {
	x.checks = append(x.checks, results.Check{Name: name, Status: status, Value: value, Advice: advice})
}

// brokers says whether there is anybody to ask.
func (x *examining) brokers(ctx context.Context) bool {
	c, err := x.in.Cluster(ctx)
	if err != nil {
		x.bad("kafka", err.Error(), reachAdvice(err))
		return false
	}
	x.cluster = c
	value := fmt.Sprintf("%s (%s), Kafka %s, reached as %s", count(len(c.Brokers), "broker"), strings.Join(c.Brokers, ", "),
		strings.Join(c.Versions, " and "), x.Kafka)
	switch {
	case x.j.Delivery == exactlyOnce && !c.Transactions:
		x.bad("kafka", value, "these brokers know no transactions, and delivery is exactly-once: use brokers from 0.11 on, or delivery: at-least-once")
	case len(c.Versions) > 1:
		x.warn("kafka", value, "brokers of different versions: well while they are being replaced, else finish that")
	default:
		x.ok("kafka", value)
	}
	return true
}

const exactlyOnce = "exactly-once"

// reachAdvice is what to do about an error of the first contact.
func reachAdvice(err error) string {
	if a := advice(err); a != "" {
		return a
	}
	return "are the brokers running, is kafka.brokers right (host:port), and may this machine reach them? A port with TLS needs kafka.tls: {enabled: true}"
}

// askAdvice is what to do about an error of brokers that have answered before.
func askAdvice(err error) string {
	if a := advice(err); a != "" {
		return a
	}
	return "look again; if it stays, the brokers' own logs say more"
}

// advice is what to do about an error; "": nothing that is known here.
func advice(err error) string {
	var dns *net.DNSError
	text := err.Error()
	switch {
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return "the brokers do not take this user and secret: see kafka.sasl"
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		return "the brokers have another mechanism: see kafka.sasl.mechanism"
	case strings.Contains(text, "authorization failed"), strings.Contains(strings.ToLower(text), "not authorized"):
		return "a right is missing: have it given to this user (kafka-acls --add), or use another one"
	case strings.Contains(text, "x509:"), strings.Contains(text, "tls:"):
		return "the connection is not as kafka.tls says: see kafka.tls.ca and kafka.tls.server_name; a port without TLS answers no TLS"
	case errors.Is(err, io.EOF):
		return "the broker hung up: is this a port with TLS (kafka.tls) or SASL (kafka.sasl), and are user and secret right?"
	case errors.As(err, &dns):
		return "no such host: see kafka.brokers"
	case strings.Contains(text, "secret:"), strings.Contains(text, "no such file"):
		return "a file or a variable that the configuration names is not there: see kafka.sasl and kafka.tls"
	}
	return ""
}

// input looks at a topic that is read.
func (x *examining) input(ctx context.Context, in *input) {
	name := "topic " + in.conf.Topic
	t, err := x.in.Topic(ctx, in.conf.Topic, x.uncommitted())
	switch {
	case errors.Is(err, kafka.ErrNoTopic):
		x.bad(name, "not there, or not to be seen by this user", "make it, or mend "+in.name+".topic")
		return
	case err != nil:
		x.bad(name, err.Error(), askAdvice(err))
		return
	}
	in.topic = t
	x.topics[in.conf.Topic] = t
	value := fmt.Sprintf("%s, %s", count(t.Partitions, "partition"), count(t.Replicas, "replica"))
	if t.Spans != nil {
		value += ", " + results.Count(t.Records()) + " offsets in the log"
	}
	policy := t.Settings["cleanup.policy"]
	switch {
	case t.Leaderless > 0:
		x.bad(name, fmt.Sprintf("%s, of which %d have no leader", value, t.Leaderless), "brokers are missing: what lies in these partitions cannot be read now")
	case t.Lists != nil:
		x.bad(name, value+"; its offsets: "+t.Lists.Error(), askAdvice(t.Lists))
	case !allows(t.Allowed, "READ"):
		x.bad(name, value+"; we may "+strings.Join(t.Allowed, ", "), "reading is a right that is missing: kafka-acls --add --consumer --topic "+in.conf.Topic+" --group "+x.j.Kafka.Group)
	case strings.Contains(policy, "compact"):
		x.warn(name, value+", cleanup.policy "+policy, "a compacted topic keeps the last record of a key only: events of a stream that share a record key are lost, and tombstones are malformed")
	case t.InSync < t.Replicas:
		x.warn(name, fmt.Sprintf("%s, of which %d in sync", value, t.InSync), "a broker is missing or behind")
	default:
		x.ok(name, value)
	}
	x.look(ctx, in)
}

// look samples a topic.
func (x *examining) look(ctx context.Context, in *input) {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	s, err := x.in.Sample(ctx, in.topic, sampleSize, x.uncommitted())
	if err != nil {
		x.bad("records "+in.conf.Topic, err.Error(), askAdvice(err))
		return
	}
	in.sample = s
	if len(s.Records) == 0 {
		return
	}
	in.rate = x.in.Rate(ctx, in.topic, s.Newest)
	if in.trial, err = x.Try(in.name, s.Records); err != nil {
		x.bad("records "+in.conf.Topic, err.Error(), "see "+in.name+" in the configuration")
	}
}

// records says whether what lies in a topic is what the configuration expects.
func (x *examining) records(in *input) {
	name := "records " + in.conf.Topic
	switch {
	case in.sample == nil || in.trial == nil && len(in.sample.Records) > 0:
		return // said
	case in.trial == nil:
		x.ok(name, "none yet, so nothing can be said of keys, times and sizes")
		return
	}
	t := in.trial
	taken := t.Fates["accepted"] + t.Fates["null_key"]
	value := fmt.Sprintf("%s of the newest: %s", results.Count(int64(t.Records)), fates(t))
	if in.rate > 0 {
		value += fmt.Sprintf("; about %s records a second", approx(in.rate))
	}
	value += fmt.Sprintf(", %s each", results.Bytes(in.sample.Bytes/int64(t.Records)))
	none := t.Fates["accepted"] == 0
	switch {
	case none, taken*100 < t.Records*99:
		x.add(name, map[bool]string{true: results.CheckBad, false: results.CheckWarn}[none], value, fateAdvice(in, t))
	case t.Fates["null_key"]*10 > t.Records:
		x.warn(name, value, fateAdvice(in, t))
	default:
		x.ok(name, value)
	}
}

func fates(t *Trial) string {
	var parts []string
	for _, f := range []projection.Fate{projection.Accepted, projection.NullKey, projection.BadKey, projection.Malformed, projection.BadTime} {
		if n := t.Fates[f.String()]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", results.Count(int64(n)), f))
		}
	}
	return strings.Join(parts, ", ")
}

// fateAdvice is about the commonest reason not to join.
func fateAdvice(in *input, t *Trial) string {
	worst := projection.NullKey
	for _, f := range []projection.Fate{projection.BadKey, projection.Malformed, projection.BadTime} {
		if t.Fates[f.String()] > t.Fates[worst.String()] {
			worst = f
		}
	}
	switch worst {
	case projection.NullKey:
		return fmt.Sprintf("their key is absent or null: is %s.key (%s) where the key is?", in.name, strings.Join(in.conf.Key, ", "))
	case projection.BadKey:
		return fmt.Sprintf("their key is an object, an array or a boolean: is %s.key (%s) the right field?", in.name, strings.Join(in.conf.Key, ", "))
	case projection.Malformed:
		return "their value is not JSON (Avro and Protobuf are not read), or it is a tombstone"
	}
	return fmt.Sprintf("their time cannot be used: is it %s.time (%s) in %s, and not more than max_skew ahead?", in.name, in.conf.Time, in.conf.TimeUnit)
}

// clock compares the newest record with the clock of this machine. No broker tells its time, so this is what can be known.
func (x *examining) clock(in *input) {
	if in.trial == nil {
		return
	}
	name := "clock " + in.conf.Topic
	who := "as its sender stamped it"
	if in.sample.AppendTime {
		who = "as the broker stamped it"
	}
	ahead := time.Duration(in.sample.Newest-x.now().UnixMilli()) * time.Millisecond
	if ahead <= 0 {
		x.ok(name, fmt.Sprintf("the newest record is of %s ago, %s", span(-ahead), who))
		return
	}
	value := fmt.Sprintf("the newest record is %s ahead of this machine's clock, %s", span(ahead), who)
	advice := "its sender's clock is wrong, or this machine's: have both follow NTP"
	if in.sample.AppendTime {
		advice = "the broker's clock is wrong, or this machine's: have both follow NTP"
	}
	switch {
	case in.conf.Time == "@timestamp" && x.j.MaxSkew > 0 && ahead > x.j.MaxSkew:
		x.bad(name, value, advice+"; beyond max_skew ("+span(x.j.MaxSkew)+") such records are bad_time")
	case ahead > max(x.j.Grace, time.Second):
		x.warn(name, value, advice)
	default:
		x.ok(name, value)
	}
}

func (x *examining) uncommitted() bool { return x.j.Kafka.Isolation == "read_uncommitted" }

// allows says whether an operation is among those that we may do; a broker that does not say allows all.
func allows(allowed []string, op string) bool {
	return len(allowed) == 0 || slices.Contains(allowed, op) || slices.Contains(allowed, "ALL")
}
