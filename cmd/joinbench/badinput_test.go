package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"joinbench/results"
)

// badRecord is a record that must not be joined, or must be as it is, whatever lies around it.
type badRecord struct {
	name  string
	value string // the record's JSON value, damaged
	fate  string // what it is counted as
}

// deep is a value of so many levels in all.
func deep(levels int) string {
	return `{"id":"deep","t":1000,"x":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`
}

// badValues are values in every way in which one can be wrong, and some that only look wrong.
func badValues() []badRecord {
	const malformed, badKey, badTime, nullKey, accepted = "malformed", "bad_key", "bad_time", "null_key", "accepted"
	list := []badRecord{
		{"empty", "", malformed}, {"blank", " \t ", malformed},
		{"cut in an object", `{"id":"x","t":1000`, malformed}, {"cut in a string", `{"id":"x","t":1000,"n":"`, malformed}, {"cut in a name", `{"id":"x","t":1000,"n`, malformed},
		{"trailing text", `{"id":"x","t":1000} x`, malformed}, {"trailing comma", `{"id":"x","t":1000,}`, malformed}, {"two documents", `{"id":"x","t":1000}{"id":"y"}`, malformed},
		{"byte order mark", "\ufeff" + `{"id":"x","t":1000}`, malformed},
		{"invalid UTF-8", "{\"id\":\"x\xff\",\"t\":1000}", malformed}, {"overlong UTF-8", "{\"id\":\"x\",\"t\":1000,\"n\":\"\xc0\x80\"}", malformed}, {"cut UTF-8", "{\"id\":\"x\",\"t\":1000,\"n\":\"\xe2\x82\"}", malformed},
		{"lone surrogate", `{"id":"x","t":1000,"n":"\udc00"}`, malformed}, {"half a pair", `{"id":"x","t":1000,"n":"\ud800\u0041"}`, malformed},
		{"surrogate in a name", `{"id":"x","t":1000,"\ud800":1}`, malformed},
		{"NUL", "{\"id\":\"x\",\"t\":1000}\x00", malformed}, {"NUL alone", "\x00", malformed}, {"NUL in a string", "{\"id\":\"x\x00\",\"t\":1000}", malformed},
		{"control character", "{\"id\":\"x\x1f\",\"t\":1000}", malformed}, {"tab in a string", "{\"id\":\"x\t\",\"t\":1000}", malformed},
		{"bad escape", `{"id":"x","t":1000,"n":"\x"}`, malformed}, {"short escape", `{"id":"x","t":1000,"n":"\u12"}`, malformed},
		{"bad number", `{"id":"x","t":1000,"n":01}`, malformed}, {"plus sign", `{"id":"x","t":1000,"n":+1}`, malformed}, {"NaN", `{"id":"x","t":1000,"n":NaN}`, malformed},
		{"bad literal", `{"id":"x","t":1000,"n":tru}`, malformed}, {"single quotes", `{'id':'x','t':1000}`, malformed}, {"name without quotes", `{id:"x",t:1000}`, malformed},
		{"brackets crossed", `{"id":"x","t":1000,"n":[}]`, malformed}, {"text", "2024-01-02 ERROR connection refused", malformed}, {"binary", "\x89PNG\x1a\x00\x00\x01\xfe\xed", malformed},
		{"too deep", deep(10_001), malformed}, {"unclosed and deep", strings.Repeat("[", 100_000), malformed},
		{"null", "null", badTime}, {"no object", `["x",1000]`, badTime}, {"a string", `"x"`, badTime}, {"a number", "17", badTime},
		{"key object", `{"id":{},"t":1000}`, badKey}, {"key array", `{"id":["x"],"t":1000}`, badKey}, {"key true", `{"id":true,"t":1000}`, badKey}, {"key false", `{"id":false,"t":1000}`, badKey},
		{"bad key and bad time", `{"id":[],"t":-1}`, badKey},
		{"key null", `{"id":null,"t":1000}`, nullKey}, {"no key", `{"t":1000}`, nullKey}, {"no key and a bad time", `{"t":-1}`, badTime},
		{"as deep as may be", deep(10_000), accepted}, {"duplicate names", `{"id":"alone","id":"k1","t":1000,"t":-1}`, accepted},
		{"huge numbers", `{"id":1e999999999,"t":1000,"n":` + strings.Repeat("9", 10_000) + `}`, accepted}, {"unknown fields", `{"id":"other","t":1000,"\u0000":[{},[],-0.0e-0]}`, accepted},
	}
	for _, t := range []string{"null", `"1000"`, `""`, "1000.0", "1e3", "1.5", "-1", "-0.5", "true", "{}", "[1000]", "253402300800000", "9223372036854775807", "9223372036854775808", "1e400", strings.Repeat("9", 10_000)} {
		list = append(list, badRecord{"time " + t[:min(len(t), 30)], `{"id":"x","t":` + t + `}`, badTime})
	}
	return append(list, badRecord{"no time", `{"id":"x"}`, badTime})
}

// badEnvelopes are lines that are none of kcat or rpk. TIME and VALUE stand for the tool's names of those fields.
var badEnvelopes = []badRecord{
	{name: "blank", value: ""}, {name: "white space", value: " \t"}, {name: "text", value: "% Reached end of topic t [0] at offset 7"}, {name: "value alone", value: `{"id":"x","t":1000}`},
	{name: "cut", value: `{"topic":"t","partition":0,"offset":7,"TIME":1000,"VALUE":"{\"id\":`},
	{name: "trailing", value: `{"topic":"t","partition":0,"offset":7,"TIME":1000,"VALUE":"{}"} x`}, {name: "array", value: `[{"topic":"t","partition":0,"offset":7,"TIME":1000,"VALUE":"{}"}]`},
	{name: "byte order mark", value: "\ufeff" + `{"topic":"t","partition":0,"offset":7,"TIME":1000,"VALUE":"{}"}`},
	{name: "NUL", value: "{\"topic\":\"t\",\"partition\":0,\"offset\":7,\"TIME\":1000,\"VALUE\":\"\x00\"}"}, {name: "invalid UTF-8", value: "{\"topic\":\"t\",\"partition\":0,\"offset\":7,\"TIME\":1000,\"VALUE\":\"\xff\"}"},
	{name: "control character", value: "{\"topic\":\"t\",\"partition\":0,\"offset\":7,\"TIME\":1000,\"VALUE\":\"{\t}\"}"}, {name: "lone surrogate", value: `{"topic":"t","partition":0,"offset":7,"TIME":1000,"VALUE":"\ud83d"}`},
	{name: "too deep", value: `{"topic":"t","partition":0,"offset":7,"TIME":1000,"VALUE":"{}","x":` + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001) + `}`},
	{name: "binary", value: "\x00\x01\xfe\xff\x7f"}, {name: "no topic", value: `{"partition":0,"offset":7,"TIME":1000,"VALUE":"{}"}`}, {name: "no partition", value: `{"topic":"t","offset":7,"TIME":1000,"VALUE":"{}"}`},
	{name: "no offset", value: `{"topic":"t","partition":0,"TIME":1000,"VALUE":"{}"}`}, {name: "topic number", value: `{"topic":1,"partition":0,"offset":7,"TIME":1000,"VALUE":"{}"}`},
	{name: "partition -1", value: `{"topic":"t","partition":-1,"offset":7,"TIME":1000,"VALUE":"{}"}`}, {name: "partition 2^31", value: `{"topic":"t","partition":2147483648,"offset":7,"TIME":1000,"VALUE":"{}"}`},
	{name: "partition text", value: `{"topic":"t","partition":"0","offset":7,"TIME":1000,"VALUE":"{}"}`}, {name: "partition 0.0", value: `{"topic":"t","partition":0.0,"offset":7,"TIME":1000,"VALUE":"{}"}`},
	{name: "offset text", value: `{"topic":"t","partition":0,"offset":"7","TIME":1000,"VALUE":"{}"}`}, {name: "offset -1", value: `{"topic":"t","partition":0,"offset":-1,"TIME":1000,"VALUE":"{}"}`},
	{name: "offset 2^63", value: `{"topic":"t","partition":0,"offset":9223372036854775808,"TIME":1000,"VALUE":"{}"}`}, {name: "offset 1e3", value: `{"topic":"t","partition":0,"offset":1e3,"TIME":1000,"VALUE":"{}"}`},
	{name: "time text", value: `{"topic":"t","partition":0,"offset":7,"TIME":"1000","VALUE":"{}"}`}, {name: "time 1.5", value: `{"topic":"t","partition":0,"offset":7,"TIME":1.5,"VALUE":"{}"}`},
	{name: "payload object", value: `{"topic":"t","partition":0,"offset":7,"TIME":1000,"VALUE":{"id":"x"}}`}, {name: "payload number", value: `{"topic":"t","partition":0,"offset":7,"TIME":1000,"VALUE":17}`},
	{name: "key number", value: `{"topic":"t","partition":0,"offset":7,"TIME":1000,"key":7,"VALUE":"{}"}`},
	{name: "first of two is bad", value: `{"topic":"t","partition":0,"offset":7,"TIME":1000,"VALUE":1,"VALUE":"{}"}`},
}

// dead is a line of the dead-letter file.
type dead struct {
	Topic     string  `json:"topic"`
	Partition int     `json:"partition"`
	Offset    int     `json:"offset"`
	Payload   *string `json:"payload"`
	Line      int     `json:"line"`
	Reason    string  `json:"reason"`
}

func (d dead) String() string {
	payload := "null"
	if d.Payload != nil {
		payload = fmt.Sprintf("%.80q of %d bytes", *d.Payload, len(*d.Payload))
	}
	return fmt.Sprintf("%s/%d/%d line %d, %s: %s", d.Topic, d.Partition, d.Offset, d.Line, d.Reason, payload)
}

// inText is what of any bytes can be in a text: each byte that is no UTF-8 becomes U+FFFD.
func inText(s string) *string {
	s = string([]rune(s))
	return &s
}

// badFile is a file of one side that has a good record before and after every bad one, and what must become of it.
type badFile struct {
	text  string
	good  int // records k0, k1 …
	fates map[string]int
	dead  []dead
}

// newBadFile writes all damage in one format.
func newBadFile(format, side string) *badFile {
	f := &badFile{fates: map[string]int{}}
	var text strings.Builder
	line, offset := 0, 0
	topic := side
	put := func(value string) {
		switch format {
		case "kcat":
			fmt.Fprintf(&text, `{"topic":%q,"partition":0,"offset":%d,"tstype":"create","ts":1000,"key":"k","payload":%s}`, topic, offset, quoted(value))
		case "rpk":
			fmt.Fprintf(&text, `{"topic":%q,"key":"k","value":%s,"timestamp":1000,"partition":0,"offset":%d}`, topic, quoted(value), offset)
		default:
			text.WriteString(value)
		}
		text.WriteByte('\n')
		line++
		offset++
	}
	good := func() {
		put(fmt.Sprintf(`{"id":"k%d","t":1000,"side":%q}`, f.good, side))
		f.good++
	}
	good()
	for _, b := range badValues() {
		if b.value != string([]rune(b.value)) && format != "value" {
			continue // no text, so no payload of a line that is JSON: what of it can be is among the envelopes
		}
		f.fates[b.fate]++
		if b.fate != "accepted" && b.fate != "null_key" {
			d := dead{Topic: topic, Offset: offset, Payload: inText(b.value), Reason: b.fate}
			if format == "value" && strings.TrimSpace(b.value) == "" {
				d.Line = line + 1
			}
			f.dead = append(f.dead, d)
		}
		put(b.value)
		good()
	}
	if format != "value" {
		timeName, valueName, tombstone := "ts", "payload", `{"topic":%q,"partition":0,"offset":%d,"ts":1000,"key":"k","payload":null}`
		if format == "rpk" {
			timeName, valueName, tombstone = "timestamp", "value", `{"topic":%q,"partition":0,"offset":%d,"timestamp":1000,"key":"k"}`
		}
		for _, b := range badEnvelopes {
			raw := strings.NewReplacer("TIME", timeName, "VALUE", valueName).Replace(b.value)
			f.fates["malformed"]++
			f.dead = append(f.dead, dead{Topic: topic, Partition: -1, Offset: line, Payload: inText(raw), Line: line + 1, Reason: "malformed"})
			text.WriteString(raw + "\n")
			line++
			good()
		}
		f.fates["malformed"]++
		f.dead = append(f.dead, dead{Topic: topic, Offset: offset, Reason: "malformed"})
		fmt.Fprintf(&text, tombstone+"\n", topic, offset)
		line++
		offset++
		good()
	}
	f.text = text.String()
	return f
}

// goodFile has the partners of the good records, in format value.
func goodFile(n int, side string) string {
	var s strings.Builder
	for i := range n {
		fmt.Fprintf(&s, `{"id":"k%d","t":1000,"side":%q}`+"\n", i, side)
	}
	return s.String()
}

const badConf = `a: {key: $.id, time: $.t, keep: [$.side]}
b: {key: $.id, time: $.t, keep: [$.side]}
window: {within: 1h}
grace: 0s
state: {sync: none, tasks: 2}
`

// fatesOf are the counters of a side by name.
func fatesOf(s results.Side) map[string]int {
	return map[string]int{"accepted": int(s.Accepted), "null_key": int(s.NullKey), "bad_key": int(s.BadKey), "malformed": int(s.Malformed), "bad_time": int(s.BadTime),
		"late": int(s.Late), "late_idle": int(s.LateIdle), "redelivered": int(s.Redelivered)}
}

// TestEveryKindOfBadRecord: each is counted under its fate, is in the dead-letter file with place, reason and what it was, and
// the records around it are joined: on both sides, in each format, plain, compressed and from standard input.
func TestEveryKindOfBadRecord(t *testing.T) {
	for _, side := range []string{"a", "b"} {
		for _, format := range []string{"value", "kcat", "rpk"} {
			t.Run(format+" as "+side, func(t *testing.T) {
				f := newBadFile(format, side)
				p := newPlace(t)
				conf := p.write("join.yaml", badConf)
				other := p.writeBytes("other.ndjson", []byte(goodFile(f.good, map[string]string{"a": "b", "b": "a"}[side])))
				for name, in := range map[string]struct {
					path  string
					stdin string
				}{
					"plain": {p.writeBytes("bad.ndjson", []byte(f.text)), ""},
					"gz":    {p.writeBytes("bad.gz", gzipped(t, f.text)), ""},
					"zst":   {p.writeBytes("bad.zst", zstandard(t, f.text)), ""},
					"stdin": {"-", f.text},
				} {
					a, b := in.path, other
					if side == "b" {
						a, b = b, a
					}
					o := joinbenchWith(strings.NewReader(in.stdin), "join", "-c", conf, "--a", a, "--b", b, "--dead", p.path("dead"), "--late", p.path("late"),
						"--stats", p.path("stats"), "--progress", "none", "--batch", "7")
					o.want(t, 0)
					f.check(t, name, side, p, o)
				}
			})
		}
	}
}

// check compares what a join left with what it must.
func (f *badFile) check(t *testing.T, name, side string, p place, o outcome) {
	t.Helper()
	c := p.stats("stats")
	checkSums(t, &c)
	bad, good := c.A, c.B
	if side == "b" {
		bad, good = good, bad
	}
	for fate, n := range fatesOf(bad) {
		want := f.fates[fate]
		if fate == "accepted" {
			want += f.good
		}
		if n != want {
			t.Errorf("%s: %s = %d, want %d", name, fate, n, want)
		}
	}
	if good.Accepted != int64(f.good) || good.Read != good.Accepted || c.A.Pending != 0 {
		t.Errorf("%s: the other side's counters %+v, %d pending", name, good, c.A.Pending)
	}
	var want []string
	for i := range f.good {
		want = append(want, fmt.Sprintf(`{"key":"k%d","ts":1000,"a":{"side":"a"},"b":{"side":"b"}}`, i))
	}
	wantLines(t, o.lines(t), want...)
	var got []dead
	for _, l := range p.lines("dead") {
		var d dead
		if err := json.Unmarshal([]byte(l), &d); err != nil {
			t.Fatalf("%s: %v: %q", name, err, l)
		}
		got = append(got, d)
	}
	byPlace := func(x, y dead) int {
		return cmp.Or(cmp.Compare(x.Partition, y.Partition), cmp.Compare(x.Offset, y.Offset))
	}
	slices.SortFunc(got, byPlace)
	wanted := slices.SortedFunc(slices.Values(f.dead), byPlace)
	for i := range min(len(got), len(wanted)) {
		g, w := got[i], wanted[i]
		same := (g.Payload == nil) == (w.Payload == nil) && (g.Payload == nil || *g.Payload == *w.Payload)
		if g.Payload, w.Payload = nil, nil; !same || g != w {
			t.Fatalf("%s: dead letter %d\n got %v\nwant %v", name, i, got[i], wanted[i])
		}
	}
	if len(got) != len(wanted) {
		t.Errorf("%s: %d dead letters, want %d", name, len(got), len(wanted))
	}
	if len(p.lines("late")) != 0 {
		t.Errorf("%s: late %q", name, p.lines("late"))
	}
}

// TestBadRFC3339: times as text in every way in which one can be wrong.
func TestBadRFC3339(t *testing.T) {
	conf := strings.ReplaceAll(badConf, "time: $.t", "time: $.t, time_unit: rfc3339")
	var a []string
	for _, s := range []string{`1000`, `"yesterday"`, `""`, `"2024-13-01T00:00:00Z"`, `"2024-02-30T00:00:00Z"`, `"2023-02-29T00:00:00Z"`, `"2024-01-01T24:00:00Z"`, `"2024-01-01T00:60:00Z"`, `"2024-12-31T23:59:60Z"`,
		`"2024-01-01T00:00:00"`, `"2024-01-01 00:00:00Z"`, `"2024-01-01T00:00:00+25:00"`, `"1969-12-31T23:59:59Z"`, `"10000-01-01T00:00:00Z"`, `"9999-12-31T23:59:59-01:00"`, `"2024-01-01T00:00:00.Z"`, `null`} {
		a = append(a, `{"id":"k","t":`+s+`}`)
	}
	good := `{"id":"k","t":"2024-01-01T01:00:00+01:00","side":"x"}`
	p, got := joinFiles(t, conf, append(a, good), []string{good})
	wantLines(t, got, `{"key":"k","ts":1704067200000,"a":{"side":"x"},"b":{"side":"x"}}`)
	if c := p.stats("stats"); c.A.BadTime != int64(len(a)) || len(p.lines("dead")) != len(a) {
		t.Errorf("%d bad times and %d dead letters, want %d", c.A.BadTime, len(p.lines("dead")), len(a))
	}
}

// TestFilesThatAreBadAsAWhole: how a file ends, and that it has nothing good in it, loses nothing and is no error.
func TestFilesThatAreBadAsAWhole(t *testing.T) {
	line := func(k string) string { return `{"id":"` + k + `","t":1000,"side":"s"}` }
	envelope := func(k string, offset int) string {
		return fmt.Sprintf(`{"topic":"t","partition":0,"offset":%d,"ts":1000,"key":null,"payload":%s}`, offset, quoted(line(k)))
	}
	onlyBad := strings.Repeat("x\n\n", 500)
	for name, c := range map[string]struct {
		text                      string
		format                    string
		pairs                     []string
		read, malformed, accepted int64
	}{
		"empty":                         {"", "auto", nil, 0, 0, 0},
		"one line feed":                 {"\n", "auto", nil, 1, 1, 0},
		"last line without an end":      {line("k1") + "\n" + line("k2"), "auto", []string{"k1", "k2"}, 2, 0, 2},
		"last line cut":                 {line("k1") + "\n" + line("k2")[:20], "auto", []string{"k1"}, 2, 1, 1},
		"line ends of Windows":          {line("k1") + "\r\n" + line("k2") + "\r\n\r\n" + line("k3") + "\r", "auto", []string{"k1", "k2", "k3"}, 4, 1, 3},
		"carriage returns alone":        {line("k1") + "\r" + line("k2") + "\r", "auto", nil, 1, 1, 0},
		"only bad lines":                {onlyBad, "auto", nil, 1000, 1000, 0},
		"only bad lines, kcat":          {onlyBad, "kcat", nil, 1000, 1000, 0},
		"only bad lines, rpk":           {onlyBad, "rpk", nil, 1000, 1000, 0},
		"bad first line, then kcat":     {"x\n" + envelope("k1", 0) + "\n", "kcat", []string{"k1"}, 2, 1, 1},
		"byte order mark, then kcat":    {"\ufeff" + envelope("k1", 0) + "\n" + envelope("k2", 1) + "\n", "auto", []string{"k2"}, 2, 1, 1},
		"blank lines, then kcat":        {"\n\n" + envelope("k1", 0) + "\n", "auto", []string{"k1"}, 3, 2, 1},
		"last envelope without an end":  {envelope("k1", 0) + "\n" + envelope("k2", 1), "auto", []string{"k1", "k2"}, 2, 0, 2},
		"last envelope cut":             {envelope("k1", 0) + "\n" + envelope("k2", 1)[:40], "auto", []string{"k1"}, 2, 1, 1},
		"zeros, as a crashed disk has":  {line("k1") + "\n" + strings.Repeat("\x00", 10_000) + "\n" + line("k2") + "\n", "auto", []string{"k1", "k2"}, 3, 1, 2},
		"a record of 16 MiB, kept":      {line("k1") + "\n" + `{"id":"k2","t":1000,"side":"s","x":"` + strings.Repeat("y", 16<<20) + `"}` + "\n" + line("k3") + "\n", "auto", []string{"k1", "k2", "k3"}, 3, 0, 3},
		"a record of 16 MiB, truncated": {line("k1") + "\n" + `{"id":"k2","t":1000,"x":"` + strings.Repeat("y", 16<<20) + "\n" + line("k3") + "\n", "auto", []string{"k1", "k3"}, 3, 1, 2},
	} {
		for _, side := range []string{"a", "b"} {
			t.Run(name+" as "+side, func(t *testing.T) {
				p := newPlace(t)
				files := map[string]string{side: p.writeBytes("bad", []byte(c.text))}
				files[map[string]string{"a": "b", "b": "a"}[side]] = p.write("other", line("k1"), line("k2"), line("k3"))
				args := []string{"join", "-c", p.write("join.yaml", badConf), "--a", files["a"], "--b", files["b"], "--dead", p.path("dead"), "--stats", p.path("stats"), "--progress", "none"}
				if c.format != "auto" { // then the other file has that format too
					var envelopes []string
					for i, k := range []string{"k1", "k2", "k3"} {
						e := envelope(k, i)
						if c.format == "rpk" {
							e = strings.NewReplacer(`"ts"`, `"timestamp"`, `"payload"`, `"value"`).Replace(e)
						}
						envelopes = append(envelopes, e)
					}
					p.write("other", envelopes...)
					args = append(args, "--format", c.format)
				}
				o := joinbench(args...)
				o.want(t, 0)
				var want []string
				for _, k := range c.pairs {
					want = append(want, fmt.Sprintf(`{"key":%q,"ts":1000,"a":{"side":"s"},"b":{"side":"s"}}`, k))
				}
				wantLines(t, o.lines(t), want...)
				counts := p.stats("stats")
				checkSums(t, &counts)
				bad, good := counts.A, counts.B
				if side == "b" {
					bad, good = good, bad
				}
				if bad.Read != c.read || bad.Malformed != c.malformed || bad.Accepted != c.accepted || good.Accepted != 3 || int64(len(p.lines("dead"))) != c.malformed {
					t.Errorf("%d dead letters; counters %+v and %+v", len(p.lines("dead")), bad, good)
				}
			})
		}
	}
}

// TestLineOverTheLimit: a line longer than 64 MiB is malformed; its beginning is in the dead-letter file, and neither it nor
// what follows is lost or read in pieces.
func TestLineOverTheLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("100 MB")
	}
	p := newPlace(t)
	long := append([]byte(`{"id":"k1","t":1000,"x":"`), bytes.Repeat([]byte("y"), 100_000_000)...)
	text := slices.Concat([]byte(`{"id":"k0","t":1000}`+"\n"), long, []byte(`"}`+"\n"+`{"id":"k2","t":1000}`+"\n"))
	other := p.write("other", `{"id":"k0","t":1000}`, `{"id":"k1","t":1000}`, `{"id":"k2","t":1000}`)
	conf := p.write("join.yaml", badConf)
	for name, in := range map[string]struct {
		path  string
		stdin io.Reader
	}{"plain": {p.writeBytes("long", text), strings.NewReader("")}, "stdin": {"-", bytes.NewReader(text)}} {
		o := joinbenchWith(in.stdin, "join", "-c", conf, "--a", in.path, "--b", other, "--dead", p.path("dead"), "--stats", p.path("stats"), "--progress", "none")
		o.want(t, 0)
		if len(o.lines(t)) != 2 {
			t.Errorf("%s: results %q", name, o.out)
		}
		c, lines := p.stats("stats"), p.lines("dead")
		var d dead
		if c.A.Read != 3 || c.A.Malformed != 1 || len(lines) != 1 || json.Unmarshal([]byte(lines[0]), &d) != nil {
			t.Fatalf("%s: %d dead letters, counters %+v", name, len(lines), c.A)
		}
		if d.Offset != 1 || d.Line != 2 || d.Reason != "malformed" || d.Payload == nil || len(*d.Payload) < 1000 || !bytes.HasPrefix(long, []byte(*d.Payload)) {
			t.Errorf("%s: dead letter %v", name, d)
		}
	}
}

// TestInputsThatCannotBeRead: what ends a join with exit code 1, before any result is written: a compressed file that ends early
// or is damaged anywhere is no short file, a directory is no empty one.
func TestInputsThatCannotBeRead(t *testing.T) {
	p := newPlace(t)
	conf, good := p.write("join.yaml", badConf), goodFile(2000, "s")
	other := p.writeBytes("other", []byte(good))
	if err := os.Mkdir(p.path("directory"), 0o755); err != nil {
		t.Fatal(err)
	}
	gz, zst := gzipped(t, good), zstandard(t, good)
	flipped := func(data []byte, at int) []byte {
		data = slices.Clone(data)
		data[at] ^= 0x41
		return data
	}
	for name, c := range map[string]struct {
		path string
		text string
	}{
		"gzip cut in its header":   {p.writeBytes("1.gz", gz[:5]), "cut off"},
		"gzip cut in the middle":   {p.writeBytes("2.gz", gz[:len(gz)/2]), "cut off"},
		"gzip cut in its last sum": {p.writeBytes("3.gz", gz[:len(gz)-1]), "cut off"},
		"gzip without its sums":    {p.writeBytes("4.gz", gz[:len(gz)-8]), "cut off"},
		"gzip with a wrong sum":    {p.writeBytes("5.gz", flipped(gz, len(gz)-6)), "not whole gzip data"},
		"gzip and garbage":         {p.writeBytes("6.gz", append(slices.Clone(gz), "garbage"...)), "gzip"},
		"empty, by name gzip":      {p.writeBytes("7.gz", nil), "cut off"},
		"zstd cut in the middle":   {p.writeBytes("1.zst", zst[:len(zst)/2]), "cut off"},
		"zstd cut at its end":      {p.writeBytes("2.zst", zst[:len(zst)-1]), "cut off"},
		"zstd with a wrong sum":    {p.writeBytes("3.zst", flipped(zst, len(zst)-1)), "not whole zstd data"},
		"text, by name zstd":       {p.writeBytes("4.zst", []byte(good)), "not whole zstd data"},
		"a directory":              {p.path("directory"), "is a directory"},
		"a name with a slash":      {p.path("other") + "/", "other/"},
	} {
		for _, side := range []string{"a", "b"} {
			a, b := c.path, other
			if side == "b" {
				a, b = b, a
			}
			o := joinbench("join", "-c", conf, "--a", a, "--b", b, "--out", p.path("out"), "--stats", p.path("stats"), "--dead", p.path("dead"), "--progress", "none")
			if o.code != 1 || !strings.Contains(o.err, c.path) || !strings.Contains(o.err, c.text) {
				t.Errorf("%s as %s: exit code %d, standard error %s", name, side, o.code, o.err)
			}
			for _, left := range []string{"out", "stats", "dead"} {
				if _, err := os.Stat(p.path(left)); err == nil {
					t.Errorf("%s as %s: it left %s", name, side, left)
				}
			}
		}
	}
}
