package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"joinbench/results"
)

// halfDocuments are lines of which a lookup of $.id finds k1 to k6 although none is a whole valid document (B59).
var halfDocuments = []string{
	`{"id":"k1","t":1000,"v":1`,
	`{"id":"k2","t":1000} trailing`,
	`{"id":"k3","t":1000,"bad":}`,
	`{"bad":"\x","id":"k4","t":1000}`,
	`{"bad":[1,,2],"id":"k5","t":1000}`,
	`{"id":"k6","t":1000}{"id":"k9"}`,
}

// TestMalformed (B59): strict refuses documents that are not whole, wherever the fault is, on both sides, and names each in the
// dead-letter file; lenient takes their keys, and its counters say unvalidated.
func TestMalformed(t *testing.T) {
	var whole []string
	for i := range halfDocuments {
		whole = append(whole, fmt.Sprintf(`{"id":"k%d","t":1000}`, i+1))
	}
	conf := strings.ReplaceAll(plainConf, "time: $.t}", "time: $.t, keep: [$.id]}")
	for side, files := range map[string][2][]string{"a": {halfDocuments, whole}, "b": {whole, halfDocuments}} {
		t.Run("strict "+side, func(t *testing.T) {
			p, got := joinFiles(t, conf, files[0], files[1])
			wantLines(t, got)
			c := p.stats("stats")
			bad, good := c.A, c.B
			if side == "b" {
				bad, good = c.B, c.A
			}
			if bad.Malformed != 6 || bad.Read != 6 || good.Accepted != 6 || c.A.Pending != 0 || c.Unvalidated {
				t.Errorf("counters %+v", c)
			}
			for i, l := range p.lines("dead") {
				want := fmt.Sprintf(`{"topic":%q,"partition":0,"offset":%d,"tstype":"create","ts":0,"key":null,"payload":%s,"reason":"malformed"}`,
					side, i, quoted(halfDocuments[i]))
				if l != want {
					t.Errorf("dead letter\n got %s\nwant %s", l, want)
				}
			}
		})
		t.Run("lenient "+side, func(t *testing.T) {
			p, got := joinFiles(t, conf+"validate: lenient\n", files[0], files[1])
			var want []string
			for i := range whole {
				want = append(want, fmt.Sprintf(`{"key":"k%d","ts":1000,"a":{"id":"k%[1]d"},"b":{"id":"k%[1]d"}}`, i+1))
			}
			wantLines(t, got, want...)
			if c := p.stats("stats"); c.A.Accepted != 6 || c.B.Accepted != 6 || len(p.lines("dead")) != 0 || !c.Unvalidated {
				t.Errorf("counters %+v", c)
			}
		})
	}

	// Six more that are no document, and four that are, but have no time.
	rest := []string{"", "   ", "null", "[]", `"k1"`, "17", "not json", "\xef\xbb\xbf" + `{"id":"k1","t":1000}`, `{"id":"\ud800","t":1000}`, "{\"id\":\"\xff\",\"t\":1000}"}
	p, got := joinFiles(t, plainConf, rest, whole)
	wantLines(t, got)
	c, dead := p.stats("stats"), p.lines("dead")
	if c.A.Malformed != 6 || c.A.BadTime != 4 || len(dead) != len(rest) {
		t.Errorf("%d malformed, %d bad times, %d dead letters of %d lines", c.A.Malformed, c.A.BadTime, len(dead), len(rest))
	}
	for _, l := range dead {
		if !json.Valid([]byte(l)) {
			t.Errorf("a dead letter is no JSON: %q", l)
		}
	}
	if !strings.Contains(p.read("dead"), `"offset":0,"tstype":"create","ts":0,"key":null,"payload":"","line":1,"reason":"malformed"`) {
		t.Errorf("the blank line is not named: %s", p.read("dead"))
	}
}

func quoted(s string) string {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(buf.String(), "\n")
}

// TestDamagedEnvelopes: lines that are no kcat lines are malformed with their line number and hold nothing up.
func TestDamagedEnvelopes(t *testing.T) {
	good := func(offset int) string {
		return fmt.Sprintf(`{"topic":"t","partition":0,"offset":%d,"ts":1000,"key":"k","payload":"{\"id\":\"k%d\",\"t\":1000}"}`, offset, offset)
	}
	bad := []string{"", "nothing", `{"topic":"t","partition":0,"offset":7`, `{"partition":0,"offset":8,"payload":"{}"}`, `{"topic":"t","partition":-1,"offset":8,"payload":"{}"}`,
		`{"topic":"t","partition":0,"offset":8,"payload":17}`}
	a := []string{good(0)}
	for i, l := range bad {
		a = append(a, l, good(i+1))
	}
	tombstone := `{"topic":"t","partition":0,"offset":90,"ts":1000,"key":"k","payload":null}`
	p, got := joinFiles(t, plainConf, append(a, tombstone), []string{`{"id":"k0","t":1000}`, `{"id":"k6","t":1000}`})
	if len(got) != 2 {
		t.Errorf("results %q", got)
	}
	if c := p.stats("stats"); c.A.Malformed != int64(len(bad)+1) || c.A.Accepted != int64(len(bad)+1) {
		t.Errorf("counters %+v", c.A)
	}
	dead := slices.Sorted(slices.Values(p.lines("dead")))
	var want []string
	for i, l := range bad {
		want = append(want, fmt.Sprintf(`{"topic":"t","partition":-1,"offset":%d,"key":null,"payload":%s,"line":%d,"reason":"malformed"}`, 2*i+1, quoted(l), 2*i+2))
	}
	want = append(want, `{"topic":"t","partition":0,"offset":90,"tstype":"create","ts":1000,"key":"k","payload":null,"reason":"malformed"}`)
	slices.Sort(want)
	if !slices.Equal(dead, want) {
		t.Errorf("dead letters\n got %s\nwant %s", strings.Join(dead, "\n     "), strings.Join(want, "\n     "))
	}
}

// TestBadTimes: a time that is none moves nothing, is named in the dead-letter file and does not hold up what follows (B21).
func TestBadTimes(t *testing.T) {
	times := []string{`-1`, `null`, `1.5`, `"1000"`, `true`, `{}`, `253402300800000`, `9223372036854775807`, `9223372036854775808`, `""`, `-0.5`}
	var lines []string
	for _, x := range times {
		lines = append(lines, `{"id":"k","t":`+x+`}`)
	}
	lines = append(lines, `{"id":"k"}`)
	ok := []string{`{"id":"k","t":0}`, `{"id":"k","t":5}`, `{"id":"last","t":253402300799999}`}
	p, got := joinFiles(t, plainConf, append(slices.Clone(lines), ok...), append(slices.Clone(lines), ok...))
	if len(got) != 3 {
		t.Errorf("results %q", got)
	}
	c := p.stats("stats")
	for _, s := range []results.Side{c.A, c.B} {
		if s.BadTime != int64(len(lines)) || s.Accepted != 3 || s.Late != 0 {
			t.Errorf("counters %+v", s)
		}
	}
	if n := strings.Count(p.read("dead"), `"reason":"bad_time"`); n != 2*len(lines) {
		t.Errorf("%d dead letters with bad_time, want %d", n, 2*len(lines))
	}

	// Record times: ten of -1, one of 0, one of the greatest number.
	var tail []string
	for i := range 12 {
		ts := "-1"
		switch i {
		case 10:
			ts = "0"
		case 11:
			ts = "9223372036854775807"
		}
		tail = append(tail, fmt.Sprintf(`{"topic":"t","partition":0,"offset":%d,"ts":%s,"key":null,"payload":"{\"id\":\"k\"}"}`, i, ts))
	}
	p, _ = joinFiles(t, strings.ReplaceAll(plainConf, ", time: $.t", ""), tail, tail)
	if c := p.stats("stats"); c.A.BadTime != 11 || c.A.Accepted != 1 || c.Matches != 1 {
		t.Errorf("counters %+v", c)
	}
}

// dump is one set of records of a side, to be written in any format.
type dump struct {
	topic   string
	records []dumped
}

type dumped struct {
	partition, offset int
	ts                int64
	payload           string
}

// randomDump draws records over two partitions, one each second, with the keys of a stretch of five minutes. A few are late, malformed or without a key.
func randomDump(rng *rand.Rand, topic string, n int) dump {
	d := dump{topic: topic}
	var offset [2]int
	for i := range n {
		partition := rng.IntN(2)
		ts := 1_700_000_000_000 + int64(i)*1000 - rng.Int64N(2000)
		if rng.IntN(50) == 0 {
			ts -= 60_000
		}
		payload := fmt.Sprintf(`{"id":"%s-%d","ref":"r%d","at":%d}`, topic, i, max(0, i-rng.IntN(300)), ts)
		switch rng.IntN(60) {
		case 0:
			payload = payload[:len(payload)-1]
		case 1:
			payload = fmt.Sprintf(`{"id":"%s-%d","ref":null,"at":%d}`, topic, i, ts)
		}
		d.records = append(d.records, dumped{partition, offset[partition], ts, payload})
		offset[partition]++
	}
	return d
}

func (d dump) in(format string) string {
	var s strings.Builder
	for _, r := range d.records {
		switch format {
		case "kcat":
			fmt.Fprintf(&s, `{"topic":%q,"partition":%d,"offset":%d,"tstype":"create","ts":%d,"key":"x","payload":%s}`, d.topic, r.partition, r.offset, r.ts, quoted(r.payload))
		case "rpk":
			fmt.Fprintf(&s, `{"topic":%q,"key":"x","value":%s,"timestamp":%d,"partition":%d,"offset":%d}`, d.topic, quoted(r.payload), r.ts, r.partition, r.offset)
		default:
			s.WriteString(r.payload)
		}
		s.WriteByte('\n')
	}
	return s.String()
}

const dumpConf = `a: {key: $.ref, time: $.at, keep: [$.id]}
b: {key: $.ref, time: $.at, keep: [$.id]}
window: {before: 1m, after: 10m}
grace: 5s
max_spread: 2m
state: {sync: none, tasks: 2, buckets: 4}
`

// TestFormats: however the same records are written, compressed or handed over, the results are the same.
func TestFormats(t *testing.T) {
	const seed = 3
	rng := rand.New(rand.NewPCG(seed, 0))
	a, b := randomDump(rng, "orders", 1500), randomDump(rng, "payments", 1500)
	p := newPlace(t)
	conf := p.write("join.yaml", dumpConf)
	join := func(stdin, format string, fileA, fileB string, more ...string) ([]string, results.Counters) {
		t.Helper()
		args := append([]string{"join", "-c", conf, "--a", fileA, "--b", fileB, "--format", format, "--stats", p.path("stats"), "--progress", "none"}, more...)
		o := joinbenchWith(strings.NewReader(stdin), args...)
		o.want(t, 0)
		c := p.stats("stats")
		checkSums(t, &c)
		return o.lines(t), c
	}
	for _, format := range []string{"value", "kcat", "rpk"} {
		textA, textB := a.in(format), b.in(format)
		fileA, fileB := p.writeBytes("a."+format, []byte(textA)), p.writeBytes("b."+format, []byte(textB))
		want, counts := join("", format, fileA, fileB)
		if len(want) < 300 || counts.A.Late == 0 || counts.B.Malformed == 0 || counts.B.NullKey == 0 {
			t.Fatalf("seed %d: too little happens: %d results, %+v", seed, len(want), counts)
		}
		gz, zst := p.writeBytes("b.gz", gzipped(t, textB)), p.writeBytes("a.zst", zstandard(t, textA))
		for name, again := range map[string]func() ([]string, results.Counters){
			"auto":    func() ([]string, results.Counters) { return join("", "auto", fileA, fileB) },
			"gz, zst": func() ([]string, results.Counters) { return join("", "auto", zst, gz) },
			"stdin b": func() ([]string, results.Counters) { return join(textB, "auto", fileA, "-") },
			"stdin a": func() ([]string, results.Counters) { return join(textA, format, "-", fileB) },
			"batch 1": func() ([]string, results.Counters) { return join("", format, fileA, fileB, "--batch", "1") },
			"batch":   func() ([]string, results.Counters) { return join("", format, fileA, fileB, "--batch", "100000") },
			"out": func() ([]string, results.Counters) {
				lines, c := join("", format, fileA, fileB, "--out", p.path("out"))
				if len(lines) > 0 {
					t.Error("results on standard output beside --out")
				}
				return p.lines("out"), c
			},
			"out -": func() ([]string, results.Counters) { return join("", format, fileA, fileB, "--out", "-") },
		} {
			got, c := again()
			// B of two partitions compete for an A, and which of them wins may depend on the batches (rule 2).
			if !strings.HasPrefix(name, "batch") && !slices.Equal(got, want) {
				t.Errorf("%s, %s: other results", format, name)
			}
			if c.A != counts.A || c.B != counts.B || c.Probes != counts.Probes {
				t.Errorf("%s, %s: counters\n got %+v\nwant %+v", format, name, c, counts)
			}
		}
		got, _ := join("", "auto", fileA, p.writeBytes("b.mixed", []byte(b.in("value"))))
		if len(got) < 300 {
			t.Errorf("A as %s, B as value: %d results", format, len(got))
		}
	}
	_, c := join("", "kcat", p.path("a.value"), p.path("b.rpk"))
	if c.A.Malformed != 1500 || c.B.Malformed != 1500 {
		t.Errorf("format kcat of other files: %d and %d malformed, want all", c.A.Malformed, c.B.Malformed)
	}
}

// TestSideOutputs: late, dead and unmatched hold each record of theirs once, as lines that can be read again; every other
// accepted record is in a result.
func TestSideOutputs(t *testing.T) {
	const seed = 4
	rng := rand.New(rand.NewPCG(seed, 0))
	a, b := randomDump(rng, "orders", 800), randomDump(rng, "payments", 800)
	for _, format := range []string{"kcat", "rpk", "value"} {
		t.Run(format, func(t *testing.T) {
			p, got := joinFiles(t, dumpConf, strings.Split(strings.TrimSuffix(a.in(format), "\n"), "\n"), strings.Split(strings.TrimSuffix(b.in(format), "\n"), "\n"),
				"--unmatched", newPlace(t).path("unmatched")) // its lines are for TestUnmatchedEqualsOracle of package pipeline
			c := p.stats("stats")
			if int64(len(got)) != c.Outputs || c.UnmatchedB != c.B.Accepted-c.Matches || c.UnmatchedA != c.A.Accepted-c.Matches {
				t.Errorf("results %d of %d; counters %+v", len(got), c.Outputs, c)
			}
			for name, want := range map[string]int64{"late": c.A.Late + c.B.Late, "dead": c.A.Malformed + c.B.Malformed} {
				if n := int64(len(p.lines(name))); n != want || n == 0 {
					t.Errorf("%d lines in %s, want %d", n, name, want)
				}
				// Read again they are records once more, with the fate that fits them. Both sides are in one file, so places
				// come twice, and the second is taken for a redelivery.
				o := joinbench("join", "-c", p.path("join.yaml"), "--a", p.path(name), "--b", os.DevNull, "--format", "kcat", "--stats", p.path("again"), "--progress", "none")
				o.want(t, 0)
				again := p.stats("again")
				if again.A.Read != want || name == "late" && again.A.Malformed != 0 || name == "dead" && again.A.Malformed+again.A.Redelivered != want {
					t.Errorf("%s read again: %+v", name, again.A)
				}
			}
		})
	}
}

// TestStatsAndStateDir: --stats - is standard error; state.dir of the configuration is used when it says so, and --state-dir
// comes before it.
func TestStatsAndStateDir(t *testing.T) {
	p := newPlace(t)
	a := p.write("a.ndjson", `{"id":"k","t":1}`)
	conf := p.write("join.yaml", strings.Replace(plainConf, "{sync", "{dir: "+p.path("from-file")+", sync", 1))
	o := joinbench("join", "-c", conf, "--a", a, "--b", a, "--stats", "-", "--progress", "none")
	o.want(t, 0)
	var c results.Counters
	if err := json.Unmarshal([]byte(o.err), &c); err != nil || c.Matches != 1 {
		t.Errorf("standard error is not the counters (%v): %s", err, o.err)
	}
	if size(p.path("from-file/run.json")) == 0 {
		t.Error("state.dir of the file was not used")
	}
	if err := os.RemoveAll(p.path("from-file")); err != nil {
		t.Fatal(err)
	}
	joinbench("join", "-c", conf, "--a", a, "--b", a, "--state-dir", p.path("from-flag"), "--progress", "none").want(t, 0)
	if size(p.path("from-file/run.json")) != 0 || size(p.path("from-flag/run.json")) == 0 {
		t.Error("--state-dir does not come before state.dir")
	}
}

// TestNoDrainFlag: what waits stays and is reported; the same command again has nothing to add, and one that drains is
// another run.
func TestNoDrainFlag(t *testing.T) {
	p := newPlace(t)
	conf := p.write("join.yaml", plainConf)
	a := p.write("a.ndjson", `{"id":"k1","t":0}`, `{"id":"k2","t":1000}`, `{"id":"k3","t":4000000}`)
	b := p.write("b.ndjson", `{"id":"k1","t":0}`, `{"id":"k2","t":3999999}`)
	args := []string{"join", "-c", conf, "--a", a, "--b", b, "--no-drain", "--state-dir", p.path("state"), "--stats", p.path("stats"), "--progress", "none"}
	o := joinbench(args...)
	o.want(t, 0)
	// A stands at 4,000,000, so B up to 400,000 - before = 1 h ask: the first. The second waits for A that may come.
	first := p.stats("stats")
	if len(o.lines(t)) != 1 || first.B.Read != 1 || first.A.Read != 3 || first.A.Pending != 2 {
		t.Fatalf("results %q, counters %+v", o.out, first)
	}
	o = joinbench(args...)
	o.want(t, 0, "resuming")
	if again := p.stats("stats"); o.out != "" || again.A != first.A || again.B != first.B || again.Outputs != first.Outputs {
		t.Errorf("again: results %q, counters %+v", o.out, again)
	}
	joinbench(slices.DeleteFunc(args, func(s string) bool { return s == "--no-drain" })...).want(t, 1, p.path("state"), "other flags")
}
