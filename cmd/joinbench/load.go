package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"joinbench/config"
	"joinbench/core"
	"joinbench/kafka"
	"joinbench/pipeline"
	"joinbench/results"
)

const loadLong = `load fills the two topics of a join with a generated workload, of which verify knows what must come out.

Record i of a side lies in the partition that the generator gives it, in the generator's order, with its event time as the
record's time. A topic that is not there is created, with retention.ms=-1: the times are those of the workload, not today's.

The workload is that of run: a profile, its counts and seed. The join's window, grace and cardinality shape it, so give
load, serve and verify the same join: -c join.yaml for all of them, or the profile's own, which --print-join prints.

Loading can go on later: parts are cut by B, and the A that come before a B go with it. The next part begins where the last
one ended. With --transactional records come in transactions; --abort-share has some of these aborted first, with the same
records: a join that reads what was not committed pairs them, and verify says so.`

const loadExample = `  joinbench broker --listen 127.0.0.1:9092 &
  joinbench load --brokers localhost:9092                          # profile quick: 1 M A, 10 M B
  joinbench load --print-join > join.yaml                          # for serve
  joinbench load -c join.yaml --a 100k --b 1M --seed 7
  joinbench load -c join.yaml --to 2M; joinbench load -c join.yaml --from 2M --to 4M
  joinbench load -c join.yaml --rate 50k/s                         # like a live stream
  joinbench load -c join.yaml --transactional --abort-share 0.1    # one transaction in ten is aborted first
  joinbench load -c join.yaml --only a; joinbench load -c join.yaml --only b`

// loadFlags are the flags of load.
type loadFlags struct {
	workloadFlags
	from, only, rate, compression string
	producers                     int
	transactional                 bool
	abortShare                    float64
}

func newLoad(s streams) *cobra.Command {
	var f loadFlags
	cmd := &cobra.Command{
		Use: "load", Short: "Fill the topics of a join with a generated workload", Long: loadLong, Example: loadExample, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runLoad(cmd, &f, s) },
	}
	fl := cmd.Flags()
	f.bind(fl)
	fl.StringVar(&f.from, "from", "", "the part that is loaded begins with this B, and the A that come with it")
	fl.StringVar(&f.only, "only", "", "load one side: a, b")
	fl.StringVarP(&f.rate, "rate", "r", "", "records of both sides a second, from the first B on, for example 50k/s (default: as fast as it goes)")
	fl.IntVar(&f.producers, "producers", 2, "producers, each with partitions of its own")
	fl.BoolVar(&f.transactional, "transactional", false, "write in transactions")
	fl.Float64Var(&f.abortShare, "abort-share", 0, "share of the transactions that are aborted first, from 0 to 1")
	fl.StringVar(&f.compression, "compression", "lz4", "of batches: "+strings.Join(kafka.Compressions, ", "))
	return cmd
}

func runLoad(cmd *cobra.Command, f *loadFlags, s streams) error {
	p, err := f.read()
	if err != nil {
		return err
	}
	if f.printJoin {
		return p.Join.Print(s.out)
	}
	c, err := f.loadConfig(p, s)
	if err != nil {
		return err
	}
	progress, err := parseProgress(f.progress)
	if err != nil {
		return err
	}
	live := startLive(c.Progress, progress, s)
	defer live.Stop()
	c.Warn = func(format string, args ...any) { _, _ = fmt.Fprintf(live, "joinbench: "+format+"\n", args...) }
	r, err := pipeline.Load(cmd.Context(), c)
	live.Stop()
	if err != nil {
		return err
	}
	return printLoad(s.out, r, f.json)
}

func (f *loadFlags) loadConfig(p *config.Profile, s streams) (pipeline.LoadConfig, error) {
	c := pipeline.LoadConfig{Profile: p, Kafka: clientOf(p, s), Sides: [2]bool{true, true}, Producers: f.producers, Transactional: f.transactional,
		AbortShare: f.abortShare, Compression: f.compression, Progress: pipeline.NewProgress("load")}
	usage := func(format string, args ...any) (pipeline.LoadConfig, error) {
		return c, &usageError{fmt.Errorf(format, args...)}
	}
	switch f.only {
	case "":
	case "a":
		c.Sides[core.B] = false
	case "b":
		c.Sides[core.A] = false
	default:
		return usage("--only %q: a or b", f.only)
	}
	var err error
	if c.From, err = count("--from", f.from); err != nil {
		return c, err
	}
	if c.To, err = count("--to", f.to); err != nil {
		return c, err
	}
	if f.rate != "" {
		if c.Rate, err = config.ParseRate(f.rate); err != nil {
			return usage("--rate: %w", err)
		}
	}
	if f.producers < 1 || f.producers > 64 {
		return usage("--producers %d: from 1 to 64", f.producers)
	}
	if !(f.abortShare >= 0 && f.abortShare <= 1) {
		return usage("--abort-share %g: from 0 to 1", f.abortShare)
	}
	if f.abortShare > 0 && !f.transactional {
		return usage("--abort-share is about transactions: add --transactional")
	}
	return c, checkCompression(f.compression)
}

func checkCompression(name string) error {
	if slices.Contains(kafka.Compressions, name) {
		return nil
	}
	return &usageError{fmt.Errorf("--compression %q: %s", name, strings.Join(kafka.Compressions, ", "))}
}

func printLoad(w io.Writer, r *pipeline.LoadReport, asJSON bool) error {
	if asJSON {
		return printJSON(w, r)
	}
	text := fmt.Sprintf("loaded    B %s to %s and the A that come with them, workload %s\n", results.Count(r.From), results.Count(r.To), r.Fingerprint)
	for i, side := range []*pipeline.LoadedSide{&r.A, &r.B} {
		if side.Records+side.Aborted == 0 {
			continue
		}
		text += fmt.Sprintf("%c         %s records in %d partitions of %s", "AB"[i], results.Count(side.Records), len(side.Partitions), side.Topic)
		if side.Aborted > 0 {
			text += fmt.Sprintf(", and %s in transactions that were aborted", results.Count(side.Aborted))
		}
		text += "\n"
	}
	if r.Transactions > 0 {
		text += fmt.Sprintf("transactions %s, %s of them aborted\n", results.Count(r.Transactions), results.Count(r.Aborted))
	}
	took := time.Duration(r.DurationNs)
	text += fmt.Sprintf("took      %s: %s, %s\n", took.Round(time.Millisecond), results.Rate(r.PerSec), results.Bytes(int64(float64(r.Bytes)/took.Seconds()))+"/s")
	if r.OfferedPer > 0 {
		text += fmt.Sprintf("schedule  %s offered, at most %s late\n", results.Rate(r.OfferedPer), time.Duration(r.LagMaxNs).Round(time.Microsecond))
	}
	_, err := io.WriteString(w, text)
	return err
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
