package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"joinbench/buckets"
	"joinbench/config"
	"joinbench/core"
	"joinbench/loadgen"
	"joinbench/projection"
	"joinbench/results"
)

// BenchConfig is one run of the benchmark.
type BenchConfig struct {
	Profile  *config.Profile // validated
	Name     string          // of the profile, for the record
	Dir      string          // data directory, "" for a temporary one
	Resume   bool            // go on with the unfinished run in Dir
	Duration time.Duration   // of the measured phase, 0 for all of its records
	Pace     *Pace           // an open loop; nil: a closed one, as fast as it goes
	Summary  bool
	// CPUOnly leaves out what times are divided by and held against: the machine's unit, and the generator's ceiling. The run ends after the
	// profile's TimedEvents.
	CPUOnly  bool
	Argv     []string
	Progress *Progress
	// Thresholds that the record is held against.
	Thresholds []*results.Limit
	// Save, if set, keeps the record, before the state is marked as finished: a run that is killed in between, or whose
	// record finds no place, is resumed and gives its record then.
	Save    func(*results.Record) error
	Version results.Tool // of the program; what pipeline knows itself is filled in
	Started time.Time    // of the process, from where a recovery is timed; zero: when Bench is called
	// Engine, if set, makes what joins instead of the tasks on RocksDB, which leave no state then: Dir stays empty.
	Engine func(*core.Config) core.Joiner

	limitB    int64    // the run ends with this B, as if no more were sent; 0: all of the profile's
	unchecked bool     // the engine joins nothing, so there is no truth to hold it against
	hold      *armLink // may stand still between batches
}

// Bench runs the profile's workload through the join and holds the result against the truth. An error means that there
// is no record; a run that failed, was interrupted or was wrong has one, and its verdict says so.
func Bench(ctx context.Context, bc BenchConfig) (*results.Record, error) {
	b, err := newBench(bc)
	if err != nil {
		return nil, bc.advice(nil).readable(err)
	}
	rec, err := b.run(ctx)
	return rec, bc.advice(b.state).readable(errors.Join(err, b.close()))
}

// bench is a run on its way.
type bench struct {
	BenchConfig
	c            *compiled
	gen          *generator
	state        *state
	feed         *feed
	source       *waitingSource // the feed, timed
	sink         *truthSink
	pace         *pacer // what the engine sees of the source in an open loop, else nil
	meter        *meter
	tasks        int
	unit         []float64
	missingPairs int64    // of the truth: see falseNegatives
	ceil         *float64 // B a second that the generator can make, nil if that was not measured
	hooks        hooks

	unitTook time.Duration // by unit and ceiling: what a restart is timed without

	resumed bool      // an unfinished run goes on
	opening time.Time // when the databases began to open
	mark    benchMark // of the state
}

func newBench(bc BenchConfig) (*bench, error) {
	if bc.Started.IsZero() {
		bc.Started = time.Now()
	}
	if bc.Progress == nil {
		bc.Progress = &Progress{}
	}
	bc.Progress.phase("prepare")
	if err := checkStore(bc.Profile.Join); err != nil {
		return nil, err
	}
	c, err := compile(bc.Profile.Join, true)
	if err != nil {
		return nil, err
	}
	c.core.Summary, c.core.SwapAfter = bc.Summary, bc.Profile.Load.SwapAfter
	b := &bench{BenchConfig: bc, c: c, tasks: bc.Profile.Join.TaskCount(1)}
	c.core.BatchSize = b.batchSize()
	c.core.ArenaBytes = arenaBytes(bc.Profile.Join, b.tasks)
	if b.gen, err = newGenerator(bc.Profile); err != nil {
		return nil, err
	}
	if err := b.checkTruth(); err != nil {
		return nil, err
	}
	if b.state, err = lockState(bc.Dir, "joinbench run"); err != nil {
		return nil, err
	}
	if timed := bc.Profile.Load.TimedEvents; bc.CPUOnly && timed > 0 {
		b.limitB = bc.Profile.Load.Warm + timed
	}
	if b.limitB > 0 {
		b.gen.limitB(b.limitB)
	}
	if bc.Engine != nil {
		return b, nil
	}
	if err := b.prepareState(); err != nil {
		return nil, errors.Join(err, b.state.close())
	}
	return b, nil
}

// prepareState makes new databases, or with Resume opens those of the unfinished run.
func (b *bench) prepareState() error {
	b.mark = benchMark{Workload: b.gen.gen.Fingerprint(), Config: b.fingerprint(), Tasks: b.tasks, Endless: b.Duration > 0,
		Drops: b.Pace != nil && b.Pace.CatchUp == Drop}
	if b.limitB > 0 {
		b.mark.Cut = b.gen.limit
	}
	b.opening = time.Now()
	var have benchMark
	marked, err := b.state.readMark(&have)
	if err != nil || !marked && b.state.hasTasks() || marked && !b.state.fits(have.Tasks) {
		return fmt.Errorf("%s holds a state that no run made: give another directory", b.state.dir)
	}
	if have.Tasks > 0 && b.state.hasTasks() {
		if b.resumed, err = b.unfinished(&have); err != nil {
			return err
		}
		if b.resumed {
			b.mark = have
		}
	} else if b.Resume {
		return fmt.Errorf("%s holds no run to resume: leave out --resume to start one there", b.state.dir)
	}
	if b.mark.Endless {
		b.gen.goOn()
	}
	if b.mark.Cut != [2]int64{} {
		b.gen.endAt(b.mark.Cut)
	}
	if b.resumed {
		return nil
	}
	if err := b.state.begin(marked, b.mark); err != nil {
		return err
	}
	return b.state.openStores(b.tasks, b.Profile.Join)
}

// benchMark is kept beside the state: whose state it is.
type benchMark struct {
	Workload string
	Config   uint64
	Tasks    int
	Endless  bool     `json:",omitempty"` // the streams go on behind the profile's records
	Drops    bool     `json:",omitempty"` // B that were late were dropped: nobody knows which
	Cut      [2]int64 `json:",omitzero"`  // where they were ended, by side: what was drained then is closed
}

func (b *bench) unfinished(have *benchMark) (bool, error) {
	m := &b.mark
	same := have.Workload == m.Workload && have.Config == m.Config && have.Tasks == m.Tasks
	tasks := have.Tasks
	if !same { // then the question is only whether it is drained; nor is the mark's number to be trusted
		tasks = 1
	}
	if err := b.state.openStores(tasks, b.Profile.Join); err != nil {
		return false, err
	}
	done, err := buckets.Drained(b.state.stores[0])
	switch {
	case err != nil:
		return false, err
	case !done && have.Drops:
		return false, fmt.Errorf("%s holds an unfinished run that dropped B, and which is not kept: remove the directory to start anew", b.state.dir)
	case done && b.Resume:
		return false, fmt.Errorf("the run in %s has finished: leave out --resume to start a new one there", b.state.dir)
	case done:
		return false, nil
	case !b.Resume:
		return false, fmt.Errorf("%s holds an unfinished run: add --resume to finish it, or remove the directory to start anew", b.state.dir)
	case !same:
		return false, fmt.Errorf("%s holds an unfinished run with another workload or configuration: give that one to finish it, or remove the directory to start anew", b.state.dir)
	case have.Endless && have.Cut == [2]int64{} && b.Duration == 0:
		return false, fmt.Errorf("the unfinished run in %s has no end of its own: add --duration to finish it, or remove the directory to start anew", b.state.dir)
	}
	return true, nil
}

// cut ends the streams. The mark says so before anything is joined that comes of it: a run that is killed while it drains
// ends there too when it is resumed, since what was closed takes no more A.
func (b *bench) cut() error {
	b.mark.Cut = b.gen.cut()
	return b.state.writeMark(b.mark)
}

// fingerprint hashes the configuration that decides results or layout.
func (b *bench) fingerprint() uint64 {
	h := fnv.New64a()
	for _, v := range b.Profile.Join.Values() {
		switch v.Key {
		case "join.state.dir", "join.state.memory", "join.state.filter", "join.state.sync", "join.state.tasks":
		default:
			_, _ = fmt.Fprintf(h, "%s=%s\n", v.Key, v.Text)
		}
	}
	return h.Sum64()
}

func (b *bench) run(ctx context.Context) (*results.Record, error) {
	started := time.Now()
	mem := results.StartMemSampler(0)
	defer mem.Stop()
	if !b.resumed && !b.CPUOnly { // else the unit waits: whoever resumes wants the join back
		b.Progress.phase("unit")
		if err := b.measureUnit(mem); err != nil {
			return nil, err
		}
		b.Progress.phase("ceiling")
		before := time.Now()
		var err error
		if b.ceil, err = b.measureCeiling(ctx, mem); err != nil {
			return nil, err
		}
		b.unitTook += time.Since(before)
		b.Progress.phase("prepare")
	}
	truth, err := truthOf(b.gen, b.joinRules())
	if err != nil {
		return nil, err
	}
	b.sink = newTruthSink(b.gen.gen, truth, b.Dir, b.c.sync != buckets.SyncNone)
	if b.hooks.roll > 0 {
		b.sink.roll = b.hooks.roll
	}
	source := b.newSource(context.WithoutCancel(ctx))
	if b.resumed {
		b.feed.turns.loosen()
		b.c.core.BatchSize = min(b.c.core.BatchSize, recoveryBatch)
	}
	if err := b.state.startWith(b.Engine, b.tasks, b.c, source, b.hookedSink()); err != nil {
		return nil, err
	}
	b.meter = newMeter(b, started, mem)
	e := b.state.engine
	e.Observe = b.meter.observe
	if b.pace != nil {
		b.pace.still = func() error { return b.meter.still(e) }
	}
	runErr := e.Run(ctx)
	switch {
	case runErr == nil:
		b.meter.finish(e)
		runErr = e.Quiesce()
	default:
		b.meter.finish(e)
	}
	peak := mem.Peak()
	if (b.hold == nil || runErr == nil) && !b.CPUOnly { // else somebody waits for the arms to end
		if err := b.measureUnit(mem); err != nil {
			return nil, err
		}
	}
	rec := b.report(e, peak, runErr)
	if b.Save != nil {
		if err := b.Save(rec); err != nil {
			return rec, nil // the caller knows; the run can be resumed for its record
		}
	}
	if runErr == nil {
		return rec, e.MarkDrained()
	}
	return rec, nil
}

// batchSize is the profile's for each task: a stage that sees fewer B at once finds its filter colder.
func (b *bench) batchSize() int { return b.Profile.Load.Batch * b.tasks }

// recovered ends what the run does differently while filters are missing.
func (b *bench) recovered() {
	b.feed.turns.tighten()
	b.c.core.BatchSize = b.batchSize()
}

// waitingSource measures how long the engine waits for records. All of its calls come from the engine's goroutine.
type waitingSource struct {
	*feed
	waited time.Duration
	bytesA int64 // keys and bodies of the A that were handed over
}

func (w *waitingSource) Next(side core.Side, part int) (*core.Chunk, error) {
	start := time.Now()
	defer func() { w.waited += time.Since(start) }()
	c, err := w.feed.Next(side, part)
	if c != nil && side == core.A {
		w.bytesA += int64(len(c.Keys) + len(c.Body))
	}
	return c, err
}

// measureUnit measures the unit, before and after the run: the median of both stands for the machine's mood between.
func (b *bench) measureUnit(mem *results.MemSampler) error {
	start := time.Now()
	mem.Pause()
	defer func() { mem.Resume(); b.unitTook += time.Since(start) }()
	rounds, err := measureUnit(b.gen.gen, b.Profile.Load.Warm)
	b.unit = append(b.unit, rounds...)
	return err
}

// report puts the record together.
func (b *bench) report(e *core.Engine, peak results.Memory, runErr error) *results.Record {
	m := b.meter
	var found []results.Finding
	rec := &results.Record{Environment: results.CollectEnvironment(b.state.dir)}
	rec.Tool = b.Version
	rec.Tool.RocksDB, rec.Tool.RocksDBAssertions = buckets.Build()
	rec.Tool.JSONEngine = projection.Engine()
	rec.Run = results.Run{ID: results.NewRunID(), Profile: b.Name, StartedAt: m.started.UTC().Format(time.RFC3339),
		EndedAt: time.Now().UTC().Format(time.RFC3339), Complete: runErr == nil, Argv: b.Argv, Seed: b.Profile.Load.Seed,
		WorkloadFingerprint: b.gen.gen.Fingerprint(), Tasks: b.tasks}
	rec.Run.Config, rec.Run.ConfigOrigin = configOf(b.Profile)

	rec.Join.Counters = counters(e, b.c, b.sink.outputs)
	if !b.unchecked {
		rec.Join.Truth = b.truth(e, runErr == nil)
		if b.c.core.Probe == core.ProbeImmediate {
			found = append(found, results.Finding{Status: results.StatusWarning, Reason: fmt.Sprintf(
				"probe: immediate is best effort: %d pairs were missed, whose A came after their B had asked", rec.Join.Missed)})
		}
		rec.Join.Filter.FalseNegatives = b.falseNegatives(rec)
		rec.Join.PerBucket = perBucket(e)
		rec.Join.Filter.BytesPerRow = ratio(m.filterBytes, m.sealedRows)
	}
	rec.Join.Derive()
	rec.Phases, rec.Intervals, rec.Drops = m.phases, m.samples.intervals(), m.drops(e)
	rec.Repetitions = m.samples.repetitions("measure")
	rec.Steady, rec.Recovery = m.steady(), m.recovery.record()
	stalls := e.Stalls()
	if rec.Steady != nil {
		rec.Steady.WriteStalls = new(stalls.Delays + stalls.Stops)
	}
	rec.SteadyState = m.steadyState()
	var err error
	if rec.Rotation, err = m.rotation.record(m.to.sealed - m.from.sealed); err != nil {
		found = append(found, results.Finding{Status: results.StatusFailed, Reason: err.Error()})
	}
	rec.Load = m.load()
	rec.Storage = m.storage(&stalls, b.source.bytesA, rec.Environment.FS)
	if rec.Latency, err = m.latency(); err != nil {
		found = append(found, results.Finding{Status: results.StatusFailed, Reason: err.Error()})
	}
	rec.Storage.CFDrops, rec.Storage.CFDropMaxNs = rec.Join.Buckets.DroppedTotal, rec.Join.Buckets.DropMaxNs
	rec.Cost = m.cost(e, b.feed, rec.Drops)
	if len(b.unit) > 0 {
		rec.Cost.UnitNs = results.Known(median(b.unit))
	}
	rec.Cost.SetMemory(peak)
	switch {
	case runErr == nil:
	case interrupted(runErr):
		found = append(found, results.Finding{Status: results.StatusInterrupted, Reason: "interrupted"})
	default:
		found = append(found, results.Finding{Status: results.StatusFailed, Reason: b.advice(b.state).readable(runErr).Error()})
	}
	if rec.Tool.RocksDBAssertions {
		found = append(found, results.Finding{Status: results.StatusInvalid, Reason: "RocksDB was compiled with assertions: build a release one with `make`"})
	}
	rec.SetThresholds(b.Thresholds)
	rec.Verdict = results.Judge(rec, found...)
	return rec
}

// truth compares the lines of the results with the generator's. Of a run that was cut short it judges the records that were
// joined, and what the watermarks had let go.
func (b *bench) truth(e *core.Engine, complete bool) *results.Truth {
	end := b.gen.ends()
	cut := b.gen.gen.Whole(end[core.A], end[core.B])
	if !complete {
		cut = b.stopped(e)
	}
	v := b.sink.verifier.ResultAt(&cut)
	b.leaveOutDropped(&v, &cut)
	b.missingPairs = v.Pairs.Missing + v.Groups.Missing
	return &results.Truth{Missing: v.Missing, Spurious: v.Spurious, Duplicated: v.Duplicated, ExpectedMatches: v.Expected,
		ExpectedUnmatchedA: v.NullsA.Expected, ExpectedUnmatchedB: v.NullsB.Expected, ExpectedGroups: v.Groups.Expected, Missed: v.Missed,
		SealedPartnerProbes: int64(e.Counters().Tasks.Present)}
}

// stopped is how far a run came that was ended between two batches.
func (b *bench) stopped(e *core.Engine) loadgen.Cut {
	c, wm := b.gen.gen.Config(), e.Watermarks()
	j := b.joinRules()
	cut := loadgen.Cut{ClosedA: wm[core.B] - j.After - j.Grace, EarlyA: wm[core.B] - j.Early - j.Grace, ClosedB: wm[core.A] - j.Before - j.Grace}
	for p := range c.PartitionsA {
		cut.A = append(cut.A, e.Place(core.A, p))
	}
	for p := range c.PartitionsB {
		cut.B = append(cut.B, e.Place(core.B, p))
	}
	return cut
}

// falseNegatives holds every missing pair against the filter: an upper bound. Each filter is also asked for all of its
// keys when it is built, and not used if it denies one.
func (b *bench) falseNegatives(rec *results.Record) int64 {
	if rec.Join.Filter.Kind == "none" || !rec.Run.Complete {
		return 0
	}
	return b.missingPairs
}

// configOf is the effective configuration by dotted key, and where each value came from.
func configOf(p *config.Profile) (json.RawMessage, map[string]string) {
	values, origin := map[string]string{}, map[string]string{}
	for _, v := range p.Values() {
		values[v.Key], origin[v.Key] = v.Text, v.Origin
	}
	data, err := json.Marshal(values)
	if err != nil {
		return nil, origin // strings always marshal
	}
	return data, origin
}

func (b *bench) close() error {
	if b.feed != nil {
		b.feed.Close()
	}
	errs := []error{b.state.closeStores()} // before the pairs: a helper may be at syncing them
	if b.sink != nil {
		errs = append(errs, b.sink.close())
	}
	return errors.Join(append(errs, b.state.close())...)
}
