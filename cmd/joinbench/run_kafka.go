package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"joinbench/pipeline"
)

// embedded is what --kafka says for joinbench's own broker.
const embedded = "embedded"

// kafkaConfig is the run of --kafka.
func kafkaConfig(cmd *cobra.Command, f *runFlags, bc *pipeline.BenchConfig) (*pipeline.KafkaConfig, error) {
	usage := func(format string, args ...any) (*pipeline.KafkaConfig, error) {
		return nil, &usageError{fmt.Errorf(format, args...)}
	}
	for flag, why := range map[string]string{
		"arms":     "arms are compared without Kafka",
		"resume":   "a run through Kafka starts anew",
		"summary":  "serve has its own",
		"arrival":  "records come uniformly",
		"catch-up": "records queue",
	} {
		if cmd.Flags().Changed(flag) {
			return usage("--%s does not go with --kafka: %s", flag, why)
		}
	}
	switch {
	case f.rate == "" && f.duration > 0:
		return usage("--duration goes with --kafka only where records come at a --rate: else all of the topic is read; set the number of B, JOINBENCH_LOAD_B_EVENTS=20M")
	case f.rate != "" && cmd.Flags().Changed("rounds"):
		return usage("--rounds does not go with --rate: records come once")
	case f.rounds < 1:
		return usage("--rounds %d: at least 1", f.rounds)
	}
	if err := checkCompression(f.compression); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("--kafka starts this program again, and does not find it: %w", err)
	}
	bc.Progress = pipeline.NewProgress("prepare")
	c := &pipeline.KafkaConfig{Profile: bc.Profile, Name: bc.Name, Dir: f.dir, Rounds: f.rounds, Duration: f.duration, Compression: f.compression,
		Keep: f.keep, CPUProfile: f.cpuProfile, Argv: bc.Argv, Progress: bc.Progress, Thresholds: bc.Thresholds, Save: bc.Save, Version: bc.Version,
		Command: func(args ...string) *exec.Cmd { return exec.Command(self, args...) }}
	if bc.Pace != nil {
		c.Rate = bc.Pace.Rate
	}
	if f.kafka != embedded {
		c.Brokers = strings.Split(f.kafka, ",")
	}
	return c, nil
}

// childFile is the file that a process which this program starts writes its progress to.
const childFile = 3

// runBare is the process of the bare consumer: the configuration of the join says what it reads.
func runBare(ctx context.Context, conf string) error {
	out := inherited(childFile, "progress")
	if out == nil {
		return &usageError{errors.New("--bare is how --kafka calls this program: use --kafka")}
	}
	j, err := joinConfig(&joinFlags{config: conf})
	if err != nil {
		return err
	}
	return errors.Join(pipeline.Bare(ctx, j, out), out.Close())
}

// when is the text if the condition holds, else nothing.
func when(holds bool, text string) string {
	if holds {
		return text
	}
	return ""
}
