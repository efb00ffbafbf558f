package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"joinbench/config"
	"joinbench/core"
	"joinbench/kafka"
	"joinbench/results"
)

// KafkaConfig is one run of the benchmark through a broker.
type KafkaConfig struct {
	Profile *config.Profile // validated; its topics, group, brokers and state directory are set by the run
	Name    string          // of the profile, for the record
	Brokers []string        // empty: joinbench's own broker, in a process that the run starts and ends
	Dir     string          // for states and logs, "" for a temporary directory
	Rounds  int             // turns of bare consumer and join; not with Rate
	// Rate, if not 0, is an open loop: so many B a second come while the join runs, and the A with them, for Duration, or all of
	// the profile's B.
	Rate        float64
	Duration    time.Duration
	Compression string // of the input, of kafka.Compressions
	Keep        bool   // the topics stay
	CPUProfile  string // file for a CPU profile of the join's process, of the last round, or while records come; "": none
	Argv        []string
	Progress    *Progress
	Thresholds  []*results.Limit
	Save        func(*results.Record) error // if set, keeps the record
	Version     results.Tool
	Warn        func(format string, args ...any)
	// Command makes a call of this program.
	Command func(args ...string) *exec.Cmd
}

// RunKafka fills two topics, has serve join them in a process of its own, and holds what comes out against the truth: in turns with a
// consumer that only reads B, or, with a rate, while the records come. An error without a record means that nothing was measured.
func RunKafka(ctx context.Context, c KafkaConfig) (*results.Record, error) {
	k, err := newKafkaBench(c)
	if err != nil {
		return nil, err
	}
	runErr := k.run(ctx)
	runErr = errors.Join(runErr, k.close())
	rec := k.record(runErr)
	if c.Save != nil {
		return rec, c.Save(rec)
	}
	return rec, nil
}

// kafkaBench is a RunKafka under way. It belongs to one goroutine.
type kafkaBench struct {
	KafkaConfig
	id      string
	dir     string
	temp    bool // dir goes with the run
	gen     *generator
	options kafka.Options
	broker  *childProc
	started time.Time

	phases   []results.Phase
	figures  results.Kafka
	counts   results.Counters // of the last join
	truth    results.Truth
	e2e      *results.Summary
	offered  *results.Load
	rss      int64    // peak of any join
	results  int64    // records of the output that was verified last
	cpu      *float64 // CPU seconds of a million B, in an open loop
	warnings []string
	topics   []string
	groups   []string
}

func newKafkaBench(c KafkaConfig) (*kafkaBench, error) {
	k := &kafkaBench{KafkaConfig: c, id: results.NewRunID(), started: time.Now(), dir: c.Dir, figures: results.Kafka{Embedded: len(c.Brokers) == 0}}
	p := c.Profile
	var err error
	for _, set := range [][2]string{{"a.topic", k.topic("a")}, {"b.topic", k.topic("b")}, {"output.topic", k.topic("out")}, {"kafka.group", k.topic("group")},
		{"topics.late", ""}, {"topics.dead", ""}, {"topics.unmatched", ""}, {"kafka.instance", ""}} {
		err = errors.Join(err, p.Set(set[0], set[1], "run --kafka"))
	}
	if len(k.Brokers) > 0 {
		err = errors.Join(err, k.useBrokers())
	}
	if err == nil {
		err = p.Join.ValidateServe()
	}
	if err != nil {
		return nil, err
	}
	if k.gen, err = newGenerator(p); err != nil {
		return nil, err
	}
	if k.dir == "" {
		k.temp = true
		if k.dir, err = os.MkdirTemp("", "joinbench-kafka-"); err != nil {
			return nil, err
		}
	}
	conf := k.gen.gen.Config()
	k.figures.Delivery, k.figures.Partitions, k.figures.RecordBytes = p.Join.Delivery, conf.PartitionsB, conf.RecordBytes
	k.figures.Compression = c.Compression
	return k, os.MkdirAll(k.dir, 0o755)
}

// topic names something of this run.
func (k *kafkaBench) topic(name string) string { return "joinbench-run-" + k.id + "-" + name }

func (k *kafkaBench) run(ctx context.Context) error {
	if err := k.connect(ctx); err != nil {
		return err
	}
	if k.broker == nil {
		return k.measureAll(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(nil)
	watching.Go(func() { k.broker.cancelOn(ctx, cancel) }) // clients would ask for it for ever
	err := k.measureAll(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// measureAll loads, joins and verifies.
func (k *kafkaBench) measureAll(ctx context.Context) error {
	if k.Rate > 0 {
		return k.runPaced(ctx)
	}
	for _, side := range []core.Side{core.A, core.B} {
		if err := k.load(ctx, side); err != nil {
			return err
		}
	}
	for n := range k.Rounds {
		var r results.KafkaRound
		parts := []func(context.Context, int, *results.KafkaRound) error{k.bare, k.join}
		if n%2 == 1 { // so that neither always finds the broker as the other left it
			slices.Reverse(parts)
		}
		for _, part := range parts {
			if err := part(ctx, n, &r); err != nil {
				return err
			}
		}
		k.figures.Rounds = append(k.figures.Rounds, r)
		if err := k.verify(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// phase does something, and notes how long it took. fn returns how many records it was about.
func (k *kafkaBench) phase(name string, fn func() (int64, error)) error {
	p := k.Progress
	p.phase(name)
	for _, n := range []interface{ Store(int64) }{&p.A, &p.B, &p.Probes, &p.Matches, &p.Total} {
		n.Store(0)
	}
	start := time.Now()
	n, err := fn()
	k.phases = append(k.phases, results.Phase{Name: name, StartNs: start.Sub(k.started).Nanoseconds(), DurationNs: time.Since(start).Nanoseconds(), Records: n})
	return err
}

// connect starts a broker if none is given, and looks whether one answers.
func (k *kafkaBench) connect(ctx context.Context) error {
	return k.phase("prepare", func() (int64, error) {
		if len(k.Brokers) == 0 {
			addr, err := k.startBroker(ctx)
			if err != nil {
				return 0, err
			}
			k.Brokers = []string{addr}
			if err := k.useBrokers(); err != nil {
				return 0, err
			}
		}
		k.options = KafkaOptions(k.Profile.Join, slog.New(slog.DiscardHandler))
		var err error
		k.figures.Brokers, err = kafka.Versions(ctx, k.options)
		return 0, err
	})
}

func (k *kafkaBench) useBrokers() error {
	return k.Profile.Set("kafka.brokers", strings.Join(k.Brokers, ","), "run --kafka")
}

// startBroker starts joinbench's own, and returns its address.
func (k *kafkaBench) startBroker(ctx context.Context) (string, error) {
	cmd := k.Command("broker", "--listen", "127.0.0.1:0", "--data", filepath.Join(k.dir, "broker"))
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer r.Close()
	cmd.Stdout = w
	k.broker, err = startChild("the broker", cmd, func([]byte) {})
	_ = w.Close()
	if err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { _ = r.SetReadDeadline(time.Now()) })
	defer stop()
	var addr string
	if _, err := fmt.Fscanln(r, &addr); err != nil {
		k.broker.stop()
		return "", errors.Join(ctx.Err(), errors.New("the broker did not start: "+k.broker.said.text()))
	}
	return addr, nil
}

// loadConfig is a load of this run.
func (k *kafkaBench) loadConfig() LoadConfig {
	return LoadConfig{Profile: k.Profile, Kafka: k.options, Sides: [2]bool{true, true}, Producers: 2, Compression: k.Compression, Progress: k.Progress, Warn: k.Warn}
}

func (k *kafkaBench) load(ctx context.Context, side core.Side) error {
	return k.phase("load "+side.String(), func() (int64, error) {
		c := k.loadConfig()
		c.Sides = [2]bool{side == core.A, side == core.B}
		k.topics = append(k.topics, []string{k.Profile.Join.A.Topic, k.Profile.Join.B.Topic}[side])
		r, err := Load(ctx, c)
		if err != nil {
			return 0, err
		}
		n := r.A.Records + r.B.Records
		k.figures.Produced += n
		return n, nil
	})
}

// own are settings of one join.
func (k *kafkaBench) own(n int) error {
	k.topics = append(k.topics, k.topic(fmt.Sprintf("out-%d", n)), k.topic(fmt.Sprintf("group-%d-changelog", n)))
	k.groups = append(k.groups, k.topic(fmt.Sprintf("group-%d", n)))
	return errors.Join(
		k.Profile.Set("output.topic", k.topic(fmt.Sprintf("out-%d", n)), "run --kafka"),
		k.Profile.Set("kafka.group", k.topic(fmt.Sprintf("group-%d", n)), "run --kafka"),
		k.Profile.Set("state.dir", filepath.Join(k.dir, fmt.Sprintf("state-%d", n)), "run --kafka"))
}

// start starts a process of this program with the join's configuration in a file. What the environment says is in that file
// already, but for a password, which no file gets.
func (k *kafkaBench) start(name string, line func([]byte), args func(conf string) []string) (*childProc, error) {
	conf := filepath.Join(k.dir, "join.yaml")
	f, err := os.OpenFile(conf, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(k.Profile.Join.Print(f), f.Close()); err != nil {
		return nil, err
	}
	cmd := k.Command(args(conf)...)
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool {
		return strings.HasPrefix(v, "JOINBENCH_") && !strings.HasPrefix(v, "JOINBENCH_TEST_")
	})
	if name != nameServe && os.Getenv("GOGC") == "" { // serve trades CPU for memory, which is not what the others are asked for
		cmd.Env = append(cmd.Env, "GOGC=100")
	}
	if p := k.Profile.Join.Kafka.SASL.Password; p != "" {
		cmd.Env = append(cmd.Env, "JOINBENCH_KAFKA_SASL_PASSWORD="+p)
	}
	return startChild(name, cmd, line)
}

// follow makes what takes the lines of a process apart and keeps them. The function that it returns gives them, once the process has
// ended.
func follow[P any](each func(*P)) (line func([]byte), points *[]P) {
	points = &[]P{}
	return func(text []byte) {
		var p P
		if json.Unmarshal(text, &p) == nil {
			*points = append(*points, p)
			each(&p)
		}
	}, points
}

// bare reads B alone.
func (k *kafkaBench) bare(ctx context.Context, n int, r *results.KafkaRound) error {
	return k.phase(fmt.Sprintf("bare %d", n+1), func() (int64, error) {
		k.Progress.Total.Store(k.gen.gen.BCount())
		line, points := follow(func(p *barePoint) { k.Progress.B.Store(p.N); k.Progress.Probes.Store(p.N) })
		c, err := k.start("the bare consumer", line, func(conf string) []string { return []string{"run", "--bare", conf} })
		if err != nil {
			return 0, err
		}
		if err := c.wait(ctx); err != nil {
			return 0, err
		}
		list := *points
		from, to := middle(list, func(p *barePoint) int64 { return p.N })
		if to == nil {
			return 0, errors.New("the bare consumer read nothing")
		}
		took, records := float64(to.At-from.At), float64(to.N-from.N)
		r.BarePerS, r.BareBytesPerS = ratio(records*1e9, took), ratio(float64(to.Bytes-from.Bytes)*1e9, took)
		r.BareCPUNsPerB = ratio(float64(to.CPU-from.CPU), records)
		return list[len(list)-1].N, nil
	})
}

// middle are the points between which the middle nine tenths of all that was counted lie.
func middle[P any](points []P, count func(*P) int64) (from, to *P) {
	if len(points) == 0 {
		return nil, nil
	}
	total := count(&points[len(points)-1])
	for i := range points {
		p := &points[i]
		switch n := count(p); {
		case n*20 <= total:
			from = p
		case n*20 >= total*19 && to == nil:
			to = p
		}
	}
	return from, to
}

// join has serve join both topics to their ends.
func (k *kafkaBench) join(ctx context.Context, n int, r *results.KafkaRound) error {
	if err := k.own(n); err != nil {
		return err
	}
	return k.phase(fmt.Sprintf("serve %d", n+1), func() (int64, error) {
		k.Progress.Total.Store(k.figures.Produced)
		s, err := k.serve(func(*servePoint) {}, k.profile(), "--drain")
		if err != nil {
			return 0, err
		}
		if err := s.wait(ctx); err != nil {
			return 0, err
		}
		read, err := k.took()
		if err != nil {
			return read, err
		}
		return read, k.measure(*s.points, r)
	})
}

const nameServe = "serve"

// served is a serve that runs.
type served struct {
	*childProc
	points *[]servePoint // once it has ended
}

// serve starts one. Its CPU profile goes to a file, "": none is made.
func (k *kafkaBench) serve(each func(*servePoint), profile string, more ...string) (*served, error) {
	line, points := follow(func(p *servePoint) {
		k.Progress.A.Store(p.A)
		k.Progress.B.Store(p.B)
		k.Progress.Probes.Store(p.B)
		k.Progress.Matches.Store(p.Outputs)
		each(p)
	})
	c, err := k.start(nameServe, line, func(conf string) []string {
		args := []string{"serve", "-c", conf, "--create-topics", "--http", "", "--log-level", "warn", "--trace", "/dev/fd/3", "--stats", k.stats(), "--trace-profile", profile}
		return append(args, more...)
	})
	return &served{c, points}, err
}

// profile is the file with the CPU profile of the last join.
func (k *kafkaBench) profile() string {
	if k.CPUProfile != "" {
		return k.CPUProfile
	}
	return filepath.Join(k.dir, "serve.pprof")
}

func (k *kafkaBench) stats() string { return filepath.Join(k.dir, "stats.json") }

// took notes what a serve that has ended counted, and returns how many records it read.
func (k *kafkaBench) took() (int64, error) {
	data, err := os.ReadFile(k.stats())
	if err != nil {
		return 0, err
	}
	k.counts = results.Counters{}
	if err := json.Unmarshal(data, &k.counts); err != nil {
		return 0, err
	}
	n := k.counts.A.Read + k.counts.B.Read
	if len(k.figures.Rounds) == 0 || n < k.figures.Consumed {
		k.figures.Consumed = n
	}
	return n, nil
}

// measure makes figures of a trace.
func (k *kafkaBench) measure(points []servePoint, r *results.KafkaRound) error {
	from, to := middle(points, func(p *servePoint) int64 { return p.B })
	if to == nil {
		return errors.New("serve left no trace: please report this")
	}
	b := float64(to.B - from.B)
	r.ServePerS = ratio(b*1e9, float64(to.At-from.At))
	r.ServeCPUNsPerB = ratio(float64(to.CPU-from.CPU), b)
	if r.ServeCPUNsPerB != nil {
		var err error
		if r.Split, err = splitOf(k.profile(), *r.ServeCPUNsPerB); err != nil {
			return err
		}
		r.Split.CommitWaitNs = ratio(float64(to.Settle-from.Settle), b)
	}
	for i := range points {
		if points[i].B > 0 {
			r.CatchUpNs = points[max(0, i-1)].At - points[0].At
			break
		}
	}
	k.noteMemory(points)
	if peak := points[len(points)-1].RSS; peak > 0 {
		r.ServeRSSBytes = &peak
	}
	return nil
}

func (k *kafkaBench) noteMemory(points []servePoint) {
	for i := range points {
		k.rss = max(k.rss, points[i].RSS)
	}
}

// verify holds what came out against the truth.
func (k *kafkaBench) verify(ctx context.Context, n int) error {
	return k.verifyTo(ctx, n, 0)
}

// verifyTo does that for the B before to, 0: all.
func (k *kafkaBench) verifyTo(ctx context.Context, n int, to int64) error {
	return k.phase(fmt.Sprintf("verify %d", n+1), func() (int64, error) {
		again := k.Profile.Join.Delivery != "exactly-once"
		r, err := Verify(ctx, VerifyConfig{Profile: k.Profile, Kafka: k.options, To: to, AtLeastOnce: again, Progress: k.Progress})
		if err != nil {
			return 0, err
		}
		t := &k.truth
		t.ExpectedMatches, t.ExpectedUnmatchedA, t.ExpectedUnmatchedB, t.ExpectedGroups = r.Expected, r.NullsA.Expected, r.NullsB.Expected, r.Groups.Expected
		t.Missing, t.Spurious, t.Missed = t.Missing+r.Missing, t.Spurious+r.Spurious, t.Missed+r.Missed
		if !again {
			t.Duplicated += r.Duplicated
		}
		k.figures.Lost, k.figures.Duplicated = k.figures.Lost+r.Missing, k.figures.Duplicated+r.Duplicated
		k.results = r.Records
		return r.Records, nil
	})
}
