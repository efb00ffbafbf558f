package config

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"
)

const profileText = `join:
  a: {key: $.ref}
  b: {key: "@key"}
  window: {after: 4h}
load:
  pending: 5M
  a_rate: 347.25
  b_events: 10M
  b_rate: 100k/s
  match_rate: 1%
  duplicates: 0.05
  late_share: 0
  disorder: 5s
  record_bytes: 1KiB
  key_bytes: 24
  partitions: 4
  ages: [1m, 2h, 4h]
  batch: 8k
  steady: true
  warm: 2M
  require_steady: true
  swap_after: 4
  timed_events: 3M
  keys: zipf:0.99
  b_per_a: 3
  a_per_key: 2
  end_share: 5%
  mark_share: 0.3
  wrong_counts: 0.1
  seed: 18446744073709551615
`

func mustProfile(t testing.TB, text string) *Profile {
	t.Helper()
	p, err := ParseProfile([]byte(text), "p.yaml")
	if err == nil {
		err = p.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestProfile(t *testing.T) {
	p := mustProfile(t, profileText)
	want := Load{Pending: 5e6, ARate: 347.25, BEvents: 10e6, BRate: 100e3, MatchRate: 0.01, Duplicates: 0.05,
		Disorder: 5 * time.Second, RecordBytes: 1024, KeyBytes: 24, Partitions: 4,
		Ages: []time.Duration{time.Minute, 2 * time.Hour, 4 * time.Hour}, Batch: 8000, Seed: 1<<64 - 1,
		Steady: true, Warm: 2e6, RequireSteady: true, SwapAfter: 4, TimedEvents: 3e6, Zipf: 0.99,
		BPerA: 3, APerKey: 2, EndShare: 0.05, MarkShare: 0.3, WrongCounts: 0.1}
	if !reflect.DeepEqual(p.Load, want) {
		t.Errorf("got  %+v\nwant %+v", p.Load, want)
	}
	if p.Join.A.Key[0] != "$.ref" || p.Join.State.Tasks != 1 || p.Join.Window.After != 4*time.Hour {
		t.Errorf("join %+v", p.Join)
	}
	p = mustProfile(t, "join: {a: {key: $.x}, b: {key: $.y}, window: {within: 1m}, state: {tasks: auto}}")
	if !reflect.DeepEqual(p.Load, DefaultLoad()) || p.Join.State.Tasks != 0 {
		t.Errorf("load %+v, tasks %d", p.Load, p.Join.State.Tasks)
	}
}

func TestProfilePrintReadsBack(t *testing.T) {
	p := mustProfile(t, profileText)
	p.Load.MatchRate, p.Load.ARate = 1e-9, 1.0/3
	var out bytes.Buffer
	if err := p.Print(&out); err != nil {
		t.Fatal(err)
	}
	back := mustProfile(t, out.String())
	if !reflect.DeepEqual(back.Load, p.Load) || !sameJoin(bare(back.Join), bare(p.Join)) {
		t.Errorf("got  %+v %+v\nwant %+v %+v\n%s", back.Join, back.Load, p.Join, p.Load, &out)
	}
	for _, line := range []string{"join:\n  a:\n", "    key: $.ref                           # file p.yaml:2\n",
		"load:\n  pending: 5M                            # file p.yaml:6\n", "  b_rate: 100k "} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no %q in\n%s", line, &out)
		}
	}
}

func TestProfileLayers(t *testing.T) {
	p := mustProfile(t, profileText)
	if err := p.ApplyEnv([]string{"JOINBENCH_LOAD_SEED=7", "JOINBENCH_STATE_FILTER=none", "JOINBENCH_LOAD_AGES=1s,2s"}); err != nil {
		t.Fatal(err)
	}
	for _, kv := range [][2]string{{"join.state.tasks", "2"}, {"state.buckets", "32"}, {"load.pending", "1k"}} {
		if err := p.Set(kv[0], kv[1], "flag"); err != nil {
			t.Fatal(err)
		}
	}
	if p.Load.Seed != 7 || p.Join.State.Filter != "none" || p.Join.State.Tasks != 2 || p.Join.State.Buckets != 32 ||
		p.Load.Pending != 1000 || !reflect.DeepEqual(p.Load.Ages, []time.Duration{1e9, 2e9}) {
		t.Errorf("%+v %+v", p.Join, p.Load)
	}
	checkFault(t, "set", p.Set("load.sed", "1", "flag --sed"), `flag --sed: unknown key "load.sed" (did you mean "load.seed"?)`)
	checkFault(t, "set", p.Set("join.grce", "1", "flag"), `flag: unknown key "join.grce" (did you mean "join.grace"?)`)
	checkFault(t, "env", p.ApplyEnv([]string{"JOINBENCH_LOAD_SED=1"}), `(did you mean JOINBENCH_LOAD_SEED?)`)
}

func TestProfileMessages(t *testing.T) {
	const join = "join: {a: {key: $.x}, b: {key: $.y}, window: {after: 4h}}\n"
	for _, c := range []struct{ text, want string }{
		{join + "laod: {}", `p.yaml:2: unknown key "laod" (did you mean "load"?)`},
		{"join: {windw: 1s}", `p.yaml:1: unknown key "join.windw" (did you mean "join.window"?)`},
		{"load: {sed: 1}", `p.yaml:1: unknown key "load.sed" (did you mean "load.seed"?)`},
		{"load: {seed: 1}", `p.yaml: missing key join.window (for example`},
		{"join: x", `p.yaml:1: a configuration is a mapping of a, b, window`},
		{join + "load: x", `p.yaml:2: load is a mapping of pending, a_rate`},
		{join + "load: {seed: -1}", `load.seed: "-1" is not a seed (a whole number from 0`},
		{join + "load: {pending: 10m}", `load.pending: "10m" is not a count (unknown unit "m"`},
		{join + "load: {pending: 1.2345k}", `load.pending: "1.2345k" is not a count (not a whole number`},
		{join + "load: {pending: 1.5k}", ""},
		{join + "load: {pending: -1}", `load.pending: "-1" is not a count (no number at its start`},
		{join + "load: {pending: 1001G}", `load.pending: 1001G is out of range (0 to 1000G)`},
		{join + "load: {b_events: 0}", `load.b_events: 0 is out of range (1 to 1000G)`},
		{join + "load: {b_rate: fast}", `load.b_rate: "fast" is not a rate (events a second, for example 500, 100k or 2M/s)`},
		{join + "load: {b_rate: 100k/m}", `load.b_rate: "100k/m" is not a rate`},
		{join + "load: {match_rate: 2}", `load.match_rate: 2 is out of range (0 to 1)`},
		{join + "load: {match_rate: 101%}", `load.match_rate: 1.01 is out of range (0 to 1)`},
		{join + "load: {match_rate: -0.1}", `load.match_rate: -0.1 is out of range (0 to 1)`},
		{join + "load: {match_rate: .nan}", `load.match_rate: ".nan" is not a share (for example 0.01 or 1%)`},
		{join + "load: {a_rate: 0}", `load.a_rate: 0 must be more than 0 (or auto)`},
		{join + "load: {a_rate: auto, b_rate: auto, key_bytes: auto}", ""},
		{join + "load: {key_bytes: 0}", `load.key_bytes: 0 must be more than 0 (or auto)`},
		{join + "load: {keys: uniform}", ""},
		{join + "load: {keys: zipf}", `load.keys: "zipf" is not a distribution of keys (uniform, or zipf: and an exponent`},
		{join + "load: {keys: zipf:0}", `load.keys: "zipf:0" is not a distribution of keys`},
		{join + "load: {keys: zipf:nan}", `load.keys: "zipf:nan" is not a distribution of keys`},
		{join + "load: {keys: zipf:4.1}", `load.keys: "zipf:4.1" is not a distribution of keys`},
		{join + "load: {disorder: 5}", `load.disorder: 5 needs a unit`},
		{join + "load: {record_bytes: 0}", `load.record_bytes: 0 is out of range (1 to 67108864)`},
		{join + "load: {record_bytes: 1kib}", `load.record_bytes: "1kib" is not a size (unknown unit "kib"`},
		{join + "load: {partitions: 0}", `load.partitions: 0 is out of range (1 to 65536)`},
		{join + "load: {timed_events: 5k}", `p.yaml:2: load.timed_events: a whole run stands for the counts of all, so they must be the same in each: set load.swap_after`},
		{join + "load: {timed_events: 5k, swap_after: 2}", ""},
		{join + "load: {batch: 0}", `load.batch: 0 is out of range (1 to 1048576)`},
		{join + "load: {ages: [1m, 5]}", `p.yaml:2: load.ages: 5 needs a unit`},
		{join + "load: {ages: [1m, 5h]}", `p.yaml:2: load.ages: 5h is beyond window.after = 4h, such a pair does not match`},
		{join + "load: {ages: [-1m]}", `p.yaml:2: load.ages: -1m is beyond window.before = 0s, such a pair does not match`},
		{join + "load: {b_per_a: 0}", `load.b_per_a: 0 is out of range (1 to 64)`},
		{join + "load: {a_per_key: 65}", `load.a_per_key: 65 is out of range (1 to 64)`},
		{join + "load: {end_share: 2}", `load.end_share: 2 is out of range (0 to 1)`},
		{join + "load: {ages: 4h}", ""},
		{join + "load:", ""},
	} {
		p, err := ParseProfile([]byte(c.text), "p.yaml")
		if err == nil {
			err = p.Validate()
		}
		checkFault(t, c.text, err, c.want)
	}
}
