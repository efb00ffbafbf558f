package projection

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

// decodeCase is one record under one spec; want is the row as rowText tells it. The record's time is 7 unless ts
// is set.
type decodeCase struct {
	name  string
	side  SideSpec
	value string
	key   []byte
	ts    int64
	want  string
}

func runCases(t *testing.T, cases []decodeCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.ts == 0 {
				c.ts = 7
			}
			got := decodeOne(mustCompile(t, c.side), Record{Key: c.key, Value: []byte(c.value), Timestamp: c.ts})
			if got != c.want {
				t.Errorf("%s\n got %s\nwant %s", c.value, got, c.want)
			}
		})
	}
}

func TestRule04Keys(t *testing.T) {
	id := SideSpec{Key: []string{"$.id"}, Keep: keep("$.v")}
	text := SideSpec{Key: []string{"$.id"}, Keep: keep("$.v"), KeyString: true}
	record := SideSpec{Key: []string{"@key"}, Keep: keep("$.v")}
	deep := SideSpec{Key: []string{`$.a[1]["odd.name"]`}, Keep: keep("$.v")}
	list := SideSpec{Key: []string{"@key", "$.id", "$.alt"}, Keep: keep("$.v")}
	runCases(t, []decodeCase{
		{name: "string", side: id, value: `{"id":"k1","v":1}`, want: `accepted 7 sk1 {"v":1}`},
		{name: "empty string is a key", side: id, value: `{"id":""}`, want: `accepted 7 s {}`},
		{name: "absent", side: id, value: `{"v":1}`, want: `null_key 7 {"v":1}`},
		{name: "null", side: id, value: `{"id":null}`, want: `null_key 7 {}`},
		{name: "null is not the string", side: id, value: `{"id":"null"}`, want: `accepted 7 snull {}`},
		{name: "object", side: id, value: `{"id":{"x":1}}`, want: `bad_key`},
		{name: "array", side: id, value: `{"id":[]}`, want: `bad_key`},
		{name: "true", side: id, value: `{"id":true}`, want: `bad_key`},
		{name: "false", side: id, value: `{"id":false}`, want: `bad_key`},
		{name: "number", side: id, value: `{"id":9007199254740993}`, want: `accepted 7 n9007199254740993 {}`},
		{name: "number as written", side: id, value: `{"id":-1.50E+03}`, want: `accepted 7 n-1.50E+03 {}`},
		{name: "string of a number", side: id, value: `{"id":"9007199254740993"}`, want: `accepted 7 s9007199254740993 {}`},
		{name: "number with key_type string", side: text, value: `{"id":12.0}`, want: `accepted 7 s12.0 {}`},
		{name: "escapes", side: id, value: `{"id":"k\u0031\n\"\\\/\b\f\r\t\u00e9\ud83d\ude00"}`, want: "accepted 7 sk1\n\"\\/\b\f\r\té😀 {}"},
		{name: "escaped name", side: id, value: `{"\u0069d":"k1"}`, want: `accepted 7 sk1 {}`},
		{name: "first of two", side: id, value: `{"id":"a","id":"b","v":1,"v":2}`, want: `accepted 7 sa {"v":1}`},
		{name: "first of two, one escaped", side: id, value: `{"\u0069d":"a","id":"b"}`, want: `accepted 7 sa {}`},
		{name: "first of two is null", side: id, value: `{"id":null,"id":"b"}`, want: `null_key 7 {}`},
		{name: "not an object", side: id, value: `[{"id":"a"}]`, want: `null_key 7 {}`},
		{name: "root scalar", side: id, value: `"id"`, want: `null_key 7 {}`},
		{name: "name inside a string", side: id, value: `{"x":"\"id\":\"no\"","id":"k"}`, want: `accepted 7 sk {}`},
		{name: "same name deeper", side: id, value: `{"x":{"id":"no"},"y":[{"id":"no"}],"id":"k"}`, want: `accepted 7 sk {}`},
		{name: "prefix and longer names", side: id, value: `{"i":1,"idx":2,"ID":3,"id":"k"}`, want: `accepted 7 sk {}`},

		{name: "nested", side: deep, value: `{"a":[{"odd.name":"no"},{"odd.name":"k"},3],"v":[1]}`, want: `accepted 7 sk {"v":[1]}`},
		{name: "nested, too short", side: deep, value: `{"a":[1]}`, want: `null_key 7 {}`},
		{name: "nested, empty array", side: deep, value: `{"a":[]}`, want: `null_key 7 {}`},
		{name: "nested, object for array", side: deep, value: `{"a":{"1":{"odd.name":"k"}}}`, want: `null_key 7 {}`},
		{name: "nested duplicates", side: deep, value: `{"a":[0,{"odd.name":1,"odd.name":2}],"a":[0,{"odd.name":3}]}`, want: `accepted 7 n1 {}`},
		{name: "the first duplicate hides what only the second has", side: deep, value: `{"a":3,"a":[0,{"odd.name":"k"}]}`, want: `null_key 7 {}`},

		{name: "record key", side: record, key: []byte("k1"), value: `{"v":2}`, want: `accepted 7 sk1 {"v":2}`},
		{name: "record key empty", side: record, key: []byte{}, value: `{}`, want: `accepted 7 s {}`},
		{name: "record key null", side: record, value: `{}`, want: `null_key 7 {}`},
		{name: "record key of digits is a string", side: record, key: []byte("5"), value: `{}`, want: `accepted 7 s5 {}`},
		{name: "record key not UTF-8", side: record, key: []byte("a\xffb"), value: `{}`, want: "accepted 7 sa\xffb {}"},

		{name: "list: record key", side: list, key: []byte("r"), value: `{"id":"i"}`, want: `accepted 7 sr {}`},
		{name: "list: null record key does not exist", side: list, value: `{"id":"i"}`, want: `accepted 7 si {}`},
		{name: "list: JSON null exists", side: list, value: `{"id":null,"alt":"a"}`, want: `null_key 7 {}`},
		{name: "list: bad key exists", side: list, value: `{"id":[],"alt":"a"}`, want: `bad_key`},
		{name: "list: last", side: list, value: `{"alt":"a"}`, want: `accepted 7 sa {}`},
		{name: "list: none", side: list, value: `{}`, want: `null_key 7 {}`},
		{name: "list in order of the spec, not of the document", side: list, value: `{"alt":"a","id":"i"}`, want: `accepted 7 si {}`},
	})
}

// TestKeyOfRecordEqualsJSONString: rule 4, with the key lengths at which hash functions change their way.
func TestKeyOfRecordEqualsJSONString(t *testing.T) {
	fromKey := mustCompile(t, SideSpec{Key: []string{"@key"}, Keep: keep("$.v")})
	fromPath := mustCompile(t, SideSpec{Key: []string{"$.id"}, Keep: keep("$.v")})
	for _, n := range []int{0, 1, 7, 8, 9, 15, 16, 17, 128, 129, 240, 241, 1024, 8192} {
		for _, fill := range []string{"k", "é", `"`, "\n", "😀"} {
			key := []byte(strings.Repeat(fill, n)[:n/len(fill)*len(fill)])
			doc := append(appendQuoted([]byte(`{"v":1,"id":`), key), '}')
			a := decodeOne(fromKey, Record{Key: key, Value: doc, Timestamp: 7})
			b := decodeOne(fromPath, Record{Value: doc, Timestamp: 7})
			want := fmt.Sprintf("accepted 7 s%s {\"v\":1}", key)
			if a != want || b != want {
				t.Fatalf("%d bytes of %q:\n@key %q\npath %q\nwant %q", n, fill, a, b, want)
			}
		}
	}
}

// malformed are documents that strict decoding refuses wherever the key stands.
var malformed = []string{
	// B59: what a mere look-up of "id" lets pass
	`{"id":"k1","v":1`, `{"id":"k1"} trailing`, `{"id":"k1","bad":}`, `{"bad":"\x","id":"k1"}`, `{"bad":[1,,2],"id":"k1"}`, `{"id":"k1"}{"id":"k2"}`,
	`{"bad":tru,"id":"k1"}`, ``, ` `, "\xef\xbb\xbf{}", `{`, `[`, `"`, `{"id"`, `{"id":`, `{"id":"k1"`, `{"id":"k1",`, `{"id":"k1",}`, `[1,]`, `[,1]`, `{,}`,
	`{"id":"k1"]`, `["k1"}`, `}`, `]`, `{"a":[}`, `{"a":{]}`, `{id:"k1"}`, `{'id':"k1"}`, `{"id" "k1"}`, `{"id"::"k1"}`, `{"id":"k1";}`, `{"id":"k1" "v":1}`,
	`{1:2}`, `{null:1}`, `[1 2]`, `nul`, `nulll`, `True`, `NaN`, `Infinity`, `undefined`,
	// numbers
	`{"n":01}`, `{"n":-}`, `{"n":+1}`, `{"n":1.}`, `{"n":.5}`, `{"n":1e}`, `{"n":1e+}`, `{"n":0x10}`, `{"n":1_000}`, `{"n":--1}`, `{"n":1.2.3}`, `{"n":-01}`, `{"n":1ee5}`, `-`, `00`,
	// strings
	`{"s":"\u12"}`, `{"s":"\u12g4"}`, `{"s":"\U0041"}`, `{"s":"\'"}`, `{"s":"\"}`, "{\"s\":\"a\nb\"}", "{\"s\":\"a\tb\"}", "{\"s\":\"\x00\"}", "{\"s\":\"\x1f\"}",
	"{\"a\nb\":1}", `{"s":"abc`, `{"s":"abcdefghijklmnop`, `{"s":"abc\`, `{"s":"\u`, `{"s":"\ud83d\`,
	// lone surrogates (rule 4)
	`{"s":"\ud800"}`, `{"s":"\udc00"}`, `{"s":"\ud800x"}`, `{"s":"\ud800\n"}`, `{"s":"\ud800\ud800"}`, `{"s":"\ud800\u0041"}`, `{"s":"\uDFFF\uD800"}`, `{"\ud800":1}`, `["\udead"]`,
	// invalid UTF-8 (rule 5)
	"{\"s\":\"\xff\"}", "{\"s\":\"\xc3\"}", "{\"s\":\"\xc3(\"}", "{\"s\":\"\xed\xa0\x80\"}", "{\"s\":\"\xc0\xaf\"}", "{\"s\":\"\xf4\x90\x80\x80\"}", "{\"s\":\"\xe2\x82\"}", "{\"\xff\":1}", "{\"s\":1}\xff",
	// white space that JSON does not know
	"\v{}", "{}\f", "{\"a\":\u00a01}", "\u2028{}", "{}\x00",
}

// TestRule05Malformed puts each text also in the middle of a document, before and behind the key: the verdict does not
// depend on the place, nor on whether anything of the document is needed.
func TestRule05Malformed(t *testing.T) {
	specs := []*Spec{
		mustCompile(t, SideSpec{Key: []string{"$.id"}}),
		mustCompile(t, SideSpec{Key: []string{"$.id"}, Keep: keep("$.v"), Store: "full"}),
		mustCompile(t, SideSpec{Key: []string{"@key"}}),
		mustCompile(t, SideSpec{Key: []string{"@key"}, Keep: keep("$.nothing"), Time: "$.id", TimeUnit: "ms"}),
	}
	for _, doc := range malformed {
		docs := []string{doc}
		if strings.TrimSpace(doc) != "" {
			docs = append(docs, `{"id":"k","x":`+doc+`}`, `{"x":`+doc+`,"id":"k"}`, `[[`+doc+`]]`, doc+" ", " \n\t\r"+doc)
		}
		for _, doc := range docs {
			if referenceValid([]byte(doc)) {
				continue // `{"id":` and the like, completed by what stands around it
			}
			for j, s := range specs {
				if got := decodeOne(s, Record{Key: []byte("r"), Value: []byte(doc), Timestamp: 7}); got != "malformed" {
					t.Errorf("spec %d: %q: %s", j, doc, got)
				}
			}
		}
	}
}

func TestNoDocument(t *testing.T) {
	for _, lenient := range []bool{false, true} {
		s := mustCompile(t, SideSpec{Key: []string{"@key"}, Lenient: lenient})
		for _, rec := range []Record{
			{Key: []byte("k"), Value: nil},
			{Key: []byte("k"), Value: []byte{}},
			{Key: []byte("k"), Value: []byte(" \n")},
			{Key: []byte("k"), Value: []byte(`{"id":"k"}`), Damaged: true},
		} {
			if got := decodeOne(s, rec); got != "malformed" {
				t.Errorf("lenient %v, %+v: %s", lenient, rec, got)
			}
		}
	}
}

func TestDepth(t *testing.T) {
	s := mustCompile(t, SideSpec{Key: []string{"@key"}, Keep: keep("$.v")})
	loose := mustCompile(t, SideSpec{Key: []string{"$.id"}, Keep: keep("$.v"), Lenient: true})
	for _, unit := range []string{"[", `{"a":`, `[{"a":`} {
		for _, levels := range []int{100, maxDepth, maxDepth + 1, maxDepth + 2, 3_000_000} {
			each := strings.Count(unit, "[") + strings.Count(unit, "{")
			n := levels / each
			closing := map[string]string{"[": "]", `{"a":`: "}", `[{"a":`: "}]"}[unit]
			doc := strings.Repeat(unit, n) + "1" + strings.Repeat(closing, n)
			want := "accepted 7 sk {}"
			if n*each > maxDepth {
				want = "malformed"
			}
			if got := decodeOne(s, Record{Key: []byte("k"), Value: []byte(doc), Timestamp: 7}); got != want {
				t.Errorf("%s × %d: %s, want %s", unit, n, got, want)
			}
			if got := decodeOne(loose, Record{Value: []byte(`{"x":` + doc + `,"id":"k","v":1}`), Timestamp: 7}); got != `accepted 7 sk {"v":1}` {
				t.Errorf("lenient, %s × %d: %s", unit, n, got)
			}
		}
	}
}

// TestFateOrder: of several fates the first of malformed, bad_key, bad_time, null_key.
func TestFateOrder(t *testing.T) {
	side := SideSpec{Key: []string{"$.id"}, Time: "$.t", TimeUnit: "ms", Keep: keep("$.v")}
	runCases(t, []decodeCase{
		{name: "malformed before bad key", side: side, value: `{"id":[],"t":-1,}`, want: "malformed"},
		{name: "bad key before bad time", side: side, value: `{"id":[],"t":-1}`, want: "bad_key"},
		{name: "bad time before null key", side: side, value: `{"id":null,"t":-1}`, want: "bad_time"},
		{name: "bad time with a key", side: side, value: `{"id":"k","t":-1}`, want: "bad_time"},
		{name: "null key", side: side, value: `{"id":null,"t":1}`, want: "null_key 1 {}"},
	})
}

// TestRows: rows follow each other without gaps whatever their fates, and keep nothing of the input (B64).
func TestRows(t *testing.T) {
	s := mustCompile(t, SideSpec{Key: []string{"$.id"}, Time: "$.t", TimeUnit: "ms", Keep: keep("$.v")})
	docs := []string{
		`{"id":"a","t":1,"v":"x"}`, `{"id":"b","t":-1,"v":"x"}`, `{"id":[],"t":1,"v":1}`, `{`, `{"id":null,"t":2,"v":2}`, `{"id":"c\n","t":3,"v":{"y": [ 1 ]}}`,
	}
	want := []string{"accepted 1 sa {\"v\":\"x\"}", "bad_time", "bad_key", "malformed", "null_key 2 {\"v\":2}", "accepted 3 sc\n {\"v\":{\"y\":[1]}}"}
	var rows Rows
	d := s.NewDecoder()
	for round := range 3 {
		rows.Reset()
		buf := make([]byte, 0, 64)
		for i, doc := range docs {
			buf = append(buf[:0], doc...)
			d.Append(&rows, &Record{Value: buf, Offset: int64(i)})
			for j := range buf {
				buf[j] = '#'
			}
		}
		if rows.Len() != len(docs) || len(rows.KeyOff) != len(docs)+1 || len(rows.BodyOff) != len(docs)+1 || len(rows.Time) != len(docs) {
			t.Fatalf("round %d: lengths %d %d %d %d", round, rows.Len(), len(rows.KeyOff), len(rows.BodyOff), len(rows.Time))
		}
		for i := range docs {
			if got := rowText(&rows, i); got != want[i] {
				t.Errorf("round %d: %s: got %s, want %s", round, docs[i], got, want[i])
			}
		}
		if !bytes.Equal(rows.Keys, []byte("sasc\n")) {
			t.Errorf("round %d: keys %q", round, rows.Keys)
		}
	}
}

func TestLenient(t *testing.T) {
	side := SideSpec{Key: []string{"$.id"}, Keep: keep("$.v", "$.o"), Lenient: true}
	timed := SideSpec{Key: []string{"$.id"}, Time: "$.t", TimeUnit: "ms", Keep: keep("$.v"), Lenient: true}
	list := SideSpec{Key: []string{"@key", "$.id", "$.alt"}, Keep: keep("$.v"), Lenient: true}
	deep := SideSpec{Key: []string{"$.a[1].id"}, Keep: keep("$.v"), Lenient: true}
	runCases(t, []decodeCase{
		{name: "B59 cut off", side: side, value: `{"id":"k1","v":1`, want: `accepted 7 sk1 {"v":1}`},
		{name: "B59 trailing", side: side, value: `{"id":"k1"} trailing`, want: `accepted 7 sk1 {}`},
		{name: "B59 no value", side: side, value: `{"id":"k1","bad":}`, want: `accepted 7 sk1 {}`},
		{name: "B59 bad escape", side: side, value: `{"bad":"\x","id":"k1"}`, want: `accepted 7 sk1 {}`},
		{name: "B59 two commas", side: side, value: `{"bad":[1,,2],"id":"k1"}`, want: `accepted 7 sk1 {}`},
		{name: "B59 two documents", side: side, value: `{"id":"k1"}{"id":"k2"}`, want: `accepted 7 sk1 {}`},
		{name: "surrogate elsewhere", side: side, value: `{"x":"\ud800","id":"k1"}`, want: `accepted 7 sk1 {}`},
		{name: "invalid UTF-8 elsewhere", side: side, value: "{\"x\":\"\xff\",\"id\":\"k1\"}", want: `accepted 7 sk1 {}`},
		{name: "surrogate in the key", side: side, value: `{"id":"\ud800"}`, want: `malformed`},
		{name: "invalid UTF-8 in the key", side: side, value: "{\"id\":\"\xff\"}", want: `malformed`},
		{name: "bad number as key", side: side, value: `{"id":01}`, want: `malformed`},
		{name: "key cut off", side: side, value: `{"v":1,"id":"k`, want: `malformed`},
		{name: "cut off before the key", side: side, value: `{"v":1,`, want: `malformed`},
		{name: "key surely absent", side: side, value: `{"v":1}}}`, want: `null_key 7 {"v":1}`},
		{name: "bad kept value is left out", side: side, value: `{"v":tru,"o":[1, 2 ],"id":"k"}`, want: `accepted 7 sk {"o":[1,2]}`},
		{name: "kept value with a bad string", side: side, value: `{"v":{"s":"\ud800"},"o":"ok","id":"k"}`, want: `accepted 7 sk {"o":"ok"}`},
		{name: "kept value of mixed brackets", side: side, value: `{"v":[1},"o":2,"id":"k"}`, want: `accepted 7 sk {"o":2}`},
		{name: "first of two", side: side, value: `{"id":"a","id":"b","v":1,"v":2`, want: `accepted 7 sa {"v":1}`},
		{name: "bad name", side: side, value: `{"\id":"no","id":"k"}`, want: `accepted 7 sk {}`},
		{name: "escaped name", side: side, value: `{"\u0069d":"k"}`, want: `accepted 7 sk {}`},
		{name: "bracket in a string", side: side, value: `{"x":{"y":"}\"}"},"id":"k"}`, want: `accepted 7 sk {}`},
		{name: "broken object as key", side: side, value: `{"id":{"x":},"v":1}`, want: `bad_key`},
		{name: "byte order mark", side: side, value: "\xef\xbb\xbf{\"id\":\"k1\"}", want: `malformed`},
		{name: "no JSON at all", side: side, value: `hello`, want: `malformed`},
		{name: "other JSON", side: side, value: `[1]`, want: `null_key 7 {}`},
		{name: "scalar", side: side, value: ` null `, want: `null_key 7 {}`},

		{name: "time behind the fault", side: timed, value: `{"id":"k","x":tru,"t":5}`, want: `accepted 5 sk {}`},
		{name: "time cut off", side: timed, value: `{"id":"k","v":1`, want: `malformed`},
		{name: "time broken", side: timed, value: `{"id":"k","t":1x}`, want: `malformed`},
		{name: "time broken, key bad", side: timed, value: `{"id":[],"t":1x}`, want: `malformed`},
		{name: "time null", side: timed, value: `{"id":"k","t":null]`, want: `bad_time`},
		{name: "time a broken object", side: timed, value: `{"id":"k","t":{x}`, want: `bad_time`},

		{name: "list: record key needs no document", side: list, key: []byte("r"), value: `{"v":1,"x`, want: `accepted 7 sr {"v":1}`},
		{name: "list: unknown first", side: list, value: `{"alt":"a","v":1,"x`, want: `malformed`},
		{name: "list: first surely absent", side: list, value: `{"alt":"a","v":1} x`, want: `accepted 7 sa {"v":1}`},
		{name: "deep", side: deep, value: `{"a":[x,{"id":"k"`, want: `accepted 7 sk {}`},
		{name: "deep, surely absent", side: deep, value: `{"a":[1], "x`, want: `null_key 7 {}`},
		{name: "deep, unknown", side: deep, value: `{"a":[1, `, want: `malformed`},
	})
}

// TestLenientWholeValue: a value that is kept whole must come out as JSON, whatever it is.
func TestLenientWholeValue(t *testing.T) {
	side := SideSpec{Key: []string{"$.id"}, Lenient: true}
	full := SideSpec{Key: []string{"$.id"}, Lenient: true, Store: "full"}
	fullKeep := SideSpec{Key: []string{"$.id"}, Lenient: true, Store: "full", Keep: keep("$.v", "$.w")}
	for _, c := range []struct {
		side             SideSpec
		value, body, out string
	}{
		{side, `{"id": "k"}`, `{"id":"k"}`, `{"id":"k"}`},
		{side, "{\"id\":\"k\",\n\xff", `"{\"id\":\"k\",\n` + "\uFFFD" + `"`, `"{\"id\":\"k\",\n` + "\uFFFD" + `"`},
		{full, `{"id": "k"}`, `{"id":"k"}`, `{"id":"k"}`},
		{full, "{\"id\":\"k\"}\n}", "{\"id\":\"k\"}\n}", `"{\"id\":\"k\"}\n}"`},
		{fullKeep, "{\"id\":\"k\",\"w\": [1, 2],\"v\":tru\n}", "{\"id\":\"k\",\"w\": [1, 2],\"v\":tru\n}", `{"w":[1,2]}`},
		{fullKeep, `{"id":"k","w": 1,"v": {"x": 2}}`, `{"id":"k","w":1,"v":{"x":2}}`, `{"v":{"x":2},"w":1}`},
	} {
		s := mustCompile(t, c.side)
		var rows Rows
		s.NewDecoder().Append(&rows, &Record{Value: []byte(c.value)})
		if rows.Fate[0] != Accepted || string(rows.Key(0)) != "sk" || string(rows.BodyOf(0)) != c.body {
			t.Errorf("%q: %s", c.value, rowText(&rows, 0))
		}
		if out := s.AppendOutput([]byte("x"), rows.BodyOf(0)); string(out) != "x"+c.out {
			t.Errorf("%q: output %s, want x%s", c.value, out, c.out)
		}
	}
}

func TestBody(t *testing.T) {
	order := SideSpec{Key: []string{"@key"}, Keep: []KeepField{{Path: "$.order_id"}, {Name: "sum", Path: "$.amount"}, {Path: "$.lines[0]"}, {Path: `$["a\"b"]`}, {Name: "all", Path: "$"}}}
	few := SideSpec{Key: []string{"@key"}, Keep: keep("$.a", "$.a.b", "$.c")}
	whole := SideSpec{Key: []string{"@key"}}
	twice := SideSpec{Key: []string{"@key"}, Keep: []KeepField{{Name: "x", Path: "$.a"}, {Name: "y", Path: "$.a"}}}
	runCases(t, []decodeCase{
		{name: "names and order of the spec", side: order, key: []byte("k"), value: `{"amount": 5.0, "order_id":"O\u0031", "lines":[ {"x": " a b "} ,2], "a\"b":null}`,
			want: `accepted 7 sk {"order_id":"O\u0031","sum":5.0,"0":{"x":" a b "},"a\"b":null,"all":{"amount":5.0,"order_id":"O\u0031","lines":[{"x":" a b "},2],"a\"b":null}}`},
		{name: "a value and a part of it", side: few, key: []byte("k"), value: `{"c":true,"a":{"b":[],"d":{}}}`, want: `accepted 7 sk {"a":{"b":[],"d":{}},"b":[],"c":true}`},
		{name: "absent ones", side: few, key: []byte("k"), value: `{"a":1}`, want: `accepted 7 sk {"a":1}`},
		{name: "all absent", side: few, key: []byte("k"), value: `[]`, want: `accepted 7 sk {}`},
		{name: "whole", side: whole, key: []byte("k"), value: " { \"a\" :\t[ 1 , { } , \"x \\\" y\" ]\r\n, \"a\":2 } ", want: `accepted 7 sk {"a":[1,{},"x \" y"],"a":2}`},
		{name: "whole scalar", side: whole, key: []byte("k"), value: ` -1.0e5 `, want: `accepted 7 sk -1.0e5`},
		{name: "whole null value", side: whole, key: []byte("k"), value: `null`, want: `accepted 7 sk null`},
		{name: "one path, two names", side: twice, key: []byte("k"), value: `{"a":[ ]}`, want: `accepted 7 sk {"x":[],"y":[]}`},
	})
}

func TestFullStoreProjectsAtOutput(t *testing.T) {
	s := mustCompile(t, SideSpec{Key: []string{"$.id"}, Store: "full", Keep: keep("$.amount", "$.id")})
	var rows Rows
	s.NewDecoder().Append(&rows, &Record{Value: []byte(`{"id": "k", "amount": 5, "more": [1, 2]}`)})
	if got := rowText(&rows, 0); got != `accepted 0 sk {"id":"k","amount":5,"more":[1,2]}` {
		t.Errorf("stored %s", got)
	}
	if got := string(s.AppendOutput(nil, rows.BodyOf(0))); got != `{"amount":5,"id":"k"}` {
		t.Errorf("output %s", got)
	}
}

// TestClock covers arrival and max_skew, which alone look at the wall clock.
func TestClock(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	reads := 0
	clock := func() time.Time { reads++; return now }
	side := func(from string) SideSpec {
		return SideSpec{Key: []string{"@key"}, Keep: keep("$.v"), Time: from, TimeUnit: "ms", MaxSkew: time.Second, Now: clock}
	}
	at := func(ms int64) string { return fmt.Sprintf("accepted %d sk {}", ms) }
	for _, c := range []struct {
		time  string
		ts    int64
		value string
		want  string
	}{
		{"@timestamp", 1_001_000, `{}`, at(1_001_000)},
		{"@timestamp", 1_001_001, `{}`, "bad_time"},
		{"@timestamp", 0, `{}`, at(0)},
		{"@timestamp", -1, `{}`, "bad_time"},
		{"@timestamp", maxTime + 1, `{}`, "bad_time"},
		{"@timestamp", 1<<63 - 1, `{}`, "bad_time"},
		{"@timestamp", -1 << 63, `{}`, "bad_time"},
		{"$.t", 5000, `{"t":6000}`, at(6000)},
		{"$.t", 5000, `{"t":6001}`, "bad_time"},
		{"$.t", 1<<63 - 1, `{"t":6001}`, at(6001)},
		{"$.t", -1, `{"t":1001000}`, at(1_001_000)}, // no record time: the wall clock
		{"$.t", -1, `{"t":1001001}`, "bad_time"},
		{"arrival", -1, `{}`, at(1_000_000)},
	} {
		if got := decodeOne(mustCompile(t, side(c.time)), Record{Key: []byte("k"), Value: []byte(c.value), Timestamp: c.ts}); got != c.want {
			t.Errorf("%s, record time %d, %s: %s, want %s", c.time, c.ts, c.value, got, c.want)
		}
	}
	// Off: nothing is ahead of anything.
	off := side("@timestamp")
	off.MaxSkew = 0
	reads = 0
	if got := decodeOne(mustCompile(t, off), Record{Key: []byte("k"), Value: []byte(`{}`), Timestamp: maxTime}); got != at(maxTime) || reads != 0 {
		t.Errorf("max_skew off: %s, %d looks at the clock", got, reads)
	}
	// The clock is read again once a time is ahead of what it said.
	s := mustCompile(t, side("@timestamp"))
	d, rows := s.NewDecoder(), &Rows{}
	reads = 0
	for _, ts := range []int64{1_000_500, 1_000_600, 1_001_500, 1_001_600} {
		if ts == 1_001_500 {
			now = now.Add(700 * time.Millisecond)
		}
		d.Append(rows, &Record{Key: []byte("k"), Value: []byte(`{}`), Timestamp: ts})
	}
	if fmt.Sprint(rows.Fate) != "[accepted accepted accepted accepted]" || reads != 2 {
		t.Errorf("moving clock: %v after %d looks", rows.Fate, reads)
	}
}
