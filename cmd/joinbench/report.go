package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"joinbench/results"
)

func newReport(s streams) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "report r.json…", Short: "Render saved records",
		Long:    "report renders the records that run saved, one after another.",
		Example: "  joinbench report r.json\n  joinbench report -f md results/*.json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return &usageError{fmt.Errorf("no record named (see joinbench report -h)")}
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if err := results.CheckFormat(format); err != nil {
				return err
			}
			for _, path := range args {
				rec, err := results.Read(path)
				if err != nil {
					return err
				}
				if err := results.Render(s.out, rec, format, results.Terminal(s.out)); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&format, "format", "f", "text", "text, json, md")
	return cmd
}
