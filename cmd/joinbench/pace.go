package main

import (
	"fmt"

	"joinbench/config"
	"joinbench/pipeline"
)

// paceOf reads the flags about load modes; nil is a closed loop.
func paceOf(f *runFlags) (*pipeline.Pace, error) {
	usage := func(format string, args ...any) (*pipeline.Pace, error) {
		return nil, &usageError{fmt.Errorf(format, args...)}
	}
	p := &pipeline.Pace{Arrival: pipeline.Arrival(f.arrival), CatchUp: pipeline.CatchUp(f.catchUp)}
	switch f.mode {
	case "", "open", "closed":
	default:
		return usage("--mode %q: open or closed", f.mode)
	}
	if p.Arrival != pipeline.Uniform && p.Arrival != pipeline.Poisson {
		return usage("--arrival %q: uniform or poisson", f.arrival)
	}
	if p.CatchUp != pipeline.Queue && p.CatchUp != pipeline.Drop {
		return usage("--catch-up %q: queue or drop", f.catchUp)
	}
	if f.rate == "" {
		switch {
		case f.mode == "open":
			return usage("--mode open needs a rate: add --rate, for example --rate 500k/s")
		case p.Arrival != pipeline.Uniform || p.CatchUp != pipeline.Queue:
			return usage("--arrival and --catch-up are about an open loop: add --rate, for example --rate 500k/s")
		}
		return nil, nil
	}
	if f.mode == "closed" {
		return usage("--rate is about an open loop: leave out --mode closed, or --rate")
	}
	var err error
	if p.Rate, err = config.ParseRate(f.rate); err != nil {
		return usage("--rate: %w", err)
	}
	if p.Rate < pipeline.MinRate || p.Rate > pipeline.MaxRate {
		return usage("--rate %s: from %g to %g a second", f.rate, pipeline.MinRate, pipeline.MaxRate)
	}
	if p.CatchUp == pipeline.Drop && f.resume {
		return usage("--catch-up drop cannot be resumed, since nobody knows what was dropped: leave out --resume, or use --catch-up queue")
	}
	return p, nil
}
