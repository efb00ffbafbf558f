package main

import (
	"encoding/json"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"joinbench/results"
)

const doctorLong = `doctor looks at what this machine gives a measurement: processor, clock, who else uses it, limits, memory, the disk under
--dir (which it writes and syncs a file of 32 MiB on), Go's settings, the build. Each line is ok, warn (figures are less
steady) or bad (figures mean little, or the run may fail), with what to change. It takes a little more than a second.
The exit code is 0, with --strict 3 if something is bad.`

func newDoctor(s streams) *cobra.Command {
	var dir string
	var asJSON, strict bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check what this machine gives a measurement", Long: doctorLong, Args: noArgs,
		Example: "  joinbench doctor --dir /data\n  joinbench doctor --strict && joinbench run --dir /data/run1",
		RunE: func(*cobra.Command, []string) error {
			d := results.Examine(dir, toolVersion())
			if err := printDiagnosis(s, &d, asJSON); err != nil {
				return err
			}
			if strict && d.Status == results.CheckBad {
				return &exitError{code: results.ExitInvalid}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", os.TempDir(), "where data would lie")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().BoolVar(&strict, "strict", false, "exit code 3 if something is bad")
	return cmd
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
