package projection

import (
	"fmt"
	"testing"
)

// Rules 18 and 19: what equals an end or a marker, and what is a count.
func TestWatched(t *testing.T) {
	status := func(equals string) SideSpec {
		return SideSpec{Key: []string{"$.id"}, Keep: keep("$.s"), Ends: &Test{"$.s", equals}}
	}
	both := SideSpec{Key: []string{"$.id"}, Store: "full", Ends: &Test{"$.s", "x"}, Marks: &Test{"$.s", "x"}}
	count := SideSpec{Key: []string{"$.id"}, Keep: keep("$.id"), Count: "$.n.m"}
	var cases []decodeCase
	equal := func(equals, value string, same bool) {
		want := fmt.Sprintf(`accepted 7 sk {"s":%s}`, value)
		if same {
			want += " flags 1"
		}
		cases = append(cases, decodeCase{name: equals + " " + value, side: status(equals), value: fmt.Sprintf(`{"id":"k","s":%s}`, value), want: want})
	}
	equal("declined", `"declined"`, true)
	equal("declined", `"d\u0065clined"`, true) // by its characters
	equal("declined", `"Declined"`, false)
	equal("declined", `"declined "`, false)
	equal("declined", `["declined"]`, false)
	equal("5", `5`, true)
	equal("5", `"5"`, true)
	equal("5", `5.0`, false) // as written
	equal("5e0", `5e0`, true)
	equal("-0", `-0`, true)
	equal("true", `true`, true)
	equal("true", `"true"`, true)
	equal("false", `false`, true)
	equal("false", `true`, false)
	equal("null", `null`, false)
	equal("null", `"null"`, true)
	equal("", `""`, true)
	equal("", `null`, false)
	equal("{}", `{}`, false)
	equal("[]", `[]`, false)
	equal(`a"b`, `"a\"b"`, true)
	equal(`a\"b`, `"a\"b"`, false)
	wants := func(n string, want int) {
		text := "accepted 7 sk {\"id\":\"k\"}"
		if want > 0 {
			text += fmt.Sprintf(" wants %d", want)
		}
		cases = append(cases, decodeCase{name: "count " + n, side: count, value: `{"id":"k","n":{"m":` + n + `}}`, want: text})
	}
	wants("1", 1)
	wants("999999", 999_999)
	wants("1000000", 0)
	wants("0", 0)
	wants("-1", 0)
	wants("-0", 0)
	wants("2.0", 0)
	wants("2e0", 0)
	wants(`"2"`, 0)
	wants("null", 0)
	wants("[3]", 0)
	wants("true", 0)
	cases = append(cases,
		decodeCase{name: "no such field", side: status("x"), value: `{"id":"k"}`, want: `accepted 7 sk {}`},
		decodeCase{name: "no count", side: count, value: `{"id":"k","n":3}`, want: `accepted 7 sk {"id":"k"}`},
		decodeCase{name: "two tests of one field", side: both, value: `{"s":"x","id":"k"}`, want: `accepted 7 sk {"s":"x","id":"k"} flags 11`},
		decodeCase{name: "first of two", side: both, value: `{"s":"y","s":"x","id":"k"}`, want: `accepted 7 sk {"s":"y","s":"x","id":"k"}`},
		decodeCase{name: "null key", side: both, value: `{"s":"x","id":null}`, want: `null_key 7 {"s":"x","id":null}`},
		decodeCase{name: "bad key", side: both, value: `{"s":"x","id":[]}`, want: `bad_key`},
		decodeCase{name: "malformed", side: both, value: `{"s":"x","id":"k"`, want: `malformed`},
	)
	runCases(t, cases)

	// Lenient: what is not valid JSON equals nothing and counts nothing.
	loose := SideSpec{Key: []string{"$.id"}, Keep: keep("$.id"), Lenient: true, Ends: &Test{"$.s", "x"}, Marks: &Test{"$.m", "tru"}, Count: "$.n"}
	runCases(t, []decodeCase{
		{name: "lenient", side: loose, value: `{"id":"k","s":"\u0078","n":12,`, want: `accepted 7 sk {"id":"k"} flags 1 wants 12`},
		{name: "lenient, no quotes", side: loose, value: `{"id":"k","s":x,"m":tru,"n":1x}`, want: `accepted 7 sk {"id":"k"}`},
		{name: "lenient, cut off before it", side: loose, value: `{"id":"k","s":"x`, want: `accepted 7 sk {"id":"k"}`},
		{name: "lenient, bad escape", side: loose, value: `{"id":"k","s":"\x78"}`, want: `accepted 7 sk {"id":"k"}`},
		{name: "lenient, no number", side: loose, value: `{"id":"k","s":"y","n":007}`, want: `accepted 7 sk {"id":"k"}`},
	})
}

// Rows that are used again say nothing of the records before.
func TestWatchedRowsAreReset(t *testing.T) {
	side := SideSpec{Key: []string{"@key"}, Ends: &Test{"$.s", "x"}, Count: "$.n"}
	d, rows := mustCompile(t, side).NewDecoder(), &Rows{}
	for round := range 3 {
		rows.Reset()
		for i := range 4 {
			on := (i+round)%2 == 0
			value := `{"s":"y"}`
			if on {
				value = fmt.Sprintf(`{"s":"x","n":%d}`, i+1)
			}
			d.Append(rows, &Record{Key: []byte("k"), Value: []byte(value)})
			want := `accepted 0 sk ` + value
			if on {
				want += fmt.Sprintf(" flags 1 wants %d", i+1)
			}
			if got := rowText(rows, i); got != want {
				t.Errorf("round %d: %s, want %s", round, got, want)
			}
		}
	}
	plain := &Rows{}
	mustCompile(t, SideSpec{Key: []string{"@key"}}).NewDecoder().Append(plain, &Record{Key: []byte("k"), Value: []byte(`{"s":"x","n":2}`)})
	if len(plain.Flags)+len(plain.Wanted) > 0 {
		t.Errorf("nobody asked for flags %v and counts %v", plain.Flags, plain.Wanted)
	}
}
