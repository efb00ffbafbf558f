package pipeline

import (
	"fmt"
	"strings"

	"joinbench/config"
	"joinbench/results"
)

// What an arm takes in memory, roughly and rather too much than too little: measured with a million and more that wait.
const (
	needProcess = 200 << 20 // records decoded ahead, code, RocksDB at rest
	needEvent   = 330       // of an A in a map beside its body: key, entry, map, list of its bucket
	needKept    = 64        // of a projection
	needUnit    = 48        // a key while the unit is measured, which is before and after
)

// needs is what an arm takes at its peak.
func (a *Arm) needs(p *config.Profile) int64 {
	l := &p.Load
	n := int64(needProcess) + l.Pending*needUnit
	garbage := 1.4 // GOGC 40 of what lives
	switch {
	case a.onState():
		return n + int64(p.Join.State.Memory) + l.Pending*32 // filters, and hashes for the summary
	case a.Name == armMemory:
		return n + int64(garbage*float64(l.Pending)*float64(needEvent+l.RecordBytes))
	case a.Name == armProjection:
		return n + int64(garbage*float64(l.Pending)*float64(needEvent+needKept))
	}
	return n
}

// planMemory decides whether the arms fit side by side, and refuses what does not fit at all: the kernel would kill it.
func (r *armsRun) planMemory() error {
	have := r.Available
	if have == 0 {
		var known bool
		if have, known = results.AvailableMemory(); !known {
			return nil
		}
	}
	all := int64(0)
	var tooLarge []string
	for _, a := range r.runs {
		n := a.needs(r.Profile)
		all += n
		if n > have {
			tooLarge = append(tooLarge, fmt.Sprintf("%s (about %s)", a.Name, results.Bytes(n)))
		}
	}
	if len(tooLarge) > 0 {
		return fmt.Errorf("not enough memory: %s is free, and too little for %s: leave that out of --arms, or lower load.pending",
			results.Bytes(have), strings.Join(tooLarge, ", "))
	}
	if all > have {
		r.alone = fmt.Sprintf("the arms ran one after another, not by turns: together they need about %s of memory, and %s was free",
			results.Bytes(all), results.Bytes(have))
	}
	return nil
}
