package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"joinbench/config"
	"joinbench/pipeline"
	"joinbench/results"
)

const joinLong = `join runs the production join over two NDJSON record files and writes one line for each result.

Side A is the one that waits, B the one that asks. What comes out is the configuration's: type (inner, left, right, outer:
whose events come out alone, with null, when their time is over), cardinality, collect (one result for each A, with a list of
its B), early and retract (null rows before the window is over), complete_on (a B that ends its A). A left join:

  a: {key: $.payment_ref, time: $.placed_at, time_unit: rfc3339, keep: [$.order_id]}
  b: {key: "@key", keep: [$.status]}
  window: {after: 4h}         # order <= payment <= order + 4h
  type: left                  # an order without a payment: {"key":"PAY-4","ts":…,"a":{"order_id":"ORD-4"},"b":null}

An event without a partner that is no result goes to --unmatched, if that is given. With --state-dir an interrupted join goes on where it committed
last: give the same command again. Without it the state is temporary.

The end of the process alone costs nothing, however it comes. What a power cut may cost is state.sync of the configuration:
batch nothing; interval (the default) about the last second, which is read again; none all that the system had not written
yet. With several tasks interval and none may leave parts that do not fit together: such a state is refused, and the join
starts anew.`

const joinExample = `  joinbench join -c join.yaml --a orders.ndjson --b payments.ndjson
  kcat -C -t payments -J -e | joinbench join -c join.yaml --a orders.ndjson.zst --b - --out joined.ndjson
  joinbench join -c join.yaml --a a.ndjson --b b.ndjson --late late.ndjson --dead dead.ndjson --stats stats.json
  JOINBENCH_TYPE=left joinbench join -c join.yaml --a a.ndjson --b b.ndjson     # any key, as JOINBENCH_ and its name
  joinbench join -c join.yaml --print-config      # what is in force, and where each value comes from`

// joinFlags are the flags of join.
type joinFlags struct {
	config, a, b, out, stateDir, format, late, dead, unmatched, stats, progress string
	noDrain, printConfig                                                        bool
	batch                                                                       int
}

func newJoin(s streams) *cobra.Command {
	var f joinFlags
	cmd := &cobra.Command{
		Use: "join -c join.yaml --a FILE --b FILE", Short: "Join two record files", Long: joinLong, Example: joinExample,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runJoin(cmd, &f, s) },
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	f.bindInputs(fl)
	fl.StringVar(&f.out, "out", "", "file for the results (default standard output)")
	fl.StringVar(&f.stateDir, "state-dir", "", "directory for the state, kept for resuming (default: state.dir of the file, or a temporary one)")
	fl.StringVar(&f.late, "late", "", "file for late records")
	fl.StringVar(&f.dead, "dead", "", "file for records that are malformed or have a bad key or time")
	fl.StringVar(&f.unmatched, "unmatched", "", "file for records that found no partner and are no results")
	fl.StringVar(&f.stats, "stats", "", "file for the counters as JSON (- is standard error)")
	fl.BoolVar(&f.noDrain, "no-drain", false, "the end of the files is no end: what waits goes on waiting in --state-dir")
	fl.IntVar(&f.batch, "batch", 0, "records in a batch, and so in a commit (default 4096)")
	fl.StringVar(&f.progress, "progress", "auto", "auto, tty, plain, json, none")
	fl.BoolVar(&f.printConfig, "print-config", false, "print the configuration that is in force, and stop")
	return cmd
}

// bindInputs binds what every command on two record files has.
func (f *joinFlags) bindInputs(fl *pflag.FlagSet) {
	fl.StringVarP(&f.config, "config", "c", "", "the join's configuration (join.yaml)")
	fl.StringVar(&f.a, "a", "", "record file of side A, which waits; - is standard input; .gz and .zst by suffix")
	fl.StringVar(&f.b, "b", "", "record file of side B, which asks")
	fl.StringVar(&f.format, "format", "auto", "format of both files: auto, value, kcat, rpk")
}

func runJoin(cmd *cobra.Command, f *joinFlags, s streams) (err error) {
	conf, err := joinConfig(f)
	if err != nil {
		return err
	}
	if f.printConfig {
		return conf.Print(s.out)
	}
	format, err := f.inputs("join")
	if err != nil {
		return err
	}
	progress, err := parseProgress(f.progress)
	if err != nil {
		return err
	}
	stateDir := f.stateDir
	if stateDir == "" && originOf(conf.Values(), "state.dir") != "default" {
		stateDir = conf.State.Dir
	}
	p := &pipeline.Progress{}
	live := startLive(p, progress, s)
	defer live.Stop()
	counts, err := pipeline.Join(cmd.Context(), pipeline.JoinConfig{
		Config: conf, A: f.a, B: f.b, Out: f.out, Late: f.late, Dead: f.dead, Unmatched: f.unmatched, Stats: f.stats, Format: format,
		StateDir: stateDir, Batch: f.batch, NoDrain: f.noDrain, Cores: runtime.GOMAXPROCS(0), Stdin: s.in, Stdout: s.out,
		Started:  func() { sayWhatIsJoined(live, progress, conf) },
		Progress: p, Warn: func(format string, args ...any) { _, _ = fmt.Fprintf(live, "joinbench: "+format+"\n", args...) },
	})
	live.Stop()
	if err != nil {
		return err
	}
	return writeStats(f.stats, counts, s)
}

// sayWhatIsJoined shows what decides the results, with its defaults: a window or a grace that nobody meant is seen at once.
func sayWhatIsJoined(live *results.Live, progress results.Progress, conf *config.Join) {
	if progress == results.ProgressNone || progress == results.ProgressJSON {
		return
	}
	_, _ = fmt.Fprintf(live, "joinbench: %s\n", conf.Brief())
}

// joinConfig reads the file, then environment.
func joinConfig(f *joinFlags) (*config.Join, error) {
	if f.config == "" {
		return nil, &usageError{errors.New("-c is missing: name the join's configuration file (see joinbench join -h)")}
	}
	conf, err := readJoin(f.config)
	if err != nil {
		return nil, err
	}
	return conf, conf.Validate()
}

// readJoin reads a configuration and what the environment changes in it; it is not validated.
func readJoin(path string) (*config.Join, error) {
	conf, err := parseJoin(path)
	if err != nil {
		return nil, err
	}
	return conf, conf.ApplyEnv(os.Environ())
}

// parseJoin reads a configuration as it is in the file.
func parseJoin(path string) (*config.Join, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, &exitError{results.ExitUsage, fmt.Sprintf("configuration: %v", err)}
	}
	return config.Parse(data, path)
}

func originOf(values []config.Value, key string) string {
	for _, v := range values {
		if v.Key == key {
			return v.Origin
		}
	}
	return "default"
}

func writeStats(path string, c *results.Counters, s streams) error {
	if path == "" {
		return nil
	}
	data, err := results.MarshalCounters(c)
	if err != nil {
		return err
	}
	if path == "-" {
		_, err = s.err.Write(data)
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

func parseProgress(text string) (results.Progress, error) {
	mode, err := results.ParseProgress(text)
	if err != nil {
		err = &usageError{fmt.Errorf("--progress: %w", err)}
	}
	return mode, err
}

// startLive shows the progress of a run, the first time after a second.
func startLive(p *pipeline.Progress, mode results.Progress, s streams) *results.Live {
	return results.StartLive(results.LiveOptions{Progress: mode, Out: s.err, Every: time.Second, Read: func() results.Snapshot {
		snap := results.Snapshot{Done: p.A.Load() + p.B.Load(), Total: p.Total.Load(), A: p.A.Load(), Probes: p.Probes.Load(),
			Matches: p.Matches.Load(), Lookups: p.Lookups.Load(), Pending: p.Pending.Load(),
			AbsentQueries: p.AbsentQueries.Load(), FalsePositives: p.FalsePositives.Load(),
			OfferedPerS: float64(p.Offered.Load()), Queue: p.Queue.Load(), Dropped: p.Dropped.Load(), LagP99Ns: p.LagP99.Load(),
			RecentP50Ns: p.RecentP50.Load(), RecentP99Ns: p.RecentP99.Load(), ResponseP50Ns: p.P50.Load(), ResponseP99Ns: p.P99.Load(), Bare: p.Bare}
		if name := p.Phase.Load(); name != nil {
			snap.Phase = *name
		}
		return snap
	}})
}
