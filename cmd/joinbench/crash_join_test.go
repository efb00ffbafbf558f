package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"joinbench/internal/oracle"
	"joinbench/results"
)

// newJoinWorkload draws two files and a configuration: every other time a small and nasty one of the oracle's, else some
// ten thousand lines of ordinary traffic, in which many buckets are sealed and dropped.
func newJoinWorkload(t *testing.T, rng *rand.Rand) *workload {
	j := &joinWorkload{w: &workload{kind: "join", env: drawCheckpoint(rng, 500, 5_000, 50_000)}}
	var a, b []byte
	batches := []int{1, 5, 20, 40}
	if rng.IntN(2) == 0 {
		j.cfg, a, b, j.format = oracle.RandomWorkload(rng)
	} else {
		j.cfg, j.format, batches = traffic, "kcat", []int{20, 50, 100, 500}
		j.cfg.Cardinality = pick(rng, oracle.OneToOne, oracle.OneToOne, oracle.OneToMany)
		j.cfg.After = pick(rng, 10*time.Minute, time.Hour, 2*time.Hour)
		seconds, partitions := int(j.cfg.After.Seconds()), 1+rng.IntN(3)
		n := min(9_000, seconds*3/2+rng.IntN(seconds*5/2))                       // the ring turns a few times: each bucket costs some milliseconds
		a = trafficOf(rng, "topic-a", n, partitions, 20, pick(rng, 0, 200, 800)) // large ones are spilled
		b = trafficOf(rng, "topic-b", n, partitions, seconds+seconds/50, 0)
	}
	j.topicA, j.topicB = "topic-a", "topic-b"
	if j.format == "value" {
		j.topicA, j.topicB = "a", "b"
	}
	// The batch is no part of what must stay the same. A life whose batches are cut smaller leaves tasks out that had rows in the
	// batch of that number before, whose journal record nothing writes over then.
	batch := [2]int{pick(rng, batches...)}
	batch[1] = batch[0]
	if rng.IntN(2) == 0 {
		batch = [2]int{batches[len(batches)-1], batches[0]}
	}
	var err error
	if j.want, err = oracle.Expect(j.cfg, a, b, j.format); err != nil {
		t.Fatal(err)
	}

	p := newPlace(t)
	conf := joinYAML(rng, j.cfg)
	fileA, fileB := p.writeBytes("a.ndjson", a), ""
	if rng.IntN(4) == 0 { // this one is spooled into the state directory first
		fileB = p.writeBytes("b.zst", zstandard(t, string(b)))
	} else {
		fileB = p.writeBytes("b.ndjson", b)
	}
	args := []string{"join", "-c", p.write("join.yaml", conf), "--a", fileA, "--b", fileB, "--format", j.format, "--progress", "none"}
	for _, name := range []string{"late", "dead", "unmatched"} {
		if rng.IntN(2) == 0 {
			j.sides = append(j.sides, name)
		}
	}
	j.w.about = fmt.Sprintf("join of %d and %d bytes, batches of %d, %v, %v, with\n%s", len(a), len(b), batch, j.sides, j.w.env, conf)
	j.w.command = func(dir string, n int) []string {
		args := append(args[:len(args):len(args)], "--state-dir", filepath.Join(dir, "state"), "--batch", strconv.Itoa(batch[n%2]))
		for _, name := range append(j.sides, "out", "stats") {
			args = append(args, "--"+name, filepath.Join(dir, name))
		}
		return args
	}
	j.w.check = j.check
	return j.w
}

// joinWorkload is what a join is held against.
type joinWorkload struct {
	w              *workload
	cfg            oracle.Config
	format         string
	topicA, topicB string
	sides          []string
	want           *oracle.Expected

	// Of the unbroken run.
	counters *results.Counters
	files    map[string][]string
}

func (j *joinWorkload) check(dir string) wrong {
	var bad wrong
	files := map[string][]string{}
	for _, name := range append(j.sides, "out") {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			files[name], err = oracle.ReadLines(data)
		}
		if err != nil {
			bad.say("%s: %v", name, err)
			return bad
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "stats"))
	c := new(results.Counters)
	if err == nil {
		err = json.Unmarshal(data, c)
	}
	if err != nil {
		bad.say("counters: %v", err)
		return bad
	}
	j.w.spills = c.Buckets.Spills
	if j.files == nil {
		j.files, j.counters = files, c
	}
	// B of several partitions may compete for an A, and which of them wins may depend on the batches (rule 2). Then the oracle
	// alone can say whether the lines are right.
	if j.want.Exact {
		bad.add(compareBags("out", files["out"], j.files["out"]))
		bad.add(compareCounters(c, j.counters))
	}
	if err := j.want.CheckReachable(files["out"]); err != nil && !bad.is() {
		bad.say("out: %v", err)
	}
	for _, name := range j.sides {
		if name != "unmatched" {
			bad.add(compareBags(name, files[name], j.files[name]))
		} else if err := j.want.CheckUnmatched(files["out"], files[name], j.topicA, j.topicB); err != nil {
			bad.say("unmatched: %v", err)
		}
	}
	for side, x := range map[string][2]any{"a": {crashFates(&c.A), j.want.CountersA}, "b": {crashFates(&c.B), j.want.CountersB}} {
		if x[0] != x[1] {
			bad.say("fates of %s\n got %+v\nwant %+v", side, x[0], x[1])
		}
	}
	if n := int64(len(files["out"])); c.Matches != n || c.Outputs != n || c.Probes != c.B.Accepted || c.A.Pending != 0 {
		bad.say("%d lines, and counters %+v", n, c)
	}
	return bad
}

func crashFates(s *results.Side) oracle.Counters {
	return oracle.Counters{Read: s.Read, Accepted: s.Accepted, NullKey: s.NullKey, BadKey: s.BadKey, Malformed: s.Malformed,
		BadTime: s.BadTime, Late: s.Late, LateIdle: s.LateIdle, Redelivered: s.Redelivered}
}

// joinYAML says in the words of join.yaml what the oracle's configuration says in its own, and draws the rest.
func joinYAML(rng *rand.Rand, cfg oracle.Config) string {
	var s strings.Builder
	for _, x := range []struct {
		name string
		side oracle.Side
	}{{"a", cfg.A}, {"b", cfg.B}} {
		fmt.Fprintf(&s, "%s:\n  key: %s\n", x.name, jsonText(x.side.Key))
		if x.side.KeyString {
			s.WriteString("  key_type: string\n")
		}
		if x.side.Time != "" {
			fmt.Fprintf(&s, "  time: %s\n", jsonText(x.side.Time))
		}
		if x.side.TimeUnit != "" {
			fmt.Fprintf(&s, "  time_unit: %s\n", x.side.TimeUnit)
		}
		if len(x.side.Keep) > 0 {
			s.WriteString("  keep:\n")
			for _, k := range x.side.Keep {
				fmt.Fprintf(&s, "    - {%s: %s}\n", jsonText(k.Name), jsonText(k.Path))
			}
		}
	}
	fmt.Fprintf(&s, "window: {before: %dms, after: %dms}\ngrace: %dms\ncardinality: %s\n",
		cfg.Before.Milliseconds(), cfg.After.Milliseconds(), cfg.Grace.Milliseconds(), cfg.Cardinality)
	// As small as rule 13 allows, so that the ring turns often.
	fmt.Fprintf(&s, "max_spread: %dms\n", (cfg.Before+cfg.Grace).Milliseconds()+1)
	fmt.Fprintf(&s, "state: {buckets: %d, filter: %s, memory: %s, tasks: %d, sync: %s}\n", pick(rng, 2, 4, 16), pick(rng, "fuse16", "fuse16", "fuse8", "fuse32", "bloom", "none"),
		pick(rng, "1MiB", "16MiB"), pick(rng, 1, 2, 3), pick(rng, "none", "interval", "batch"))
	return s.String()
}

// jsonText is a value as JSON, which is YAML too.
func jsonText(v any) string {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(buf.String(), "\n")
}

// traffic is a join for trafficOf.
var traffic = oracle.Config{
	A:      oracle.Side{Key: []string{"$.ref"}, Time: "@timestamp", Keep: []oracle.Field{{Name: "id", Path: "$.id"}, {Name: "pad", Path: "$.pad"}}},
	B:      oracle.Side{Key: []string{"$.ref"}, Time: "@timestamp", Keep: []oracle.Field{{Name: "id", Path: "$.id"}, {Name: "n", Path: "$.n"}}},
	Before: 20 * time.Second, Grace: 5 * time.Second,
}

// trafficOf draws the records of a side, one each second, as kcat prints them, with keys that came up at most so many
// seconds ago and so many bytes to keep. A key stays in its partition, so there is one right answer. Some records are late, malformed, without a key
// or time, or there twice.
func trafficOf(rng *rand.Rand, topic string, n, partitions, ago, pad int) []byte {
	var s bytes.Buffer
	offsets := make([]int, partitions)
	line := func(partition, offset int, ts int64, value string) {
		fmt.Fprintf(&s, `{"topic":%q,"partition":%d,"offset":%d,"tstype":"create","ts":%d,"key":null,"payload":%s}`+"\n",
			topic, partition, offset, ts, jsonText(value))
	}
	for i := range n {
		key := "r" + strconv.Itoa(max(0, i-rng.IntN(ago)))
		h := fnv.New32a()
		h.Write([]byte(key))
		p := int(h.Sum32() % uint32(partitions))
		ts := 1_700_000_000_000 + int64(i)*1000 - rng.Int64N(4000)
		value := fmt.Sprintf(`{"id":"%s-%d","ref":%q,"n":%d,"pad":"%0*d"}`, topic, i, key, rng.IntN(1000), pad, i)
		switch rng.IntN(100) {
		case 0:
			ts -= 60_000
		case 1:
			value = value[:len(value)-1]
		case 2:
			value = fmt.Sprintf(`{"id":"%s-%d","ref":null}`, topic, i)
		case 3:
			ts = -1
		case 4:
			line(p, offsets[p], ts, value)
		}
		line(p, offsets[p], ts, value)
		offsets[p]++
	}
	return s.Bytes()
}
