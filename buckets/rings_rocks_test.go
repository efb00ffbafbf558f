//go:build cgo

package buckets

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestRingsPowerCut: wherever in the log a power cut ends it, both rings and the commit record are of one batch.
func TestRingsPowerCut(t *testing.T) {
	k := newRocksKit(t)
	opts := twoRings()
	g, err := NewRings(opts, k.open(t), 0)
	must(t, err)
	const batches = 3
	for batch := uint64(1); batch <= batches; batch++ {
		for _, r := range g.rings {
			put(t, r, 1, Entry{Offset: int64(batch), Body: filled(20, batch)})
		}
		must(t, g.Commit(batch, commitRecord(batch)))
	}
	k.crash(t)
	must(t, g.Close())
	whole := k.dir
	logs, err := filepath.Glob(filepath.Join(whole, "*.log"))
	must(t, err)
	slices.Sort(logs)
	last := logs[len(logs)-1]
	data, err := os.ReadFile(last)
	must(t, err)
	seen := map[uint64]bool{}
	for cut := 0; cut < len(data); cut += 11 {
		k.dir = whole
		g := cutLog(t, k, opts, filepath.Base(last), data[:len(data)-cut], batches)
		for i, r := range g.rings {
			if n := uint64(r.Pending()); n != r.Committed() {
				t.Fatalf("%d bytes cut off: ring %d has %d rows, and the commit record is of batch %d", cut, i, n, r.Committed())
			}
		}
		at := g.At(0).Committed()
		seen[at] = true
		must(t, g.Close())
		if at == 0 {
			break
		}
	}
	if len(seen) != batches+1 {
		t.Errorf("the cuts left the batches %v", seen)
	}
}

// cutLog opens a copy of a store in which a log file has other content.
func cutLog(t *testing.T, k *rocksKit, opts []Options, log string, data []byte, most uint64) *Rings {
	t.Helper()
	dir := t.TempDir()
	files, err := os.ReadDir(k.dir)
	must(t, err)
	for _, f := range files {
		must(t, copyFile(filepath.Join(k.dir, f.Name()), filepath.Join(dir, f.Name())))
	}
	must(t, os.WriteFile(filepath.Join(dir, log), data, 0o644))
	k.dir = dir
	store := k.open(t)
	at := recorded(t, store)
	if at > most {
		t.Fatalf("commit record of batch %d", at)
	}
	g, err := NewRings(opts, store, at)
	must(t, err)
	return g
}
