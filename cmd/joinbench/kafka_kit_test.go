package main

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"joinbench/internal/kafkatest"
)

// topics are a workload's topics on a broker, and the profile that says what lies in them.
type topics struct {
	place
	broker    *kafkatest.Broker
	a, b, out string
	profile   string   // file
	more      []string // topics that others make
}

// familyLoad has three B to an A that is paid, some of which end it or mark their end.
var familyLoad = strings.Replace(smallLoad, "duplicates: 0.02", "b_per_a: 3, end_share: 0.1, mark_share: 0.2", 1)

const (
	smallLoad = `{pending: 2000, b_events: 3000, ages: [12m, 25m, 40m], b_rate: auto, match_rate: 0.1, duplicates: 0.02, late_share: 0.01, disorder: 2s, record_bytes: 320, partitions: 3, seed: 5}`
	smallJoin = "a: {topic: %s, key: $.payment_ref, time: $.ts, time_unit: ms, keep: [$.order_id, $.amount]}\n" +
		"b: {topic: %s, key: \"@key\", keep: [$.payment_id, $.status]}\nwindow: {after: 1h}\ngrace: 10s\noutput: {topic: %s}\nkafka: {brokers: [\"%s\"]}\n"
)

// newTopics names topics of a test on a broker; only the output exists. rules are further lines of the join.
func newTopics(t *testing.T, load, rules string) *topics {
	t.Helper()
	return newTopicsOn(t, kafkatest.Start(t), load, rules)
}

func newTopicsOn(t *testing.T, b *kafkatest.Broker, load, rules string) *topics {
	t.Helper()
	k := &topics{place: newPlace(t), broker: b, a: kafkatest.Name(t) + "-a", b: kafkatest.Name(t) + "-b", out: b.Topic(t, 2)}
	t.Cleanup(func() { k.remove(t) })
	join := fmt.Sprintf(smallJoin, k.a, k.b, k.out, strings.Join(b.Addrs, `", "`)) + rules
	k.profile = k.write("profile.yaml", "join:\n  "+strings.TrimRight(strings.ReplaceAll(join, "\n", "\n  "), " ")+"load: "+load)
	return k
}

// remove deletes what load created on a broker that outlives the test.
func (k *topics) remove(t *testing.T) {
	if !k.broker.Real() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := k.broker.Admin().DeleteTopics(ctx, append(k.more, k.a, k.b)...); err != nil {
		t.Errorf("deleting %s and %s: %v", k.a, k.b, err)
	}
}

// args are a call of load or verify.
func (k *topics) args(command string, more ...string) []string {
	return append([]string{command, "--config", k.profile, "--progress", "none"}, more...)
}

// other is the same workload in other topics.
func (k *topics) other(t *testing.T) *topics {
	o := *k
	o.a, o.b = kafkatest.Name(t)+"-a", kafkatest.Name(t)+"-b"
	o.profile = k.write(o.a+".yaml", strings.NewReplacer(k.a, o.a, k.b, o.b).Replace(k.read("profile.yaml")))
	t.Cleanup(func() { o.remove(t) })
	return &o
}

// records are what committed readers see of a side's topic, by partition.
func (k *topics) records(t *testing.T, topic string) map[int32][]*kgo.Record {
	return k.broker.Consume(t, topic)
}

// kcat is a topic as a record file.
func (k *topics) kcat(t *testing.T, name, topic string) string {
	var lines []string
	records := k.records(t, topic)
	for p := range int32(len(records)) {
		for _, r := range records[p] {
			line, err := json.Marshal(map[string]any{"topic": topic, "partition": p, "offset": r.Offset, "tstype": "create", "ts": r.Timestamp.UnixMilli(),
				"key": string(r.Key), "payload": string(r.Value)})
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, string(line))
		}
	}
	return k.write(name, lines...)
}

// sources say of each record, by the id in it, which header names it.
func (k *topics) sources(t *testing.T) map[string]string {
	from := map[string]string{}
	for topic, field := range map[string]string{k.a: "order_id", k.b: "payment_id"} {
		for p, records := range k.records(t, topic) {
			for _, r := range records {
				var fields map[string]any
				if err := json.Unmarshal(r.Value, &fields); err != nil {
					t.Fatal(err)
				}
				from[fields[field].(string)] = fmt.Sprintf("%s/%d/%d", topic, p, r.Offset)
			}
		}
	}
	return from
}

// joined is what a join of the same records gives, as records of the output topic: each with the headers that name its sources.
// The join is that of files, so neither load nor verify have a part in it.
func (k *topics) joined(t *testing.T) []*kgo.Record {
	t.Helper()
	printed := joinbench(k.args("load", "--print-join")...)
	printed.want(t, 0)
	conf := k.write("join.yaml", printed.out)
	run := joinbench("join", "-c", conf, "--a", k.kcat(t, "a.ndjson", k.a), "--b", k.kcat(t, "b.ndjson", k.b), "--progress", "none",
		"--state-dir", k.path("files"))
	run.want(t, 0)
	from := k.sources(t)
	owner := map[string]string{} // of a key, its A: the one of a tombstone
	var out []*kgo.Record
	for line := range strings.Lines(run.out) {
		r := &kgo.Record{Topic: k.out, Value: []byte(strings.TrimSuffix(line, "\n"))}
		var row struct {
			Key     string
			A       map[string]any
			B       json.RawMessage
			Retract bool
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		r.Key = []byte(row.Key)
		if id, ok := row.A["order_id"].(string); ok {
			owner[row.Key] = from[id]
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: "a", Value: []byte(from[id])})
		}
		for _, id := range ids(t, row.B) {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: "b", Value: []byte(from[id])})
		}
		if row.Retract {
			r.Value = nil
			r.Headers = []kgo.RecordHeader{{Key: "a", Value: []byte(owner[row.Key])}}
		}
		hash := fnv.New32a()
		_, _ = hash.Write(r.Key)
		r.Partition = int32(hash.Sum32() % 2)
		out = append(out, r)
	}
	return out
}

// ids are those of the B in a row: none, one, or a list.
func ids(t *testing.T, text json.RawMessage) (list []string) {
	t.Helper()
	type payment struct {
		ID string `json:"payment_id"`
	}
	var one *payment
	var many []payment
	switch {
	case len(text) == 0:
	case text[0] == '[':
		if err := json.Unmarshal(text, &many); err != nil {
			t.Fatal(err)
		}
	default:
		if err := json.Unmarshal(text, &one); err != nil {
			t.Fatal(err)
		}
		if one != nil {
			many = append(many, *one)
		}
	}
	for _, p := range many {
		list = append(list, p.ID)
	}
	return list
}

// clone copies records, so that the copies may be changed and sent again.
func clone(records []*kgo.Record) []*kgo.Record {
	out := make([]*kgo.Record, len(records))
	for i, r := range records {
		out[i] = &kgo.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Headers: slices.Clone(r.Headers)}
	}
	return out
}
