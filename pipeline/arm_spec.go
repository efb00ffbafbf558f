package pipeline

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"joinbench/config"
	"joinbench/core"
	"joinbench/results"
)

// Arm is one way to join, as --arms names it.
type Arm struct {
	Name string
	// Limit is how many B it gets, from the first; 0: all. One that is very slow shows what it costs on few.
	Limit int64
}

// Engines make the joiners that are not ours, by the name of their arm.
type Engines map[string]func(*core.Config) core.Joiner

const (
	armMemory     = "memory"            // the whole event in a map
	armProjection = "memory-projection" // the kept fields in a map
	armNull       = "null"              // joins nothing
)

// armFilters are the arms on our own state; each is the name of its filter.
var armFilters = []string{"fuse16", "fuse8", "fuse32", "bloom", "none"}

// armTypes are the arms on our own state that differ in what comes out; each is the type of its join.
var armTypes = []string{"inner", "left", "right", "outer"}

// armOrigin is where the values come from that make a profile an arm's.
const armOrigin = "flag --arms"

// slowLimit is how many B those arms get that read the tables of all buckets for each of them.
const slowLimit = 1_000_000

// ArmNames lists the names that --arms takes.
func ArmNames() []string {
	return slices.Concat(armFilters, armTypes, []string{armMemory, armProjection, armNull})
}

// ParseArms reads a value of --arms: names with commas between, each with a limit if it is to get fewer B (none:1M) or
// with :all if it is to get all. Errors are *config.Error and name the nearest arm.
func ParseArms(text string) ([]Arm, error) {
	var arms []Arm
	for item := range strings.SplitSeq(text, ",") {
		name, limit, limited := strings.Cut(strings.TrimSpace(item), ":")
		arm := Arm{Name: name}
		if !slices.Contains(ArmNames(), name) {
			hint := ""
			if near := config.Nearest(name, ArmNames()); near != "" {
				hint = fmt.Sprintf(", did you mean %s?", near)
			}
			return nil, armFault("--arms: %q is no arm%s (arms: %s)", name, hint, strings.Join(ArmNames(), ", "))
		}
		if slices.ContainsFunc(arms, func(a Arm) bool { return a.Name == name }) {
			return nil, armFault("--arms: %s is there twice: name each arm once", name)
		}
		switch {
		case limited && limit != "all":
			n, err := config.ParseCount(limit)
			if err != nil || n < 1 {
				return nil, armFault("--arms: %s:%s: the limit is a number of B such as 500k or 2M, or all", name, limit)
			}
			arm.Limit = n
		case !limited && (name == "none" || name == "bloom"):
			arm.Limit = slowLimit
		}
		arms = append(arms, arm)
	}
	return arms, nil
}

func armFault(format string, args ...any) error {
	return &config.Error{Faults: []config.Fault{{Key: "--arms", Message: fmt.Sprintf(format, args...)}}}
}

// onState says whether an arm joins on our own state, which outlives the process.
func (a *Arm) onState() bool {
	return slices.Contains(armFilters, a.Name) || slices.Contains(armTypes, a.Name)
}

// profile is a profile with what makes the arm: the same workload, another way to join it.
func (a *Arm) profile(of *config.Profile) (*config.Profile, error) {
	var text bytes.Buffer
	if err := of.Print(&text); err != nil {
		return nil, err
	}
	p, err := config.ParseProfile(text.Bytes(), "the profile")
	if err != nil {
		return nil, err
	}
	set := func(key, value string) {
		if err == nil {
			err = p.Set(key, value, armOrigin)
		}
	}
	switch {
	case slices.Contains(armTypes, a.Name):
		set("type", a.Name)
		if a.Name == "inner" || a.Name == "right" { // they have no null rows of A that could come early
			set("early", "0s")
			set("retract", "false")
		}
	case a.onState():
		set("state.filter", a.Name)
	case a.Name == armMemory:
		set("a.store", "full")
	default:
		set("a.store", "projection")
	}
	if a.Limit > 0 { // the same workload without a warm phase: it may be longer than the limit
		set("load.b_events", strconv.FormatInt(p.Load.Warm+p.Load.BEvents, 10))
		set("load.warm", "0")
	}
	if !a.onState() {
		set("state.filter", "none") // there is nothing to filter
	}
	if err == nil {
		err = p.Validate()
	}
	if err == nil && !a.onState() && a.Name != armNull {
		err = joinsSimply(a.Name, p.Join)
	}
	return p, err
}

// joinsSimply refuses an arm that is a map in memory where the join asks for more than pairs.
func joinsSimply(arm string, j *config.Join) error {
	for key, other := range map[string]bool{"type": j.Type != "inner", "cardinality": j.Cardinality == "many-to-many", "probe": j.Probe != "aligned",
		"collect": j.Collect.Mode != "eager", "complete_on": j.CompleteOn != nil} {
		if other {
			return armFault("--arms: %s knows inner joins of aligned B, one to one or to many, without groups and ends, and not this join's %s: leave it out",
				arm, key)
		}
	}
	return nil
}

// note is what a reader of the arm's figures should know.
func (a *Arm) note(bEvents int64) string {
	switch {
	case a.Name == armNull:
		return "joins nothing"
	case a.Limit > 0 && a.Limit < bEvents:
		return "on the first " + results.Count(a.Limit) + " B alone"
	}
	return ""
}
