package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"joinbench/ops"
	"joinbench/results"
)

const servePassword = "pass-that-nobody-sees"

// watchedServe is a serve that runs in this process until it is stopped.
type watchedServe struct {
	t     *testing.T
	url   string
	stop  context.CancelFunc
	ended chan int // its exit code
	log   *lockedBuffer
	stats string
}

// lockedBuffer takes what another goroutine writes.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// startServe runs serve with a configuration and waits until its pages are there.
func startServe(t *testing.T, conf string, more ...string) *watchedServe {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &watchedServe{t: t, stop: cancel, ended: make(chan int, 1), log: &lockedBuffer{}, stats: filepath.Join(t.TempDir(), "stats.json")}
	root := newRoot(streams{strings.NewReader(""), io.Discard, s.log})
	root.SetArgs(append([]string{"serve", "-c", conf, "--http", "127.0.0.1:0", "--stats", s.stats}, more...))
	go func() {
		code, msg := exitCode(root.ExecuteContext(ctx), false)
		_, _ = fmt.Fprintln(s.log, msg)
		s.ended <- code
	}()
	t.Cleanup(func() { s.end() })
	found := regexp.MustCompile(`status=(http://\S+)/status`)
	s.until("its pages are there", func() bool {
		if m := found.FindStringSubmatch(s.log.String()); m != nil {
			s.url = m[1]
		}
		return s.url != ""
	})
	return s
}

// until asks again and again until something is so.
func (s *watchedServe) until(what string, is func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if len(s.ended) > 0 || time.Now().After(deadline) {
			s.t.Fatalf("not so: %s\n%s", what, s.log)
		}
	}
}

// end stops it and gives the exit code.
func (s *watchedServe) end() int {
	s.stop()
	code := <-s.ended
	s.ended <- code
	return code
}

func (s *watchedServe) get(path string) (int, string) {
	s.t.Helper()
	resp, err := http.Get(s.url + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func (s *watchedServe) status() (st ops.Status) {
	s.t.Helper()
	_, text := s.get("/status")
	if err := json.Unmarshal([]byte(text), &st); err != nil {
		s.t.Fatalf("%v: %s", err, text)
	}
	return st
}

// metric is the value of one line of /metrics.
func metric(t *testing.T, text, name string) float64 {
	t.Helper()
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Errorf("no metric %s", name)
	return -1
}

// gate is a cluster with a password, whose requests of one kind can be made to wait.
type gate struct {
	*kfake.Cluster
	client *kgo.Client
	conf   string
	dir    string // state.dir
}

func newGate(t *testing.T) *gate {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser("PLAIN", "joiner", servePassword),
		kfake.SeedTopics(2, "orders", "payments", "joined"), kfake.BrokerConfigs(map[string]string{"log.retention.ms": "-1"}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	g := &gate{Cluster: c, conf: filepath.Join(t.TempDir(), "join.yaml"), dir: t.TempDir()}
	if g.client, err = kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.SASL(plain.Auth{User: "joiner", Pass: servePassword}.AsMechanism()),
		kgo.RecordPartitioner(kgo.ManualPartitioner())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.client.Close)
	text := fmt.Sprintf(`a: {topic: orders, key: $.ref}
b: {topic: payments, key: "@key"}
window: {after: 1h}
idle_timeout: 100ms
output: {topic: joined}
delivery: exactly-once
state: {dir: %s, memory: 64MiB, tasks: 2}
kafka: {brokers: [%s], group: g, sasl: {mechanism: plain, user: joiner, password: %s}}
`, g.dir, strings.Join(c.ListenAddrs(), ", "), servePassword)
	if err := os.WriteFile(g.conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return g
}

// send writes n orders and their payments, from number i on; one order is malformed.
func (g *gate) send(t *testing.T, i, n int) {
	t.Helper()
	at := time.Now().Add(-time.Minute)
	var recs []*kgo.Record
	for k := i; k < i+n; k++ {
		at = at.Add(time.Millisecond)
		recs = append(recs, &kgo.Record{Topic: "orders", Partition: int32(k % 2), Value: fmt.Appendf(nil, `{"ref":"P-%d"}`, k), Timestamp: at},
			&kgo.Record{Topic: "payments", Partition: int32(k % 2), Key: fmt.Appendf(nil, "P-%d", k), Value: []byte(`{}`), Timestamp: at})
	}
	recs = append(recs, &kgo.Record{Topic: "orders", Value: []byte("no JSON"), Timestamp: at})
	if err := g.client.ProduceSync(t.Context(), recs...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// hold makes requests of a kind wait until the answer is called.
func (g *gate) hold(key kmsg.Key) (release func()) {
	open := make(chan struct{})
	g.ControlKey(int16(key), func(kmsg.Request) (kmsg.Response, error, bool) {
		g.KeepControl()
		g.SleepControl(func() { <-open })
		return nil, nil, false
	})
	return sync.OnceFunc(func() { close(open) })
}

// What serve shows while it runs is what it says it did when it has ended, and nothing shows the password.
func TestServePages(t *testing.T) {
	g := newGate(t)
	g.send(t, 0, 100)
	release := g.hold(kmsg.InitProducerID)
	defer release()
	s := startServe(t, g.conf)
	s.until("it waits for its producer", func() bool { return s.status().State == ops.Starting && strings.Contains(s.log.String(), "status=") })
	if code, text := s.get("/readyz"); code != http.StatusServiceUnavailable || text != "starting\n" {
		t.Errorf("before it runs: readyz %d %s", code, text)
	}
	if code, text := s.get("/healthz"); code != http.StatusOK {
		t.Errorf("before it runs: healthz %d %s", code, text)
	}
	release()
	s.until("it is ready", func() bool { code, _ := s.get("/readyz"); return code == http.StatusOK })
	s.until("all is read", func() bool { st := s.status(); return st.Counters.A.Read == 101 && st.Counters.B.Read == 100 })
	s.until("the ends are known", func() bool { st := s.status(); return len(st.Partitions) == 4 && st.Partitions[0].Lag != nil })
	pages := seen(s)
	before := s.status()
	if code := s.end(); code != results.ExitOK {
		t.Fatalf("exit code %d\n%s", code, s.log)
	}
	checkPages(t, s, pages, &before)

	if strings.Contains(pages+s.log.String(), servePassword) {
		t.Error("the password is shown")
	}
}

// A state that is lost comes back from the changelog, and nobody is to rely on the join before.
func TestServeIsReadyWhenRestored(t *testing.T) {
	g := newGate(t)
	g.send(t, 0, 100)
	s := startServe(t, g.conf)
	s.until("all is read", func() bool { st := s.status(); return st.Counters.A.Read == 101 && st.Counters.B.Read == 100 })
	first := s.status()
	if code := s.end(); code != results.ExitOK {
		t.Fatalf("exit code %d\n%s", code, s.log)
	}
	if err := os.RemoveAll(g.dir + "/g"); err != nil {
		t.Fatal(err)
	}
	release := g.hold(kmsg.Fetch) // nothing but the changelog is read until it is back
	defer release()
	s = startServe(t, g.conf)
	s.until("it restores", func() bool { return s.status().State == ops.Restoring })
	if code, text := s.get("/readyz"); code != http.StatusServiceUnavailable || !strings.HasPrefix(text, "restoring") {
		t.Errorf("while it restores: readyz %d %s", code, text)
	}
	_, text := s.get("/metrics")
	if ready, state := metric(t, text, "joinbench_ready"), metric(t, text, `joinbench_state{state="restoring"}`); ready != 0 || state != 1 {
		t.Errorf("while it restores: ready %v, restoring %v", ready, state)
	}
	release()
	s.until("it is ready", func() bool { code, _ := s.get("/readyz"); return code == http.StatusOK })
	st := s.status()
	if st.Batch != first.Batch || st.Counters.A.Read != 101 || st.Levels.PendingA != first.Levels.PendingA || st.Restore.All == 0 || st.Restore.Done != st.Restore.All {
		t.Errorf("it is ready and has not everything:\n%+v\nbefore: %+v", st, first)
	}
}

// seen is everything that the pages show.
func seen(s *watchedServe) string {
	var all strings.Builder
	for _, path := range []string{"/metrics", "/status", "/", "/healthz", "/readyz"} {
		_, text := s.get(path)
		all.WriteString(text + "\n")
	}
	return all.String()
}

// checkPages holds what was shown against what serve says at its end.
func checkPages(t *testing.T, s *watchedServe, pages string, shown *ops.Status) {
	t.Helper()
	data, err := os.ReadFile(s.stats)
	if err != nil {
		t.Fatalf("%v\n%s", err, s.log)
	}
	var stats results.Counters
	if err := json.Unmarshal(data, &stats); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(shown.Counters, stats) {
		t.Errorf("/status shows %+v\n--stats has %+v", shown.Counters, stats)
	}
	for name, want := range map[string]int64{`read_total{side="a"}`: stats.A.Read, `accepted_total{side="b"}`: stats.B.Accepted, `malformed_total{side="a"}`: stats.A.Malformed,
		"matches_total": stats.Matches, "outputs_total": stats.Outputs, "probes_total": stats.Probes, `pending{side="a"}`: stats.A.Pending} {
		if got := metric(t, pages, "joinbench_"+name); got != float64(want) {
			t.Errorf("%s is %v, --stats has %d", name, got, want)
		}
	}
	if stats.A.Malformed != 1 || stats.Matches == 0 {
		t.Errorf("the join did little: %+v", stats)
	}
	position := 0.0
	for _, p := range shown.Partitions {
		labels := fmt.Sprintf(`{partition="%d",side="%s",topic="%s"}`, p.Partition, p.Side, p.Topic)
		if got := metric(t, pages, "joinbench_partition_position"+labels); got != float64(p.Position) {
			t.Errorf("position %v and %d", got, p.Position)
		}
		position += float64(p.Position)
		if p.Lag == nil || *p.Lag != *p.End-p.Position {
			t.Errorf("partition %+v: no lag", p)
		}
	}
	if position != 201 {
		t.Errorf("positions are %v in all, want 201 records", position)
	}
	if n := metric(t, pages, "joinbench_commit_seconds_count"); n < 1 || n != metric(t, pages, "joinbench_batches_total") || n != metric(t, pages, "joinbench_batch_records_count") {
		t.Errorf("%v commits, %v batches", n, metric(t, pages, "joinbench_batches_total"))
	}
	if n := metric(t, pages, "joinbench_batch_records_sum"); n != 201 {
		t.Errorf("batches had %v records", n)
	}
}
