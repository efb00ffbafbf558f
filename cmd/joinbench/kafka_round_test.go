package main

import (
	"strings"
	"syscall"
	"testing"

	"joinbench/internal/kafkatest"
)

// TestKafkaLoadServeVerify: what load writes, serve joins and verify finds right, whatever rows there are and however they are
// delivered, though half of the transactions of the input were aborted. And verify is no formality: a join that reads
// what was aborted is found to be wrong.
func TestKafkaLoadServeVerify(t *testing.T) {
	for name, c := range map[string]struct {
		rules, isolation string
		code             int
	}{
		"inner, at least once":   {"", "", 0},
		"outer, exactly once":    {"type: outer\ndelivery: exactly-once\n", "", 0},
		"early, retract":         {"type: left\nearly: 20m\nretract: true\ndelivery: exactly-once\n", "", 0},
		"groups":                 {"type: left\ncardinality: one-to-many\ncollect: timeout\n", "", 0},
		"reads what was aborted": {"", "read_uncommitted", 4},
		"the same, one-to-many":  {"cardinality: one-to-many\n", "read_uncommitted", 4},
		"keyed by a field of a":  {"type: left\n", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			load := smallLoad
			if name == "groups" {
				load = familyLoad
			}
			k := newTopics(t, load, c.rules)
			group := kafkatest.Name(t)
			k.more = append(k.more, group+"-changelog")
			t.Setenv("JOINBENCH_KAFKA_GROUP", group)
			t.Setenv("JOINBENCH_STATE_DIR", k.path("state"))
			if name == "keyed by a field of a" {
				t.Setenv("JOINBENCH_OUTPUT_KEY", "order_id")
			}
			loaded(t, k.args("load", "--transactional", "--abort-share", "0.5"))
			conf := k.write("join.yaml", joinbench(k.args("load", "--print-join")...).out)
			if c.isolation != "" {
				t.Setenv("JOINBENCH_KAFKA_ISOLATION", c.isolation)
			}
			joinbench("serve", "-c", conf, "--drain").want(t, 0)
			r := verified(t, k, c.code)
			if c.code == 0 && (r.Duplicated != 0 || r.Pairs.Seen+r.Groups.Seen < 80) || c.code != 0 && r.Spurious == 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestKafkaVerifyStopped: a join that was stopped in the middle is right as far as its group has read, and no further.
func TestKafkaVerifyStopped(t *testing.T) {
	for _, load := range []string{smallLoad, strings.Replace(smallLoad, "seed: 5", "steady: true", 1)} {
		k := newTopics(t, load, "delivery: exactly-once\n")
		group := kafkatest.Name(t)
		k.more = append(k.more, group+"-changelog")
		t.Setenv("JOINBENCH_KAFKA_GROUP", group)
		loaded(t, k.args("load", "--transactional", "--abort-share", "0.5", "--to", "2000"))
		joinbench(k.args("verify", "--stopped", "--to", "2000")...).want(t, 2, "--stopped", "has read nothing")
		conf := k.write("join.yaml", joinbench(k.args("load", "--print-join")...).out)
		serve := startProgram(t, strings.NewReader(""), "serve", "-c", conf, "--state-dir", k.path("state"))
		waitFor(t, "results", func() bool { return sum(k.broker.Ends(t, k.out)) > 0 })
		serve.signal(syscall.SIGTERM)
		serve.end().want(t, 0)
		r := verified(t, k, 0, "--stopped", "--to", "2000")
		if r.Pairs.Seen == 0 {
			t.Errorf("%+v", r)
		}
		verified(t, k, 4, "--to", "2000") // B wait for A still to come
		joinbench(k.args("verify", "--stopped", "--to", "2000")...).want(t, 0)
		t.Setenv("JOINBENCH_TYPE", "left")
		joinbench(k.args("verify", "--stopped", "--to", "2000")...).want(t, 2, "--stopped", "watermarks")
		t.Setenv("JOINBENCH_TYPE", "inner")
	}
}

func sum(offsets map[int32]int64) (n int64) {
	for _, o := range offsets {
		n += o
	}
	return n
}
