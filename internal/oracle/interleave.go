package oracle

import (
	"bytes"
	"math/rand/v2"
)

// Other workloads with the same answer, or with one answer.

// Interleave is a file with its lines in another order: each partition keeps its own, and so do lines that are of none. For a
// file in format "value", which is one partition, that is the file itself.
func Interleave(rng *rand.Rand, file []byte, format string) ([]byte, error) {
	recs, err := records(file, format)
	if err != nil {
		return nil, err
	}
	lines := bytes.SplitAfter(file, []byte("\n"))
	runs := map[int32][][]byte{}
	var order []int32 // a partition as often as it has lines
	for i, r := range recs {
		line := lines[i]
		if !bytes.HasSuffix(line, []byte("\n")) {
			line = append(bytes.Clone(line), '\n')
		}
		runs[r.partition] = append(runs[r.partition], line)
		order = append(order, r.partition)
	}
	rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	var out []byte
	for _, p := range order {
		out = append(out, runs[p][0]...)
		runs[p] = runs[p][1:]
	}
	return out, nil
}

// Settled takes lines out of two files until there is one right answer by this configuration: of events whose outcome the rules
// leave open one A and one B stay. With Immediate there may be no such files.
func Settled(cfg Config, aFile, bFile []byte, format string) (a, b []byte, err error) {
	for {
		e, err := Expect(cfg, aFile, bFile, format)
		if err != nil || e.Exact {
			return aFile, bFile, err
		}
		without := [2]map[int]bool{{}, {}}
		for _, s := range e.sets {
			if e.cfg.settled(s) {
				continue
			}
			for _, ev := range s.as[1:] {
				without[0][ev.Line] = true
			}
			for _, ev := range s.bs[1:] {
				without[1][ev.Line] = true
			}
		}
		aFile, bFile = leaveOut(aFile, without[0]), leaveOut(bFile, without[1])
	}
}

// leaveOut is a file without the lines of these numbers, from 1. In format "value" offsets are line numbers, so others change.
func leaveOut(file []byte, lines map[int]bool) (out []byte) {
	for i, line := range bytes.SplitAfter(file, []byte("\n")) {
		if !lines[i+1] {
			out = append(out, line...)
		}
	}
	return out
}
