package capture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"joinbench/projection"
)

// newRand prints its seed, so that a failure can be played again: JOINBENCH_SEED=n go test ...
func newRand(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("JOINBENCH_SEED"); s != "" {
		if _, err := fmt.Sscan(s, &seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("JOINBENCH_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

func writeTemp(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustOpen(t testing.TB, o OpenOptions) *Input {
	t.Helper()
	if o.SpoolDir == "" {
		o.SpoolDir = t.TempDir()
	}
	in, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
	return in
}

func openBytes(t testing.TB, content string, f Format) *Input {
	t.Helper()
	return mustOpen(t, OpenOptions{Path: writeTemp(t, "in.ndjson", []byte(content)), Format: f})
}

// got is a record read, copied out of the arena, with the place behind it.
type got struct {
	projection.Record
	after Position
}

// readFrom reads all that is left of a partition, in reads of 1 to most records.
func readFrom(t testing.TB, in *Input, partition int32, pos Position, most int) []got {
	t.Helper()
	c := in.NewCursor(partition, pos)
	dst := make([]projection.Record, most)
	var arena []byte
	var all []got
	for i := 0; ; i++ {
		arena = arena[:0]
		n, err := c.Read(dst[:1+i%most], &arena)
		if errors.Is(err, io.EOF) {
			if n != 0 {
				t.Fatalf("%d records beside io.EOF", n)
			}
			return all
		}
		if err != nil {
			t.Fatalf("partition %d from %d: %v", partition, pos, err)
		}
		if n == 0 {
			t.Fatal("no records and no error")
		}
		for j, r := range dst[:n] {
			r.Key, r.Value = slices.Clone(r.Key), slices.Clone(r.Value)
			all = append(all, got{r, c.PositionAfter(j)})
		}
		if c.Position() != c.PositionAfter(n-1) {
			t.Fatalf("Position %d, after the last record %d", c.Position(), c.PositionAfter(n-1))
		}
		for j := range arena { // a record that kept pointing there would show
			arena[j] = 'X'
		}
	}
}

func dump(rs []got) string {
	var b strings.Builder
	text := func(p []byte) string {
		if p == nil {
			return "null"
		}
		return fmt.Sprintf("%q", p)
	}
	for _, r := range rs {
		fmt.Fprintf(&b, "partition=%d offset=%d place=%d ts=%d key=%s value=%s", r.Partition, r.Offset, r.Place, r.Timestamp, text(r.Key), text(r.Value))
		if r.Damaged {
			b.WriteString(" damaged")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func sameRecord(a, b projection.Record) bool {
	same := func(x, y []byte) bool { return (x == nil) == (y == nil) && bytes.Equal(x, y) }
	return same(a.Key, b.Key) && same(a.Value, b.Value) && a.Timestamp == b.Timestamp &&
		a.Partition == b.Partition && a.Offset == b.Offset && a.Place == b.Place && a.Damaged == b.Damaged
}

func mustEqual(t testing.TB, what string, have, want []got) {
	t.Helper()
	for i := range min(len(have), len(want)) {
		if !sameRecord(have[i].Record, want[i].Record) {
			t.Fatalf("%s: record %d:\n%swant\n%s", what, i, dump(have[i:i+1]), dump(want[i:i+1]))
		}
	}
	if len(have) != len(want) {
		t.Fatalf("%s: %d records, want %d", what, len(have), len(want))
	}
}
