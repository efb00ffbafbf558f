package capture

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"joinbench/projection"
)

// made is a generated line and what reading it must give (Place and a damaged line's Offset apart).
type made struct {
	line string
	want projection.Record
}

// makeFile generates lines of several partitions, damaged ones among them, as a topic holds them: each
// partition's sequence in order.
func makeFile(rnd *rand.Rand, f Format) [][]made {
	parts := make([][]made, 1+rnd.IntN(6))
	for p := range parts {
		number := int32(p) - 1 // partition -1 is the damaged one
		for i := range rnd.IntN(60) {
			if number < 0 {
				junk := strings.Repeat("?", rnd.IntN(30))
				parts[p] = append(parts[p], made{junk, projection.Record{Value: []byte(junk), Partition: -1, Timestamp: -1, Damaged: true}})
				continue
			}
			parts[p] = append(parts[p], makeLine(rnd, f, number, int64(i)))
		}
	}
	return parts
}

func makeLine(rnd *rand.Rand, f Format, partition int32, offset int64) made {
	rec := projection.Record{Partition: partition, Offset: offset, Timestamp: rnd.Int64N(1e6)}
	if rnd.IntN(5) > 0 {
		rec.Key = []byte(fmt.Sprintf("key \"%d\"", rnd.IntN(100)))
	}
	if rnd.IntN(8) > 0 {
		rec.Value = []byte(strings.Repeat("{\"é\":\t1}", rnd.IntN(40)))
	}
	line := string(bytes.TrimSuffix(AppendSide(nil, "t", &rec, "none"), []byte("\n")))
	if f == Rpk {
		line = strings.Replace(strings.Replace(line, `"ts":`, `"timestamp":`, 1), `"payload":`, `"value":`, 1)
	}
	return made{line, rec}
}

// arrange lays the partitions' lines into one file, partition after partition or in random stretches, and
// sets the places in want.
func arrange(rnd *rand.Rand, parts [][]made, contiguous bool) ([]byte, [][]got) {
	var file bytes.Buffer
	want := make([][]got, len(parts))
	at := make([]int, len(parts))
	var open []int
	for p := range parts {
		open = append(open, p)
	}
	stretch := 1 + rnd.IntN(8)
	for place := int64(1); len(open) > 0; {
		k := 0
		n := len(parts[open[0]])
		if !contiguous {
			k, n = rnd.IntN(len(open)), 1+rnd.IntN(stretch)
		}
		p := open[k]
		for ; n > 0 && at[p] < len(parts[p]); n-- {
			m := parts[p][at[p]]
			at[p]++
			m.want.Place = place
			if m.want.Damaged {
				m.want.Offset = place - 1
			}
			place++
			file.WriteString(m.line)
			file.WriteString([]string{"\n", "\r\n"}[rnd.IntN(2)])
			want[p] = append(want[p], got{Record: m.want, after: Position(file.Len())})
		}
		if at[p] == len(parts[p]) {
			open = append(open[:k], open[k+1:]...)
		}
	}
	return file.Bytes(), want
}

// smallTuning makes every size so small that windows, runs, pages and the memory of the index all overflow.
func smallTuning(rnd *rand.Rand) tuning {
	return tuning{window: 16 << rnd.IntN(10), run: 1 << rnd.IntN(12), page: 1 << rnd.IntN(8), memory: 1 + rnd.IntN(100)}
}

// TestInterleavings: however the lines of partitions are mixed, each partition reads as it does from a file
// in which they lie one after another, and from every place the rest is the same.
func TestInterleavings(t *testing.T) {
	rnd := newRand(t)
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	spilled := 0
	for range rounds {
		format := []Format{Kcat, Rpk}[rnd.IntN(2)]
		parts := makeFile(rnd, format)
		for _, contiguous := range []bool{true, false} {
			content, want := arrange(rnd, parts, contiguous)
			if n := len(content); n > 0 && rnd.IntN(2) == 0 && content[n-1] == '\n' && len(bytes.TrimSpace(content[bytes.LastIndexByte(content[:n-1], '\n')+1:])) > 0 {
				content = content[:n-1] // the last line may end with the file
			}
			in := mustOpen(t, OpenOptions{Path: writeTemp(t, "in", content), Format: format, tuning: smallTuning(rnd)})
			if in.index.file != nil {
				spilled++
			}
			for p := range parts {
				number := int32(p) - 1
				all := readFrom(t, in, number, 0, 1+rnd.IntN(20))
				mustEqual(t, fmt.Sprintf("partition %d, contiguous %v", number, contiguous), all, want[p])
				resumeEverywhere(t, rnd, in, number, all, Position(len(content)), want[p])
			}
		}
	}
	if spilled == 0 {
		t.Error("no index was large enough for its file")
	}
}

// resumeEverywhere reads on from behind each record, and checks that it is the place where the line ends.
func resumeEverywhere(t *testing.T, rnd *rand.Rand, in *Input, partition int32, all []got, size Position, want []got) {
	t.Helper()
	for i, r := range all {
		if r.after != min(want[i].after, size) {
			t.Fatalf("partition %d, record %d: next place %d, want %d", partition, i, r.after, want[i].after)
		}
		rest := readFrom(t, in, partition, r.after, 1+rnd.IntN(20))
		mustEqual(t, fmt.Sprintf("partition %d from %d", partition, r.after), rest, all[i+1:])
	}
}

func TestValueResumesWithItsNumbers(t *testing.T) {
	rnd := newRand(t)
	var content bytes.Buffer
	for i := range 500 {
		fmt.Fprintf(&content, "{\"n\":%d,\"x\":%q}\n", i, strings.Repeat("x", rnd.IntN(300)))
	}
	for range 5 {
		in := mustOpen(t, OpenOptions{Path: writeTemp(t, "in", content.Bytes()), tuning: smallTuning(rnd)})
		all := readFrom(t, in, 0, 0, 7)
		if len(all) != 500 || all[499].Offset != 499 || all[499].Place != 500 {
			t.Fatalf("%d records", len(all))
		}
		for i := 0; i < 500; i += 1 + rnd.IntN(9) {
			mustEqual(t, "rest", readFrom(t, in, 0, all[i].after, 100), all[i+1:])
		}
	}
}

func TestPositionsThatAreNone(t *testing.T) {
	in := openBytes(t, kcatLine+"\n"+kcatLine+"\n", Auto)
	for _, pos := range []Position{1, 20, Position(in.Identity().Size) - 1, Position(in.Identity().Size) + 1} {
		var arena []byte
		_, err := in.NewCursor(2, pos).Read(make([]projection.Record, 1), &arena)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("byte %d", pos)) || !strings.Contains(err.Error(), in.Path()) {
			t.Errorf("position %d: %v", pos, err)
		}
	}
	if rs := readFrom(t, in, 2, Position(in.Identity().Size), 1); len(rs) != 0 {
		t.Errorf("at the end: %s", dump(rs))
	}
	if rs := readFrom(t, in, 7, 0, 1); len(rs) != 0 {
		t.Errorf("a partition that is not there: %s", dump(rs))
	}
}

// TestChangedUnderfoot: a file that is changed between first pass and reading is an error, never other data.
func TestChangedUnderfoot(t *testing.T) {
	other := strings.Replace(kcatLine, `"partition":2`, `"partition":3`, 1)
	for what, change := range map[string]func(path string) error{
		"cut":     func(path string) error { return os.Truncate(path, int64(len(kcatLine))) },
		"another": func(path string) error { return os.WriteFile(path, []byte(kcatLine+"\n"+other+"\n"), 0o644) },
	} {
		in := openBytes(t, kcatLine+"\n"+kcatLine+"\n", Auto)
		if err := change(in.Path()); err != nil {
			t.Fatal(err)
		}
		var arena []byte
		dst := make([]projection.Record, 4)
		c := in.NewCursor(2, 0)
		n, err := c.Read(dst, &arena)
		if err == nil {
			_, err = c.Read(dst[n:], &arena)
		}
		if err == nil || !strings.Contains(err.Error(), "changed") || !strings.Contains(err.Error(), in.Path()) {
			t.Errorf("%s: %d records, then %v", what, n, err)
		}
	}
}

// TestReadEndsWithManyBytes: long records come in small batches.
func TestReadEndsWithManyBytes(t *testing.T) {
	line := `{"x":"` + strings.Repeat("x", 1<<20) + `"}` + "\n"
	in := openBytes(t, strings.Repeat(line, 10), Value)
	var arena []byte
	n, err := in.NewCursor(0, 0).Read(make([]projection.Record, 10), &arena)
	if err != nil || n != 4 {
		t.Errorf("%d records of 1 MiB, %v", n, err)
	}
}
