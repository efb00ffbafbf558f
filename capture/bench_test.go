package capture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"joinbench/projection"
)

// benchFile holds n records of 200 bytes of JSON, in stretches of one partition.
func benchFile(f Format, n, partitions, stretch int) []byte {
	var b bytes.Buffer
	offsets := make([]int64, partitions)
	var line []byte
	for i := range n {
		p := i / stretch % partitions
		value := fmt.Sprintf(`{"payment_ref":"PAY-%012d","status":"confirmed","amount":%d,"currency":"EUR","customer":{"id":"C-%08d","country":"SK"},"note":"%060d"}`, i, i%10000, i, i)
		rec := projection.Record{Key: fmt.Appendf(nil, "PAY-%012d", i), Value: []byte(value), Timestamp: 1700000000000 + int64(i), Partition: int32(p), Offset: offsets[p]}
		offsets[p]++
		switch f {
		case Value:
			b.WriteString(value)
			b.WriteByte('\n')
		case Kcat:
			line = AppendSide(line[:0], "payments", &rec, "none")
			b.Write(line)
		default:
			line = AppendSide(line[:0], "payments", &rec, "none")
			line = bytes.Replace(line, []byte(`"ts":`), []byte(`"timestamp":`), 1)
			b.Write(bytes.Replace(line, []byte(`"payload":`), []byte(`"value":`), 1))
		}
	}
	return b.Bytes()
}

const benchRecords = 20000

func readAll(b testing.TB, in *Input, dst []projection.Record, arena *[]byte) (records int) {
	for _, p := range in.Partitions() {
		c := in.NewCursor(p, 0)
		for {
			*arena = (*arena)[:0]
			n, err := c.Read(dst, arena)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			records += n
		}
	}
	return records
}

// BenchmarkRead reads all partitions of a file that lies in the page cache; ns/record is one record.
func BenchmarkRead(b *testing.B) {
	for _, c := range []struct {
		name                string
		f                   Format
		partitions, stretch int
	}{
		{"value", Value, 1, 1},
		{"kcat", Kcat, 1, 1},
		{"rpk", Rpk, 1, 1},
		{"kcat/partitions=8/stretch=1", Kcat, 8, 1},
		{"kcat/partitions=8/stretch=100", Kcat, 8, 100},
	} {
		b.Run(c.name, func(b *testing.B) {
			content := benchFile(c.f, benchRecords, c.partitions, c.stretch)
			in := mustOpen(b, OpenOptions{Path: writeTemp(b, "in", content), Format: c.f})
			dst := make([]projection.Record, 1024)
			var arena []byte
			b.SetBytes(int64(len(content)))
			b.ReportAllocs()
			for b.Loop() {
				if n := readAll(b, in, dst, &arena); n != benchRecords {
					b.Fatal(n)
				}
			}
			perRecord(b)
		})
	}
}

// BenchmarkOpen is the first pass: partitions, runs, hash.
func BenchmarkOpen(b *testing.B) {
	for _, f := range []Format{Value, Kcat} {
		b.Run(f.String(), func(b *testing.B) {
			content := benchFile(f, benchRecords, 1, 1)
			path := writeTemp(b, "in", content)
			b.SetBytes(int64(len(content)))
			for b.Loop() {
				in, err := Open(OpenOptions{Path: path, Format: f})
				if err != nil {
					b.Fatal(err)
				}
				if err := in.Close(); err != nil {
					b.Fatal(err)
				}
			}
			perRecord(b)
		})
	}
}

func BenchmarkAppendSide(b *testing.B) {
	rec := projection.Record{Key: []byte("PAY-000000000001"), Value: []byte(`{"payment_ref":"PAY-000000000001","status":"confirmed","amount":12,"note":"žltý"}`), Timestamp: 1700000000000}
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendSide(dst[:0], "payments", &rec, "late")
	}
}

func perRecord(b *testing.B) {
	records := float64(b.N) * benchRecords
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/records, "ns/record")
	b.ReportMetric(records/b.Elapsed().Seconds(), "records/s")
}

// TestNoAllocations: reading, side lines and writing allocate nothing for a record once the buffers have
// their size; with an index that lies in its file too.
func TestNoAllocations(t *testing.T) {
	const runs, batch = 100, 64
	for _, c := range []struct {
		name string
		f    Format
		tuning
	}{
		{"value", Value, tuning{}},
		{"kcat", Kcat, tuning{}},
		{"rpk", Rpk, tuning{}},
		{"kcat, spilled index", Kcat, tuning{page: 64, memory: 1, run: 1}},
	} {
		for _, partitions := range []int{1, 3} {
			in := mustOpen(t, OpenOptions{
				Path:   writeTemp(t, "in", benchFile(c.f, partitions*batch*(runs+20), partitions, 2)),
				Format: c.f, tuning: c.tuning,
			})
			cursor := in.NewCursor(0, 0)
			dst := make([]projection.Record, batch)
			var arena, side []byte
			w := NewWriter(io.Discard, "nowhere")
			read := func() {
				arena = arena[:0]
				n, err := cursor.Read(dst, &arena)
				if n != batch || err != nil {
					t.Fatal(n, err)
				}
				for i := range dst {
					side = AppendSide(side[:0], "t", &dst[i], "late")
					if _, err := w.Write(side); err != nil {
						t.Fatal(err)
					}
				}
			}
			for range 15 { // windows and arena grow to their size
				read()
			}
			if n := testing.AllocsPerRun(runs, read); n != 0 {
				t.Errorf("%s, %d partitions: %v allocations for %d records", c.name, partitions, n, batch)
			}
		}
	}
}
