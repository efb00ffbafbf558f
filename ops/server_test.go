package ops

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"joinbench/results"
)

// served starts a server over what status gives, and gets pages of it.
func served(t *testing.T, o ServerOptions) func(path string) (code int, body string) {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	s, err := Serve(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return func(path string) (int, string) {
		t.Helper()
		_, port, _ := strings.Cut(s.Addr()[strings.LastIndex(s.Addr(), "]")+1:], ":")
		resp, err := http.Get("http://127.0.0.1:" + port + path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
}

// fillInts gives each integer of a struct another value, from n on.
func fillInts(v reflect.Value, n *int64) {
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Struct:
			fillInts(f, n)
		case reflect.Int64:
			*n++
			f.SetInt(*n)
		}
	}
}

// Each counter of a join is a metric, by its name.
func TestEveryCounterIsAMetric(t *testing.T) {
	s := &Status{State: Running}
	n := int64(100_000)
	fillInts(reflect.ValueOf(&s.Counters).Elem(), &n)
	_, text := served(t, ServerOptions{Status: func() *Status { return s }})("/metrics")
	// What is no metric, and why.
	without := map[string]string{
		"Counters.A.Pending": "a level, of Levels", "Counters.B.Pending": "a level, of Levels", "Counters.Buckets.Open": "a level, of Levels",
		"Counters.Buckets.Sealed": "a level, of Levels", "Counters.Filter.BuildNs": "in seconds", "Counters.Buckets.DropMaxNs": "in seconds",
		"Counters.Filter.FilterQueries": "buckets_consulted", "Counters.Filter.FilterFalsePositives": "a check of single filters",
		"Counters.Filter.FalseNegatives": "known only against a truth", "Counters.Filter.Rebuilt": "a detail of filter_build_seconds",
	}
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		for i := range v.NumField() {
			f, name := v.Field(i), path+"."+v.Type().Field(i).Name
			switch f.Kind() {
			case reflect.Struct:
				walk(f, name)
			case reflect.Int64:
				shown := strings.Contains(text, fmt.Sprintf(" %d\n", f.Int()))
				if _, left := without[name]; left == shown {
					t.Errorf("%s: shown %v, left out %v", name, shown, left)
				}
			}
		}
	}
	walk(reflect.ValueOf(s.Counters), "Counters")
}

// fullStatus has something of everything.
func fullStatus() *Status {
	n := func(v int64) *int64 { return &v }
	return &Status{State: Running, Since: time.Unix(5, 0), Version: "1.2.3", RocksDB: "9.10.0", Group: "g", Delivery: "exactly-once", Tasks: 2,
		Started: time.Unix(4, 0), LastBatchAt: time.Unix(6, 0), LastError: "it broke", LastErrorAt: time.Unix(7, 0), Batch: 9, Batches: 3, Aborted: 1, DataLoss: 11,
		Counters: results.Counters{A: results.Side{Read: 7, Accepted: 6}, Outputs: 5}, Levels: Levels{PendingA: 4, OpenBuckets: 2},
		Watermarks: Watermarks{A: n(1500)}, Restore: Restore{Done: 8, All: 8},
		Partitions:   []Partition{{Side: "b", Topic: "payments", Partition: 3, Position: 100, End: n(140), Lag: n(40), Time: n(2500)}, {Side: "a", Topic: "orders", Position: 1}},
		CommitTime:   Histogram{Bounds: []float64{0.1, 1}, Counts: []uint64{4, 2, 1}, Sum: 5.5},
		BatchRecords: Histogram{Bounds: []float64{10}, Counts: []uint64{1, 0}, Sum: 3}}
}

func TestMetrics(t *testing.T) {
	get := served(t, ServerOptions{Status: fullStatus})
	code, text := get("/metrics")
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	for _, line := range []string{
		`joinbench_read_total{side="a"} 7`, `joinbench_outputs_total 5`, `joinbench_pending{side="a"} 4`, `joinbench_buckets_open 2`,
		`joinbench_watermark_seconds{side="a"} 1.5`, `joinbench_partition_lag{partition="3",side="b",topic="payments"} 40`,
		`joinbench_partition_position{partition="3",side="b",topic="payments"} 100`, `joinbench_partition_time_seconds{partition="3",side="b",topic="payments"} 2.5`,
		`joinbench_partition_position{partition="0",side="a",topic="orders"} 1`, `joinbench_ready 1`, `joinbench_state{state="running"} 1`, `joinbench_state{state="restoring"} 0`,
		`joinbench_info{delivery="exactly-once",group="g",rocksdb="9.10.0",version="1.2.3"} 1`, `joinbench_batches_aborted_total 1`, `joinbench_data_loss_total 11`,
		`joinbench_commit_seconds_bucket{le="0.1"} 4`, `joinbench_commit_seconds_bucket{le="1"} 6`, `joinbench_commit_seconds_bucket{le="+Inf"} 7`,
		`joinbench_commit_seconds_sum 5.5`, `joinbench_commit_seconds_count 7`, `joinbench_batch_records_count 1`, `joinbench_restore_offsets{what="all"} 8`,
		`joinbench_last_batch_seconds 6`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	// What is not known is left out, not zero.
	for _, name := range []string{`joinbench_watermark_seconds{side="b"}`, `joinbench_partition_lag{partition="0",side="a"`} {
		if strings.Contains(text, name) {
			t.Errorf("%s is shown", name)
		}
	}
	for _, other := range []string{"process_resident_memory_bytes", "go_goroutines"} {
		if !strings.Contains(text, other) {
			t.Errorf("no %s", other)
		}
	}
}

// deploy/metrics.txt, against which dashboards are checked, lists what is shown: name, type, labels.
func TestMetricsAreListed(t *testing.T) {
	data, err := os.ReadFile("../deploy/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	var listed, shown []string
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, "#") {
			listed = append(listed, strings.TrimSpace(line))
		}
	}
	for _, d := range descs() {
		kind := map[prometheus.ValueType]string{prometheus.CounterValue: "counter", prometheus.GaugeValue: "gauge"}[d.kind]
		shown = append(shown, strings.TrimSpace(d.name+" "+kind+" "+strings.Join(d.labels, " ")))
	}
	shown = append(shown, commitName+" histogram", recordsName+" histogram")
	if !slices.Equal(listed, shown) {
		t.Errorf("listed are\n%s\nshown are\n%s", strings.Join(listed, "\n"), strings.Join(shown, "\n"))
	}
}

func TestStatusPage(t *testing.T) {
	get := served(t, ServerOptions{Status: fullStatus})
	code, text := get("/status")
	var s Status
	if err := json.Unmarshal([]byte(text), &s); err != nil || code != http.StatusOK {
		t.Fatalf("%d %v: %s", code, err, text)
	}
	want := fullStatus()
	want.CommitTime, want.BatchRecords = Histogram{}, Histogram{} // of /metrics
	s.Counters, want.Counters = results.Counters{A: s.Counters.A}, results.Counters{A: want.Counters.A}
	for _, at := range []*time.Time{&s.Since, &s.Started, &s.LastBatchAt, &s.LastErrorAt} {
		*at = at.Local()
	}
	if !reflect.DeepEqual(&s, want) {
		t.Errorf("got %+v\nwant %+v", &s, want)
	}
	for _, p := range []string{"/nothing", "/debug/pprof/", "/status/x"} {
		if code, _ := get(p); code != http.StatusNotFound {
			t.Errorf("%s: %d", p, code)
		}
	}
}

func TestProbes(t *testing.T) {
	s := &Status{}
	get := served(t, ServerOptions{Status: func() *Status { return s }})
	for _, c := range []struct {
		s              Status
		health, ready  int
		said, readSaid string
	}{
		{Status{State: Starting}, 200, 503, "ok", "starting"},
		{Status{State: Restoring, Restore: Restore{3, 10}, BusyS: 5000}, 200, 503, "ok", "restoring: 3 of 10 offsets"},
		{Status{State: Running, BusyS: 599}, 200, 200, "ok", "running"},
		{Status{State: Running, BusyS: 3661}, 503, 200, "stuck: at one batch for 1h1m1s", "running"},
		{Status{State: Draining}, 200, 200, "ok", "draining"},
		{Status{State: Stopped}, 200, 503, "ok", "stopped"},
	} {
		s = &c.s
		if code, text := get("/healthz"); code != c.health || !strings.Contains(text, c.said) {
			t.Errorf("%+v: healthz %d %s", c.s, code, text)
		}
		if code, text := get("/readyz"); code != c.ready || !strings.Contains(text, c.readSaid) {
			t.Errorf("%+v: readyz %d %s", c.s, code, text)
		}
	}
}

// Profiles are there on a loopback address and when asked for; an address that others reach is warned of.
func TestAddresses(t *testing.T) {
	get := served(t, ServerOptions{Status: fullStatus, Pprof: true})
	if code, _ := get("/debug/pprof/goroutine?debug=1"); code != http.StatusOK {
		t.Errorf("goroutines: %d", code)
	}
	if code, _ := get("/debug/pprof/cmdline"); code != http.StatusNotFound {
		t.Errorf("the command line is shown: %d", code)
	}
	if _, err := Serve(ServerOptions{Listen: "0.0.0.0:0", Status: fullStatus, Pprof: true}); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("profiles for everybody: %v", err)
	}
	if _, err := Serve(ServerOptions{Listen: "9464", Status: fullStatus}); err == nil || !strings.Contains(err.Error(), "host:port") {
		t.Errorf("no port: %v", err)
	}
	for listen, warned := range map[string]bool{"0.0.0.0:0": true, ":0": true, "127.0.0.1:0": false, "localhost:0": false} {
		var log bytes.Buffer
		get := served(t, ServerOptions{Listen: listen, Status: fullStatus, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if strings.Contains(log.String(), "WARN") != warned {
			t.Errorf("%s: %q", listen, log.String())
		}
		if code, _ := get("/healthz"); code != http.StatusOK {
			t.Errorf("%s: %d", listen, code)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{4 * time.Hour: "4h", 4*time.Hour + 20*time.Minute + 10*time.Second: "4h20m10s", time.Minute: "1m", 90 * time.Second: "1m30s",
		250 * time.Millisecond: "250ms", 250_400 * time.Microsecond: "250ms", 4*time.Hour + 400*time.Millisecond: "4h", 59_500 * time.Millisecond: "1m", 168 * time.Hour: "168h", 1111*24*time.Hour + time.Hour: "1,111 days", 10 * time.Hour: "10h"} {
		if got := span(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}
