package pipeline

import (
	"encoding/json"
	"time"

	"joinbench/core"
	"joinbench/results"
)

// servePoint is where a Serve was at one moment: a line of its trace. Counts are those of its state's whole life, times the sums
// since the process began, in ns.
type servePoint struct {
	At      int64 `json:"at"` // since 1970
	A       int64 `json:"a"`  // records that were accepted
	B       int64 `json:"b"`
	Outputs int64 `json:"outputs"`
	CPU     int64 `json:"cpu"` // of all threads
	// Decode is what the decoders took for keys, times and bodies, Core what the tasks and their helpers took, Results what
	// it took to make records of results: each by the clock, of goroutines that may have waited for a core. Settle is how long the
	// engine waited for Kafka.
	Decode  int64 `json:"decode"`
	Core    int64 `json:"core"`
	Results int64 `json:"results"`
	Settle  int64 `json:"settle"`
	RSS     int64 `json:"rss"` // peak of anonymous memory; 0: not known
}

// tracer writes the trace of a Serve. It belongs to the engine's goroutine; a nil one does nothing.
type tracer struct {
	u               *unit
	enc             *json.Encoder
	mem             *results.MemSampler
	results, settle time.Duration
}

func newTracer(u *unit) *tracer {
	return &tracer{u: u, enc: json.NewEncoder(u.Trace), mem: results.StartMemSampler(0)}
}

func (t *tracer) close() {
	if t != nil {
		t.mem.Stop()
	}
}

// point writes where things are. Who asked for the trace and went away does not stop the join.
func (t *tracer) point() {
	if t == nil {
		return
	}
	c := t.u.state.engine.Counters()
	p := servePoint{At: time.Now().UnixNano(), A: int64(c.Fates[core.A][core.Accepted]), B: int64(c.Fates[core.B][core.Accepted]),
		Outputs: int64(t.u.sink.book.outputs), Decode: t.u.feed.decoding(),
		Core:    int64(c.Tasks.StoreTime + c.Tasks.AskTime + c.Tasks.HelperTime),
		Results: int64(t.results), Settle: int64(t.settle), RSS: t.mem.Peak().AnonBytes}
	if cpu, err := results.CPUTime(); err == nil {
		p.CPU = int64(cpu)
	}
	if t.enc.Encode(p) != nil {
		t.close()
		t.u.tracer = nil
	}
}

// sink is the unit's sink, timed if there is a tracer.
func (t *tracer) sink(s *kafkaSink) core.Sink {
	if t == nil {
		return s
	}
	return &tracedSink{s, t}
}

// tracedSink measures what results and commits take.
type tracedSink struct {
	*kafkaSink
	t *tracer
}

// Results implements core.Sink.
func (s *tracedSink) Results(out *core.Output) error {
	defer func(start time.Time) { s.t.results += time.Since(start) }(time.Now())
	return s.kafkaSink.Results(out)
}

// Settle implements core.Ledger.
func (s *tracedSink) Settle(n uint64, changes []core.Change, record []byte) error {
	defer func(start time.Time) { s.t.settle += time.Since(start) }(time.Now())
	return s.kafkaSink.Settle(n, changes, record)
}

// decoding is how long the decoders of this start have decoded, in ns.
func (l *liveFeed) decoding() int64 {
	if l.run == nil {
		return 0
	}
	return l.run.decodeTime[core.A].Load() + l.run.decodeTime[core.B].Load()
}
