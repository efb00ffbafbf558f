package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// joinFiles joins two lists of lines with a configuration and returns the result lines.
func joinFiles(t *testing.T, conf string, a, b []string, args ...string) (place, []string) {
	t.Helper()
	p := newPlace(t)
	all := append([]string{"join", "-c", p.write("join.yaml", conf), "--a", p.write("a.ndjson", a...), "--b", p.write("b.ndjson", b...),
		"--dead", p.path("dead"), "--late", p.path("late"), "--stats", p.path("stats"), "--progress", "none"}, args...)
	o := joinbench(all...)
	o.want(t, 0)
	stats := p.stats("stats")
	checkSums(t, &stats)
	return p, o.lines(t)
}

// wantLines compares result lines, whatever their order.
func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Fatalf("results\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

const keysConf = `a: {key: $.k, time: $.t, keep: [$.n]}
b: {key: $.k, time: $.t, keep: [$.n]}
window: {within: 1h}
grace: 0s
state: {sync: none, tasks: %d, filter: %s}
`

// TestKeyLengths: keys of the lengths at which xxh3 changes its way, and some more, find their own and never a neighbour
// that differs in one byte, at its begin, middle or end.
func TestKeyLengths(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var a, b, want []string
	n := 0
	add := func(key string) {
		text, err := json.Marshal(key)
		if err != nil {
			t.Fatal(err)
		}
		a = append(a, fmt.Sprintf(`{"k":%s,"t":1000,"n":%d}`, text, n))
		b = append(b, fmt.Sprintf(`{"n":%d,"t":1000,"k":%s}`, n, text))
		want = append(want, fmt.Sprintf(`{"key":%s,"ts":1000,"a":{"n":%d},"b":{"n":%[2]d}}`, text, n))
		n++
	}
	for _, length := range []int{0, 1, 8, 9, 16, 17, 128, 129, 240, 241, 1024, 8192} {
		key := make([]byte, length)
		for i := range key {
			key[i] = byte('A' + rng.IntN(26))
		}
		add(string(key))
		for _, at := range slices.Compact([]int{0, length / 2, length - 1}) {
			if at < 0 || at >= length {
				continue
			}
			near := slices.Clone(key)
			near[at] = '-'
			add(string(near))
		}
	}
	slices.Reverse(b)
	for _, tasks := range []int{1, 3} {
		for _, filter := range []string{"none", "fuse8", "fuse16"} {
			_, got := joinFiles(t, fmt.Sprintf(keysConf, tasks, filter), a, b)
			wantLines(t, got, want...)
		}
	}
}

// TestKeyTypes: a number is its text and no string; with key_type: string it is one. Escapes are decoded, of duplicate
// names the first counts.
func TestKeyTypes(t *testing.T) {
	exact := fmt.Sprintf(keysConf, 1, "fuse16")
	side := func(keys ...string) (lines []string) {
		for i, k := range keys {
			lines = append(lines, fmt.Sprintf(`{"k":%s,"t":%d,"n":%d}`, k, 1000+i, i))
		}
		return lines
	}
	for name, c := range map[string]struct {
		conf string
		a, b []string
		want []string // key, n of A, n of B
	}{
		"numbers and strings": {exact, side(`"7"`, `7`, `"7.0"`, `7.0`, `-0`, `0`), side(`0`, `7.0`, `"7.0"`, `7`, `"7"`, `07`),
			[]string{`0 5 0`, `7.0 3 1`, `"7.0" 2 2`, `7 1 3`, `"7" 0 4`}},
		"beyond float64": {exact, side(`9007199254740993`, `9007199254740992`, `1e400`, `123456789012345678901234567890`),
			side(`9007199254740992`, `123456789012345678901234567890`, `1E400`),
			[]string{`9007199254740992 1 0`, `123456789012345678901234567890 3 1`}},
		"as strings": {strings.Replace(exact, "a: {", "a: {key_type: string, ", 1), side(`7`, `8.50`), side(`"7"`, `"8.50"`, `"8.5"`, `7`),
			[]string{`"7" 0 0`, `"8.50" 1 1`}},
		"both as strings": {strings.ReplaceAll(exact, "{key: $.k", "{key_type: string, key: $.k"), side(`7`, `"8"`), side(`"7"`, `8`),
			[]string{`"7" 0 0`, `"8" 1 1`}},
		"escapes": {exact, side(`"k\u0031"`, `"caf\u00e9"`, `"\ud83d\ude00"`, `"a\/b"`, `"tab\t"`, `"\u0000"`, `"<&>"`), side(`"k1"`, `"café"`, `"😀"`, `"a/b"`, `"tab\u0009"`, `"\u0000"`, `"\u003c&>"`),
			[]string{`"k1" 0 0`, `"café" 1 1`, `"😀" 2 2`, `"a/b" 3 3`, `"tab\t" 4 4`, `"\u0000" 5 5`, `"<&>" 6 6`}},
		"case and space":  {exact, side(`"k"`, `"K "`), side(`"K"`, `"k"`, `" k"`, `"K "`), []string{`"k" 0 1`, `"K " 1 3`}},
		"duplicate names": {exact, []string{`{"k":"a","k":"b","t":1000,"t":"x","n":0}`}, side(`"b"`, `"a"`), []string{`"a" 0 1`}},
		"escaped names":   {exact, []string{`{"\u006b":"a","k":"b","t":1000,"n":0}`}, side(`"b"`, `"a"`), []string{`"a" 0 1`}},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			for _, w := range c.want {
				i := strings.LastIndexByte(w[:strings.LastIndexByte(w, ' ')], ' ')
				key := w[:i]
				var n [2]int
				if _, err := fmt.Sscan(w[i:], &n[0], &n[1]); err != nil {
					t.Fatal(err)
				}
				want = append(want, fmt.Sprintf(`{"key":%s,"ts":%d,"a":{"n":%d},"b":{"n":%d}}`, key, 1000+max(n[0], n[1]), n[0], n[1]))
			}
			_, got := joinFiles(t, c.conf, c.a, c.b)
			wantLines(t, got, want...)
		})
	}
}

// TestNullKeys: null is no key, absent is none, "" is one (B11); of a list of paths the first that exists counts, be it null.
func TestNullKeys(t *testing.T) {
	lines := []string{`{"t":1000}`, `{"k":null,"t":1000}`, `{"k":"","t":1000}`}
	p, got := joinFiles(t, fmt.Sprintf(keysConf, 1, "fuse16"), lines, lines)
	wantLines(t, got, `{"key":"","ts":1000,"a":{},"b":{}}`)
	c := p.stats("stats")
	if c.A.NullKey+c.B.NullKey != 4 || c.A.Accepted != 1 || c.B.Accepted != 1 || len(p.lines("dead")) != 0 {
		t.Errorf("null keys of A %d and of B %d, want 2 each: %+v", c.A.NullKey, c.B.NullKey, c)
	}

	list := strings.ReplaceAll(fmt.Sprintf(keysConf, 1, "fuse16"), "key: $.k", `key: [$.x, "@key", $.k]`)
	record := func(offset int, key, payload string) string {
		return fmt.Sprintf(`{"topic":"t","partition":0,"offset":%d,"tstype":"create","ts":1000,"key":%s,"payload":%q}`, offset, key, payload)
	}
	p, got = joinFiles(t, list, []string{
		record(0, `"r"`, `{"x":"x","k":"k","t":1000,"n":0}`), // $.x
		record(1, `"r"`, `{"k":"k","t":1000,"n":1}`),         // the record key
		record(2, `null`, `{"k":"k","t":1000,"n":2}`),        // $.k
		record(3, `"r"`, `{"x":null,"k":"k","t":1000,"n":3}`),
		record(4, `""`, `{"k":"k","t":1000,"n":4}`),
	}, []string{`{"x":"r","t":1000}`, `{"k":"k","t":1000}`, `{"x":"x","t":1000}`, `{"x":"","t":1000}`})
	wantLines(t, got, `{"key":"x","ts":1000,"a":{"n":0},"b":{}}`, `{"key":"r","ts":1000,"a":{"n":1},"b":{}}`,
		`{"key":"k","ts":1000,"a":{"n":2},"b":{}}`, `{"key":"","ts":1000,"a":{"n":4},"b":{}}`)
	if c := p.stats("stats"); c.A.NullKey != 1 {
		t.Errorf("%d A with a null key, want 1", c.A.NullKey)
	}
}

// TestBadKeys: what is neither string nor number is named in the dead-letter file.
func TestBadKeys(t *testing.T) {
	var a []string
	for _, k := range []string{`true`, `false`, `{}`, `[]`, `{"k":"k"}`, `["k"]`} {
		a = append(a, fmt.Sprintf(`{"k":%s,"t":1000}`, k))
	}
	p, got := joinFiles(t, fmt.Sprintf(keysConf, 1, "none"), a, []string{`{"k":"k","t":1000}`})
	wantLines(t, got)
	for i, l := range p.lines("dead") {
		want := fmt.Sprintf(`{"topic":"a","partition":0,"offset":%d,"tstype":"create","ts":0,"key":null,"payload":%q,"reason":"bad_key"}`, i, a[i])
		if l != want {
			t.Errorf("dead letter\n got %s\nwant %s", l, want)
		}
	}
	if c := p.stats("stats"); c.A.BadKey != 6 || len(p.lines("dead")) != 6 {
		t.Errorf("%d bad keys, want 6", c.A.BadKey)
	}
}
