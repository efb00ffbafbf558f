package config

import (
	"bytes"
	"math/rand"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"
)

// small is the least complete configuration.
const small = "a: {key: $.ref}\nb: {key: \"@key\"}\nwindow: {after: 4h}\n"

// sample is the commented example of the manual, word for word.
const sample = `a:
  topic: orders
  key: $.payment_ref        # "@key" = the record key; $.x.y[0]["odd.name"] = a path in the JSON value; a list = first that exists
  key_type: exact           # exact | string
  time: "@timestamp"        # or a path, or "arrival"
  time_unit: ms             # for a path: ms | us | ns | s | rfc3339
  store: projection         # projection | offset | full
  keep: [$.order_id, $.amount]   # output names: last path element, or {name: path}; empty = whole value
  kind: stream              # stream | table | broadcast
b:
  topic: payments
  key: "@key"
  keep: [$.status]
window: {before: 0s, after: 4h}   # or within: 4h
grace: 10s
max_skew: 1h
max_spread: auto            # auto = rule 13
idle_timeout: 30s
idle_advance: 0s            # 0 = off
type: inner                 # inner | left | right | outer
cardinality: one-to-one     # one-to-one | one-to-many | many-to-many
probe: aligned              # aligned | wait | immediate
collect: eager              # eager | timeout | {count: $.line_count} | {marker: {field: $.type, equals: order_complete}}
early: 0s                   # 0 = off; null row after this time, corrected by a later pair (rule 17)
retract: false
# complete_on: {field: $.status, equals: declined, emit: unmatched}   # pair | unmatched | nothing
max_pending: 0              # 0 = no limit
unmatched: drop             # drop | topic (inner joins)
validate: strict            # strict | lenient
state: {dir: ./data, buckets: 16, width: auto, filter: fuse16, memory: 256MiB, tasks: auto, sync: interval}   # filter: fuse8|fuse16|fuse32|bloom|none; tasks auto = cores (profiles: 1)
output: {topic: joined, key: join-key}
topics: {late: "", dead: "", unmatched: ""}
delivery: at-least-once     # at-least-once | exactly-once
kafka: {brokers: [localhost:9092], group: joinbench, instance: "", isolation: read_committed, changelog: auto, repartition: false, tls: {}, sasl: {}}
`

func mustParse(t testing.TB, text string) *Join {
	t.Helper()
	j, err := Parse([]byte(text), "join.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func mustValidate(t testing.TB, text string) *Join {
	t.Helper()
	j := mustParse(t, text)
	if err := j.Validate(); err != nil {
		t.Fatal(err)
	}
	return j
}

// bare is the configuration without the memory of where it came from.
func bare(j *Join) Join {
	c := *j
	c.from = origins{}
	return c
}

func TestSampleMeansTheDefaults(t *testing.T) {
	got := bare(mustValidate(t, sample))
	want := bare(Default())
	want.A.Topic, want.A.Key = "orders", []string{"$.payment_ref"}
	want.A.Keep = []KeepField{{Path: "$.order_id"}, {Path: "$.amount"}}
	want.B.Topic, want.B.Key = "payments", []string{"@key"}
	want.B.Keep = []KeepField{{Path: "$.status"}}
	want.Window.After = 4 * time.Hour
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestEveryKeyReachesItsField(t *testing.T) {
	got := bare(mustValidate(t, `
a: {topic: o, key: ['$.x[0]["odd.name"]', "@key"], key_type: string, time: $.t, time_unit: rfc3339, store: full, keep: [{all: $}, {n: $.m}, $.z], kind: stream}
b: {topic: 010, key: $.y, time: arrival, store: projection, keep: $.one}
window: {before: 1m30s, after: 2h}
grace: 500ms
max_skew: 1d
max_spread: 15m
idle_timeout: 1m
cardinality: one-to-many
unmatched: topic
validate: lenient
state: {dir: /d, buckets: 8, width: 1h, filter: none, memory: 1GiB, tasks: 3, sync: interval}
output: {topic: off}
topics: {late: l, dead: d, unmatched: u}
delivery: exactly-once
kafka:
  brokers: [h:1, h:2]
  group: g
  instance: i
  isolation: read_uncommitted
  changelog: off
  tls: {enabled: true, ca: /ca, cert: /cert, key: /key, server_name: s}
  sasl: {mechanism: scram-sha-512, user: u, password_env: P}
`))
	want := bare(Default())
	want.A = Side{Topic: "o", Key: []string{`$.x[0]["odd.name"]`, "@key"}, KeyType: "string", Time: "$.t",
		TimeUnit: "rfc3339", Store: "full", Kind: "stream",
		Keep: []KeepField{{"all", "$"}, {"n", "$.m"}, {"", "$.z"}}}
	want.B.Topic, want.B.Key, want.B.Time = "010", []string{"$.y"}, "arrival" // text stays as written
	want.B.Keep = []KeepField{{Path: "$.one"}}
	want.Window = Window{90 * time.Second, 2 * time.Hour}
	want.Grace, want.MaxSkew, want.MaxSpread = 500*time.Millisecond, 24*time.Hour, 15*time.Minute
	want.IdleTimeout, want.Cardinality = time.Minute, "one-to-many"
	want.Unmatched, want.Validation = "topic", "lenient"
	want.State = State{Dir: "/d", Buckets: 8, Width: time.Hour, Filter: "none", Memory: 1 << 30, Tasks: 3,
		Sync: "interval"}
	want.Output.Topic = "off" // a word, not a boolean
	want.Topics = Topics{"l", "d", "u"}
	want.Kafka.Brokers, want.Kafka.Group, want.Kafka.Instance = []string{"h:1", "h:2"}, "g", "i"
	want.Kafka.Isolation, want.Kafka.Changelog, want.Delivery = "read_uncommitted", "off", "exactly-once"
	want.Kafka.TLS = TLS{Enabled: "true", CA: "/ca", Cert: "/cert", Key: "/key", ServerName: "s"}
	want.Kafka.SASL = SASL{Mechanism: "scram-sha-512", User: "u", PasswordEnv: "P"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// The later features have their place in the tree already; Parse refuses them, so they are read here without.
func TestLaterKeysReachTheirFields(t *testing.T) {
	for _, c := range []struct {
		key, value string
		field      func(j *Join) any
		want       any
	}{
		{"kafka.repartition", "true", func(j *Join) any { return j.Kafka.Repartition }, true},
	} {
		j := Default()
		err := j.Set(c.key, c.value, "flag")
		if !reflect.DeepEqual(c.field(j), c.want) {
			t.Errorf("%s: %s: got %+v, want %+v", c.key, c.value, c.field(j), c.want)
		}
		if err == nil || !strings.Contains(err.Error(), "not supported by this build yet") {
			t.Errorf("%s: %s: not refused by name: %v", c.key, c.value, err)
		}
		if err := j.Validate(); err == nil || !strings.Contains(err.Error(), c.key+": ") {
			t.Errorf("%s: %s: put into the field directly it passes Validate: %v", c.key, c.value, err)
		}
	}
}

func TestDerivedValues(t *testing.T) {
	const ms, m, h = time.Millisecond, time.Minute, time.Hour
	for _, c := range []struct {
		set           string // over small
		spread, width time.Duration
	}{
		{"", 10 * m, 16*m + 40*time.Second + 667*ms},                                   // 4 h 10 min 10 s / 15 = 1,000,666.7 ms
		{"{window: {before: 4h}}", 8*h + 20*time.Second, (12*h + 30*time.Second) / 15}, // 2 × (before + grace)
		{"{window: {within: 4m50s}}", 10 * m, (15 * m) / 15},                           // at equality 10 min
		{"{window: {within: 4m51s}}", 10*m + 2*time.Second, (15*m + 3*time.Second) / 15},
		{"{max_spread: 11s}", 11 * time.Second, 961400 * ms}, // given: 4 h 21 s / 15
		{"{state: {buckets: 2}}", 10 * m, 4*h + 10*m + 10*time.Second},
		{"{state: {buckets: 64}}", 10 * m, 238254 * ms}, // 15,010,000 / 63 = 238,253.97
		{"{state: {width: 20m}}", 10 * m, 20 * m},
		{"{state: {width: 1000667ms}}", 10 * m, 1000667 * ms}, // the least that passes
		{"{window: {after: 0s}, grace: 0s}", 10 * m, 40 * time.Second},
	} {
		j := mustParse(t, small)
		if c.set != "" {
			setAll(t, j, c.set)
		}
		if err := j.Validate(); err != nil {
			t.Errorf("%s: %v", c.set, err)
		}
		if j.Spread() != c.spread || j.Width() != c.width {
			t.Errorf("%s: spread %v, width %v; want %v, %v", c.set, j.Spread(), j.Width(), c.spread, c.width)
		}
		ring := time.Duration(j.State.Buckets-1) * j.Width()
		if need := max(j.Window.Before, j.Window.After) + j.Grace + j.Spread(); ring < need {
			t.Errorf("%s: the ring holds %v of %v", c.set, ring, need)
		}
	}
	if (&Join{}).Width() != 0 {
		t.Error("no buckets have a width")
	}
}

// setAll sets the keys of a flow mapping, two levels deep at most.
func setAll(t *testing.T, j *Join, text string) {
	t.Helper()
	root, err := readYAML(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range root.fields {
		value := f.value.String()
		if f.value.kind == scalarNode {
			value = f.value.text
		}
		if err := j.Set(f.name, value, "flag"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTaskCount(t *testing.T) {
	j := Default()
	if n := j.TaskCount(8); n != 8 {
		t.Errorf("auto on 8 cores: %d", n)
	}
	if n := j.TaskCount(0); n != 1 {
		t.Errorf("auto on unknown cores: %d", n)
	}
	j.State.Tasks = 3
	if n := j.TaskCount(8); n != 3 {
		t.Errorf("3 on 8 cores: %d", n)
	}
}

// Precedence: default < file < environment < flag, and each value says where it is from.
func TestPrecedenceAndOrigin(t *testing.T) {
	j := mustParse(t, small+"grace: 1s\nidle_timeout: 2s\nstate: {filter: none}\n")
	env := []string{"JOINBENCH_GRACE=3s", "JOINBENCH_STATE_FILTER=fuse8", "HOME=/", "JOINBENCH_MINE=x", "JOINBENCH_A_KEY=[$.p, $.q]",
		"JOINBENCH_KAFKA_BROKERS=h:1, h:2"}
	if err := j.ApplyEnv(env, "JOINBENCH_MINE"); err != nil {
		t.Fatal(err)
	}
	if err := j.Set("state.filter", "fuse16", "flag --filter"); err != nil {
		t.Fatal(err)
	}
	want := map[string][2]string{
		"max_skew":      {"1h", "default"},
		"idle_timeout":  {"2s", "file join.yaml:5"},
		"grace":         {"3s", "env JOINBENCH_GRACE"},
		"state.filter":  {"fuse16", "flag --filter"},
		"window.after":  {"4h", "file join.yaml:3"},
		"a.key":         {"[$.p, $.q]", "env JOINBENCH_A_KEY"},
		"kafka.brokers": {`["h:1", "h:2"]`, "env JOINBENCH_KAFKA_BROKERS"},
	}
	for _, v := range j.Values() {
		if w, ok := want[v.Key]; ok && (v.Text != w[0] || v.Origin != w[1]) {
			t.Errorf("%s: %s # %s, want %s # %s", v.Key, v.Text, v.Origin, w[0], w[1])
		}
		delete(want, v.Key)
	}
	if len(want) != 0 {
		t.Errorf("not among the values: %v", want)
	}
}

func TestWindowOverLayers(t *testing.T) {
	j := mustParse(t, small) // the file gives after
	if err := j.Set("window.within", "1m", "env"); err != nil {
		t.Fatal(err)
	}
	if err := j.Set("window.within", "2m", "env"); err != nil {
		t.Fatalf("a flag given twice: %v", err)
	}
	if err := j.Set("window.after", "3m", "flag --after"); err != nil {
		t.Fatal(err)
	}
	if want := (Window{2 * time.Minute, 3 * time.Minute}); j.Window != want {
		t.Errorf("window %v, want %v", j.Window, want)
	}
	if err := j.Set("window.within", "4m", "flag --within"); err == nil {
		t.Error("within and after as flags pass")
	}
	if err := j.Set("window", "{before: 5m}", "other"); err != nil || j.Window.Before != 5*time.Minute {
		t.Errorf("a group as mapping: %v, %v", j.Window, err)
	}
}

func TestPrintReadsBack(t *testing.T) {
	odd := Default()
	odd.A.Key, odd.B.Key = []string{`$["a\"b\n"]`, "$.é.😀"}, []string{"@key"}
	odd.A.Topic, odd.B.Topic = "null", "\u2028 # not a comment: {[,&*!|>'\"%@`"
	odd.A.Keep = []KeepField{{"~", "$.x"}, {"a: b", `$["x]"]`}}
	odd.Window = Window{1500 * time.Millisecond, 49 * time.Hour}
	odd.State.Width, odd.MaxSpread, odd.State.Memory = 3601001*time.Millisecond, time.Hour, 3<<20+1
	odd.State.Tasks, odd.State.Dir = 7, "  blanks  "
	odd.Kafka.Brokers = []string{"[::1]:9092", "b:1"}
	for _, j := range []*Join{mustParse(t, sample), mustParse(t, small), odd} {
		var out bytes.Buffer
		if err := j.Print(&out); err != nil {
			t.Fatal(err)
		}
		back, err := Parse(out.Bytes(), "printed")
		if err != nil {
			t.Fatalf("%v\n%s", err, &out)
		}
		if got, want := bare(back), bare(j); !sameJoin(got, want) {
			t.Errorf("got  %+v\nwant %+v\n%s", got, want, &out)
		}
	}
}

// Any text survives quoting, alone and inside a list.
func TestQuoteReadsBack(t *testing.T) {
	seed := time.Now().UnixNano()
	rnd := rand.New(rand.NewSource(seed))
	runes := []rune("ab:-?#&*!|>'\"%@`{}[], \n\t\r~$.01\\\x00\x7f\u0085\u2028\ufeffé😀\ufffd")
	for range 3000 {
		text := make([]rune, rnd.Intn(6))
		for i := range text {
			text[i] = runes[rnd.Intn(len(runes))]
		}
		want := string(text)
		root, err := readYAML("a: " + quote(want) + "\nb: [" + quote(want) + ", " + quote(want) + "]\n")
		if err != nil {
			t.Fatalf("seed %d: %q as %s: %v", seed, want, quote(want), err)
		}
		list := root.fields[1].value.items
		for _, n := range []node{root.fields[0].value, list[0], list[1]} {
			if n.kind != scalarNode || n.text != want {
				t.Fatalf("seed %d: %q as %s comes back as %s", seed, want, quote(want), n)
			}
		}
	}
}

func TestFormsReadBack(t *testing.T) {
	seed := time.Now().UnixNano()
	rnd := rand.New(rand.NewSource(seed))
	for range 3000 {
		n := rnd.Int63() >> rnd.Intn(63)
		f := rnd.Float64() / float64(n+1)
		d := time.Duration(n) % maxDuration
		if back, err := parseDuration(formatDuration(d)); err != nil || back != d {
			t.Fatalf("seed %d: %v as %s: %v, %v", seed, d, formatDuration(d), back, err)
		}
		if back, err := parseSize(formatSize(n)); err != nil || back != n {
			t.Fatalf("seed %d: %v as %s: %v, %v", seed, n, formatSize(n), back, err)
		}
		if back, err := parseCount(formatCount(n)); err != nil || back != n {
			t.Fatalf("seed %d: %v as %s: %v, %v", seed, n, formatCount(n), back, err)
		}
		for _, r := range []float64{f, float64(n % 1e12), f * 1e12} {
			if back, err := parseRate(formatRate(r)); err != nil || back != r {
				t.Fatalf("seed %d: %v as %s: %v, %v", seed, r, formatRate(r), back, err)
			}
		}
		if back, err := parseRatio(formatRatio(f)); err != nil || back != f {
			t.Fatalf("seed %d: %v as %s: %v, %v", seed, f, formatRatio(f), back, err)
		}
	}
}

// sameJoin is equality in which an empty list is as good as none.
func sameJoin(a, b Join) bool {
	for _, j := range []*Join{&a, &b} {
		if j.Kafka.SASL.Password != "" { // is not printed
			j.Kafka.SASL.Password = secretText
		}
		for _, s := range []*Side{&j.A, &j.B} {
			if len(s.Keep) == 0 {
				s.Keep = nil
			}
		}
	}
	return reflect.DeepEqual(a, b)
}

func TestPrintShowsOriginAndAuto(t *testing.T) {
	j := mustParse(t, small)
	if err := j.Set("grace", "0s", "flag --grace\nevil: 1"); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := j.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"a:\n",
		"  key: $.ref                             # file join.yaml:1\n",
		"window:\n  before: 0s                             # default\n",
		"grace: 0s                                # flag --grace?evil: 1\n",
		"max_spread: auto                         # default, = 10m\n",
		"  width: auto                            # default, = 16m40s\n",
		"  filter: fuse16                         # default\n",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no %q in\n%s", line, &out)
		}
	}
}

// Nothing of ours is imported but what finds a mistyped name.
func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range strings.Fields(string(out)) {
		if strings.HasPrefix(p, "joinbench/") && p != "joinbench/config" && p != "joinbench/internal/near" {
			t.Errorf("imports %s", p)
		}
	}
}
