package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"joinbench/compare"
	"joinbench/results"
)

const compareLong = `compare holds records against a baseline, metric by metric, and exits with what it found.

Counts (lookups, filter queries, false positives, bytes of filters) are exact where the profile makes them so, as ci and gate
do; allocations may differ by half of one a batch; memory and time by a ratio. Times need five runs of each build on one
machine, for a rank test; with fewer, one beyond the limit is inconclusive and others are shown and not judged, as on another
machine. Memory of fewer runs is held against their spread, which one run does not have. Records of one label and commit are
repetitions and pooled; others are candidates of their own. BASE may be a file, a directory or a pattern.

Exit codes: 0 no regression, 5 regression, 6 inconclusive or incomparable with --strict (0 and a warning without),
2 the baseline is missing or of a run that was wrong, or a record is malformed, 1 a new record is missing, or a file cannot be
written; of what the new runs said themselves the most serious: 4 incorrect, 3 invalid, 99 a threshold failed, 130 interrupted.`

// gateFlags are what compare and ab share.
type gateFlags struct {
	format     string
	outs       []string
	limits     []string
	thresholds []string
	strict     bool
}

func (f *gateFlags) bind(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVarP(&f.format, "format", "f", "text", strings.Join(compare.Formats(), ", "))
	fl.StringArrayVarP(&f.outs, "out", "o", nil, "format=path: write this form to a file besides (repeatable)")
	fl.StringArrayVar(&f.limits, "limit", nil, "how much worse a class (count, allocs, memory, time) or a metric may be: time=3%, cost.rss_max_bytes=5%+4MiB (repeatable)")
	fl.StringArrayVar(&f.thresholds, "threshold", nil, "limit of a metric of each new record by itself; failed: exit code 99 (repeatable)")
	fl.BoolVar(&f.strict, "strict", false, "inconclusive or incomparable: exit code 6")
}

// outFile is a form that goes to a file.
type outFile struct{ format, path string }

// check reads the flags before anything runs.
func (f *gateFlags) check() (compare.Options, []outFile, error) {
	opt := compare.Options{Strict: f.strict}
	if err := compare.CheckFormat(f.format); err != nil {
		return opt, nil, err
	}
	var outs []outFile
	for _, o := range f.outs {
		format, path, ok := strings.Cut(o, "=")
		if !ok || path == "" {
			return opt, nil, &usageError{fmt.Errorf("--out %q: not of the form format=path", o)}
		}
		if err := compare.CheckFormat(format); err != nil {
			return opt, nil, fmt.Errorf("--out: %w", err)
		}
		outs = append(outs, outFile{format, path})
	}
	var err error
	if opt.Overrides, err = compare.ParseOverrides(f.limits); err != nil {
		return opt, nil, fmt.Errorf("--limit: %w", err)
	}
	opt.Limits, err = thresholds(nil, f.thresholds)
	return opt, outs, err
}

// tell writes a comparison in all forms that were asked for, and turns it into the exit code.
func (f *gateFlags) tell(c *compare.Comparison, outs []outFile, s streams) error {
	var failed error
	for _, o := range outs {
		failed = errors.Join(failed, writeForm(c, o))
	}
	if err := errors.Join(compare.Write(s.out, c, f.format), failed); err != nil {
		return err
	}
	if c.ExitCode == 0 && (c.Verdict == compare.Inconclusive || c.Verdict == compare.Incomparable) {
		_, _ = fmt.Fprintf(s.err, "joinbench: warning: %s: %s (--strict makes this exit code %d)\n", c.Verdict, strings.Join(c.Reasons, "; "), results.ExitInconclusive)
	}
	if c.ExitCode != 0 {
		return &exitError{code: c.ExitCode}
	}
	return nil
}

func writeForm(c *compare.Comparison, o outFile) error {
	file, err := os.Create(o.path)
	if err != nil {
		return err
	}
	return errors.Join(compare.Write(file, c, o.format), file.Close())
}

func newCompare(s streams) *cobra.Command {
	var f gateFlags
	var more []string
	var skipTime, schema bool
	cmd := &cobra.Command{
		Use: "compare BASE NEW.json…", Short: "Hold records against a baseline", Long: compareLong,
		Example: `  joinbench compare base.json new.json
  joinbench compare baseline/ new[1-5].json                     # times are judged too
  joinbench compare base.json new.json --limit time=3% --limit cost.rss_max_bytes=5%+4MiB
  joinbench compare base.json new.json --strict -o md=comment.md -o junit=report.xml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 && !schema {
				return &usageError{errors.New("compare needs a baseline and at least one new record (see joinbench compare -h)")}
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if schema {
				_, err := s.out.Write(compare.JSONSchema())
				return err
			}
			opt, outs, err := f.check()
			if err != nil {
				return err
			}
			opt.SkipTime = skipTime
			base, err := records(append(more, args[0]))
			if err != nil {
				return &exitError{results.ExitUsage, "baseline: " + err.Error()}
			}
			fresh, err := records(args[1:])
			if err != nil {
				return err
			}
			c, err := compare.Records(base, fresh, opt)
			if err != nil {
				return gateError(err)
			}
			return f.tell(c, outs, s)
		},
	}
	f.bind(cmd)
	cmd.Flags().BoolVar(&skipTime, "skip-time", false, "judge no times: leave them to ab")
	cmd.Flags().BoolVar(&schema, "schema", false, "print the JSON Schema of the form json, and stop")
	cmd.Flags().StringArrayVarP(&more, "base", "b", nil, "another record, directory or pattern of the baseline (repeatable)")
	return cmd
}

// gateError gives a baseline that is none its exit code.
func gateError(err error) error {
	var base *compare.BaseError
	if errors.As(err, &base) {
		return &exitError{results.ExitUsage, err.Error()}
	}
	return err
}

// records reads files, the JSON files of directories, and those that patterns name; a name that gives none is an error.
func records(names []string) ([]*results.Record, error) {
	var out []*results.Record
	for _, name := range names {
		paths := []string{name}
		if st, err := os.Stat(name); err == nil && st.IsDir() {
			if paths, err = filepath.Glob(filepath.Join(name, "[^.]*.json")); err != nil {
				return nil, err
			}
		} else if errors.Is(err, fs.ErrNotExist) {
			if found, _ := filepath.Glob(name); len(found) > 0 { // a bad pattern is a file that does not exist
				paths = found
			}
		}
		if len(paths) == 0 {
			return nil, fmt.Errorf("%s: no record in it", name)
		}
		slices.Sort(paths)
		for _, path := range paths {
			rec, err := results.Read(path)
			if err != nil {
				return nil, err
			}
			out = append(out, rec)
		}
	}
	return out, nil
}
