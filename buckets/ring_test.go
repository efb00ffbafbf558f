package buckets

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var testOptions = Options{Width: 1000, Slots: 4}

func TestEpochs(t *testing.T) {
	for _, c := range []struct{ time, width, epoch int64 }{
		{0, 10, 0}, {9, 10, 0}, {10, 10, 1}, {-1, 10, -1}, {-10, 10, -1}, {-11, 10, -2}, {25, 1, 25}, {-25, 1, -25},
	} {
		if got := EpochOf(c.time, c.width); got != c.epoch {
			t.Errorf("EpochOf(%d, %d) = %d, expected %d", c.time, c.width, got, c.epoch)
		}
	}
	for _, c := range []struct {
		epoch int64
		slot  int
	}{{0, 0}, {15, 15}, {16, 0}, {-1, 15}, {-16, 0}, {-17, 15}} {
		if got := SlotOf(c.epoch, 16); got != c.slot {
			t.Errorf("SlotOf(%d, 16) = %d, expected %d", c.epoch, got, c.slot)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, opt := range []Options{{Width: 0, Slots: 4}, {Width: -5, Slots: 4}, {Width: 1, Slots: 1}, {Width: 1, Slots: MaxSlots + 1}} {
		if _, err := NewRing(opt, NewMemBackend(), 0); err == nil {
			t.Errorf("%+v was accepted", opt)
		}
	}
}

// TestHotKey: a key with far more entries than a value holds comes back chunk after chunk in the order of rule 2,
// beside another key of the same hash, from open arena, journal and family alike.
func TestHotKey(t *testing.T) {
	const n, hash = 1000, uint64(0xfedcba9876543210)
	eachKit(t, func(t *testing.T, k kit) {
		rng := newRand(t)
		r := mustRing(t, testOptions, k.open(t), 0)
		for i := range n {
			key := "shot"
			if i%10 == 0 {
				key = "sother"
			}
			e := Entry{Time: int64(rng.IntN(30)), Partition: int32(rng.IntN(3)), Offset: int64(rng.IntN(20)), Key: []byte(key), Body: fmt.Appendf(nil, "%d", i)}
			if row := put(t, r, hash, e); row != uint32(i) {
				t.Fatalf("row %d, expected %d", row, i)
			}
			put(t, r, hash+uint64(i%3)-1, e.at(1000)) // in another bucket, beside hashes that differ by one
		}
		must(t, r.Commit(1, commitRecord(1)))
		k.crash(t)
		must(t, r.Close())
		r = mustRing(t, testOptions, k.open(t), 1)
		defer func() { must(t, r.Close()) }()
		sealBucket(t, r, 0)
		sealBucket(t, r, 1)

		got, err := lookupAll(r, []Probe{{Hash: hash, Slot: 0}, {Hash: hash, Slot: 1}, {Hash: hash + 2, Slot: 1}})
		must(t, err)
		if len(got[0]) != n || len(got[1]) != n/3 || len(got[2]) != 0 {
			t.Fatalf("%d, %d and %d entries", len(got[0]), len(got[1]), len(got[2]))
		}
		rows := map[uint32]bool{}
		for i, f := range got[0] {
			rows[f.row] = true
			e, err := ParseEntry([]byte(f.entry))
			must(t, err)
			if want := fmt.Sprint(f.row); string(e.Body) != want {
				t.Fatalf("row %s has the body %s", want, e.Body)
			}
			if i > 0 && !inOrder(t, got[0][i-1], f) {
				t.Fatalf("entry %d comes before its predecessor", i)
			}
		}
		if len(rows) != n {
			t.Fatalf("%d rows, expected %d", len(rows), n)
		}
		if chunks := chunksOf(t, r, 0, hash); chunks != (n+chunkEntries-1)/chunkEntries {
			t.Fatalf("%d chunks", chunks)
		}
		for epoch, want := range [][]uint64{{hash}, {hash - 1, hash, hash + 1}} {
			scan := r.ScanHashes(r.At(int64(epoch)))
			must(t, scan.Run())
			if !slices.Equal(scan.Hashes[0], want) {
				t.Fatalf("ScanHashes of bucket %d: %x", epoch, scan.Hashes)
			}
		}
	})
}

// at is the same entry at another time.
func (e Entry) at(ms int64) Entry { e.Time = ms; return e }

// inOrder says whether x may come before y: by time, partition, offset, and row where all of them are the same.
func inOrder(t *testing.T, x, y found) bool {
	a, err := ParseEntry([]byte(x.entry))
	must(t, err)
	b, err := ParseEntry([]byte(y.entry))
	must(t, err)
	p := []int64{a.Time, int64(a.Partition), a.Offset, int64(x.row)}
	q := []int64{b.Time, int64(b.Partition), b.Offset, int64(y.row)}
	return slices.Compare(p, q) < 0
}

// chunksOf counts the chunks of a hash, by ReadChunk, and checks that a value from Lookup outlives that.
func chunksOf(t *testing.T, r *Ring, slot int, hash uint64) int {
	must(t, r.Lookup([]Probe{{Hash: hash, Slot: uint16(slot)}}))
	first := r.Value(0)
	copied := bytes.Clone(first)
	n := 1
	for value := first; HasMore(value); n++ {
		var err error
		value, err = r.ReadChunk(Probe{Hash: hash, Slot: uint16(slot)}, uint32(n))
		must(t, err)
		if len(value) == 0 {
			t.Fatalf("chunk %d is missing", n)
		}
	}
	if !bytes.Equal(first, copied) {
		t.Fatal("ReadChunk changed a value of the Lookup before")
	}
	return n
}

// TestLargeEntries: bodies of more than a chunk of the arena, keys of 8 KiB, and neither Undo nor a restart minds.
func TestLargeEntries(t *testing.T) {
	eachKit(t, func(t *testing.T, k kit) {
		r := mustRing(t, testOptions, k.open(t), 0)
		var want []string
		for i := range 8 {
			e := Entry{Time: int64(i), Key: filled(8192, uint64(i)), Body: filled([]int{10, chunkSize + 7, 0, chunkSize - 9000, 300_000}[i%5], uint64(i))}
			if i%3 == 2 {
				put(t, r, 1, Entry{Key: []byte("snever"), Body: filled(chunkSize+i, 1)})
				r.Undo()
			}
			if row := put(t, r, 1, e); row != uint32(i) {
				t.Fatalf("row %d, expected %d", row, i)
			}
			must(t, r.Commit(uint64(i+1), commitRecord(uint64(i+1))))
			want = append(want, string(e.AppendTo(nil)))
		}
		if held := r.ArenaBytes(); held < 3*chunkSize+700_000 {
			t.Errorf("ArenaBytes says %d, and more was stored", held)
		}
		k.crash(t)
		must(t, r.Close())
		r = mustRing(t, testOptions, k.open(t), 8)
		defer func() { must(t, r.Close()) }()
		for row, e := range want {
			if string(r.At(0).Entry(uint32(row))) != e {
				t.Fatalf("row %d came back different", row)
			}
		}
		sealBucket(t, r, 0)
		got, err := lookupAll(r, []Probe{{Hash: 1, Slot: 0}, {Hash: 2, Slot: 0}})
		must(t, err)
		for i, f := range got[0] {
			if f.entry != want[i] {
				t.Fatalf("entry %d came back different", i)
			}
		}
		if len(got[0]) != len(want) || len(got[1]) != 0 {
			t.Fatalf("%d and %d entries", len(got[0]), len(got[1]))
		}
		if left, _ := readClose(t, r, r.At(0), LiveRows, 0); len(left) != len(want) || left[1].entry != want[1] {
			t.Fatalf("a close gives %d entries, or others", len(left))
		}
		if chunks := chunksOf(t, r, 0, 1); chunks < 3 {
			t.Errorf("%d chunks: large bodies should not be read all at once", chunks)
		}
	})
}

// TestEntryLimit: what is over the limit is refused by name, and leaves nothing behind.
func TestEntryLimit(t *testing.T) {
	body, err := unix.Mmap(-1, 0, maxEntrySize, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON) // nobody may look at it
	must(t, err)
	defer func() { must(t, unix.Munmap(body)) }()
	r := mustRing(t, testOptions, NewMemBackend(), 0)
	b, err := r.Bucket(0)
	must(t, err)
	_, err = r.Append(b, 1, &Entry{Partition: 3, Offset: 99, Body: body})
	if err == nil || !strings.Contains(err.Error(), "partition 3, offset 99") {
		t.Fatalf("error %v", err)
	}
	if r.Pending() != 0 || b.Rows() != 0 {
		t.Fatal("something was stored")
	}
}

// TestOtherGeometry: width and slots belong to the state; another configuration is refused and changes nothing.
func TestOtherGeometry(t *testing.T) {
	eachKit(t, func(t *testing.T, k kit) {
		r := mustRing(t, testOptions, k.open(t), 0)
		put(t, r, 5, Entry{Key: []byte("sk")})
		must(t, r.Commit(1, commitRecord(1)))
		must(t, r.Close())
		for _, opt := range []Options{{Width: 2000, Slots: 4}, {Width: 1000, Slots: 5}} {
			store := k.open(t)
			_, err := NewRing(opt, store, 1)
			want := fmt.Sprintf("the state has 4 buckets of 1000 ms, the configuration %d of %d ms", opt.Slots, opt.Width)
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "state.width") {
				t.Errorf("error %v, expected %s", err, want)
			}
			must(t, store.Close())
		}
		r = mustRing(t, testOptions, k.open(t), 1)
		if r.Pending() != 1 {
			t.Errorf("%d entries are left of 1", r.Pending())
		}
		must(t, r.Close())
	})
}

// TestJournalIsCut: the journal keeps what open buckets need, and nothing else.
func TestJournalIsCut(t *testing.T) {
	eachKit(t, func(t *testing.T, k kit) {
		store := k.open(t)
		r := mustRing(t, testOptions, store, 0)
		defer func() { must(t, r.Close()) }()
		check := func(want ...uint64) {
			t.Helper()
			var got []uint64
			must(t, store.ScanJournal(0, func(batch uint64, _ []byte) error {
				got = append(got, batch)
				return nil
			}))
			if !slices.Equal(got, want) {
				t.Fatalf("journal of batches %v, expected %v", got, want)
			}
		}
		put(t, r, 1, Entry{Time: 0})
		must(t, r.Commit(1, nil))
		put(t, r, 1, Entry{Time: 1000})
		must(t, r.Commit(2, nil))
		r.Use(r.At(0), 0)
		must(t, r.Commit(3, nil))
		must(t, r.Commit(4, nil)) // nothing in it
		check(1, 2, 3)
		job := r.StartSeal(r.At(0))
		must(t, job.Run())
		put(t, r, 1, Entry{Time: 2000})
		must(t, r.Commit(5, nil))
		check(1, 2, 3, 5)
		_, err := r.FinishSeal(job)
		must(t, err)
		check(2, 3, 5)
		sealBucket(t, r, 1)
		check(5)
		sealBucket(t, r, 2)
		check()

		r.Use(r.At(2000/1000), 0)
		must(t, r.Commit(6, nil))
		must(t, r.Maintain())
		check(6) // far below checkpointBytes
		defer func(old int64) { checkpointBytes = old }(checkpointBytes)
		checkpointBytes = 1
		must(t, r.Maintain())
		check()
	})
}

// TestFloorIsKept: also a floor that passed no bucket outlives a restart.
func TestFloorIsKept(t *testing.T) {
	eachKit(t, func(t *testing.T, k kit) {
		r := mustRing(t, testOptions, k.open(t), 0)
		jobs, err := r.DropBelow(-7)
		must(t, err)
		if len(jobs) != 0 {
			t.Fatalf("%d jobs for an empty ring", len(jobs))
		}
		must(t, r.Close())
		r = mustRing(t, testOptions, k.open(t), 0)
		if r.Floor() != -7 {
			t.Errorf("Floor %d", r.Floor())
		}
		if _, err := r.Bucket(-8); err == nil {
			t.Error("a bucket below the floor")
		}
		must(t, r.Close())
	})
}

// TestDrained: the mark is there after a restart, and only then.
func TestDrained(t *testing.T) {
	eachKit(t, func(t *testing.T, k kit) {
		for _, want := range []bool{false, true} {
			store := k.open(t)
			if got, err := Drained(store); got != want || err != nil {
				t.Fatalf("Drained %v %v, expected %v", got, err, want)
			}
			r := mustRing(t, testOptions, store, 0)
			must(t, r.MarkDrained())
			must(t, r.Close())
		}
	})
}

var errDisk = errors.New("no space left on device")

// failing is a backend whose writes fail from some moment on.
type failing struct {
	Backend
	write, run bool
	writes     int // that were tried
}

func (f *failing) Write(w *Write) error {
	f.writes++
	if f.write {
		return errDisk
	}
	return f.Backend.Write(w)
}

func (f *failing) WriteRun(name RunName, rows RunSource) (Family, RunStats, error) {
	if f.run {
		return nil, RunStats{}, errDisk
	}
	return f.Backend.WriteRun(name, rows)
}

// TestWriteError: after the first failed write, whichever it is, the ring writes nothing more, even if the disk has
// room again, hands out no drop job, and what is on disk is the state of the last commit.
func TestWriteError(t *testing.T) {
	var seal *SealJob
	first := map[string]func(r *Ring) error{
		"commit":  func(r *Ring) error { return r.Commit(3, commitRecord(3)) },
		"record":  func(r *Ring) error { r.Undo(); return r.WriteCommit(commitRecord(3)) },
		"drained": func(r *Ring) error { return r.MarkDrained() },
		"drop": func(r *Ring) error {
			r.Undo()
			jobs, err := r.DropBelow(3)
			if jobs != nil {
				t.Error("drop jobs for buckets whose marks are still there")
			}
			return err
		},
		"seal": func(r *Ring) error {
			r.Undo()
			seal = r.StartSeal(r.At(1))
			if err := seal.Run(); err != nil {
				return err
			}
			_, err := r.FinishSeal(seal)
			return err
		},
		"maintain": func(r *Ring) error { r.Undo(); return r.Maintain() },
	}
	defer func(old int64) { checkpointBytes = old }(checkpointBytes)
	checkpointBytes = 0
	eachKit(t, func(t *testing.T, k kit) {
		batch := uint64(2)
		store := &failing{Backend: k.open(t)}
		r := mustRing(t, testOptions, store, 0)
		put(t, r, 1, Entry{Time: 0, Key: []byte("sa")})
		put(t, r, 2, Entry{Time: 1000, Key: []byte("sb")})
		must(t, r.Commit(1, commitRecord(1)))
		sealBucket(t, r, 0)
		r.Use(r.At(0), 0)
		must(t, r.Commit(2, commitRecord(2)))
		for name, fn := range first {
			put(t, r, 3, Entry{Time: 1500, Key: []byte("sc")}) // what the batch in progress has
			store.write = true
			if err := fn(r); !errors.Is(err, errDisk) {
				t.Fatalf("%s: error %v", name, err)
			}
			store.write, store.writes = false, 0
			for other, fn := range first {
				if other != "seal" { // that one has started already, or would write a family without a mark
					if err := fn(r); !errors.Is(err, errDisk) || !strings.Contains(err.Error(), "read-only") {
						t.Fatalf("%s after %s: error %v", other, name, err)
					}
				}
			}
			if store.writes != 0 {
				t.Fatalf("after a failed %s %d more writes were tried", name, store.writes)
			}
			k.crash(t)
			must(t, r.Close())
			store = &failing{Backend: k.open(t)}
			if got := recorded(t, store); got != batch {
				t.Fatalf("%s: commit record of batch %d", name, got)
			}
			if done, err := Drained(store); done || err != nil {
				t.Fatalf("%s: drained %v %v", name, done, err)
			}
			r = mustRing(t, testOptions, store, batch)
			b0, b1 := r.At(0), r.At(1)
			if r.Pending() != 1 || b0 == nil || b0.State() != Sealed || b0.Live() != 0 || b1 == nil || b1.State() != Open || b1.Rows() != 1 {
				t.Fatalf("after a failed %s: %d pending, buckets %+v %+v", name, r.Pending(), b0, b1)
			}
			if got, err := lookupAll(r, []Probe{{Hash: 1}}); err != nil || len(got[0]) != 1 {
				t.Fatalf("after a failed %s the sealed bucket has %v %v", name, got, err)
			}
		}
		must(t, r.Close())
	})
}

// TestSealError: a seal that fails costs nothing; the bucket goes on answering from RAM and is sealed later.
func TestSealError(t *testing.T) {
	eachKit(t, func(t *testing.T, k kit) {
		store := &failing{Backend: k.open(t), run: true}
		r := mustRing(t, testOptions, store, 0)
		defer func() { must(t, r.Close()) }()
		e := Entry{Time: 0, Key: []byte("sa")}
		put(t, r, 1, e)
		must(t, r.Commit(1, nil))
		job := r.StartSeal(r.At(0))
		if _, err := r.FinishSeal(job); err == nil {
			t.Fatal("a seal that never ran was finished")
		}
		if err := job.Run(); !errors.Is(err, errDisk) {
			t.Fatalf("error %v", err)
		}
		if _, err := r.FinishSeal(job); err == nil {
			t.Fatal("a failed seal was finished")
		}
		if b := r.At(0); b.State() != Sealing || !bytes.Equal(b.Entry(0), e.AppendTo(nil)) {
			t.Fatal("the bucket no longer answers")
		}
		store.run = false
		sealBucket(t, r, 0)
		if got, err := lookupAll(r, []Probe{{Hash: 1}}); err != nil || len(got[0]) != 1 {
			t.Fatalf("%v %v", got, err)
		}
	})
}

// TestLookupRefused: slots without a family are the caller's mistake and say so.
func TestLookupRefused(t *testing.T) {
	eachKit(t, func(t *testing.T, k kit) {
		r := mustRing(t, testOptions, k.open(t), 0)
		defer func() { must(t, r.Close()) }()
		must(t, r.Lookup(nil))
		put(t, r, 1, Entry{Time: 0})
		put(t, r, 1, Entry{Time: 1000})
		r.Use(r.At(1), 0)
		must(t, r.Commit(1, nil))
		sealBucket(t, r, 1) // all used: no family
		if !r.At(1).Empty() || r.At(1).Entries() != 0 {
			t.Error("a bucket whose rows were all used has a family")
		}
		for slot := range uint16(3) { // open, empty, not there
			if err := r.Lookup([]Probe{{Hash: 1, Slot: slot}}); err == nil {
				t.Errorf("a lookup in slot %d", slot)
			}
		}
	})
}

// TestDamage: what a start cannot read it refuses, by name, and it does not panic.
func TestDamage(t *testing.T) {
	setUp := func() *MemBackend {
		m := NewMemBackend()
		r := mustRing(t, testOptions, m, 0)
		put(t, r, 1, Entry{Time: 0})
		put(t, r, 1, Entry{Time: 0})
		must(t, r.Commit(1, nil))
		sealBucket(t, r, 0)
		r.Use(r.At(0), 1)
		put(t, r, 1, Entry{Time: 1000})
		must(t, r.Commit(2, nil))
		return m
	}
	must(t, mustRing(t, testOptions, setUp(), 2).Close())
	for name, c := range map[string]struct {
		damage func(m *MemBackend)
		want   string
	}{
		"header":      {func(m *MemBackend) { m.meta[metaHeader][0] = 9 }, "another format"},
		"mark cut":    {func(m *MemBackend) { m.meta["mark.0"] = m.meta["mark.0"][:5] }, `damaged mark "mark.0"`},
		"mark's name": {func(m *MemBackend) { m.meta["mark.x"] = m.meta["mark.0"] }, `damaged mark "mark.x"`},
		"family gone": {func(m *MemBackend) { delete(m.families, RunName{}) }, "its family is not there"},
		"bitmap":      {func(m *MemBackend) { m.meta["bits.0"] = make([]byte, 16) }, "bitmap of 16 bytes for 2 rows"},
		"two in a slot": {func(m *MemBackend) {
			m.meta["mark.4"], m.meta["bits.4"] = m.meta["mark.0"], m.meta["bits.0"]
			m.families[RunName{Epoch: 4}] = &memFamily{name: RunName{Epoch: 4}}
		}, "claim one slot"},
		"journal":        {func(m *MemBackend) { m.journal[2] = m.journal[2][:20] }, "journal of batch 2: damaged journal record"},
		"journal's slot": {func(m *MemBackend) { m.journal[2] = moved(m.journal[2], 1, 4) }, "slot in use"},
	} {
		m := setUp()
		c.damage(m)
		if _, err := NewRing(testOptions, m, 2); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, expected %q", name, err, c.want)
		}
	}
}

// moved replaces the epoch of the sections of one bucket.
func moved(rec []byte, from, to byte) []byte {
	old := append([]byte{sectionAppended, from}, make([]byte, 7)...)
	return bytes.Replace(rec, old, append([]byte{sectionAppended, to}, make([]byte, 7)...), 1)
}

// TestArenaReuse: emptied chunks go round, so that a ring at work takes no new memory; large ones are given back.
func TestArenaReuse(t *testing.T) {
	r := mustRing(t, testOptions, NewMemBackend(), 0)
	seen := map[*byte]bool{}
	for epoch := range int64(16) {
		for i := range uint64(5) {
			put(t, r, i, Entry{Time: epoch * 1000, Body: make([]byte, 300_000)})
		}
		put(t, r, 9, Entry{Time: epoch * 1000, Body: make([]byte, 2*chunkSize)})
		must(t, r.Commit(uint64(epoch+1), nil))
		for _, c := range r.At(epoch).arena.chunks {
			if cap(c) == chunkSize {
				seen[&c[:1][0]] = true
			}
		}
		_, err := r.DropBelow(epoch - 1)
		must(t, err)
	}
	if len(seen) != 3*2 { // three buckets are alive at a time
		t.Errorf("%d chunks were made", len(seen))
	}
	if got := r.ArenaBytes(); got < 2*4*chunkSize+2*chunkSize || got > 11*chunkSize {
		t.Errorf("ArenaBytes says %d", got)
	}
}

// watched is a backend that remembers what was synced.
type watched struct {
	Backend
	writes, synced, logs int
}

func (w *watched) Write(x *Write) error {
	w.writes++
	if x.Sync {
		w.synced++
	}
	return w.Backend.Write(x)
}

func (w *watched) SyncLog() error {
	w.logs++
	return w.Backend.SyncLog()
}

// TestSync: with each write, once a second by a job, or never.
func TestSync(t *testing.T) {
	eachKit(t, func(t *testing.T, k kit) {
		store := &watched{Backend: k.open(t)}
		defer func() { must(t, store.Close()) }()
		for mode := SyncNone; mode <= SyncBatch; mode++ {
			opt := testOptions
			opt.Sync = mode
			r := mustRing(t, opt, store, 0)
			*store = watched{Backend: store.Backend}
			put(t, r, 1, Entry{Time: 0})
			must(t, r.Commit(1, nil))
			must(t, r.WriteCommit(commitRecord(1)))
			now, jobs := time.Now(), 0
			for _, later := range []time.Duration{0, syncEvery / 2, syncEvery, syncEvery + 1, 2 * syncEvery} {
				if job := r.StartSync(now.Add(later)); job != nil {
					must(t, job.Run())
					jobs++
				}
			}
			want := map[SyncMode]watched{SyncNone: {}, SyncInterval: {logs: 3}, SyncBatch: {synced: 2}}[mode]
			if store.writes != 2 || store.synced != want.synced || store.logs != want.logs || jobs != want.logs {
				t.Errorf("mode %d: %d writes, %d synced, %d syncs of the log", mode, store.writes, store.synced, store.logs)
			}
		}
	})
}
