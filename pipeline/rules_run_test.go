package pipeline

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"joinbench/config"
	"joinbench/core"
	"joinbench/loadgen"
	"joinbench/results"
)

const rulesProfile = `join:
  a: {topic: orders, key: $.payment_ref, time: $.ts, keep: [$.order_id]}
  b: {topic: payments, key: "@key", keep: [$.status]}
  window: {before: 0s, after: 10m}
  grace: 1s
  state: {buckets: 8, sync: none}
load:
  pending: 3k
  b_events: 20k
  match_rate: 0.2
  late_share: 0.01
  disorder: 400ms
  partitions: 3
  batch: 512
  ages: [30s, 3m, 7m]
`

// rulesRuns are joins by rules that run can hold against the truth; each is keys set over rulesProfile, two words each.
var rulesRuns = map[string]string{
	"inner":                 "",
	"duplicates":            "load.duplicates 0.05 type outer",
	"left":                  "type left",
	"nothing matches":       "type left load.match_rate 0 load.b_rate 20",
	"right":                 "type right cardinality one-to-many load.b_per_a 3",
	"outer":                 "type outer load.b_per_a 2",
	"steady":                "type outer load.steady true load.b_rate 20",
	"many":                  "type outer cardinality many-to-many load.a_per_key 3 load.b_per_a 2 load.duplicates 0.02 load.pending 12k load.ages [2m,5m]",
	"early":                 "type left early 2m",
	"early, retract":        "type outer early 2m retract true cardinality one-to-many load.b_per_a 3",
	"early, many":           "type left early 2m cardinality many-to-many load.a_per_key 2 load.b_per_a 2 load.pending 12k load.ages [1m,5m]",
	"ends with a pair":      "complete_on {field:$.status,equals:declined,emit:pair} load.end_share 0.2 cardinality one-to-many load.b_per_a 3 type outer",
	"ends unmatched":        "complete_on {field:$.status,equals:declined,emit:unmatched} load.end_share 0.2 type left early 2m load.b_per_a 2",
	"ends in silence":       "complete_on {field:$.status,equals:declined,emit:nothing} load.end_share 0.2 type outer cardinality many-to-many load.a_per_key 2",
	"ends of an inner join": "complete_on {field:$.status,equals:declined,emit:unmatched} load.end_share 0.2",
	"timeout":               "collect timeout cardinality one-to-many load.b_per_a 3 type outer",
	"count":                 "collect {count:$.line_count} cardinality one-to-many load.b_per_a 3 load.wrong_counts 0.4 type left early 2m retract true",
	"marker":                "collect {marker:{field:$.status,equals:settled}} cardinality one-to-many load.b_per_a 4 load.mark_share 0.2 type outer",
	"groups that end":       "collect {count:$.line_count} cardinality one-to-many load.b_per_a 4 complete_on {field:$.status,equals:declined,emit:unmatched} load.end_share 0.1 type left",
	"before":                "window.before 8m load.ages [-5m,2m] type outer",
	"wait":                  "probe wait window.before 8m load.ages [-5m,2m] type outer",
	"wait, many":            "probe wait window.before 8m load.ages [-5m,2m] type right cardinality many-to-many load.a_per_key 2 load.b_per_a 2",
	"immediate":             "probe immediate window.before 8m load.ages [-5m,2m] type outer",
}

func rulesRun(t *testing.T, keys string, seed uint64) *config.Profile {
	t.Helper()
	p, err := config.ParseProfile([]byte(rulesProfile), "rules")
	if err != nil {
		t.Fatal(err)
	}
	set := strings.Fields(keys)
	set = append(set, "load.seed", fmt.Sprint(seed))
	for i := 0; i < len(set); i += 2 {
		value := strings.NewReplacer(":$", ": $", "s:", "s: ", "t:", "t: ", ",", ", ").Replace(set[i+1])
		if err := p.Set(set[i], value, "the test"); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	return p
}

func mustBench(t *testing.T, ctx context.Context, bc BenchConfig, h func(*bench)) *results.Record {
	t.Helper()
	bc.CPUOnly = true
	b, err := newBench(bc)
	if err != nil {
		t.Fatal(err)
	}
	h(b)
	rec, err := b.run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.close(); err != nil {
		t.Fatal(err)
	}
	return rec
}

// TestRunOfEachJoin: the benchmark's verdict on our own join, by each of its rules, is that it is right: in one go; ended by time;
// and stopped in its middle at random, and resumed until it has ended.
func TestRunOfEachJoin(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for name, keys := range rulesRuns {
		t.Run(name, func(t *testing.T) {
			bc := BenchConfig{Profile: rulesRun(t, keys, seed), Name: "rules", Summary: true}
			whole := mustBench(t, t.Context(), bc, func(*bench) {})
			checkRun(t, "whole", whole, true)

			bc.Duration = time.Millisecond
			checkRun(t, "ended by time", mustBench(t, t.Context(), bc, func(*bench) {}), true)

			bc.Duration, bc.Dir = 0, t.TempDir()
			for lives := 0; ; lives++ {
				ctx, cancel := context.WithCancel(t.Context())
				batches := rnd.IntN(12) + 1
				rec := mustBench(t, ctx, bc, func(b *bench) {
					b.hooks.roll = 500 * pairBytes
					b.hooks.sink = beforeResults(func() {
						if batches--; batches == 0 {
							cancel()
						}
					})
				})
				cancel()
				if checkRun(t, fmt.Sprint("life ", lives), rec, rec.Run.Complete); rec.Run.Complete {
					if rec.Join.ExpectedMatches != whole.Join.ExpectedMatches || rec.Join.ExpectedUnmatchedA != whole.Join.ExpectedUnmatchedA ||
						rec.Join.Outputs != whole.Join.Outputs && rec.Join.Missed+whole.Join.Missed == 0 {
						t.Errorf("resumed %+v, %d outputs; whole %+v, %d", rec.Join.Truth, rec.Join.Outputs, whole.Join.Truth, whole.Join.Outputs)
					}
					if lives == 0 {
						t.Error("it was never stopped")
					}
					break
				}
				bc.Resume = true
			}
		})
	}
}

func checkRun(t *testing.T, what string, rec *results.Record, complete bool) {
	t.Helper()
	tr := rec.Join.Truth
	if tr.Missing+tr.Spurious+tr.Duplicated != 0 || rec.Run.Complete != complete {
		t.Fatalf("%s: complete %v, truth %+v, verdict %+v", what, rec.Run.Complete, tr, rec.Verdict)
	}
	if complete && tr.ExpectedMatches+tr.ExpectedUnmatchedA == 0 {
		t.Fatalf("%s: nothing was expected: %+v", what, tr)
	}
}

// TestRunNoticesWrongRules: the benchmark is told that the join has one rule while it has another: the truth notices.
func TestRunNoticesWrongRules(t *testing.T) {
	for name, wrong := range map[string]struct {
		keys   string
		change func(c *core.Config)
	}{
		"inner for left":     {"type left", func(c *core.Config) { c.WantA = false }},
		"inner for right":    {"type right", func(c *core.Config) { c.WantB = false }},
		"early too late":     {"type left early 2m", func(c *core.Config) { c.Early += 120_000 }},
		"no end":             {rulesRuns["ends with a pair"], func(c *core.Config) { c.CompleteOn = core.EndNever }},
		"a shorter window":   {"", func(c *core.Config) { c.After -= 200_000 }},
		"one-to-one for n-m": {rulesRuns["many"], func(c *core.Config) { c.Cardinality = core.OneToOne }},
	} {
		t.Run(name, func(t *testing.T) {
			p := rulesRun(t, wrong.keys, 7)
			rec := mustBench(t, t.Context(), BenchConfig{Profile: p, Name: "rules", Summary: true}, func(b *bench) {
				right := b.c.core
				b.hooks.rules = &right
				wrong.change(&b.c.core)
			})
			if rec.Verdict.Status != results.StatusIncorrect || rec.Verdict.ExitCode != results.ExitIncorrect {
				t.Errorf("verdict %+v, truth %+v", rec.Verdict, rec.Join.Truth)
			}
		})
	}
}

// TestRunRefusesWhatNobodyKnows: a workload without one truth under the join's rules, and words that records do not say.
func TestRunRefusesWhatNobodyKnows(t *testing.T) {
	for keys, want := range map[string]string{
		"complete_on {field:$.status,equals:declined,emit:pair}":                           "set end_share",
		"complete_on {field:$.status,equals:refused,emit:pair} load.end_share 0.1":         "equals: declined}, not by {field: $.status, equals: refused}",
		"collect {count:$.n} cardinality one-to-many":                                      "have their count in $.line_count, not in $.n",
		"collect {marker:{field:$.x,equals:settled}} cardinality one-to-many":              "equals: settled}, not by {field: $.x",
		"collect timeout cardinality one-to-many load.duplicates 0.01":                     "with collect set duplicates 0",
		"probe wait load.duplicates 0.01":                                                  "set duplicates 0",
		"load.a_per_key 2":                                                                 "many-to-many",
		"load.steady true load.b_per_a 2":                                                  "a steady start goes with one A and one B a key",
		"type left early 2m load.keys zipf:1 load.duplicates 0.1 cardinality many-to-many": "hot duplicates",
	} {
		_, err := newBench(BenchConfig{Profile: rulesRun(t, keys, 7), Name: "rules"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v does not say %q", keys, err, want)
		}
	}
	_, err := newBench(BenchConfig{Profile: rulesRun(t, "type left", 7), Name: "rules", Pace: &Pace{1000, Uniform, Drop}})
	if err == nil || !strings.Contains(err.Error(), "--catch-up queue") {
		t.Errorf("dropping B of a left join: %v", err)
	}
}

// TestLinesSurviveTheirFile: lines of all kinds are read as they were written, and damaged ones are refused.
func TestLinesSurviveTheirFile(t *testing.T) {
	t.Parallel()
	lines := []resultLine{
		{kind: linePair, j: 5, i: 7}, {kind: linePair, j: -1, i: -1, says: loadgen.Corrects | loadgen.Retracts},
		{kind: lineNullA, i: 1 << 37}, {kind: lineNullB, j: 1<<38 - 1},
		{kind: lineGroup, i: 3, group: loadgen.Group{A: 3, B: []int64{9}, Wanted: 999_999}},
		{kind: lineGroup, i: -1, says: loadgen.Corrects, group: loadgen.Group{A: -1, B: []int64{4, -1, 6}, Complete: true, Says: loadgen.Corrects}},
		{kind: lineGroup, i: 8, group: loadgen.Group{A: 8, B: []int64{1, 2}}},
	}
	var text []byte
	for i := range lines {
		text = lines[i].append(text)
	}
	checkLines(t, text, lines)
}

func checkLines(t *testing.T, text []byte, lines []resultLine) {
	t.Helper()
	in := bufio.NewReader(bytes.NewReader(text))
	for i := range lines {
		l, _, err := readLine(in, nil)
		if err != nil || fmt.Sprintf("%+v", l) != fmt.Sprintf("%+v", lines[i]) {
			t.Errorf("line %d: %+v became %+v, %v", i, lines[i], l, err)
		}
	}
	if _, _, err := readLine(in, nil); err != io.EOF {
		t.Errorf("behind the last: %v", err)
	}
	cut := bufio.NewReader(bytes.NewReader(text[:len(text)-pairBytes])) // within the last group
	var err error
	for err == nil {
		_, _, err = readLine(cut, nil)
	}
	if err != io.ErrUnexpectedEOF {
		t.Errorf("a group without its last B: %v", err)
	}
	text[7] = byte(lineKinds) << 4
	if _, _, err := readLine(bufio.NewReader(bytes.NewReader(text)), nil); err != errLines {
		t.Errorf("a kind that there is not: %v", err)
	}
}
