package capture

import (
	"io"
	"testing"

	"joinbench/projection"
)

// TestIndexStaysSmall: in the worst order, line by line, a line costs the index some bytes, and what is
// beyond the limit lies in the file.
func TestIndexStaysSmall(t *testing.T) {
	const lines, partitions, limit = 40000, 4, 64 << 10
	in := mustOpen(t, OpenOptions{Path: writeTemp(t, "in", benchFile(Kcat, lines, partitions, 1)), tuning: tuning{memory: limit}})
	memory := 0
	for _, p := range in.index.parts {
		for _, pg := range p.pages {
			memory += cap(pg.data)
		}
		memory += cap(p.tail.data)
	}
	total := int64(in.index.used) + in.index.size
	if memory > limit*5/4 || in.index.size == 0 || total > 8*lines {
		t.Errorf("%d bytes in memory, %d in the file, for %d runs", memory, in.index.size, lines)
	}
	var arena []byte
	if n := readAll(t, in, make([]projection.Record, 100), &arena); n != lines {
		t.Errorf("read %d of %d", n, lines)
	}
}

// counting counts what is read of a file.
type counting struct {
	f            io.ReaderAt
	calls, bytes int64
}

func (c *counting) ReadAt(p []byte, at int64) (int, error) {
	c.calls++
	c.bytes += int64(len(p))
	return c.f.ReadAt(p, at)
}

// TestReadsThroughShortGapsAndOverLongOnes: a partition whose lines lie close together is read like a
// contiguous one, one whose lines lie far apart is not paid for with what lies between.
func TestReadsThroughShortGapsAndOverLongOnes(t *testing.T) {
	for _, c := range []struct {
		name                       string
		stretch, lines, partitions int
		perCall                    int64 // least bytes of file for each call
		share                      int64 // most percent of the file that may be read
	}{
		{"contiguous", 1 << 30, 20000, 1, 100 << 10, 105},
		{"line by line", 1, 20000, 8, 100 << 10, 105},
		{"far apart", 1000, 20000, 5, 16 << 10, 30}, // 370 KiB, then a gap of 1.4 MiB
	} {
		in := mustOpen(t, OpenOptions{Path: writeTemp(t, "in", benchFile(Kcat, c.lines, c.partitions, c.stretch)), Format: Kcat})
		cursor := in.NewCursor(0, 0)
		count := &counting{f: in.f}
		cursor.lines.f = count
		dst := make([]projection.Record, 100)
		var arena []byte
		for {
			arena = arena[:0]
			if _, err := cursor.Read(dst, &arena); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		size := in.Identity().Size
		t.Logf("%s: %d calls, %d of %d bytes", c.name, count.calls, count.bytes, size)
		if count.calls > size/c.perCall+8 || count.bytes > size*c.share/100 {
			t.Errorf("%s: %d calls, %d of %d bytes", c.name, count.calls, count.bytes, size)
		}
	}
}
