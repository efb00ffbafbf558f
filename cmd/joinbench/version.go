package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"joinbench/buckets"
	"joinbench/projection"
	"joinbench/results"
)

// version is the release; commit and dirty are set by the linker (see the Makefile).
var (
	version = "0.1.0"
	commit  = ""
	dirty   = ""
)

// toolVersion is what a record says of the program.
func toolVersion() results.Tool {
	t := results.Tool{Version: version, Commit: commit, Dirty: dirty == "true", Go: runtime.Version(), JSONEngine: projection.Engine(),
		BuildTags: []string{}, Instrumented: []string{}}
	t.RocksDB, t.RocksDBAssertions = buckets.Build()
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "-tags":
				t.BuildTags = strings.Split(s.Value, ",")
			case instrument(s.Key, s.Value) != "":
				t.Instrumented = append(t.Instrumented, instrument(s.Key, s.Value))
			case s.Key == "vcs.revision" && t.Commit == "":
				t.Commit = s.Value
			case s.Key == "vcs.modified" && dirty == "":
				t.Dirty = s.Value == "true"
			}
		}
	}
	if slices.Contains(t.BuildTags, "failpoints") {
		t.Instrumented = append(t.Instrumented, "failpoints")
	}
	return t
}

// instrument names the setting of a build that makes it slower than the one that is deployed; "" if it is none.
func instrument(key, value string) string {
	switch {
	case (key == "-race" || key == "-asan" || key == "-msan" || key == "-cover") && value == "true":
		return key
	case key == "-gcflags" && slices.Contains(strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == '=' || r == '"' }), "-N"):
		return "-N"
	}
	return ""
}

func newVersion(s streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "Print versions: the program, RocksDB, the JSON path", Args: noArgs,
		Example: "  joinbench version\n  joinbench version --json",
		RunE: func(*cobra.Command, []string) error {
			t := toolVersion()
			if asJSON {
				data, err := json.MarshalIndent(t, "", "  ")
				if err == nil {
					_, err = s.out.Write(append(data, '\n'))
				}
				return err
			}
			w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
			state := ""
			if t.Dirty {
				state = " (with changes)"
			}
			assertions := " (release build)"
			switch {
			case !hasRocksDB(t):
				assertions = ""
			case t.RocksDBAssertions:
				assertions = " (with assertions: figures are worthless)"
			}
			_, _ = fmt.Fprintf(w, "joinbench\t%s\ncommit\t%s%s\ngo\t%s %s/%s\nrocksdb\t%s%s\njson\t%s\n", t.Version, orNone(t.Commit), state,
				t.Go, runtime.GOOS, runtime.GOARCH, t.RocksDB, assertions, t.JSONEngine)
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func orNone(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// hasRocksDB is false of a build without cgo.
func hasRocksDB(t results.Tool) bool { return !strings.HasPrefix(t.RocksDB, "none") }

func newDoctor(s streams) *cobra.Command {
	var dir string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check what this machine gives a measurement", Args: noArgs,
		Example: "  joinbench doctor --dir /data",
		RunE: func(*cobra.Command, []string) error {
			env := results.CollectEnvironment(dir)
			if asJSON {
				data, err := json.MarshalIndent(env, "", "  ")
				if err == nil {
					_, err = s.out.Write(append(data, '\n'))
				}
				return err
			}
			return printDoctor(s, &env, toolVersion())
		},
	}
	cmd.Flags().StringVar(&dir, "dir", os.TempDir(), "where data would lie")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// printDoctor lists what was found, each with what to do where something is.
func printDoctor(s streams, e *results.Environment, t results.Tool) error {
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	line := func(name, value, advice string) {
		mark := "ok"
		if advice != "" {
			mark, value = "!!", value+": "+advice
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", mark, name, value)
	}
	advise := func(bad bool, text string) string {
		if bad {
			return text
		}
		return ""
	}
	line("cpu", fmt.Sprintf("%s, %d cores", e.CPU, e.Cores), advise(e.Cores < 2, "helpers and the join share one core; measure on two or more"))
	line("governor", orNone(e.Governor), advise(e.Governor != "" && e.Governor != "performance", "set it to performance while measuring"))
	line("memory", results.Bytes(e.MemBytes), advise(e.MemBytes > 0 && e.MemBytes < 2<<30, "the quick profile needs 1 GiB free"))
	line("disk", fmt.Sprintf("%s on %s", orNone(e.FS), orNone(e.Disk)), advise(e.FS == "tmpfs", "memory, not a disk: use --dir for figures about disks"))
	rocksAdvice := advise(t.RocksDBAssertions, "compiled with assertions; build a release one with make")
	if !hasRocksDB(t) {
		rocksAdvice = "neither run nor join work; build with make, which sets CGO_ENABLED=1"
	}
	line("rocksdb", t.RocksDB, rocksAdvice)
	line("json", t.JSONEngine, "")
	line("go", fmt.Sprintf("%s, GOGC=%d, GOMAXPROCS=%d", t.Go, e.GOGC, e.GOMAXPROCS), advise(e.GOMAXPROCS < e.Cores, "fewer threads than cores"))
	return w.Flush()
}
