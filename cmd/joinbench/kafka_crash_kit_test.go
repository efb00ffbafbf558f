package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"joinbench/internal/failpoint"
	"joinbench/internal/kafkatest"
	"joinbench/pipeline"
)

// What can happen to a life of serve.
const (
	faultKill   = "kill"   // kill -9
	faultTerm   = "term"   // SIGTERM
	faultStop   = "stop"   // SIGSTOP for longer than a transaction may take, then SIGCONT
	faultAway   = "away"   // SIGSTOP for longer than the group waits for its member, then SIGCONT
	faultBroker = "broker" // kill -9 of the broker, which comes back
	faultLeave  = "leave"  // the broker ends as it should, and comes back
	faultTwin   = "twin"   // SIGSTOP; another process takes over with a directory of its own; SIGCONT; then both are killed
)

var kafkaFaults = []string{faultKill, faultTerm, faultStop, faultAway, faultBroker, faultLeave, faultTwin}

// kafkaFault is what happens in one life of serve: kill@kafka.offsets=2, lost+term@40ms, drain+broker@kafka.end.before=1.
type kafkaFault struct {
	drain bool   // the life is to read to the end
	lost  bool   // the state's directory is deleted before it
	kind  string // one of the above
	crash        // when: at a point, or so long after the start
}

func (f kafkaFault) String() string {
	text := f.kind + "@" + f.crash.String()
	if f.lost {
		text = "lost+" + text
	}
	if f.drain {
		text = "drain+" + text
	}
	return text
}

// serves says that serve lives on after the fault.
func (f kafkaFault) serves() bool { return f.kind != faultKill && f.kind != faultTerm }

// kills says that it does not live on, and has no say in that.
func (f kafkaFault) kills() bool { return f.kind == faultKill || f.kind == faultTwin }

func (f kafkaFault) ofBroker() bool { return f.kind == faultBroker || f.kind == faultLeave }

type kafkaPlan []kafkaFault

func (p kafkaPlan) String() string { return listed(p) }

// kafkaPoints are the points that a batch of serve meets, then those of the state's buckets.
func kafkaPoints() []string { return slices.Concat(failpoint.Kafka(), failpoint.All()) }

func parseKafkaPlan(text string) (kafkaPlan, error) {
	var p kafkaPlan
	for s := range strings.SplitSeq(text, ",") {
		var f kafkaFault
		rest := s
		rest, f.drain = strings.CutPrefix(rest, "drain+")
		rest, f.lost = strings.CutPrefix(rest, "lost+")
		kind, when, ok := strings.Cut(rest, "@")
		if f.kind = kind; !ok || !slices.Contains(kafkaFaults, kind) {
			return nil, fmt.Errorf("plan %q: %q: want [drain+][lost+]%s@MOMENT", text, s, strings.Join(kafkaFaults, "|"))
		}
		var err error
		if f.crash, err = parseCrash(when, kafkaPoints()); err != nil {
			return nil, fmt.Errorf("plan %q: %q: %w", text, s, err)
		}
		p = append(p, f)
	}
	return p, nil
}

// The times of a scene: as short as they can be. A broker takes no shorter sessions than sessionTimeout.
const (
	transactionTimeout = time.Second
	sessionTimeout     = 6 * time.Second
	abortInterval      = 8 * time.Second // of scripts/kafka.sh: how often a broker looks for transactions whose time is over
	quiet              = 2 * time.Second // after so long without a step, serve has nothing to do
)

// Workloads of scenes, to be told how many B there are, and the seed. Few A wait before the first B: until these are read, no batch has
// a result.
const (
	sceneLoad    = `{pending: 150, b_events: %d, ages: [12m, 25m, 40m], b_rate: auto, match_rate: 0.1, duplicates: 0.02, late_share: 0.01, disorder: 2s, record_bytes: 320, partitions: 3, seed: %d}`
	sceneFamily  = `{pending: 500, b_events: %d, ages: [12m, 25m, 40m], b_rate: auto, match_rate: 0.1, b_per_a: 3, end_share: 0.1, mark_share: 0.2, late_share: 0.01, disorder: 2s, record_bytes: 320, partitions: 3, seed: %d}`
	sceneCounted = `{pending: 500, b_events: %d, ages: [12m, 25m, 40m], b_rate: auto, match_rate: 0.1, b_per_a: 3, end_share: 0.1, wrong_counts: 0.1, late_share: 0.01, disorder: 2s, record_bytes: 320, partitions: 3, seed: %d}`
)

// sceneJoins are the joins of scenes.
var sceneJoins = []struct{ name, load, rules string }{
	{"inner", sceneLoad, ""},
	{"left", sceneLoad, "type: left\n"},
	{"outer, wait", strings.Replace(sceneLoad, "duplicates: 0.02", "duplicates: 0", 1), "type: outer\nprobe: wait\n"},
	{"early, retract", sceneLoad, "type: left\nearly: 20m\nretract: true\n"},
	{"many-to-many", sceneLoad, "cardinality: many-to-many\n"},
	{"groups", sceneFamily, "type: left\ncardinality: one-to-many\ncollect: timeout\n"},
	{"groups by count", sceneCounted, "type: left\ncardinality: one-to-many\ncollect: {count: $.line_count}\n"},
}

// deliveries are how results are delivered, and whether a changelog is kept.
var deliveries = []struct{ name, rules, changelog string }{
	{"exactly-once", "delivery: exactly-once\n", "auto"},
	{"at-least-once", "delivery: at-least-once\n", "on"},
	{"at-least-once, no changelog", "delivery: at-least-once\n", "off"},
}

// kafkaScene is a join of two topics whose serve, whose state and whose broker are not left in peace.
type kafkaScene struct {
	*topics
	t                    *testing.T
	binary, conf         string
	about                string
	delivery             int
	exactly              bool
	transactional        bool
	group, instance      string
	events, part, loaded int64 // B in all, of a part, loaded
	life                 int   // how many there were
}

// drawScene draws a workload and a join for a broker that is the scene's own.
func drawScene(t *testing.T, binary string, b *kafkatest.Broker, rng *rand.Rand, delivery, kind int, parts int64) *kafkaScene {
	t.Helper()
	d, j := deliveries[delivery], sceneJoins[kind]
	s := &kafkaScene{t: t, binary: binary, delivery: delivery, exactly: delivery == 0, group: kafkatest.Name(t),
		transactional: rng.IntN(2) == 0, part: 250}
	s.events = s.part * parts
	if b.Real() || rng.IntN(5) > 0 {
		s.instance = "one" // it takes over from what a kill left, and need not wait
	}
	tasks := 1 + rng.IntN(3)
	rules := fmt.Sprintf("%s%sstate: {buckets: %d, tasks: %d, memory: %s, sync: %s}\n", j.rules, d.rules, pick(rng, 4, 16), tasks,
		pick(rng, "2MiB", "16MiB"), pick(rng, "none", "interval"))
	s.topics = newTopicsOn(t, b, fmt.Sprintf(j.load, s.events, rng.Uint32N(1<<20)), rules)
	s.conf = s.write("join.yaml", joinbench(s.args("load", "--print-join")...).out)
	if err := s.load(""); err != nil { // or there are no topics
		t.Fatal(err)
	}
	s.about = fmt.Sprintf("%s, %s, %d tasks, input in transactions: %v, instance %q", d.name, j.name, tasks, s.transactional, s.instance)
	return s
}

// load loads the next part of the workload. It may be called beside serve.
func (s *kafkaScene) load(rate string) error {
	if s.loaded >= s.events {
		return nil
	}
	args := s.args("load", "--from", fmt.Sprint(s.loaded), "--to", fmt.Sprint(s.loaded+s.part))
	if s.transactional {
		args = append(args, "--transactional", "--abort-share", "0.3")
	}
	if rate != "" {
		args = append(args, "--rate", rate)
	}
	s.loaded += s.part
	if o := joinbench(args...); o.code != 0 {
		return fmt.Errorf("load: exit code %d: %s", o.code, o.err)
	}
	return nil
}

// serving is one life of serve.
type serving struct {
	*exec.Cmd
	s     *kafkaScene
	life  int
	began time.Time
	done  chan struct{} // closed when it has ended
	err   error         // of Wait
}

func (s *kafkaScene) start(f kafkaFault, dir string) (*serving, error) {
	s.life++
	p := &serving{s: s, life: s.life, began: time.Now(), done: make(chan struct{})}
	args := []string{"serve", "-c", s.conf, "--state-dir", s.path(dir), "--create-topics", "--commit-interval", "2ms", "--batch", "40",
		"--transaction-timeout", transactionTimeout.String(), "--session-timeout", sessionTimeout.String(), "--stats", s.path("stats")}
	if f.drain {
		args = append(args, "--drain")
	}
	p.Cmd = exec.Command(s.binary, args...)
	p.Env = append(os.Environ(), logVariable+"="+p.hits(), "JOINBENCH_FAILPOINT_TRIM=10ms", checkpointVariable+"=2000", "JOINBENCH_KAFKA_GROUP="+s.group, "JOINBENCH_KAFKA_INSTANCE="+s.instance,
		"JOINBENCH_KAFKA_CHANGELOG="+deliveries[s.delivery].changelog)
	if f.point != "" {
		kill := f.crash.String()
		if f.serves() {
			kill += ":stop"
		}
		p.Env = append(p.Env, killVariable+"="+kill)
	}
	said, err := os.Create(p.said())
	if err != nil {
		return nil, err
	}
	defer said.Close() //nolint:errcheck // the process writes it
	p.Stdout, p.Stderr = said, said
	if err := p.Start(); err != nil {
		return nil, err
	}
	go func() { p.err = p.Wait(); close(p.done) }()
	return p, nil
}

func (p *serving) hits() string { return p.s.path(fmt.Sprintf("hits-%d", p.life)) }
func (p *serving) said() string { return p.s.path(fmt.Sprintf("said-%d", p.life)) }

// count is how often this life met a point.
func (p *serving) count(point string) int {
	data, _ := os.ReadFile(p.hits()) // nothing was met if it is not there
	return bytes.Count(append([]byte("\n"), data...), []byte("\n"+point+" "))
}

// stopped says that the process does not run, for SIGSTOP.
func (p *serving) stopped() bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Process.Pid))
	_, state, ok := bytes.Cut(data, []byte(") "))
	return err == nil && ok && state[0] == 'T'
}

func (p *serving) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// look calls fn until it says that it has seen what it waits for.
func (p *serving) look(what string, fn func() bool) error {
	for deadline := time.Now().Add(hangs); !fn(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			_ = p.Process.Signal(syscall.SIGCONT)
			_ = p.Process.Signal(syscall.SIGQUIT) // shows where its goroutines are
			<-p.done
			return fmt.Errorf("waited for %v for: %s", hangs, what)
		}
	}
	return nil
}

// idle says when a process that runs has had nothing to do for a while.
func (p *serving) idle() func() bool {
	var since time.Time
	last := int64(-1)
	return func() bool {
		now := size(p.hits())
		if now != last || now == 0 {
			last, since = now, time.Now()
			return false
		}
		return time.Since(since) > quiet
	}
}

// moment waits until the fault is due; false: the process ended before, or has nothing more to do.
func (p *serving) moment(f kafkaFault) (due bool, err error) {
	if f.point == "" {
		select {
		case <-time.After(f.after):
			return true, nil
		case <-p.done:
			return false, nil
		}
	}
	idle := p.idle()
	err = p.look(f.crash.String(), func() bool {
		due = f.serves() && p.stopped()
		return due || p.ended() || idle()
	})
	return due, err
}

// faulted is what came of a life.
type faulted struct {
	happened bool // the fault did
	finished bool // the topics are drained
	ready    time.Duration
}

// live is one life with one fault. An error says what it should not have done.
func (s *kafkaScene) live(f kafkaFault, rate string) (r faulted, err error) {
	if f.lost {
		if err := os.RemoveAll(s.path("state")); err != nil {
			return r, err
		}
	}
	p, err := s.start(f, "state")
	if err != nil {
		return r, err
	}
	defer func() { _ = p.Process.Kill(); <-p.done }()
	loading := make(chan error, 1)
	if f.drain {
		loading <- nil
	} else {
		go func() { loading <- s.load(rate) }()
		if f.serves() { // then it loads more, or nobody else is to notice
			err := <-loading
			loading <- err
		}
	}
	due, err := p.moment(f)
	if err != nil {
		return r, p.explain(err)
	}
	if due {
		err = p.suffer(f)
	}
	if err := errors.Join(err, <-loading); err != nil {
		return r, p.explain(err)
	}
	r.happened = due && f.kind != faultKill
	return r, p.finish(f, &r)
}

// suffer does to the process, or to the broker, what the fault says.
func (p *serving) suffer(f kafkaFault) error {
	signal := func(s syscall.Signal) { _ = p.Process.Signal(s) } // it may have ended by itself
	b := p.s.broker
	switch f.kind {
	case faultKill:
		signal(syscall.SIGKILL)
	case faultTerm:
		signal(syscall.SIGTERM)
	case faultStop, faultAway:
		signal(syscall.SIGSTOP)
		gone := transactionTimeout * 3 / 2
		if b.Real() {
			gone += abortInterval
		}
		if f.kind == faultAway {
			gone = sessionTimeout + transactionTimeout
		}
		<-time.After(gone)
		signal(syscall.SIGCONT)
	case faultTwin:
		signal(syscall.SIGSTOP)
		return p.twin()
	case faultBroker:
		b.Kill(p.s.t)
		signal(syscall.SIGCONT)
		b.Restart(p.s.t)
	case faultLeave:
		signal(syscall.SIGCONT) // or the broker would wait for it
		b.Stop(p.s.t)
		b.Restart(p.s.t)
	}
	if !f.serves() || f.drain {
		return nil
	}
	// It goes on by itself.
	before := p.count(failpoint.JournalAfter)
	more := p.s.loaded < p.s.events
	if err := p.s.load(""); err != nil || !more {
		return err
	}
	err := p.look("a batch after "+f.String(), func() bool { return p.count(failpoint.JournalAfter) > before || p.ended() })
	if err == nil && p.ended() {
		err = fmt.Errorf("it ended after %s", f)
	}
	return err
}

// both is how long a process that was thought to be gone and the one in its place run side by side.
const both = 500 * time.Millisecond

// twin lets another process take over from this one, which is stopped, and then lets this one go on.
func (p *serving) twin() error {
	if err := os.RemoveAll(p.s.path("twin")); err != nil {
		return err
	}
	q, err := p.s.start(kafkaFault{}, "twin")
	if err != nil {
		return err
	}
	defer func() { _ = q.Process.Kill(); <-q.done }()
	if err := p.s.load(""); err != nil {
		return err
	}
	idle := q.idle()
	err = q.look("the other process", func() bool { return q.ended() || q.count(failpoint.JournalAfter) > 0 || idle() })
	if err == nil && q.ended() {
		err = errors.New("it could not take over")
	}
	if err != nil {
		return q.explain(err)
	}
	_ = p.Process.Signal(syscall.SIGCONT)
	<-time.After(both)
	_ = p.Process.Kill()
	return nil
}

// finish waits for the end, or asks for it where nothing else brings it.
func (p *serving) finish(f kafkaFault, r *faulted) error {
	if asked := f.kind == faultTerm && r.happened; !f.drain && !asked && (f.kind != faultKill || f.point != "") && (f.kind != faultTwin || !r.happened) { // a second one ends it at once
		_ = p.Process.Signal(syscall.SIGTERM)
	}
	err := p.look("its end", func() bool {
		if f.serves() && p.stopped() { // it came to its point after it had seemed to have nothing more to do
			_ = p.Process.Signal(syscall.SIGCONT)
		}
		return p.ended()
	})
	if err != nil {
		return p.explain(err)
	}
	said, err := os.ReadFile(p.said())
	if err != nil {
		return err
	}
	code := p.ProcessState.ExitCode()
	status, _ := p.ProcessState.Sys().(syscall.WaitStatus)
	hits, ready, err := readHits(p.hits(), p.began)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	r.ready = ready
	switch {
	case status.Signaled() && status.Signal() == syscall.SIGKILL && f.kills():
		if r.happened = true; f.kind == faultKill && f.point != "" && hits[f.point] < f.at {
			return p.explain(fmt.Errorf("killed at hit %d of %s, and not by the failpoint", hits[f.point], f))
		}
	case status.Signaled() && status.Signal() == syscall.SIGTERM && len(said) == 0: // before it was prepared for that
	case code == 0:
		r.finished = f.drain && bytes.Contains(said, []byte("msg=drained"))
	case code == 1 && f.kind == faultTwin && bytes.Contains(said, []byte("another process writes for the same group")):
	case code == 1 && f.ofBroker() && !bytes.Contains(said, []byte("msg=running")): // it was not there at the first question
	case code == 1 && f.drain && bytes.Contains(said, []byte("was drained")): // the life before was killed after its end
		r.finished = true
	default:
		return p.explain(fmt.Errorf("exit code %d, %v", code, p.err))
	}
	return nil
}

// explain adds what the process said to an error.
func (p *serving) explain(err error) error {
	said, _ := os.ReadFile(p.said())
	if n := len(said); n > 6000 {
		said = slices.Concat(said[:2000], []byte("\n…\n"), said[n-4000:])
	}
	return fmt.Errorf("life %d: %w\n%s", p.life, err, said)
}

// cut says whether the changelog's beginning is gone.
func (s *kafkaScene) cut() bool {
	return s.delivery != 2 && s.broker.Starts(s.t, s.group+"-changelog")[0] > 0
}

// verify holds the output topic against the truth.
func (s *kafkaScene) verify() (r pipeline.VerifyReport, err error) {
	args := s.args("verify", "--json")
	if !s.exactly {
		args = append(args, "--at-least-once")
	}
	o := joinbench(args...)
	if err := json.Unmarshal([]byte(o.out), &r); err != nil {
		return r, fmt.Errorf("verify: exit code %d, %w: %s", o.code, err, o.err)
	}
	if !r.Right || o.code != 0 || r.Missing+r.Spurious > 0 || s.exactly && r.Duplicated > 0 {
		return r, fmt.Errorf("verify: exit code %d, %d missing, %d spurious, %d duplicated of %d: %+v", o.code, r.Missing, r.Spurious, r.Duplicated, r.Records, r.Examples)
	}
	if r.Pairs.Seen+r.Groups.Seen == 0 {
		return r, errors.New("verify: nothing was joined, so nothing is shown")
	}
	return r, nil
}
