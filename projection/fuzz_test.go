package projection

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// fuzzSides are the specs that every fuzzed document is decoded under.
var fuzzSides = []SideSpec{
	{Key: []string{"$.id"}, Time: "@timestamp", Keep: []KeepField{{Name: "v", Path: "$.v"}, {Name: "w", Path: "$.a[1].w"}}},
	{Key: []string{"$.a[1].w", "@key", "$.a"}, Time: "$.t", TimeUnit: "ms", Keep: []KeepField{{Name: "a", Path: "$.a"}, {Name: "x", Path: `$["x.y"]`}}},
	{Key: []string{"@key"}, Time: "@timestamp", KeyString: true},
	{Key: []string{"$"}, Time: "@timestamp", Store: "full", KeyString: true},
	{Key: []string{"$.id", "$.v.id"}, Time: "$.a[0]", TimeUnit: "us", Keep: []KeepField{{Name: "all", Path: "$"}, {Name: "e", Path: `$[""]`}}},
	{Key: []string{"@key"}, Time: "@timestamp", Keep: []KeepField{{Name: "v", Path: "$.v"}}, Ends: &Test{"$.v", "true"}, Marks: &Test{"$.id", "A"}, Count: "$.a"},
	{Key: []string{"@key", "$.w"}, Time: "@timestamp", Store: "full", Ends: &Test{"$.a", ""}, Marks: &Test{"$.v", "-12.5e+10"}, Count: "$.t"},
}

// bothWays are the decoders of one spec, strict and lenient. They live through many documents, as a scanner guesses
// by those before.
type bothWays struct {
	side          SideSpec
	strict, loose *Decoder
}

func newDecoders(t testing.TB) (all []bothWays) {
	for _, side := range fuzzSides {
		loose := side
		loose.Lenient = true
		all = append(all, bothWays{side, mustCompile(t, side).NewDecoder(), mustCompile(t, loose).NewDecoder()})
	}
	return all
}

// checkDecode compares the decoders with the reference under all specs, and holds the lenient ones to what they
// promise: valid documents decode as in strict mode, and whatever comes out is JSON on one line.
func checkDecode(t *testing.T, all []bothWays, rec Record) {
	t.Helper()
	valid := referenceValid(rec.Value)
	var strict, loose Rows
	for i, d := range all {
		strict.Reset()
		loose.Reset()
		d.strict.Append(&strict, &rec)
		d.loose.Append(&loose, &rec)
		got, want := rowText(&strict, 0), reference(d.side, rec)
		if got != want {
			t.Fatalf("spec %d, key %q, time %d\nvalue %q\n got %q\nwant %q", i, rec.Key, rec.Timestamp, rec.Value, got, want)
		}
		if l := rowText(&loose, 0); valid && l != got {
			t.Fatalf("spec %d, lenient, valid value %q\n got %q\nwant %q", i, rec.Value, l, got)
		}
		checkPrints(t, d.strict.spec, &strict, rec)
		checkPrints(t, d.loose.spec, &loose, rec)
	}
}

func checkPrints(t *testing.T, s *Spec, rows *Rows, rec Record) {
	t.Helper()
	if rows.Fate[0] != Accepted && rows.Fate[0] != NullKey {
		return
	}
	body := s.AppendOutput(nil, rows.BodyOf(0))
	key := AppendKey(nil, rows.Key(0))
	for _, out := range [][]byte{body, key} {
		if !referenceValid(out) || strings.ContainsAny(string(out), "\n\r") {
			t.Fatalf("lenient %v, value %q: prints %q", s.lenient, rec.Value, out)
		}
	}
}

var fuzzSeeds = []string{
	`{"id":"k1","v":{"id":2},"t":1700000000000,"a":[1700000000000000,{"w":"x"}],"x.y":true,"":null}`,
	` { "id" : 9007199254740993 , "id":"b", "a" : [ 1 , { "w" : [ ] , "w":1 } ] } `,
	`{"id":"k\u0031\ud83d\ude00\\\"\/","v":"é😀"}`, `{"a":{"1":{"w":1}},"t":-0,"id":null}`, `{"t":1e3,"id":[[[]]]}`, `"plain"`, `-0.5E-7`, `null`, `[]`, `{}`, `[{"w":1},{"w":{"w":2}}]`,
	"{\"id\":\"0123456789abcdef0123456789abcdef\xc3\xa9\"}",
}

func FuzzDecode(f *testing.F) {
	for _, doc := range append(fuzzSeeds, malformed...) {
		f.Add([]byte("key"), []byte(doc), int64(7))
		f.Add([]byte("\xff"), []byte(`{"x":`+doc+`,"id":"k"}`), int64(-1))
	}
	f.Fuzz(func(t *testing.T, key, value []byte, ts int64) {
		if len(value) > 1<<16 {
			t.Skip("the reference is slow")
		}
		all := newDecoders(t)
		rec := Record{Key: key, Value: value, Timestamp: ts}
		checkDecode(t, all, rec)
		checkDecode(t, all, Record{Value: []byte(fuzzSeeds[0])}) // other names in other order
		checkDecode(t, all, rec)
		checkDecode(t, all, rec) // now the names are guessed
	})
}

// TestRandomDocuments does the same with documents grown from a grammar and then damaged, so that it sees deep
// and nearly valid ones on every run. Set PROJECTION_SEED to repeat a run.
func TestRandomDocuments(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("PROJECTION_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("PROJECTION_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	rounds := 20_000
	if testing.Short() {
		rounds = 2_000
	}
	valid, all := 0, newDecoders(t)
	for range rounds {
		doc := randomValue(rng, 4)
		for damage := rng.IntN(3); damage > 0 && len(doc) > 0; damage-- {
			doc = damaged(rng, doc)
		}
		if json.Valid(doc) {
			valid++
		}
		var key []byte
		if rng.IntN(3) > 0 {
			key = []byte(randomString(rng))
		}
		rec := Record{Key: key, Value: doc, Timestamp: rng.Int64N(1<<48) - 1000}
		checkDecode(t, all, rec)
		checkDecode(t, all, rec)
	}
	if valid < rounds/5 || valid > rounds*9/10 {
		t.Errorf("%d of %d documents are valid: the mixture is off", valid, rounds)
	}
}

func randomValue(rng *rand.Rand, depth int) []byte {
	kind := rng.IntN(8)
	if depth == 4 && kind > 1 {
		kind = 7
	}
	if depth == 0 {
		kind %= 6
	}
	var out []byte
	space := func() {
		if rng.IntN(4) == 0 {
			out = append(out, " \n\t\r"[rng.IntN(4)])
		}
	}
	switch kind {
	case 0, 1:
		out = append(append(append(out, '"'), randomString(rng)...), '"')
	case 2, 3:
		out = append(out, []string{"0", "-0", "1", "1700000000000", "-12.5e+10", "9007199254740993", "253402300799999", "253402300800000", "18446744073709551616", "999999", "1000000", "12"}[rng.IntN(12)]...)
	case 4, 5:
		out = append(out, []string{"true", "false", "null", "[]", "{}"}[rng.IntN(5)]...)
	case 6:
		out = append(out, '[')
		for n := rng.IntN(4); n >= 0; n-- {
			space()
			out = append(out, randomValue(rng, depth-1)...)
			space()
			if n > 0 {
				out = append(out, ',')
			}
		}
		out = append(out, ']')
	case 7:
		out = append(out, '{')
		for n := rng.IntN(6); n >= 0; n-- {
			space()
			name := []string{"id", "v", "w", "a", "t", "x.y", "", `\u0069d`, "other", "idx"}[rng.IntN(10)]
			out = append(append(append(out, '"'), name...), '"')
			space()
			out = append(out, ':')
			space()
			out = append(out, randomValue(rng, depth-1)...)
			if n > 0 {
				out = append(out, ',')
			}
		}
		space()
		out = append(out, '}')
	}
	return out
}

// randomString is the inside of a JSON string, mostly a valid one.
func randomString(rng *rand.Rand) string {
	var b strings.Builder
	for n := rng.IntN(12); n > 0; n-- {
		b.WriteString([]string{"a", "0", "payment", "é", "日本", "😀", `\n`, `\"`, `\\`, `\/`, `\u0041`, `\ud83d\ude00`, "abcdefgh", " ", "{", "]"}[rng.IntN(16)])
		if rng.IntN(60) == 0 {
			b.WriteString([]string{`\ud800`, `\udc00`, "\xff", "\x01", `\q`}[rng.IntN(5)])
		}
	}
	return b.String()
}

func damaged(rng *rand.Rand, doc []byte) []byte {
	i := rng.IntN(len(doc))
	switch rng.IntN(5) {
	case 0:
		return doc[:i]
	case 1:
		return append(doc[:i:i], doc[i+1:]...)
	case 2:
		return []byte(fmt.Sprintf("%s%c%s", doc[:i], `{}[]",:\ 0`[rng.IntN(10)], doc[i:]))
	case 3:
		doc[i] = byte(rng.IntN(256))
	case 4:
		return append(doc, `}],"1 `[rng.IntN(6)])
	}
	return doc
}
