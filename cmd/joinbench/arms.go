package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"joinbench/baseline"
	"joinbench/core"
	"joinbench/pipeline"
)

// engines are the arms that do not join on our own state.
var engines = pipeline.Engines{
	"memory":            func(c *core.Config) core.Joiner { return baseline.NewMemory(c) },
	"memory-projection": func(c *core.Config) core.Joiner { return baseline.NewMemory(c) },
	"null":              func(*core.Config) core.Joiner { return baseline.NewNull() },
}

// armsConfig is the run of --arms: what run was asked for, and which arms.
func armsConfig(cmd *cobra.Command, f *runFlags, bc *pipeline.BenchConfig) (pipeline.ArmsConfig, error) {
	for flag, why := range map[string]string{
		"filter":     "each arm has its own",
		"duration":   "arms are compared on the same records: set their number, JOINBENCH_LOAD_B_EVENTS=20M",
		"rate":       "arms run by turns, each as fast as it can",
		"resume":     "arms are resumed by the run itself",
		"cpuprofile": "profile one way to join by itself, with --filter",
	} {
		if cmd.Flags().Changed(flag) {
			return pipeline.ArmsConfig{}, &usageError{fmt.Errorf("--%s does not go with --arms: %s", flag, why)}
		}
	}
	arms, err := pipeline.ParseArms(f.arms)
	if err != nil {
		return pipeline.ArmsConfig{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return pipeline.ArmsConfig{}, fmt.Errorf("--arms starts this program again, and does not find it: %w", err)
	}
	return pipeline.ArmsConfig{Profile: bc.Profile, Name: bc.Name, Arms: arms, Summary: bc.Summary, Dir: f.dir, Argv: bc.Argv,
		Progress: bc.Progress, Save: bc.Save, Thresholds: bc.Thresholds,
		Command: func(arm string) *exec.Cmd { return exec.Command(self, "run", "--arm", arm) }}, nil
}

// The files that an arm's process gets from its parent.
const (
	armOrders = 3
	armNews   = 4
)

// runArm is the process of one arm.
func runArm(ctx context.Context, name string) error {
	orders, news := os.NewFile(armOrders, "orders"), os.NewFile(armNews, "news")
	for _, f := range []*os.File{orders, news} {
		if st, err := f.Stat(); err != nil || st.Mode()&os.ModeNamedPipe == 0 {
			return &usageError{fmt.Errorf("--arm %s is how --arms calls this program: use --arms %s", name, name)}
		}
	}
	return errors.Join(pipeline.RunArm(ctx, orders, news, engines, toolVersion(), processStarted), news.Close())
}
