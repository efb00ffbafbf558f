package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"joinbench/capture"
	"joinbench/core"
	"joinbench/fusefilter"
	"joinbench/internal/failpoint"
	"joinbench/results"
)

// The child's side: a process that lives the lives of cases, one after another, until one of them kills it.

// childVariable in the environment makes the test program a child.
const childVariable = "PIPELINE_TEST_CHILD"

// lifeRequest is one life of a case whose files are in a directory.
type lifeRequest struct {
	Dir     string
	Case    metaCase
	Life    int
	Records int64 // of both files
}

// lifeReply is how it ended.
type lifeReply struct {
	Invalid string // the configuration was refused
	Err     string
	Stopped bool // the error is that of the stop
	Fired   bool // the failpoint was hit so often

	Counters    results.Counters
	Tasks       core.TaskStats
	Topics      [2]string
	BuildFaults int
}

var errStop = errors.New("the step that was to fail")

// serveLives answers requests on standard input until it ends.
func serveLives() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var req lifeRequest
		if in.Decode(&req) != nil {
			return
		}
		if out.Encode(live(&req)) != nil {
			return
		}
	}
}

// live is Join, with a look at the engine before it is closed.
func live(req *lifeRequest) (reply lifeReply) {
	c, l := &req.Case, &req.Case.Lives[req.Life]
	jc, err := req.join()
	if err != nil {
		return lifeReply{Invalid: err.Error()}
	}
	faults := buildFaults{mode: l.Build, rng: rand.New(rand.NewPCG(c.Seed, uint64(req.Life)))}
	jc.BuildFault = faults.fault
	ctx := context.Background()
	var stop failStop
	switch l.Stop.Kind {
	case stopContext:
		jc.Progress = &Progress{}
		ctx = &stopAfter{ctx, jc.Progress, max(1, req.Records*int64(l.Stop.Share)/1000)}
	case stopError, stopKill:
		stop.metaStop = l.Stop
		failpoint.Set(stop.hit)
		defer failpoint.Set(nil)
	}
	err = func() (err error) {
		j, err := newFileJoin(jc)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, j.close()) }()
		j.c.core.Summary, j.c.core.MaxOutput = l.Summary, l.Output
		j.source = l.source(c.Seed)
		if err := errors.Join(j.openInputs(ctx), j.prepareState()); err != nil {
			return err
		}
		reply.Topics = [2]string{j.inputs[0].Topic(), j.inputs[1].Topic()}
		counts, err := j.run(ctx)
		if counts != nil {
			reply.Counters, reply.Tasks = *counts, j.state.engine.Counters().Tasks
		}
		return err
	}()
	if err != nil {
		reply.Err = err.Error()
		reply.Stopped = errors.Is(err, errStop) || l.Stop.Kind == stopContext && errors.Is(err, context.Canceled)
	}
	reply.Fired, reply.BuildFaults = stop.fired(), faults.n
	return reply
}

// source has the records arrive in the order of the life; nil: as files are read.
func (l *metaLife) source(seed uint64) func(*feed) core.Source {
	if l.Fetch == fetchEvenly {
		return nil
	}
	return func(f *feed) core.Source {
		return newFetched(f, l.Fetch, l.Chunk, rand.New(rand.NewPCG(seed, 0x6665746368)))
	}
}

// join describes the life's call of Join. The outputs are files, so that a resumed one can cut them back.
func (req *lifeRequest) join() (jc JoinConfig, err error) {
	c, l := &req.Case, &req.Case.Lives[req.Life]
	path := func(name string) string { return filepath.Join(req.Dir, name) }
	jc = JoinConfig{A: path("a.ndjson"), B: path("b.ndjson"), Out: path("out"), Batch: l.Batch, Inline: l.Inline, Hash: metaHash(c.Hash),
		ArenaBytes: l.Arena, NoDrain: c.Oracle.NoDrain}
	for _, side := range []struct {
		name string
		on   bool
		to   *string
	}{{"late", c.Late, &jc.Late}, {"dead", c.Dead, &jc.Dead}, {"unmatched", c.Unmatched, &jc.Unmatched}} {
		if side.on {
			*side.to = path(side.name)
		}
	}
	if c.stops() > 0 {
		jc.StateDir = path("state")
	}
	if jc.Config, err = c.config(l); err != nil {
		return jc, err
	}
	jc.Format, err = capture.ParseFormat(c.Format)
	return jc, err
}

// failStop is a stop at a failpoint.
type failStop struct {
	metaStop
	mu   sync.Mutex // guards seen: points are hit from any goroutine
	seen int
}

func (s *failStop) hit(name string) error {
	if name != s.Point {
		return nil
	}
	s.mu.Lock()
	s.seen++
	now := s.seen == s.Hit
	s.mu.Unlock()
	if !now {
		return nil
	}
	if s.Kind == stopKill {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way: nothing more happens here
	}
	return errStop
}

func (s *failStop) fired() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Hit > 0 && s.seen >= s.Hit
}

// buildFaults makes builds of filters fail.
type buildFaults struct {
	mode  string
	mu    sync.Mutex // guards what follows: each task has a helper
	rng   *rand.Rand
	asked int
	n     int // that failed
}

func (f *buildFaults) fault(fusefilter.Kind, int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if f.mode == "all" || f.mode == "half" && f.rng.IntN(2) == 0 || f.mode == "first 3" && f.asked <= 3 {
		f.n++
		return fmt.Errorf("build %d was to fail", f.asked)
	}
	return nil
}
