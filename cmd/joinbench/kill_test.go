package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"joinbench/results"
)

// killed is a join that is started again and again until one lives to its end.
type killed struct {
	t     *testing.T
	p     place
	rng   *rand.Rand
	args  []string
	stdin string // text for standard input, given anew to each life
	total int64  // bytes of the finished results
}

// life starts the join and ends it at a random moment: when its results have grown to a random length, or after a random
// time, which also hits the beginning. True when it came to its end before.
func (k *killed) life(s syscall.Signal) bool {
	k.t.Helper()
	var in io.Reader
	if k.stdin != "" {
		in = strings.NewReader(k.stdin)
	}
	p := startProgram(k.t, in, k.args...)
	done := make(chan outcome, 1)
	go func() { done <- p.end() }()
	out, from := k.p.path("out"), size(k.p.path("out"))
	upTo := from + k.rng.Int64N(max(1, (k.total-from)/2))
	var timeout <-chan time.Time
	if k.rng.IntN(3) == 0 {
		timeout = time.After(time.Duration(k.rng.Int64N(int64(100 * time.Millisecond))))
		upTo = k.total + 1
	}
	look := time.NewTicker(200 * time.Microsecond)
	defer look.Stop()
	for running := true; running; {
		select {
		case o := <-done:
			o.want(k.t, 0)
			return true
		case <-timeout:
			running = false
		case <-look.C:
			running = size(out) <= upTo
		}
	}
	p.signal(s)
	o := <-done
	switch {
	case o.code == 0: // it was faster
		return true
	case o.code == -1 && upTo > k.total: // so early that it had no handler yet
	case s == syscall.SIGINT:
		o.want(k.t, results.ExitInterrupted, "interrupted")
	case s == syscall.SIGTERM:
		o.want(k.t, results.ExitTerminated, "terminated")
	}
	return false
}

// TestKilledJoinGoesOn: ended by SIGINT, SIGTERM and SIGKILL at random moments and started again with the same state
// directory, a join leaves what one leaves that was never ended: files, standard input and compressed input alike.
func TestKilledJoinGoesOn(t *testing.T) {
	const seed, n = 5, 8_000
	rng := rand.New(rand.NewPCG(seed, 0))
	a, b := randomDump(rng, "orders", n), randomDump(rng, "payments", n)
	for name, c := range map[string]struct {
		tasks   int
		signals []syscall.Signal
		stdin   bool
	}{
		"SIGKILL":         {1, []syscall.Signal{syscall.SIGKILL}, false},
		"SIGKILL 3 tasks": {3, []syscall.Signal{syscall.SIGKILL}, true},
		"signals":         {2, []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL}, false},
		"SIGINT":          {1, []syscall.Signal{syscall.SIGINT}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && c.tasks != 3 {
				t.Skip("short")
			}
			p := newPlace(t)
			k := &killed{t: t, p: p, rng: rng}
			conf := p.write("join.yaml", strings.Replace(dumpConf, "tasks: 2", fmt.Sprintf("tasks: %d", c.tasks), 1))
			fileB := p.writeBytes("b.ndjson", []byte(b.in("rpk")))
			args := []string{"join", "-c", conf, "--a", p.writeBytes("a.zst", zstandard(t, a.in("kcat"))), "--b", fileB, "--batch", "64", "--progress", "none"}
			outputs := func(prefix string) []string {
				return []string{"--out", p.path(prefix + "out"), "--late", p.path(prefix + "late"), "--dead", p.path(prefix + "dead"),
					"--unmatched", p.path(prefix + "unmatched"), "--stats", p.path(prefix + "stats")}
			}
			joinbench(append(slices.Clone(args), outputs("whole-")...)...).want(t, 0)
			want := p.stats("whole-stats")
			if want.Buckets.DroppedTotal < 20 || want.Outputs < n/8 {
				t.Fatalf("seed %d: too little happens: %+v", seed, want)
			}
			if c.stdin {
				args[slices.Index(args, fileB)], k.stdin = "-", b.in("rpk")
			}
			k.args, k.total = append(append(args, "--state-dir", p.path("state")), outputs("")...), size(p.path("whole-out"))

			lives := 1
			for ; lives < 8; lives++ {
				if k.life(c.signals[lives%len(c.signals)]) {
					break
				}
			}
			if lives == 8 {
				joinbenchWith(strings.NewReader(k.stdin), k.args...).want(t, 0)
			}
			if lives < 3 {
				t.Errorf("only %d lives: nothing was tested", lives)
			}
			got := p.stats("stats")
			checkSums(t, &got)
			if got.A != want.A || got.B != want.B || got.Outputs != want.Outputs || got.Matches != want.Matches || got.Probes != want.Probes ||
				got.UnmatchedA != want.UnmatchedA || got.UnmatchedB != want.UnmatchedB {
				t.Errorf("seed %d, %d lives: counters\n got %+v\nwant %+v", seed, lives, got, want)
			}
			for _, name := range []string{"out", "late", "dead", "unmatched"} {
				g, w := p.lines(name), p.lines("whole-"+name)
				if name == "unmatched" { // the order of A inside a bucket depends on whether it was sealed by then
					slices.Sort(g)
					slices.Sort(w)
				}
				if !slices.Equal(g, w) {
					t.Errorf("seed %d, %d lives: %s has %d lines, want %d, or others", seed, lives, name, len(g), len(w))
				}
			}
			if spools, _ := os.ReadDir(p.path("state")); len(spools) > 2+c.tasks {
				t.Errorf("the state directory keeps %v", spools)
			}
		})
	}
}

// TestSignalWhileInputIsSilent: a join that waits for its standard input ends at the first signal.
func TestSignalWhileInputIsSilent(t *testing.T) {
	p := newPlace(t)
	conf, a := p.write("join.yaml", plainConf), p.write("a.ndjson", `{"id":"k","t":1}`)
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer feed.Close()
	run := startProgram(t, in, "join", "-c", conf, "--a", a, "--b", "-", "--state-dir", p.path("state"), "--progress", "none")
	waitFor(t, "the lock", func() bool { return size(p.path("state/LOCK")) > 0 })
	run.signal(syscall.SIGTERM)
	run.end().want(t, results.ExitTerminated, "terminated")
}
