package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"joinbench/baseline"
	"joinbench/config"
	"joinbench/core"
	"joinbench/results"
)

// armVariable in the environment makes this test binary the process of an arm.
const armVariable = "TEST_SERVE_ARM"

func serveArm() (code int) {
	engines := Engines{"memory": func(c *core.Config) core.Joiner { return baseline.NewMemory(c) }}
	if err := RunArm(context.Background(), os.NewFile(3, "orders"), os.NewFile(4, "news"), engines, results.Tool{}, time.Now()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func armCommand(string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), armVariable+"=1")
	return cmd
}

const armProfileText = `join:
  a: {topic: orders, key: $.payment_ref, time: $.ts, keep: [$.order_id]}
  b: {topic: payments, key: "@key", keep: [$.status]}
  window: {before: 0s, after: 10m}
  grace: 1s
  state: {buckets: 8, sync: none, memory: 16MiB}
load: {pending: 5k, b_events: 12k, match_rate: 0.05, partitions: 2, batch: 256, seed: 5}
`

func armProfile(t *testing.T) *config.Profile {
	t.Helper()
	p, err := config.ParseProfile([]byte(armProfileText), "test")
	if err == nil {
		err = p.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestArmsAlone: arms that do not fit into memory together run one after another, all the same, and the record says so.
func TestArmsAlone(t *testing.T) {
	p := armProfile(t)
	arms, err := ParseArms("fuse8,memory")
	if err != nil {
		t.Fatal(err)
	}
	enough := max(arms[0].needs(p), arms[1].needs(p))
	for _, c := range []struct {
		available int64
		alone     bool
	}{{enough, true}, {2 * enough, false}} {
		rec, err := RunArms(context.Background(), ArmsConfig{Profile: p, Name: "test", Arms: arms, Summary: true, Command: armCommand, Available: c.available})
		if err != nil {
			t.Fatal(err)
		}
		said := slices.ContainsFunc(rec.Verdict.Warnings, func(w string) bool { return strings.Contains(w, "one after another") })
		if said != c.alone || rec.Verdict.Status != results.StatusOK || !rec.Run.Complete {
			t.Errorf("%d bytes available: verdict %+v", c.available, rec.Verdict)
		}
		for i := range rec.Arms {
			a := &rec.Arms[i]
			if !a.Complete || a.Missing == nil || *a.Missing+*a.Spurious+*a.Duplicated != 0 || a.Matches == 0 || a.NsPerBRatio == nil {
				t.Errorf("%d bytes available: arm %+v", c.available, *a)
			}
			if first := slices.Max(a.Turns) == 1; first != c.alone {
				t.Errorf("%d bytes available: %s had the turns %v", c.available, a.Name, a.Turns)
			}
		}
	}
	_, err = RunArms(context.Background(), ArmsConfig{Profile: p, Arms: arms, Command: armCommand, Available: enough - 1})
	if err == nil || !strings.Contains(err.Error(), "not enough memory") || !strings.Contains(err.Error(), "leave that out of --arms") {
		t.Errorf("what does not fit: %v", err)
	}
}

// TestArmNeeds: a map of whole events needs more than one of projections, and both grow with what waits.
func TestArmNeeds(t *testing.T) {
	p := armProfile(t)
	p.Load.Pending, p.Load.RecordBytes = 5_000_000, 1024
	n := func(name string) int64 { return (&Arm{Name: name}).needs(p) }
	if whole := n("memory"); whole < 7<<30 || whole > 14<<30 {
		t.Errorf("five million events of 1 KB need %d bytes", whole)
	}
	if !(n("null") < n("fuse16") && n("fuse16") < n("memory-projection") && n("memory-projection") < n("memory")) {
		t.Errorf("null %d, fuse16 %d, memory-projection %d, memory %d", n("null"), n("fuse16"), n("memory-projection"), n("memory"))
	}
}

// TestParseArms: limits, defaults, blanks; what is refused is a fault of the configuration.
func TestParseArms(t *testing.T) {
	got, err := ParseArms("fuse16, memory:20k,none,bloom:all")
	want := []Arm{{"fuse16", 0}, {"memory", 20_000}, {"none", 1_000_000}, {"bloom", 0}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v (%v), want %v", got, err, want)
	}
	for _, text := range []string{"", "fuse", "fuse16,,none", "none:-1", "none:1.5", "none:", "null,null"} {
		var conf *config.Error
		if _, err := ParseArms(text); !errors.As(err, &conf) || conf.Faults[0].Key != "--arms" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestArmProfile: an arm changes how the records are joined, never which they are.
func TestArmProfile(t *testing.T) {
	p := armProfile(t)
	p.Join.State.Tasks = 3
	for _, name := range ArmNames() {
		q, err := (&Arm{Name: name}).profile(p)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		changed := []string{}
		for i, v := range q.Values() {
			if o := p.Values()[i]; o.Key != v.Key || o.Text != v.Text {
				changed = append(changed, v.Key+"="+v.Text)
			}
		}
		want := map[string]string{"fuse16": "", "memory": "join.a.store=full,join.state.filter=none", "memory-projection": "join.state.filter=none",
			"null": "join.state.filter=none", "inner": "", "left": "join.type=left", "right": "join.type=right", "outer": "join.type=outer"}
		expected, known := want[name]
		if !known {
			expected = "join.state.filter=" + name
		}
		if got := strings.Join(changed, ","); got != expected {
			t.Errorf("%s changes %q, want %q", name, got, expected)
		}
	}
}

// TestArmsOfTypes: what comes out of one workload by each type of join, each right, and the first the yardstick of what an A
// costs. A type without null rows of A has none that come early.
func TestArmsOfTypes(t *testing.T) {
	p := armProfile(t)
	for _, set := range [][2]string{{"type", "left"}, {"early", "2m"}, {"retract", "true"}, {"load.pending", "2k"}, {"load.ages", "[1m, 4m]"}, {"load.b_rate", "20"}, {"max_spread", "10s"}} {
		if err := p.Set(set[0], set[1], "test"); err != nil {
			t.Fatal(err)
		}
	}
	arms, err := ParseArms("inner,left,right,outer")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range arms {
		q, err := a.profile(p)
		if err != nil || q.Join.Type != a.Name || (q.Join.Early > 0) != (a.Name == "left" || a.Name == "outer") || (q.Join.Early > 0) != q.Join.Retract {
			t.Errorf("%s: type %s, early %v, retract %v, %v", a.Name, q.Join.Type, q.Join.Early, q.Join.Retract, err)
		}
	}
	limits, err := results.ParseThresholds([]string{"arms.left.ns_per_a_ratio<=1000", "arms.left.ns_per_a_ratio<=0.001"})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := RunArms(context.Background(), ArmsConfig{Profile: p, Name: "test", Arms: arms, Summary: true, Command: armCommand, Thresholds: limits})
	if err != nil {
		t.Fatal(err)
	}
	if rec.Verdict.ExitCode != results.ExitThreshold || len(rec.Arms) != len(arms) || len(rec.Thresholds) != 2 || !rec.Thresholds[0].OK || rec.Thresholds[1].OK {
		t.Fatalf("verdict %+v, thresholds %+v", rec.Verdict, rec.Thresholds)
	}
	for i := range rec.Arms {
		a := &rec.Arms[i]
		if !a.Complete || a.Missing == nil || *a.Missing+*a.Spurious+*a.Duplicated != 0 || a.Matches == 0 || a.NsPerA == nil || *a.NsPerA <= 0 {
			t.Errorf("arm %+v", *a)
		}
	}
	_, err = RunArms(context.Background(), ArmsConfig{Profile: p, Arms: []Arm{{Name: "left"}, {Name: "memory"}}, Command: armCommand})
	if err == nil || !strings.Contains(err.Error(), "memory knows inner joins") || !strings.Contains(err.Error(), "not this join's type") {
		t.Errorf("a map for a left join: %v", err)
	}
}

// TestWorkClock: it goes on where it stood still, and tells of any moment what it showed.
func TestWorkClock(t *testing.T) {
	const seed = 3
	r := rand.New(rand.NewPCG(seed, 0))
	var c workClock
	base := time.Now()
	type moment struct {
		real time.Time
		work time.Duration // since base
	}
	var moments []moment
	real, work := base, time.Duration(0)
	for range 50 {
		step := time.Duration(1 + r.Int64N(1000))
		real, work = real.Add(step), work+step
		moments = append(moments, moment{real, work})
		if r.IntN(3) == 0 {
			stop := time.Duration(1 + r.Int64N(1000))
			c.pause(real, real.Add(stop))
			moments = append(moments, moment{real.Add(stop / 2), work}, moment{real.Add(stop), work})
			real = real.Add(stop)
		}
	}
	for i, m := range moments {
		if got := c.at(m.real).Sub(base); got != m.work {
			t.Errorf("moment %d: %v, want %v", i, got, m.work)
		}
	}
	if behind := time.Since(c.now()); behind < c.total || behind > c.total+time.Minute {
		t.Errorf("the clock is %v behind, after pauses of %v", behind, c.total)
	}
}
