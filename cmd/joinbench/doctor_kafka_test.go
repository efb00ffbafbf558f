package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"joinbench/internal/kafkatest"
	"joinbench/results"
)

// doctor -c decodes records as the join would, says what it found beside what it says of the machine, and never prints a password.
func TestDoctorKafka(t *testing.T) {
	b := kafkatest.Start(t)
	orders, payments, out := b.Topic(t, 2), b.Topic(t, 3), b.Topic(t, 1)
	now := time.Now()
	for i := range 20 {
		b.Produce(t, &kgo.Record{Topic: orders, Value: fmt.Appendf(nil, `{"ref":"P-%d"}`, i), Timestamp: now.Add(time.Duration(i-30) * time.Second)},
			&kgo.Record{Topic: payments, Key: fmt.Appendf(nil, "P-%d", i), Value: []byte("{}"), Timestamp: now.Add(time.Duration(i-30) * time.Second)})
	}
	conf := filepath.Join(t.TempDir(), "join.yaml")
	write := func(key string) {
		text := fmt.Sprintf("a: {topic: %s, key: %s}\nb: {topic: %s, key: \"@key\"}\noutput: {topic: %s}\nwindow: {after: 1h}\nstate: {dir: %s}\nkafka: {brokers: [%s], group: %s}\n",
			orders, key, payments, out, t.TempDir(), strings.Join(b.Addrs, ", "), kafkatest.Name(t))
		if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("$.ref")
	o := joinbench("doctor", "-c", conf, "--json")
	o.want(t, results.ExitOK)
	var d results.Diagnosis
	if err := json.Unmarshal([]byte(o.out), &d); err != nil {
		t.Fatal(err)
	}
	found := map[string]results.Check{}
	for _, c := range d.Checks {
		found[c.Name] = c
	}
	for name, text := range map[string]string{"cpu": "cores", "kafka": "1 broker", "records " + orders: "20 accepted", "records " + payments: "20 accepted",
		"partitions": "the numbers need not agree", "state space": "free in"} {
		if c := found[name]; c.Status == results.CheckBad || !strings.Contains(c.Value, text) {
			t.Errorf("%s: %+v, want %q", name, c, text)
		}
	}

	write("$.nothing")
	o = joinbench("doctor", "-c", conf, "--strict")
	o.want(t, results.ExitInvalid)
	if text := strings.Join(strings.Fields(o.out), " "); !strings.Contains(text, "bad records "+orders) || !strings.Contains(text, "is a.key ($.nothing) where the key is?") {
		t.Errorf("a key that is in no record is not told:\n%s", o.out)
	}
	joinbench("doctor", "-c", filepath.Join(t.TempDir(), "none.yaml")).want(t, results.ExitUsage, "none.yaml")
}
