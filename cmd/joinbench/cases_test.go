package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"joinbench/buckets"
	"joinbench/results"
)

// The cases of the field that a user can meet with two files, one test each. The configuration's window and grace are those
// of the case, in ms.

// caseConf is a join by $.k and $.t that keeps $.v.
func caseConf(before, after, grace int, more string) string {
	return fmt.Sprintf("a: {key: $.k, time: $.t, keep: [$.v]}\nb: {key: $.k, time: $.t, keep: [$.v]}\nwindow: {before: %dms, after: %dms}\ngrace: %dms\nstate: {sync: none, tasks: 2}\n%s",
		before, after, grace, more)
}

// rows are lines of "key time value".
func rows(list ...string) (lines []string) {
	for _, s := range list {
		f := strings.Fields(s)
		lines = append(lines, fmt.Sprintf(`{"k":%q,"t":%s,"v":%q}`, f[0], f[1], f[2]))
	}
	return lines
}

// pairs are results, given as "key ts a b".
func pairs(list ...string) (lines []string) {
	for _, s := range list {
		f := strings.Fields(s)
		lines = append(lines, fmt.Sprintf(`{"key":%q,"ts":%s,"a":{"v":%q},"b":{"v":%q}}`, f[0], f[1], f[2], f[3]))
	}
	return lines
}

// TestMatchedIsNeverUnmatched: B01, the inner half. What waits comes out as unmatched when its window is over, once, and never
// if it was matched.
func TestMatchedIsNeverUnmatched(t *testing.T) {
	p := newPlace(t)
	_, got := joinFiles(t, caseConf(10, 10, 0, ""), rows("k1 0 a1", "z 11 _", "z 40 _"), rows("k1 5 b1", "y 60 _"), "--unmatched", p.path("unmatched"))
	wantLines(t, got, pairs("k1 5 a1 b1")...)
	text := p.read("unmatched")
	if strings.Count(text, "\n") != 3 || strings.Count(text, `"key":"z"`) != 2 || !strings.Contains(text, `\"y\"`) || strings.Contains(text, "k1") {
		t.Errorf("unmatched: %s", text)
	}
}

// TestAsymmetricWindowOfFiles: B02. Both ends of the window count, on the side where they are, in whatever order the records of A
// and B lie in their files.
func TestAsymmetricWindowOfFiles(t *testing.T) {
	b := rows("k 99 b99", "k 100 b100", "k 200 b200", "k 201 b201")
	many := "cardinality: one-to-many\n"
	_, got := joinFiles(t, caseConf(0, 100, 0, many), rows("k 100 a"), b)
	wantLines(t, got, pairs("k 100 a b100", "k 200 a b200")...)
	_, got = joinFiles(t, caseConf(100, 0, 0, many), rows("k 200 a"), rows("k 99 b99", "k 100 b100", "k 200 b200", "k 201 b201"))
	wantLines(t, got, pairs("k 200 a b100", "k 200 a b200")...)
	// Backwards, the grace lets them in.
	_, got = joinFiles(t, caseConf(0, 100, 200, many), rows("k 100 a"), []string{b[3], b[2], b[1], b[0]})
	wantLines(t, got, pairs("k 100 a b100", "k 200 a b200")...)
}

// TestGraceForOutOfOrderRows: B04, the inner half. An A behind its partition, but within the grace, is joined.
func TestGraceForOutOfOrderRows(t *testing.T) {
	p, got := joinFiles(t, caseConf(10, 10, 20, ""), rows("z 100 _", "k 85 a"), rows("k 88 b"))
	wantLines(t, got, pairs("k 88 a b")...)
	if c := p.stats("stats"); c.A.Late != 0 || c.A.Accepted != 2 {
		t.Errorf("counters %+v", c.A)
	}
}

// TestTooLateRowsAreDropped: B05. Beyond the grace a record is counted and joins nothing; at its very end it is in time.
func TestTooLateRowsAreDropped(t *testing.T) {
	for side, lines := range map[string][]string{"a": rows("z 100 _", "k 80 a"), "b": rows("k 80 b", "k 95 b")} {
		other := rows("k 80 b", "k 95 b")
		if side == "b" {
			lines, other = rows("z 100 _", "k 80 b"), rows("k 80 a", "k 95 a")
		}
		a, b := lines, other
		if side == "b" {
			a, b = b, a
		}
		p, got := joinFiles(t, caseConf(10, 10, 5, ""), a, b)
		wantLines(t, got)
		c := p.stats("stats")
		late := c.A.Late
		if side == "b" {
			late = c.B.Late
		}
		if late != 1 || c.A.Late+c.B.Late != 1 || !strings.Contains(p.read("late"), `"reason":"late"`) || !strings.Contains(p.read("late"), `"offset":1`) {
			t.Errorf("side %s: counters %+v, late %s", side, c, p.read("late"))
		}
	}
	p, got := joinFiles(t, caseConf(10, 10, 5, ""), rows("z 100 _", "k 95 a"), rows("k 95 b"))
	wantLines(t, got, pairs("k 95 a b")...)
	if c := p.stats("stats"); c.A.Late != 0 {
		t.Errorf("at the end of the grace: counters %+v", c.A)
	}
}

// TestInputThatStops: B06, the inner half. The end of the files closes what waits, which then comes out as unmatched; with --no-drain
// it is pending, and the counters say so.
func TestInputThatStops(t *testing.T) {
	p := newPlace(t)
	a, b := p.write("a", rows("k 0 a")...), p.write("b")
	args := []string{"join", "-c", p.write("join.yaml", caseConf(10, 10, 0, "")), "--a", a, "--b", b, "--unmatched", p.path("unmatched"), "--stats", p.path("stats"), "--progress", "none"}
	joinbench(args...).want(t, 0)
	if c := p.stats("stats"); c.A.Pending != 0 || c.UnmatchedA != 1 || len(p.lines("unmatched")) != 1 {
		t.Errorf("drained: counters %+v, unmatched %q", c, p.lines("unmatched"))
	}
	joinbench(append(args, "--no-drain")...).want(t, 0)
	if c := p.stats("stats"); c.A.Pending != 1 || c.UnmatchedA != 0 || len(p.lines("unmatched")) != 0 {
		t.Errorf("not drained: counters %+v, unmatched %q", c, p.lines("unmatched"))
	}
}

// TestMissingKeysOfFiles: B11 to the letter. A key that is absent or null joins nothing, "" is a key.
func TestMissingKeysOfFiles(t *testing.T) {
	lines := []string{`{"v":1}`, `{"id":null}`, `{"id":""}`}
	conf := "a: {key: $.id, keep: [$.v]}\nb: {key: $.id, keep: [$.v]}\nwindow: {within: 1h}\nstate: {sync: none, tasks: 1}\n"
	p, got := joinFiles(t, conf, lines, lines)
	wantLines(t, got, `{"key":"","ts":0,"a":{},"b":{}}`)
	if c := p.stats("stats"); c.A.NullKey+c.B.NullKey != 4 || c.Matches != 1 || len(p.lines("dead")) != 0 {
		t.Errorf("counters %+v", c)
	}
}

// TestEqualEventsOutliveRestarts: B13. Three A of one key and one time are three events. The join is killed with -9 when they are
// stored, and started again; interrupted, and started again; and then three B find one of them each.
func TestEqualEventsOutliveRestarts(t *testing.T) {
	const fillers = 40_000
	for _, cardinality := range []string{"one-to-one", "one-to-many", "many-to-many"} {
		t.Run(cardinality, func(t *testing.T) {
			p := newPlace(t)
			var a, b strings.Builder
			for i := range fillers { // whose results fill the pipe, so that the join stands while nobody reads
				fmt.Fprintf(&a, `{"k":"f%d","t":%d,"v":"a"}`+"\n", i, i*4/fillers)
				fmt.Fprintf(&b, `{"k":"f%d","t":%d,"v":"b"}`+"\n", i, i*4/fillers)
			}
			a.WriteString(strings.Join(rows("k 5 a1", "k 5 a2", "k 5 a3", "z 100 _"), "\n") + "\n")
			bs := rows("k 6 b1", "k 6 b2", "k 6 b3")
			want := map[string]int{"a1": 1, "a2": 1, "a3": 1}
			if cardinality == "one-to-many" { // each takes the first
				want = map[string]int{"a1": 3}
			}
			matches := int64(3)
			if cardinality == "many-to-many" { // each takes all
				want, matches = map[string]int{"a1": 3, "a2": 3, "a3": 3}, 9
			}
			b.WriteString(strings.Join(bs, "\n") + "\n")
			args := []string{"join", "-c", p.write("join.yaml", caseConf(10, 10, 0, "cardinality: "+cardinality+"\n")), "--a", p.writeBytes("a", []byte(a.String())),
				"--b", p.writeBytes("b", []byte(b.String())), "--batch", "500", "--state-dir", p.path("state"), "--stats", p.path("stats"), "--progress", "none"}
			got := map[string]int{}
			take := func(out string) {
				for _, line := range strings.Split(out, "\n") {
					if strings.HasPrefix(line, `{"key":"k"`) {
						var r struct{ A struct{ V string } }
						if err := json.Unmarshal([]byte(line), &r); err != nil {
							t.Fatal(err)
						}
						got[r.A.V]++
					}
				}
			}
			for _, s := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
				out, code := p.endAfterLines(2000, s, args...)
				if s == syscall.SIGINT && code != results.ExitInterrupted || s == syscall.SIGKILL && code != -1 {
					t.Fatalf("%v: exit code %d", s, code)
				}
				take(out)
				if len(got) != 0 {
					t.Fatalf("%v: the B of this test had asked by then", s)
				}
			}
			o := joinbench(args...)
			o.want(t, 0, "resuming")
			take(o.out)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("pairs by A: %v, want %v", got, want)
			}
			if c := p.stats("stats"); c.Matches != fillers+matches || c.A.Accepted != fillers+4 || c.A.Redelivered != 0 {
				t.Errorf("counters %+v", c)
			}
		})
	}
}

// endAfterLines starts the program, reads some lines of its results, sends it a signal and reads what is left.
func (p place) endAfterLines(n int, s syscall.Signal, args ...string) (string, int) {
	p.t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		p.t.Fatal(err)
	}
	defer r.Close()
	run := startProgramTo(p.t, w, args...)
	if err := w.Close(); err != nil {
		p.t.Fatal(err)
	}
	var out strings.Builder
	lines := bufio.NewReader(r)
	for range n {
		line, err := lines.ReadString('\n')
		if err != nil {
			p.t.Fatalf("results ended: %v; %s", err, run.err.String())
		}
		out.WriteString(line)
	}
	run.signal(s)
	time.Sleep(200 * time.Millisecond) // it hears of the signal while its results stand: read at once, they may all come before
	if _, err := io.Copy(&out, lines); err != nil {
		p.t.Fatal(err)
	}
	return out.String(), run.end().code
}

// TestColdKeysGo: B16. A million A that nobody asks for are gone when their window is, from memory and from disk, though no
// record of their keys ever comes again: one foreign key that moves time on is enough.
func TestColdKeysGo(t *testing.T) {
	const n = 1_000_000 // with fewer, logs and journal are more than buckets
	if testing.Short() {
		t.Skip("a million A")
	}
	p := newPlace(t)
	var a strings.Builder
	for i := range n { // within a minute
		fmt.Fprintf(&a, `{"k":"PAY-%09d","t":%d,"v":"ORD-%09d"}`+"\n", i, int64(i)*60_000/n, i)
	}
	// Records without a key move time and wait for nothing. Pairs at 100 s, by which the buckets are sealed, fill the pipe of the
	// results: there the join is interrupted, for an end waits for what is being sealed. Three minutes on: one pair of a foreign key.
	const fillers = 20_000
	var fill strings.Builder
	for i := range fillers {
		fmt.Fprintf(&fill, `{"k":"f%d","t":100000,"v":"x"}`+"\n", i)
	}
	foreign := `{"k":"foreign","t":240000,"v":"x"}` + "\n" + `{"k":null,"t":500000}` + "\n"
	// The spread makes three buckets of the minute; with so much memory none of them is spilled, whose seal could wait for that.
	conf := strings.Replace(caseConf(120_000, 120_000, 0, "max_spread: 3m\n"), "tasks: 2", "tasks: 1, memory: 1GiB", 1)
	args := []string{"join", "-c", p.write("join.yaml", conf), "--a", p.writeBytes("a", []byte(a.String()+fill.String()+`{"k":null,"t":100001}`+"\n"+foreign)),
		"--b", p.writeBytes("b", []byte(fill.String()+foreign)), "--batch", "500", "--no-drain", "--state-dir", p.path("state"),
		"--stats", p.path("stats"), "--progress", "none"}
	first, code := p.endAfterLines(2000, syscall.SIGINT, args...)
	if code != results.ExitInterrupted {
		t.Fatalf("exit code %d when it was interrupted", code)
	}
	waiting, logs := dirBytes(t, p.path("state"))
	if rows := rowsOfBuckets(t, p.path("state/task-000")); rows < n || waiting-logs < n*80 {
		t.Errorf("sealed buckets have %d rows and the disk %d bytes besides logs while %d A wait", rows, waiting-logs, n)
	}
	o := joinbench(args...)
	o.want(t, 0, "resuming")
	c := p.stats("stats")
	if c.Matches != fillers+1 || strings.Count(first+o.out, `{"key":"foreign","ts":240000,"a":{"v":"x"},"b":{"v":"x"}}`+"\n") != 1 {
		t.Errorf("%d pairs, want %d and that of the foreign key once", c.Matches, fillers+1)
	}
	// Three buckets hold them all, with 86 bytes a row. What stays besides tables is the log, whose length has a limit of its
	// own (96 MiB), however many A there were.
	bucket, log := int64(n/3*80), int64(100<<20)
	disk, logs := dirBytes(t, p.path("state"))
	t.Logf("%d A: %d MiB on disk while they wait, %d MiB afterwards, %d of them logs; %d buckets dropped", n, waiting>>20, disk>>20, logs>>20, c.Buckets.DroppedTotal)
	if rows := rowsOfBuckets(t, p.path("state/task-000")); c.A.Pending != 0 || c.A.Accepted != n+fillers+1 || c.Buckets.DroppedTotal < 4 || rows > fillers+1 {
		t.Errorf("buckets have %d rows, counters %+v", rows, c)
	}
	if disk-logs >= bucket || logs > log {
		t.Errorf("on disk are %d bytes of logs and %d of others, a bucket has %d", logs, disk-logs, bucket)
	}
}

// rowsOfBuckets is how many keys the column families of a task's buckets have, by a copy of its directory.
func rowsOfBuckets(t *testing.T, dir string) (rows int) {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	shared := buckets.NewShared(buckets.SharedOptions{Memory: 1 << 20, Tasks: 1})
	defer shared.Close()
	store, err := buckets.OpenRocks(to, shared)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range store.Families() {
		hashes, err := store.ScanHashes(f, nil)
		if err != nil {
			t.Error(err)
		}
		rows += len(hashes)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	return rows
}

// dirBytes is the length of all files under a directory, and of those of them that are RocksDB's log.
func dirBytes(t *testing.T, dir string) (all, logs int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			all += size(path)
			if strings.HasSuffix(path, ".log") {
				logs += size(path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, logs
}

// TestSilentPartition: B19, as the rules have it for files, where idle_timeout is off. A partition that has ended holds nothing up:
// the other's rows close and drop while it has none. What lies far behind in the file, after rows of another partition that
// are far ahead, is not late: lateness is the partition's own. With --no-drain no partition ends, so the silent one holds
// time where it is.
func TestSilentPartition(t *testing.T) {
	record := func(partition, offset, at int, key string) string {
		return fmt.Sprintf(`{"topic":"t","partition":%d,"offset":%d,"ts":%d,"key":%q,"payload":"{}"}`, partition, offset, at, key)
	}
	conf := "a: {key: \"@key\"}\nb: {key: \"@key\"}\nwindow: {within: 1m}\ngrace: 0s\nmax_spread: 2m\nstate: {sync: none, tasks: 1, buckets: 4}\n"
	var a, b []string
	a = append(a, record(1, 0, 0, "silent"))
	const n = 60
	for i := range n {
		a, b = append(a, record(0, i, i*60_000, fmt.Sprintf("p0-%d", i))), append(b, record(0, i, i*60_000, fmt.Sprintf("b-%d", i)))
	}
	p := newPlace(t)
	unmatched := p.path("unmatched")
	q, got := joinFiles(t, conf, a, b, "--unmatched", unmatched, "--batch", "10")
	wantLines(t, got)
	if c := q.stats("stats"); c.UnmatchedA != n+1 || c.A.Pending != 0 || c.A.Late != 0 || c.Buckets.DroppedTotal < n/2 || strings.Count(p.read("unmatched"), "\n") != 2*n+1 {
		t.Errorf("a partition that has ended: counters %+v", c)
	}

	q, got = joinFiles(t, conf, a, b, "--unmatched", unmatched, "--no-drain", "--batch", "10")
	wantLines(t, got)
	if c := q.stats("stats"); c.B.Read != 0 || c.Buckets.DroppedTotal != 0 || c.A.Pending == 0 || c.A.Read == n+1 {
		t.Errorf("a partition that may go on: counters %+v", c)
	}

	// It wakes behind all others, with a row that is late by its own time, and one in time.
	a = append(a, record(1, 1, 30_000, "wakes"), record(1, 2, 10_000, "late"), record(1, 3, 30_000, "again"))
	b = append(b, record(1, 0, 30_000, "again"), record(1, 1, 40_000, "wakes"))
	q, got = joinFiles(t, conf, a, b, "--batch", "10")
	wantLines(t, got, `{"key":"again","ts":30000,"a":{},"b":{}}`, `{"key":"wakes","ts":40000,"a":{},"b":{}}`)
	if c := q.stats("stats"); c.A.Late != 1 || c.A.Read != n+4 || c.B.Read != n+2 || c.A.LateIdle != 0 || !strings.Contains(q.read("late"), `"key":"late"`) {
		t.Errorf("a partition that wakes: counters %+v", c)
	}
}

// TestBadTimesAtTheTail: B21. Ten records of time -1, one of 0 and one beyond all times at the tail of a topic, on both sides and in
// both tools' forms: all are read and counted, none stalls, and the one of 0 is late, as its partition was further.
func TestBadTimesAtTheTail(t *testing.T) {
	conf := "a: {key: \"@key\"}\nb: {key: \"@key\"}\nwindow: {within: 1m}\ngrace: 0s\nstate: {sync: none, tasks: 1}\n"
	for _, form := range []string{`{"topic":"t","partition":0,"offset":%d,"tstype":"create","ts":%s,"key":"k%[1]d","payload":"{}"}`, `{"topic":"t","key":"k%[1]d","value":"{}","timestamp":%[2]s,"partition":0,"offset":%[1]d}`} {
		var lines []string
		add := func(ts string) { lines = append(lines, fmt.Sprintf(form, len(lines), ts)) }
		for range 5 {
			add("1700000000000")
		}
		for range 10 {
			add("-1")
		}
		add("0")
		add("9223372036854775807")
		p, got := joinFiles(t, conf, lines, lines)
		if len(got) != 5 {
			t.Errorf("results %q", got)
		}
		c := p.stats("stats")
		for _, s := range []results.Side{c.A, c.B} {
			if s.Read != 17 || s.BadTime != 11 || s.Late != 1 || s.Accepted != 5 {
				t.Errorf("counters %+v", s)
			}
		}
		if n := strings.Count(p.read("dead"), `"reason":"bad_time"`); n != 22 || c.A.Pending != 0 {
			t.Errorf("%d dead letters, %d pending", n, c.A.Pending)
		}
	}
}

// TestDuplicateNames: B60. The first counts, on both sides: one match, and not with the key that encoding/json would take.
func TestDuplicateNames(t *testing.T) {
	twice, both := []string{`{"k":"a","k":"b","t":1,"v":"first","v":"second"}`}, rows("b 1 b", "a 1 a")
	_, got := joinFiles(t, caseConf(10, 10, 0, ""), twice, both)
	wantLines(t, got, pairs("a 1 first a")...)
	_, got = joinFiles(t, caseConf(10, 10, 0, ""), both, twice)
	wantLines(t, got, pairs("a 1 a first")...)
}

// TestLongRecordsLeaveNoTrace: B64. What a waiting A costs is its projection, not its record: with records of 10 KiB and 60 bytes kept
// of each, memory is that of short records with the same fields, and far from that of the input.
func TestLongRecordsLeaveNoTrace(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = 20_000
	}
	p := newPlace(t)
	conf := p.write("join.yaml", caseConf(3_600_000, 3_600_000, 0, ""))
	b := p.write("b", rows("none 1 x")...)
	peak := func(name string, n, pad int) int64 {
		f, err := os.Create(p.path(name))
		if err != nil {
			t.Fatal(err)
		}
		w, filler := bufio.NewWriterSize(f, 1<<20), strings.Repeat("y", pad)
		for i := range n {
			_, _ = fmt.Fprintf(w, `{"x":"%s","k":"PAYMENT-%09d","t":%d,"v":"ORDER-%09d-about-sixty-bytes-are-kept-of-each","z":"%[1]s"}`+"\n", filler, i, i, i)
		}
		if err := errors.Join(w.Flush(), f.Close()); err != nil {
			t.Fatal(err)
		}
		run := startProgram(t, nil, "join", "-c", conf, "--a", p.path(name), "--b", b, "--no-drain", "--stats", p.path("stats"), "--progress", "none")
		o, most := run.endWatched()
		o.want(t, 0)
		if c := p.stats("stats"); c.A.Pending != int64(n) {
			t.Fatalf("%s: %d A wait, want %d", name, c.A.Pending, n)
		}
		input := size(p.path(name))
		_ = os.Remove(p.path(name))
		t.Logf("%s: %d records, %d MiB of input, %d MiB of memory at most", name, n, input>>20, most>>20)
		if most < 10<<20 {
			t.Skip("the system does not tell what a process uses")
		}
		return most
	}
	short, few, long := peak("short", n, 10), peak("long, few", n/10, 5_000), peak("long", n, 5_000)
	const reading = 96 << 20 // chunks of long records on their way, with what the collector leaves behind
	if long-short > reading {
		t.Errorf("records of 10 KiB take %d MiB more than short ones with the same fields", (long-short)>>20)
	}
	if growth, each := long-few, int64(60+200); growth > int64(n)*each+64<<20 {
		t.Errorf("%d records more take %d MiB", n-n/10, growth>>20)
	}
}

// endWatched waits for the program's end and says the most memory that it had, 0 if nobody knows. It looks all the time: getrusage
// would begin with what this test's process had when it started the program.
func (p *program) endWatched() (o outcome, most int64) {
	done := make(chan outcome, 1)
	go func() { done <- p.end() }()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			most = max(most, highWater(p.Process.Pid))
		case o = <-done:
			return o, most
		}
	}
}

// highWater is the most memory that a process had so far, 0 if nobody knows (it has ended, or the system is not Linux).
func highWater(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib := int64(0)
	_, _ = fmt.Sscan(rest, &kib)
	return kib << 10
}

// TestLenientAndEngineAreInTheReport: B59 and B66. A run with validate: lenient says that nothing was validated, in its record and in what
// it prints; every run says which JSON path was live.
func TestLenientAndEngineAreInTheReport(t *testing.T) {
	p := newPlace(t)
	strict := smallProfile
	lenient := strings.Replace(smallProfile, "  window:", "  validate: lenient\n  window:", 1)
	for name, profile := range map[string]string{"strict": strict, "lenient": lenient} {
		o := joinbench("run", "--config", p.write("p.yaml", profile), "--out", p.path("r.json"), "--progress", "none")
		o.want(t, 0)
		rec := p.record()
		engine := rec.Tool.JSONEngine
		if engine == "" || !strings.Contains(o.out, "JSON "+engine) || !strings.Contains(p.read("r.json"), `"json_engine": "`+engine+`"`) {
			t.Errorf("%s: the engine %q is not in the report", name, engine)
		}
		md := joinbench("report", "-f", "md", p.path("r.json"))
		md.want(t, 0)
		want := name == "lenient"
		for where, text := range map[string]string{"text": o.out, "md": md.out} {
			if strings.Contains(text, "unvalidated") != want {
				t.Errorf("%s, %s: unvalidated is noted: %v\n%s", name, where, !want, text)
			}
		}
		if rec.Join.Unvalidated != want || strings.Contains(p.read("r.json"), `"unvalidated": true`) != want {
			t.Errorf("%s: the record says unvalidated: %v", name, rec.Join.Unvalidated)
		}
	}
}
