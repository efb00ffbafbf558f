package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"joinbench/results"
)

const reportLong = `report renders the records that run saved. text, json and html show one after another; md, csv and bench put several
into one table. With --threshold it holds each against limits, as run does, and exits with the most serious verdict.`

// reportFlags are the flags of report.
type reportFlags struct {
	format     string
	thresholds []string
	schema     bool
}

func newReport(s streams) *cobra.Command {
	var f reportFlags
	cmd := &cobra.Command{
		Use: "report r.json…", Short: "Render saved records", Long: reportLong,
		Example: `  joinbench report r.json
  joinbench report -f md old.json new.json        # one table, side by side
  joinbench report -f bench a*.json > a.txt       # for benchstat
  joinbench report -f svg r.json > r.svg          # rate and latency over time
  joinbench report r.json --threshold 'join.filter.fp_ratio<0.0005'
  joinbench report --schema > result.schema.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && !f.schema {
				return &usageError{fmt.Errorf("no record named (see joinbench report -h)")}
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return showRecords(&f, args, s) },
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.format, "format", "f", "text", results.FormatList())
	fl.StringArrayVar(&f.thresholds, "threshold", nil, "limit of a metric of the record; failed: exit code 99 (repeatable)")
	fl.BoolVar(&f.schema, "schema", false, "print the JSON Schema of records, and stop")
	return cmd
}

func showRecords(f *reportFlags, paths []string, s streams) error {
	if f.schema {
		_, err := s.out.Write(results.JSONSchema())
		return err
	}
	if err := results.CheckFormat(f.format); err != nil {
		return err
	}
	limits, err := thresholds(nil, f.thresholds)
	if err != nil {
		return err
	}
	var recs []*results.Record
	for _, path := range paths {
		rec, err := results.Read(path)
		if err != nil {
			return err
		}
		if len(limits) > 0 {
			rec.Rejudge(limits)
		}
		recs = append(recs, rec)
	}
	if err := results.RenderAll(s.out, recs, f.format, results.Terminal(s.out)); err != nil {
		return err
	}
	if len(limits) == 0 {
		return nil // what the runs said, they said when they ended
	}
	if code := results.Worst(recs); code != 0 {
		return &exitError{code: code}
	}
	return nil
}
