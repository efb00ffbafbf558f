//go:build cgo

package buckets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A table that is not what was written is noticed when the state is opened again and verified: a flipped bit in a hash
// table would otherwise be a match that is not found.
func TestDamagedTableIsNoticed(t *testing.T) {
	dir := t.TempDir()
	shared := NewShared(SharedOptions{Memory: 8 << 20, Tasks: 1})
	defer shared.Close()
	var stats RunStats
	write := func() {
		store, err := OpenRocks(dir, shared)
		if err != nil {
			t.Fatal(err)
		}
		rows := &countedRun{n: 5000}
		if _, stats, err = store.WriteRun(RunName{Epoch: 7}, rows); err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	verify := func() error {
		store, err := OpenRocks(dir, shared)
		if err != nil {
			return err
		}
		defer func() { _ = store.Close() }()
		job := VerifyJob{store, []verifyRun{{run{store.Families()[0], stats}, 7}}}
		return job.Run()
	}
	write()
	if err := verify(); err != nil {
		t.Fatalf("of a whole table: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/3] ^= 1
	if err := os.WriteFile(files[0], data, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := verify(); err == nil || !strings.Contains(err.Error(), "bucket 7 is damaged") {
		t.Errorf("of a table with one bit flipped: %v", err)
	}
}

// countedRun hands over n keys, 0 to n-1.
type countedRun struct {
	n, at uint64
	key   [KeySize]byte
}

func (c *countedRun) Size() int64 { return int64(c.n) * 64 }

func (c *countedRun) Next() (key, value []byte, ok bool) {
	if c.at == c.n {
		return nil, nil, false
	}
	putKey(c.key[:], c.at*0x9e37, 0)
	c.at++
	return c.key[:], []byte("a value of some length, the same for each"), true
}
