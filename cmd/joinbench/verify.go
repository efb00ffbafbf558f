package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"joinbench/pipeline"
	"joinbench/results"
)

const verifyLong = `verify reads the output topic of a join from its beginning to its end, as a reader of committed records sees it, and
compares it with what must come out of the workload that load wrote: what is missing, what is spurious (a pair that is
none, an aborted record, a line that does not say what its records say), what is there twice.

Give it the workload as load had it (profile, counts, seed, --to) and the join as serve had it (-c join.yaml). The join must
have been drained (serve --drain), or with --stopped have been stopped. The input topics are looked at too: where they hold
something else than this workload, that is said, and not that every result is wrong.

The exit code is 0 when every result is there once, and 4 when not. With --at-least-once a result may be there more than once;
how often is still counted.`

const verifyExample = `  joinbench verify -c join.yaml                         # after: load -c join.yaml; serve -c join.yaml --drain
  joinbench verify -c join.yaml --a 100k --b 1M --seed 7
  joinbench verify -c join.yaml --wait 1m               # while serve still runs: until all is there, or nothing came for a minute
  joinbench verify -c join.yaml --stopped               # after SIGTERM: the pairs of what was read so far
  joinbench verify -c join.yaml --at-least-once --json`

// verifyFlags are the flags of verify.
type verifyFlags struct {
	workloadFlags
	atLeastOnce bool
	stopped     bool
	wait        time.Duration
	examples    int
}

func newVerify(s streams) *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use: "verify", Short: "Compare the output topic of a join with the truth", Long: verifyLong, Example: verifyExample, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runVerify(cmd, &f, s) },
	}
	fl := cmd.Flags()
	f.bind(fl)
	fl.BoolVar(&f.atLeastOnce, "at-least-once", false, "results may be there more than once (they are counted)")
	fl.BoolVar(&f.stopped, "stopped", false, "the join was stopped, not drained: judge the pairs of what its group has read (inner joins)")
	fl.DurationVar(&f.wait, "wait", 0, "wait for what is missing until nothing has come for so long")
	fl.IntVar(&f.examples, "examples", 5, "examples of each kind of fault")
	return cmd
}

func runVerify(cmd *cobra.Command, f *verifyFlags, s streams) error {
	p, err := f.read()
	if err != nil {
		return err
	}
	if f.printJoin {
		return p.Join.Print(s.out)
	}
	if f.wait < 0 || f.examples < 0 {
		return &usageError{fmt.Errorf("--wait and --examples are not below 0")}
	}
	progress, err := parseProgress(f.progress)
	if err != nil {
		return err
	}
	to, err := count("--to", f.to)
	if err != nil {
		return err
	}
	c := pipeline.VerifyConfig{Profile: p, Kafka: clientOf(p, s), To: to, AtLeastOnce: f.atLeastOnce, Stopped: f.stopped, Wait: f.wait, Examples: f.examples,
		Progress: pipeline.NewProgress("verify")}
	live := startLive(c.Progress, progress, s)
	defer live.Stop()
	r, err := pipeline.Verify(cmd.Context(), c)
	live.Stop()
	if err != nil {
		return err
	}
	if err := printVerify(s.out, r, f.json); err != nil {
		return err
	}
	if !r.Right {
		return &exitError{code: results.ExitIncorrect}
	}
	return nil
}

func printVerify(w io.Writer, r *pipeline.VerifyReport, asJSON bool) error {
	if asJSON {
		return printJSON(w, r)
	}
	text := fmt.Sprintf("%s holds %s records, of B up to %s of workload %s\n\n", r.Topic, results.Count(r.Records), results.Count(r.To), r.Fingerprint)
	text += fmt.Sprintf("%-12s%14s%14s%14s%14s%14s\n", "", "expected", "seen", "missing", "spurious", "duplicated")
	for _, kind := range []struct {
		name  string
		tally pipeline.VerifyTally
	}{{"pairs", r.Pairs}, {"null rows A", r.NullsA}, {"null rows B", r.NullsB}, {"groups", r.Groups}} {
		if t := kind.tally; t != (pipeline.VerifyTally{}) {
			text += fmt.Sprintf("%-12s%14s%14s%14s%14s%14s\n", kind.name, results.Count(t.Expected), results.Count(t.Seen), results.Count(t.Missing),
				results.Count(t.Spurious), results.Count(t.Duplicated))
		}
	}
	if r.Altered > 0 {
		text += fmt.Sprintf("%-12s%56s\n", "altered", results.Count(r.Altered))
	}
	if r.Tombstones > 0 {
		text += fmt.Sprintf("%-12s%28s\n", "tombstones", results.Count(r.Tombstones))
	}
	for _, e := range r.Examples {
		where := ""
		if e.Offset >= 0 {
			where = fmt.Sprintf(" at partition %d, offset %d", e.Partition, e.Offset)
		}
		text += fmt.Sprintf("\n%s%s, key %q: %s", e.Fault, where, e.Key, e.What)
	}
	if len(r.Examples) > 0 {
		text += "\n"
	}
	verdict := "right: every result is there once"
	switch {
	case !r.Right:
		verdict = fmt.Sprintf("wrong: %s missing, %s spurious, %s duplicated", results.Count(r.Missing), results.Count(r.Spurious), results.Count(r.Duplicated))
	case r.Duplicated > 0:
		verdict = fmt.Sprintf("right: every result is there, %s of them again (at least once)", results.Count(r.Duplicated))
	}
	if r.Missed > 0 {
		verdict += fmt.Sprintf("; %s pairs were missed since B asked at once (probe: immediate)", results.Count(r.Missed))
	}
	_, err := io.WriteString(w, text+"\n"+verdict+"\n")
	return err
}
