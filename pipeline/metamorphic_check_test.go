package pipeline

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"joinbench/internal/oracle"
	"joinbench/results"
)

// metaResult is what became of a case.
type metaResult struct {
	lives   []lifeEnd
	last    lifeReply
	exact   bool
	invalid error // the case is none: the configuration was refused
	fault   error
}

// lifeEnd is how a life really ended: a stop may come too late.
type lifeEnd struct {
	stopped bool
	reply   lifeReply
}

// runCase lives a case through and holds it against the oracle.
func runCase(c *child, in *metaInput) (r metaResult) {
	want, err := in.Case.expect(in)
	if err != nil {
		return metaResult{invalid: err}
	}
	dir, err := os.MkdirTemp("", "metamorphic-")
	if err != nil {
		return metaResult{fault: err}
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "a.ndjson"), in.A, 0o644), os.WriteFile(filepath.Join(dir, "b.ndjson"), in.B, 0o644)); err != nil {
		return metaResult{fault: err}
	}
	req := lifeRequest{Dir: dir, Case: in.Case, Records: int64(len(splitLines(in.A)) + len(splitLines(in.B)))}
	for req.Life = range in.Case.Lives {
		stop := in.Case.Lives[req.Life].Stop
		reply, err := c.live(&req)
		end := lifeEnd{reply: reply, stopped: reply.Stopped || errors.Is(err, errKilled) && stop.Kind == stopKill}
		r.lives = append(r.lives, end)
		switch {
		case reply.Invalid != "":
			r.invalid = errors.New(reply.Invalid)
			return r
		case end.stopped:
			continue
		case err != nil:
			r.fault = fmt.Errorf("life %d: %w", req.Life+1, err)
			return r
		case reply.Err != "":
			r.fault = fmt.Errorf("life %d: error %s", req.Life+1, reply.Err)
			return r
		case reply.Fired:
			r.fault = fmt.Errorf("life %d: hit %d of %s failed, and nobody noticed", req.Life+1, stop.Hit, stop.Point)
			return r
		}
		r.last = reply
		if want, err = want.StoppedAt(reply.Counters.A.Read, reply.Counters.B.Read); err != nil {
			r.fault = err
			return r
		}
		r.exact = want.Exact
		check := caseCheck{in: in, want: want, dir: dir, last: &reply, lives: r.lives}
		r.fault = check.all()
		return r
	}
	r.fault = errors.New("every life was stopped, the last one too")
	return r
}

// caseCheck holds outputs and counters of a finished case against the oracle.
type caseCheck struct {
	in    *metaInput
	want  *oracle.Expected
	dir   string
	last  *lifeReply
	lives []lifeEnd
	lines []string
}

func (k *caseCheck) all() (err error) {
	if k.lines, err = k.file("out"); err != nil {
		return err
	}
	if err := k.want.CheckReachable(k.lines); err != nil {
		return fmt.Errorf("outputs: %w", err)
	}
	return errors.Join(k.fates("a", &k.last.Counters.A, k.want.CountersA), k.fates("b", &k.last.Counters.B, k.want.CountersB), k.sides(), k.counters())
}

func (k *caseCheck) file(name string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(k.dir, name))
	if err != nil {
		return nil, err
	}
	lines, err := oracle.ReadLines(data)
	if err != nil {
		return nil, fmt.Errorf("file %s: %w", name, err)
	}
	return lines, nil
}

func (k *caseCheck) fates(side string, got *results.Side, want oracle.Counters) error {
	if have := fatesOf(got); have != want {
		return fmt.Errorf("side %s: counters\n got %+v\nwant %+v", side, have, want)
	}
	if got.Fates() != got.Read || got.Behind != 0 {
		return fmt.Errorf("side %s: %d records read, %d have a fate, %d behind", side, got.Read, got.Fates(), got.Behind)
	}
	return nil
}

func fatesOf(s *results.Side) oracle.Counters {
	return oracle.Counters{Read: s.Read, Accepted: s.Accepted, NullKey: s.NullKey, BadKey: s.BadKey, Malformed: s.Malformed, BadTime: s.BadTime,
		Late: s.Late, LateIdle: s.LateIdle, Redelivered: s.Redelivered}
}

// sides reads the side outputs that the case has; there must be no others. And it counts what came out.
func (k *caseCheck) sides() error {
	c, topics := &k.in.Case, k.last.Topics
	var unmatched []string
	for _, side := range []struct {
		name  string
		on    bool
		check func(lines []string) error
	}{
		{"late", c.Late, func(lines []string) error { return k.want.CheckLate(lines, topics[0], topics[1]) }},
		{"dead", c.Dead, func(lines []string) error { return k.want.CheckDead(lines, topics[0], topics[1]) }},
		{"unmatched", c.Unmatched, func(lines []string) error {
			unmatched = lines
			return k.want.CheckUnmatched(k.lines, lines, topics[0], topics[1])
		}},
	} {
		lines, err := k.file(side.name)
		switch {
		case !side.on && errors.Is(err, os.ErrNotExist):
			continue
		case !side.on:
			return fmt.Errorf("there is a file %s that nobody wanted", side.name)
		case err == nil:
			err = side.check(lines)
		}
		if err != nil {
			return fmt.Errorf("%s output: %w", side.name, err)
		}
	}
	return k.want.CheckTotals(totalsOf(&k.last.Counters), k.lines, unmatched, topics[0], topics[1])
}

func totalsOf(n *results.Counters) oracle.Totals {
	return oracle.Totals{Outputs: n.Outputs, Matches: n.Matches, UnmatchedA: n.UnmatchedA, UnmatchedB: n.UnmatchedB, Early: n.Early,
		Corrected: n.Corrected, Retracted: n.Retracted, PendingA: n.A.Pending, PendingB: n.B.Pending}
}

// counters adds up what else was counted.
func (k *caseCheck) counters() error {
	n, t := &k.last.Counters, &k.last.Tasks
	f := &n.Filter
	var faults []error
	need := func(ok bool, what string, values ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf("counters: "+what, values...))
		}
	}
	need(n.Probes == n.B.Accepted, "%d probes of %d accepted B", n.Probes, n.B.Accepted)
	need(t.Stored <= k.most(uint64(n.A.Accepted), uint64(n.B.Accepted)), "%d events stored of %d A and %d B accepted", t.Stored, n.A.Accepted, n.B.Accepted)
	need(f.FalseNegatives == 0, "%d false negatives", f.FalseNegatives)
	need(t.Lookups >= t.Present, "%d lookups for %d B that met a row of their hash in a sealed bucket", t.Lookups, t.Present)
	asked := k.most(t.Probes, uint64(n.A.Accepted)) // with wait A ask too
	need(t.Present <= asked && t.Stale <= t.Present, "%d B met a row of their hash in a sealed bucket, %d only used ones, of %d", t.Present, t.Stale, asked)
	need(t.FalsePositives <= t.Absent && t.Absent <= t.Queries && t.Queries <= asked,
		"%d false positives of %d absent of %d that asked filters of %d", t.FalsePositives, t.Absent, t.Queries, asked)
	need(t.FilterFalse <= t.FilterQueries && t.FilterQueries >= t.Queries, "%d wrong maybes of %d questions to filters by %d B", t.FilterFalse, t.FilterQueries, t.Queries)
	need(t.FalsePositives <= t.FilterFalse, "%d false positives, but %d wrong maybes", t.FalsePositives, t.FilterFalse)
	if !k.in.Case.Oracle.NoDrain {
		need(n.Buckets.Open == 0 && n.Buckets.Sealed == 0, "%d open and %d sealed buckets after a drain", n.Buckets.Open, n.Buckets.Sealed)
		need(t.SealedTotal <= t.DroppedTotal || len(k.lives) > 1, "%d buckets sealed, but %d dropped", t.SealedTotal, t.DroppedTotal)
	}
	k.dropped(need)
	k.builds(need)
	return errors.Join(faults...)
}

// most is the first, or the sum of both if events of both sides wait and ask.
func (k *caseCheck) most(a, b uint64) uint64 {
	if k.in.Case.Oracle.Probe == oracle.Wait {
		return a + b
	}
	return a
}

// dropped: what A were accepted says how many buckets there can have been. A life that is stopped loses the counts since its
// last commit, so more is known of one that is not. What comes behind all others may wait in a
// bucket of a later time.
func (k *caseCheck) dropped(need func(bool, string, ...any)) {
	c, t := &k.in.Case, &k.last.Tasks
	conf, err := c.config(&c.Lives[len(k.lives)-1])
	if err != nil {
		need(false, "%v", err)
		return
	}
	of := func(events []*oracle.Event) uint64 { return uint64(epochs(events, conf.Width())) }
	least := of(k.want.AcceptedA())
	most := k.most(least, of(k.want.AcceptedB())) * uint64(c.Tasks)
	if len(k.lives) > 1 || c.Oracle.NoDrain || c.Oracle.Probe == oracle.Wait || c.Lives[0].Fetch != fetchEvenly {
		need(t.DroppedTotal <= most && t.SealedTotal <= most, "%d buckets sealed and %d dropped of at most %d", t.SealedTotal, t.DroppedTotal, most)
		return
	}
	all := t.Stored == uint64(k.last.Counters.A.Accepted)
	need(t.DroppedTotal <= most && (!all || t.DroppedTotal >= least && (c.Tasks > 1 || t.DroppedTotal == most)),
		"%d buckets dropped, but the A lie in %d", t.DroppedTotal, least)
}

// builds: only builds that were made to fail have failed. Hashes without a lowest bit do not divide a large bucket in two lanes.
func (k *caseCheck) builds(need func(bool, string, ...any)) {
	t, faults := &k.last.Tasks, uint64(0)
	for _, l := range k.lives {
		faults += uint64(l.reply.BuildFaults) // a life that was killed says nothing
	}
	killed := false
	filters := false
	for i, l := range k.lives {
		killed = killed || l.stopped && l.reply.Err == ""
		filter := k.in.Case.Lives[i].Filter
		filters = filters || filter != "none" && filter != "bloom"
	}
	need(killed || k.in.Case.Hash == "top 8 bits" || t.BuildFailed <= faults, "%d builds failed, %d were made to", t.BuildFailed, faults)
	need(filters || t.FiltersBuilt == 0, "%d filters built of kinds that need none", t.FiltersBuilt)
	due := t.SealedTotal + t.Spills + t.BuildFailed + t.FiltersRebuilt // a failed one is tried again
	need(t.FiltersBuilt <= due || len(k.lives) > 1, "%d filters built, %d were due", t.FiltersBuilt, due)
}
