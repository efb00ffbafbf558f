package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"joinbench/pipeline"
)

// verified is what verify prints with --json.
func verified(t *testing.T, k *topics, code int, more ...string) (r pipeline.VerifyReport) {
	t.Helper()
	o := joinbench(k.args("verify", append(more, "--json")...)...)
	o.want(t, code)
	if err := json.Unmarshal([]byte(o.out), &r); err != nil {
		t.Fatalf("%v: %s", err, o.out)
	}
	return r
}

// TestKafkaVerifyRight: what the join of files makes of the same records is right, with every kind of row.
func TestKafkaVerifyRight(t *testing.T) {
	counts := strings.Replace(familyLoad, "mark_share: 0.2", "wrong_counts: 0.1", 1)
	for name, c := range map[string]struct {
		load, rules string
		want        func(r *pipeline.VerifyReport) bool
	}{
		"inner":                {smallLoad, "", func(r *pipeline.VerifyReport) bool { return r.Pairs.Seen > 200 && r.NullsA.Seen == 0 }},
		"outer":                {smallLoad, "type: outer\n", func(r *pipeline.VerifyReport) bool { return r.NullsA.Seen > 100 && r.NullsB.Seen > 2000 }},
		"early, retract":       {smallLoad, "type: left\nearly: 5m\nretract: true\n", func(r *pipeline.VerifyReport) bool { return r.Tombstones > 50 && r.NullsA.Seen > 200 }},
		"many":                 {smallLoad, "cardinality: many-to-many\n", func(r *pipeline.VerifyReport) bool { return r.Pairs.Seen > 250 }},
		"groups by count":      {counts, "type: left\ncardinality: one-to-many\ncollect: {count: $.line_count}\n", func(r *pipeline.VerifyReport) bool { return r.Groups.Seen > 80 }},
		"groups, early":        {familyLoad, "type: left\ncardinality: one-to-many\ncollect: timeout\nearly: 5m\n", func(r *pipeline.VerifyReport) bool { return r.Groups.Seen > 80 && r.NullsA.Seen > 100 }},
		"complete_on":          {familyLoad, "type: left\ncardinality: one-to-many\ncomplete_on: {field: $.status, equals: declined, emit: unmatched}\n", func(r *pipeline.VerifyReport) bool { return r.Pairs.Seen > 150 }},
		"steady":               {strings.Replace(smallLoad, "seed: 5", "steady: true", 1), "", func(r *pipeline.VerifyReport) bool { return r.Pairs.Seen > 200 }},
		"transactions, aborts": {smallLoad, "type: outer\n", func(r *pipeline.VerifyReport) bool { return r.Pairs.Seen > 200 }},
	} {
		t.Run(name, func(t *testing.T) {
			k := newTopics(t, c.load, c.rules)
			how := []string{}
			if strings.HasPrefix(name, "transactions") {
				how = []string{"--transactional", "--abort-share", "0.5"}
			}
			loaded(t, k.args("load", how...))
			out := k.joined(t)
			k.broker.Produce(t, out...)
			r := verified(t, k, 0)
			if !r.Right || r.Records != int64(len(out)) || !c.want(&r) {
				t.Errorf("%d records: %+v", len(out), r)
			}
		})
	}
}

// TestKafkaVerifyFinds: each kind of fault is found and counted as such, with the place where it is, and the exit code is 4.
func TestKafkaVerifyFinds(t *testing.T) {
	k := newTopics(t, smallLoad, "type: left\nearly: 20m\nretract: true\n")
	loaded(t, k.args("load", "--transactional", "--abort-share", "1"))
	right := k.joined(t)
	isPair := func(r *kgo.Record) bool {
		return len(r.Headers) == 2 && !strings.Contains(string(r.Value), "corrected")
	}
	pair := slices.IndexFunc(right, isPair)
	next := pair + 1 + slices.IndexFunc(right[pair+1:], isPair)
	null := slices.IndexFunc(right, func(r *kgo.Record) bool { return strings.HasSuffix(string(r.Value), `"b":null}`) })
	tombstone := slices.IndexFunc(right, func(r *kgo.Record) bool { return r.Value == nil })
	corrected := slices.IndexFunc(right, func(r *kgo.Record) bool { return strings.Contains(string(r.Value), "corrected") })
	if next <= pair || null < 0 || tombstone < 0 || corrected < 0 {
		t.Fatalf("pairs %d, %d, null row %d, tombstone %d, corrected %d of %d", pair, next, null, tombstone, corrected, len(right))
	}
	without := func(out []*kgo.Record, i int) []*kgo.Record { return slices.Delete(out, i, i+1) }
	for name, c := range map[string]struct {
		change                        func(out []*kgo.Record) []*kgo.Record
		missing, spurious, duplicated int64
	}{
		"nothing":           {func(out []*kgo.Record) []*kgo.Record { return out }, 0, 0, 0},
		"a pair is missing": {func(out []*kgo.Record) []*kgo.Record { return without(out, pair) }, 1, 0, 0},
		"a null row is missing": {func(out []*kgo.Record) []*kgo.Record {
			return without(out, slices.IndexFunc(out, func(r *kgo.Record) bool {
				return string(r.Key) == string(lastNull(out).Key) && r.Value != nil
			}))
		}, 1, 0, 0},
		"nothing is there":  {func([]*kgo.Record) []*kgo.Record { return nil }, -1, 0, 0},
		"a pair twice":      {func(out []*kgo.Record) []*kgo.Record { return append(out, clone(out[pair:pair+1])...) }, 0, 0, 1},
		"a null row twice":  {func(out []*kgo.Record) []*kgo.Record { return append(out, clone(out[null:null+1])...) }, 0, 0, 1},
		"a tombstone twice": {func(out []*kgo.Record) []*kgo.Record { return append(out, clone(out[tombstone:tombstone+1])...) }, 0, 0, 1},
		"no tombstone":      {func(out []*kgo.Record) []*kgo.Record { return without(out, tombstone) }, 1, 1, 0},
		"the B of another":  {func(out []*kgo.Record) []*kgo.Record { out[pair].Headers[1] = out[next].Headers[1]; return out }, 1, 1, 0},
		"another's value":   {func(out []*kgo.Record) []*kgo.Record { out[pair].Value = out[next].Value; return out }, 1, 1, 0},
		"another's key":     {func(out []*kgo.Record) []*kgo.Record { out[pair].Key = out[next].Key; return out }, 1, 1, 0},
		"no headers":        {func(out []*kgo.Record) []*kgo.Record { out[pair].Headers = nil; return out }, 1, 1, 0},
		"damaged headers":   {func(out []*kgo.Record) []*kgo.Record { out[pair].Headers[0].Value = []byte("x/0"); return out }, 1, 1, 0},
		"not corrected": {func(out []*kgo.Record) []*kgo.Record {
			out[corrected].Value = []byte(strings.Replace(string(out[corrected].Value), `,"corrected":true`, "", 1))
			return out
		}, 1, -1, 0},
		"of an aborted record": {func(out []*kgo.Record) []*kgo.Record {
			extra := clone(out[pair : pair+1])[0]
			extra.Headers[0].Value = []byte(k.a + "/0/1") // all of the first transaction was aborted
			return append(out, extra)
		}, 0, 1, 0},
		"of another topic": {func(out []*kgo.Record) []*kgo.Record {
			out[pair].Headers[0].Value = []byte("elsewhere/0/1")
			return out
		}, 1, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := *k
			o.out = k.broker.Topic(t, 2)
			o.profile = k.write("out.yaml", strings.Replace(k.read("profile.yaml"), k.out, o.out, 1))
			out := clone(right)
			for _, r := range out {
				r.Topic = o.out
			}
			out = c.change(out)
			k.broker.Produce(t, out...)
			code := 4
			if name == "nothing" {
				code = 0
			}
			r := verified(t, &o, code)
			is := func(got, want int64) bool { return got == want || want < 0 && got > 0 }
			if !is(r.Missing, c.missing) || !is(r.Spurious, c.spurious) || !is(r.Duplicated, c.duplicated) || r.Right != (code == 0) {
				t.Errorf("missing %d, spurious %d, duplicated %d; want %d, %d, %d: %+v", r.Missing, r.Spurious, r.Duplicated, c.missing, c.spurious, c.duplicated, r)
			}
			faults := map[string]bool{}
			for _, e := range r.Examples {
				faults[e.Fault] = true
				if e.Key == "" && name != "no headers" || e.What == "" || e.Fault == "missing" && e.Offset >= 0 {
					t.Errorf("example %+v", e)
				}
			}
			if faults["missing"] != (r.Missing > 0) || faults["spurious"] != (r.Spurious > 0) || faults["duplicated"] != (r.Duplicated > 0) {
				t.Errorf("examples %+v", r.Examples)
			}
			if c.duplicated > 0 && c.missing+c.spurious == 0 {
				if r := verified(t, &o, 0, "--at-least-once"); !r.Right || r.Duplicated != c.duplicated {
					t.Errorf("at least once: %+v", r)
				}
			}
			text := joinbench(o.args("verify")...)
			text.want(t, code)
			if verdict := fmt.Sprintf("%d missing, %d spurious, %d duplicated", r.Missing, r.Spurious, r.Duplicated); code == 4 && !strings.Contains(strings.ReplaceAll(text.out, ",", ""), strings.ReplaceAll(verdict, ",", "")) {
				t.Errorf("want %s in\n%s", verdict, text.out)
			}
		})
	}
}

// lastNull is the last null row, which nothing corrects.
func lastNull(out []*kgo.Record) *kgo.Record {
	for _, r := range slices.Backward(out) {
		if strings.HasSuffix(string(r.Value), `"b":null}`) {
			return r
		}
	}
	return nil
}

// TestKafkaVerifyAborted: results of a transaction that was aborted do not count.
func TestKafkaVerifyAborted(t *testing.T) {
	k := newTopics(t, smallLoad, "")
	loaded(t, k.args("load"))
	out := k.joined(t)
	cl := k.broker.Client(t, kgo.TransactionalID(k.out), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for _, commit := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit, kgo.TryAbort} {
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := cl.ProduceSync(t.Context(), clone(out)...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := cl.EndTransaction(t.Context(), commit); err != nil {
			t.Fatal(err)
		}
	}
	if r := verified(t, k, 0); r.Records != int64(len(out)) {
		t.Errorf("%d records, want %d", r.Records, len(out))
	}
}

// TestKafkaVerifyParts: a part of the workload has a truth of its own.
func TestKafkaVerifyParts(t *testing.T) {
	k := newTopics(t, smallLoad, "type: outer\n")
	loaded(t, k.args("load", "--to", "1234"))
	k.broker.Produce(t, k.joined(t)...)
	verified(t, k, 0, "--to", "1234")
	joinbench(k.args("verify")...).want(t, 2, "--to", "holds")
}

// TestKafkaVerifyWaits: with --wait what comes later counts.
func TestKafkaVerifyWaits(t *testing.T) {
	k := newTopics(t, smallLoad, "")
	loaded(t, k.args("load"))
	out := k.joined(t)
	k.broker.Produce(t, out[:len(out)/2]...)
	verified(t, k, 4)
	done := make(chan outcome)
	go func() { done <- joinbench(k.args("verify", "--wait", "1m")...) }()
	k.broker.Produce(t, out[len(out)/2:]...)
	o := <-done
	o.want(t, 0)
}

// TestKafkaVerifyRefuses: an input that is not the workload is said to be that, and not a wrong join.
func TestKafkaVerifyRefuses(t *testing.T) {
	k := newTopics(t, smallLoad, "")
	joinbench(k.args("verify")...).want(t, 1, "there is no topic "+k.a)
	loaded(t, k.args("load"))
	joinbench(k.args("verify", "--seed", "6")...).want(t, 2, "--seed", "is not record")
	joinbench(k.args("verify", "--partitions", "4")...).want(t, 2, "--partitions", "has 3 partitions")
	joinbench(k.args("verify", "--to", "4000")...).want(t, 2, "--to", "4000")
	joinbench(k.args("verify", "--examples", "-1")...).want(t, 2, "--examples")
	twice := &kgo.Record{Topic: k.b, Partition: 1, Key: []byte("x"), Value: []byte("{}")}
	k.broker.Produce(t, twice)
	joinbench(k.args("verify")...).want(t, 2, "--to", k.b, "partition 1 holds more")
}
