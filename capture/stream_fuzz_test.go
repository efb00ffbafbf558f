package capture

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// streamText is what the compressed inputs of the fuzz targets hold.
var streamText = strings.Repeat(kcatLine+"\n"+rpkLine+"\n", 40)

func gzipOf(t testing.TB, text string) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, err := io.WriteString(w, text)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func zstdOf(t testing.TB, text string) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(true))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return w.EncodeAll([]byte(text), nil)
}

// unzip reads a whole stream with the library and nothing of ours.
func unzip(kind string, data []byte) ([]byte, error) {
	var r io.Reader
	var err error
	if kind == "gzip" {
		r, err = gzip.NewReader(bytes.NewReader(data))
	} else {
		var z *zstd.Decoder
		if z, err = zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderConcurrency(1)); err == nil {
			defer z.Close()
		}
		r = z
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, 64<<20))
}

// FuzzStream: a compressed input that is damaged or cut short is refused by name, or all that the library makes of it is
// read: never a part of it, as if that were the file.
func FuzzStream(f *testing.F) {
	for kind, data := range map[bool][]byte{false: gzipOf(f, streamText), true: zstdOf(f, streamText)} {
		f.Add(kind, data)
		for _, n := range []int{0, 1, 2, 4, 9, 10, 18, len(data) / 2, len(data) - 9, len(data) - 8, len(data) - 5, len(data) - 4, len(data) - 1} {
			f.Add(kind, data[:n])
		}
		for _, at := range []int{0, 2, 3, 4, 5, 8, len(data) / 2, len(data) - 8, len(data) - 4, len(data) - 1} {
			damaged := bytes.Clone(data)
			damaged[at] ^= 0x10
			f.Add(kind, damaged)
		}
		f.Add(kind, append(bytes.Clone(data), data...)) // two streams are one
		f.Add(kind, append(bytes.Clone(data), data[:len(data)/2]...))
		f.Add(kind, append(bytes.Clone(data), "garbage"...))
		f.Add(kind, append(bytes.Clone(data), 0, 0, 0, 0))
	}
	f.Add(false, gzipOf(f, ""))
	f.Add(true, zstdOf(f, ""))
	f.Add(true, []byte("\x50\x2a\x4d\x18\x04\x00\x00\x00abcd")) // a zstd frame to be skipped
	f.Fuzz(func(t *testing.T, isZstd bool, data []byte) {
		name, kind := "in.ndjson.gz", "gzip"
		if isZstd {
			name, kind = "in.ndjson.zst", "zstd"
		}
		want, wantErr := unzip(kind, data)
		if wantErr == nil && (len(want) > 16<<20 || bytes.HasPrefix(want, []byte("\x1f\x8b")) || bytes.HasPrefix(want, []byte("\x28\xb5\x2f\xfd"))) {
			return // a bomb takes long; what is compressed twice is refused
		}
		dir := t.TempDir()
		path := writeTemp(t, name, data)
		in, err := Open(OpenOptions{Path: path, SpoolDir: dir})
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%s: error %v, the library says %v", kind, err, wantErr)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Fatalf("%v are left in the spool directory", left)
		}
		if err != nil {
			if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), kind) {
				t.Fatalf("error %q names no file or kind", err)
			}
			return
		}
		defer in.Close()
		if in.id.Size != int64(len(want)) || in.Lines() != int64(linesIn(want)) {
			t.Fatalf("%d bytes in %d lines, the library has %d in %d", in.id.Size, in.Lines(), len(want), linesIn(want))
		}
	})
}

// linesIn counts lines; the last one may have no end.
func linesIn(text []byte) int {
	n := bytes.Count(text, []byte("\n"))
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

// FuzzFile: any bytes as an uncompressed file: every line comes out once, in the partition it belongs to, with its number; what
// each of them must be as a record is FuzzLine's business.
func FuzzFile(f *testing.F) {
	for _, name := range []string{"value", "kcat", "rpk"} {
		content, err := os.ReadFile("testdata/" + name + ".ndjson")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(Auto), content)
	}
	for _, text := range []string{"", "\n", "\r\n", "\r", "\n\n\n", kcatLine, kcatLine + "\r\n\r\n" + kcatLine, "\xef\xbb\xbf" + kcatLine + "\n" + kcatLine, "\x00\n\xff\n" + rpkLine,
		strings.ReplaceAll(kcatLine, "2", "3") + "\n" + kcatLine + "\nx\n" + kcatLine, "{}\n" + strings.Repeat("[", 200), strings.Repeat("x", 300) + "\n" + kcatLine} {
		for _, format := range []Format{Auto, Value, Kcat, Rpk} {
			f.Add(uint8(format), []byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, format uint8, content []byte) {
		if bytes.HasPrefix(content, []byte("\x1f\x8b")) || bytes.HasPrefix(content, []byte("\x28\xb5\x2f\xfd")) {
			return // refused: compressed
		}
		const longest = 200
		path := writeTemp(t, "in", content)
		in, err := Open(OpenOptions{Path: path, Format: Format(format % 4), SpoolDir: t.TempDir(), tuning: tuning{window: 64, maxLine: longest}})
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		lines := bytes.SplitAfter(content, []byte("\n"))
		if len(lines[len(lines)-1]) == 0 {
			lines = lines[:len(lines)-1]
		}
		seen := make([]bool, len(lines))
		for _, partition := range in.Partitions() {
			for _, r := range readFrom(t, in, partition, 0, 3) {
				i := r.Place - 1
				if i < 0 || i >= int64(len(lines)) || seen[i] {
					t.Fatalf("line %d of %d comes twice, or is none", r.Place, len(lines))
				}
				seen[i] = true
				line := bytes.TrimSuffix(bytes.TrimSuffix(lines[i], []byte("\n")), []byte("\r"))
				if (r.Damaged || in.Format() == Value) && !bytes.HasPrefix(line, r.Value) {
					t.Fatalf("line %d is %q and was read as %q", r.Place, line, r.Value)
				}
				if !r.Damaged && in.Format() == Value && len(r.Value) != len(line) {
					t.Fatalf("line %d is %q and was read as %q", r.Place, line, r.Value)
				}
			}
		}
		for i, ok := range seen {
			if !ok {
				t.Fatalf("line %d of %d is in no partition: %q", i+1, len(lines), lines[i])
			}
		}
	})
}
