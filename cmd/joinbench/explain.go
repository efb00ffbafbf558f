package main

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"joinbench/capture"
	"joinbench/pipeline"
	"joinbench/results"
)

const explainLong = `explain joins two record files as join does, with the same configuration and the same batches, and tells what became of one key:
each record that has it, why it was held back and until when, in which bucket it waited and when that was sealed, with whom it
paired, what was written because of it, or which rule turned it away. Records without a readable key are shown too if their
line has the key's text. Nothing is written, and no state is kept.

  $ joinbench explain -c join.yaml --a orders.ndjson --b payments.ndjson --key PAY-6
  key "PAY-6": 1 of A, 1 of B

  a orders/0@1003: late: joins nothing
    read      line 4, time 1772355600000 (2026-03-01T09:00:00.000Z)
    batch 1   late: t + G = 1772355600000 + 10000 < M(p) = 1772356200000, the greatest time of its partition (rule 8)

  b payments/0@1205: no partner: no result
    read      line 6, …
    why       a orders/0@1003: late: joins nothing

G is grace, M(p) the greatest time of a partition, WM_A and WM_B the watermarks of both sides, tA and tB the times of an A and
a B. With --json each step is one object: event, batch, step (read on: held, refused, asked, waits, sealed, pair, collected,
group, end, early, unmatched, closed, no_match, waiting, verdict), rule, with, output, wm_a, wm_b, text.

Exit code 0: some record has the key; 1: none has, and the nearest keys are named.`

const explainExample = `  joinbench explain -c join.yaml --a orders.ndjson --b payments.ndjson --key PAY-7
  joinbench explain -c join.yaml --a a.ndjson --b b.ndjson --key 42 --key-type number    # 42 and "42" are two keys
  joinbench explain -c join.yaml --a a.ndjson --b b.ndjson --key PAY-7 --no-drain        # what still waits at the end of the files
  joinbench explain -c join.yaml --a a.ndjson --b b.ndjson --key PAY-7 --json | jq 'select(.step=="verdict").text'`

// explainFlags are the flags of explain.
type explainFlags struct {
	join         joinFlags
	key, keyType string
	json         bool
}

func newExplain(s streams) *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use: "explain -c join.yaml --a FILE --b FILE --key KEY", Short: "Tell what a join does with one key", Long: explainLong, Example: explainExample,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runExplain(cmd, &f, s) },
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	f.join.bindInputs(fl)
	fl.StringVar(&f.key, "key", "", "the key: its text, without quotes and escapes")
	fl.StringVar(&f.keyType, "key-type", "string", "JSON type of the key: string, number")
	fl.BoolVar(&f.json, "json", false, "one JSON object for each step")
	fl.BoolVar(&f.join.noDrain, "no-drain", false, "the end of the files is no end: say what waits then")
	fl.IntVar(&f.join.batch, "batch", 0, "records in a batch (default 4096, as in join)")
	return cmd
}

func runExplain(cmd *cobra.Command, f *explainFlags, s streams) error {
	conf, err := joinConfig(&f.join)
	if err != nil {
		return err
	}
	if !cmd.Flags().Changed("key") {
		return &usageError{fmt.Errorf("--key is missing: name the key to explain (see joinbench explain -h)")}
	}
	if f.keyType != "string" && f.keyType != "number" {
		return &usageError{fmt.Errorf("--key-type %q: must be string or number", f.keyType)}
	}
	format, err := f.join.inputs("explain")
	if err != nil {
		return err
	}
	x, err := pipeline.Explain(cmd.Context(), pipeline.ExplainConfig{Key: f.key, Number: f.keyType == "number", JoinConfig: pipeline.JoinConfig{
		Config: conf, A: f.join.a, B: f.join.b, Format: format, Batch: f.join.batch, NoDrain: f.join.noDrain,
		Cores: runtime.GOMAXPROCS(0), Stdin: s.in,
	}})
	if err != nil {
		return err
	}
	switch {
	case !x.Found():
		return &exitError{results.ExitFailed, noSuchKey(x, f)}
	case f.json:
		return x.WriteJSON(s.out)
	}
	return x.WriteText(s.out)
}

// inputs checks the flags that join and explain share.
func (f *joinFlags) inputs(command string) (capture.Format, error) {
	for _, side := range []struct{ name, path string }{{"--a", f.a}, {"--b", f.b}} {
		if side.path == "" {
			return 0, &usageError{fmt.Errorf("%s is missing: name the record file of that side (see joinbench %s -h)", side.name, command)}
		}
	}
	format, err := capture.ParseFormat(f.format)
	if err != nil {
		return 0, &usageError{fmt.Errorf("--format: %w", err)}
	}
	if f.batch < 0 || f.batch > 1<<20 {
		return 0, &usageError{fmt.Errorf("--batch %d: must be 1 to %d", f.batch, 1<<20)}
	}
	return format, nil
}

// noSuchKey says that no record has the key, and what may have been meant.
func noSuchKey(x *pipeline.Explanation, f *explainFlags) string {
	text := fmt.Sprintf("no record of %s or %s has the key %s", f.join.a, f.join.b, x.Key)
	other := map[string]string{"string": "number", "number": "string"}[f.keyType]
	switch {
	case x.OtherType:
		text += fmt.Sprintf(": there is %s, another key (give --key-type %s)", x.Near[0], other)
	case len(x.Near) > 0:
		text += " (nearest: " + strings.Join(x.Near, ", ") + ")"
	default:
		text += ", nor one like it (is a.key and b.key the right path?)"
	}
	return text
}
