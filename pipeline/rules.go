package pipeline

import (
	"fmt"

	"joinbench/config"
	"joinbench/core"
	"joinbench/loadgen"
)

// rulesOf are the rules of a join as the generator knows them.
func rulesOf(c *core.Config) loadgen.Rules {
	return loadgen.Rules{Cardinality: loadgen.Cardinality(c.Cardinality), Probe: loadgen.Probe(c.Probe), Collect: loadgen.Collect(c.Collect),
		CompleteOn: loadgen.Ending(c.CompleteOn), NullsA: c.WantA, NullsB: c.WantB, Early: c.Early, Retract: c.Retract}
}

// The words have the same numbers on both sides of the boundary.
var (
	_ = [1]struct{}{}[int(core.ManyToMany)-int(loadgen.ManyToMany)]
	_ = [1]struct{}{}[int(core.ProbeWait)-int(loadgen.Wait)]
	_ = [1]struct{}{}[int(core.ProbeImmediate)-int(loadgen.Immediate)]
	_ = [1]struct{}{}[int(core.CollectTimeout)-int(loadgen.Timeout)]
	_ = [1]struct{}{}[int(core.CollectCount)-int(loadgen.Count)]
	_ = [1]struct{}{}[int(core.CollectMarker)-int(loadgen.Marker)]
	_ = [1]struct{}{}[int(core.EndPair)-int(loadgen.EndsWithPair)]
	_ = [1]struct{}{}[int(core.EndUnmatched)-int(loadgen.EndsUnmatched)]
	_ = [1]struct{}{}[int(core.EndNothing)-int(loadgen.EndsSilently)]
)

// truthOf is the truth of a profile's join. The error is a *config.Error: of this workload nobody knows what the join gives.
func truthOf(g *generator, c *core.Config) (*loadgen.Truth, error) {
	t, err := g.gen.Truth(rulesOf(c))
	if err != nil {
		return nil, &config.Error{Faults: []config.Fault{{Key: "load", Message: err.Error()}}}
	}
	return t, nil
}

// joinRules are the rules that the truth goes by.
func (b *bench) joinRules() *core.Config {
	if b.hooks.rules != nil {
		return b.hooks.rules
	}
	return &b.c.core
}

// checkTruth refuses a run of which the truth is not known.
func (b *bench) checkTruth() error {
	truth, err := truthOf(b.gen, &b.c.core)
	if err != nil {
		return err
	}
	c := b.gen.gen.Config()
	if plain := c.Plain(); b.Pace != nil && b.Pace.CatchUp == Drop && (truth.Rules() != plain || c.Family.BPerA+c.Family.APerKey > 0) {
		return &config.Error{Faults: []config.Fault{{Key: "--catch-up", Message: "--catch-up drop leaves out B, and what that does to null rows, groups and " +
			"ends is not known: give --catch-up queue, or an inner join with one A and one B a key"}}}
	}
	return nil
}

// checkWords: generated records have these fields and no others that end, mark or count.
func checkWords(j *config.Join) error {
	var faults []config.Fault
	test := func(key, field, equals, says string) {
		if field != loadgen.FieldStatus || equals != says {
			faults = append(faults, config.Fault{Key: key, Message: fmt.Sprintf("%s: generated B say it by {field: %s, equals: %s}, not by {field: %s, equals: %s}",
				key, loadgen.FieldStatus, says, field, equals)})
		}
	}
	if c := j.CompleteOn; c != nil {
		test("complete_on", c.Field, c.Equals, loadgen.StatusEnds)
	}
	switch j.Collect.Mode {
	case "marker":
		test("collect.marker", j.Collect.Marker.Field, j.Collect.Marker.Equals, loadgen.StatusMarks)
	case "count":
		if j.Collect.Count != loadgen.FieldCount {
			faults = append(faults, config.Fault{Key: "collect.count", Message: fmt.Sprintf("collect.count: generated A have their count in %s, not in %s",
				loadgen.FieldCount, j.Collect.Count)})
		}
	}
	if len(faults) > 0 {
		return &config.Error{Faults: faults}
	}
	return nil
}
