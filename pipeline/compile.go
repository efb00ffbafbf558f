package pipeline

import (
	"fmt"
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
	sync buckets.SyncMode
	// lenient: documents are not validated, and results say so (rule 5).
	lenient bool
}

// arenaShare of state.memory is for open buckets and filters; the rest is RocksDB's (buckets.NewShared).
const arenaShare = 3.0 / 4

// compile turns a validated configuration into what the parts take. files switches off what compares with wall clocks
// (rules 7 and 9). Errors are *config.Error.
func compile(j *config.Join, files bool) (*compiled, error) {
	c := compiled{lenient: j.Validation == "lenient"}
	for i, side := range []*config.Side{&j.A, &j.B} {
		spec := projection.SideSpec{Key: side.Key, KeyString: side.KeyType == "string", Time: side.Time, TimeUnit: side.TimeUnit,
			Store: side.Store, Lenient: j.Validation == "lenient", MaxSkew: j.MaxSkew}
		if files {
			spec.MaxSkew = 0
		}
		for _, k := range side.Keep {
			spec.Keep = append(spec.Keep, projection.KeepField(k))
		}
		compiledSpec, err := projection.Compile(spec)
		if err != nil {
			return nil, &config.Error{Faults: []config.Fault{{Key: string("ab"[i]), Message: fmt.Sprintf("%c: %v", "ab"[i], err)}}}
		}
		c.spec[i] = compiledSpec
	}
	kind, err := fusefilter.ParseKind(j.State.Filter)
	if err != nil {
		return nil, &config.Error{Faults: []config.Fault{{Key: "state.filter", Message: err.Error()}}}
	}
	c.core = core.Config{
		Before: ms(j.Window.Before), After: ms(j.Window.After), Grace: ms(j.Grace), MaxSpread: ms(j.Spread()),
		Width: ms(j.Width()), Slots: j.State.Buckets, Filter: kind, Summary: true, BatchSize: 4096, Drain: true,
	}
	if j.Cardinality == "one-to-many" {
		c.core.Cardinality = core.OneToMany
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

// arenaBytes is one task's part of what state.memory gives open buckets and filters.
func arenaBytes(j *config.Join, tasks int) int64 {
	return int64(arenaShare * float64(j.State.Memory) / float64(tasks))
}

func ms(d time.Duration) int64 { return d.Milliseconds() }
