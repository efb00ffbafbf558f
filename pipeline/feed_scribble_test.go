package pipeline

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"joinbench/core"
	"joinbench/projection"
)

// scribbler is a reader whose records are spoilt as soon as they need not be valid any more: at its next Read.
type scribbler struct {
	n, at int
	last  []byte
}

func (s *scribbler) Read(dst []projection.Record, arena *[]byte) (int, error) {
	for i := range s.last {
		s.last[i] = '#'
	}
	if s.at == s.n {
		return 0, io.EOF
	}
	m := min(len(dst), s.n-s.at, 100)
	var ends []int
	for i := range m {
		*arena = fmt.Appendf(*arena, `{"id":"key-%d\u0041","t":%d,"v":"value-%[1]d","x":"%[3]s"}`, s.at+i, s.at+i, strings.Repeat("y", 300))
		ends = append(ends, len(*arena))
	}
	from := 0
	for i, to := range ends {
		dst[i] = projection.Record{Value: (*arena)[from:to:to], Offset: int64(s.at + i)}
		from = to
	}
	s.at += m
	s.last = *arena
	return m, nil
}

func (s *scribbler) placeAfter(i int) int64 { return int64(s.at + i) }

// TestDecodedRowsKeepNothingOfTheInput: B64. With the input scribbled over after every read, the rows that wait for the engine have
// their own keys, times and bodies.
func TestDecodedRowsKeepNothingOfTheInput(t *testing.T) {
	const n = 5000
	for _, keep := range []string{"$.v", ""} {
		side := projection.SideSpec{Key: []string{"$.id"}, Time: "$.t", TimeUnit: "ms", Store: "projection"}
		if keep != "" {
			side.Keep = []projection.KeepField{{Path: keep}}
		}
		spec, err := projection.Compile(side)
		if err != nil {
			t.Fatal(err)
		}
		f := newFeed(context.Background(), [2]*projection.Spec{spec, spec}, [2][]core.Partition{{{ID: 0}}, nil},
			func(core.Side, int, int64) (reader, error) { return &scribbler{n: n}, nil }, false, false)
		if err := f.Start(core.A, 0, 0); err != nil {
			t.Fatal(err)
		}
		var chunks []*core.Chunk // all kept to the end, when the whole input is spoilt
		for {
			c, err := f.Next(core.A, 0)
			if err != nil {
				t.Fatal(err)
			}
			if c == nil {
				break
			}
			chunks = append(chunks, c)
		}
		f.Close()
		i := 0
		for _, c := range chunks {
			for row := range uint32(c.N) {
				key, body := string(c.Key(row)), string(c.BodyOf(row))
				if key != "skey-"+strconv.Itoa(i)+"A" || c.Time[row] != int64(i) || !strings.Contains(body, `"value-`+strconv.Itoa(i)+`"`) || strings.Contains(body, "#") {
					t.Fatalf("row %d has key %q, time %d, body %.100q", i, key, c.Time[row], body)
				}
				i++
			}
		}
		if i != n {
			t.Fatalf("%d rows, want %d", i, n)
		}
	}
}
