package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"joinbench/buckets"
	"joinbench/config"
	"joinbench/core"
	"joinbench/fusefilter"
	"joinbench/projection"
)

// compiled is a configuration made ready.
type compiled struct {
	core core.Config
	spec [2]*projection.Spec
	key  recordKey
	sync buckets.SyncMode
	// lenient: documents are not validated, and results say so (rule 5).
	lenient bool
	// nulls: events of this side that find no partner are results, with null for the other side (type).
	nulls [2]bool
}

// arenaShare of state.memory is for open buckets and filters; the rest is RocksDB's (buckets.NewShared).
const arenaShare = 3.0 / 4

// compile turns a validated configuration into what the parts take. files switches off what compares with wall clocks
// (rules 7 and 9). Errors are *config.Error.
func compile(j *config.Join, files bool) (*compiled, error) {
	c := compiled{lenient: j.Validation == "lenient"}
	if err := checkPaths(j); err != nil {
		return nil, err
	}
	for i, side := range []*config.Side{&j.A, &j.B} {
		spec := projection.SideSpec{Key: side.Key, KeyString: side.KeyType == "string", Time: side.Time, TimeUnit: side.TimeUnit,
			Store: side.Store, Lenient: j.Validation == "lenient", MaxSkew: j.MaxSkew}
		if files {
			spec.MaxSkew = 0
		}
		for _, k := range side.Keep {
			spec.Keep = append(spec.Keep, projection.KeepField(k))
		}
		watch(j, core.Side(i), &spec)
		compiledSpec, err := projection.Compile(spec)
		if err != nil {
			return nil, &config.Error{Faults: []config.Fault{{Key: string("ab"[i]), Message: fmt.Sprintf("%c: %v", "ab"[i], err)}}}
		}
		c.spec[i] = compiledSpec
	}
	var err error
	if c.key, err = compileKey(j, &c.spec); err != nil {
		return nil, err
	}
	kind, err := fusefilter.ParseKind(j.State.Filter)
	if err != nil {
		return nil, &config.Error{Faults: []config.Fault{{Key: "state.filter", Message: err.Error()}}}
	}
	c.core = core.Config{
		Before: ms(j.Window.Before), After: ms(j.Window.After), Grace: ms(j.Grace), MaxSpread: ms(j.Spread()),
		Width: ms(j.Width()), Slots: j.State.Buckets, Filter: kind, Summary: true, BatchSize: 4096, Drain: true,
		Cardinality: cardinalities[j.Cardinality], Probe: probes[j.Probe], Collect: collects[j.Collect.Mode],
		Early: ms(j.Early), Retract: j.Retract, MaxPending: j.MaxPending, NoBodies: j.A.Store == "offset",
	}
	if !files {
		c.core.IdleTimeout, c.core.IdleAdvance = ms(j.IdleTimeout), ms(j.IdleAdvance)
	}
	c.nulls = nullSides[j.Type]
	c.core.WantA, c.core.WantB = c.nulls[core.A], c.nulls[core.B]
	if j.CompleteOn != nil {
		c.core.CompleteOn = endings[j.CompleteOn.Emit]
	}
	switch j.State.Sync {
	case "none":
		c.sync = buckets.SyncNone
	case "batch":
		c.sync = buckets.SyncBatch
	default:
		c.sync = buckets.SyncInterval
	}
	return &c, nil
}

// checkStore refuses what a join without topics cannot do. The error is a *config.Error.
func checkStore(j *config.Join) error {
	if j.A.Store != "offset" {
		return nil
	}
	return &config.Error{Faults: []config.Fault{{Key: "a.store", Message: "a.store: offset works with serve only, since files have no offsets to fetch by: " +
		"set a.store: projection or full"}}}
}

// What the words of the configuration are in core.
var (
	cardinalities = map[string]core.Cardinality{"one-to-one": core.OneToOne, "one-to-many": core.OneToMany, "many-to-many": core.ManyToMany}
	probes        = map[string]core.Probe{"aligned": core.ProbeAligned, "wait": core.ProbeWait, "immediate": core.ProbeImmediate}
	collects      = map[string]core.Collect{"eager": core.CollectEager, "timeout": core.CollectTimeout, "count": core.CollectCount, "marker": core.CollectMarker}
	endings       = map[string]core.Ending{"pair": core.EndPair, "unmatched": core.EndUnmatched, "nothing": core.EndNothing}
	nullSides     = map[string][2]bool{"inner": {}, "left": {core.A: true}, "right": {core.B: true}, "outer": {true, true}}
)

// checkPaths reads the paths that are no side's own, so that a fault is said of their key.
func checkPaths(j *config.Join) error {
	paths := map[string]string{}
	switch j.Collect.Mode {
	case "count":
		paths["collect.count"] = j.Collect.Count
	case "marker":
		paths["collect.marker.field"] = j.Collect.Marker.Field
	}
	if j.CompleteOn != nil {
		paths["complete_on.field"] = j.CompleteOn.Field
	}
	var faults []config.Fault
	for _, key := range slices.Sorted(maps.Keys(paths)) {
		if _, err := projection.ParsePath(paths[key]); err != nil {
			faults = append(faults, config.Fault{Key: key, Message: fmt.Sprintf("%s: %v", key, err)})
		}
	}
	if len(faults) > 0 {
		return &config.Error{Faults: faults}
	}
	return nil
}

// watch has a side's decoder look for the fields that end, mark or count (rules 18 and 19).
func watch(j *config.Join, side core.Side, spec *projection.SideSpec) {
	switch {
	case side == core.A && j.Collect.Mode == "count":
		spec.Count = j.Collect.Count
	case side == core.B && j.Collect.Mode == "marker":
		spec.Marks = &projection.Test{Path: j.Collect.Marker.Field, Equals: j.Collect.Marker.Equals}
	}
	if c := j.CompleteOn; side == core.B && c != nil {
		spec.Ends = &projection.Test{Path: c.Field, Equals: c.Equals}
	}
}

// arenaBytes is one task's part of what state.memory gives open buckets and filters.
func arenaBytes(j *config.Join, tasks int) int64 {
	return int64(arenaShare * float64(j.State.Memory) / float64(tasks))
}

func ms(d time.Duration) int64 { return d.Milliseconds() }
