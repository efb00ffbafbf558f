package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"joinbench/config"
	"joinbench/kafka"
	"joinbench/pipeline"
	"joinbench/results"
)

const runLong = `run is the benchmark: a generator that knows the truth, the join that production runs, and a report.

The text report goes to standard output, progress to standard error, the whole record to --out (or to results/). The
exit code is 0 when every pair was right, 4 when one was missing, spurious or doubled, 130 when it was interrupted, 99
when a --threshold failed. A threshold names a number of the record by its path in the JSON, or the quotient of two:
cost.rss_max_bytes<600MiB, cost.ns_per_b/cost.unit_ns<=2.5, arms.memory.ns_per_b>100ns.`

// runFlags are the flags of run.
type runFlags struct {
	profile, config, out, filter, summary, dir, progress, label, cpuProfile string
	mode, rate, arrival, catchUp                                            string
	tasks                                                                   string
	seed                                                                    string
	duration                                                                time.Duration
	cpuOnly                                                                 bool
	pin                                                                     int
	resume, printConfig, json, strict                                       bool
	arms, arm                                                               string
	kafka, bare, compression                                                string
	rounds                                                                  int
	keep                                                                    bool
	thresholds                                                              []string
}

func newRun(s streams) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use: "run [--profile P] [--out r.json]", Short: "Run the benchmark and report", Long: runLong,
		Example: `  joinbench run                                    # profile quick
  joinbench run --profile quick --out r.json
  joinbench run --filter fuse8 --summary off       # the false positives of 8-bit filters, undisguised
  joinbench run --duration 10m --seed 7            # the same streams, as long as it takes
  joinbench run --rate 500k/s --duration 1m        # open loop: latency from intended times
  joinbench run --dir /data/run1                   # then, after kill -9: the same with --resume
  joinbench run --arms fuse16,memory,none          # side by side with a Go map, and with no filter (on the first million B)
  joinbench run --arms fuse8,fuse16,bloom:200k     # another limit of B for one arm; bloom:all for none
  joinbench run --kafka embedded --profile ci      # through joinbench's own broker: load, serve, verify
  joinbench run --kafka localhost:9092 --profile kafka                # serve's B a second beside a bare consumer's
  joinbench run --kafka localhost:9092 --profile kafka --rate 50k/s   # end-to-end latency
  joinbench run --config mine.yaml --print-config`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runBench(cmd, &f, s) },
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVar(&f.profile, "profile", "quick", "built-in profile: "+strings.Join(pipeline.Profiles(), ", "))
	fl.StringVar(&f.config, "config", "", "profile of your own (a file), instead of --profile")
	fl.StringVar(&f.out, "out", "", "file for the record (default results/<profile>-<time>-<id>.json)")
	fl.StringVar(&f.filter, "filter", "", "filter of sealed buckets: fuse8, fuse16, fuse32, bloom, none")
	fl.StringVar(&f.arms, "arms", "", "ways to join, side by side, each in a process of its own: "+strings.Join(pipeline.ArmNames(), ", "))
	fl.StringVar(&f.summary, "summary", "on", "filters of the buckets side by side, so that one look asks them all: on, off")
	fl.StringVar(&f.tasks, "tasks", "", "tasks (goroutines with a database each): a number, or auto")
	fl.StringVar(&f.seed, "seed", "", "seed of the workload")
	fl.DurationVarP(&f.duration, "duration", "d", 0, "length of the measured phase; the streams go on for as long as that, with --kafka for all of the profile's B at most (default: all of the profile's B)")
	fl.StringVarP(&f.rate, "rate", "r", "", "open loop: so many B a second, for example 500k/s or 2M, whether the join keeps up or not")
	fl.StringVar(&f.mode, "mode", "", "closed (as fast as it goes; its latency is service only) or open (default: open with --rate)")
	fl.StringVar(&f.arrival, "arrival", "uniform", "intended times of an open loop: uniform, poisson")
	fl.StringVar(&f.catchUp, "catch-up", "queue", "B that are due while the join is busy: queue, or drop (what finds a whole batch waiting)")
	fl.StringVar(&f.kafka, "kafka", "", "through Kafka: load two topics, have serve join them in a process of its own, verify. Brokers (HOST:PORT, with commas), or embedded")
	fl.IntVar(&f.rounds, "rounds", 3, "with --kafka, turns of a bare consumer of B and of serve")
	fl.StringVar(&f.compression, "compression", "lz4", "with --kafka, of the input: "+strings.Join(kafka.Compressions, ", "))
	fl.BoolVar(&f.keep, "keep", false, "with --kafka, keep the topics")
	fl.StringVar(&f.dir, "dir", "", "data directory, kept afterwards (default a temporary one)")
	fl.BoolVar(&f.resume, "resume", false, "finish the unfinished run in --dir")
	fl.StringVar(&f.label, "label", "", "text that the record carries")
	fl.StringArrayVar(&f.thresholds, "threshold", nil, "limit of a metric of the record, such as 'join.filter.fp_ratio<0.0005'; failed: exit code 99 (repeatable)")
	fl.StringVar(&f.progress, "progress", "auto", "auto, tty, plain, json, none")
	fl.BoolVar(&f.strict, "strict", false, "do not start on a machine of which doctor says that something is bad (exit code 3)")
	fl.BoolVar(&f.json, "json", false, "print the record instead of the report")
	fl.BoolVar(&f.printConfig, "print-config", false, "print the configuration that is in force, and stop")
	fl.StringVar(&f.cpuProfile, "cpuprofile", "", "file for a CPU profile in pprof form, with --kafka of serve")
	fl.StringVar(&f.arm, "arm", "", "")
	fl.StringVar(&f.bare, "bare", "", "")
	fl.BoolVar(&f.cpuOnly, "cpu-only", false, "")
	fl.IntVar(&f.pin, "pin", -1, "")
	for _, own := range []string{"arm", "bare", "cpu-only", "pin"} { // how this program calls itself
		_ = fl.MarkHidden(own) // it is there
	}
	return cmd
}

func runBench(cmd *cobra.Command, f *runFlags, s streams) error {
	if f.arm != "" {
		return runArm(cmd.Context(), f.arm)
	}
	if f.bare != "" {
		return runBare(cmd.Context(), f.bare)
	}
	if f.pin >= 0 {
		if err := pin(f.pin); err != nil {
			return fmt.Errorf("--pin %d: %w", f.pin, err)
		}
	}
	profile, name, err := benchProfile(f)
	if err != nil {
		return err
	}
	if f.printConfig {
		return profile.Print(s.out)
	}
	bc, err := benchConfig(f, profile, name)
	if err != nil {
		return err
	}
	progress, err := parseProgress(f.progress)
	if err != nil {
		return err
	}
	if f.strict {
		if err := preflight(f.dir); err != nil {
			return err
		}
	}
	if f.kafka == "" {
		for _, flag := range []string{"rounds", "compression", "keep"} {
			if cmd.Flags().Changed(flag) {
				return &usageError{fmt.Errorf("--%s is about a run through Kafka: add --kafka", flag)}
			}
		}
	}
	stop, err := startCPUProfile(when(f.kafka == "", f.cpuProfile))
	if err != nil {
		return err
	}
	saved := savedRecord{path: f.out, started: time.Now()}
	bc.Save = func(rec *results.Record) error {
		rec.Run.Label = f.label
		if rec.Verdict.Status == results.StatusInterrupted && terminated(cmd.Context()) {
			rec.Verdict.ExitCode = results.ExitTerminated
		}
		saved.write(rec, name)
		return saved.err
	}
	bench := func() (*results.Record, error) { return pipeline.Bench(cmd.Context(), bc) }
	if f.arms != "" {
		ac, err := armsConfig(cmd, f, &bc)
		if err != nil {
			return err
		}
		bench = func() (*results.Record, error) { return pipeline.RunArms(cmd.Context(), ac) }
	}
	var kc *pipeline.KafkaConfig
	if f.kafka != "" {
		if kc, err = kafkaConfig(cmd, f, &bc); err != nil {
			return err
		}
		bench = func() (*results.Record, error) { return pipeline.RunKafka(cmd.Context(), *kc) }
	}
	live := startLive(bc.Progress, progress, s)
	defer live.Stop()
	if kc != nil {
		kc.Warn = func(format string, args ...any) { _, _ = fmt.Fprintf(live, "joinbench: "+format+"\n", args...) }
	}
	rec, err := bench()
	live.Stop()
	stop()
	if rec == nil {
		return err
	}
	return finishRun(f, rec, &saved, err, s)
}

// savedRecord is where a record went, and why not.
type savedRecord struct {
	path    string
	started time.Time
	err     error
}

func (r *savedRecord) write(rec *results.Record, name string) {
	if r.path == "" {
		r.path = results.DefaultPath(name, r.started, rec.Run.ID)
		if err := os.MkdirAll(filepath.Dir(r.path), 0o755); err != nil {
			r.err = fmt.Errorf("no place for it: %w (name one with --out)", err)
			return
		}
	}
	r.err = results.Write(r.path, rec)
}

// finishRun prints the record and turns its verdict into the exit code. What was measured is printed even if it could not
// be saved: a run may have taken hours.
func finishRun(f *runFlags, rec *results.Record, saved *savedRecord, closeErr error, s streams) error {
	format, opt := "text", results.Terminal(s.out)
	if f.json {
		format = "json"
	}
	if err := results.Render(s.out, rec, format, opt); err != nil {
		return errors.Join(saved.err, err)
	}
	if saved.err != nil {
		return fmt.Errorf("the record is not saved, only printed: %w", saved.err)
	}
	if f.out == "" {
		_, _ = fmt.Fprintf(s.err, "record: %s\n", saved.path)
	}
	if rec.Verdict.ExitCode != 0 {
		return &exitError{code: rec.Verdict.ExitCode}
	}
	return closeErr
}

func benchConfig(f *runFlags, profile *config.Profile, name string) (pipeline.BenchConfig, error) {
	bc := pipeline.BenchConfig{Profile: profile, Name: name, Dir: f.dir, Resume: f.resume, Duration: f.duration, CPUOnly: f.cpuOnly,
		Argv: os.Args, Started: processStarted, Progress: &pipeline.Progress{}, Version: toolVersion()}
	switch f.summary {
	case "on", "off":
		bc.Summary = f.summary == "on"
	default:
		return bc, &usageError{fmt.Errorf("--summary %q: on or off", f.summary)}
	}
	var err error
	if bc.Pace, err = paceOf(f); err != nil {
		return bc, err
	}
	if f.resume && f.dir == "" {
		return bc, &usageError{fmt.Errorf("--resume needs --dir: the directory of the run that is to be finished")}
	}
	ofProfile := profile.Load.Thresholds
	if f.cpuOnly { // they are for a whole run
		ofProfile = nil
	}
	if bc.Thresholds, err = thresholds(ofProfile, f.thresholds); err != nil {
		return bc, err
	}
	if f.duration < 0 {
		return bc, &usageError{fmt.Errorf("--duration %s: must be positive", f.duration)}
	}
	return bc, nil
}

// thresholds reads those of the profile and those of flags.
func thresholds(profile, flags []string) ([]*results.Limit, error) {
	ofProfile, err := results.ParseThresholds(profile)
	if err != nil {
		return nil, fmt.Errorf("load.thresholds: %w", err)
	}
	ofFlags, err := results.ParseThresholds(flags)
	if err != nil {
		return nil, fmt.Errorf("--threshold: %w", err)
	}
	return append(ofProfile, ofFlags...), nil
}

// benchProfile lays file, environment and flags over each other.
func benchProfile(f *runFlags) (profile *config.Profile, name string, err error) {
	name = f.profile
	if f.config != "" {
		name = strings.TrimSuffix(filepath.Base(f.config), filepath.Ext(f.config))
	}
	if profile, err = readProfile(f.config, f.profile); err != nil {
		return nil, "", err
	}
	if err := profile.ApplyEnv(os.Environ()); err != nil {
		return nil, "", err
	}
	for _, v := range []struct{ flag, key, value string }{{"--filter", "state.filter", f.filter},
		{"--tasks", "state.tasks", f.tasks}, {"--seed", "load.seed", f.seed}} {
		if v.value == "" {
			continue
		}
		if err := profile.Set(v.key, v.value, "flag "+v.flag); err != nil {
			return nil, "", err
		}
	}
	return profile, name, profile.Validate()
}

// readProfile reads a profile of one's own, or the built-in one of a name if there is no path. It is not validated.
func readProfile(path, name string) (*config.Profile, error) {
	if path == "" {
		return pipeline.Profile(name)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, &exitError{results.ExitUsage, fmt.Sprintf("profile: %v", err)}
	}
	return config.ParseProfile(data, path)
}

// startCPUProfile starts a profile if a file is named; the function ends it.
func startCPUProfile(path string) (stop func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() { pprof.StopCPUProfile(); _ = f.Close() }, nil
}
