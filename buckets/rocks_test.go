//go:build cgo

package buckets

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/linxGnu/grocksdb"
)

// fill appends n entries of about 100 bytes to a bucket and commits them as a batch.
func fill(t testing.TB, r *Ring, batch uint64, epoch int64, n int) {
	t.Helper()
	body := filled(60, 3)
	for i := range n {
		put(t, r, hashOf(epoch, i), Entry{Time: epoch * r.Width(), Offset: int64(i), Key: []byte("sORD-1234567"), Body: body})
	}
	must(t, r.Commit(batch, commitRecord(batch)))
}

// hashOf spreads keys as a hash does.
func hashOf(epoch int64, i int) uint64 {
	h := (uint64(epoch)<<32 | uint64(i)) + 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// sstBytes is what tables take up in a directory.
func sstBytes(t *testing.T, dir string) (n int64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	must(t, err)
	for _, f := range files {
		info, err := os.Stat(f)
		must(t, err)
		n += info.Size()
	}
	return n
}

// TestDropFreesDisk: a dropped bucket's file is gone when its DropJob has run, and no C object outlives Close.
func TestDropFreesDisk(t *testing.T) {
	stores, families := liveC.stores.Load(), liveC.families.Load()
	k := newRocksKit(t)
	r := mustRing(t, testOptions, k.openRocks(t), 0)
	var sizes [3]int64
	for epoch := range int64(3) {
		fill(t, r, uint64(epoch+1), epoch, 5000)
		sealBucket(t, r, epoch)
		b := r.At(epoch)
		if b.Entries() != 5000 || b.Bytes() < 5000*80 {
			t.Errorf("bucket %d: %d entries, %d bytes", epoch, b.Entries(), b.Bytes())
		}
		sizes[epoch] = b.Bytes()
		scan := r.ScanHashes(b)
		must(t, scan.Run())
		if h := scan.Hashes[0]; len(h) != 5000 || len(slices.Compact(slices.Clone(h))) != 5000 || !slices.IsSorted(h) {
			t.Errorf("ScanHashes gave %d", len(h))
		}
	}
	if left, err := filepath.Glob(filepath.Join(k.dir, "ingest*")); err != nil || len(left) > 0 {
		t.Errorf("%v %v are left of the ingest", left, err)
	}
	bytes, disk := sstBytes(t, k.dir), r.DiskBytes()
	if bytes != sizes[0]+sizes[1]+sizes[2] || disk < bytes {
		t.Fatalf("tables take %d bytes, DiskBytes says %d, the buckets %d", bytes, disk, sizes)
	}
	if r.MemoryBytes() == 0 {
		t.Error("MemoryBytes says nothing")
	}
	jobs, err := r.DropBelow(2)
	must(t, err)
	if len(jobs) != 2 {
		t.Fatalf("%d jobs", len(jobs))
	}
	for i, job := range jobs {
		if !job.HasFiles() {
			t.Errorf("job %d has no files", i)
		}
		must(t, job.Run())
		bytes -= sizes[i]
		if got := sstBytes(t, k.dir); got != bytes {
			t.Errorf("after %d drops the tables take %d bytes, expected %d", i+1, got, bytes)
		}
	}
	if got := r.DiskBytes(); got > disk-sizes[0]-sizes[1]+50_000 {
		t.Errorf("DiskBytes went from %d to %d, and %d were dropped", disk, got, sizes[:2])
	}
	if liveC.families.Load() != families+1 || liveC.stores.Load() != stores+1 {
		t.Errorf("%d families and %d stores are counted", liveC.families.Load(), liveC.stores.Load())
	}
	must(t, r.Close())
	if liveC.families.Load() != families || liveC.stores.Load() != stores {
		t.Errorf("%d families and %d stores outlive Close", liveC.families.Load()-families, liveC.stores.Load()-stores)
	}
}

// TestDropWhileWriting is B38: batches at full rate while families go, one after another. No write fails, and after
// a crash each row is there.
func TestDropWhileWriting(t *testing.T) {
	const drops = 12
	k := newRocksKit(t)
	opt := Options{Width: 1000, Slots: MaxSlots}
	r := mustRing(t, opt, k.openRocks(t), 0)
	batch := uint64(0)
	commit := func(epoch int64, n int) { batch++; fill(t, r, batch, epoch, n) }
	for epoch := range int64(drops) {
		commit(epoch, 20)
		sealBucket(t, r, epoch)
	}
	written, during := 0, 0
	for floor := range int64(drops) {
		jobs, err := r.DropBelow(floor + 1)
		must(t, err)
		done := make(chan error, 1)
		go func() { done <- jobs[0].Run() }()
		for running := true; running; {
			commit(drops+1, 10)
			written += 10
			select {
			case err := <-done:
				must(t, err)
				running = false
			default:
				during++
			}
		}
	}
	if during < drops {
		t.Errorf("only %d batches while families were dropped", during)
	}
	k.crash(t)
	must(t, r.Close())
	store := k.openRocks(t)
	r = mustRing(t, opt, store, recorded(t, store))
	defer func() { must(t, r.Close()) }()
	if r.Committed() != batch || r.Pending() != written || r.At(drops+1).Rows() != written {
		t.Errorf("batch %d of %d, %d rows of %d", r.Committed(), batch, r.Pending(), written)
	}
}

// TestWriteToDroppedFamily shows why every write ignores missing families: without, one such write would make all
// later ones fail (B38). No write of ours meets one by design; this one is forced.
func TestWriteToDroppedFamily(t *testing.T) {
	k := newRocksKit(t)
	store := k.openRocks(t)
	r := mustRing(t, testOptions, store, 0)
	defer func() { must(t, r.Close()) }()
	fill(t, r, 1, 0, 10)
	sealBucket(t, r, 0)
	handle := r.At(0).runs[0].family.(*rocksFamily).handle
	must(t, store.db.DropColumnFamily(handle))
	for _, opts := range []*grocksdb.WriteOptions{store.write, store.writeSync} {
		b := grocksdb.NewWriteBatch()
		b.PutCF(handle, []byte("k"), []byte("v"))
		must(t, store.db.Write(opts, b))
		b.Destroy()
	}
	fill(t, r, 2, 1, 10)
}

// TestStrays: families without a mark and tables that were never ingested go at the next start.
func TestStrays(t *testing.T) {
	k := newRocksKit(t)
	r := mustRing(t, testOptions, k.openRocks(t), 0)
	fill(t, r, 1, 0, 100)
	fill(t, r, 2, 1, 100)
	sealBucket(t, r, 1)
	must(t, r.StartSeal(r.At(0)).Run()) // never finished
	left := filepath.Join(k.dir, "ingest-7.sst")
	must(t, os.WriteFile(left, []byte("half a table"), 0o644))
	k.crash(t)
	must(t, r.Close())
	store := k.openRocks(t)
	if n := len(store.Families()); n != 2 {
		t.Fatalf("%d families before the ring is put together", n)
	}
	r = mustRing(t, testOptions, store, 2)
	defer func() { must(t, r.Close()) }()
	if f := store.Families(); len(f) != 1 || f[0].Name().Epoch != 1 {
		t.Errorf("families %v", f)
	}
	if _, err := os.Stat(filepath.Join(k.dir, "ingest-7.sst")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the table that was never ingested is still there: %v", err)
	}
	if r.At(0).State() != Open || r.At(0).Rows() != 100 {
		t.Errorf("bucket 0 has %d rows", r.At(0).Rows())
	}
	sealBucket(t, r, 0)
}

// TestForeignFamily: a database of another program is refused, and left alone.
func TestForeignFamily(t *testing.T) {
	families := liveC.families.Load()
	for _, name := range []string{"b.many", "orders"} {
		k := newRocksKit(t)
		store := k.openRocks(t)
		h, err := store.db.CreateColumnFamily(store.metaOpts, name)
		must(t, err)
		h.Destroy()
		must(t, store.Close())
		for range 2 {
			if _, err := OpenRocks(k.dir, k.shared); err == nil || !strings.Contains(err.Error(), strconv.Quote(name)) {
				t.Errorf("error %v does not name %q", err, name)
			}
		}
	}
	if n := liveC.families.Load() - families; n != 0 {
		t.Errorf("%d families outlive a refused open", n)
	}
}

// TestManyStores: the stores of several tasks live side by side in one process, and end one by one.
func TestManyStores(t *testing.T) {
	shared := NewShared(SharedOptions{Memory: 8 << 20, Tasks: 3})
	defer shared.Close()
	var rings []*Ring
	for i := range 3 {
		store, err := OpenRocks(filepath.Join(t.TempDir(), "state", strconv.Itoa(i)), shared)
		must(t, err)
		rings = append(rings, mustRing(t, testOptions, store, 0))
	}
	for i, r := range rings {
		for _, r := range rings[i:] {
			fill(t, r, r.Committed()+1, int64(i), 50)
			sealBucket(t, r, int64(i))
		}
		got, err := lookupAll(r, []Probe{{Hash: hashOf(int64(i), 7), Slot: uint16(i)}, {Hash: hashOf(int64(i), 70), Slot: uint16(i)}})
		if err != nil || len(got[0]) != 1 || len(got[1]) != 0 {
			t.Errorf("store %d: %v %v", i, got, err)
		}
		must(t, r.Close())
	}
}

func init() {
	// Commits batch after batch, tells each, and flushes nothing but the meta family, which holds the commit record.
	children["commit"] = func(dir string) error {
		store, err := OpenRocks(dir, NewShared(SharedOptions{Memory: 8 << 20, Tasks: 1}))
		if err != nil {
			return err
		}
		r, err := NewRing(Options{Width: 1000, Slots: 4, Sync: SyncNone}, store, 0)
		if err != nil {
			return err
		}
		b, err := r.Bucket(0)
		if err != nil {
			return err
		}
		flush := grocksdb.NewDefaultFlushOptions()
		for batch := uint64(1); ; batch++ {
			for i := range rowsOfBatch(batch) {
				if _, err := r.Append(b, hashOf(int64(batch), i), &Entry{Key: []byte("sk"), Offset: int64(batch)}); err != nil {
					return err
				}
			}
			if batch > 1 {
				r.Use(b, uint32(batch-2))
			}
			if err := r.Commit(batch, commitRecord(batch)); err != nil {
				return err
			}
			if batch%16 == 0 {
				if err := store.db.FlushCF(store.fixed[1], flush); err != nil {
					return err
				}
			}
			fmt.Println(batch)
		}
	}
}

func rowsOfBatch(batch uint64) int { return 1 + int(batch%7) }

// TestKill is B41: a process that is killed while it commits, the commit record alone being flushed to a table,
// leaves the rows and uses of every batch up to its commit record, and nothing of a later one.
func TestKill(t *testing.T) {
	k := newRocksKit(t)
	child, lines := startChild(t, "commit", k.dir)
	told := uint64(0)
	for told < 60 && lines.Scan() {
		var err error
		told, err = strconv.ParseUint(lines.Text(), 10, 64)
		must(t, err)
	}
	kill(child)
	store := k.openRocks(t)
	at := recorded(t, store)
	if told < 60 || at < told {
		t.Fatalf("the child told of %d commits, the record is of %d", told, at)
	}
	r := mustRing(t, Options{Width: 1000, Slots: 4}, store, at)
	defer func() { must(t, r.Close()) }()
	row := uint32(0)
	b := r.At(0)
	for batch := uint64(1); batch <= at; batch++ {
		for i := range rowsOfBatch(batch) {
			e, err := ParseEntry(b.Entry(row))
			if err != nil || e.Offset != int64(batch) || b.Hashes()[row] != hashOf(int64(batch), i) {
				t.Fatalf("row %d: %+v %v", row, e, err)
			}
			if b.Used(row) != (uint64(row)+1 < at) {
				t.Fatalf("row %d of %d batches: used %v", row, at, b.Used(row))
			}
			row++
		}
	}
	if b.Rows() != int(row) {
		t.Errorf("%d rows, expected %d", b.Rows(), row)
	}
}

// TestBuild: the program says which RocksDB it has, and no benchmark of ours runs with one that has assertions.
func TestBuild(t *testing.T) {
	version, assertions := Build()
	if parts := strings.Split(version, "."); len(parts) != 3 || slices.Contains(parts, "") {
		t.Errorf("version %q", version)
	}
	if assertions {
		t.Error("this RocksDB was compiled with assertions, and every figure measured with it is worthless: see scripts/rocksdb.sh")
	}
	if importsAssert("/nowhere") {
		t.Error("a file that is not there imports something")
	}
}

// TestNoAllocations: at work, neither a batch nor a lookup allocates.
func TestNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	k := newRocksKit(t)
	r := mustRing(t, testOptions, k.openRocks(t), 0)
	defer func() { must(t, r.Close()) }()
	fill(t, r, 1, 0, 2000)
	sealBucket(t, r, 0)
	fill(t, r, 2, 1, 2000)
	sealBucket(t, r, 1)

	probes := make([]Probe, 64)
	n, hits := 0, 0
	lookup := func() {
		for i := range probes {
			n++
			probes[i] = Probe{Hash: hashOf(int64(n%2), n%4000), Slot: uint16(n % 2)} // every second one is there
		}
		if err := r.Lookup(probes); err != nil {
			t.Fatal(err)
		}
		for i := range probes {
			it := IterValue(r.Value(i))
			for _, _, ok := it.Next(); ok; _, _, ok = it.Next() {
				hits++
			}
		}
	}
	if allocs := testing.AllocsPerRun(100, lookup); allocs != 0 {
		t.Errorf("a lookup of %d keys allocates %v times", len(probes), allocs)
	}
	if hits == 0 || hits == n {
		t.Errorf("%d hits of %d", hits, n)
	}

	b, err := r.Bucket(2)
	must(t, err)
	e := Entry{Time: 2000, Key: []byte("sORD-1234567"), Body: filled(60, 3)}
	batch, rec := uint64(2), commitRecord(0)
	step := func() {
		for i := range 64 {
			row, err := r.Append(b, uint64(i), &e)
			if err != nil {
				t.Fatal(err)
			}
			r.Use(b, row/2)
			r.Use(r.At(0), row%2000)
		}
		batch++
		if err := r.Commit(batch, rec); err != nil {
			t.Fatal(err)
		}
	}
	step()
	for range 20_000 { // the growth of the arena is not what is measured
		_, err := r.Append(b, 1, &e)
		must(t, err)
	}
	r.Undo()
	if allocs := testing.AllocsPerRun(100, step); allocs != 0 {
		t.Errorf("a batch allocates %v times", allocs)
	}
}

// TestDropFreesLog: when nothing waits any more, the directory holds next to nothing, although all rows went through
// the log (B16), be it that of an earlier life. What still waits is there after a crash.
func TestDropFreesLog(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted=%v", restarted), func(t *testing.T) { testDropFreesLog(t, restarted) })
	}
}

func testDropFreesLog(t *testing.T, restarted bool) {
	k := newRocksKit(t)
	r := mustRing(t, testOptions, k.open(t), 0)
	batch := uint64(0)
	commit := func() {
		batch++
		must(t, r.Commit(batch, commitRecord(batch)))
	}
	for epoch := range int64(3) {
		for i := range 40 { // 40 MB in each bucket
			put(t, r, uint64(i), Entry{Time: epoch * 1000, Body: filled(1<<20, uint64(i))})
			commit()
		}
	}
	put(t, r, 7, Entry{Time: 3000, Key: []byte("stays")})
	commit()
	sealBucket(t, r, 1)
	if restarted {
		must(t, r.Close())
		r = mustRing(t, testOptions, k.open(t), batch)
	}
	full := r.DiskBytes()
	jobs, err := r.DropBelow(3)
	must(t, err)
	for _, j := range jobs {
		must(t, j.Run())
	}
	put(t, r, 8, Entry{Time: 3000, Key: []byte("stays too")})
	commit()
	// RocksDB removes a log that nothing needs when the next one is begun, or soon after.
	for deadline := time.Now().Add(time.Minute); r.DiskBytes() > full/20; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d bytes are left", r.DiskBytes(), full)
		}
	}
	k.crash(t)
	must(t, r.Close())
	r = mustRing(t, testOptions, k.open(t), batch)
	if b := r.At(3); b == nil || b.Rows() != 2 || r.Pending() != 2 {
		t.Errorf("%d rows wait after the crash", r.Pending())
	}
	must(t, r.Close())
}

// TestBloom: tables have RocksDB's filter when that is asked for, and it is wrong about as often as it should be.
func TestBloom(t *testing.T) {
	const rows, asked = 20_000, 50_000
	for _, on := range []bool{false, true} {
		shared := NewShared(SharedOptions{Memory: 8 << 20, Tasks: 1, Bloom: on})
		store, err := OpenRocks(t.TempDir(), shared)
		must(t, err)
		r := mustRing(t, testOptions, store, 0)
		for i := range rows {
			put(t, r, hashOf(0, i), Entry{Offset: int64(i)})
		}
		must(t, r.Commit(1, nil))
		sealBucket(t, r, 0)
		probes := make([]Probe, 0, asked)
		for i := range asked { // the first of them are there
			probes = append(probes, Probe{Hash: hashOf(0, rows-1000+i)})
		}
		must(t, r.Lookup(probes))
		found := 0
		for i := range probes {
			if len(r.Value(i)) > 0 {
				found++
			}
		}
		wrong := float64(r.BloomWrong()) / (asked - 1000)
		if found != 1000 || on && (wrong < 0.004 || wrong > 0.02) || !on && wrong != 0 {
			t.Errorf("bloom %v: %d found, wrong about %.3f %% of the others", on, found, 100*wrong)
		}
		must(t, r.Close())
		shared.Close()
	}
}
