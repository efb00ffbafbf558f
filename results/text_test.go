package results

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with testdata/name.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test ./results -update writes it anew); got:\n%s", path, got)
	}
}

func render(t *testing.T, rec *Record, format string, opt TextOptions) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Render(&b, rec, format, opt); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGoldenReports(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	golden(t, "ok.txt", render(t, exampleRecord(), "text", TextOptions{}))
	golden(t, "incorrect.txt", render(t, brokenRecord(), "text", TextOptions{Width: 80}))
	golden(t, "empty.txt", render(t, &Record{}, "text", TextOptions{}))
	golden(t, "ok.md", render(t, exampleRecord(), "md", TextOptions{}))
	golden(t, "incorrect.md", render(t, brokenRecord(), "md", TextOptions{}))
}

// A report fits the width that was asked for, whatever it says, and has no blanks at the ends of lines.
func TestTextFitsWidth(t *testing.T) {
	long := brokenRecord()
	long.Run.Argv = append(long.Run.Argv, strings.Repeat("x", 300), "--dir", strings.Repeat("/very/long", 30))
	long.Run.Label = strings.Repeat("label ", 30)
	long.Environment.Disk = strings.Repeat("/dev/mapper/volume-", 12)
	long.Thresholds[0].Expr = strings.Repeat("join.filter.", 20)
	long.Arms[0].Name = strings.Repeat("arm", 40)
	for i := range 5000 {
		long.Drops = append(long.Drops, Drop{Epoch: int64(i) + 1<<40, TNs: 90 * 86400 * 1e9, DropNs: 999_999_999,
			DiskBeforeBytes: new(int64(1)<<50 - 1), DiskAfterBytes: new(int64(1) << 49)})
	}
	for _, width := range []int{0, 80, 100, 200} {
		for _, rec := range []*Record{exampleRecord(), brokenRecord(), long, {}} {
			var b bytes.Buffer
			if err := WriteText(&b, rec, width, false); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				line = strings.TrimSuffix(line, "\n")
				if n := utf8.RuneCountInString(line); n > max(width, minWidth) {
					t.Errorf("width %d: %d columns: %q", width, n, line)
				}
				if strings.TrimRight(line, " ") != line {
					t.Errorf("blanks at the end: %q", line)
				}
			}
		}
	}
}

func TestColor(t *testing.T) {
	text := func(color bool) string {
		var b bytes.Buffer
		if err := WriteText(&b, exampleRecord(), 100, color); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	t.Setenv("NO_COLOR", "")
	bare, coloured := text(false), text(true)
	if !strings.HasPrefix(coloured, "\x1b[1mTHRESHOLDS\x1b[0m\n  \x1b[1;32m✓\x1b[0m join") || !strings.Contains(coloured, "\n\x1b[1;32mOK\x1b[0m ") {
		t.Errorf("a coloured report starts with %q", coloured[:20])
	}
	for _, style := range []string{styleReset, styleBold, styleRed, styleGreen, styleYellow} {
		coloured = strings.ReplaceAll(coloured, style, "")
	}
	if coloured != bare {
		t.Error("colour changes more than colour")
	}
	t.Setenv("NO_COLOR", "1")
	if text(true) != bare {
		t.Error("NO_COLOR is not respected")
	}
}

// The figures of a bad run are in the report, next to the words that say what they are.
func TestTextSaysWhatIsWrong(t *testing.T) {
	text := string(render(t, brokenRecord(), "text", TextOptions{}))
	if !strings.HasPrefix(text, "THRESHOLDS\n  ✓ join.filter.fp_ratio<0.0005") ||
		!strings.Contains(text, "\n\nINCORRECT  (exit code 4)\n    quick · after the rewrite") {
		t.Errorf("starts with %q", text[:40])
	}
	for _, want := range []string{"✗ expected lines that are missing: 1,003",
		"✗ lines that came out and were not expected: 2", "✗ lines that came out once too often: 1", "(false negatives): 3",
		"✗ B: 5,000,004 records were read and 5,000,000 have a fate", "✗ cost.ns_per_b<50", "✗ threshold cost.ns_per_b<50 failed: 81.04", "the generator was the limit",
		"! the filter errs more often than predicted", "! RocksDB was compiled with assertions"} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("lacks %q", want)
		}
	}
}

// Columns that do not fit go on below, none is lost, and a ratio stays beside its figure.
func TestWideTable(t *testing.T) {
	head, row := []string{"ARMS"}, []string{"one"}
	for i := range 9 {
		head, row = append(head, strings.Repeat("h", i%3+6), "×"), append(row, strings.Repeat("v", i+3), "1.00")
	}
	p := &page{width: minWidth}
	p.wideTable(head, [][]string{row})
	values := []string{}
	for line := range strings.Lines(p.b.String()) {
		if utf8.RuneCountInString(line) > minWidth+1 {
			t.Errorf("too wide: %q", line)
		}
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] == "one" {
			if len(fields)%2 == 0 {
				t.Errorf("a ratio stands alone: %q", line)
			}
			values = append(values, fields[1:]...)
		}
	}
	if strings.Join(values, " ") != strings.Join(row[1:], " ") {
		t.Errorf("columns %q, want %q", values, row[1:])
	}
}

// What a join may say beside pairs is in the report where it is not zero, on its side.
func TestTextOutcomes(t *testing.T) {
	rec := exampleRecord()
	j := &rec.Join
	j.UnmatchedA, j.UnmatchedB, j.Early, j.Corrected, j.Retracted, j.Oversize = 11, 12, 13, 14, 15, 16
	j.A.Behind, j.B.Behind, j.A.Pending, j.B.Pending = 21, 22, 23, 24
	text := strings.Join(strings.Fields(string(render(t, rec, "text", TextOptions{Width: 160}))), " ")
	for _, want := range []string{"other outcomes 11 A unmatched, 12 B unmatched, 13 early, 14 corrected, 15 retracted, 16 over the size limit",
		"behind 21 22", "waiting at the end 23 24"} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q: %s", want, text)
		}
	}
	j.Early, j.Corrected, j.Retracted, j.Oversize, j.UnmatchedA, j.UnmatchedB = 0, 0, 0, 0, 0, 0
	if text := string(render(t, rec, "text", TextOptions{})); strings.Contains(text, "other outcomes") {
		t.Errorf("nothing happened beside pairs: %s", text)
	}
}
