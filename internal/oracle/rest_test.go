package oracle

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// at is a kcat line of a partition whose key is k and whose id says side, partition and offset.
func at(side string, partition int, offset, ts int64, more ...string) string {
	return kcat(partition, offset, ts, `"k"`, quote(fmt.Sprintf(`{"id":"%s%d.%d"%s}`, side, partition, offset, strings.Join(append([]string{""}, more...), ","))))
}

func restConfig(after, grace time.Duration, cardinality, typ string, change ...func(*Config)) Config {
	side := Side{Key: []string{"@key"}, Time: "@timestamp", Keep: []Field{{"id", "$.id"}}}
	c := Config{A: side, B: side, After: after, Grace: grace, Cardinality: cardinality, Type: typ, NoDrain: true}
	for _, f := range change {
		f(&c)
	}
	return c
}

func none(ts int64, a string) string { return nullA(`"k"`, ts, a) }

// TestByHandNoDrain: how far files are read whose end is no end, and what has closed by then (rules 7, 10, 12, 13, 15).
func TestByHandNoDrain(t *testing.T) {
	spread := func(d time.Duration) func(*Config) { return func(c *Config) { c.MaxSpread = d } }
	early := func(c *Config) { c.Early = 5 * ms }
	timeout := func(c *Config) { c.Collect.Mode = Timeout }
	wait := func(c *Config) { c.Probe = Wait }
	pair := func(ts int64, a, b, tail string) string { return pairAt(`"k"`, ts, a, b, tail) }
	for _, c := range []struct {
		name   string
		cfg    Config
		a, b   []string
		want   []string
		totals Totals
		read   [2]int64
		wm     [2]int64 // never: none
	}{
		{"a B asks behind A's watermark, and the one that is held back closes A", restConfig(10*ms, 0, OneToOne, Left),
			[]string{at("a", 0, 0, 0), at("a", 0, 1, 100)}, []string{at("b", 0, 0, 50), at("b", 0, 1, 111)},
			[]string{none(0, "a0.0"), none(100, "a0.1")}, Totals{UnmatchedA: 2, ClosedB: 1}, [2]int64{2, 1}, [2]int64{100, 111}},
		{"at the end of the window it is still open", restConfig(10*ms, 0, OneToOne, Left),
			[]string{at("a", 0, 0, 0), at("a", 0, 1, 100)}, []string{at("b", 0, 0, 50), at("b", 0, 1, 110)},
			[]string{none(0, "a0.0")}, Totals{UnmatchedA: 1, PendingA: 1, ClosedB: 1}, [2]int64{2, 1}, [2]int64{100, 110}},
		{"grace keeps both back", restConfig(10*ms, 5*ms, OneToOne, Left),
			[]string{at("a", 0, 0, 0), at("a", 0, 1, 100)}, []string{at("b", 0, 0, 94), at("b", 0, 1, 95), at("b", 0, 2, 115)},
			[]string{none(0, "a0.0")}, Totals{UnmatchedA: 1, PendingA: 1, ClosedB: 1}, [2]int64{2, 1}, [2]int64{100, 95}},
		{"a partition at its end holds time back", restConfig(10*ms, 0, OneToOne, Inner),
			[]string{at("a", 0, 0, 0), at("a", 1, 0, 20)}, []string{at("b", 0, 0, 0), at("b", 1, 0, 50)},
			nil, Totals{PendingA: 2}, [2]int64{2, 0}, [2]int64{0, 0}},
		{"a partition without a time has none", restConfig(10*ms, 0, OneToOne, Left),
			[]string{at("a", 0, 0, 0), kcat(1, 0, 5, `"k"`, `"no"`)}, []string{at("b", 0, 0, 500)},
			[]string{none(0, "a0.0")}, Totals{UnmatchedA: 1}, [2]int64{2, 0}, [2]int64{never, 500}},
		{"max_spread holds A back while B has data", restConfig(10*ms, 0, OneToOne, Left, spread(100*ms)),
			[]string{at("a", 0, 0, 0), at("a", 1, 0, 110), at("a", 1, 1, 111)}, []string{at("b", 0, 0, 10)},
			nil, Totals{PendingA: 2}, [2]int64{2, 0}, [2]int64{0, 10}},
		{"and no longer when it has none", restConfig(10*ms, 0, OneToOne, Left, spread(100*ms)),
			[]string{at("a", 0, 0, 0), at("a", 0, 1, 11), at("a", 0, 2, 9999)}, []string{at("b", 0, 0, 10)},
			[]string{pair(10, "a0.0", "b0.0", "")}, Totals{Matches: 1, PendingA: 2}, [2]int64{3, 1}, [2]int64{9999, 10}},
		{"a null key is held back and moves time too", restConfig(10*ms, 0, OneToOne, Outer),
			[]string{at("a", 0, 0, 0), kcat(0, 1, 30, "null", `"{\"id\":\"n\"}"`)}, []string{kcat(0, 0, 11, "null", `"{\"id\":\"m\"}"`), kcat(0, 1, 30, "null", `"{\"id\":\"o\"}"`)},
			[]string{none(0, "a0.0"), nullA("null", 30, "n"), nullB("null", 11, "m")}, Totals{UnmatchedA: 2, UnmatchedB: 1}, [2]int64{2, 1}, [2]int64{30, 30}},
		{"early rows are due by B's time", restConfig(100*ms, 2*ms, OneToOne, Left, early),
			[]string{at("a", 0, 0, 0), at("a", 0, 1, 1), at("a", 0, 2, 4)}, []string{at("b", 0, 0, 8)},
			[]string{none(0, "a0.0")}, Totals{UnmatchedA: 1, Early: 1, PendingA: 3}, [2]int64{3, 0}, [2]int64{4, 8}},
		{"a corrected pair comes with its row, whatever the time of B", restConfig(100*ms, 2*ms, OneToOne, Left, early),
			[]string{at("a", 0, 0, 0), at("a", 0, 1, 40)}, []string{at("b", 0, 0, 6), at("b", 1, 0, 0)},
			[]string{none(0, "a0.0"), pair(6, "a0.0", "b0.0", corrected)}, Totals{UnmatchedA: 1, Early: 1, Matches: 1, Corrected: 1, PendingA: 1, ClosedB: 1},
			[2]int64{2, 2}, [2]int64{40, 0}},
		{"a group waits with its B", restConfig(20*ms, 0, OneToMany, Left, timeout),
			[]string{at("a", 0, 0, 0), at("a", 0, 1, 50)}, []string{at("b", 0, 0, 1), at("b", 0, 1, 20)},
			nil, Totals{PendingA: 2, Gathered: 2}, [2]int64{2, 2}, [2]int64{50, 20}},
		{"and comes when it closes", restConfig(20*ms, 0, OneToMany, Left, timeout),
			[]string{at("a", 0, 0, 0), at("a", 0, 1, 50)}, []string{at("b", 0, 0, 1), at("b", 0, 1, 21)},
			[]string{`{"key":"k","ts":1,"a":{"id":"a0.0"},"b":[{"id":"b0.0"}],"complete":true}`}, Totals{Matches: 1, PendingA: 1, ClosedB: 1}, [2]int64{2, 2}, [2]int64{50, 21}},
		{"a group's null row comes before its first B, whatever the time of B", restConfig(20*ms, 0, OneToMany, Left, timeout, early),
			[]string{at("a", 0, 0, 0), at("a", 0, 1, 50)}, []string{at("b", 0, 0, 6), at("b", 1, 0, 1)}, []string{none(0, "a0.0")},
			Totals{UnmatchedA: 1, Early: 1, PendingA: 2, Gathered: 2}, [2]int64{2, 2}, [2]int64{50, 1}},
		{"a group whose first B is in time has none", restConfig(20*ms, 0, OneToMany, Left, timeout, early),
			[]string{at("a", 0, 0, 0), at("a", 0, 1, 50)}, []string{at("b", 0, 0, 5), at("b", 0, 1, 6)}, nil,
			Totals{PendingA: 2, Gathered: 2}, [2]int64{2, 2}, [2]int64{50, 6}},
		{"a group's null row is due by time", restConfig(20*ms, 0, OneToMany, Left, timeout, early),
			[]string{at("a", 0, 0, 0), at("a", 0, 1, 50)}, []string{at("b", 0, 0, 6)}, []string{none(0, "a0.0")},
			Totals{UnmatchedA: 1, Early: 1, PendingA: 2, Gathered: 1}, [2]int64{2, 1}, [2]int64{50, 6}},
		{"B wait until A has passed their window", restConfig(10*ms, 0, OneToOne, Outer, wait),
			[]string{at("a", 0, 0, 0), at("a", 0, 1, 50)}, []string{at("b", 0, 0, 40), at("b", 0, 1, 49), at("b", 0, 2, 50), at("b", 0, 3, 60)},
			[]string{none(0, "a0.0"), nullB(`"k"`, 40, "b0.0"), nullB(`"k"`, 49, "b0.1"), pair(50, "a0.1", "b0.2", "")},
			Totals{UnmatchedA: 1, UnmatchedB: 2, Matches: 1, PendingB: 1}, [2]int64{2, 4}, [2]int64{50, 60}},
		{"those that have paired wait on in many-to-many", restConfig(10*ms, 0, ManyToMany, Outer, wait),
			[]string{at("a", 0, 0, 50)}, []string{at("b", 0, 0, 49), at("b", 0, 1, 50)},
			[]string{nullB(`"k"`, 49, "b0.0"), pair(50, "a0.0", "b0.1", "")}, Totals{UnmatchedB: 1, Matches: 1, PendingA: 1, PendingB: 1}, [2]int64{1, 2}, [2]int64{50, 50}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := Expect(c.cfg, lines(c.a...), lines(c.b...), "kcat")
			if err != nil {
				t.Fatal(err)
			}
			sameAnswer(t, e, c.want, c.totals)
			if read := [2]int64{e.CountersA.Read, e.CountersB.Read}; read != c.read || e.wm != c.wm {
				t.Errorf("read %v, watermarks %v, want %v, %v", read, e.wm, c.read, c.wm)
			}
			if err := e.CheckReachable(c.want); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestByHandRing: where the ring holds an A back, and where rule 13 leaves open whether it does.
func TestByHandRing(t *testing.T) {
	cfg := restConfig(10*time.Second, 0, OneToOne, Inner, func(c *Config) { c.MaxSpread, c.Width, c.Buckets = ms, 10_001*ms, 2 })
	b := lines(at("b", 0, 0, 0))
	a := []string{at("a", 0, 0, 115_000), at("a", 1, 0, 0), at("a", 1, 1, 1000), at("a", 1, 2, 12_000)}
	e, err := Expect(cfg, lines(a...), b, "kcat")
	if err != nil || e.CountersA.Read != 3 || e.Totals.PendingA != 2 || e.Totals.Matches != 1 || len(e.others) != 0 {
		t.Errorf("the bucket of second 12 has the slot of that of second 115: %+v, %+v, %d others, %v", e.CountersA, e.Totals, len(e.others), err)
	}
	e, err = Expect(cfg, lines(a[:3]...), b, "kcat")
	if err != nil || len(e.others) != 1 {
		t.Fatalf("the slot is empty, and partition 1 at its end: %d others, %v", len(e.others), err)
	}
	for read, pending := range map[int64]int64{2: 1, 3: 2} {
		if x, err := e.StoppedAt(read, 1); err != nil || x.Totals.PendingA != pending || x.CheckReachable(x.Lines) != nil {
			t.Errorf("%d read: %v", read, err)
		}
	}
	if _, err := e.StoppedAt(1, 1); err == nil {
		t.Error("a join that stopped too soon passes")
	}
	cfg.Buckets = 0
	if e, err = Expect(cfg, lines(a...), b, "kcat"); err != nil || e.CountersA.Read != 4 {
		t.Errorf("without a ring all are read: %+v, %v", e.CountersA, err)
	}
}
