package pipeline

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"

	"joinbench/buckets"
	"joinbench/capture"
	"joinbench/config"
	"joinbench/core"
	"joinbench/fusefilter"
	"joinbench/results"
)

// JoinConfig is one join of two record files.
type JoinConfig struct {
	Config                *config.Join // validated
	A, B                  string       // paths, "-" for standard input (one of them)
	Out                   string       // path, "" or "-" for Stdout
	Late, Dead, Unmatched string       // paths of the side outputs, "" for none
	Stats                 string       // where the caller will write the counters: no other file of the join may be that
	Format                capture.Format
	StateDir              string // "" for a temporary one
	Batch                 int    // records a batch, 0 for the default
	NoDrain               bool
	Cores                 int // for tasks: auto
	Stdin                 io.Reader
	Stdout                io.Writer
	Warn                  func(format string, args ...any)
	Started               func() // called when everything is open, before the first record is joined; may be nil
	Progress              *Progress
	// Inline makes sealing and filters take place at the same batch in every run.
	Inline bool
	// Hash replaces xxh3, ArenaBytes what state.memory leaves for the open buckets of a task, and BuildFault makes
	// builds of filters fail: for tests.
	Hash       func(key []byte) uint64
	ArenaBytes int64
	BuildFault func(kind fusefilter.Kind, keys int) error
	// Engine makes what joins instead of the tasks on RocksDB; the state directory then keeps nothing. For tests.
	Engine func(*core.Config) core.Joiner
}

// Join joins two record files and returns what it counted. Interrupted through the context it returns the context's
// error; the state directory then goes on where it stopped. Errors about flags and configuration are *config.Error.
func Join(ctx context.Context, jc JoinConfig) (counts *results.Counters, err error) {
	j, err := newFileJoin(jc)
	if err != nil {
		return nil, jc.advice(jc.StateDir).readable(err)
	}
	defer func() { err = jc.advice(j.state.dir).readable(errors.Join(err, j.close())) }()
	if err := j.openInputs(ctx); err != nil {
		return nil, err
	}
	if jc.Engine == nil {
		if err := j.prepareState(); err != nil {
			return nil, err
		}
	}
	return j.run(ctx)
}

// fileJoin is a Join on its way.
type fileJoin struct {
	JoinConfig
	c      *compiled
	state  *state
	inputs [2]*capture.Input
	feed   *feed
	sink   *fileSink
	tasks  int

	explain *explainer // nil: nobody asks what became of a key
	// source, if set, puts something between the feed and the engine (tests).
	source func(*feed) core.Source
}

func newFileJoin(jc JoinConfig) (*fileJoin, error) {
	if jc.A == "-" && jc.B == "-" {
		return nil, fileFault("--b", "--a and --b cannot both be standard input: give one of them as a file")
	}
	if jc.Warn == nil {
		jc.Warn = func(string, ...any) {}
	}
	if err := checkStore(jc.Config); err != nil {
		return nil, err
	}
	c, err := compile(jc.Config, true)
	if err != nil {
		return nil, err
	}
	if jc.Batch > 0 {
		c.core.BatchSize = jc.Batch
	}
	c.core.Drain = !jc.NoDrain
	if jc.Unmatched != "" {
		c.core.WantA, c.core.WantB = true, true
	}
	c.core.Inline, c.core.Hash, c.core.ArenaBytes, c.core.BuildFault = jc.Inline, jc.Hash, jc.ArenaBytes, jc.BuildFault
	j := &fileJoin{JoinConfig: jc, c: c, tasks: jc.Config.TaskCount(jc.Cores)}
	if jc.ArenaBytes == 0 {
		c.core.ArenaBytes = arenaBytes(jc.Config, j.tasks)
	}
	if err := j.checkOutFiles(); err != nil {
		return nil, err
	}
	if j.state, err = lockState(jc.StateDir, "joinbench join"); err != nil {
		return nil, err
	}
	return j, nil
}

// openInputs looks both files through once: format, partitions, identity.
func (j *fileJoin) openInputs(ctx context.Context) error {
	topics := []string{j.Config.A.Topic, j.Config.B.Topic}
	for s, path := range []string{j.A, j.B} {
		topic := topics[s]
		if topic == "" {
			topic = string("ab"[s])
		}
		in, err := capture.OpenContext(ctx, capture.OpenOptions{Path: path, Format: j.Format, Topic: topic,
			SpoolDir: j.state.dir, Stdin: j.Stdin})
		if err != nil {
			return err
		}
		j.inputs[s] = in
		for _, out := range j.outFiles() {
			if in.IsFile(out.path) {
				return fileFault(out.flag, fmt.Sprintf("%s %s is an input: give another file for the output", out.flag, out.path))
			}
		}
	}
	return j.checkStats()
}

// checkStats makes sure that the counters can be written: that comes last, perhaps after hours.
func (j *fileJoin) checkStats() error {
	if j.Stats == "" || j.Stats == "-" {
		return nil
	}
	f, err := os.OpenFile(j.Stats, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("--stats: %w", err)
	}
	return f.Close()
}

type outFile struct{ flag, path string }

// outFiles are the files that the run writes.
func (j *fileJoin) outFiles() []outFile {
	var out []outFile
	for _, f := range []outFile{{"--out", j.Out}, {"--late", j.Late}, {"--dead", j.Dead}, {"--unmatched", j.Unmatched}, {"--stats", j.Stats}} {
		if f.path != "" && f.path != "-" {
			out = append(out, f)
		}
	}
	return out
}

// checkOutFiles refuses one file for two outputs: each would overwrite the other's lines.
func (j *fileJoin) checkOutFiles() error {
	files := j.outFiles()
	for i, f := range files {
		for _, g := range files[:i] {
			if sameFile(f.path, g.path) {
				return fileFault(f.flag, fmt.Sprintf("%s and %s are both %s: give each a file of its own", g.flag, f.flag, f.path))
			}
		}
	}
	return nil
}

func fileFault(flag, message string) error {
	return &config.Error{Faults: []config.Fault{{Key: flag, Message: message}}}
}

// sameFile says whether two paths would be one regular file. Devices may take several outputs.
func sameFile(a, b string) bool {
	fa, errA := os.Stat(a)
	fb, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return fa.Mode().IsRegular() && os.SameFile(fa, fb)
	}
	pa, errPA := filepath.Abs(a)
	pb, errPB := filepath.Abs(b)
	return errPA == nil && errPB == nil && pa == pb
}

// runMark is kept beside the state: whose state it is.
type runMark struct {
	A, B   capture.Identity
	Config uint64 // hash of what decides the results
	Tasks  int
}

// prepareState opens the databases of an unfinished run of the same files, or makes new ones.
func (j *fileJoin) prepareState() error {
	mark := runMark{A: j.inputs[0].Identity(), B: j.inputs[1].Identity(), Config: j.fingerprint(), Tasks: j.tasks}
	var have runMark
	marked, err := j.state.readMark(&have)
	if err != nil || !marked && j.state.hasTasks() || marked && !j.state.fits(have.Tasks) {
		return fmt.Errorf("%s holds a state that no join made: give another directory", j.state.dir)
	}
	if have.Tasks > 0 && j.state.hasTasks() {
		if resume, err := j.resumable(have, mark); err != nil || resume {
			return err
		}
	}
	if err := j.state.begin(marked, mark); err != nil {
		return err
	}
	return j.state.openStores(j.tasks, j.Config)
}

// resumable opens the databases if they hold an unfinished run of the same files; a finished one starts anew.
func (j *fileJoin) resumable(have, mark runMark) (bool, error) {
	tasks := have.Tasks
	if have != mark { // then the question is only whether it is drained; nor is the mark's number to be trusted
		tasks = 1
	}
	if err := j.state.openStores(tasks, j.Config); err != nil {
		return false, err
	}
	done, err := buckets.Drained(j.state.stores[0])
	switch {
	case err != nil || done:
		return false, err
	case have.A != mark.A || have.B != mark.B:
		return false, fmt.Errorf("%s holds an unfinished run of other files: give those to finish it, or remove the directory to start anew", j.state.dir)
	case have != mark:
		return false, fmt.Errorf("%s holds an unfinished run with another configuration or other flags: give the same to finish it, or remove the directory to start anew", j.state.dir)
	}
	if j.Out == "" || j.Out == "-" {
		j.Warn("resuming an unfinished run: what it printed before is not printed again; of its last batch some lines may come twice (give --out to have them cut back)")
	}
	return true, nil
}

// fingerprint hashes what decides the results or the layout of the state. A limit that has ended a run may be raised.
func (j *fileJoin) fingerprint() uint64 {
	h := fnv.New64a()
	for _, v := range j.Config.Values() {
		switch v.Key {
		case "state.dir", "state.memory", "state.filter", "state.sync", "state.tasks", "max_pending":
		default:
			_, _ = fmt.Fprintf(h, "%s=%s\n", v.Key, v.Text)
		}
	}
	// An output that is asked for later would lack what came before.
	_, _ = fmt.Fprintf(h, "drain=%v late=%v dead=%v unmatched=%v format=%v\n", !j.NoDrain, j.Late != "", j.Dead != "", j.Unmatched != "", j.Format)
	return h.Sum64()
}

// cursorReader adapts a capture.Cursor.
type cursorReader struct{ *capture.Cursor }

func (c cursorReader) placeAfter(i int) int64 { return int64(c.PositionAfter(i)) }

func (j *fileJoin) run(ctx context.Context) (*results.Counters, error) {
	var parts [2][]core.Partition
	total := int64(0)
	for s, in := range j.inputs {
		for _, id := range in.Partitions() {
			parts[s] = append(parts[s], core.Partition{ID: id, Timeless: id < 0})
		}
		total += in.Lines()
	}
	j.feed = newFeed(ctx, j.c.spec, parts, func(side core.Side, part int, place int64) (reader, error) {
		return cursorReader{j.inputs[side].NewCursor(parts[side][part].ID, capture.Position(place))}, nil
	}, false, j.Late != "" || j.Dead != "" || j.Unmatched != "" || j.explain != nil)
	j.sink = newFileSink(j)
	var source core.Source = j.feed
	if j.source != nil {
		source = j.source(j.feed)
	}
	var sink core.Sink = j.sink
	if j.explain != nil {
		source, sink = j.explain.between(j)
	}
	if err := j.state.startWith(j.Engine, j.tasks, j.c, source, sink); err != nil {
		return nil, err
	}
	e := j.state.engine
	if j.Started != nil {
		j.Started()
	}
	if p := j.Progress; p != nil {
		p.Total.Store(total)
		p.phase("join")
		e.Observe = p.update
	}
	if err := e.Run(ctx); err != nil {
		return nil, err
	}
	if !e.Finished() && !j.NoDrain {
		return nil, errors.New("the join stopped before the end of its input: please report this")
	}
	if err := e.Quiesce(); err != nil {
		return nil, err
	}
	if err := j.sink.finish(); err != nil {
		return nil, err
	}
	if !j.NoDrain {
		if err := e.MarkDrained(); err != nil {
			return nil, err
		}
	}
	c := counters(e, j.c, j.sink.outputs)
	return &c, nil
}

// close stops and closes everything, in the order in which things use each other.
func (j *fileJoin) close() error {
	var errs []error
	if j.feed != nil {
		j.feed.Close()
	}
	errs = append(errs, j.state.closeStores()) // before the outputs: a helper may be at syncing them
	if j.sink != nil {
		errs = append(errs, j.sink.close())
	}
	errs = append(errs, j.state.close())
	for _, in := range j.inputs {
		if in != nil {
			errs = append(errs, in.Close())
		}
	}
	return errors.Join(errs...)
}
