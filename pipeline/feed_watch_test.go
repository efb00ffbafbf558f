package pipeline

import (
	"context"
	"fmt"
	"io"
	"testing"

	"joinbench/core"
	"joinbench/projection"
)

// marked is a reader of n records, some of which end, mark or count.
type marked struct{ n, at int }

func (m *marked) Read(dst []projection.Record, _ *[]byte) (int, error) {
	if m.at == m.n {
		return 0, io.EOF
	}
	k := min(len(dst), m.n-m.at, 70)
	for i := range k {
		at := m.at + i
		dst[i] = projection.Record{Key: []byte("k"), Offset: int64(at), Value: fmt.Appendf(nil, `{"s":%d,"m":%d,"n":%d}`, at%3, at%5, at)}
	}
	m.at += k
	return k, nil
}

func (m *marked) placeAfter(i int) int64 { return int64(m.at + i) }

// watchedOf is what the row of record at must say.
func watchedOf(at int) (core.RowFlags, uint32) {
	var f core.RowFlags
	if at%3 == 1 {
		f |= core.Ends
	}
	if at%5 == 2 {
		f |= core.Marks
	}
	return f, uint32(at)
}

// TestChunksSayWhatIsWatched: flags and counts are in the chunks, row by row, also in chunks that are used again and in the
// views of an open loop; a side that asks for none has none.
func TestChunksSayWhatIsWatched(t *testing.T) {
	const n = 12_000
	asks, err := projection.Compile(projection.SideSpec{Key: []string{"@key"}, Ends: &projection.Test{Path: "$.s", Equals: "1"},
		Marks: &projection.Test{Path: "$.m", Equals: "2"}, Count: "$.n"})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := projection.Compile(projection.SideSpec{Key: []string{"@key"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, keepRaw := range []bool{false, true} {
		f := newFeed(context.Background(), [2]*projection.Spec{plain, asks}, [2][]core.Partition{{{ID: 0}}, {{ID: 0}}},
			func(core.Side, int, int64) (reader, error) { return &marked{n: n}, nil }, false, keepRaw)
		defer f.Close()
		for _, side := range []core.Side{core.A, core.B} {
			if err := f.Start(side, 0, 0); err != nil {
				t.Fatal(err)
			}
			at := 0
			for {
				c, err := f.Next(side, 0)
				if err != nil {
					t.Fatal(err)
				}
				if c == nil {
					break
				}
				if side == core.A && (c.Flags != nil || c.Wanted != nil) {
					t.Fatalf("nobody asked for %d flags, %d counts", len(c.Flags), len(c.Wanted))
				}
				if side == core.B {
					checkWatched(t, c, at)
					checkView(t, c, at)
				}
				at += c.N
				f.Done(c)
			}
			if at != n {
				t.Fatalf("%d rows, want %d", at, n)
			}
		}
	}
}

func checkWatched(t *testing.T, c *core.Chunk, first int) {
	t.Helper()
	if len(c.Flags) != c.N || len(c.Wanted) != c.N {
		t.Fatalf("%d rows with %d flags and %d counts", c.N, len(c.Flags), len(c.Wanted))
	}
	for row := range uint32(c.N) {
		flags, wanted := watchedOf(first + int(row))
		if c.FlagsOf(row) != flags || c.Wanted[row] != wanted {
			t.Fatalf("record %d has flags %b and count %d, want %b and %d", first+int(row), c.FlagsOf(row), c.Wanted[row], flags, wanted)
		}
	}
}

// checkView takes a part of a chunk as an open loop does.
func checkView(t *testing.T, c *core.Chunk, first int) {
	t.Helper()
	const from, n = 7, 20
	p, q := &pacer{}, &pacedPart{chunk: c.Owner.(*feedChunk), at: from}
	checkWatched(t, p.view(q, n), first+from)
}
