package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"joinbench/config"
	"joinbench/core"
	"joinbench/results"
)

// armOrder is what the parent says to an arm's process: JSON, one a line. The first is the setup.
type armOrder struct {
	Setup *armSetup `json:"setup,omitempty"`
	// Until lets it join until so many B were read; then it stands still and says so. A number beyond the last B lets it
	// come to its end, where it gives its record.
	Until int64 `json:"until,omitempty"`
	// Report asks for the record of what there is so far. It goes on standing still.
	Report bool `json:"report,omitempty"`
}

// toEnd is the Until of an arm that does not stop any more.
const toEnd = math.MaxInt64

// armSetup is the run of an arm.
type armSetup struct {
	Arm     Arm
	Profile string // YAML, complete
	Name    string // of the profile
	Summary bool
	Dir     string // of the state
	Resume  bool
}

// armNews is what an arm's process says: JSON, one a line.
type armNews struct {
	Held   *armReading     `json:"held,omitempty"`
	Record json.RawMessage `json:"record,omitempty"`
}

// armReading is where an arm stands, counted from its beginning.
type armReading struct {
	Workload       string // fingerprint
	B, Sent        int64  // B read, and to be read in all
	Probes, Stored uint64
	AskNs, StoreNs int64 // of the tasks' own time
	Lookups        uint64
	Pending        int64
	// ReadyNs is how long it took from the start of the process until the first B were joined, less what measuring the
	// unit took.
	ReadyNs int64
}

// RunArm is the process of one arm: it runs what the orders say and tells its news. It returns when the run has ended and
// its record is told, or, with an error, when it has failed or nobody gives orders any more.
func RunArm(ctx context.Context, orders io.Reader, news io.Writer, engines Engines, version results.Tool, started time.Time) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	link := newArmLink(ctx, orders, news, cancel)
	setup, err := link.setup()
	if err != nil {
		return err
	}
	profile, err := config.ParseProfile([]byte(setup.Profile), "the arm's profile")
	if err != nil {
		return err
	}
	if err := profile.Validate(); err != nil {
		return err
	}
	bc := BenchConfig{Profile: profile, Name: setup.Name, Summary: setup.Summary, Resume: setup.Resume, Version: version,
		Started: started, limitB: setup.Arm.Limit, unchecked: setup.Arm.Name == armNull}
	if setup.Resume {
		link.until = toEnd
	}
	bc.hold = link
	if setup.Arm.onState() {
		bc.Dir = setup.Dir
	} else if bc.Engine = engines[setup.Arm.Name]; bc.Engine == nil {
		return fmt.Errorf("arm %s: this program has no engine of that name", setup.Arm.Name)
	}
	rec, err := Bench(ctx, bc)
	if rec == nil {
		return err
	}
	return errors.Join(link.record(rec), err)
}

// armLink is the arm's end of the connection to its parent, and the hold of its run. All but the reading of orders belongs
// to one goroutine: at first RunArm's, then the engine's, which is the same.
type armLink struct {
	ctx    context.Context
	orders chan armOrder
	out    *json.Encoder
	until  int64         // B: stand still when so many were read
	stood  bool          // once
	ready  time.Duration // from the start of the process to the end of the first batch with B, less measuring the unit
}

// newArmLink starts to read orders. When there are none any more, nobody waits for news: cancel ends the run.
func newArmLink(ctx context.Context, in io.Reader, out io.Writer, cancel func()) *armLink {
	l := &armLink{ctx: ctx, orders: make(chan armOrder), out: json.NewEncoder(out)}
	go func() { // ends with the process at the latest: nothing interrupts the reading
		defer cancel()
		dec := json.NewDecoder(in)
		for {
			var o armOrder
			if dec.Decode(&o) != nil {
				return
			}
			select {
			case l.orders <- o:
			case <-ctx.Done():
				return
			}
		}
	}()
	return l
}

func (l *armLink) setup() (*armSetup, error) {
	select {
	case o := <-l.orders:
		if o.Setup == nil {
			return nil, errors.New("the first order to an arm is no setup")
		}
		return o.Setup, nil
	case <-l.ctx.Done():
		return nil, l.ctx.Err()
	}
}

func (l *armLink) record(rec *results.Record) error {
	data, err := results.Marshal(rec)
	if err == nil {
		var line bytes.Buffer
		if err = json.Compact(&line, data); err == nil {
			err = l.out.Encode(armNews{Record: line.Bytes()})
		}
	}
	return err
}

// batch stands still after a batch if it is time: the first time when B have begun to ask and every filter is there.
func (l *armLink) batch(m *meter, e *core.Engine) error {
	if l.ready == 0 && m.last.probes > m.begin.probes {
		l.ready = time.Since(m.b.Started) - m.b.unitTook
	}
	if m.phase != "measure" && m.phase != "drain" || m.last.read[core.B] < uint64(l.until) && l.stood || l.until == toEnd {
		return nil
	}
	start := time.Now()
	defer func() { m.pause(start, time.Now()) }()
	// What helpers do belongs to the slice that gave it to them, not to that of another arm.
	if err := e.Quiesce(); err != nil {
		return err
	}
	l.stood = true
	if err := l.out.Encode(armNews{Held: l.reading(m, e)}); err != nil {
		return err
	}
	for {
		select {
		case <-l.ctx.Done():
			return l.ctx.Err()
		case o := <-l.orders:
			if o.Report {
				m.finish(e)
				if err := l.record(m.b.report(e, m.mem.Peak(), context.Canceled)); err != nil {
					return err
				}
				continue
			}
			l.until = o.Until
			return nil
		}
	}
}

// reading is where the run stands.
func (l *armLink) reading(m *meter, e *core.Engine) *armReading {
	c := e.Counters()
	return &armReading{
		Workload: m.b.gen.gen.Fingerprint(), B: int64(c.Read(core.B)), Sent: m.b.gen.sent(core.B),
		Probes: c.Tasks.Probes, Stored: c.Tasks.Stored, AskNs: int64(c.Tasks.AskTime), StoreNs: int64(c.Tasks.StoreTime),
		Lookups: c.Tasks.Lookups, Pending: int64(e.Levels(false).Pending), ReadyNs: int64(l.ready),
	}
}
