package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"joinbench/buckets"
	"joinbench/config"
	"joinbench/core"
)

// state is an open data directory: locked, one database for each task.
type state struct {
	dir    string
	lock   *buckets.DirLock
	shared *buckets.Shared
	stores []buckets.Backend
	temp   bool
	engine *core.Engine // owns the stores once it is there
}

// lockState locks a directory, or a temporary one if dir is empty.
func lockState(dir, who string) (*state, error) {
	s := &state{dir: dir}
	if dir == "" {
		tmp, err := os.MkdirTemp("", "joinbench-")
		if err != nil {
			return nil, fmt.Errorf("no room for the state: %w (give a directory)", err)
		}
		s.dir, s.temp = tmp, true
	}
	lock, err := buckets.LockDir(s.dir, who)
	if err != nil {
		if s.temp {
			err = errors.Join(err, os.RemoveAll(s.dir))
		}
		return nil, err
	}
	s.lock = lock
	return s, nil
}

func (s *state) taskDir(i int) string { return filepath.Join(s.dir, fmt.Sprintf("task-%03d", i)) }

// taskDirs are the names that taskDir gives.
const taskDirs = "task-[0-9][0-9][0-9]*"

// hasTasks says whether there is a state in the directory.
func (s *state) hasTasks() bool {
	_, err := os.Stat(filepath.Join(s.taskDir(0), "CURRENT"))
	return err == nil
}

// runMarkFile says whose the state is. It is there before the databases are, and says {} while they are removed: so
// whatever the moment at which a process was killed, the next one knows what lies there.
const runMarkFile = "run.json"

// readMark reads the mark; false if there is none. A mark whose Tasks are 0 stands for nothing.
func (s *state) readMark(mark any) (bool, error) {
	data, err := os.ReadFile(filepath.Join(s.dir, runMarkFile))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(data, mark)
	}
	return err == nil, err
}

// fits says whether a mark with so many databases can be that of those that are there: there may be fewer, of a process
// that was killed while it made them, but not more. A mark without tasks stands for nothing, so what is there may go.
func (s *state) fits(tasks int) bool {
	have, err := filepath.Glob(filepath.Join(s.dir, taskDirs))
	return err == nil && (tasks == 0 || tasks > 0 && len(have) <= tasks)
}

func (s *state) writeMark(mark any) error {
	path := filepath.Join(s.dir, runMarkFile)
	data, err := json.Marshal(mark)
	if err == nil {
		err = os.WriteFile(path+".new", data, 0o644)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// begin removes what an earlier run left, if marked says that one did, and marks the directory as the new run's.
func (s *state) begin(marked bool, mark any) error {
	if marked {
		if err := errors.Join(s.closeStores(), s.writeMark(struct{}{}), s.wipe()); err != nil {
			return err
		}
	}
	return s.writeMark(mark)
}

// wipe removes the databases; what else lies in the directory stays.
func (s *state) wipe() error {
	tasks, err := filepath.Glob(filepath.Join(s.dir, taskDirs))
	for _, t := range tasks {
		err = errors.Join(err, os.RemoveAll(t))
	}
	return err
}

// openStores opens the database of each of n tasks.
func (s *state) openStores(n int, cfg *config.Join) error {
	s.shared = buckets.NewShared(buckets.SharedOptions{Memory: cfg.State.Memory, Tasks: n, Bloom: cfg.State.Filter == "bloom"})
	for i := range n {
		b, err := buckets.OpenRocks(s.taskDir(i), s.shared)
		if err != nil {
			return err
		}
		s.stores = append(s.stores, b)
	}
	return nil
}

// start makes the engine, which takes over the databases.
func (s *state) start(c *compiled, src core.Source, sink core.Sink) error {
	rings, record, err := core.OpenRings(&c.core, c.sync, s.stores)
	if err != nil {
		return fmt.Errorf("%s: %w", s.dir, err)
	}
	s.stores = nil
	s.engine, err = core.NewEngine(&c.core, rings, record, src, sink)
	return err // it may be about an output, so the directory is not to blame
}

// startWith makes the engine over joiners that another engine makes, one for each task; without one it is start.
func (s *state) startWith(engine func(*core.Config) core.Joiner, tasks int, c *compiled, src core.Source, sink core.Sink) (err error) {
	if engine == nil {
		return s.start(c, src, sink)
	}
	joiners := make([]core.Joiner, tasks)
	for i := range joiners {
		joiners[i] = engine(&c.core)
	}
	s.engine, err = core.NewEngineWith(&c.core, joiners, src, sink)
	return err
}

// closeStores closes engine and databases and keeps the lock.
func (s *state) closeStores() error {
	var errs []error
	if s.engine != nil {
		errs = append(errs, s.engine.Close())
		s.engine = nil
	}
	for _, b := range s.stores {
		errs = append(errs, b.Close())
	}
	s.stores = nil
	if s.shared != nil {
		s.shared.Close()
		s.shared = nil
	}
	return errors.Join(errs...)
}

// close closes everything and removes a temporary directory.
func (s *state) close() error {
	err := s.closeStores()
	if s.temp {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return errors.Join(err, s.lock.Unlock())
}

// Progress is where a run stands, for whoever shows it. Written once a batch, read from anywhere.
type Progress struct {
	A, B, Probes, Matches, Lookups, Pending atomic.Int64
	Phase                                   atomic.Pointer[string]
	// Of an open loop, zero in a closed one: B a second that are offered (rounded); B due and not taken; percentiles in ns
	// over the last half second or so (recent) and over the measured phase.
	Offered, Queue, Dropped                atomic.Int64
	LagP99, RecentP50, RecentP99, P50, P99 atomic.Int64
	AbsentQueries, FalsePositives          atomic.Int64 // of the filter
	// Total is the number of records that the run will read, 0 if that is not known.
	Total atomic.Int64
	Bare  bool // nothing is joined: there is nothing that waits
}

// NewProgress is one of a job that is no join, with its name.
func NewProgress(phase string) *Progress {
	p := &Progress{Bare: true}
	p.Phase.Store(&phase)
	return p
}

// update takes the engine's counts; it is a core.Engine.Observe, and never fails.
func (p *Progress) update(e *core.Engine) error {
	c := e.Counters()
	p.A.Store(int64(c.Read(core.A)))
	p.B.Store(int64(c.Read(core.B)))
	p.Probes.Store(int64(c.Tasks.Probes))
	p.Matches.Store(int64(c.Matches))
	p.Lookups.Store(int64(c.Tasks.Lookups))
	p.AbsentQueries.Store(int64(c.Tasks.Absent))
	p.FalsePositives.Store(int64(c.Tasks.FalsePositives))
	p.Pending.Store(int64(e.Levels(false).Pending))
	return nil
}

func (p *Progress) phase(name string) { p.Phase.Store(&name) }

// interrupted says whether an error is the context's.
func interrupted(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
