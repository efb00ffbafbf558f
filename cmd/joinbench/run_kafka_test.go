package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"joinbench/internal/kafkatest"
	"joinbench/results"
)

// wrongWindow in the environment has the serve that a run starts join with another window than the run was given.
const wrongWindow = "TEST_WRONG_WINDOW"

// brokerLife in the environment has the broker that a run starts end by itself after so long.
const brokerLife = "TEST_BROKER_LIFE"

// asChild makes this process, which is to be the program, what a test wants of a process of run --kafka.
func asChild() {
	if after := os.Getenv(wrongWindow); after != "" && os.Args[1] == "serve" {
		_ = os.Setenv("JOINBENCH_WINDOW_AFTER", after)
	}
	if life, err := time.ParseDuration(os.Getenv(brokerLife)); err == nil && os.Args[1] == "broker" {
		time.AfterFunc(life, func() { os.Exit(7) })
	}
}

// kafkaRun calls run --kafka with a small workload, whose processes are this test binary, and reads the record.
func kafkaRun(t *testing.T, code int, args ...string) (*results.Record, outcome) {
	t.Helper()
	t.Setenv(asProgram, "1")
	p := newPlace(t)
	profile := p.write("profile.yaml", `join:
  a: {topic: orders, key: $.payment_ref, time: $.ts, time_unit: ms, keep: [$.order_id, $.amount]}
  b: {topic: payments, key: "@key", keep: [$.status]}
  window: {after: 1h}
  grace: 10s
  delivery: exactly-once
load: {pending: 2000, b_events: 20k, ages: [12m, 25m, 40m], b_rate: auto, match_rate: 0.1, disorder: 2s, record_bytes: 320, partitions: 3, seed: 5}`)
	o := joinbench(append([]string{"run", "--config", profile, "--progress", "none", "--out", p.path("r.json")}, args...)...)
	o.want(t, code)
	if code == results.ExitUsage {
		return nil, o
	}
	rec, err := results.Read(p.path("r.json"))
	if err != nil {
		t.Fatal(err)
	}
	return rec, o
}

// TestRunKafkaEmbedded: one command starts a broker, fills it, has a bare consumer and serve read it by turns, and finds everything
// right. What it says of both can be held against a limit.
func TestRunKafkaEmbedded(t *testing.T) {
	rec, o := kafkaRun(t, results.ExitThreshold, "--kafka", "embedded", "--rounds", "2", "--threshold", "kafka.ratio>1000", "--threshold", "kafka.lost==0")
	k := rec.Kafka
	if k == nil || len(k.Rounds) != 2 || !k.Embedded || k.Lost != 0 || k.Duplicated != 0 || k.Produced != k.Consumed || k.Produced < 22_000 {
		t.Fatalf("%+v", k)
	}
	for _, v := range []*float64{k.BarePerS, k.ServePerS, k.Ratio, k.Split.CPUNs, k.Split.CommitWaitNs} {
		if v == nil || *v <= 0 {
			t.Errorf("a figure is missing: %+v %+v", k, k.Split)
		}
	}
	if j := rec.Join; j.Truth == nil || j.ExpectedMatches < 1500 || j.Matches != j.ExpectedMatches {
		t.Errorf("%d pairs of %+v", j.Matches, j.Truth)
	}
	if names := phaseNames(rec); names != "prepare, load a, load b, bare 1, serve 1, verify 1, serve 2, bare 2, verify 2" {
		t.Errorf("phases: %s", names)
	}
	if !strings.Contains(o.out, "bare consumer") || !strings.Contains(o.out, "✗ kafka.ratio>1000") || !strings.Contains(o.out, "✓ kafka.lost==0") {
		t.Errorf("the report: %s", o.out)
	}
}

func phaseNames(rec *results.Record) string {
	var names []string
	for _, p := range rec.Phases {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

// TestRunKafkaWrong: a join that loses pairs is found out, and what the run made on a broker goes with it.
func TestRunKafkaWrong(t *testing.T) {
	b := kafkatest.Start(t)
	t.Setenv(wrongWindow, "30m")
	rec, _ := kafkaRun(t, results.ExitIncorrect, "--kafka", strings.Join(b.Addrs, ","), "--rounds", "1")
	if rec.Kafka.Lost == 0 || rec.Join.Missing != rec.Kafka.Lost || rec.Kafka.Embedded {
		t.Errorf("%+v", rec.Kafka)
	}
	if left := topicsOf(t, b, rec.Run.ID); len(left) > 0 {
		t.Errorf("topics that are still there: %q", left)
	}
}

// topicsOf are the topics that a run left.
func topicsOf(t *testing.T, b *kafkatest.Broker, run string) (list []string) {
	t.Helper()
	all, err := b.Admin().ListTopics(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for name := range all {
		if strings.Contains(name, run) {
			list = append(list, name)
		}
	}
	return list
}

// TestRunKafkaRate: with a rate, latency is from when a B was meant to come to when its result was there.
func TestRunKafkaRate(t *testing.T) {
	b := kafkatest.Start(t)
	place := newPlace(t)
	rec, _ := kafkaRun(t, 0, "--kafka", b.Addrs[0], "--rate", "5k/s", "--duration", "2s", "--keep", "--cpuprofile", place.path("cpu"))
	k := rec.Kafka
	if rec.Latency == nil || rec.Latency.E2E == nil || len(k.Lag) < 5 || k.LagMax == nil || *k.LagMax == 0 || k.NegativeLatency != 0 || k.Produced != k.Consumed {
		t.Fatalf("latency %+v, %+v", rec.Latency, k)
	}
	e := rec.Latency.E2E
	if e.MinNs < 1e5 || e.MaxNs > 60e9 || e.Count+k.Unanswered > rec.Join.Outputs || e.Count < 500 {
		t.Errorf("%d results of %d, the latency %d to %d ns, %d came at the end", e.Count, rec.Join.Outputs, e.MinNs, e.MaxNs, k.Unanswered)
	}
	if rec.Load == nil || rec.Load.OfferedPerS == nil || *rec.Load.OfferedPerS != 5000 {
		t.Errorf("load %+v", rec.Load)
	}
	if p, err := profile.ParseData([]byte(place.read("cpu"))); err != nil || time.Duration(p.DurationNanos) < 2*time.Second {
		t.Errorf("the profile is not of the time while records came: %v", err)
	}
	left := topicsOf(t, b, rec.Run.ID)
	if len(left) != 4 {
		t.Errorf("--keep left %q", left)
	}
	if b.Real() {
		if _, err := b.Admin().DeleteTopics(context.Background(), left...); err != nil {
			t.Error(err)
		}
	}
}

// TestRunKafkaBrokerEnds: a run whose own broker ends does not wait for it to come back, and says what happened. That the
// workload is shorter than was asked for is said too.
func TestRunKafkaBrokerEnds(t *testing.T) {
	t.Setenv(brokerLife, "4s") // while B come, which takes 19 s
	rec, _ := kafkaRun(t, results.ExitFailed, "--kafka", "embedded", "--rate", "1k/s", "--duration", "10m")
	if v := rec.Verdict; rec.Run.Complete || v.Status != results.StatusFailed || !strings.Contains(strings.Join(v.Reasons, " "), "the broker ended before it was told to") {
		t.Errorf("%+v", v)
	}
	w := slices.DeleteFunc(rec.Verdict.Warnings, func(s string) bool { return strings.Contains(s, "built with -race") })
	if len(w) != 1 || !strings.Contains(w[0], "the workload has B for 19s of --duration 10m") {
		t.Errorf("warnings %q", w)
	}
}

// TestRunKafkaRefuses: what makes no sense is said before anything is done.
func TestRunKafkaRefuses(t *testing.T) {
	for text, args := range map[string][]string{
		"--arms does not go":     {"--kafka", "embedded", "--arms", "memory"},
		"--duration goes with":   {"--kafka", "embedded", "--duration", "5s"},
		"--rounds does not go":   {"--kafka", "embedded", "--rate", "5k/s", "--rounds", "2"},
		"--rounds 0":             {"--kafka", "embedded", "--rounds", "0"},
		"--compression \"zip\"":  {"--kafka", "embedded", "--compression", "zip"},
		"--keep is about":        {"--keep"},
		"how --kafka calls this": {"--bare", "x.yaml"},
		"kafka.brokers":          {"--kafka", "nobody:zero"},
	} {
		if _, o := kafkaRun(t, results.ExitUsage, args...); !strings.Contains(o.err, text) {
			t.Errorf("%q: %s", args, o.err)
		}
	}
}
