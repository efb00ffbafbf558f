//go:build cgo

package buckets

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

func init() {
	kits["rocks"] = func(t testing.TB) kit { return newRocksKit(t) }
}

// rocksKit is a directory with a RocksDB.
type rocksKit struct {
	dir    string
	shared *Shared
	copies int
	base   string
}

func newRocksKit(t testing.TB) *rocksKit {
	shared := NewShared(8 << 20)
	base := t.TempDir()
	t.Cleanup(shared.Close)
	return &rocksKit{dir: filepath.Join(base, "0"), shared: shared, base: base}
}

func (k *rocksKit) open(t testing.TB) Backend { return k.openRocks(t) }

func (k *rocksKit) openRocks(t testing.TB) *Rocks {
	t.Helper()
	store, err := OpenRocks(k.dir, k.shared)
	must(t, err)
	return store
}

// crash copies the files as the kernel has them, which is what the end of the process leaves. Nothing is being
// written: the ring's goroutine is here, and its helper is idle.
func (k *rocksKit) crash(t testing.TB) {
	t.Helper()
	k.copies++
	to := filepath.Join(k.base, string(rune('0'+k.copies%10))+"-copy")
	must(t, os.RemoveAll(to))
	must(t, os.MkdirAll(to, 0o755))
	files, err := os.ReadDir(k.dir)
	must(t, err)
	for _, f := range files {
		must(t, copyFile(filepath.Join(k.dir, f.Name()), filepath.Join(to, f.Name())))
	}
	k.dir = to
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err = io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}
