//go:build failpoints

package failpoint

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// The variables of this build. They leave the environment when they have been read: a configuration that is laid over
// by JOINBENCH_* refuses names that it does not know.
const (
	Variable    = "JOINBENCH_FAILPOINT"     // NAME=N: the N-th Hit kills; NAME=N:stop: it stops the process as SIGSTOP does
	LogVariable = "JOINBENCH_FAILPOINT_LOG" // a file that gets a line for each Hit
)

// stopReaches is how long SIGSTOP may take to reach this thread.
const stopReaches = 50 * time.Millisecond

func init() {
	kill, log := Take(Variable), Take(LogVariable)
	if kill == "" && log == "" {
		return
	}
	kill, stop := strings.CutSuffix(kill, ":stop")
	name, at, err := parse(kill)
	if err != nil {
		Refuse(err)
	}
	var file *os.File
	if log != "" {
		if file, err = os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644); err != nil {
			Refuse(fmt.Errorf("%s: %w", LogVariable, err))
		}
	}
	var hits atomic.Int64
	Set(func(hit string) error {
		if hit == "" { // a write that is no point
			return nil
		}
		if file != nil { // in one write, so that lines of two tasks do not mix and a kill leaves whole ones
			if _, err := fmt.Fprintf(file, "%s %d\n", hit, time.Now().UnixNano()); err != nil {
				return err
			}
		}
		if hit != name || hits.Add(1) != at {
			return nil
		}
		if stop {
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			time.Sleep(stopReaches) // which passes while the process is stopped
			return nil
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way: nothing more happens here
	})
}

func parse(text string) (name string, at int64, err error) {
	if text == "" {
		return "", 0, nil
	}
	name, count, _ := strings.Cut(text, "=")
	at, err = strconv.ParseInt(count, 10, 64)
	if known := slices.Concat(All(), Kafka()); err != nil || at < 1 || !slices.Contains(known, name) {
		err = fmt.Errorf("%s=%s: want NAME=N or NAME=N:stop with N from 1 and one of %s", Variable, text, strings.Join(known, " "))
	}
	return name, at, err
}

// Take reads a variable of a failpoints build and removes it from the environment.
func Take(variable string) string {
	text := os.Getenv(variable)
	_ = os.Unsetenv(variable)
	return text
}

// Refuse ends the program: what a test asked for cannot be had.
func Refuse(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(2)
}
