package capture

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"joinbench/projection"
)

func TestAppendSide(t *testing.T) {
	for _, c := range []struct {
		rec  projection.Record
		want string
	}{
		{projection.Record{Key: []byte("k"), Value: []byte(`{"x":1}`), Timestamp: 1700000000000, Offset: 7},
			`{"topic":"orders","partition":0,"offset":7,"tstype":"create","ts":1700000000000,"key":"k","payload":"{\"x\":1}","reason":"late"}`},
		{projection.Record{Timestamp: -1, Partition: 3},
			`{"topic":"orders","partition":3,"offset":0,"key":null,"payload":null,"reason":"late"}`},
		{projection.Record{Key: []byte{}, Value: []byte("\x00\x1f\n\r\t\b\f\"\\/\x7f é😀"), Place: 9},
			`{"topic":"orders","partition":0,"offset":0,"tstype":"create","ts":0,"key":"","payload":"\u0000\u001f\n\r\t\b\f\"\\/` + "\x7f é😀" + `","reason":"late"}`},
		{projection.Record{Key: []byte("\xff"), Value: []byte("a\xc0\x80b\xe2\x82c\xed\xa0\x80\ufffd\xf0\x9f"), Timestamp: -2},
			`{"topic":"orders","partition":0,"offset":0,"tstype":"create","ts":-2,"key":"` + "\ufffd" + `","payload":"a` + "\ufffd\ufffd" + `b` + "\ufffd\ufffd" + `c` + strings.Repeat("\ufffd", 6) + `","reason":"late"}`},
		{projection.Record{Value: []byte(`{"topic"`), Timestamp: -1, Partition: -1, Offset: 11, Place: 12, Damaged: true},
			`{"topic":"orders","partition":-1,"offset":11,"key":null,"payload":"{\"topic\"","line":12,"reason":"late"}`},
	} {
		if got := string(AppendSide([]byte("x"), "orders", &c.rec, "late")); got != "x"+c.want+"\n" {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, w *Writer, s string) {
	t.Helper()
	if n, err := w.Write([]byte(s)); n != len(s) || err != nil {
		t.Fatalf("Write: %d, %v", n, err)
	}
}

// TestWriterCommitAndResume: what was committed stays, what came after is cut off and written again.
func TestWriterCommitAndResume(t *testing.T) {
	path := writeTemp(t, "out.ndjson", []byte("of an older run\n"))
	w, err := Create(path)
	must(t, err)
	write(t, w, "1\n")
	if w.Bytes() != 0 || content(t, path) != "" {
		t.Errorf("not flushed: %d bytes, %q", w.Bytes(), content(t, path))
	}
	must(t, w.Flush())
	must(t, w.Sync())
	committed := w.Bytes()
	if committed != 2 || content(t, path) != "1\n" {
		t.Errorf("committed %d, %q", committed, content(t, path))
	}
	write(t, w, "2\n3")
	must(t, w.Flush())
	must(t, w.f.Close()) // as a crash leaves it

	w, err = OpenResume(path, committed)
	must(t, err)
	if w.Bytes() != committed || content(t, path) != "1\n" {
		t.Errorf("resumed at %d with %q", w.Bytes(), content(t, path))
	}
	write(t, w, "4\n")
	must(t, w.Close())
	if w.Bytes() != 4 || content(t, path) != "1\n4\n" {
		t.Errorf("at the end %d bytes, %q", w.Bytes(), content(t, path))
	}
	w, err = OpenResume(path, 0)
	must(t, err)
	must(t, w.Close())
	if content(t, path) != "" {
		t.Errorf("length 0 leaves %q", content(t, path))
	}
}

func TestOpenResumeErrors(t *testing.T) {
	path := writeTemp(t, "out", []byte("12"))
	for _, c := range []struct {
		path string
		want []string
	}{
		{path, []string{path, "holds 2 bytes", "committed 3", "remove the state directory"}},
		{path + ".none", []string{path + ".none", "gone", "3 bytes"}},
		{"-", []string{"stdout", "cannot be cut back", "3 bytes"}},
		{os.DevNull, []string{os.DevNull, "cannot be cut back"}},
	} {
		_, err := OpenResume(c.path, 3)
		if err == nil {
			t.Errorf("%s opens", c.path)
			continue
		}
		for _, s := range c.want {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%s: %q lacks %q", c.path, err, s)
			}
		}
	}
	if content(t, path) != "12" {
		t.Errorf("a refused file was changed to %q", content(t, path))
	}
	if _, err := Create(filepath.Join(t.TempDir(), "no", "dir")); err == nil || !strings.Contains(err.Error(), "directory must exist") {
		t.Errorf("no directory: %v", err)
	}
}

// calls notes each write and fails once it has taken limit bytes.
type calls struct {
	sizes []int
	b     bytes.Buffer
	limit int
}

var errFull = errors.New("full")

func (c *calls) Write(p []byte) (int, error) {
	c.sizes = append(c.sizes, len(p))
	if c.b.Len()+len(p) > c.limit {
		n := c.limit - c.b.Len()
		c.b.Write(p[:n])
		return n, errFull
	}
	return c.b.Write(p)
}

func TestWriterKeepsLinesWhole(t *testing.T) {
	sink := &calls{limit: 10 << 20}
	w := NewWriter(sink, "sink")
	line := strings.Repeat("x", 999) + "\n"
	for range 300 {
		write(t, w, line)
	}
	huge := strings.Repeat("y", writeBytes+1)
	write(t, w, huge)
	write(t, w, line)
	must(t, w.Close())
	if want := strings.Repeat(line, 300) + huge + line; sink.b.String() != want || w.Bytes() != int64(len(want)) {
		t.Errorf("%d bytes, sink has %d, want %d", w.Bytes(), sink.b.Len(), len(want))
	}
	for _, n := range sink.sizes {
		if n%1000 != 0 && n != len(huge) {
			t.Errorf("a write of %d bytes cuts a line", n)
		}
	}
	if len(sink.sizes) != 4 {
		t.Errorf("writes %v", sink.sizes)
	}
}

func TestWriterKeepsItsError(t *testing.T) {
	sink := &calls{limit: 5}
	w := NewWriter(sink, "sink")
	write(t, w, "123\n567\n")
	err := w.Flush()
	if !errors.Is(err, errFull) || !strings.Contains(err.Error(), "sink after 5 bytes") || w.Bytes() != 5 {
		t.Errorf("%v, %d bytes", err, w.Bytes())
	}
	if _, again := w.Write([]byte("9\n")); again != err {
		t.Errorf("Write: %v", again)
	}
	if w.Flush() != err || w.Close() != err || len(sink.sizes) != 1 {
		t.Errorf("went on after an error: %v", sink.sizes)
	}
}
