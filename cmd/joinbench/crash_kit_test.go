package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"joinbench/internal/failpoint"
)

// What the program reads when it is built with the tag failpoints (internal/failpoint, buckets).
const (
	killVariable       = "JOINBENCH_FAILPOINT"
	logVariable        = "JOINBENCH_FAILPOINT_LOG"
	checkpointVariable = "JOINBENCH_FAILPOINT_CHECKPOINT"
)

// hangs is how long one life may take before it counts as hanging: far more than the slowest takes.
const hangs = 2 * time.Minute

// buildForCrashes builds the program with failpoints, which only this build has.
func buildForCrashes(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "joinbench")
	out, err := exec.Command("go", "build", "-tags=failpoints,grocksdb_no_link", "-o", path, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("building joinbench with failpoints: %v\n%s", err, out)
	}
	return path
}

// crash is how one life of the program is to end: at the at-th hit of a point, or without a point after some time.
type crash struct {
	point string
	at    int
	after time.Duration
}

func (c crash) String() string {
	if c.point != "" {
		return fmt.Sprintf("%s=%d", c.point, c.at)
	}
	return c.after.String()
}

// plan is the crashes of one trial, one life after another; after them the program may live to its end.
type plan []crash

func (p plan) String() string { return listed(p) }

// listed is a plan as text, which the flags take again.
func listed[T fmt.Stringer](p []T) string {
	var s []string
	for _, c := range p {
		s = append(s, c.String())
	}
	return strings.Join(s, ",")
}

func parsePlan(text string) (plan, error) {
	var p plan
	for s := range strings.SplitSeq(text, ",") {
		c, err := parseCrash(s, failpoint.All())
		if err != nil {
			return nil, fmt.Errorf("plan %q: %q: %w", text, s, err)
		}
		p = append(p, c)
	}
	return p, nil
}

// parseCrash reads POINT=2 or 40ms.
func parseCrash(text string, points []string) (c crash, err error) {
	name, at, ok := strings.Cut(text, "=")
	if !ok {
		c.after, err = time.ParseDuration(text)
		return c, err
	}
	c.point = name
	if c.at, err = strconv.Atoi(at); err == nil && !slices.Contains(points, name) {
		err = errors.New("no such point")
	}
	return c, err
}

// wrong is what differs from an unbroken run.
type wrong struct {
	missing, spurious, duplicated int
	lines                         []string // a few of these
	other                         []string // faults without a number: a counter, a file, an exit code
}

func (w *wrong) add(x wrong) {
	w.missing += x.missing
	w.spurious += x.spurious
	w.duplicated += x.duplicated
	w.lines = append(w.lines, x.lines...)
	w.other = append(w.other, x.other...)
}

func (w *wrong) say(format string, args ...any) {
	w.other = append(w.other, fmt.Sprintf(format, args...))
}

func (w *wrong) is() bool { return w.missing+w.spurious+w.duplicated+len(w.other) > 0 }

func (w wrong) String() string {
	return fmt.Sprintf("%d missing, %d spurious, %d duplicated\n%s", w.missing, w.spurious, w.duplicated, strings.Join(append(w.other, w.lines...), "\n"))
}

// compareBags holds two multisets against each other.
func compareBags(what string, got, want []string) wrong {
	const few = 5
	var w wrong
	left, known := map[string]int{}, map[string]bool{}
	for _, l := range want {
		left[l]++
		known[l] = true
	}
	count := func(n *int, how, l string) {
		if *n++; *n <= few {
			w.lines = append(w.lines, fmt.Sprintf("%s: %s: %s", what, how, l))
		}
	}
	for _, l := range got {
		switch {
		case left[l] > 0:
			left[l]--
		case known[l]:
			count(&w.duplicated, "duplicated", l)
		default:
			count(&w.spurious, "spurious", l)
		}
	}
	for _, l := range want {
		if left[l] > 0 {
			left[l]--
			count(&w.missing, "missing", l)
		}
	}
	return w
}

// workload is one input with one configuration, and what an unbroken run makes of it.
type workload struct {
	kind  string // join, run
	about string // for people
	env   []string
	// command is the program's arguments in its n-th life from 0, for a directory that holds all that a run of it writes.
	command func(dir string, n int) []string
	// check holds what a finished run left in its directory against the truth and against the unbroken run, which is the
	// one that it is called for first.
	check func(dir string) wrong

	hits map[string]int // of the unbroken run
	took time.Duration

	spills int64 // of the run that was checked last, all lives
}

// life is one process, from its start to its end.
type life struct {
	code   int // exit code, -1 for a signal
	killed bool
	said   string // on both outputs
	hits   map[string]int
	took   time.Duration
	ready  time.Duration // from its start to the first batch that is about to commit; 0: there was none
}

// live starts the program in dir for the n-th time and lets it end as c says; nil: by itself.
func (w *workload) live(binary, dir string, n int, c *crash) (life, error) {
	log := filepath.Join(dir, "hits")
	if err := os.WriteFile(log, nil, 0o644); err != nil {
		return life{}, err
	}
	cmd := exec.Command(binary, w.command(dir, n)...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.Env = append(append(os.Environ(), w.env...), logVariable+"="+log)
	var kill <-chan time.Time
	if c != nil && c.point != "" {
		cmd.Env = append(cmd.Env, killVariable+"="+c.String())
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return life{}, err
	}
	if c != nil && c.point == "" {
		kill = time.After(c.after)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	var err error
	hung := false
	for running, deadline := true, time.After(hangs); running; {
		select {
		case err = <-done:
			running = false
		case <-kill:
			_ = cmd.Process.Kill() // it may have ended by itself
		case <-deadline:
			hung = true
			_ = cmd.Process.Signal(syscall.SIGQUIT) // shows where its goroutines are
			kill = time.After(10 * time.Second)
		}
	}
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		return life{}, err
	}
	l := life{code: cmd.ProcessState.ExitCode(), took: time.Since(start), said: said.String()}
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	l.killed = status.Signaled() && status.Signal() == syscall.SIGKILL
	if hung {
		return l, fmt.Errorf("it ran for %v: %s", hangs, l.said)
	}
	l.hits, l.ready, err = readHits(log, start)
	if err == nil && c != nil && c.point != "" && l.killed && l.hits[c.point] < c.at { // other tasks may hit it while the signal is on its way
		err = fmt.Errorf("killed at hit %d of %s, and not by the failpoint", l.hits[c.point], c)
	}
	return l, err
}

// readHits counts the hits of a life, and finds the first batch that was about to be committed.
func readHits(path string, start time.Time) (map[string]int, time.Duration, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, 0, err
	}
	hits, ready := map[string]int{}, time.Duration(0)
	for line := range strings.Lines(string(data)) {
		name, at, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		ns, err := strconv.ParseInt(at, 10, 64)
		if err != nil || !slices.Contains(kafkaPoints(), name) {
			return nil, 0, fmt.Errorf("line %q in the log of hits", line)
		}
		if hits[name]++; name == failpoint.OutputAfter && ready == 0 {
			ready = time.Unix(0, ns).Sub(start)
		}
	}
	return hits, ready, nil
}

// unbroken runs the workload to its end and keeps what the others are held against.
func (w *workload) unbroken(t *testing.T, binary string) {
	t.Helper()
	dir := t.TempDir()
	l, err := w.live(binary, dir, 0, nil)
	if err != nil || l.code != 0 {
		t.Fatalf("the unbroken run of %s: exit code %d, %v\n%s", w.about, l.code, err, l.said)
	}
	if wrong := w.check(dir); wrong.is() {
		t.Fatalf("the unbroken run of %s is wrong: %v", w.about, wrong)
	}
	w.hits, w.took = l.hits, l.took
}

// draw makes a crash at a point, at any of the hits that are left after those of the lives before.
func (w *workload) draw(rng *rand.Rand, point string, before map[string]int) crash {
	return crash{point: point, at: 1 + rng.IntN(max(1, w.hits[point]-before[point]))}
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }
