package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"joinbench/results"
)

// smallProfile is a run of some hundred milliseconds in which buckets are sealed and dropped.
const smallProfile = `join:
  a: {topic: orders, key: $.payment_ref, time: $.ts, keep: [$.order_id]}
  b: {topic: payments, key: "@key", keep: [$.status]}
  window: {before: 0s, after: 10m}
  grace: 1s
  state: {buckets: 8, sync: none}
load:
  pending: 8k
  b_events: 24k
  match_rate: 0.05
  duplicates: 0.01
  late_share: 0.002
  disorder: 400ms
  partitions: 3
  batch: 256
  seed: 5
`

// bench calls run with a profile and reads the record it leaves.
func (p place) bench(code int, args ...string) *results.Record {
	p.t.Helper()
	o := joinbench(append([]string{"run", "--config", p.path("small.yaml"), "--out", p.path("r.json"), "--progress", "none"}, args...)...)
	o.want(p.t, code)
	return p.record()
}

func (p place) record() *results.Record {
	p.t.Helper()
	rec, err := results.Read(p.path("r.json"))
	if err != nil {
		p.t.Fatal(err)
	}
	return rec
}

func newBenchPlace(t *testing.T) place {
	p := newPlace(t)
	p.write("small.yaml", smallProfile)
	return p
}

// checkRight: the record says that the join was right, and is whole.
func checkRight(t *testing.T, what string, rec *results.Record) {
	t.Helper()
	j := &rec.Join
	if !rec.Run.Complete || rec.Verdict.Status != results.StatusOK || rec.Verdict.ExitCode != 0 {
		t.Errorf("%s: complete %v, verdict %+v", what, rec.Run.Complete, rec.Verdict)
	}
	if j.Truth == nil || j.Missing+j.Spurious+j.Duplicated+j.Filter.FalseNegatives != 0 {
		t.Fatalf("%s: truth %+v, false negatives %d", what, j.Truth, j.Filter.FalseNegatives)
	}
	if j.Matches != j.ExpectedMatches || j.Matches == 0 {
		t.Errorf("%s: %d pairs, the generator knows of %d", what, j.Matches, j.ExpectedMatches)
	}
	c := j.Counters
	checkSums(t, &c)
}

// TestRunRecord: a run ends well, its record has every field that the documents promise, and the report can be rendered
// again from it.
func TestRunRecord(t *testing.T) {
	p := newBenchPlace(t)
	o := joinbench("run", "--config", p.path("small.yaml"), "--out", p.path("r.json"), "--label", "here", "--progress", "json")
	o.want(t, 0)
	rec := p.record()
	checkRight(t, "run", rec)
	if rec.Run.Label != "here" || rec.Run.Profile != "small" || rec.Run.Seed != 5 || rec.Run.Tasks != 1 {
		t.Errorf("run %+v", rec.Run)
	}
	if rec.Join.B.Read != 24_000 || rec.Join.A.Late == 0 || rec.Join.B.Late == 0 || rec.Join.A.Pending != 0 {
		t.Errorf("counters %+v", rec.Join.Counters)
	}
	var tree map[string]any
	if err := json.Unmarshal([]byte(p.read("r.json")), &tree); err != nil {
		t.Fatal(err)
	}
	for _, path := range strings.Fields(`schema schema_version tool.version tool.go tool.rocksdb tool.json_engine run.id run.started_at run.ended_at
		run.argv run.workload_fingerprint run.config run.config_origin environment.cpu environment.cores phases load.mode load.achieved_per_s
		load.generator.ceiling_per_s join.a.read join.a.accepted join.a.null_key join.a.bad_key join.a.malformed join.a.bad_time join.a.late
		join.a.late_idle join.a.redelivered join.a.behind join.a.pending join.b.read join.outputs join.matches join.unmatched_a join.unmatched_b
		join.early join.corrected join.retracted join.oversize join.probes join.lookups join.lookups_per_probe join.lookup_reduction
		join.filter.kind join.filter.bits_per_key join.filter.absent_queries join.filter.false_positives join.filter.stale_positives
		join.filter.fp_ratio join.filter.fp_ci95 join.filter.fp_predicted join.filter.fp_per_filter join.filter.false_negatives join.filter.build_ns
		join.filter.build_failed join.buckets.open join.buckets.sealed join.buckets.sealed_total join.buckets.dropped_total
		join.buckets.drop_max_ns join.missing join.spurious join.duplicated join.match_ratio join.expected_match_ratio storage.cf_drops
		cost.ns_per_b cost.ns_per_a cost.background_ns_per_a cost.unit_ns cost.record_ns_per_b cost.generator_ns_per_b cost.rss_max_bytes
		cost.rss_file_max_bytes cost.go_heap_bytes cost.rocksdb_bytes cost.disk_max_bytes cost.cpu_s_per_million cost.allocs_per_probe
		cost.arena_bytes cost.filter_bytes cost.index_bytes steady.max_gap_ns steady.max_engine_ns
		intervals drops verdict.status verdict.exit_code verdict.reasons`) {
		var at any = tree
		for _, name := range strings.Split(path, ".") {
			m, _ := at.(map[string]any)
			if at = m[name]; at == nil {
				t.Errorf("the record lacks %s", path)
				break
			}
		}
	}
	if rec.Recovery != nil {
		t.Errorf("a run that was not resumed has recovered: %+v", rec.Recovery)
	}
	for _, name := range []string{"vs_arm"} { // known by name, measured later
		if _, ok := tree["join"].(map[string]any)[name]; !ok {
			t.Errorf("the record lacks join.%s", name)
		}
	}
	total := int64(0)
	for _, phase := range rec.Phases {
		total += phase.Records
	}
	if total != rec.Join.A.Read+rec.Join.B.Read {
		t.Errorf("phases %+v hold %d records, %d were read", rec.Phases, total, rec.Join.A.Read+rec.Join.B.Read)
	}

	for format, between := range map[string]string{"text": "\n", "json": ""} {
		r := joinbench("report", "-f", format, p.path("r.json"), p.path("r.json"))
		r.want(t, 0)
		one := r.out[:(len(r.out)-len(between))/2]
		if r.out != one+between+one || len(one) == 0 {
			t.Errorf("%s: two reports of one record differ", format)
		}
		if format == "text" && one != o.out {
			t.Errorf("report prints\n%s\nand run printed\n%s", one, o.out)
		}
		if format == "json" && one != p.read("r.json") {
			t.Error("report -f json is not the record")
		}
	}
	if !strings.HasPrefix(o.out, "OK") || strings.Contains(o.out, "\x1b[") {
		t.Errorf("report: %s", o.out)
	}
	for line := range strings.Lines(o.err) {
		if !json.Valid([]byte(line)) {
			t.Errorf("--progress json printed %q", line)
		}
	}
	if o := joinbench("run", "--config", p.path("small.yaml"), "--out", p.path("r2.json"), "--json", "--progress", "none"); o.out != p.read("r2.json") {
		t.Error("--json does not print the record")
	}
}

// TestRunWithoutOut: the record goes to results/, and standard error says where.
func TestRunWithoutOut(t *testing.T) {
	p := newBenchPlace(t)
	t.Chdir(p.dir)
	if err := os.Mkdir("tmp", 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", p.path("tmp"))
	o := joinbench("run", "--config", "small.yaml", "--progress", "none")
	o.want(t, 0, "record: results/small-")
	path := strings.TrimSpace(strings.TrimPrefix(o.err, "record: "))
	if rec, err := results.Read(path); err != nil || rec.Run.Profile != "small" {
		t.Errorf("%s: %v", path, err)
	}
	if left, err := os.ReadDir(p.path("tmp")); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v %v", left, err)
	}
}

// TestRunVariants: filters, summary and tasks cost lookups or save them, and never change a pair.
func TestRunVariants(t *testing.T) {
	p := newBenchPlace(t)
	lookups := map[string]int64{}
	var matches int64
	for _, filter := range []string{"none", "fuse8", "fuse16"} {
		for _, summary := range []string{"on", "off"} {
			for tasks := 1; tasks <= 3; tasks++ {
				if filter == "none" && summary == "off" || filter == "fuse16" && tasks == 2 {
					continue // nothing new
				}
				name := fmt.Sprintf("%s, summary %s, %d tasks", filter, summary, tasks)
				rec := p.bench(0, "--filter", filter, "--summary", summary, "--tasks", fmt.Sprint(tasks))
				checkRight(t, name, rec)
				if matches == 0 {
					matches = rec.Join.Matches
				}
				if rec.Join.Matches != matches || rec.Run.Tasks != tasks || rec.Join.Filter.Kind != filter || rec.Join.Filter.Summary != (summary == "on") {
					t.Errorf("%s: %d pairs, want %d; %+v %+v", name, rec.Join.Matches, matches, rec.Join.Filter, rec.Run)
				}
				lookups[filter] = max(lookups[filter], rec.Join.Lookups)
			}
		}
	}
	if lookups["fuse16"]*5 > lookups["none"] || lookups["fuse8"]*5 > lookups["none"] {
		t.Errorf("lookups by filter: %v; the filters save too little", lookups)
	}
}

// TestRunSeed: the seed decides the workload, and nothing else does.
func TestRunSeed(t *testing.T) {
	p := newBenchPlace(t)
	first, again := p.bench(0), p.bench(0, "--tasks", "2")
	other := p.bench(0, "--seed", "6")
	if a, b := first.Run.WorkloadFingerprint, again.Run.WorkloadFingerprint; a != b {
		t.Errorf("the same workload has fingerprints %s and %s", a, b)
	}
	if other.Run.WorkloadFingerprint == first.Run.WorkloadFingerprint || other.Run.Seed != 6 {
		t.Errorf("seed 6 has the fingerprint of seed 5, or is not in the record: %+v", other.Run)
	}
	if first.Join.A != again.Join.A || first.Join.B != again.Join.B || first.Join.Matches != again.Join.Matches {
		t.Errorf("the same workload counts\n%+v\n%+v", first.Join.Counters, again.Join.Counters)
	}
	checkRight(t, "seed 6", other)
}

// TestRunDuration: --duration ends the measured phase, and what was sent until then is joined and judged as a whole.
func TestRunDuration(t *testing.T) {
	p := newPlace(t)
	p.write("small.yaml", strings.Replace(smallProfile, "b_events: 24k", "b_events: 600k", 1))
	for _, tasks := range []string{"1", "2"} {
		rec := p.bench(0, "--duration", "50ms", "--tasks", tasks)
		checkRight(t, "duration", rec)
		if n := rec.Join.B.Read; n < 1000 || n == 600_000 {
			t.Errorf("%d B in 50 ms", n)
		}
		for _, phase := range rec.Phases {
			if d := time.Duration(phase.DurationNs); phase.Name == "measure" && (d < 50*time.Millisecond || d > 5*time.Second) {
				t.Errorf("measured for %v", d)
			}
		}
	}
}

// TestRunGoesOn: with --duration the streams go on behind the profile's records, also when the run is killed in between and
// resumed, and the whole is right. A run without an end of its own is not finished without a duration.
func TestRunGoesOn(t *testing.T) {
	const bEvents = 3_000
	p := newPlace(t)
	p.write("small.yaml", strings.Replace(smallProfile, "b_events: 24k", fmt.Sprintf("b_events: %d", bEvents), 1))
	whole := p.bench(0)
	rec := p.bench(0, "--duration", "100ms", "--tasks", "2")
	checkRight(t, "duration", rec)
	if rec.Join.B.Read < 2*bEvents || rec.Join.Buckets.DroppedTotal <= whole.Join.Buckets.DroppedTotal {
		t.Errorf("%d B read, %d buckets dropped", rec.Join.B.Read, rec.Join.Buckets.DroppedTotal)
	}
	if rec.Run.WorkloadFingerprint != whole.Run.WorkloadFingerprint {
		t.Error("the same streams have another fingerprint")
	}

	run := startProgram(t, nil, "run", "--config", p.path("small.yaml"), "--dir", p.path("data"), "--out", p.path("r.json"), "--duration", "10m", "--progress", "none")
	waitFor(t, "pairs behind the profile's records", func() bool { return size(p.path("data/pairs.bin")) > 2*16*whole.Join.Matches })
	run.signal(syscall.SIGKILL)
	run.end()
	joinbench("run", "--config", p.path("small.yaml"), "--dir", p.path("data"), "--resume").want(t, 1, "add --duration")
	rec = p.bench(0, "--dir", p.path("data"), "--resume", "--duration", "50ms")
	checkRight(t, "resumed", rec)
	if rec.Join.Matches <= 2*whole.Join.Matches {
		t.Errorf("%d pairs", rec.Join.Matches)
	}
	checkRecovery(t, rec)
}

// checkRecovery: the record of a run that was resumed while B asked says how it came back.
func checkRecovery(t *testing.T, rec *results.Record) {
	t.Helper()
	r := rec.Recovery
	if r == nil || r.ReadyNs == nil || r.LookupsPerProbeBefore == nil {
		t.Fatalf("recovery %+v", r)
	}
	if r.OpenNs <= 0 || r.OpenedNs < r.OpenNs || r.EngineNs < r.OpenedNs || *r.ReadyNs <= r.EngineNs || *r.ReadyAfterOpenNs != *r.ReadyNs-r.OpenedNs ||
		r.Pending <= 0 || *r.LookupsPerProbeBefore <= 0 {
		t.Errorf("recovery %+v", r)
	}
}

// TestResumedRunEndsWhereItWould: --duration does not make a run go on that had an end; and one that was killed while it
// drained ends where it was cut, whatever duration it is resumed with.
func TestResumedRunEndsWhereItWould(t *testing.T) {
	p := newBenchPlace(t)
	args := []string{"run", "--config", p.path("small.yaml"), "--dir", p.path("data"), "--out", p.path("r.json"), "--progress", "none"}
	run := startProgram(t, nil, args...)
	waitFor(t, "pairs", func() bool { return size(p.path("data/pairs.bin")) > 100 })
	run.signal(syscall.SIGKILL)
	if run.end().code != 0 {
		rec := p.bench(0, "--dir", p.path("data"), "--resume", "--duration", "10m")
		checkRight(t, "resumed", rec)
		if rec.Join.B.Read != 24_000 {
			t.Errorf("%d B read", rec.Join.B.Read)
		}
	}

	wasCut := func() bool {
		mark, _ := os.ReadFile(p.path("data/run.json"))
		return strings.Contains(string(mark), "Cut")
	}
	for try := 0; ; try++ {
		if err := os.RemoveAll(p.path("data")); err != nil { // the last run's cut
			t.Fatal(err)
		}
		run = startProgram(t, nil, append(args, "--duration", "30ms")...)
		waitFor(t, "the cut", wasCut)
		run.signal(syscall.SIGKILL)
		if run.end().code != 0 {
			break
		}
		if try == 20 {
			t.Skip("it always was faster")
		}
	}
	var mark struct{ Cut []int64 }
	if err := json.Unmarshal([]byte(p.read("data/run.json")), &mark); err != nil || len(mark.Cut) != 2 {
		t.Fatalf("%+v %v", mark, err)
	}
	rec := p.bench(0, "--dir", p.path("data"), "--resume", "--duration", "10m")
	checkRight(t, "killed while it drained", rec)
	if rec.Join.A.Read != mark.Cut[0] || rec.Join.B.Read != mark.Cut[1] {
		t.Errorf("read %d A and %d B, cut at %v", rec.Join.A.Read, rec.Join.B.Read, mark.Cut)
	}
}

// TestInterruptedRun: SIGINT ends a run with 130 and SIGTERM with 143, the record is there and says so, and --resume
// finishes the run.
func TestInterruptedRun(t *testing.T) {
	for s, code := range map[syscall.Signal]int{syscall.SIGINT: results.ExitInterrupted, syscall.SIGTERM: results.ExitTerminated} {
		t.Run(s.String(), func(t *testing.T) {
			p := newPlace(t)
			p.write("small.yaml", strings.Replace(smallProfile, "b_events: 24k", "b_events: 200k", 1))
			run := startProgram(t, nil, "run", "--config", p.path("small.yaml"), "--out", p.path("r.json"), "--dir", p.path("data"), "--progress", "none")
			waitFor(t, "pairs", func() bool { return size(p.path("data/pairs.bin")) > 1000 })
			run.signal(s)
			run.end().want(t, code)
			rec := p.record()
			if rec.Run.Complete || rec.Verdict.Status != results.StatusInterrupted || rec.Verdict.ExitCode != code {
				t.Errorf("complete %v, verdict %+v", rec.Run.Complete, rec.Verdict)
			}
			if rec.Join.Truth == nil || rec.Join.Missing+rec.Join.Spurious+rec.Join.Duplicated != 0 || rec.Join.Matches == 0 {
				t.Errorf("what was joined until then: %+v", rec.Join)
			}
			joinbench("run", "--config", p.path("small.yaml"), "--dir", p.path("data")).want(t, 1, "--resume")
			joinbench("run", "--config", p.path("small.yaml"), "--dir", p.path("data"), "--resume", "--seed", "6").want(t, 1, "another workload")
			half := rec.Join.B.Read
			rec = p.bench(0, "--dir", p.path("data"), "--resume")
			checkRight(t, "resumed", rec)
			if rec.Join.B.Read != 200_000 {
				t.Errorf("%d B read after %d before", rec.Join.B.Read, half)
			}
			joinbench("run", "--config", p.path("small.yaml"), "--dir", p.path("data"), "--resume").want(t, 1, "has finished")
		})
	}
}

// TestKilledRunIsResumed: killed at random moments and resumed each time, a run is judged as a whole and was right.
func TestKilledRunIsResumed(t *testing.T) {
	const seed, bEvents = 9, 60_000
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, c := range []struct{ tasks, more string }{{"1", ""}, {"3", ""}, {"2", "one-to-many"}} {
		t.Run(c.tasks+" tasks "+c.more, func(t *testing.T) {
			if testing.Short() && c.tasks != "3" {
				t.Skip("short")
			}
			p := newPlace(t)
			profile := strings.Replace(smallProfile, "b_events: 24k", fmt.Sprintf("b_events: %d", bEvents), 1)
			if c.more != "" {
				profile = strings.Replace(profile, "  grace", "  cardinality: "+c.more+"\n  grace", 1)
			}
			p.write("small.yaml", profile)
			whole := p.bench(0, "--tasks", c.tasks)
			checkRight(t, "whole", whole)
			total := whole.Join.Matches * 16 // bytes of the file of pairs
			args := []string{"run", "--config", p.path("small.yaml"), "--out", p.path("r.json"), "--dir", p.path("data"), "--tasks", c.tasks, "--progress", "none"}
			kills, pairs := 0, p.path("data/pairs.bin")
			for done := false; !done; {
				if _, err := os.Stat(p.path("data/task-000/CURRENT")); err == nil {
					args = append(args[:11], "--resume")
				}
				run := startProgram(t, nil, args...)
				ended := make(chan outcome, 1)
				go func() { ended <- run.end() }()
				from := size(pairs)
				upTo := from + rng.Int64N(max(1, (total-from)/2))
				if kills >= 7 {
					upTo = total + 1
				}
				look := time.NewTicker(200 * time.Microsecond)
				for grown := false; !grown && !done; {
					select {
					case o := <-ended:
						o.want(t, 0)
						done = true
					case <-look.C:
						grown = size(pairs) > upTo
					}
				}
				look.Stop()
				if !done {
					run.signal(syscall.SIGKILL)
					done = (<-ended).code == 0
					kills++
				}
			}
			if kills < 2 {
				t.Errorf("killed %d times: nothing was tested", kills)
			}
			rec := p.record()
			checkRight(t, fmt.Sprintf("seed %d, after %d kills", seed, kills), rec)
			a, b := rec.Join.Counters, whole.Join.Counters
			if a.A != b.A || a.B != b.B || a.Outputs != b.Outputs || a.Probes != b.Probes || a.Matches != b.Matches {
				t.Errorf("after %d kills\n got %+v\nwant %+v", kills, a, b)
			}
		})
	}
}
