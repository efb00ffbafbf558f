package projection

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestParsePath(t *testing.T) {
	for text, want := range map[string][]step{
		`$`:                       nil,
		`$.a`:                     {{"a", -1}},
		`$.x.y[0]["odd.name"]`:    {{"x", -1}, {"y", -1}, {"", 0}, {"odd.name", -1}},
		`$[12][3]`:                {{"", 12}, {"", 3}},
		`$['it"s']`:               {{`it"s`, -1}},
		`$['it\'s']`:              {{`it's`, -1}},
		`$["q\"b\\s]"].x`:         {{`q"b\s]`, -1}, {"x", -1}},
		`$["\u00e9\ud83d\ude00"]`: {{"é😀", -1}},
		`$[""]`:                   {{"", -1}},
		`$.order-id.@type.größe`:  {{"order-id", -1}, {"@type", -1}, {"größe", -1}},
		`$[2147483647]`:           {{"", 2147483647}},
	} {
		got, err := ParsePath(text)
		if err != nil || !reflect.DeepEqual(got.steps, want) || got.String() != text {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

func TestParsePathErrors(t *testing.T) {
	for text, want := range map[string]string{
		``:                      `path "", column 1: a path starts with "$"`,
		`a.b`:                   `path "a.b", column 1: a path starts with "$"`,
		`@key`:                  `path "@key", column 1: a path starts with "$"`,
		`$a`:                    `path "$a", column 2: expected "." or "["`,
		`$.a b`:                 `path "$.a b", column 4: ' ' cannot stand in a plain name: write ["…"]`,
		`$.`:                    `path "$.", column 3: a name is missing`,
		`$.a.`:                  `path "$.a.", column 5: a name is missing`,
		`$.a.[0]`:               `path "$.a.[0]", column 5: a name is missing`,
		`$..a`:                  `path "$..a", column 3: ".." is not supported`,
		`$.*`:                   `path "$.*", column 3: wildcards are not supported`,
		`$[*]`:                  `path "$[*]", column 3: expected a quoted name or an index from 0`,
		`$.ä[-1]`:               `path "$.ä[-1]", column 5: expected a quoted name or an index from 0`,
		`$[0:2]`:                `path "$[0:2]", column 4: expected a quoted name or an index from 0`,
		`$[]`:                   `path "$[]", column 3: expected a quoted name or an index from 0`,
		`$[01]`:                 `path "$[01]", column 3: an index has no leading zeros`,
		`$[99999999999]`:        `path "$[99999999999]", column 3: the index is too large`,
		`$[1`:                   `path "$[1", column 4: "]" is missing`,
		`$["a`:                  `path "$[\"a", column 3: the quote is not closed`,
		`$["a"`:                 `path "$[\"a\"", column 6: "]" is missing`,
		`$["a"x]`:               `path "$[\"a\"x]", column 6: "]" is missing`,
		`$["\q"]`:               `path "$[\"\\q\"]", column 3: the quoted name is no valid JSON string`,
		`$["\ud800"]`:           `path "$[\"\\ud800\"]", column 3: the quoted name is no valid JSON string`,
		`$["a\`:                 `path "$[\"a\\", column 3: the quote is not closed`,
		"$.a\xff":               `path "$.a\xff", column 3: not UTF-8`,
		`$.a["b"]c`:             `path "$.a[\"b\"]c", column 9: expected "." or "["`,
		`$.a]`:                  `path "$.a]", column 4: ']' cannot stand in a plain name: write ["…"]`,
		"$[\"a\x01\"]":          `path "$[\"a\x01\"]", column 3: the quoted name is no valid JSON string`,
		`$.price.amount["x"].*`: `path "$.price.amount[\"x\"].*", column 21: wildcards are not supported`,
	} {
		_, err := ParsePath(text)
		var pathErr *PathError
		if !errors.As(err, &pathErr) || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	ok := SideSpec{Key: []string{"@key"}}
	with := func(change func(*SideSpec)) SideSpec { s := ok; change(&s); return s }
	for _, c := range []struct {
		side SideSpec
		want string
	}{
		{SideSpec{}, `key: missing: "@key" or a path`},
		{SideSpec{Key: []string{"@key", "$.a["}}, `key: path "$.a[", column 5: "]" is missing`},
		{SideSpec{Key: []string{"@timestamp"}}, `key: path "@timestamp", column 1`},
		{with(func(s *SideSpec) { s.Time = "@key" }), `time: neither "@timestamp" nor "arrival", and path "@key", column 1`},
		{with(func(s *SideSpec) { s.Time = "$.t" }), `time_unit: "" is none of ms, us, ns, s, rfc3339 (needed for time: $.t)`},
		{with(func(s *SideSpec) { s.Time, s.TimeUnit = "$.t", "min" }), `time_unit: "min" is none of`},
		{with(func(s *SideSpec) { s.Store = "offsets" }), `store: "offsets" is none of projection, full, offset`},
		{with(func(s *SideSpec) { s.Store = "fulll" }), `store: "fulll" is none of projection, full`},
		{with(func(s *SideSpec) { s.MaxSkew = -1 }), `max_skew: -1ns is negative`},
		{with(func(s *SideSpec) { s.Keep = keep("$.a", "a") }), `keep: path "a", column 1`},
		{with(func(s *SideSpec) { s.Keep = keep("$.a.id", "$.b.id") }), `keep: $.a.id and $.b.id have the same output name "id": write {name: path} for one`},
		{with(func(s *SideSpec) { s.Keep = []KeepField{{Path: "$.a"}, {Name: "a", Path: "$.b"}} }), `$.a and $.b have the same output name "a"`},
		{with(func(s *SideSpec) { s.Keep = keep("$.a", `$["\u0061"]`) }), `have the same output name "a"`},
		{with(func(s *SideSpec) { s.Ends = &Test{"s", "x"} }), `complete_on: field: path "s", column 1`},
		{with(func(s *SideSpec) { s.Marks = &Test{"$.", "x"} }), `collect: marker: field: path "$.", column 3`},
		{with(func(s *SideSpec) { s.Count = "$[x]" }), `collect: count: path "$[x]", column 3`},
		{with(func(s *SideSpec) { s.Keep = keep("$") }), `keep: path "$", column 1: has no last element`},
	} {
		s, err := Compile(c.side)
		if err == nil || s != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v:\n got %v\nwant %s", c.side, err, c.want)
		}
	}
	_, err := Compile(SideSpec{Key: []string{"x"}, Time: "y", Store: "z"})
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("not all faults at once: %v", err)
	}
}
