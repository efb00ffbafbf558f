package pipeline

import (
	"fmt"
	"os"
	"strings"

	"github.com/google/pprof/profile"

	"joinbench/results"
)

// splitRule says whose a sample of a CPU profile is that has such a function on its stack.
type splitRule struct {
	contains string
	part     func(*results.KafkaSplit) **float64
}

var (
	toSocket  = func(s *results.KafkaSplit) **float64 { return &s.SocketNs }
	toDecode  = func(s *results.KafkaSplit) **float64 { return &s.DecodeNs }
	toJSON    = func(s *results.KafkaSplit) **float64 { return &s.JSONNs }
	toCore    = func(s *results.KafkaSplit) **float64 { return &s.CoreNs }
	toProduce = func(s *results.KafkaSplit) **float64 { return &s.ProduceNs }
	toGC      = func(s *results.KafkaSplit) **float64 { return &s.GCNs }
	toOther   = func(s *results.KafkaSplit) **float64 { return &s.OtherNs }
)

// splitRules are by function, as the runtime names them: the innermost that meets one of them decides.
var splitRules = []splitRule{
	{"runtime.gcBgMarkWorker", toGC}, {"runtime.bgsweep", toGC}, {"runtime.bgscavenge", toGC}, {"runtime.gcAssist", toGC},
	{"joinbench/projection.", toJSON},
	{"joinbench/core.", toCore}, {"joinbench/buckets.", toCore}, {"joinbench/fusefilter.", toCore}, {"grocksdb.", toCore},
	{"kgo.(*source).handleReqResp", toDecode}, {"joinbench/kafka.(*batch)", toDecode}, {"joinbench/kafka.(*Reader)", toDecode},
	{"joinbench/kafka.(*Consumer)", toDecode}, {"pipeline.(*livePart)", toDecode}, {"pipeline.(*feedChunk)", toDecode},
	{"kgo.(*produceRequest)", toProduce}, {"kgo.(*sink)", toProduce}, {"kgo.(*recBuf)", toProduce}, {"kgo.(*Client).produce", toProduce},
	{"kgo.(*Client).finishRecordPromise", toProduce}, {"joinbench/kafka.(*Producer)", toProduce}, {"joinbench/kafka.(*Changelog)", toProduce},
	{"pipeline.(*kafkaSink)", toProduce}, {"pipeline.(*rows)", toProduce},
	{"joinbench/pipeline.(*liveFeed)", toDecode},
}

// clientRules are for stacks of which splitRules say nothing: what the client does with records, whose side they are on is known
// further out, or else it is about requests and answers.
var clientRules = []splitRule{{"kgo.", toSocket}, {"internal/poll.", toSocket}, {"net.", toSocket}}

// splitOf shares out what a B costs by a CPU profile of the join.
func splitOf(path string, cpuNsPerB float64) (*results.KafkaSplit, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := profile.Parse(f)
	if err != nil {
		return nil, fmt.Errorf("the CPU profile of serve: %w", err)
	}
	s := &results.KafkaSplit{CPUNs: &cpuNsPerB}
	var all float64
	for _, sample := range p.Sample {
		ns := float64(sample.Value[len(sample.Value)-1])
		all += ns
		part := partOf(sample)(s)
		if *part == nil {
			*part = new(float64)
		}
		**part += ns
	}
	for _, part := range []func(*results.KafkaSplit) **float64{toSocket, toDecode, toJSON, toCore, toProduce, toGC, toOther} {
		if v := *part(s); v != nil && all > 0 {
			*v *= cpuNsPerB / all
		}
	}
	return s, nil
}

func partOf(sample *profile.Sample) func(*results.KafkaSplit) **float64 {
	names := functionsOf(sample)
	for _, rules := range [][]splitRule{splitRules, clientRules} {
		for _, name := range names {
			for _, r := range rules {
				if strings.Contains(name, r.contains) {
					return r.part
				}
			}
		}
	}
	for _, name := range names {
		if strings.HasPrefix(name, "runtime.") && !strings.HasPrefix(name, "runtime._") {
			return toOther
		}
	}
	return toCore // RocksDB's own threads
}

// functionsOf are those on the stack of a sample, from the innermost outwards.
func functionsOf(sample *profile.Sample) (names []string) {
	for _, at := range sample.Location {
		for _, line := range at.Line {
			if line.Function != nil {
				names = append(names, line.Function.Name)
			}
		}
	}
	return names
}
