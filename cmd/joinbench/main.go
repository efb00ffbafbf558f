// Command joinbench joins two streams whose key lies in the body, measures how fast it does that, and runs the same
// join in production.
//
// It is flags, wiring and exit codes: what it does is in package pipeline, what it prints in package results. main is a
// shell around run, which tests call with their own streams.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"joinbench/config"
	"joinbench/results"
)

// gcPercent: most of the heap is arenas and filters without pointers, so that a collection costs little, and every
// per cent is memory that the peak shows.
const gcPercent = 40

// processStarted is from where a resumed run times its recovery; zero where tests call run.
var processStarted time.Time

func main() {
	processStarted = time.Now()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	os.Exit(run(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// streams are the process's three files.
type streams struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// exitError ends the program with a code; an empty message prints nothing more.
type exitError struct {
	code int
	msg  string
}

func (e *exitError) Error() string { return e.msg }

// usageError is a fault in flags or arguments.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func run(args []string, s streams) int {
	ctx, stop := withSignals()
	defer stop()
	root := newRoot(s)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	code, msg := exitCode(err, terminated(ctx))
	if msg != "" {
		_, _ = fmt.Fprintf(s.err, "joinbench: %s\n", msg)
	}
	return code
}

// exitCode maps an error to the codes of benchmark tools: 1 failure, 2 usage, 130 and 143 interrupted.
func exitCode(err error, terminated bool) (code int, msg string) {
	if err == nil {
		return results.ExitOK, ""
	}
	var exit *exitError
	var conf *config.Error
	var usage *usageError
	switch {
	case errors.As(err, &exit):
		return exit.code, exit.msg
	case errors.As(err, &conf):
		return results.ExitUsage, conf.Error()
	case errors.As(err, &usage), errors.Is(err, results.ErrNotResult), errors.Is(err, results.ErrFormat), errors.Is(err, results.ErrThreshold):
		return results.ExitUsage, err.Error()
	case errors.Is(err, context.Canceled):
		if terminated {
			return results.ExitTerminated, "terminated"
		}
		return results.ExitInterrupted, "interrupted"
	}
	return results.ExitFailed, err.Error()
}

// withSignals gives a context that the first SIGINT or SIGTERM ends; the second kills the process as usual.
func withSignals() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	done := make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(&signalError{s})
		case <-done:
		}
	}()
	return ctx, func() { close(done); signal.Stop(signals); cancel(nil) }
}

// terminated says whether SIGTERM ended a context of withSignals.
func terminated(ctx context.Context) bool {
	var s *signalError
	return errors.As(context.Cause(ctx), &s) && s.signal == syscall.SIGTERM
}

type signalError struct{ signal os.Signal }

func (e *signalError) Error() string { return e.signal.String() }

// Is says that it is how a context was cancelled: who returns the cause of a context is interrupted, as who returns its error.
func (e *signalError) Is(target error) bool { return target == context.Canceled }

const rootLong = `joinbench joins two Kafka topics (or two record files) whose join key lies in the body: millions of A events wait
for hours, and only about 1 % of a fast B stream has a partner. It keeps what waits in RocksDB, asks a filter in RAM
first, and proves on generated load that no pair is missing, spurious or doubled.`

const rootExample = `  joinbench run                                   # the quick benchmark: 1 M waiting A, 10 M B
  joinbench run --filter none --duration 10s      # what it costs without filters
  joinbench join -c join.yaml --a orders.ndjson --b payments.ndjson
  joinbench serve -c join.yaml                    # the same join of two Kafka topics
  joinbench report results/quick-*.json`

func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use: "joinbench", Short: "Join two streams on a key in the body, and measure it", Long: rootLong, Example: rootExample,
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{fmt.Errorf("unknown command %q (see joinbench -h)", args[0])}
			}
			return cmd.Help()
		},
		Args: cobra.ArbitraryArgs,
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{fmt.Errorf("%w (see %s -h)", err, cmd.CommandPath())}
	})
	root.AddCommand(newRun(s), newJoin(s), newServe(s), newExplain(s), newBroker(s), newLoad(s), newVerify(s), newReport(s), newCompare(s), newAB(s), newVersion(s), newDoctor(s))
	return root
}

// noArgs refuses arguments with an exit code of its own.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usageError{fmt.Errorf("%s takes no argument, and got %q (see %s -h)", cmd.CommandPath(), args[0], cmd.CommandPath())}
	}
	return nil
}
