package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"path/filepath"
	"time"

	"joinbench/config"
	"joinbench/core"
	"joinbench/kafka"
	"joinbench/results"
)

// ServeConfig is a join of two topics.
type ServeConfig struct {
	Config *config.Join // ValidateServe has passed it
	// StateDir is the directory of the state; empty: one of the group's own below state.dir.
	StateDir string
	// Drain ends the join where the topics end when it starts (rule 15).
	Drain bool
	// CreateTopics makes topics that are to be written and are not there; else that is an error.
	CreateTopics bool
	Cores        int // for tasks: auto
	Log          *slog.Logger
	Status       *Status // told how it goes; may be nil
	// Trace takes a line of JSON for each batch, and one when the first begins: what was read, and where the time went. nil: none.
	Trace io.Writer
	// TraceProfile, with a Trace, is a file for a CPU profile from the first B on; "": none.
	TraceProfile string

	CommitInterval     time.Duration // how long a batch waits for more while there is little to read
	BatchRecords       int           // how many records do not wait
	TransactionTimeout time.Duration
	SessionTimeout     time.Duration // how long the group waits for a member that says nothing
	StopTimeout        time.Duration // how long the last batch may take once the context is done

	trimEvery time.Duration // tests: how often the changelog is cut
}

// The defaults of ServeConfig.
const (
	DefaultCommitInterval     = 100 * time.Millisecond
	DefaultBatchRecords       = 32_768
	DefaultTransactionTimeout = time.Minute
	DefaultSessionTimeout     = 15 * time.Second
	DefaultStopTimeout        = 20 * time.Second
)

func (sc *ServeConfig) fill() {
	for _, d := range []struct {
		of      *time.Duration
		without time.Duration
	}{{&sc.CommitInterval, DefaultCommitInterval}, {&sc.TransactionTimeout, DefaultTransactionTimeout},
		{&sc.SessionTimeout, DefaultSessionTimeout}, {&sc.StopTimeout, DefaultStopTimeout}, {&sc.trimEvery, trimEvery}} {
		if *d.of <= 0 {
			*d.of = d.without
		}
	}
	if sc.BatchRecords <= 0 {
		sc.BatchRecords = DefaultBatchRecords
	}
	if sc.Log == nil {
		sc.Log = slog.New(slog.DiscardHandler)
	}
	if sc.Status == nil {
		sc.Status = &Status{}
	}
	if sc.StateDir == "" {
		sc.StateDir = filepath.Join(sc.Config.State.Dir, url.PathEscape(sc.unit()))
	}
}

// unit is the name under which the join writes: its transactional id, and its directory's.
func (sc *ServeConfig) unit() string {
	if sc.Config.Kafka.Instance == "" {
		return sc.Config.Kafka.Group
	}
	return sc.Config.Kafka.Group + "-" + sc.Config.Kafka.Instance
}

// Serve joins two topics until the context is done, which is no error: the batch in progress is finished then. With Drain it
// returns when the topics are read to the ends that they had at the start. It returns what was counted. Errors about the
// configuration are *config.Error.
func Serve(ctx context.Context, sc ServeConfig) (counts *results.Counters, err error) {
	sc.fill()
	u := &unit{ServeConfig: sc}
	defer func() {
		err = u.advice().readable(errors.Join(err, u.close()))
		sc.Status.ended(err)
	}()
	if err := u.open(ctx); err != nil {
		return nil, unlessStopped(ctx, err)
	}
	if err := u.run(ctx); err != nil {
		return nil, err
	}
	c := u.counters()
	return &c, nil
}

// unlessStopped is the error of something that was interrupted by the end of the context: none.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// unit is what joins all partitions of both topics: its state, its member of the group, its producer with the changelog, its engine. It
// is opened, taken back to the last batch, and closed as a whole. All of it belongs to the goroutine of Serve.
type unit struct {
	ServeConfig
	c       *compiled
	options kafka.Options
	topics  [2]kafka.Topic // of the inputs
	cluster *kafka.Cluster
	tasks   int

	state     *state
	member    *kafka.Member
	changelog *kafka.Changelog // nil: none
	consumer  *kafka.Consumer
	feed      *liveFeed
	sink      *kafkaSink
	bodies    *bodySink // before the sink; nil: A wait with their bodies
	input     *kafkaInput
	requests  context.Context // of the sink
	cancel    context.CancelFunc
	trimmer   *trimmer
	lag       *endsWatch
	reporter  *reporter
	tracer    *tracer // nil: nobody asked
	started   time.Time
}

// open brings everything up to the moment before the first batch.
func (u *unit) open(ctx context.Context) (err error) {
	u.started = time.Now()
	u.Status.set(Starting)
	if u.c, err = compile(u.Config, false); err != nil {
		return err
	}
	u.c.core.Drain, u.c.core.BatchSize = u.Drain, u.BatchRecords
	if u.Config.Topics.Unmatched != "" {
		u.c.core.WantA, u.c.core.WantB = true, true
	}
	if u.state, err = lockState(u.StateDir, "joinbench serve, group "+u.Config.Kafka.Group); err != nil {
		return err
	}
	u.options = KafkaOptions(u.Config, u.Log)
	u.options.ClientID = "joinbench-" + u.unit()
	u.requests, u.cancel = lasting(ctx, u.StopTimeout)
	if err := u.checkTopics(ctx); err != nil {
		return err
	}
	// The brokers have answered once: from here on they are waited for.
	if err := u.patiently(ctx, "joining the group", func() error { return u.join(ctx) }); err != nil {
		return err
	}
	err = u.patiently(ctx, "the topics", func() (err error) {
		u.consumer, err = kafka.NewConsumer(ctx, u.options, u.consumerOptions())
		return err
	})
	if err != nil {
		return err
	}
	if err := u.makeSink(); err != nil {
		return err
	}
	if err := u.renewProducer(ctx); err != nil {
		return err
	}
	u.Status.set(Restoring)
	if err := u.restoreState(ctx); err != nil {
		return err
	}
	return u.findEnds(ctx)
}

// lasting is a context that ends so long after another one.
func lasting(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(after):
			cancel()
		case <-own.Done():
		}
	})
	return own, func() { stop(); cancel() }
}

// join enters the group. Another member may be what crashes left behind, so it waits as long as the group does. That is two sessions if
// two members died: one that was joining when it died counts from the moment at which the other one is given up.
func (u *unit) join(ctx context.Context) (err error) {
	u.member, err = kafka.Join(ctx, u.options, kafka.MemberOptions{Group: u.Config.Kafka.Group, Instance: u.Config.Kafka.Instance,
		Topics: []string{u.Config.A.Topic, u.Config.B.Topic}, SessionTimeout: u.SessionTimeout, Patience: 2*u.SessionTimeout + 5*time.Second})
	if u.sink != nil {
		u.sink.member = u.member
	}
	return err
}

func (u *unit) consumerOptions() kafka.ConsumerOptions {
	return kafka.ConsumerOptions{ReadUncommitted: u.Config.Kafka.Isolation == "read_uncommitted",
		Gap: func(topic string, partition int32, from, to int64) {
			u.Status.lostRecords(to - from)
			u.Log.Error("data loss: records that were to be read are no longer in the topic; going on with the first that is",
				"topic", topic, "partition", partition, "from", from, "to", to, "records", to-from)
		}}
}

func (u *unit) makeSink() error {
	cfg := u.Config
	s := &kafkaSink{rows: rows{lines: lines{spec: u.c.spec, key: u.c.key}, nulls: u.c.nulls}, ctx: u.requests, log: u.Log, status: u.Status, member: u.member,
		exactly: cfg.Delivery == "exactly-once", inputs: [2]string{cfg.A.Topic, cfg.B.Topic},
		topics: [4]string{cfg.Output.Topic, cfg.Topics.Late, cfg.Topics.Dead, cfg.Topics.Unmatched}}
	s.to = s
	for side, t := range u.topics {
		for p := range t.Partitions {
			s.parts[side] = append(s.parts[side], core.Partition{ID: int32(p)})
		}
	}
	if cfg.KeepsChangelog() {
		u.changelog = kafka.NewChangelog(u.options, cfg.ChangelogTopic(), 0)
		s.changelog = u.changelog
		u.trimmer = newTrimmer(u.changelog, u.trimEvery, u.Log)
	}
	u.sink = s
	return u.fetchBodies()
}

// fetchBodies has the bodies of A fetched when they come out, with a.store: offset.
func (u *unit) fetchBodies() error {
	cfg := u.Config
	if cfg.A.Store != "offset" {
		return nil
	}
	warnOfRetention(u.Log, u.topics[core.A], cfg.Window.After+cfg.Grace)
	f, err := kafka.NewFetcher(u.options, cfg.A.Topic, kafka.FetcherOptions{CacheBytes: cfg.FetchCache})
	if err != nil {
		return err
	}
	u.bodies = newBodySink(u.sink, f, u.c.spec[core.A], cfg.Deleted)
	return nil
}

// findEnds finds out where to end.
func (u *unit) findEnds(ctx context.Context) error {
	if !u.Drain {
		return nil
	}
	if u.closed() { // an earlier life came to the end; what is left is to say so
		for side, parts := range u.sink.parts {
			u.input.ends[side] = map[int32]int64{}
			for i, p := range parts {
				u.input.ends[side][p.ID] = u.state.engine.Place(core.Side(side), i)
			}
		}
		return nil
	}
	return u.patiently(ctx, "where the topics end", func() error {
		ends, err := u.consumer.EndOffsets(ctx, u.Config.A.Topic, u.Config.B.Topic)
		u.input.ends = [2]map[int32]int64{ends[u.Config.A.Topic], ends[u.Config.B.Topic]}
		return err
	})
}

// close stops and closes everything, in the order in which things use each other.
func (u *unit) close() error {
	var errs []error
	u.reporter.stop()
	u.tracer.close()
	if u.feed != nil {
		u.feed.Close()
	}
	if u.state != nil {
		errs = append(errs, u.state.closeStores())
	}
	if u.sink != nil && u.sink.producer != nil {
		u.closeProducer()
	}
	if u.bodies != nil {
		u.bodies.fetcher.Close()
	}
	if u.trimmer != nil {
		u.trimmer.close()
	}
	if u.lag != nil {
		u.lag.close()
	}
	if u.consumer != nil {
		u.consumer.Close()
	}
	if u.member != nil {
		u.member.Close()
	}
	if u.cancel != nil {
		u.cancel()
	}
	if u.state != nil {
		errs = append(errs, u.state.close())
	}
	return errors.Join(errs...)
}

func (u *unit) advice() *advice {
	return &advice{dir: u.StateDir, state: goesOn}
}

func (u *unit) counters() results.Counters {
	c := counters(u.state.engine, u.c, u.sink.book.outputs)
	c.Oversize = int64(u.sink.book.oversize)
	if u.bodies != nil {
		u.bodies.count(&c)
	}
	return c
}

// errDrained is the answer of a group that has been drained.
func (u *unit) errDrained() error {
	return fmt.Errorf("group %s was drained (serve --drain): everything that waited has come out, and for it both topics ended there. To join what "+
		"came since, give another group (kafka.group) and remove %s", u.Config.Kafka.Group, u.StateDir)
}
