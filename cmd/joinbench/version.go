package main

import (
	"encoding/json"
	"fmt"
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
