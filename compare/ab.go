package compare

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"joinbench/results"
)

// AB is two programs that take turns on one workload.
type AB struct {
	// Names are those of the base and of the build in question.
	Names [2]string
	// Command is a run of one of them (0: the base) that leaves its record at out; first says that it is of the first pair.
	Command func(side int, out string, first bool) *exec.Cmd
	// Apart says that the others are cut down to what time is judged by, and the first pair is not. Allocations are judged by it, and time is not: with one
	// processor what is allocated depends on which goroutine comes first, and with all it does not.
	Apart   bool
	Dir     string // where records go; it exists
	Metric  string // that decides, a metric's path (see Decides)
	Budget  time.Duration
	Seed    uint64
	Options Options
	// Progress is told of each pair; nil for none.
	Progress func(p *Pairs)
}

// patience is how long a run has to end after it was interrupted.
const patience = 10 * time.Second

// Run lets pairs of runs go until the question is decided, the budget is spent or ctx ends. A comparison comes with every
// error that is no *BaseError, if there was a whole pair: of what there is. The caller owns it.
func (ab *AB) Run(ctx context.Context) (*Comparison, error) {
	started := time.Now()
	pairs := (*Pairs)(nil)
	order := rand.New(rand.NewPCG(ab.Seed, 0))
	var recs [2][]*results.Record
	finish := func(failed error) (*Comparison, error) {
		if pairs == nil {
			return nil, failed
		}
		pairs.End(time.Since(started))
		opt := ab.Options
		opt.SkipTime = true
		c, err := Records(recs[0], recs[1], opt)
		if err != nil {
			if failed == nil { // else it is the same, or came before
				failed = err
			}
			return nil, failed
		}
		c.Decided(pairs, opt.Strict)
		if ab.Metric == PartsMetric && pairs.Looks > 0 {
			if err := ab.askClock(c, recs); err != nil && failed == nil {
				failed = err
			}
		}
		return c, failed
	}
	for n := 1; ; n++ {
		pair, err := ab.pair(ctx, n, order.IntN(2))
		if err != nil {
			return finish(err)
		}
		if pairs == nil {
			rule, err := ab.rule(pair[0], ab.Metric)
			if err != nil {
				return nil, err
			}
			pairs = NewPairs(rule, ab.Seed)
		}
		recs[0], recs[1] = append(recs[0], pair[0]), append(recs[1], pair[1])
		if stop, err := ab.settled(recs); err != nil || stop {
			if err == nil {
				pairs.Reason = "not asked: one pair has decided"
			}
			return finish(err)
		}
		if n == 1 && ab.Apart {
			continue
		}
		if err := pairs.Add(pair[0], pair[1]); err != nil {
			return finish(err)
		}
		each := time.Since(started) / time.Duration(n)
		last := time.Since(started)+each > ab.Budget
		decided := (pairs.Due() || last) && pairs.Look()
		if ab.Progress != nil {
			ab.Progress(pairs)
		}
		if decided || last {
			return finish(nil)
		}
	}
}

// askClock judges the clock's time too, of the runs by which CPU time was judged.
func (ab *AB) askClock(c *Comparison, recs [2][]*results.Record) error {
	r, err := ab.rule(recs[0][0], clockMetric, Override{clockMetric, Limit{Ratio: clockLimit}})
	if err != nil {
		return err
	}
	r.Unit = false // these runs measured none
	from := 0
	if ab.Apart {
		from = 1
	}
	c.add(byClock(&Build{records: recs[0][from:]}, &Build{records: recs[1][from:]}, r), ab.Options.Strict)
	return nil
}

// rule is that of a metric. What the profile and the options say of it goes before what is usual.
func (ab *AB) rule(base *results.Record, metric string, usual ...Override) (Rule, error) {
	of, err := OfProfile(base)
	if err != nil {
		return Rule{}, err
	}
	overrides := slices.Concat(usual, of, ab.Options.Overrides)
	for _, r := range Rules(base, overrides) {
		if r.Metric.String() == metric {
			return r, nil
		}
	}
	r := added(metric)
	r.Limit = limitsOf(base, overrides)[Time]
	return r, nil
}

// settled: one pair is enough for what does not vary, and for a run that was wrong.
func (ab *AB) settled(recs [2][]*results.Record) (bool, error) {
	opt := ab.Options
	opt.SkipTime = true
	c, err := Records(recs[0], recs[1], opt)
	if err != nil {
		return false, err
	}
	switch c.Verdict {
	case Pass, Improvement, Regression, Inconclusive: // of the last, more runs may tell
	default:
		return true, nil // wrong, invalid, or incomparable
	}
	for i := range c.Candidates {
		for j := range c.Candidates[i].Metrics {
			if m := &c.Candidates[i].Metrics[j]; m.Class == Count && m.Verdict == Regression {
				return true, nil
			}
		}
	}
	return false, nil
}

// pair runs one of each, in the order that first says.
func (ab *AB) pair(ctx context.Context, n, first int) (pair [2]*results.Record, err error) {
	for _, side := range []int{first, 1 - first} {
		out := filepath.Join(ab.Dir, fmt.Sprintf("%s-%03d.json", []string{"a", "b"}[side], n))
		if pair[side], err = ab.run(ctx, ab.Command(side, out, n == 1), side, out); err != nil {
			return pair, err
		}
	}
	return pair, nil
}

func (ab *AB) run(ctx context.Context, cmd *exec.Cmd, side int, out string) (*results.Record, error) {
	if err := os.Remove(out); err != nil && !errors.Is(err, fs.ErrNotExist) { // what another comparison left is not this run's
		return nil, err
	}
	var said strings.Builder
	cmd.Stderr = &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // signals of the terminal are for us
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", ab.Names[side], err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		_ = cmd.Process.Signal(os.Interrupt)
		late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		<-ended
		late.Stop()
		return nil, ctx.Err()
	}
	rec, readErr := results.Read(out)
	if readErr != nil {
		if err == nil {
			err = readErr
		}
		return nil, fmt.Errorf("%s left no record: %w: %s", ab.Names[side], err, strings.Join(strings.Fields(said.String()), " "))
	}
	rec.Run.Label = []string{"A", "B"}[side] // so that two builds of one commit are two
	return rec, nil
}
