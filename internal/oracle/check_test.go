package oracle

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// rivals: B of two partitions, b1 and b3 in partition 0, b2 in partition 1, and two A that all of them could have.
func rivals(t *testing.T, cardinality string, bPartitions ...int) *Expected {
	t.Helper()
	side := Side{Key: []string{"@key"}, Time: "@timestamp", Keep: []Field{{"id", "$.id"}}}
	cfg := Config{A: side, B: side, After: 10 * ms, Cardinality: cardinality}
	a := lines(kcat(0, 0, 1, `"k"`, `"{\"id\":\"a1\"}"`), kcat(0, 1, 2, `"k"`, `"{\"id\":\"a2\"}"`), kcat(0, 2, 2, `"far"`, `"{\"id\":\"far\"}"`))
	var b []string
	for i, p := range bPartitions {
		b = append(b, kcat(p, int64(i), 5, `"k"`, `"{\"id\":\"b`+string(rune('1'+i))+`\"}"`))
	}
	e, err := Expect(cfg, a, lines(b...), "kcat")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func pairLine(a, b string) string {
	return `{"key":"k","ts":5,"a":{"id":"` + a + `"},"b":{"id":"` + b + `"}}`
}

func TestRuleTwoException(t *testing.T) {
	e := rivals(t, OneToOne, 0, 1, 0)
	if e.Exact {
		t.Fatal("B of two partitions compete, yet the answer is said to be exact")
	}
	const valid, reachable = "valid", "reachable"
	for _, c := range []struct {
		name, verdict string // verdict: valid, reachable (valid too), or the words of the error
		lines         []string
	}{
		{"partition 0 first", reachable, []string{pairLine("a1", "b1"), pairLine("a2", "b3")}},
		{"in turns", reachable, []string{pairLine("a1", "b1"), pairLine("a2", "b2")}},
		{"partition 1 first", reachable, []string{pairLine("a2", "b1"), pairLine("a1", "b2")}},
		{"b3 passes b1 in their partition", valid, []string{pairLine("a1", "b3"), pairLine("a2", "b1")}},
		{"b1 goes without, though b3 asks after it", valid, []string{pairLine("a1", "b2"), pairLine("a2", "b3")}},
		{"one left", "neither was used", []string{pairLine("a1", "b1")}},
		{"A twice", "a is used twice", []string{pairLine("a1", "b1"), pairLine("a1", "b2")}},
		{"B twice", "b is used twice", []string{pairLine("a1", "b1"), pairLine("a2", "b1")}},
		{"same line twice", "used twice", []string{pairLine("a1", "b1"), pairLine("a1", "b1"), pairLine("a2", "b2")}},
		{"invented", "no accepted event", []string{pairLine("a1", "b1"), pairLine("a9", "b2")}},
		{"other key", "not a valid pair", []string{strings.Replace(pairLine("far", "b1"), `"k"`, `"far"`, 1)}},
		{"wrong ts", "should read", []string{strings.Replace(pairLine("a1", "b1"), "5", "1", 1), pairLine("a2", "b2")}},
		{"not JSON", "output line", []string{"{"}},
	} {
		errValid, errReach := e.CheckValid(c.lines), e.CheckReachable(c.lines)
		switch c.verdict {
		case reachable:
			if errValid != nil || errReach != nil {
				t.Errorf("%s: %v; %v", c.name, errValid, errReach)
			}
		case valid:
			if errValid != nil || errReach == nil {
				t.Errorf("%s: %v; reachable: %v", c.name, errValid, errReach)
			}
		default:
			if errValid == nil || !strings.Contains(errValid.Error(), c.verdict) || errReach == nil {
				t.Errorf("%s: %v; %v", c.name, errValid, errReach)
			}
		}
	}
}

func TestExactWhereNobodyCompetes(t *testing.T) {
	if e := rivals(t, OneToOne, 3, 3, 3); !e.Exact {
		t.Error("all B in one partition: exact")
	}
	for _, cardinality := range []string{OneToMany, ManyToMany} {
		if e := rivals(t, cardinality, 0, 1, 0); !e.Exact || e.CheckValid(e.Lines) != nil || e.CheckReachable(e.Lines) != nil {
			t.Errorf("%s: nothing is consumed, so it is exact", cardinality)
		}
	}
	// Two partitions, but their windows touch no common A.
	side := Side{Key: []string{"@key"}, Time: "@timestamp"}
	cfg := Config{A: side, B: side, Before: 5 * ms, After: 5 * ms, Grace: hour}
	a := lines(kcat(0, 0, 100, `"k"`, `"1"`), kcat(0, 1, 200, `"k"`, `"2"`))
	b := []string{kcat(0, 0, 100, `"k"`, `"1"`), kcat(1, 0, 200, `"k"`, `"2"`), kcat(0, 1, 150, `"k"`, `"3"`)}
	if e, err := Expect(cfg, a, lines(b...), "kcat"); err != nil || !e.Exact || len(e.Lines) != 2 {
		t.Errorf("apart in time: %v, exact %v, %v", err, e.Exact, e.Lines)
	}
	// A third B that only reaches through a chain: b(0) - a100 - b(1) at 104.
	b = append(b, kcat(1, 1, 104, `"k"`, `"4"`))
	if e, err := Expect(cfg, a, lines(b...), "kcat"); err != nil || e.Exact {
		t.Errorf("competing for one A: %v, exact %v", err, e.Exact)
	}
}

func TestCompare(t *testing.T) {
	e := rivals(t, OneToOne, 0, 0, 0)
	one, two := pairLine("a1", "b1"), pairLine("a2", "b2")
	escaped := strings.Replace(two, `"k"`, `"\u006b"`, 1)
	for _, good := range [][]string{{one, two}, {two, one}, {one, escaped}} {
		if err := e.Compare(good); err != nil {
			t.Errorf("%v: %v", good, err)
		}
	}
	for _, bad := range [][]string{{}, {one}, {one, one, two}, {one, two, two}, {one, pairLine("a2", "b3")}, {one, two + " "}, {one, two, ""}, {one, "{"}} {
		if err := e.Compare(bad); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
}

func TestReadLines(t *testing.T) {
	if got, err := ReadLines([]byte("a\n\nb\n")); err != nil || !slices.Equal(got, []string{"a", "", "b"}) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := ReadLines(nil); err != nil || got != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := ReadLines([]byte("a\nb")); err == nil {
		t.Error("a line that was cut off is no error")
	}
}

// askInTurns joins one-to-one with the B partitions asking in a random interleaving, each in its own order.
func askInTurns(rng *rand.Rand, e *Expected) []string {
	queues := map[int32][]*Event{}
	left := 0
	for _, g := range e.groups {
		for _, b := range g.bs {
			queues[b.Partition] = append(queues[b.Partition], b)
			left++
		}
	}
	var partitions []int32
	for p, q := range queues {
		partitions = append(partitions, p)
		slices.SortFunc(q, func(x, y *Event) int { return int(x.Offset - y.Offset) })
	}
	slices.Sort(partitions)
	used := map[*Event]bool{}
	var out []string
	for ; left > 0; left-- {
		p := partitions[rng.IntN(len(partitions))]
		b := queues[p][0]
		if queues[p] = queues[p][1:]; len(queues[p]) == 0 {
			partitions = slices.DeleteFunc(partitions, func(x int32) bool { return x == p })
		}
		for _, a := range e.groups[b.Key].as {
			if !used[a] && e.cfg.inWindow(a, b) {
				used[a] = true
				out = append(out, Line(a, b))
				break
			}
		}
	}
	return out
}
