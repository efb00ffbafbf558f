package main

import (
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"joinbench/config"
	"joinbench/kafka"
	"joinbench/pipeline"
)

// workloadFlags say which workload lies in which topics: load and verify have the same ones, so that what was loaded is what is
// verified.
type workloadFlags struct {
	profile, config, join          string
	seed, a, b, partitions, topics string
	brokers, to                    string
	printJoin, json                bool
	progress                       string
}

func (f *workloadFlags) bind(fl *pflag.FlagSet) {
	fl.SortFlags = false
	fl.StringVar(&f.profile, "profile", "quick", "built-in profile with the workload: "+strings.Join(pipeline.Profiles(), ", "))
	fl.StringVar(&f.config, "config", "", "profile of your own (a file), instead of --profile")
	fl.StringVarP(&f.join, "join", "c", "", "the join.yaml that serve runs: topics, brokers, security and the join's rules (default: the profile's join)")
	fl.StringVar(&f.brokers, "brokers", "", "brokers, with commas (kafka.brokers)")
	fl.StringVar(&f.topics, "topics", "", "the topics of A and of B, with a comma (a.topic, b.topic)")
	fl.StringVar(&f.partitions, "partitions", "", "partitions of each topic (load.partitions)")
	fl.StringVar(&f.seed, "seed", "", "seed of the workload (load.seed)")
	fl.StringVar(&f.a, "a", "", "A that wait before the first B, for example 100k (load.pending, with the rates of both sides auto)")
	fl.StringVar(&f.b, "b", "", "B in all (load.b_events, with load.warm 0)")
	fl.StringVar(&f.to, "to", "", "the part that is loaded ends before this B, for example 2M (default: the last)")
	fl.BoolVar(&f.printJoin, "print-join", false, "print the join as a join.yaml for serve, and stop")
	fl.BoolVar(&f.json, "json", false, "print the figures as JSON")
	fl.StringVar(&f.progress, "progress", "auto", "auto, tty, plain, json, none")
}

// read lays profile, join, environment and flags over each other. The join's grace, window and rules decide what the generator
// makes, so with a join.yaml its join takes the place of the profile's.
func (f *workloadFlags) read() (*config.Profile, error) {
	p, err := readProfile(f.config, f.profile)
	if err != nil {
		return nil, err
	}
	if f.join != "" {
		if p.Join, err = parseJoin(f.join); err != nil {
			return nil, err
		}
	}
	if err := p.ApplyEnv(os.Environ()); err != nil {
		return nil, err
	}
	type setting struct{ flag, key, value string }
	settings := []setting{{"--brokers", "kafka.brokers", f.brokers}, {"--partitions", "load.partitions", f.partitions},
		{"--seed", "load.seed", f.seed}, {"--a", "load.pending", f.a}, {"--b", "load.b_events", f.b}}
	if f.a != "" { // rates that were meant for another number of A
		settings = append(settings, setting{"--a", "load.a_rate", "auto"}, setting{"--a", "load.b_rate", "auto"})
	}
	if f.b != "" {
		settings = append(settings, setting{"--b", "load.warm", "0"})
	}
	if f.topics != "" {
		a, b, ok := strings.Cut(f.topics, ",")
		if !ok {
			return nil, &usageError{fmt.Errorf("--topics %q: two topics with a comma, that of A first", f.topics)}
		}
		settings = append(settings, setting{"--topics", "a.topic", strings.TrimSpace(a)}, setting{"--topics", "b.topic", strings.TrimSpace(b)})
	}
	for _, s := range settings {
		if s.value == "" {
			continue
		}
		if err := p.Set(s.key, s.value, "flag "+s.flag); err != nil {
			return nil, err
		}
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, p.Join.ValidateServe()
}

// count reads a flag with a number of records; "" is 0.
func count(flag, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := config.ParseCount(text)
	if err != nil {
		return 0, &usageError{fmt.Errorf("%s: %w", flag, err)}
	}
	return n, nil
}

// clientOf are the options of clients that say on standard error what goes wrong between them and the brokers.
func clientOf(p *config.Profile, s streams) kafka.Options {
	return pipeline.KafkaOptions(p.Join, slog.New(slog.NewTextHandler(s.err, &slog.HandlerOptions{Level: slog.LevelWarn})))
}
