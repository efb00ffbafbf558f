package compare

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"joinbench/internal/procgroup"
	"joinbench/results"
)

// patience is how long a run has to end after it was interrupted.
const patience = 10 * time.Second

// run is a process of one of the two programs.
type run struct {
	name  string
	side  int
	out   string // where its record goes
	cmd   *exec.Cmd
	said  strings.Builder
	ended chan struct{} // closed when it has, and err is known
	err   error
}

func (ab *AB) start(cmd *exec.Cmd, side int, out string) (*run, error) {
	if err := os.Remove(out); err != nil && !errors.Is(err, fs.ErrNotExist) { // what another comparison left is not this run's
		return nil, err
	}
	r := &run{name: ab.Names[side], side: side, out: out, cmd: cmd, ended: make(chan struct{})}
	cmd.Stderr = &r.said
	cmd.WaitDelay = patience                         // where cmd is a script: what it started may still hold its standard error
	cmd.SysProcAttr = procgroup.New(syscall.SIGKILL) // signals of the terminal are for us; no run, still or not, outlives us
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", r.name, err)
	}
	go func() {
		r.err = cmd.Wait()
		close(r.ended)
	}()
	return r, nil
}

// takeTurns lets one of two runs go on while the other stands still, in turn, until one has ended or ctx does. Both go on then.
func takeTurns(ctx context.Context, runs [2]*run, slice time.Duration) {
	defer func() {
		for _, r := range runs {
			r.signal(syscall.SIGCONT)
		}
	}()
	runs[1].signal(syscall.SIGSTOP)
	turn := time.NewTicker(slice)
	defer turn.Stop()
	for now := 0; ; now = 1 - now {
		select {
		case <-runs[0].ended:
			return
		case <-runs[1].ended:
			return
		case <-ctx.Done():
			return
		case <-turn.C:
			runs[now].signal(syscall.SIGSTOP)
			runs[1-now].signal(syscall.SIGCONT)
		}
	}
}

// signal is for the run and whatever it started, if it is a script. It does nothing to one that has ended.
func (r *run) signal(s syscall.Signal) {
	select {
	case <-r.ended:
	default:
		_ = syscall.Kill(-r.cmd.Process.Pid, s)
	}
}

// stop ends a run that nobody waits for any more.
func (r *run) stop() {
	r.signal(syscall.SIGINT)
	late := time.AfterFunc(patience, func() { r.signal(syscall.SIGKILL) })
	<-r.ended
	late.Stop()
}

// record waits for the end of a run, which the end of ctx brings about, and reads what it left. A program that fails once its record is
// saved has failed.
func (r *run) record(ctx context.Context) (*results.Record, error) {
	select {
	case <-r.ended:
	case <-ctx.Done():
		r.stop()
		return nil, ctx.Err()
	}
	rec, err := results.Read(r.out)
	if err != nil {
		if r.err != nil {
			err = r.err
		}
		return nil, fmt.Errorf("%s left no record: %w: %s", r.name, err, r.words())
	}
	if r.err != nil && r.cmd.ProcessState.ExitCode() != rec.Verdict.ExitCode {
		return nil, fmt.Errorf("%s failed behind its record, which says %q: %w: %s", r.name, rec.Verdict.Status, r.err, r.words())
	}
	rec.Run.Label = []string{"A", "B"}[r.side] // so that two builds of one commit are two
	return rec, nil
}

// words are what a run that has ended said on its standard error, in a line.
func (r *run) words() string { return strings.Join(strings.Fields(r.said.String()), " ") }
