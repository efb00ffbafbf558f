package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"joinbench/pipeline"
	"joinbench/results"
)

// loaded is what load prints with --json.
func loaded(t *testing.T, args []string) (r pipeline.LoadReport) {
	t.Helper()
	o := joinbench(append(args, "--json")...)
	o.want(t, 0)
	if err := json.Unmarshal([]byte(o.out), &r); err != nil {
		t.Fatalf("%v: %s", err, o.out)
	}
	return r
}

// TestKafkaLoad: record i of a side is record i/P of partition i mod P, with its key, and its event time as the record's.
func TestKafkaLoad(t *testing.T) {
	k := newTopics(t, smallLoad, "")
	r := loaded(t, k.args("load", "--producers", "2"))
	for _, side := range []struct {
		topic, field, format string
		said                 pipeline.LoadedSide
	}{{k.a, "order_id", "ORD-%012d", r.A}, {k.b, "payment_id", "PMT-%012d", r.B}} {
		records := k.records(t, side.topic)
		sum := int64(0)
		for p := range int32(3) {
			sum += int64(len(records[p]))
			if got := int64(len(records[p])); side.said.Topic != side.topic || len(side.said.Partitions) != 3 || side.said.Partitions[p] != got {
				t.Errorf("%s/%d has %d records, load says %+v", side.topic, p, got, side.said)
			}
			for n, rec := range records[p] {
				var v struct {
					Order   string `json:"order_id"`
					Payment string `json:"payment_id"`
					Ref     string `json:"payment_ref"`
					Ts      int64
				}
				if err := json.Unmarshal(rec.Value, &v); err != nil {
					t.Fatal(err)
				}
				if want := fmt.Sprintf(side.format, n*3+int(p)); v.Order+v.Payment != want || rec.Offset != int64(n) {
					t.Fatalf("%s/%d: record %d is %s at offset %d, want %s", side.topic, p, n, v.Order+v.Payment, rec.Offset, want)
				}
				if string(rec.Key) != v.Ref || rec.Timestamp.UnixMilli() != v.Ts || len(rec.Value) != 320 {
					t.Fatalf("%s/%d: record %d has key %s, time %d, %d bytes: %s", side.topic, p, n, rec.Key, rec.Timestamp.UnixMilli(), len(rec.Value), rec.Value)
				}
			}
		}
		if sum != side.said.Records {
			t.Errorf("%s has %d records, load says %d", side.topic, sum, side.said.Records)
		}
	}
	if r.B.Records != 3000 || r.A.Records <= 2000 || r.Transactions != 0 {
		t.Errorf("%+v", r)
	}
}

// What a topic holds, without the offsets.
func contents(records map[int32][]*kgo.Record) map[int32][]string {
	all := map[int32][]string{}
	for p, list := range records {
		for _, r := range list {
			all[p] = append(all[p], fmt.Sprint(r.Timestamp.UnixMilli(), string(r.Key), string(r.Value)))
		}
	}
	return all
}

// TestKafkaLoadInParts: however a workload is loaded, committed readers see the same records in the same order.
func TestKafkaLoadInParts(t *testing.T) {
	for _, load := range []string{smallLoad, strings.Replace(smallLoad, "seed: 5", "seed: 5, steady: true", 1)} {
		k := newTopics(t, load, "")
		loaded(t, k.args("load"))
		wantA, wantB := contents(k.records(t, k.a)), contents(k.records(t, k.b))
		for name, calls := range map[string][][]string{
			"parts":                {{"--to", "1000"}, {"--from", "1000", "--to", "1001"}, {"--from", "1001"}},
			"sides":                {{"--only", "b"}, {"--only", "a"}},
			"one producer":         {{"--producers", "1"}},
			"more than partitions": {{"--producers", "9"}},
			"transactions":         {{"--transactional"}},
			"aborted transactions": {{"--transactional", "--abort-share", "1"}},
			"parts, transactions":  {{"--transactional", "--abort-share", "0.5", "--to", "700"}, {"--from", "700", "--transactional"}},
			"none":                 {{"--compression", "none"}},
		} {
			o := k.other(t)
			var aborted int64
			for _, call := range calls {
				r := loaded(t, o.args("load", call...))
				aborted += r.A.Aborted + r.B.Aborted
			}
			if !reflect.DeepEqual(contents(o.records(t, o.a)), wantA) || !reflect.DeepEqual(contents(o.records(t, o.b)), wantB) {
				t.Errorf("%s: not what one load gives", name)
			}
			if name == "aborted transactions" && aborted < 3300 {
				t.Errorf("%s: %d records in them", name, aborted)
			}
			if ends := o.broker.Ends(t, o.b); name == "aborted transactions" && ends[0] < 2000 {
				t.Errorf("%s: offsets %v, too few for records that were aborted", name, ends)
			}
		}
	}
}

// TestKafkaLoadAtRate: the part takes as long as its rate says, and no record is handed over before its time.
func TestKafkaLoadAtRate(t *testing.T) {
	k := newTopics(t, smallLoad, "")
	started := time.Now()
	r := loaded(t, k.args("load", "--rate", "10k/s"))
	// 3000 B and the A that come with them, but for those of the last portion.
	if took, least := time.Since(started), 250*time.Millisecond; took < least || r.OfferedPer != 10_000 || r.StartedMs < started.UnixMilli() {
		t.Errorf("took %s, want at least %s: %+v", took, least, r)
	}
}

// TestKafkaLoadInterrupted: SIGINT and SIGTERM end a load with the codes of an interrupted program, not with that of a failed one.
func TestKafkaLoadInterrupted(t *testing.T) {
	for s, code := range map[syscall.Signal]int{syscall.SIGINT: results.ExitInterrupted, syscall.SIGTERM: results.ExitTerminated} {
		k := newTopics(t, smallLoad, "")
		k.a, k.b = k.broker.Topic(t, 3, "retention.ms=-1"), k.broker.Topic(t, 3, "retention.ms=-1")
		p := startProgram(t, nil, k.args("load", "--rate", "50/s", "--topics", k.a+","+k.b)...)
		waitFor(t, "the first B", func() bool { return k.broker.Ends(t, k.b)[0] > 0 })
		p.signal(s)
		p.end().want(t, code)
	}
}

// TestKafkaLoadRefuses: what would leave topics of which nobody knows the truth is refused, and says what to do.
func TestKafkaLoadRefuses(t *testing.T) {
	k := newTopics(t, smallLoad, "")
	joinbench(k.args("load", "--from", "100")...).want(t, 2, "--from", "begins with record")
	joinbench(k.args("load")...).want(t, 0)
	joinbench(k.args("load")...).want(t, 2, "--from", k.a, "partition 0", "another topic")
	joinbench(k.args("load", "--transactional")...).want(t, 2, "--from", k.a)
	joinbench(k.args("load", "--partitions", "4", "--from", "10")...).want(t, 2, "--partitions", "has 3 partitions", "has 4")
	o := k.other(t)
	joinbench(o.args("load", "--to", "3001")...).want(t, 2, "--from", "3000")
	joinbench(o.args("load", "--from", "7", "--to", "7")...).want(t, 2, "--from")
	joinbench(o.args("load", "--abort-share", "0.1")...).want(t, 2, "--transactional")
	joinbench(o.args("load", "--abort-share", "2", "--transactional")...).want(t, 2, "--abort-share 2")
	joinbench(o.args("load", "--only", "c")...).want(t, 2, `--only "c"`)
	joinbench(o.args("load", "--producers", "0")...).want(t, 2, "--producers 0")
	joinbench(o.args("load", "--compression", "lz")...).want(t, 2, `--compression "lz"`, "lz4")
	joinbench(o.args("load", "--topics", "x")...).want(t, 2, `--topics "x"`)
	joinbench(o.args("load", "--topics", "x,x")...).want(t, 2, "b.topic", "x is the topic of a.topic already")
	joinbench(o.args("load", "--brokers", "http://x")...).want(t, 2, "kafka.brokers", "is a URL")
	joinbench(o.args("load", "--b", "many")...).want(t, 2, "load.b_events", "flag --b")
	joinbench(o.args("load", "-c", o.path("none.yaml"))...).want(t, 2, "none.yaml")
}

// TestKafkaLoadRetention: records have the times of the workload. Topics that load creates keep them, of others it says that
// they may not.
func TestKafkaLoadRetention(t *testing.T) {
	k := newTopics(t, smallLoad, "")
	k.b = k.broker.Topic(t, 3, "retention.ms=86400000")
	o := joinbench(k.args("load", "--topics", k.a+","+k.b)...)
	o.want(t, 0, k.b, "retention.ms=86400000", "set retention.ms=-1")
	if strings.Contains(o.err, k.a) {
		t.Errorf("also of the other topic: %s", o.err)
	}
	configs, err := k.broker.Admin().DescribeTopicConfigs(t.Context(), k.a)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range configs[0].Configs {
		if c.Key == "retention.ms" && c.MaybeValue() != "-1" {
			t.Errorf("%s has retention.ms=%s", k.a, c.MaybeValue())
		}
	}
}
