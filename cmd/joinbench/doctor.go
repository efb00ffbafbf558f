package main

import (
	"encoding/json"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"joinbench/ops"
	"joinbench/pipeline"
	"joinbench/projection"
	"joinbench/results"
)

const doctorLong = `doctor looks at what this machine gives a measurement: processor, clock, who else uses it, limits, memory, the disk under
--dir (which it writes and syncs a file of 32 MiB on), Go's settings, the build. Each line is ok, warn (figures are less
steady) or bad (figures mean little, or the run may fail), with what to change. It takes a little more than a second.

With -c it also looks at Kafka as serve would: whether brokers answer, topics, partitions and which partitioner filled them, retention against
the window, rights, clocks, the consumer group, whether the newest records have the key and the time that the configuration names, and
whether the disk of state.dir (in place of --dir) holds the window. It reads some thousand records of each topic, writes
nothing, joins no group, and may be used beside a serve that runs.

The exit code is 0, with --strict 3 if something is bad.`

func newDoctor(s streams) *cobra.Command {
	var dir, conf string
	var asJSON, strict bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check what this machine gives a measurement", Long: doctorLong, Args: noArgs,
		Example: "  joinbench doctor --dir /data\n  joinbench doctor --strict && joinbench run --dir /data/run1\n  joinbench doctor -c join.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := diagnose(cmd, conf, dir)
			if err != nil {
				return err
			}
			if err := printDiagnosis(s, &d, asJSON); err != nil {
				return err
			}
			if strict && d.Status == results.CheckBad {
				return &exitError{code: results.ExitInvalid}
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&conf, "config", "c", "", "a join's configuration: look at its topics too")
	cmd.Flags().StringVar(&dir, "dir", os.TempDir(), "where data would lie")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().BoolVar(&strict, "strict", false, "exit code 3 if something is bad")
	return cmd
}

// diagnose looks at the machine and, with a configuration, at Kafka.
func diagnose(cmd *cobra.Command, path, dir string) (d results.Diagnosis, err error) {
	if path == "" {
		return results.Examine(dir, toolVersion()), nil
	}
	conf, err := readJoin(path)
	if err != nil {
		return d, err
	}
	if err := conf.ValidateServe(); err != nil {
		return d, err
	}
	if !cmd.Flags().Changed("dir") {
		dir = conf.State.Dir
	}
	d = results.Examine(dir, toolVersion())
	x := ops.Examination{Config: conf, Kafka: pipeline.KafkaOptions(conf, nil), TransactionTimeout: pipeline.DefaultTransactionTimeout, Try: func(side string, recs []projection.Record) (*ops.Trial, error) {
		t, err := pipeline.Try(conf, side, recs)
		return (*ops.Trial)(t), err
	}}
	d.Add(x.Run(cmd.Context())...)
	return d, nil
}

func printDiagnosis(s streams, d *results.Diagnosis, asJSON bool) error {
	if !asJSON {
		opt := results.Terminal(s.out)
		return d.WriteText(s.out, opt.Width, opt.Color)
	}
	data, err := json.MarshalIndent(d, "", "  ")
	if err == nil {
		_, err = s.out.Write(append(data, '\n'))
	}
	return err
}

// preflight refuses to measure on a machine of which doctor says that it is bad.
func preflight(dir string) error {
	if dir == "" {
		dir = os.TempDir()
	}
	d := results.Examine(dir, toolVersion())
	if d.Status != results.CheckBad {
		return nil
	}
	return &exitError{results.ExitInvalid, "not started, for --strict is given and this machine is no place to measure (see joinbench doctor):\n  " +
		strings.Join(d.Bad(), "\n  ")}
}
