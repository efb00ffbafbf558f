package pipeline

import (
	"encoding/json"
	"os"
	"runtime/pprof"
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
	CPU     int64 `json:"cpu"`    // of all threads
	Settle  int64 `json:"settle"` // that the engine waited for Kafka
	RSS     int64 `json:"rss"`    // peak of anonymous memory; 0: not known
}

// tracer writes the trace of a Serve, and has its profile made. It belongs to the goroutine of Serve; a nil one does nothing.
type tracer struct {
	u       *unit
	enc     *json.Encoder
	mem     *results.MemSampler
	profile *os.File // nil: none is being made
	begun   bool     // there were B
	gone    bool     // nobody reads it
}

func newTracer(u *unit) *tracer {
	return &tracer{u: u, enc: json.NewEncoder(u.Trace), mem: results.StartMemSampler(0)}
}

func (t *tracer) close() {
	if t == nil {
		return
	}
	t.mem.Stop()
	if t.profile != nil {
		pprof.StopCPUProfile()
		_ = t.profile.Close() // a profile that cannot be read is missed by whoever reads it
	}
}

// point writes where things are. Who asked for the trace and went away does not stop the join.
func (t *tracer) point() {
	if t == nil || t.gone {
		return
	}
	c := t.u.state.engine.Counters()
	p := servePoint{At: time.Now().UnixNano(), A: int64(c.Fates[core.A][core.Accepted]), B: int64(c.Fates[core.B][core.Accepted]),
		Outputs: int64(t.u.sink.book.outputs), Settle: int64(t.u.Status.Snapshot().CommitTime.Sum * 1e9), RSS: t.mem.Peak().AnonBytes}
	if cpu, err := results.CPUTime(); err == nil {
		p.CPU = int64(cpu)
	}
	t.gone = t.enc.Encode(p) != nil
	if p.B > 0 && !t.begun {
		t.begun = true
		t.startProfile()
	}
}

// startProfile starts it if there is to be one. Without it the join runs all the same.
func (t *tracer) startProfile() {
	if t.u.TraceProfile == "" {
		return
	}
	f, err := os.Create(t.u.TraceProfile)
	if err == nil {
		err = pprof.StartCPUProfile(f)
	}
	if err != nil {
		t.u.Log.Warn("no CPU profile", "error", err)
		return
	}
	t.profile = f
}
