package capture

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/xxh3"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestGolden(t *testing.T) {
	for _, f := range []Format{Value, Kcat, Rpk} {
		t.Run(f.String(), func(t *testing.T) {
			in := mustOpen(t, OpenOptions{Path: "testdata/" + f.String() + ".ndjson", Topic: "given"})
			var b strings.Builder
			fmt.Fprintf(&b, "format=%s topic=%s foreign=%d lines=%d partitions=%v\n", in.Format(), in.Topic(), in.ForeignTopics(), in.Lines(), in.Partitions())
			for _, p := range in.Partitions() {
				rs := readFrom(t, in, p, 0, 3)
				if int64(len(rs)) != in.LinesOf(p) {
					t.Errorf("LinesOf(%d) = %d, read %d", p, in.LinesOf(p), len(rs))
				}
				b.WriteString(dump(rs))
			}
			golden := "testdata/" + f.String() + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if b.String() != string(want) {
				t.Errorf("got\n%s\nwant\n%s", b.String(), want)
			}
		})
	}
}

const (
	kcatLine = `{"topic":"t","partition":2,"offset":5,"tstype":"create","ts":9,"key":"k","payload":"v"}`
	rpkLine  = `{"topic":"t","partition":2,"offset":5,"timestamp":9,"key":"k","value":"v"}`
)

func TestAutoLooksAtTheFirstLine(t *testing.T) {
	for _, c := range []struct {
		content string
		want    Format
	}{
		{"", Value},
		{"\n \n", Value},
		{`{"id":1}` + "\n" + kcatLine, Value},
		{kcatLine + "\n" + `{"id":1}`, Kcat},
		{rpkLine, Rpk},
		{"\n\r\n" + rpkLine, Rpk},
		{"\ufeff" + kcatLine, Kcat},
		{`{"topic":"t","partition":2,"offset":5}`, Value},
		{`{"topic":"t","partition":0,"offset":1,"timestamp":1}`, Rpk}, // a tombstone with a null key
		{kcatLine[:40], Value},
	} {
		if got := openBytes(t, c.content, Auto).Format(); got != c.want {
			t.Errorf("%q is read as %s, want %s", c.content, got, c.want)
		}
	}
}

func TestLineEnds(t *testing.T) {
	for _, content := range []string{"a\nb\nc\n", "a\nb\nc", "a\r\nb\r\nc\r\n", "a\nb\r\nc", "a\r\nb\nc\r"} {
		in := openBytes(t, content, Value)
		rs := readFrom(t, in, 0, 0, 2)
		if len(rs) != 3 || in.Lines() != 3 {
			t.Fatalf("%q: %d records, %d lines", content, len(rs), in.Lines())
		}
		for i, r := range rs {
			if string(r.Value) != "abc"[i:i+1] || r.Offset != int64(i) || r.Place != int64(i+1) || r.Damaged {
				t.Errorf("%q: %s", content, dump(rs[i:i+1]))
			}
		}
	}
	if in := openBytes(t, "", Auto); in.Lines() != 0 || len(in.Partitions()) != 0 {
		t.Errorf("an empty file has %d lines, partitions %v", in.Lines(), in.Partitions())
	}
}

// malformed holds lines that are no envelope of either tool, by what is wrong with them.
var malformed = map[string]string{
	"blank":               "",
	"white space":         " \t ",
	"no JSON":             "hello",
	"array":               "[" + kcatLine + "]",
	"null":                "null",
	"empty object":        "{}",
	"cut off":             kcatLine[:len(kcatLine)-1],
	"cut in a string":     kcatLine[:len(kcatLine)-4],
	"two values":          kcatLine + kcatLine,
	"trailing":            kcatLine + " x",
	"trailing comma":      `{"topic":"t","partition":2,"offset":5,"ts":9,"payload":"v",}`,
	"double comma":        `{"topic":"t",,"partition":2,"offset":5,"ts":9,"payload":"v"}`,
	"no colon":            `{"topic" "t","partition":2,"offset":5,"ts":9,"payload":"v"}`,
	"no comma":            `{"topic":"t" "partition":2,"offset":5,"ts":9,"payload":"v"}`,
	"byte order mark":     "\ufeff" + kcatLine,
	"no topic":            `{"partition":2,"offset":5,"ts":9,"payload":"v","value":"v","timestamp":9}`,
	"null topic":          `{"topic":null,"partition":2,"offset":5,"ts":9,"timestamp":9,"payload":"v","value":"v"}`,
	"no partition":        `{"topic":"t","offset":5,"timestamp":9,"payload":"v"}`,
	"no offset":           `{"topic":"t","partition":2,"timestamp":9,"payload":"v"}`,
	"no payload, no time": `{"topic":"t","partition":2,"offset":5,"ts":9,"key":"k"}`,
	"partition -1":        `{"topic":"t","partition":-1,"offset":5,"timestamp":9,"payload":"v"}`,
	"partition 2^31":      `{"topic":"t","partition":2147483648,"offset":5,"timestamp":9,"payload":"v"}`,
	"partition text":      `{"topic":"t","partition":"2","offset":5,"timestamp":9,"payload":"v"}`,
	"partition 2.0":       `{"topic":"t","partition":2.0,"offset":5,"timestamp":9,"payload":"v"}`,
	"partition 02":        `{"topic":"t","partition":02,"offset":5,"timestamp":9,"payload":"v"}`,
	"partition null":      `{"topic":"t","partition":null,"offset":5,"timestamp":9,"payload":"v"}`,
	"offset -1":           `{"topic":"t","partition":2,"offset":-1,"timestamp":9,"payload":"v"}`,
	"offset 1e3":          `{"topic":"t","partition":2,"offset":1e3,"timestamp":9,"payload":"v"}`,
	"offset 2^63":         `{"topic":"t","partition":2,"offset":9223372036854775808,"timestamp":9,"payload":"v"}`,
	"offset 10^20":        `{"topic":"t","partition":2,"offset":100000000000000000000,"timestamp":9,"payload":"v"}`,
	"offset -":            `{"topic":"t","partition":2,"offset":-,"timestamp":9,"payload":"v"}`,
	"time text":           `{"topic":"t","partition":2,"offset":5,"ts":"9","timestamp":"9","payload":"v"}`,
	"time null":           `{"topic":"t","partition":2,"offset":5,"ts":null,"timestamp":null,"payload":"v"}`,
	"key number":          `{"topic":"t","partition":2,"offset":5,"ts":9,"timestamp":9,"key":1,"payload":"v"}`,
	"payload object":      `{"topic":"t","partition":2,"offset":5,"ts":9,"timestamp":9,"payload":{},"value":{}}`,
	"first payload bad":   `{"topic":"t","partition":2,"offset":5,"ts":9,"timestamp":9,"payload":1,"payload":"v","value":1,"value":"v"}`,
	"bad escape":          `{"topic":"t","partition":2,"offset":5,"timestamp":9,"payload":"\x"}`,
	"bad \\u":             `{"topic":"t","partition":2,"offset":5,"timestamp":9,"payload":"\u12g4"}`,
	"short \\u":           `{"topic":"t","partition":2,"offset":5,"timestamp":9,"payload":"\u12"}`,
	"lone high surrogate": `{"topic":"t","partition":2,"offset":5,"timestamp":9,"payload":"\ud83d"}`,
	"lone low surrogate":  `{"topic":"t","partition":2,"offset":5,"timestamp":9,"payload":"\ude00"}`,
	"two high surrogates": `{"topic":"t","partition":2,"offset":5,"timestamp":9,"payload":"\ud83d\ud83d"}`,
	"invalid UTF-8":       "{\"topic\":\"t\",\"partition\":2,\"offset\":5,\"timestamp\":9,\"payload\":\"\xff\"}",
	"overlong UTF-8":      "{\"topic\":\"t\",\"partition\":2,\"offset\":5,\"timestamp\":9,\"payload\":\"\xc0\x80\"}",
	"surrogate UTF-8":     "{\"topic\":\"t\",\"partition\":2,\"offset\":5,\"timestamp\":9,\"payload\":\"\xed\xa0\x80\"}",
	"cut UTF-8":           "{\"topic\":\"t\",\"partition\":2,\"offset\":5,\"timestamp\":9,\"payload\":\"\xe2\x82\"}",
	"control character":   "{\"topic\":\"t\",\"partition\":2,\"offset\":5,\"timestamp\":9,\"payload\":\"a\tb\"}",
	"bad unknown field":   `{"topic":"t","partition":2,"offset":5,"timestamp":9,"payload":"v","x":[1,,2]}`,
	"bad unknown string":  `{"topic":"t","partition":2,"offset":5,"timestamp":9,"payload":"v","x":{"y":["\q"]}}`,
	"bad literal":         `{"topic":"t","partition":2,"offset":5,"timestamp":9,"payload":"v","x":tru}`,
	"bad duplicate":       `{"topic":"t","partition":2,"offset":5,"timestamp":9,"payload":"v","payload":+1}`,
	"name not text":       `{"topic":"t","partition":2,"offset":5,"timestamp":9,"payload":"v",1:2}`,
	"unclosed unknown":    `{"topic":"t","partition":2,"offset":5,"timestamp":9,"payload":"v","x":{"y":1}`,
	"too deep":            `{"topic":"t","partition":2,"offset":5,"timestamp":9,"payload":"v","x":` + strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1) + `}`,
}

func TestMalformedLinesAreCountedWithTheirPlace(t *testing.T) {
	for _, f := range []Format{Kcat, Rpk} {
		good := map[Format]string{Kcat: kcatLine, Rpk: rpkLine}[f]
		for what, line := range malformed {
			in := openBytes(t, good+"\n"+line+"\r\n"+good+"\n"+line+"\r", f)
			rs := readFrom(t, in, DamagedPartition, 0, 2)
			if len(rs) != 2 || rs[0].Place != 2 || rs[1].Place != 4 {
				t.Errorf("%s, %s: damaged:\n%s", f, what, dump(rs))
				continue
			}
			for _, r := range rs {
				if !r.Damaged || string(r.Value) != line || r.Value == nil || r.Key != nil || r.Offset != r.Place-1 || r.Partition != DamagedPartition {
					t.Errorf("%s, %s: %s", f, what, dump(rs))
				}
			}
			rs = readFrom(t, in, 2, 0, 2)
			if len(rs) != 2 || rs[0].Place != 1 || rs[1].Place != 3 || string(rs[1].Value) != "v" {
				t.Errorf("%s, %s: the good lines around it:\n%s", f, what, dump(rs))
			}
		}
	}
}

func TestTolerated(t *testing.T) {
	for what, line := range map[string]string{
		"unknown fields": `{"x":{"a":[1,-0.5e+3,true,false,null,{}],"":[]},"topic":"t","partition":2,"offset":5,"ts":9,"key":"k","payload":"v"}`,
		"deep":           `{"topic":"t","partition":2,"offset":5,"ts":9,"key":"k","payload":"v","x":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`,
		"duplicates":     `{"topic":"t","partition":2,"offset":5,"ts":9,"key":"k","payload":"v","topic":1,"partition":"","offset":null,"ts":[],"key":{},"payload":0}`,
		"-0":             `{"topic":"t","partition":2,"offset":5,"ts":9,"key":"k","payload":"v","z":-0}`,
		"other tool":     `{"topic":"t","partition":2,"offset":5,"ts":9,"key":"k","payload":"v","timestamp":"x","value":1,"value_size":1}`,
		"name as value":  `{"topic":"t","partition":2,"offset":5,"ts":9,"key":"k","payload":"v","y":"payload"}`,
	} {
		rs := readFrom(t, openBytes(t, line, Kcat), 2, 0, 1)
		if len(rs) != 1 || rs[0].Offset != 5 || rs[0].Timestamp != 9 || string(rs[0].Key) != "k" || string(rs[0].Value) != "v" {
			t.Errorf("%s: %s", what, dump(rs))
		}
	}
}

func TestExtremeIntegers(t *testing.T) {
	in := openBytes(t, `{"topic":"t","partition":2147483647,"offset":9223372036854775807,"ts":-9223372036854775808,"payload":null}`, Auto)
	rs := readFrom(t, in, 1<<31-1, 0, 1)
	if len(rs) != 1 || rs[0].Offset != 1<<63-1 || rs[0].Timestamp != -1<<63 || rs[0].Value != nil || rs[0].Key != nil {
		t.Error(dump(rs))
	}
}

func TestLongLines(t *testing.T) {
	pad := strings.Repeat("x", 5000)
	long := strings.Replace(kcatLine, `"v"`, `"`+pad+`"`, 1)
	content := kcatLine + "\n" + long + "\n" + kcatLine + "\n" + long
	in := mustOpen(t, OpenOptions{Path: writeTemp(t, "in", []byte(content)), tuning: tuning{window: 64}})
	rs := readFrom(t, in, 2, 0, 2)
	if len(rs) != 4 || string(rs[1].Value) != pad || string(rs[2].Value) != "v" || string(rs[3].Value) != pad {
		t.Errorf("%d records of lines longer than the window", len(rs))
	}
	for _, limit := range []int{len(long), len(long) - 1, 100} {
		in := mustOpen(t, OpenOptions{Path: writeTemp(t, "in", []byte(content)), tuning: tuning{window: 64, maxLine: limit}})
		damaged := readFrom(t, in, DamagedPartition, 0, 2)
		if limit == len(long) {
			if len(damaged) != 0 {
				t.Errorf("a line of exactly the limit is damaged")
			}
			continue
		}
		if len(damaged) != 2 || damaged[0].Place != 2 || damaged[1].Place != 4 || string(damaged[0].Value) != long[:limit] {
			t.Errorf("limit %d: damaged %s", limit, dump(damaged))
		}
		if rs := readFrom(t, in, 2, 0, 2); len(rs) != 2 || rs[1].Place != 3 {
			t.Errorf("limit %d: good %s", limit, dump(rs))
		}
		value := mustOpen(t, OpenOptions{Path: in.Path(), Format: Value, tuning: tuning{window: 64, maxLine: limit}})
		if rs := readFrom(t, value, 0, 0, 3); len(rs) != 4 || !rs[1].Damaged || rs[1].Offset != 1 || rs[2].Damaged || string(rs[2].Value) != kcatLine {
			t.Errorf("limit %d: value %s", limit, dump(rs))
		}
	}
}

// TestLimitOfLines checks the real limit, 64 MiB, once.
func TestLimitOfLines(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 130 MiB")
	}
	content := bytes.Repeat([]byte{'1'}, maxLineBytes)
	content = append(append(content, "\n2\n"...), bytes.Repeat([]byte{'3'}, maxLineBytes+1)...)
	in := openBytes(t, string(content), Value)
	rs := readFrom(t, in, 0, 0, 9)
	if len(rs) != 3 || len(rs[0].Value) != maxLineBytes || rs[0].Damaged || string(rs[1].Value) != "2" || len(rs[2].Value) != cutBytes || !rs[2].Damaged {
		t.Errorf("%d records", len(rs))
	}
}

func compress(t *testing.T, kind string, content []byte) []byte {
	var b bytes.Buffer
	if kind == ".gz" {
		half := len(content) / 2
		for _, part := range [][]byte{content[:half], content[half:]} { // two members, as `cat a.gz b.gz` makes
			z := gzip.NewWriter(&b)
			if _, err := z.Write(part); err != nil {
				t.Fatal(err)
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
		}
		return b.Bytes()
	}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return z.EncodeAll(content, nil)
}

// TestSpools reads one content as a file, compressed, from stdin and through a pipe: same records, same
// identity, nothing left in the spool directory unless it has a name.
func TestSpools(t *testing.T) {
	content, err := os.ReadFile("testdata/kcat.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	plain := openBytes(t, string(content), Auto)
	if plain.Identity() != (Identity{int64(len(content)), xxh3.Hash(content)}) {
		t.Errorf("identity %+v", plain.Identity())
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := exec.Command("mkfifo", fifo).Run(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = os.WriteFile(fifo, content, 0) }()
	for _, o := range []OpenOptions{
		{Path: writeTemp(t, "in.ndjson.gz", compress(t, ".gz", content))},
		{Path: writeTemp(t, "in.ndjson.ZST", compress(t, ".zst", content))},
		{Path: "-", Stdin: bytes.NewReader(content)},
		{Path: "-", Stdin: bytes.NewReader(content), SpoolName: "a.spool"},
		{Path: fifo},
	} {
		o.SpoolDir = t.TempDir()
		in := mustOpen(t, o)
		if in.Identity() != plain.Identity() || in.Format() != Kcat {
			t.Errorf("%s: identity %+v, format %s", o.Path, in.Identity(), in.Format())
		}
		if !slices.Equal(in.Partitions(), plain.Partitions()) {
			t.Errorf("%s: partitions %v", o.Path, in.Partitions())
		}
		for _, p := range plain.Partitions() {
			mustEqual(t, o.Path, readFrom(t, in, p, 0, 3), readFrom(t, plain, p, 0, 3))
		}
		left, err := os.ReadDir(o.SpoolDir)
		if err != nil {
			t.Fatal(err)
		}
		if o.SpoolName == "" {
			if len(left) != 0 || in.SpoolPath() != "" {
				t.Errorf("%s: left %v", o.Path, left)
			}
			continue
		}
		kept, err := os.ReadFile(filepath.Join(o.SpoolDir, o.SpoolName))
		if err != nil || !bytes.Equal(kept, content) || len(left) != 1 || in.SpoolPath() != filepath.Join(o.SpoolDir, o.SpoolName) {
			t.Errorf("kept spool: %v, %v", left, err)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	content, err := os.ReadFile("testdata/kcat.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put := func(name string, b []byte) string { return writeTemp(t, name, b) }
	gz, zst := compress(t, ".gz", content), compress(t, ".zst", content)
	for _, c := range []struct {
		o    OpenOptions
		want []string
	}{
		{OpenOptions{Path: dir + "/none"}, []string{dir + "/none", "does not exist", "check the path"}},
		{OpenOptions{Path: dir}, []string{dir, "is a directory"}},
		{OpenOptions{Path: put("a.gz", gz[:len(gz)-9])}, []string{"a.gz", "cut off"}},
		{OpenOptions{Path: put("b.zst", zst[:len(zst)-9])}, []string{"b.zst", "cut off"}},
		{OpenOptions{Path: put("c.gz", content)}, []string{"c.gz", "not whole gzip data", "suffix"}},
		{OpenOptions{Path: put("c.zst", content)}, []string{"c.zst", "not whole zstd data", "suffix"}},
		{OpenOptions{Path: put("empty.gz", nil)}, []string{"empty.gz", "cut off"}},
		{OpenOptions{Path: put("d", gz)}, []string{"/d ", "gzip data", ".gz"}},
		{OpenOptions{Path: "-", Stdin: bytes.NewReader(zst)}, []string{"stdin", "zstd data", "zstd -dc"}},
		{OpenOptions{Path: "-", Stdin: bytes.NewReader(nil), SpoolDir: dir + "/none"}, []string{"spooling stdin", dir + "/none", "--state-dir"}},
		{OpenOptions{Path: "-", Stdin: failing{}}, []string{"reading stdin", "broken cable"}},
	} {
		in, err := Open(c.o)
		if err == nil {
			_ = in.Close()
			t.Errorf("%s opens", c.o.Path)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q lacks %q", c.o.Path, err, w)
			}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, path := range []string{put("e", content), put("e.gz", gz)} {
		if _, err := OpenContext(ctx, OpenOptions{Path: path}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled: %v", path, err)
		}
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("broken cable") }

func TestParseFormat(t *testing.T) {
	for _, f := range []Format{Auto, Value, Kcat, Rpk} {
		if got, err := ParseFormat(f.String()); got != f || err != nil {
			t.Errorf("%s: %v, %v", f, got, err)
		}
	}
	if f, err := ParseFormat(""); f != Auto || err != nil {
		t.Errorf("empty: %v, %v", f, err)
	}
	if _, err := ParseFormat("csv"); err == nil || !strings.Contains(err.Error(), `"csv"`) || !strings.Contains(err.Error(), "kcat") {
		t.Errorf("csv: %v", err)
	}
}

func TestIsFile(t *testing.T) {
	path := writeTemp(t, "in", []byte("1\n"))
	in := mustOpen(t, OpenOptions{Path: path})
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if !in.IsFile(link) || in.IsFile(path+".out") || in.IsFile("-") {
		t.Error("IsFile")
	}
}
