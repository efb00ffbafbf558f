package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"joinbench/pipeline"
)

const serveLong = `serve joins two Kafka topics and writes the results to a third, for as long as it runs. The configuration is that of join, and says
besides where the brokers are and which topics there are:

  a: {topic: orders, key: $.payment_ref, time: $.placed_at, time_unit: rfc3339, keep: [$.order_id]}
  b: {topic: payments, key: "@key", keep: [$.status]}
  window: {after: 4h}         # order <= payment <= order + 4h
  output: {topic: joined}     # one record for each result: key, value, and headers that name the records it is made of
  topics: {late: joined-late, dead: joined-dead}    # what cannot be joined goes there; left out, it is counted
  delivery: exactly-once      # or at-least-once: after a crash some results come twice, none is missing
  kafka: {brokers: [localhost:9092], group: orders-payments}

State. What waits lies in state.dir, in a directory of the group's own, and in the topic <group>-changelog, which serve makes: so
nothing is lost when the process is killed, or the directory is: it is made anew from the changelog. A batch is certain when
Kafka has it; the directory follows. One process joins both topics: a second one of the same group is refused.

The end. SIGTERM or SIGINT finishes the batch in progress and ends with exit code 0; the next start goes on there. --drain joins
what the topics hold when it starts, lets out all that waits, and ends: such a group is done, and does not go on.

While brokers cannot be reached, serve waits, and says so in its log.

What it is doing is at --http: /status (JSON), /metrics (Prometheus), /readyz (the state is restored, records are joined), /healthz
(the process is not stuck; brokers that are away are no fault of it). Before the first start: joinbench doctor -c join.yaml.`

const serveExample = `  joinbench broker --topic orders=4 --topic payments=4 --topic joined=4 &        # or your own
  joinbench serve -c join.yaml
  joinbench serve -c join.yaml --create-topics --log-format json
  joinbench serve -c join.yaml --drain --stats stats.json          # join what is there, and stop
  JOINBENCH_DELIVERY=exactly-once JOINBENCH_KAFKA_GROUP=try-2 joinbench serve -c join.yaml    # any key, as JOINBENCH_ and its name
  joinbench serve -c join.yaml --print-config      # what is in force, and where each value comes from`

// serveFlags are the flags of serve.
type serveFlags struct {
	config, stateDir, stats                  string
	trace, traceProfile                      string
	logFormat, logLevel                      string
	http                                     string
	drain, createTopics, printConfig, pprof  bool
	commit, transaction, session, stopWithin time.Duration
	batch                                    int
}

func newServe(s streams) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use: "serve -c join.yaml", Short: "Join two Kafka topics into a third", Long: serveLong, Example: serveExample, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runServe(cmd, &f, s) },
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVarP(&f.config, "config", "c", "", "the join's configuration (join.yaml)")
	fl.StringVar(&f.stateDir, "state-dir", "", "directory of the state (default: one of the group's own below state.dir)")
	fl.BoolVar(&f.drain, "drain", false, "join what the topics hold now, let out all that waits, and stop")
	fl.BoolVar(&f.createTopics, "create-topics", false, "make topics that are to be written and are not there, with as many partitions as the inputs have")
	fl.StringVar(&f.stats, "stats", "", "file for the counters as JSON when serve ends (- is standard error)")
	fl.StringVar(&f.http, "http", defaultHTTP, "where /metrics, /status, /healthz and /readyz are; empty: nowhere")
	fl.BoolVar(&f.pprof, "pprof", false, "profiles too, below /debug/pprof/; on a loopback address only")
	fl.StringVar(&f.logFormat, "log-format", "text", "text, json")
	fl.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn, error")
	fl.DurationVar(&f.commit, "commit-interval", pipeline.DefaultCommitInterval, "how long a batch waits for more while there is little to read: results are so much later")
	fl.IntVar(&f.batch, "batch", pipeline.DefaultBatchRecords, "records that make a batch, and so a transaction, without waiting")
	fl.DurationVar(&f.transaction, "transaction-timeout", pipeline.DefaultTransactionTimeout, "after so long the broker aborts a transaction that is open")
	fl.DurationVar(&f.session, "session-timeout", pipeline.DefaultSessionTimeout, "after so long the group forgets a process that says nothing; a restart after a crash waits for that, unless kafka.instance is set")
	fl.DurationVar(&f.stopWithin, "stop-timeout", pipeline.DefaultStopTimeout, "how long the last batch may take once the process is to stop")
	fl.BoolVar(&f.printConfig, "print-config", false, "print the configuration that is in force, and stop")
	fl.StringVar(&f.trace, "trace", "", "")
	fl.StringVar(&f.traceProfile, "trace-profile", "", "")
	for _, own := range []string{"trace", "trace-profile"} { // for run --kafka
		_ = fl.MarkHidden(own) // it is there
	}
	return cmd
}

func runServe(cmd *cobra.Command, f *serveFlags, s streams) error {
	conf, err := joinConfig(&joinFlags{config: f.config})
	if err != nil {
		return err
	}
	if f.printConfig {
		return conf.Print(s.out)
	}
	if err := conf.ValidateServe(); err != nil {
		return err
	}
	log, err := newLog(s.err, f.logFormat, f.logLevel)
	if err != nil {
		return &usageError{err}
	}
	if err := f.check(); err != nil {
		return &usageError{err}
	}
	status := &pipeline.Status{}
	pages, err := f.pages(cmd, conf, status, log)
	if err != nil {
		return err
	}
	defer pages.Close()
	sc := pipeline.ServeConfig{
		Config: conf, Status: status, StateDir: f.stateDir, Drain: f.drain, CreateTopics: f.createTopics, Cores: runtime.GOMAXPROCS(0), Log: log,
		CommitInterval: f.commit, BatchRecords: f.batch, TransactionTimeout: f.transaction, SessionTimeout: f.session, StopTimeout: f.stopWithin,
	}
	if f.trace != "" {
		trace, err := os.OpenFile(f.trace, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer trace.Close()
		sc.Trace, sc.TraceProfile = trace, f.traceProfile
	}
	counts, err := pipeline.Serve(cmd.Context(), sc)
	if err != nil || counts == nil {
		return err
	}
	return writeStats(f.stats, counts, s)
}

// check refuses values that mean nothing.
func (f *serveFlags) check() error {
	for _, d := range []struct {
		flag string
		v    time.Duration
	}{{"--commit-interval", f.commit}, {"--transaction-timeout", f.transaction}, {"--session-timeout", f.session}, {"--stop-timeout", f.stopWithin}} {
		if d.v < time.Millisecond {
			return fmt.Errorf("%s %s: at least 1ms", d.flag, d.v)
		}
	}
	if f.batch < 1 {
		return fmt.Errorf("--batch %d: at least 1", f.batch)
	}
	return nil
}

// newLog makes a structured log.
func newLog(w io.Writer, format, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil || strings.ContainsAny(level, "+-") {
		return nil, fmt.Errorf("--log-level %q: debug, info, warn or error", level)
	}
	o := &slog.HandlerOptions{Level: l}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return nil, fmt.Errorf("--log-format %q: text or json", format)
}
