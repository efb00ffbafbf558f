package compare

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"joinbench/results"
)

// AB is two programs that take turns on one workload.
type AB struct {
	// Names are those of the base and of the build in question.
	Names [2]string
	// Command is a run of one of them (0: the base) that leaves its record at out, of the pair of a number from 1 on.
	Command func(side int, out string, pair int) *exec.Cmd
	// Apart says that the others are cut down to what time is judged by, and the first pair is not. Allocations are judged by it, and time is not: with one
	// processor what is allocated depends on which goroutine comes first, and with all it does not.
	Apart bool
	// Slice is how long one of a pair runs while the other one stands still, in turn until both have ended; 0: one after the other. Not in
	// the first pair.
	Slice   time.Duration
	Dir     string // where records go; it exists
	Metric  string // that decides, a metric's path (see Decides)
	Budget  time.Duration
	Seed    uint64
	Options Options
	// Progress is told of each pair; nil for none.
	Progress func(p *Pairs)
}

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
		c, err := ab.judge(recs)
		if err != nil {
			if failed == nil { // else it is the same, or came before
				failed = err
			}
			return nil, failed
		}
		c.Decided(pairs, ab.Options.Strict)
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
			pairs = NewPairs(rule.floorAsRatio(pair[0]), ab.Seed)
		}
		recs[0], recs[1] = append(recs[0], pair[0]), append(recs[1], pair[1])
		if stop, err := ab.settled(recs); err != nil || stop {
			if err == nil && pairs.Looks == 0 {
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
	metric := clockMetric
	if ab.Slice > 0 {
		metric = slicedMetric
	}
	r, err := ab.rule(recs[0][0], metric, Override{metric, Limit{Ratio: clockLimit}})
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

// judge is of all but time. Thresholds are for runs that were not cut down.
func (ab *AB) judge(recs [2][]*results.Record) (*Comparison, error) {
	opt := ab.Options
	opt.SkipTime = true
	if ab.Apart {
		opt.whole = 1
	}
	return Records(recs[0], recs[1], opt)
}

// settled: one pair is enough for what does not vary, and for a run that was wrong.
func (ab *AB) settled(recs [2][]*results.Record) (bool, error) {
	c, err := ab.judge(recs)
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

// pair runs one of each, in the order that first says: one after the other, or by turns at the same time.
func (ab *AB) pair(ctx context.Context, n, first int) (pair [2]*results.Record, err error) {
	together := ab.Slice > 0 && n > 1
	var runs []*run // that have not told yet
	tell := func() error {
		for ; len(runs) > 0; runs = runs[1:] {
			if pair[runs[0].side], err = runs[0].record(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	defer func() {
		for _, r := range runs {
			r.stop()
		}
	}()
	for _, side := range []int{first, 1 - first} {
		out := filepath.Join(ab.Dir, fmt.Sprintf("%s-%03d.json", []string{"a", "b"}[side], n))
		r, err := ab.start(ab.Command(side, out, n), side, out)
		if err != nil {
			return pair, err
		}
		if runs = append(runs, r); together {
			continue
		}
		if err := tell(); err != nil {
			return pair, err
		}
	}
	if together {
		takeTurns(ctx, [2]*run(runs), ab.Slice)
	}
	err = tell() // fills pair
	return pair, err
}
