package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

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

// inherited is the pipe that a process got from the one that started it, nil if it got none. It looks before it makes a file of
// the number: the collector closes files that nobody holds, and the number may be another file's of this process.
func inherited(fd int, name string) *os.File {
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil || st.Mode&syscall.S_IFMT != syscall.S_IFIFO {
		return nil
	}
	return os.NewFile(uintptr(fd), name)
}

// runArm is the process of one arm.
func runArm(ctx context.Context, name string) error {
	orders, news := inherited(armOrders, "orders"), inherited(armNews, "news")
	if orders == nil || news == nil {
		return &usageError{fmt.Errorf("--arm %s is how --arms calls this program: use --arms %s", name, name)}
	}
	return errors.Join(pipeline.RunArm(ctx, orders, news, engines, toolVersion(), processStarted), news.Close())
}
