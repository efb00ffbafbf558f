package results

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

// script plays a run: 4 s of preparing, then measuring at 1,000 B/s and, after 8 s, at 3,000 B/s.
func script(start time.Time) func() Snapshot {
	return func() Snapshot {
		sec := int64(time.Since(start) / time.Second)
		s := Snapshot{Phase: "prepare", Total: 4000, Done: 1000 * sec, A: 1000 * sec, Pending: 1000 * sec, RSSBytes: 412 << 20}
		if sec >= 4 {
			s.Phase, s.A, s.Pending = "measure", 4000, 4000
			s.Probes = 1000*min(sec-4, 4) + 3000*max(0, sec-8)
			s.Done, s.Total, s.Matches, s.Lookups = s.Probes, 10_000, s.Probes/100, s.Probes/50
		}
		return s
	}
}

// play runs Live in a world whose clock only moves when all wait, and returns what it wrote.
func play(t *testing.T, p Progress, d time.Duration, during func(*Live)) string {
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		l := StartLive(LiveOptions{Progress: p, Out: &out, Read: script(time.Now())})
		time.Sleep(d)
		synctest.Wait()
		if during != nil {
			during(l)
		}
		l.Stop()
		l.Stop() // a second time does nothing
	})
	return out.String()
}

func TestProgressPlain(t *testing.T) {
	got := play(t, ProgressPlain, 9500*time.Millisecond, func(l *Live) { l.Write([]byte("warning: disk is slow\n")) })
	want := `1.00 s   prepare 25.0 %, ETA 3.00 s: pending 1,000, RSS 412.0 MiB, A 1000 /s
2.00 s   prepare 50.0 %, ETA 2.00 s: pending 2,000, RSS 412.0 MiB, A 1000 /s
3.00 s   prepare 75.0 %, ETA 1.00 s: pending 3,000, RSS 412.0 MiB, A 1000 /s
4.00 s   measure 0.0 %: pending 4,000, RSS 412.0 MiB, A 1000 /s
5.00 s   measure 10.0 %, ETA 9.00 s: B 1000 /s now, 1000 /s in phase, match 1.000 %, pending 4,000, 0.02 lookups/B, RSS 412.0 MiB
`
	lines := strings.SplitAfter(got, "\n")
	if len(lines) != 12 || lines[11] != "" { // 9 ticks, the warning, the end
		t.Fatalf("%d lines:\n%s", len(lines), got)
	}
	if first := strings.Join(lines[:5], ""); first != want {
		t.Errorf("got\n%swant\n%s", first, want)
	}
	if lines[9] != "warning: disk is slow\n" {
		t.Errorf("the warning reads %q", lines[9])
	}
	if !strings.Contains(lines[8], "B 3000 /s now") || !strings.Contains(lines[10], "measure 70.0 %, end: B 1273 /s in phase, match") {
		t.Errorf("the last lines:\n%s%s", lines[8], lines[10])
	}
}

func TestProgressJSON(t *testing.T) {
	got := play(t, ProgressJSON, 9*time.Second, func(l *Live) { l.Write([]byte("two\nlines\n")) })
	var frames []frame
	messages := 0
	for line := range strings.Lines(got) {
		var f frame
		var m struct{ Message string }
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if m.Message != "" {
			messages++
			if m.Message != "two\nlines" {
				t.Errorf("the message is %q", m.Message)
			}
			continue
		}
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		frames = append(frames, f)
	}
	if len(frames) != 10 || messages != 1 {
		t.Fatalf("%d frames, %d messages:\n%s", len(frames), messages, got)
	}
	f := frames[8] // after 9 s
	value := func(v *float64) float64 {
		if v == nil {
			return -1
		}
		return *v
	}
	if f.TNs != 9e9 || f.Phase != "measure" || f.Probes != 7000 || f.Matches != 70 || f.Final || f.RSSBytes != 412<<20 ||
		value(f.ProbesPerS) != 3000 || value(f.DoneRatio) != 0.7 || value(f.MatchRatio) != 0.01 || value(f.LookupsPerProbe) != 0.02 {
		t.Errorf("after 9 s: %+v", f)
	}
	if !frames[9].Final {
		t.Error("the last frame does not say so")
	}
	if !strings.Contains(got, `"probes_per_s":3000,"probes_per_s_phase":`) || !strings.Contains(got, `"match_ratio":null`) {
		t.Errorf("names:\n%s", got)
	}
}

func TestProgressNone(t *testing.T) {
	if got := play(t, ProgressNone, 9*time.Second, func(l *Live) { l.Write([]byte("warning\n")) }); got != "warning\n" {
		t.Errorf("wrote %q", got)
	}
}

// What is not a terminal gets plain lines.
func TestProgressAuto(t *testing.T) {
	if got := play(t, ProgressAuto, time.Second, nil); !strings.HasPrefix(got, "1.00 s   prepare") {
		t.Errorf("wrote %q", got)
	}
}

// The bars: each phase has one, a phase that another has followed is done, the last frame stays, no line is too wide.
func TestProgressTTY(t *testing.T) {
	got := play(t, ProgressTTY, 9*time.Second, func(l *Live) { l.Write([]byte("warning: disk is slow\n")) })
	last := got[strings.LastIndex(got, "\x1b[J"):]
	if strings.Count(strings.Replace(last, "warning: disk is slow\n", "", 1), "\n") != 4 {
		t.Errorf("two phases leave not four lines on the screen:\n%q", last)
	}
	for _, want := range []string{"prepare", "prepare done [", "measure 70.0 % [", "B 3000 /s match 1.000 % pending 4000 ", "B 1400 /s match 1.000 %", "match 1", "RSS 412.0 MiB"} {
		if !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
			t.Errorf("lacks %q:\n%q", want, got)
		}
	}
	if !strings.Contains(got, "warning: disk is slow\n") {
		t.Errorf("the warning is lost:\n%q", got)
	}
	for line := range strings.Lines(got) {
		if i := strings.LastIndex(line, "\x1b[J"); i >= 0 {
			line = line[i+3:]
		}
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
}

// brokenPipe fails to write after the first few bytes.
type brokenPipe struct{ left int }

func (b *brokenPipe) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, os.ErrClosed
	}
	return len(p), nil
}

// A terminal that goes away ends neither the run nor Stop.
func TestProgressWithoutReader(t *testing.T) {
	for _, p := range []Progress{ProgressTTY, ProgressPlain, ProgressJSON} {
		synctest.Test(t, func(t *testing.T) {
			looks := 0
			read := script(time.Now())
			l := StartLive(LiveOptions{Progress: p, Out: &brokenPipe{left: 200}, Read: func() Snapshot { looks++; return read() }})
			time.Sleep(9 * time.Second)
			synctest.Wait()
			l.Write([]byte("nobody reads this\n"))
			l.Stop()
			if looks != 10 {
				t.Errorf("%s: looked %d times", p, looks)
			}
		})
	}
}

func TestTracker(t *testing.T) {
	at := func(sec int64) time.Time { return time.Unix(1000+sec, 0) }
	tr := tracker{start: at(0), last: at(0), phaseStart: at(0)}
	tr.next(Snapshot{Phase: "warm", Probes: 100, Matches: 10, Lookups: 50}, at(1))
	f := tr.next(Snapshot{Phase: "measure", Probes: 300, Matches: 14, Lookups: 60, Done: 200, Total: 1000}, at(2))
	if *f.ProbesPerS != 200 || *f.ProbesPerSPhase != 200 || *f.MatchRatio != 0.02 || *f.LookupsPerProbe != 0.05 || *f.ETANs != 4e9 {
		t.Errorf("a new phase reckons from its start: %s", must(json.Marshal(f)))
	}
	f = tr.next(Snapshot{Phase: "measure", Probes: 50}, at(3)) // a new arm starts from zero
	if *f.ProbesPerS != 50 || *f.ProbesPerSPhase != 50 || f.ETANs != nil || f.DoneRatio != nil {
		t.Errorf("counts that fall: %s", must(json.Marshal(f)))
	}
	f = tr.next(Snapshot{Phase: "measure", Probes: 60}, at(3)) // no time has passed
	if f.ProbesPerS != nil || *f.ProbesPerSPhase != 60 {
		t.Errorf("in no time: %s", must(json.Marshal(f)))
	}
}

func TestFitted(t *testing.T) {
	f := frame{Probes: 1e9, Pending: 123_456_789, ProbesPerS: Known(1.234e6), ProbesPerSPhase: Known(1.2e6), APerS: Known(5e5),
		MatchRatio: Known(0.01), LookupsPerProbe: Known(0.0123), RSSBytes: 1 << 30}
	for _, width := range []int{0, -3, 1, 40, 78, 90, 200} {
		if n := utf8.RuneCountInString(f.fitted(width)); n > max(0, width) {
			t.Errorf("%d columns of %d", n, width)
		}
	}
	if text := f.fitted(78); strings.Contains(text, "in phase") || !strings.HasSuffix(text, "pending 123.5 M  0.0123 lookups/B  RSS 1.000 GiB") {
		t.Errorf("in 78 columns: %s", text)
	}
	if text := f.fitted(200); !strings.Contains(text, "in phase") {
		t.Errorf("in 200 columns: %s", text)
	}
}

func TestParseProgress(t *testing.T) {
	for _, text := range []string{"auto", "tty", "plain", "json", "none"} {
		if p, err := ParseProgress(text); err != nil || string(p) != text {
			t.Errorf("%q: %q, %v", text, p, err)
		}
	}
	if _, err := ParseProgress("fancy"); err == nil || err.Error() != `progress "fancy" is not known (auto, tty, plain, json, none)` {
		t.Errorf("fancy: %v", err)
	}
}

func TestTerminalOfAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if opt := Terminal(w); opt.Color || opt.Width != 100 {
		t.Errorf("a pipe is written as %+v", opt)
	}
}

// lockedBuffer is a buffer that several goroutines write.
type lockedBuffer struct {
	sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.Lock()
	defer b.Unlock()
	return b.Buffer.Write(p)
}

// Start, stop and messages from several goroutines, for the race detector; in each mode, with real time.
func TestLiveConcurrently(t *testing.T) {
	for _, p := range []Progress{ProgressTTY, ProgressPlain, ProgressJSON, ProgressNone} {
		var out lockedBuffer
		l := StartLive(LiveOptions{Progress: p, Out: &out, Read: script(time.Now()), Every: time.Millisecond})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for range 20 {
					l.Write([]byte("message\n"))
					time.Sleep(200 * time.Microsecond)
				}
				l.Stop()
				l.Write([]byte("after the end\n"))
			})
		}
		wg.Wait()
		if n := strings.Count(out.String(), "after the end"); n != 3 {
			t.Errorf("%s: %d of 3 messages after the end", p, n)
		}
	}
}

// openScript is script with an open loop's figures, and a filter that errs.
func openScript(start time.Time) func() Snapshot {
	read := script(start)
	return func() Snapshot {
		s := read()
		if s.Phase == "measure" {
			s.AbsentQueries, s.FalsePositives = s.Probes, s.Probes/1000
			s.OfferedPerS, s.Queue, s.Dropped, s.LagP99Ns = 5000, 777, 12, 120_000
			s.RecentP50Ns, s.RecentP99Ns, s.ResponseP50Ns, s.ResponseP99Ns = 150_000, 2_500_000, 140_000, 9_000_000
		}
		return s
	}
}

// TestProgressOpen: an open loop shows what is offered, the queue, lag and response, and which of it is over what time; the
// last line has the phase alone.
func TestProgressOpen(t *testing.T) {
	for _, p := range []Progress{ProgressPlain, ProgressJSON} {
		var out bytes.Buffer
		synctest.Test(t, func(t *testing.T) {
			l := StartLive(LiveOptions{Progress: p, Out: &out, Read: openScript(time.Now())})
			time.Sleep(9 * time.Second)
			synctest.Wait()
			l.Stop()
		})
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		ninth, last := lines[8], lines[len(lines)-1]
		if p == ProgressPlain {
			const want = "B 3000 /s now, 1400 /s in phase, of 5000 /s offered, response p50 150 µs p99 2.50 ms now, " +
				"response p50 140 µs p99 9.00 ms in phase, lag p99 120 µs now, 777 waiting, 12 dropped, match 1.000 %, pending 4,000, 0.02 lookups/B, FP 0.1000 %"
			if !strings.Contains(ninth, want) {
				t.Errorf("got\n%s\nwant\n%s", ninth, want)
			}
			if strings.Contains(last, "now") || !strings.Contains(last, "p99 9.00 ms in phase") {
				t.Errorf("the last line: %s", last)
			}
			continue
		}
		for _, part := range []string{`"fp_ratio":0.001`, `"offered_per_s":5000`, `"queue":777`, `"lag_p99_ns_interval":120000`,
			`"response_p99_ns_interval":2500000`, `"response_p99_ns_phase":9000000`} {
			if !strings.Contains(ninth, part) {
				t.Errorf("%s lacks %s", ninth, part)
			}
		}
	}
	if got := play(t, ProgressJSON, 9*time.Second, nil); !strings.Contains(got, `"open":null`) {
		t.Error("a closed loop shows what an open one has")
	}
}
