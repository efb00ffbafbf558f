//go:build cgo

package buckets

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/linxGnu/grocksdb"
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
	store  *Rocks // opened last
}

func newRocksKit(t testing.TB) *rocksKit {
	shared := NewShared(SharedOptions{Memory: 256 << 20, Tasks: 1})
	base := t.TempDir()
	t.Cleanup(shared.Close)
	return &rocksKit{dir: filepath.Join(base, "0"), shared: shared, base: base}
}

func (k *rocksKit) open(t testing.TB) Backend { return k.openRocks(t) }

func (k *rocksKit) openRocks(t testing.TB) *Rocks {
	t.Helper()
	store, err := OpenRocks(k.dir, k.shared)
	must(t, err)
	k.store = store
	return store
}

// flush makes tables of one family or both, as full write buffers do.
func (k *rocksKit) flush(t testing.TB, meta, journal bool) {
	opts := grocksdb.NewDefaultFlushOptions()
	defer opts.Destroy()
	for i, yes := range []bool{meta, journal} {
		if yes {
			must(t, k.store.db.FlushCF(k.store.fixed[1+i], opts))
		}
	}
}

// crash copies the files as the kernel has them, which is what the end of the process leaves. The ring's goroutine
// is here, and its helper is idle, but RocksDB may be at a compaction: so what is needed to read the others is copied
// first, and nothing is deleted meanwhile.
func (k *rocksKit) crash(t testing.TB) {
	t.Helper()
	k.copies++
	to := filepath.Join(k.base, strconv.Itoa(k.copies))
	must(t, os.MkdirAll(to, 0o755))
	must(t, k.store.db.DisableFileDeletions())
	for _, pattern := range []string{"CURRENT", "MANIFEST-*", "*"} {
		files, err := filepath.Glob(filepath.Join(k.dir, pattern))
		must(t, err)
		for _, f := range files {
			target := filepath.Join(to, filepath.Base(f))
			if _, err := os.Stat(target); err == nil {
				continue
			}
			// What goes now was obsolete when deletions were switched off, so the MANIFEST of the copy names it nowhere.
			if err := copyFile(f, target); !errors.Is(err, os.ErrNotExist) || pattern != "*" {
				must(t, err)
			}
		}
	}
	must(t, k.store.db.EnableFileDeletions())
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
