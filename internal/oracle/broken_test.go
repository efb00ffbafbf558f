package oracle

import (
	"slices"
	"strings"
	"testing"
)

// answers is one workload by hand with lines that are right and lines that are wrong.
type answers struct {
	name  string
	cfg   Config
	a, b  []string // kcat
	exact bool
	right [][]string
	wrong map[string][]string // by what the error must say
}

func (c *answers) run(t *testing.T) {
	e, err := Expect(c.cfg, lines(c.a...), lines(c.b...), "kcat")
	if err != nil {
		t.Fatal(err)
	}
	if e.Exact != c.exact {
		t.Errorf("exact %v; lines\n  %s", e.Exact, strings.Join(e.Lines, "\n  "))
	}
	for _, l := range append(c.right, e.Lines) {
		if err := e.CheckValid(l); err != nil {
			t.Errorf("right, but not valid: %v\n  %s", err, strings.Join(l, "\n  "))
		}
		if err := e.CheckReachable(l); err != nil {
			t.Errorf("right, but not reachable: %v\n  %s", err, strings.Join(l, "\n  "))
		}
	}
	for want, l := range c.wrong {
		check, want, onlyReach := e.CheckValid, strings.TrimRight(strings.Split(want, " #")[0], "."), strings.HasPrefix(want, "no order")
		if onlyReach { // valid by the words of the exceptions, but no order leads to it
			if err := e.CheckValid(l); err != nil {
				t.Errorf("not valid: %v", err)
			}
			check = e.CheckReachable
		}
		if err := check(l); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error that says %q, got %v\n  %s", want, err, strings.Join(l, "\n  "))
		}
		if e.CheckReachable(l) == nil {
			t.Errorf("%s: reachable", want)
		}
	}
}

func drained(c Config) Config { c.NoDrain = false; return c }

// pk is a pair of key k.
func pk(ts int64, a, b, tail string) string { return pairAt(`"k"`, ts, a, b, tail) }

func nb(ts int64, b string) string { return nullB(`"k"`, ts, b) }

func gk(ts int64, a, tail string, bs ...string) string {
	var list []string
	for _, b := range bs {
		list = append(list, `{"id":"`+b+`"}`)
	}
	return `{"key":"k","ts":` + itoa(ts) + `,"a":{"id":"` + a + `"},"b":[` + strings.Join(list, ",") + `]` + tail + `}`
}

func itoa(n int64) string {
	return strings.TrimSuffix(strings.TrimPrefix(none(n, ""), `{"key":"k","ts":`), `,"a":{"id":""},"b":null}`)
}

// TestWrongAnswers: each check refuses what the rule forbids, and takes every answer that its exception leaves.
func TestWrongAnswers(t *testing.T) {
	early := func(c *Config) { c.Early, c.Retract, c.OutputKey = 10*ms, true, "id" }
	ends := func(emit string) func(*Config) {
		return func(c *Config) { c.CompleteOn = CompleteOn{"$.s", "no", emit} }
	}
	tomb := func(a string) string { return `{"key":"` + a + `","retract":true}` }
	cfg := func(cardinality, typ string, f ...func(*Config)) Config {
		return drained(restConfig(100*ms, hour, cardinality, typ, f...))
	}
	one := []string{at("a", 0, 0, 0)}
	for _, c := range []answers{
		{"rule 16: null rows", cfg(OneToOne, Outer), append(one, at("a", 0, 1, 50)), []string{at("b", 0, 0, 20), at("b", 0, 1, 900)}, true,
			[][]string{{nb(900, "b0.1"), none(50, "a0.1"), pk(20, "a0.0", "b0.0", "")}},
			map[string][]string{
				"1 missing":            {pk(20, "a0.0", "b0.0", ""), nb(900, "b0.1")},
				"1 missing.":           {pk(20, "a0.0", "b0.0", ""), none(50, "a0.1")},
				"1 spurious or twice":  {pk(20, "a0.0", "b0.0", ""), none(50, "a0.1"), none(50, "a0.1"), nb(900, "b0.1")},
				"1 spurious or twice.": {pk(20, "a0.0", "b0.0", ""), none(0, "a0.0"), none(50, "a0.1"), nb(900, "b0.1")},
				"1 missing..":          {none(50, "a0.1"), nb(900, "b0.1")},
				"1 spurious":           {pk(20, "a0.0", "b0.0", ""), none(900, "a0.1"), nb(900, "b0.1")},
			}},
		{"rule 2's exception with null rows", cfg(OneToOne, Outer), one, []string{at("b", 0, 0, 20), at("b", 1, 0, 30), at("b", 0, 1, 40)}, false,
			[][]string{{pk(20, "a0.0", "b0.0", ""), nb(30, "b1.0"), nb(40, "b0.1")}, {pk(30, "a0.0", "b1.0", ""), nb(20, "b0.0"), nb(40, "b0.1")}},
			map[string][]string{
				"0 null rows of a B":  {pk(20, "a0.0", "b0.0", ""), nb(30, "b1.0")},
				"1 null rows of a B":  {pk(20, "a0.0", "b0.0", ""), nb(20, "b0.0"), nb(30, "b1.0"), nb(40, "b0.1")},
				"2 null rows of a B":  {pk(20, "a0.0", "b0.0", ""), nb(30, "b1.0"), nb(30, "b1.0"), nb(40, "b0.1")},
				"1 null rows of an A": {none(0, "a0.0"), pk(20, "a0.0", "b0.0", ""), nb(30, "b1.0"), nb(40, "b0.1")},
				"neither was used":    {none(0, "a0.0"), nb(20, "b0.0"), nb(30, "b1.0"), nb(40, "b0.1")},
				"no order":            {pk(40, "a0.0", "b0.1", ""), nb(20, "b0.0"), nb(30, "b1.0")},
			}},
		{"rule 17: order", cfg(OneToMany, Left, early), one, []string{at("b", 0, 0, 20), at("b", 0, 1, 25)}, true, nil,
			map[string][]string{
				"did not come before":        {tomb("a0.0"), none(0, "a0.0"), pk(20, "a0.0", "b0.0", corrected), pk(25, "a0.0", "b0.1", "")},
				"comes after a pair":         {pk(25, "a0.0", "b0.1", ""), none(0, "a0.0"), tomb("a0.0"), pk(20, "a0.0", "b0.0", corrected)},
				"no tombstone came before":   {none(0, "a0.0"), pk(20, "a0.0", "b0.0", corrected), tomb("a0.0"), pk(25, "a0.0", "b0.1", "")},
				"that it corrects did not":   {pk(20, "a0.0", "b0.0", corrected), none(0, "a0.0"), tomb("a0.0"), pk(25, "a0.0", "b0.1", "")},
				"is not the first pair":      {none(0, "a0.0"), pk(25, "a0.0", "b0.1", ""), tomb("a0.0"), pk(20, "a0.0", "b0.0", corrected)},
				"1 missing":                  {none(0, "a0.0"), pk(20, "a0.0", "b0.0", corrected), pk(25, "a0.0", "b0.1", "")},
				"2 missing":                  {tomb("a0.0"), pk(20, "a0.0", "b0.0", ""), pk(25, "a0.0", "b0.1", "")},
				"1 spurious or twice":        {none(0, "a0.0"), tomb("a0.0"), pk(20, "a0.0", "b0.0", corrected), pk(25, "a0.0", "b0.1", corrected)},
				"1 missing.":                 {none(0, "a0.0"), tomb("a0.0"), pk(20, "a0.0", "b0.0", ""), pk(25, "a0.0", "b0.1", "")},
				"1 spurious or twice #again": {none(0, "a0.0"), none(0, "a0.0"), tomb("a0.0"), pk(20, "a0.0", "b0.0", corrected), pk(25, "a0.0", "b0.1", "")},
			}},
		{"rule 17's exception", cfg(OneToMany, Left, early), one, []string{at("b", 0, 0, 5), at("b", 0, 1, 30), at("b", 1, 0, 20)}, false,
			[][]string{
				{pk(5, "a0.0", "b0.0", ""), pk(30, "a0.0", "b0.1", ""), pk(20, "a0.0", "b1.0", "")},
				{none(0, "a0.0"), tomb("a0.0"), pk(20, "a0.0", "b1.0", corrected), pk(5, "a0.0", "b0.0", ""), pk(30, "a0.0", "b0.1", "")},
			},
			map[string][]string{
				"nothing was to be corrected":                             {none(0, "a0.0"), tomb("a0.0"), pk(5, "a0.0", "b0.0", corrected), pk(30, "a0.0", "b0.1", ""), pk(20, "a0.0", "b1.0", "")},
				"want 0 to 0":                                             {none(0, "a0.0"), pk(5, "a0.0", "b0.0", ""), pk(30, "a0.0", "b0.1", ""), pk(20, "a0.0", "b1.0", "")},
				"that it corrects did not come":                           {pk(20, "a0.0", "b1.0", corrected), pk(5, "a0.0", "b0.0", ""), pk(30, "a0.0", "b0.1", "")},
				"neither was used of the valid":                           {pk(5, "a0.0", "b0.0", ""), pk(30, "a0.0", "b0.1", "")},
				"is not the first pair":                                   {none(0, "a0.0"), pk(5, "a0.0", "b0.0", ""), tomb("a0.0"), pk(20, "a0.0", "b1.0", corrected), pk(30, "a0.0", "b0.1", "")},
				"is not the first pair #but the second that is corrected": {none(0, "a0.0"), none(0, "a0.0"), tomb("a0.0"), tomb("a0.0"), pk(20, "a0.0", "b1.0", corrected), pk(30, "a0.0", "b0.1", corrected)},
				"no tombstone came before":                                {none(0, "a0.0"), pk(20, "a0.0", "b1.0", corrected), pk(5, "a0.0", "b0.0", ""), pk(30, "a0.0", "b0.1", "")},
				"more corrected pairs than":                               {none(0, "a0.0"), tomb("a0.0"), pk(5, "a0.0", "b0.0", ""), pk(30, "a0.0", "b0.1", ""), pk(20, "a0.0", "b1.0", "")},
				"no order #b0.0 asks before":                              {none(0, "a0.0"), tomb("a0.0"), pk(30, "a0.0", "b0.1", corrected), pk(5, "a0.0", "b0.0", ""), pk(20, "a0.0", "b1.0", "")},
				"no A has this key":                                       {none(0, "a0.0"), tomb("x"), pk(20, "a0.0", "b1.0", corrected), pk(5, "a0.0", "b0.0", ""), pk(30, "a0.0", "b0.1", "")},
				"is used twice, with the same b":                          {pk(5, "a0.0", "b0.0", ""), pk(5, "a0.0", "b0.0", ""), pk(30, "a0.0", "b0.1", ""), pk(20, "a0.0", "b1.0", "")},
			}},
		{"rule 17, exception: what is sure comes", cfg(ManyToMany, Left, early), append(one, at("a", 0, 1, 900)), []string{at("b", 0, 0, 30), at("b", 1, 0, 20)}, false,
			[][]string{{none(0, "a0.0"), tomb("a0.0"), pk(30, "a0.0", "b0.0", corrected), pk(20, "a0.0", "b1.0", ""), none(900, "a0.1")}},
			map[string][]string{
				"of its B lie in the early time": {pk(30, "a0.0", "b0.0", ""), pk(20, "a0.0", "b1.0", ""), none(900, "a0.1")},
				"missing":                        {none(0, "a0.0"), tomb("a0.0"), pk(30, "a0.0", "b0.0", corrected), none(900, "a0.1")},
				"0 null rows of an A":            {none(0, "a0.0"), tomb("a0.0"), pk(30, "a0.0", "b0.0", corrected), pk(20, "a0.0", "b1.0", "")},
			}},
		{"rule 10: what is not over has no null row, though B compete elsewhere", restConfig(20*ms, 0, OneToOne, Left), append(one, at("a", 0, 1, 100)),
			[]string{at("b", 0, 0, 1), at("b", 1, 0, 2)}, false,
			[][]string{{pk(1, "a0.0", "b0.0", "")}, {pk(2, "a0.0", "b1.0", "")}},
			map[string][]string{"1 null rows of an A": {pk(1, "a0.0", "b0.0", ""), none(100, "a0.1")}}},
		{"rule 18: order and end", cfg(OneToMany, Outer, ends(EmitPair)), one, []string{at("b", 0, 0, 5), at("b", 0, 1, 6, `"s":"no"`), at("b", 0, 2, 7)}, true, nil,
			map[string][]string{
				"comes after the pair that ends": {pk(6, "a0.0", "b0.1", ""), pk(5, "a0.0", "b0.0", ""), nb(7, "b0.2")},
				"1 missing":                      {pk(5, "a0.0", "b0.0", ""), pk(6, "a0.0", "b0.1", ""), pk(7, "a0.0", "b0.2", "")},
			}},
		{"rule 18 in several partitions, nothing", cfg(OneToMany, Outer, ends(EmitNothing)), one,
			[]string{at("b", 0, 0, 5), at("b", 0, 1, 6), at("b", 1, 0, 7, `"s":"no"`)}, false,
			[][]string{{pk(5, "a0.0", "b0.0", ""), pk(6, "a0.0", "b0.1", "")}, {pk(5, "a0.0", "b0.0", ""), nb(6, "b0.1")}, {nb(5, "b0.0"), nb(6, "b0.1")}},
			map[string][]string{
				"ends its A without a pair":  {pk(5, "a0.0", "b0.0", ""), pk(6, "a0.0", "b0.1", ""), pk(7, "a0.0", "b1.0", "")},
				"0 null rows of a B":         {pk(5, "a0.0", "b0.0", "")},
				"no order #b0.0 asks first":  {pk(6, "a0.0", "b0.1", ""), nb(5, "b0.0")},
				"no order #it is never over": {none(0, "a0.0"), nb(5, "b0.0"), nb(6, "b0.1")},
				"no order #the end was used": {pk(5, "a0.0", "b0.0", ""), pk(6, "a0.0", "b0.1", ""), nb(7, "b1.0")},
			}},
		{"rule 19: groups", cfg(OneToMany, Left, func(c *Config) { c.Collect = Collect{Mode: Count, Path: "$.n"} }), []string{at("a", 0, 0, 0, `"n":2`), at("a", 0, 1, 0, `"n":5`)},
			[]string{at("b", 0, 0, 5), at("b", 1, 0, 6), at("b", 0, 1, 7)}, false,
			[][]string{
				{gk(6, "a0.0", `,"complete":true`, "b0.0", "b1.0"), gk(7, "a0.1", `,"complete":false,"got":1,"wanted":5`, "b0.1")},
				{gk(7, "a0.0", `,"complete":true`, "b0.0", "b0.1"), gk(6, "a0.1", `,"complete":false,"got":1,"wanted":5`, "b1.0")},
			},
			map[string][]string{
				"should read":                  {gk(6, "a0.0", `,"complete":true`, "b1.0", "b0.0"), gk(7, "a0.1", `,"complete":false,"got":1,"wanted":5`, "b0.1")},
				"should read.":                 {gk(7, "a0.0", `,"complete":true`, "b0.0", "b1.0"), gk(7, "a0.1", `,"complete":false,"got":1,"wanted":5`, "b0.1")},
				"should read..":                {gk(6, "a0.0", `,"complete":true`, "b0.0", "b1.0"), gk(7, "a0.1", `,"complete":false,"got":2,"wanted":5`, "b0.1")},
				"should read...":               {gk(6, "a0.0", `,"complete":true`, "b0.0", "b1.0"), gk(7, "a0.1", `,"complete":false,"got":1,"wanted":4`, "b0.1")},
				"should read....":              {gk(6, "a0.0", `,"complete":true`, "b0.0", "b1.0"), gk(7, "a0.1", `,"complete":false,"got":1`, "b0.1")},
				"complete: false":              {gk(6, "a0.0", `,"complete":false,"got":2,"wanted":2`, "b0.0", "b1.0"), gk(7, "a0.1", `,"complete":false,"got":1,"wanted":5`, "b0.1")},
				"complete: true":               {gk(6, "a0.0", `,"complete":true`, "b0.0", "b1.0"), gk(7, "a0.1", `,"complete":true`, "b0.1")},
				"and takes 2":                  {gk(7, "a0.0", `,"complete":false,"got":3,"wanted":2`, "b0.0", "b1.0", "b0.1"), none(0, "a0.1")},
				"b is used twice":              {gk(6, "a0.0", `,"complete":true`, "b0.0", "b1.0"), gk(6, "a0.1", `,"complete":false,"got":1,"wanted":5`, "b1.0")},
				"a is used twice":              {gk(5, "a0.1", `,"complete":false,"got":1,"wanted":5`, "b0.0"), gk(6, "a0.1", `,"complete":false,"got":1,"wanted":5`, "b1.0")},
				"missing: neither was used":    {gk(6, "a0.0", `,"complete":true`, "b0.0", "b1.0"), none(0, "a0.1")},
				"a pair, where B are":          {pk(5, "a0.0", "b0.0", "")},
				"a group without any B":        {gk(0, "a0.0", `,"complete":false,"got":0,"wanted":2`)},
				"no accepted event has this b": {gk(5, "a0.0", `,"complete":false,"got":1,"wanted":2`, "b9.9")},
				"1 null rows of an A":          {none(0, "a0.0"), gk(6, "a0.0", `,"complete":true`, "b0.0", "b1.0"), gk(7, "a0.1", `,"complete":false,"got":1,"wanted":5`, "b0.1")},
				"no order #a0.0 is first":      {gk(7, "a0.1", `,"complete":false,"got":3,"wanted":5`, "b0.0", "b1.0", "b0.1"), none(0, "a0.0")},
				"no order #b0.0 asks first":    {gk(7, "a0.0", `,"complete":true`, "b1.0", "b0.1"), gk(5, "a0.1", `,"complete":false,"got":1,"wanted":5`, "b0.0")},
			}},
		{"probe wait: several right answers", cfg(OneToMany, Outer, func(c *Config) { c.Probe = Wait }), append(one, at("a", 0, 1, 1)), []string{at("b", 0, 0, 5)}, false,
			[][]string{{pk(5, "a0.0", "b0.0", ""), none(1, "a0.1")}, {pk(5, "a0.1", "b0.0", ""), none(0, "a0.0")}},
			map[string][]string{
				"neither was used": {none(0, "a0.0"), none(1, "a0.1"), nb(5, "b0.0")},
				"b is used twice":  {pk(5, "a0.0", "b0.0", ""), pk(5, "a0.1", "b0.0", "")},
				"0 null rows":      {pk(5, "a0.0", "b0.0", "")},
			}},
		{"probe immediate", cfg(OneToOne, Outer, func(c *Config) { c.Probe = Immediate }), append(one, at("a", 0, 1, 200)), []string{at("b", 0, 0, 5), at("b", 0, 1, 205)}, false,
			[][]string{
				{pk(5, "a0.0", "b0.0", ""), pk(205, "a0.1", "b0.1", "")},
				{none(0, "a0.0"), nb(5, "b0.0"), pk(205, "a0.1", "b0.1", "")},
				{pk(5, "a0.0", "b0.0", ""), none(200, "a0.1"), nb(205, "b0.1")},
				{none(0, "a0.0"), nb(5, "b0.0"), none(200, "a0.1"), nb(205, "b0.1")},
			},
			map[string][]string{
				"0 null rows of an A":        {nb(5, "b0.0"), pk(205, "a0.1", "b0.1", "")},
				"0 null rows of a B":         {none(0, "a0.0"), pk(205, "a0.1", "b0.1", "")},
				"not a valid pair":           {pk(205, "a0.0", "b0.1", "")},
				"1 null rows of a B":         {pk(5, "a0.0", "b0.0", ""), nb(5, "b0.0"), pk(205, "a0.1", "b0.1", "")},
				"should read {\"key\":\"k\"": {pk(6, "a0.0", "b0.0", ""), pk(205, "a0.1", "b0.1", "")},
			}},
		// b0.1 met a0.0, so a0.0 was read before it; a0.1 stands behind a0.0, b0.0 before b0.1.
		{"probe immediate: what was read when", cfg(OneToOne, Left, func(c *Config) { c.Probe = Immediate }), []string{at("a", 0, 0, 0), at("a", 0, 1, 300)},
			[]string{at("b", 0, 0, 305), at("b", 0, 1, 5)}, false,
			[][]string{{pk(5, "a0.0", "b0.1", ""), pk(305, "a0.1", "b0.0", "")}, {pk(5, "a0.0", "b0.1", ""), none(300, "a0.1")}, {none(0, "a0.0"), none(300, "a0.1")}},
			map[string][]string{"there is no order of reading": {none(0, "a0.0"), pk(305, "a0.1", "b0.0", "")}}},
	} {
		t.Run(c.name, c.run)
	}
}

// TestWrongUnmatched: what must be in the unmatched file, and what must not.
func TestWrongUnmatched(t *testing.T) {
	file := func(side string, partition int, offset, ts int64) string {
		payload := quote(`{"id":"` + side + string(rune('0'+partition)) + "." + string(rune('0'+offset)) + `"}`)
		return `{"topic":"` + side + `","partition":` + itoa(int64(partition)) + `,"offset":` + itoa(offset) + `,"ts":` + itoa(ts) + `,"key":"k","payload":` + payload + `,"reason":"unmatched"}`
	}
	ends := func(emit string) func(*Config) {
		return func(c *Config) { c.CompleteOn = CompleteOn{"$.s", "no", emit} }
	}
	a, b := []string{at("a", 0, 0, 0)}, []string{at("b", 0, 0, 5, `"s":"no"`), at("b", 0, 1, 6), at("b", 0, 2, 900)}
	fa, fb0, fb1, fb2 := file("a", 0, 0, 0), file("b", 0, 0, 5), file("b", 0, 1, 6), file("b", 0, 2, 900)
	for name, c := range map[string]struct {
		typ, emit    string
		right, wrong [][]string
	}{
		"inner, unmatched": {Inner, EmitUnmatched, [][]string{{fa, fb1, fb2}}, [][]string{{fb1, fb2}, {fa, fb2}, {fa, fb0, fb1, fb2}, {fa, fa, fb1, fb2}}},
		"inner, nothing":   {Inner, EmitNothing, [][]string{{fb2, fb1}}, [][]string{{fa, fb1, fb2}, {fb1}, {fb0, fb1, fb2}}},
		"left":             {Left, EmitNothing, [][]string{{fb1, fb2}}, [][]string{{fa, fb1, fb2}, {fb2}, {}}},
		"right, unmatched": {Right, EmitUnmatched, [][]string{{fa}}, [][]string{{}, {fa, fb1}}},
		"outer":            {Outer, EmitPair, [][]string{{}}, [][]string{{fa}, {fb1}, {fb2}}},
	} {
		e, err := Expect(drained(restConfig(100*ms, hour, OneToMany, c.typ, ends(c.emit))), lines(a...), lines(b...), "kcat")
		if err != nil || !e.Exact {
			t.Fatal(err)
		}
		for _, l := range c.right {
			if err := e.CheckUnmatched(e.Lines, l, "a", "b"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, l := range c.wrong {
			if e.CheckUnmatched(e.Lines, l, "a", "b") == nil {
				t.Errorf("%s: passes: %v", name, l)
			}
		}
	}
	// In several partitions: b1.0 may have ended a0.0 before b0.1 asked.
	cfg := drained(restConfig(100*ms, hour, OneToMany, Inner, ends(EmitNothing)))
	e, err := Expect(cfg, lines(a...), lines(at("b", 0, 0, 6), at("b", 1, 0, 5, `"s":"no"`), at("b", 0, 1, 900)), "kcat")
	if err != nil || e.Exact {
		t.Fatal(err)
	}
	f0, f1 := file("b", 0, 0, 6), file("b", 0, 1, 900)
	for i, c := range []struct {
		lines, file []string
		ok          bool
	}{
		{[]string{pk(6, "a0.0", "b0.0", "")}, []string{f1}, true},
		{nil, []string{f0, f1}, true},
		{nil, []string{f0}, false},
		{nil, []string{f1}, false},
		{[]string{pk(6, "a0.0", "b0.0", "")}, []string{f0, f1}, false},
	} {
		if err := e.CheckUnmatched(c.lines, c.file, "a", "b"); (err == nil) != c.ok {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// TestWrongTotals: each counter is held against the lines.
func TestWrongTotals(t *testing.T) {
	cfg := drained(restConfig(100*ms, hour, OneToMany, Left, func(c *Config) { c.Early, c.Retract = 10*ms, true }))
	e, err := Expect(cfg, lines(at("a", 0, 0, 0), at("a", 0, 1, 500)), lines(at("b", 0, 0, 50), at("b", 0, 1, 60), at("b", 0, 2, 5000)), "kcat")
	if err != nil {
		t.Fatal(err)
	}
	file := []string{`{"topic":"b","partition":0,"offset":2,"ts":5000,"key":"k","payload":"{}","reason":"unmatched"}`}
	good := Totals{Outputs: 5, Matches: 2, UnmatchedA: 2, UnmatchedB: 1, Early: 2, Corrected: 1, Retracted: 1}
	if err := e.CheckTotals(good, e.Lines, file, "a", "b"); err != nil {
		t.Error(err)
	}
	for i, change := range []func(*Totals){
		func(g *Totals) { g.Outputs-- }, func(g *Totals) { g.Matches-- }, func(g *Totals) { g.UnmatchedA-- }, func(g *Totals) { g.UnmatchedB-- },
		func(g *Totals) { g.Early-- }, func(g *Totals) { g.Corrected-- }, func(g *Totals) { g.Retracted-- }, func(g *Totals) { g.PendingA++ }, func(g *Totals) { g.PendingB++ },
	} {
		bad := good
		change(&bad)
		if e.CheckTotals(bad, e.Lines, file, "a", "b") == nil {
			t.Errorf("change %d passes", i)
		}
	}
	if e.CheckTotals(good, e.Lines, nil, "a", "b") == nil {
		t.Error("an unmatched event that is counted and nowhere else passes")
	}
	if !slices.Contains(e.Lines, tombstone(&Event{Key: Key{Text: "k"}})) {
		t.Error("no tombstone")
	}
}
