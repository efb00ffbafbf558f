package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"joinbench/compare"
	"joinbench/results"
)

const abLong = `ab runs two programs by turns on one workload, in an order that is drawn for each pair, until it is clear whether B
is slower than A by more than the limit, or the budget is spent. Each run is a process of its own.

What is compared is the CPU time of the tasks' threads while B ask, part by part of the workload. The two runs of a pair share one
processor and take turns of 5 ms on it, one standing still meanwhile, so that what other work on the machine does to one it does
to the other; it is their differences that tell. A change in less than a tenth of the parts is not seen. The runs of a first pair,
by which counts and allocations are judged, have all processors, one after the other. A build that sleeps or waits takes no more
CPU time, so the clock's time of the parts is judged besides, at a limit of 10 %. With --metric cost.ns_per_b it decides, divided
by the machine's unit that each run measures beside it, of runs one after the other. Several looks at the data do not make a false
alarm more likely: each has its own share of an error of 2 % in all. A count that is worse decides after one pair. All records
and a summary are kept. Exit codes are those of compare; 130 when it was interrupted.`

// abSlice is how long one of a pair runs while the other stands still. Neighbours change within tens of ms; a few batches fit in 5 ms, and the
// caches are warm again after a tenth of one. Of twelve pairs each on two busy days' machines the two of a pair went together with a correlation
// of 0.95 and 0.78 (−0.15 one after the other, 0.43 without a processor in common).
const abSlice = 5 * time.Millisecond

// abFlags are the flags of ab.
type abFlags struct {
	gateFlags
	profile, config, dir, seed, metric string
	budget                             time.Duration
	procs                              int
}

func newAB(s streams) *cobra.Command {
	var f abFlags
	cmd := &cobra.Command{
		Use: "ab BIN_A BIN_B", Short: "Run two builds by turns, and decide", Long: abLong,
		Example: `  joinbench ab bin/old bin/new
  joinbench ab bin/old bin/new --budget 10m --limit time=2%
  joinbench ab bin/old bin/new --profile ci --strict -o md=comment.md`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return &usageError{errors.New("ab needs two programs: the base and the build in question (see joinbench ab -h)")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runAB(cmd.Context(), &f, args, s) },
	}
	f.bind(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.profile, "profile", "gate", "built-in profile")
	fl.StringVar(&f.config, "config", "", "profile of your own (a file), instead of --profile")
	fl.DurationVar(&f.budget, "budget", time.Minute, "time for all runs")
	fl.StringVar(&f.metric, "metric", compare.PartsMetric, "what decides; cost.ns_per_b is the clock's time, divided by the machine's unit")
	fl.IntVar(&f.procs, "procs", -1, "processors for each run (GOMAXPROCS), 0 for all; by default one where CPU time decides, and all otherwise")
	fl.StringVar(&f.seed, "seed", "", "seed of the order of the runs (default: drawn, and printed)")
	fl.StringVar(&f.dir, "dir", "", "directory for the records and summary.json (default results/ab-<time>-<id>)")
	return cmd
}

func runAB(ctx context.Context, f *abFlags, bins []string, s streams) error {
	opt, outs, err := f.check()
	if err != nil {
		return err
	}
	ab, err := f.prepare(bins, opt)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(s.err, "ab: %s against %s, seed %d, records in %s\n", bins[1], bins[0], ab.Seed, ab.Dir)
	ab.Progress = func(p *compare.Pairs) {
		_, _ = fmt.Fprintf(s.err, "ab: pair %d: %+.2f %%\n", len(p.Logs), 100*math.Expm1(p.Logs[len(p.Logs)-1]))
	}
	c, failed := ab.Run(ctx)
	if c == nil {
		return gateError(failed)
	}
	if err := writeForm(c, outFile{"json", filepath.Join(ab.Dir, "summary.json")}); err != nil {
		return errors.Join(failed, err)
	}
	told := f.tell(c, outs, s)
	if failed != nil {
		return failed
	}
	return told
}

// prepare finds the programs and writes the workload down once for both.
func (f *abFlags) prepare(bins []string, opt compare.Options) (*compare.AB, error) {
	if f.budget <= 0 {
		return nil, &usageError{fmt.Errorf("--budget %s: must be positive", f.budget)}
	}
	if f.procs < -1 {
		return nil, &usageError{fmt.Errorf("--procs %d: a number of processors, or 0 for all", f.procs)}
	}
	if err := compare.Decides(f.metric); err != nil {
		return nil, &usageError{fmt.Errorf("--metric: %w", err)}
	}
	ab := &compare.AB{Metric: f.metric, Names: [2]string{bins[0], bins[1]}, Budget: f.budget, Seed: uint64(rand.Uint32()), Options: opt, Dir: f.dir}
	if f.seed != "" {
		var err error
		if ab.Seed, err = strconv.ParseUint(f.seed, 10, 64); err != nil {
			return nil, &usageError{fmt.Errorf("--seed %q: not a whole number", f.seed)}
		}
	}
	var paths [2]string
	for i, bin := range bins {
		path, err := filepath.Abs(bin) // a file here needs no ./ before it
		if _, missing := os.Stat(path); err == nil && missing != nil {
			path, err = exec.LookPath(bin)
		}
		if err != nil {
			return nil, &usageError{fmt.Errorf("%s: %w", bin, err)}
		}
		paths[i] = path
	}
	profile, name, err := benchProfile(&runFlags{profile: f.profile, config: f.config})
	if err != nil {
		return nil, err
	}
	if ab.Dir == "" {
		ab.Dir = strings.TrimSuffix(results.DefaultPath("ab", time.Now(), results.NewRunID()), ".json")
	}
	if err := os.MkdirAll(ab.Dir, 0o755); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := profile.Print(&text); err != nil {
		return nil, err
	}
	workload := filepath.Join(ab.Dir, name+".yaml")
	if err := os.WriteFile(workload, text.Bytes(), 0o644); err != nil {
		return nil, err
	}
	procs := f.procs
	if procs < 0 && f.metric == compare.PartsMetric {
		procs = 1
	}
	ab.Apart = procs > 0 || f.metric == compare.PartsMetric
	if f.metric == compare.PartsMetric {
		ab.Slice = abSlice
	}
	ab.Options.Short = f.metric == compare.PartsMetric && profile.Load.TimedEvents > 0
	ab.Command = func(side int, out string, pair int) *exec.Cmd {
		first := pair == 1
		cmd := exec.Command(paths[side], "run", "--config", workload, "--out", out, "--progress", "none")
		if procs > 0 && !first {
			cmd.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(procs))
		}
		if f.metric == compare.PartsMetric && !first {
			cmd.Args = append(cmd.Args, "--cpu-only") // in a third of the time
			if procs == 1 {
				cmd.Args = append(cmd.Args, "--pin", strconv.Itoa(pair))
			}
		}
		return cmd
	}
	return ab, nil
}
