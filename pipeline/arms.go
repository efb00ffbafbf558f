package pipeline

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"joinbench/config"
	"joinbench/results"
)

// ArmsConfig is one run of several arms on the same records.
type ArmsConfig struct {
	Profile  *config.Profile // validated
	Name     string          // of the profile
	Arms     []Arm           // at least one; the record is that of the first
	Summary  bool
	Dir      string // where the arms' states lie while they run, "" for a temporary place
	Argv     []string
	Progress *Progress
	// Thresholds that the record with all arms is held against.
	Thresholds []*results.Limit
	// Save, if set, keeps the record.
	Save func(*results.Record) error
	// Command starts this program so that it calls RunArm with the files 3 and 4 and the arm's engine.
	Command func(arm string) *exec.Cmd
	// Available is the memory that arms may take, 0 to ask the system.
	Available int64
}

// armSlices is in how many pieces the measured phase is cut. What comes after them is joined too: there arms on a state
// have been killed.
const armSlices = 10

// patience is how long an arm that is told to end may take, before it is killed: a batch without filters takes seconds.
const patience = 30 * time.Second

// armRun is one arm on its way.
type armRun struct {
	Arm
	proc        *armProc
	first, last *armReading     // where measuring began, and where it is
	slices      []*float64      // ns a B
	slicesA     []*float64      // ns a stored A
	turns       []int64         // its place in the order of each slice, from 1
	killed      *results.Record // of the life that was killed
	record      *results.Record // of the last life
	note        string
}

// armsRun is a run of arms on its way.
type armsRun struct {
	ArmsConfig
	runs    []*armRun
	dir     string
	order   *rand.Rand
	started time.Time
	alone   string // why the arms run one after another, "" if side by side
}

// RunArms runs each arm in a process of its own and puts their records together. One of them works at a time: each is
// prepared; then the measured phase is cut into slices, and for each slice the arms take their turns in an order drawn from
// the seed, so that the moods of the machine meet all alike; then each comes to its end. If they do not fit into memory
// together they run one after another. An arm on our own state is killed between two slices and resumed.
//
// An error means that there is no record. A run that failed or was interrupted has one as soon as the first arm has
// something to tell.
func RunArms(ctx context.Context, ac ArmsConfig) (*results.Record, error) {
	r := &armsRun{ArmsConfig: ac, started: time.Now(), order: rand.New(rand.NewPCG(ac.Profile.Load.Seed, uint64(len(ac.Arms))))}
	if r.Progress == nil {
		r.Progress = &Progress{}
	}
	for _, a := range ac.Arms {
		r.runs = append(r.runs, &armRun{Arm: a, note: a.note(ac.Profile.Load.BEvents)})
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	if err := r.planMemory(); err != nil {
		return nil, err
	}
	if ac.Dir != "" {
		if err := os.MkdirAll(ac.Dir, 0o755); err != nil {
			return nil, err
		}
	}
	var err error
	if r.dir, err = os.MkdirTemp(ac.Dir, "joinbench-arms-"); err != nil {
		return nil, fmt.Errorf("no room for the arms' states: %w (give a directory with --dir)", err)
	}
	defer os.RemoveAll(r.dir)
	runErr := r.run(ctx)
	r.abandon()
	rec := r.merged(runErr)
	if rec == nil {
		return nil, runErr
	}
	if ac.Save != nil {
		_ = ac.Save(rec) // the caller knows
	}
	return rec, nil
}

// check says what each arm would say.
func (r *armsRun) check() error {
	for _, a := range r.runs {
		p, err := a.profile(r.Profile)
		if err != nil {
			return err
		}
		if _, err := newGenerator(p); err != nil {
			return err
		}
	}
	return nil
}

func (r *armsRun) run(ctx context.Context) error {
	if r.alone != "" {
		for _, a := range r.runs {
			if err := r.byTurns(ctx, []*armRun{a}); err != nil {
				return err
			}
		}
		return nil
	}
	return r.byTurns(ctx, r.runs)
}

// byTurns runs some arms from their beginning to their end, one slice of each after another.
func (r *armsRun) byTurns(ctx context.Context, arms []*armRun) error {
	for _, a := range arms {
		r.Progress.phase("prepare " + a.Name)
		if err := r.prepare(ctx, a); err != nil {
			return err
		}
	}
	for i := range armSlices {
		for turn, at := range r.order.Perm(len(arms)) {
			arms[at].turns = append(arms[at].turns, int64(turn+1))
			r.Progress.phase(fmt.Sprintf("slice %d of %d: %s", i+1, armSlices, arms[at].Name))
			if err := r.slice(ctx, arms[at], i); err != nil {
				return err
			}
		}
	}
	for _, a := range arms {
		r.Progress.phase("finish " + a.Name)
		if err := r.finish(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// start starts an arm's process and gives it its setup.
func (r *armsRun) start(a *armRun, resume bool) error {
	profile, err := a.profile(r.Profile)
	if err != nil {
		return err
	}
	text, err := profileText(profile)
	if err != nil {
		return err
	}
	if a.proc, err = startArm(a.Arm, r.Command(a.Name)); err != nil {
		return err
	}
	return a.proc.tell(armOrder{Setup: &armSetup{Arm: a.Arm, Profile: text, Name: r.Name, Summary: r.Summary,
		Dir: filepath.Join(r.dir, a.Name), Resume: resume}})
}

// prepare brings an arm to where B ask, and has it stand still there.
func (r *armsRun) prepare(ctx context.Context, a *armRun) error {
	if err := r.start(a, false); err != nil {
		return err
	}
	at, err := a.proc.held(ctx)
	if err != nil {
		return err
	}
	a.first, a.last = at, at
	for _, other := range r.runs {
		if other.first != nil && other.first.Workload != at.Workload {
			return fmt.Errorf("arm %s has another workload (%s) than %s (%s)", a.Name, at.Workload, other.Name, other.first.Workload)
		}
	}
	r.Progress.Total.Add(at.Sent)
	return nil
}

// slice lets an arm join its part of the B. One that has so few that a batch is more than a slice has nothing to do in some.
func (r *armsRun) slice(ctx context.Context, a *armRun, i int) error {
	until := a.first.B + (a.first.Sent-a.first.B)*int64(i+1)/(armSlices+1)
	if until <= a.last.B {
		a.slices, a.slicesA = append(a.slices, nil), append(a.slicesA, nil)
		return nil
	}
	if err := a.proc.tell(armOrder{Until: until}); err != nil {
		return err
	}
	at, err := a.proc.held(ctx)
	if err != nil {
		return err
	}
	if at.AskNs > a.last.AskNs {
		a.slices = append(a.slices, ratio(float64(at.AskNs-a.last.AskNs), float64(at.Probes-a.last.Probes)))
	} else {
		a.slices = append(a.slices, nil)
	}
	a.slicesA = append(a.slicesA, ratio(float64(at.StoreNs-a.last.StoreNs), float64(at.Stored-a.last.Stored)))
	r.Progress.B.Add(at.B - a.last.B)
	r.Progress.Probes.Add(int64(at.Probes - a.last.Probes))
	a.last = at
	return nil
}

// finish brings an arm to its end: one on our own state by kill -9 and a second life.
func (r *armsRun) finish(ctx context.Context, a *armRun) error {
	if a.onState() {
		if err := r.killAndResume(ctx, a); err != nil {
			return err
		}
	} else if err := a.proc.tell(armOrder{Until: toEnd}); err != nil {
		return err
	}
	rec, err := a.proc.record(ctx)
	if err != nil {
		return err
	}
	a.record = rec
	err = a.proc.wait()
	a.proc = nil
	if err != nil {
		return fmt.Errorf("arm %s told its record and then failed: %w", a.Name, err)
	}
	return os.RemoveAll(filepath.Join(r.dir, a.Name))
}

// killAndResume takes down what the arm measured, kills it, and starts it again on what it left.
func (r *armsRun) killAndResume(ctx context.Context, a *armRun) error {
	if err := a.proc.tell(armOrder{Report: true}); err != nil {
		return err
	}
	rec, err := a.proc.record(ctx)
	if err != nil {
		return err
	}
	a.killed = rec
	a.proc.kill()
	return r.start(a, true)
}

// abandon ends what still runs. After an interrupt, or when another arm has failed, each is asked for what it has so far.
func (r *armsRun) abandon() {
	for _, a := range r.runs {
		if a.proc == nil {
			continue
		}
		if rec := a.proc.interrupt(patience); rec != nil {
			a.record = rec
		}
		a.proc.kill()
		a.proc = nil
	}
}

// profileText is a profile as its text.
func profileText(p *config.Profile) (string, error) {
	var text strings.Builder
	err := p.Print(&text)
	return text.String(), err
}
