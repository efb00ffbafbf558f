package main

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"joinbench/results"
)

// TestRunAtARate: an open loop leaves three histograms, says what was offered and achieved, and joins what a closed one does.
func TestRunAtARate(t *testing.T) {
	p := newBenchPlace(t)
	closed := p.bench(0)
	if l := closed.Load; l.Mode != "closed" || l.OfferedPerS != nil || l.Generator.CeilingPerS == nil || l.Generator.LagP99Ns != nil {
		t.Errorf("closed loop: load %+v", l)
	}
	if l := closed.Latency; l == nil || l.Service == nil || l.Response != nil || l.ScheduleLag != nil || l.Service.Count != closed.Join.B.Read {
		t.Errorf("closed loop: latency %+v", l)
	}
	for _, args := range [][]string{{"--rate", "40k/s"}, {"--rate", "40k", "--arrival", "poisson", "--tasks", "2"}, {"-r", "40k", "--mode", "open", "--duration", "400ms"}} {
		o := joinbench(append([]string{"run", "--config", p.path("small.yaml"), "--out", p.path("r.json"), "--progress", "none"}, args...)...)
		if o.code != 0 && o.code != results.ExitInvalid { // a busy machine may not keep the schedule
			t.Fatalf("%v: exit code %d: %s", args, o.code, o.err)
		}
		rec := p.record()
		want := closed.Join.B.Read
		if len(args) == 6 && args[4] == "--duration" {
			want = 16_000
		}
		if rec.Join.B.Read != want || rec.Join.Missing+rec.Join.Spurious+rec.Join.Duplicated != 0 || !rec.Run.Complete {
			t.Errorf("%v: %d B read, want %d; truth %+v", args, rec.Join.B.Read, want, rec.Join.Truth)
		}
		if want == closed.Join.B.Read && rec.Join.Matches != closed.Join.Matches {
			t.Errorf("%v: %d pairs, the closed loop had %d", args, rec.Join.Matches, closed.Join.Matches)
		}
		if l := rec.Load; l.Mode != "open" || *l.OfferedPerS != 40_000 || l.CatchUp != "queue" || (l.Arrival == "poisson") != slices.Contains(args, "poisson") ||
			l.Generator.LagP99Ns == nil || l.Generator.BlockedRatio == nil || l.Generator.CeilingPerS == nil {
			t.Errorf("%v: load %+v", args, l)
		}
		for name, s := range map[string]*results.Summary{"response": rec.Latency.Response, "service": rec.Latency.Service, "lag": rec.Latency.ScheduleLag} {
			if s == nil || s.Count != want {
				t.Errorf("%v: %s is not that of all B: %+v", args, name, s)
			}
		}
		if !strings.Contains(o.out, "schedule lag") || !strings.Contains(o.out, "of 40.00 k/s offered") {
			t.Errorf("%v: report\n%s", args, o.out)
		}
	}
}

// TestRateBeyondTheGenerator: what no generator can offer is no measurement.
func TestRateBeyondTheGenerator(t *testing.T) {
	p := newBenchPlace(t)
	if rec := p.bench(results.ExitInvalid, "--rate", "1G/s"); rec.Verdict.Status != results.StatusInvalid || len(rec.Verdict.Reasons) == 0 {
		t.Errorf("verdict %+v", rec.Verdict)
	}
}

// TestLoadModeFlags: what does not fit together is refused, with what to do.
func TestLoadModeFlags(t *testing.T) {
	p := newBenchPlace(t)
	for args, text := range map[string]string{
		"--mode open":             "add --rate",
		"--mode closed --rate 5k": "leave out --mode closed",
		"--mode ajar":             "open or closed",
		"--rate fast":             "not a rate",
		"--rate 0":                "from 0.1",
		"--rate 5 --arrival bus":  "uniform or poisson",
		"--rate 5 --catch-up run": "queue or drop",
		"--catch-up drop":         "add --rate",
		"--arrival poisson":       "add --rate",
		"--rate 5 --catch-up drop --dir d --resume": "cannot be resumed",
	} {
		joinbench(append([]string{"run", "--config", p.path("small.yaml")}, strings.Fields(args)...)...).want(t, results.ExitUsage, text)
	}
}

// TestInterruptedWhileMeasuring: SIGINT while B ask, in both modes, leaves a record that is whole but for being complete.
func TestInterruptedWhileMeasuring(t *testing.T) {
	for mode, args := range map[string][]string{"closed": nil, "open": {"--rate", "20k/s"}, "drop": {"--rate", "20k/s", "--catch-up", "drop"}} {
		t.Run(mode, func(t *testing.T) {
			p := newPlace(t)
			p.write("small.yaml", strings.Replace(smallProfile, "b_events: 24k", "b_events: 400k", 1))
			run := startProgram(t, nil, append([]string{"run", "--config", p.path("small.yaml"), "--out", p.path("r.json"), "--dir", p.path("data"),
				"--progress", "none"}, args...)...)
			waitFor(t, "pairs", func() bool { return size(p.path("data/pairs.bin")) > 1000 })
			run.signal(syscall.SIGINT)
			o := run.end()
			o.want(t, results.ExitInterrupted)
			rec := p.record()
			if rec.Run.Complete || rec.Verdict.Status != results.StatusInterrupted || rec.Verdict.ExitCode != results.ExitInterrupted {
				t.Errorf("complete %v, verdict %+v", rec.Run.Complete, rec.Verdict)
			}
			if !strings.Contains(p.read("r.json"), `"complete": false`) {
				t.Error(`the record does not say "complete": false`)
			}
			if rec.Join.Truth == nil || rec.Join.Missing+rec.Join.Spurious+rec.Join.Duplicated != 0 || rec.Join.Matches == 0 {
				t.Errorf("what was joined until then: %+v", rec.Join.Truth)
			}
			last := rec.Phases[len(rec.Phases)-1]
			if last.Name != "measure" || last.DurationNs <= 0 || last.Records == 0 {
				t.Errorf("phases %+v", rec.Phases)
			}
			if rec.Latency == nil || rec.Latency.Service == nil || rec.Latency.Service.Count != rec.Join.B.Read || rec.Load.AchievedPerS == nil {
				t.Errorf("latency %+v, load %+v", rec.Latency, rec.Load)
			}
			if (rec.Latency.Response != nil) != (mode != "closed") {
				t.Errorf("response %+v", rec.Latency.Response)
			}
			joinbench("report", p.path("r.json")).want(t, 0)
			again := joinbench("run", "--config", p.path("small.yaml"), "--dir", p.path("data"), "--resume", "--out", p.path("r.json"), "--progress", "none", "--rate", "1M")
			if mode == "drop" {
				again.want(t, 1, "remove the directory")
				return
			}
			if rec = p.record(); rec.Join.B.Read != 400_000 || rec.Join.Missing+rec.Join.Spurious+rec.Join.Duplicated != 0 || !rec.Run.Complete {
				t.Errorf("resumed at a rate: %d B, %+v, %s", rec.Join.B.Read, rec.Join.Truth, again.err)
			}
		})
	}
}
