package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"joinbench/internal/oracle"
)

// metaReport says what a run of many cases went through. A test of random cases is worth what its cases are.
type metaReport struct {
	cases                                 int
	axes                                  map[string]map[string]int
	stops                                 map[string]int // lives that were really stopped, by kind
	points                                map[string]int // and by failpoint
	records                               int
	outputs                               oracle.Totals
	sealed, dropped, buildFaults, lookups uint64
	spills, rebuilt                       uint64
}

// enoughCases is from where on every value of every axis must have come up.
const enoughCases = 500

// axisValues is what an axis can be; points are asked for in longer runs alone.
func axisValues() map[string][]string {
	words := func(list any) []string { return strings.Fields(strings.Trim(fmt.Sprint(list), "[]")) }
	return map[string][]string{
		"filter": metaFilters, "store": metaStores, "sync": metaSyncs, "buckets": words(metaBuckets),
		"tasks": words(metaTasks), "batch": words(metaBatches), "arena": words(metaArenas), "hash": metaHashes, "build": metaBuilds,
		"arrival": metaFetches, "output": words(metaOutputs), "summary": {"true", "false"}, "inline": {"true", "false"}, "late": {"true", "false"}, "dead": {"true", "false"},
		"unmatched": {"true", "false"}, "format": {"value", "kcat", "rpk"}, "lives": {"1", "2", "3", "4"}, "width": {"auto", "given"},
		"max_spread": {"auto", "given"}, "before": {"0", "more"}, "after": {"0", "more"}, "grace": {"0", "more"},
		"cardinality": {oracle.OneToOne, oracle.OneToMany, oracle.ManyToMany}, "type": {oracle.Inner, oracle.Left, oracle.Right, oracle.Outer},
		"probe": {oracle.Aligned, oracle.Wait, oracle.Immediate}, "collect": {oracle.Eager, oracle.Timeout, oracle.Count, oracle.Marker},
		"early": {"off", "on", "with retract"}, "complete_on": {"off", oracle.EmitPair, oracle.EmitUnmatched, oracle.EmitNothing},
		"output key": {oracle.JoinKey, "a field"}, "drain": {"true", "false"}, "max_pending": {"off", "on"},
		"exact": {"true", "false"}, "stop": {stopContext, stopError, stopKill}, "settings on resume": {"same", "changed"},
	}
}

func newMetaReport() *metaReport {
	r := &metaReport{axes: map[string]map[string]int{}, stops: map[string]int{}, points: map[string]int{}}
	for axis, values := range axisValues() {
		r.axes[axis] = map[string]int{}
		for _, v := range values {
			r.axes[axis][v] = 0
		}
	}
	return r
}

func (r *metaReport) count(axis string, value any) { r.axes[axis][fmt.Sprint(value)]++ }

// add takes in a case that passed.
func (r *metaReport) add(in *metaInput, res *metaResult) {
	c := &in.Case
	r.cases++
	either := func(zero bool, is, isNot string) string {
		if zero {
			return is
		}
		return isNot
	}
	o := &c.Oracle
	for axis, v := range map[string]any{"type": o.Type, "cardinality": o.Cardinality, "probe": o.Probe,
		"collect": either(o.Collect.Mode == "", oracle.Eager, o.Collect.Mode), "early": either(o.Early == 0, "off", either(o.Retract, "with retract", "on")),
		"complete_on": either(o.CompleteOn.Emit == "", "off", o.CompleteOn.Emit), "output key": either(o.OutputKey == oracle.JoinKey, o.OutputKey, "a field"),
		"drain": !o.NoDrain, "max_pending": either(c.MaxPending == 0, "off", "on"), "buckets": c.Buckets, "tasks": c.Tasks, "hash": c.Hash, "late": c.Late,
		"dead": c.Dead, "unmatched": c.Unmatched, "format": c.Format, "lives": len(res.lives), "width": either(c.Width == 0, "auto", "given"),
		"max_spread": either(c.Spread == 0, "auto", "given"), "before": either(c.Oracle.Before == 0, "0", "more"),
		"after": either(c.Oracle.After == 0, "0", "more"), "grace": either(c.Oracle.Grace == 0, "0", "more"), "exact": res.exact} {
		r.count(axis, v)
	}
	for _, s := range c.stores() {
		r.count("store", s)
	}
	for i, end := range res.lives {
		l := c.Lives[i]
		for axis, v := range map[string]any{"filter": l.Filter, "sync": l.Sync, "batch": l.Batch, "arena": l.Arena, "build": l.Build, "arrival": l.Fetch, "output": l.Output, "summary": l.Summary,
			"inline": l.Inline} {
			r.count(axis, v)
		}
		if end.stopped {
			r.count("stop", l.Stop.Kind)
			if l.Stop.Point != "" {
				r.points[l.Stop.Point]++
			}
		}
		if i > 0 {
			before := c.Lives[i-1]
			before.Stop, l.Stop = metaStop{}, metaStop{}
			r.count("settings on resume", either(before == l, "same", "changed"))
		}
		r.buildFaults += uint64(end.reply.BuildFaults)
	}
	n, t := &res.last.Counters, &res.last.Tasks
	r.outputs = sum(r.outputs, totalsOf(n))
	r.records += int(n.A.Read + n.B.Read)
	r.sealed += t.SealedTotal
	r.dropped += t.DroppedTotal
	r.lookups += t.Lookups
	r.spills += t.Spills
	r.rebuilt += t.FiltersRebuilt
}

// String is the report.
func (r *metaReport) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%d cases, %d records, %+v, %d lookups, %d buckets sealed, %d dropped, %d spills, %d filters rebuilt, "+
		"%d builds made to fail", r.cases, r.records, r.outputs, r.lookups,
		r.sealed, r.dropped, r.spills, r.rebuilt, r.buildFaults)
	for _, axis := range slices.Sorted(maps.Keys(r.axes)) {
		fmt.Fprintf(&s, "\n  %-20s%s", axis, inWords(r.axes[axis]))
	}
	fmt.Fprintf(&s, "\n  %-20s%s", "stopped at", inWords(r.points))
	return s.String()
}

func sum(a, b oracle.Totals) oracle.Totals {
	a.Outputs += b.Outputs
	a.Matches += b.Matches
	a.UnmatchedA += b.UnmatchedA
	a.UnmatchedB += b.UnmatchedB
	a.Early += b.Early
	a.Corrected += b.Corrected
	a.Retracted += b.Retracted
	a.PendingA += b.PendingA
	a.PendingB += b.PendingB
	return a
}

func inWords(counts map[string]int) string {
	var words []string
	for _, v := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("%s %d", v, counts[v]))
	}
	return strings.Join(words, ", ")
}

// missing lists what should have come up by now.
func (r *metaReport) missing() (never []string) {
	if r.cases < enoughCases {
		return nil
	}
	for axis, counts := range r.axes {
		for v, n := range counts {
			if n == 0 {
				never = append(never, axis+" "+v)
			}
		}
	}
	o := &r.outputs
	for what, n := range map[string]uint64{"a pair": uint64(o.Matches), "an unmatched A": uint64(o.UnmatchedA), "an unmatched B": uint64(o.UnmatchedB),
		"an early row": uint64(o.Early), "a corrected pair": uint64(o.Corrected), "a tombstone": uint64(o.Retracted), "an A that stays": uint64(o.PendingA),
		"a B that stays": uint64(o.PendingB), "a lookup": r.lookups, "a seal": r.sealed, "a spill": r.spills, "a build that fails": r.buildFaults} {
		if n == 0 {
			never = append(never, what)
		}
	}
	if r.cases >= 4*enoughCases {
		for _, p := range metaPoints {
			if r.points[p] == 0 {
				never = append(never, "a stop at "+p)
			}
		}
	}
	slices.Sort(never)
	return never
}
