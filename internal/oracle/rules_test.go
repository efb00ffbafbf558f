package oracle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// Each rule by hand: the expected lines are written out from its words, nothing is computed.

// rec is a value line of plain: key and id as JSON text, and more members.
func rec(key string, t int64, id string, more ...string) string {
	return fmt.Sprintf(`{"k":%s,"t":%d,"id":%q%s}`, key, t, id, strings.Join(append([]string{""}, more...), ","))
}

// a1(k, t) is what a result line prints of it.
func nullA(key string, t int64, id string) string {
	return fmt.Sprintf(`{"key":%s,"ts":%d,"a":{"id":%q},"b":null}`, key, t, id)
}

func nullB(key string, t int64, id string) string {
	return fmt.Sprintf(`{"key":%s,"ts":%d,"a":null,"b":{"id":%q}}`, key, t, id)
}

func pairAt(key string, t int64, a, b, tail string) string {
	return fmt.Sprintf(`{"key":%s,"ts":%d,"a":{"id":%q},"b":{"id":%q}%s}`, key, t, a, b, tail)
}

const corrected = `,"corrected":true`

type ruleCase struct {
	name   string
	cfg    Config
	a, b   []string
	want   []string
	totals Totals // Outputs is that of want
}

func (c *ruleCase) run(t *testing.T) *Expected {
	t.Helper()
	file := func(l []string) []byte {
		if len(l) == 0 {
			return nil
		}
		return lines(l...)
	}
	e, err := Expect(c.cfg, file(c.a), file(c.b), "value")
	if err != nil {
		t.Fatal(err)
	}
	sameAnswer(t, e, c.want, c.totals)
	if !e.Exact {
		t.Error("not exact, though all B are in one partition")
	}
	if err := e.CheckValid(c.want); err != nil {
		t.Errorf("valid: %v", err)
	}
	if err := e.CheckReachable(c.want); err != nil {
		t.Errorf("reachable: %v", err)
	}
	return e
}

// with changes plain(before, after, grace, cardinality).
func with(before, after, grace time.Duration, cardinality, typ string, change ...func(*Config)) Config {
	c := plain(before, after, grace, cardinality)
	c.Type = typ
	for _, f := range change {
		f(&c)
	}
	return c
}

func TestByHandTypes(t *testing.T) {
	const x, n = `"x"`, "null"
	asym := []string{rec(`"k"`, 100, "a")}
	asymB := []string{rec(`"k"`, 99, "b99"), rec(`"k"`, 100, "b100"), rec(`"k"`, 200, "b200"), rec(`"k"`, 201, "b201")}
	keyless := [][]string{{`{"t":1,"id":"a1"}`, rec(n, 2, "a2"), rec(`""`, 3, "a3")}, {`{"t":1,"id":"b1"}`, rec(n, 2, "b2"), rec(`""`, 3, "b3")}}
	aNulls := []string{nullA(n, 1, "a1"), nullA(n, 2, "a2")}
	bNulls := []string{nullB(n, 1, "b1"), nullB(n, 2, "b2")}
	emptyPair := pairAt(`""`, 3, "a3", "b3", "")
	for _, c := range []ruleCase{
		{"B01: a match removes the null row", with(10*ms, 10*ms, 0, OneToOne, Left),
			[]string{rec(`"k1"`, 0, "a1"), rec(`"z"`, 11, "z1"), rec(`"z"`, 40, "z2")}, []string{rec(`"k1"`, 5, "b1")},
			[]string{pairAt(`"k1"`, 5, "a1", "b1", ""), nullA(`"z"`, 11, "z1"), nullA(`"z"`, 40, "z2")}, Totals{Matches: 1, UnmatchedA: 2}},
		{"B02: asymmetric windows, outer", with(0, 100*ms, hour, OneToMany, Outer), asym, asymB,
			[]string{nullB(`"k"`, 99, "b99"), pairAt(`"k"`, 100, "a", "b100", ""), pairAt(`"k"`, 200, "a", "b200", ""), nullB(`"k"`, 201, "b201")},
			Totals{Matches: 2, UnmatchedB: 2}},
		{"B02: arrival reversed", with(0, 100*ms, hour, OneToMany, Inner), asym, []string{asymB[3], asymB[2], asymB[1], asymB[0]},
			[]string{pairAt(`"k"`, 100, "a", "b100", ""), pairAt(`"k"`, 200, "a", "b200", "")}, Totals{Matches: 2, ClosedB: 2}},
		{"B04: an A behind, but inside grace, waits for its window and grace", with(10*ms, 10*ms, 20*ms, OneToOne, Left),
			[]string{rec(`"z"`, 100, "z"), rec(`"k"`, 85, "a")}, []string{rec(`"k"`, 88, "b")},
			[]string{pairAt(`"k"`, 88, "a", "b", ""), nullA(`"z"`, 100, "z")}, Totals{Matches: 1, UnmatchedA: 1}},
		{"B05: too late is dropped, at equality it is in time", with(10*ms, 10*ms, 5*ms, OneToOne, Left),
			[]string{rec(`"z"`, 100, "z"), rec(`"k"`, 80, "late"), rec(`"k"`, 95, "a")}, nil,
			[]string{nullA(`"z"`, 100, "z"), nullA(`"k"`, 95, "a")}, Totals{UnmatchedA: 2}},
		{"B06: a drain closes what waits", with(0, 10*ms, 0, OneToOne, Left), []string{rec(`"k"`, 0, "a")}, nil,
			[]string{nullA(`"k"`, 0, "a")}, Totals{UnmatchedA: 1}},
		{"B06: neither drain nor more input: it waits", with(0, 10*ms, 0, OneToOne, Left, func(c *Config) { c.NoDrain = true }),
			[]string{rec(`"k"`, 0, "a")}, nil, nil, Totals{PendingA: 1}},
		{"B11: null keys, inner", with(0, 10*ms, 0, OneToOne, Inner), keyless[0], keyless[1], []string{emptyPair}, Totals{Matches: 1}},
		{"B11: null keys, left", with(0, 10*ms, 0, OneToOne, Left), keyless[0], keyless[1], append([]string{emptyPair}, aNulls...),
			Totals{Matches: 1, UnmatchedA: 2}},
		{"B11: null keys, right", with(0, 10*ms, 0, OneToOne, Right), keyless[0], keyless[1], append([]string{emptyPair}, bNulls...),
			Totals{Matches: 1, UnmatchedB: 2}},
		{"B11: null keys, outer", with(0, 10*ms, 0, OneToOne, Outer), keyless[0], keyless[1], append(append([]string{emptyPair}, aNulls...), bNulls...),
			Totals{Matches: 1, UnmatchedA: 2, UnmatchedB: 2}},
		{"B13: same key and same time", with(0, 10*ms, 0, ManyToMany, Left),
			[]string{rec(`"k"`, 5, "a1"), rec(`"k"`, 5, "a2"), rec(`"k"`, 5, "a3")}, []string{rec(`"k"`, 6, "b")},
			[]string{pairAt(`"k"`, 6, "a1", "b", ""), pairAt(`"k"`, 6, "a2", "b", ""), pairAt(`"k"`, 6, "a3", "b", "")}, Totals{Matches: 3}},
		{"rule 16: right", with(0, 10*ms, hour, OneToOne, Right), []string{rec(x, 5, "a1"), rec(x, 90, "a2")}, []string{rec(x, 6, "b1"), rec(x, 7, "b2")},
			[]string{pairAt(x, 6, "a1", "b1", ""), nullB(x, 7, "b2")}, Totals{Matches: 1, UnmatchedB: 1, ClosedA: 1}},
		{"rule 16: outer, the time of a null row is its own", with(0, 10*ms, hour, OneToOne, Outer), []string{rec(x, 5, "a1")}, []string{rec(x, 60, "b1")},
			[]string{nullA(x, 5, "a1"), nullB(x, 60, "b1")}, Totals{UnmatchedA: 1, UnmatchedB: 1}},
		{"rule 12: waiting B give the same", with(5*ms, 10*ms, hour, ManyToMany, Outer, func(c *Config) { c.Probe = Wait }),
			[]string{rec(x, 10, "a1"), rec(x, 12, "a2")}, []string{rec(x, 6, "b1"), rec(x, 99, "b2")},
			[]string{pairAt(x, 10, "a1", "b1", ""), nullA(x, 12, "a2"), nullB(x, 99, "b2")}, Totals{Matches: 1, UnmatchedA: 1, UnmatchedB: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := c.run(t)
			if strings.HasPrefix(c.name, "B05") && e.CountersA.Late != 1 {
				t.Errorf("%d late A", e.CountersA.Late)
			}
			if strings.HasPrefix(c.name, "B11") && e.CountersA.NullKey+e.CountersB.NullKey != 4 {
				t.Errorf("null keys: %+v %+v", e.CountersA, e.CountersB)
			}
		})
	}
}

// TestByHandEarly is rule 17: window 100, early 10.
func TestByHandEarly(t *testing.T) {
	const x = `"x"`
	early := func(change ...func(*Config)) Config {
		return with(5*ms, 100*ms, hour, OneToMany, Left, append([]func(*Config){func(c *Config) { c.Early = 10 * ms }}, change...)...)
	}
	retract := func(c *Config) { c.Retract = true }
	byID := func(c *Config) { c.Retract, c.OutputKey = true, "id" }
	a := []string{rec(x, 1000, "a")}
	row := nullA(x, 1000, "a")
	for _, c := range []ruleCase{
		{"at the time itself it is in time", early(), a, []string{rec(x, 1010, "b1"), rec(x, 1020, "b2")},
			[]string{pairAt(x, 1010, "a", "b1", ""), pairAt(x, 1020, "a", "b2", "")}, Totals{Matches: 2}},
		{"one ms later it is corrected, and only the first pair is", early(), a, []string{rec(x, 1011, "b1"), rec(x, 1005, "b2"), rec(x, 1030, "b3")},
			[]string{row, pairAt(x, 1011, "a", "b1", corrected), pairAt(x, 1005, "a", "b2", ""), pairAt(x, 1030, "a", "b3", "")},
			Totals{Matches: 3, UnmatchedA: 1, Early: 1, Corrected: 1}},
		{"none comes: once, though it closes too", early(), a, nil, []string{row}, Totals{UnmatchedA: 1, Early: 1}},
		{"retract, under the join key", early(retract), a, []string{rec(x, 1100, "b1")},
			[]string{row, `{"key":"x","retract":true}`, pairAt(x, 1100, "a", "b1", corrected)},
			Totals{Matches: 1, UnmatchedA: 1, Early: 1, Corrected: 1, Retracted: 1}},
		{"retract, under a field", early(byID), []string{rec("5", 1000, "a")}, []string{rec("5", 1100, "b1")},
			[]string{nullA("5", 1000, "a"), `{"key":"a","retract":true}`, pairAt("5", 1100, "a", "b1", corrected)},
			Totals{Matches: 1, UnmatchedA: 1, Early: 1, Corrected: 1, Retracted: 1}},
		{"retract, under a field that it lacks", early(byID, func(c *Config) { c.OutputKey, c.A.Keep = "no", append(c.A.Keep, Field{"no", "$.no"}) }),
			[]string{rec("5", 1000, "a")}, []string{rec("5", 1100, "b1")},
			[]string{nullA("5", 1000, "a"), `{"key":5,"retract":true}`, pairAt("5", 1100, "a", "b1", corrected)},
			Totals{Matches: 1, UnmatchedA: 1, Early: 1, Corrected: 1, Retracted: 1}},
		{"a null key has no early row", early(), []string{rec("null", 1000, "a")}, nil, []string{nullA("null", 1000, "a")}, Totals{UnmatchedA: 1}},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t) })
	}
}

// TestByHandEnds is rule 18, with and without rule 17.
func TestByHandEnds(t *testing.T) {
	const x, declined = `"x"`, `"s":"declined"`
	ends := func(emit, cardinality, typ string, change ...func(*Config)) Config {
		c := with(0, 100*ms, hour, cardinality, typ, change...)
		c.CompleteOn = CompleteOn{"$.s", "declined", emit}
		return c
	}
	early := func(c *Config) { c.Early = 10 * ms }
	a := []string{rec(x, 1000, "a")}
	row := nullA(x, 1000, "a")
	end := rec(x, 1005, "e", declined)
	lateEnd := rec(x, 1050, "e", declined)
	first, after := rec(x, 1001, "b1"), rec(x, 1060, "b2")
	for _, c := range []ruleCase{
		{"pair: the last pair", ends(EmitPair, OneToMany, Outer), a, []string{first, end, after},
			[]string{pairAt(x, 1001, "a", "b1", ""), pairAt(x, 1005, "a", "e", ""), nullB(x, 1060, "b2")}, Totals{Matches: 2, UnmatchedB: 1}},
		{"unmatched: the null row instead, and the B counts as matched", ends(EmitUnmatched, OneToMany, Outer), a, []string{end, after},
			[]string{row, nullB(x, 1060, "b2")}, Totals{UnmatchedA: 1, UnmatchedB: 1}},
		{"unmatched: not of an A that has paired", ends(EmitUnmatched, OneToMany, Outer), a, []string{first, end, after},
			[]string{pairAt(x, 1001, "a", "b1", ""), nullB(x, 1060, "b2")}, Totals{Matches: 1, UnmatchedB: 1}},
		{"unmatched: of an inner join to the unmatched file", ends(EmitUnmatched, OneToOne, Inner), a, []string{end, after}, nil, Totals{ClosedA: 1, ClosedB: 1}},
		{"nothing: neither", ends(EmitNothing, OneToOne, Outer), a, []string{end, after}, []string{nullB(x, 1060, "b2")}, Totals{UnmatchedB: 1}},
		{"nothing: the next A", ends(EmitNothing, OneToMany, Left), []string{rec(x, 1000, "a"), rec(x, 1001, "a2")}, []string{end, after},
			[]string{pairAt(x, 1060, "a2", "b2", "")}, Totals{Matches: 1}},
		{"many-to-many: each A", ends(EmitUnmatched, ManyToMany, Outer), []string{rec(x, 1000, "a"), rec(x, 1001, "a2"), rec(x, 1055, "a3")}, []string{end, after},
			[]string{row, nullA(x, 1001, "a2"), pairAt(x, 1060, "a3", "b2", "")}, Totals{Matches: 1, UnmatchedA: 2}},
		{"early, pair: corrected", ends(EmitPair, OneToMany, Left, early), a, []string{lateEnd, after},
			[]string{row, pairAt(x, 1050, "a", "e", corrected)}, Totals{Matches: 1, UnmatchedA: 1, Early: 1, Corrected: 1, ClosedB: 1}},
		{"early, unmatched: the row is out, once", ends(EmitUnmatched, OneToMany, Left, early), a, []string{lateEnd}, []string{row}, Totals{UnmatchedA: 1, Early: 1}},
		{"early, unmatched in time: the row of the end", ends(EmitUnmatched, OneToMany, Left, early), a, []string{end}, []string{row}, Totals{UnmatchedA: 1}},
		{"early, nothing: a row that is out stays out", ends(EmitNothing, OneToMany, Left, early), a, []string{lateEnd}, []string{row}, Totals{UnmatchedA: 1, Early: 1}},
		{"early, nothing in time: neither", ends(EmitNothing, OneToMany, Left, early), a, []string{end}, nil, Totals{}},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t) })
	}
	for text, want := range map[string]bool{`"s":"d\u0065clined"`: true, `"s":["declined"]`: false, `"s":null`: false, `"r":"declined"`: false,
		`"s":"Declined"`: false, `"s":"declined","s":"x"`: true, `"s":"x","s":"declined"`: false} {
		c := ruleCase{text, ends(EmitNothing, OneToOne, Left), a, []string{rec(x, 1005, "e", text)}, []string{pairAt(x, 1005, "a", "e", "")}, Totals{Matches: 1}}
		if want {
			c.want, c.totals = nil, Totals{}
		}
		t.Run(text, func(t *testing.T) { c.run(t) })
	}
	c := ends(EmitNothing, OneToOne, Left)
	for equals, texts := range map[string][2][]string{"5": {{"5", `"5"`}, {"5.0", "50", "[5]"}}, "true": {{"true", `"true"`}, {"false", "1"}}, "null": {{`"null"`}, {"null"}}} {
		c.CompleteOn.Equals = equals
		for i, list := range texts {
			for _, text := range list {
				e, err := Expect(c, lines(a...), lines(rec(x, 1005, "e", `"s":`+text)), "value")
				if err != nil || len(e.Lines) != i {
					t.Errorf("equals %s: %s gives %v, %v", equals, text, e.Lines, err)
				}
			}
		}
	}
}

// TestByHandGroups is rule 19, with and without rules 17 and 18.
func TestByHandGroups(t *testing.T) {
	const x = `"x"`
	groups := func(c Collect, typ string, change ...func(*Config)) Config {
		return with(5*ms, 100*ms, hour, OneToMany, typ, append([]func(*Config){func(cfg *Config) { cfg.Collect = c }}, change...)...)
	}
	timeout, count, marker := Collect{Mode: Timeout}, Collect{Mode: Count, Path: "$.n"}, Collect{Mode: Marker, Path: "$.m", Equals: "end"}
	early := func(c *Config) { c.Early, c.Retract = 10*ms, true }
	of := func(ts int64, a, tail string, bs ...string) string {
		for i := range bs {
			bs[i] = fmt.Sprintf(`{"id":%q}`, bs[i])
		}
		return fmt.Sprintf(`{"key":"x","ts":%d,"a":{"id":%q},"b":[%s]%s}`, ts, a, strings.Join(bs, ","), tail)
	}
	const complete = `,"complete":true`
	a := []string{rec(x, 1000, "a")}
	three := []string{rec(x, 1003, "b1"), rec(x, 998, "b2"), rec(x, 1003, "b3")}
	n := func(text string) []string { return []string{rec(x, 1000, "a", `"n":`+text), rec(x, 1001, "a2")} }
	for _, c := range []ruleCase{
		{"timeout: all of them, by time and offset; ts is the greatest", groups(timeout, Inner), a, three, []string{of(1003, "a", complete, "b2", "b1", "b3")}, Totals{Matches: 3}},
		{"timeout: ts may be that of the A", groups(timeout, Inner), a, three[1:2], []string{of(1000, "a", complete, "b2")}, Totals{Matches: 1}},
		{"timeout: without any B it is unmatched", groups(timeout, Outer), a, []string{rec(x, 1101, "b")}, []string{nullA(x, 1000, "a"), nullB(x, 1101, "b")}, Totals{UnmatchedA: 1, UnmatchedB: 1}},
		{"count: full, and the next A", groups(count, Inner), n("2"), three,
			[]string{of(1003, "a", complete, "b2", "b1"), of(1003, "a2", `,"complete":false,"got":1`, "b3")}, Totals{Matches: 3}},
		{"count: short", groups(count, Left), n("7"), three, []string{of(1003, "a", `,"complete":false,"got":3,"wanted":7`, "b2", "b1", "b3"), nullA(x, 1001, "a2")},
			Totals{Matches: 3, UnmatchedA: 1}},
		{"count: 999999", groups(count, Inner), n("999999"), three[:1], []string{of(1003, "a", `,"complete":false,"got":1,"wanted":999999`, "b1")}, Totals{Matches: 1, ClosedA: 1}},
		{"marker: its last", groups(marker, Inner), n("2"), []string{three[0], rec(x, 999, "end", `"m":"end"`), three[2]},
			[]string{of(1003, "a", complete, "end", "b1"), of(1003, "a2", `,"complete":false,"got":1`, "b3")}, Totals{Matches: 3}},
		{"marker: alone", groups(marker, Inner), a, []string{rec(x, 999, "end", `"m":"end"`)}, []string{of(1000, "a", complete, "end")}, Totals{Matches: 1}},
		{"early: the first B decides", groups(timeout, Left, early), a, []string{rec(x, 1050, "b1"), rec(x, 1001, "b2")},
			[]string{nullA(x, 1000, "a"), `{"key":"x","retract":true}`, of(1050, "a", corrected+complete, "b2", "b1")},
			Totals{Matches: 2, UnmatchedA: 1, Early: 1, Corrected: 1, Retracted: 1}},
		{"early: in time", groups(timeout, Left, early), a, []string{rec(x, 1001, "b2"), rec(x, 1050, "b1")}, []string{of(1050, "a", complete, "b2", "b1")}, Totals{Matches: 2}},
		{"early: short", groups(count, Left, early), n("2")[:1], []string{rec(x, 1011, "b1")},
			[]string{nullA(x, 1000, "a"), `{"key":"x","retract":true}`, of(1011, "a", corrected+`,"complete":false,"got":1,"wanted":2`, "b1")},
			Totals{Matches: 1, UnmatchedA: 1, Early: 1, Corrected: 1, Retracted: 1}},
		{"an end lets the group out", groups(count, Left, func(c *Config) { c.CompleteOn = CompleteOn{"$.s", "no", EmitNothing} }), n("3")[:1],
			[]string{three[0], rec(x, 1004, "e", `"s":"no"`), three[2]}, []string{of(1003, "a", `,"complete":false,"got":1,"wanted":3`, "b1")}, Totals{Matches: 1, ClosedB: 1}},
		{"an end as a pair is in the group", groups(count, Left, func(c *Config) { c.CompleteOn = CompleteOn{"$.s", "no", EmitPair} }), n("2")[:1],
			[]string{three[0], rec(x, 1004, "e", `"s":"no"`), three[2]}, []string{of(1004, "a", complete, "b1", "e")}, Totals{Matches: 2, ClosedB: 1}},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t) })
	}
	for _, text := range []string{"0", "1000000", "2.5", `"3"`, "-1", "null", "[1]", "99999999999999999999"} {
		c := ruleCase{"no count: " + text, groups(count, Inner), n(text)[:1], three, []string{of(1003, "a", `,"complete":false,"got":3`, "b2", "b1", "b3")}, Totals{Matches: 3}}
		t.Run(c.name, func(t *testing.T) { c.run(t) })
	}
}

func TestRuleRefusals(t *testing.T) {
	good := with(0, 10*ms, 0, OneToMany, Left)
	for want, change := range map[string]func(*Config){
		"unknown type":         func(c *Config) { c.Type = "full" },
		"unknown probe":        func(c *Config) { c.Probe = "later" },
		"unknown collect":      func(c *Config) { c.Collect.Mode = "all" },
		"unknown emit":         func(c *Config) { c.CompleteOn.Emit = "x" },
		"less than after":      func(c *Config) { c.Early = 10 * ms },
		"type left or outer":   func(c *Config) { c.Early, c.Type = ms, Right },
		"retract needs early":  func(c *Config) { c.Retract = true },
		"output key":           func(c *Config) { c.Early, c.Retract, c.OutputKey = ms, true, "nobody" },
		"needs one-to-many":    func(c *Config) { c.Collect.Mode, c.Cardinality = Timeout, ManyToMany },
		"need probe aligned":   func(c *Config) { c.Collect.Mode, c.Probe = Timeout, Wait },
		"has no path":          func(c *Config) { c.Collect.Mode = Count },
		"path \"x\"":           func(c *Config) { c.CompleteOn = CompleteOn{"x", "y", EmitPair} },
		"max_spread must":      func(c *Config) { c.MaxSpread = -1 },
		"a ring of buckets":    func(c *Config) { c.Buckets = 2 },
		"early must be whole ": func(c *Config) { c.Early = time.Microsecond },
	} {
		c := good
		change(&c)
		if _, err := Expect(c, nil, nil, "value"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// sameAnswer wants these lines of an answer, and these totals but for the outputs, which are the lines.
func sameAnswer(t *testing.T, e *Expected, lines []string, totals Totals) {
	t.Helper()
	got, want := slices.Sorted(slices.Values(e.Lines)), slices.Sorted(slices.Values(lines))
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	totals.Outputs = int64(len(lines))
	if e.Totals != totals {
		t.Errorf("totals\n got %+v\nwant %+v", e.Totals, totals)
	}
}
