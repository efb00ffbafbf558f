package buckets

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"joinbench/internal/failpoint"
)

// twoRings are the options of a store with two rings.
func twoRings() []Options {
	return []Options{keeping(testOptions), {Width: 500, Slots: 5, Space: 'w'}}
}

// rowsOf lists every row of a ring, from an epoch on: where it is, whether it was used and has ended, and whose it is unless it has.
func rowsOf(t testing.TB, r *Ring, from int64) (all []string) {
	t.Helper()
	for slot := range r.Slots() {
		b := r.AtSlot(slot)
		if b == nil || b.Epoch < from {
			continue
		}
		offsets := map[uint32]int64{}
		must(t, r.EachLive(b, func(row uint32, entry []byte) error {
			e, err := ParseEntry(entry)
			offsets[row] = e.Offset
			return err
		}))
		for row := range uint32(b.Rows()) {
			all = append(all, fmt.Sprintf("bucket %d row %d used %v ended %v offset %d", b.Epoch, row, b.Used(row), b.Ended(row), offsets[row]))
		}
	}
	slices.Sort(all)
	return all
}

// ringsLife is what happens to two rings in a store: batches that store, use and end in both, and between them runs, drops and
// cuts of each. After each commit it tells.
func ringsLife(g *Rings, committed func(batch uint64)) error {
	offset := int64(0)
	for batch := uint64(1); batch <= 12; batch++ {
		for i, r := range g.rings {
			for n := range int64(5) {
				offset++
				e := Entry{Time: int64(batch)*400 + n*150, Offset: offset, Key: []byte("sk"), Body: filled(20, uint64(offset))}
				b, err := r.Bucket(EpochOf(e.Time, r.Width()))
				if err != nil {
					return err
				}
				row, err := r.Append(b, uint64(offset), &e)
				if err != nil {
					return err
				}
				if (int(n)+i)%2 == 0 {
					r.Use(b, row/2)
				}
				if (int(n)+i)%3 == 0 {
					r.End(b, row/3)
				}
			}
		}
		if err := g.Commit(batch, commitRecord(batch)); err != nil {
			return err
		}
		committed(batch)
		for i, r := range g.rings {
			if err := ringBetween(r, int64(batch), i); err != nil {
				return err
			}
		}
	}
	return nil
}

// ringBetween is what a ring does after a batch: the one seals what is over and cuts its journal, the other one spills.
func ringBetween(r *Ring, batch int64, which int) error {
	past := EpochOf(batch*400, r.Width())
	for slot := range r.Slots() {
		b := r.AtSlot(slot)
		if b == nil || b.State() != Open || which == 0 && b.Epoch >= past || which == 1 && batch%2 == 0 {
			continue
		}
		job := r.StartSpill
		if b.Epoch < past {
			job = r.StartSeal
		}
		j := job(b)
		if err := j.Run(); err != nil {
			return err
		}
		if _, err := r.FinishSeal(j); err != nil {
			return err
		}
	}
	jobs, err := r.DropBelow(past - 1)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		if err := j.Run(); err != nil {
			return err
		}
	}
	return r.Maintain()
}

// TestRingsKilled: whatever step of either ring the process dies at, both come back as they were after the one batch that the
// commit record names, but for what was dropped since, and go on.
func TestRingsKilled(t *testing.T) {
	defer func(old int64) { checkpointBytes = old }(checkpointBytes)
	checkpointBytes = 1
	opts := twoRings()
	want := map[uint64][2][]string{0: {}} // by batch, of each ring
	g, err := NewRings(opts, NewMemBackend(), 0)
	must(t, err)
	must(t, ringsLife(g, func(batch uint64) {
		want[batch] = [2][]string{rowsOf(t, g.At(0), -1<<62), rowsOf(t, g.At(1), -1<<62)}
	}))
	points := []string{failpoint.JournalBefore, failpoint.JournalAfter, failpoint.MarkBefore, failpoint.MarkAfter, failpoint.CutBefore,
		failpoint.CutAfter, failpoint.FloorBefore, failpoint.FloorAfter, failpoint.DropBefore, failpoint.DropAfter}
	files := []string{failpoint.SSTFinish, failpoint.IngestBefore, failpoint.IngestAfter}
	for name, make := range kits {
		here := points
		if name != "mem" {
			here = append(slices.Clone(points), files...)
		}
		t.Run(name, func(t *testing.T) {
			for _, point := range here {
				at := 1
				for killRings(t, make(t), opts, point, at, want) {
					if at++; name != "mem" { // a database takes a hundred times as long
						at *= 3
					}
				}
				if at == 1 {
					t.Errorf("%s: nobody came by", point)
				}
			}
		})
	}
}

var errKilled = errors.New("killed")

// killRings kills a life at the at-th time that it comes by a point, and looks at what comes back; false if it came by less often.
func killRings(t *testing.T, k kit, opts []Options, point string, at int, want map[uint64][2][]string) bool {
	t.Helper()
	g, err := NewRings(opts, k.open(t), 0)
	must(t, err)
	hits, dead := 0, false
	failpoint.Set(func(name string) error {
		if dead {
			return errKilled
		}
		if name == point {
			hits++
		}
		if hits < at || name != point {
			return nil
		}
		dead = true
		k.crash(t)
		return errKilled
	})
	err = ringsLife(g, func(uint64) {})
	failpoint.Set(nil)
	must(t, g.Close())
	if !dead {
		must(t, err)
		return false
	}
	if !errors.Is(err, errKilled) {
		t.Fatalf("%s, time %d: error %v", point, at, err)
	}
	for again := range 2 { // a start may write, and the next one reads that
		store := k.open(t)
		batch := recorded(t, store)
		g, err = NewRings(opts, store, batch)
		must(t, err)
		for i, r := range g.rings {
			was := want[batch][i]
			was = slices.DeleteFunc(slices.Clone(was), func(row string) bool {
				epoch := int64(0)
				_, err := fmt.Sscanf(row, "bucket %d", &epoch)
				must(t, err)
				return epoch < r.Floor()
			})
			if got := rowsOf(t, r, r.Floor()); !slices.Equal(got, was) {
				t.Fatalf("%s, time %d: ring %d has after batch %d (start %d)\n%s\nexpected\n%s", point, at, i, batch, again, strings.Join(got, "\n"), strings.Join(was, "\n"))
			}
			if latest := EpochOf(int64(batch)*400, r.Width()) - 1; r.Floor() > latest {
				t.Fatalf("%s, time %d: floor %d of ring %d after batch %d", point, at, r.Floor(), i, batch)
			}
		}
		must(t, g.Close())
	}
	return true
}

// TestRingsOneWrite: a batch of both rings is one write, which is there as a whole or not at all.
func TestRingsOneWrite(t *testing.T) {
	eachKit(t, func(t *testing.T, k kit) {
		opts := twoRings()
		opts[0].Sync, opts[1].Sync = SyncBatch, SyncBatch
		store := &watched{Backend: k.open(t)}
		g, err := NewRings(opts, store, 0)
		must(t, err)
		before := *store
		for batch := uint64(1); batch <= 3; batch++ {
			for _, r := range g.rings {
				put(t, r, 1, Entry{Offset: int64(batch)})
			}
			must(t, g.Commit(batch, commitRecord(batch)))
		}
		put(t, g.At(1), 1, Entry{Offset: 4}) // nothing in the first
		must(t, g.Commit(4, commitRecord(4)))
		must(t, g.Commit(5, commitRecord(5)))
		if store.writes != before.writes+5 || store.synced != before.synced+5 {
			t.Errorf("%d writes, %d of them synced, for 5 batches", store.writes-before.writes, store.synced-before.synced)
		}
		for _, r := range g.rings {
			put(t, r, 1, Entry{Offset: 99})
			r.Use(r.At(0), 0)
			if err := r.Commit(6, nil); err == nil {
				t.Error("one of two rings committed alone")
			}
		}
		g.Undo()
		check := func() {
			t.Helper()
			if a, w := g.At(0), g.At(1); a.Pending() != 3 || w.Pending() != 4 || a.At(0).Used(0) || w.At(0).Used(0) || a.Committed() != 5 || w.Committed() != 5 {
				t.Fatalf("%d and %d rows wait, after batches %d and %d", a.Pending(), w.Pending(), a.Committed(), w.Committed())
			}
		}
		check()
		fail := &failing{Backend: store, write: true}
		g.store = fail
		put(t, g.At(1), 1, Entry{Offset: 5})
		if err := g.Commit(6, commitRecord(6)); !errors.Is(err, errDisk) {
			t.Fatalf("error %v", err)
		}
		fail.write = false
		for i, err := range []error{g.Commit(6, nil), g.At(0).MarkDrained(), g.At(1).WriteCommit(nil)} {
			if !errors.Is(err, errDisk) {
				t.Errorf("%d: error %v after a failed write", i, err)
			}
		}
		must(t, g.Close())
		g, err = NewRings(opts, k.open(t), 5)
		must(t, err)
		check()
		must(t, g.At(1).Close()) // which closes nothing
		must(t, g.Commit(6, nil))
		must(t, g.At(0).Close()) // and this the store
	})
}

// TestOtherRings: a state has the rings that it was made with, and rings have names of their own.
func TestOtherRings(t *testing.T) {
	eachKit(t, func(t *testing.T, k kit) {
		open := func(committed uint64, opts ...Options) error {
			store := k.open(t)
			g, err := NewRings(opts, store, committed)
			if err != nil {
				must(t, store.Close())
				return err
			}
			return g.Close()
		}
		a, w, c := testOptions, Options{Width: 1000, Slots: 4, Space: 'w'}, Options{Width: 1000, Slots: 4, Space: 'c'}
		must(t, open(0, a, w))
		must(t, open(3, a, w))
		bad := Options{Width: 1000, Slots: 4, Space: 'b'}
		synced := w
		synced.Sync = SyncBatch
		for i, x := range []struct {
			opts []Options
			want string
		}{
			{[]Options{a}, `has a ring 'w'`}, {[]Options{a, c}, `has a ring 'w'`}, {[]Options{a, w, c}, `has no ring 'c'`}, {nil, "without a ring"},
			{[]Options{w}, "the first has none"}, {[]Options{a, a}, "each their own"}, {[]Options{a, w, w}, "each their own"}, {[]Options{a, bad}, "from a to z"},
			{[]Options{a, synced}, "sync mode"}, {[]Options{a, {Width: 1, Slots: 4, Space: 'w'}}, "state.width"},
		} {
			if err := open(3, x.opts...); err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%d: error %v, expected one with %q", i, err, x.want)
			}
		}
		must(t, open(3, a, w)) // as it was
	})
}

// TestRingsTrim: the log is not made short for one ring while another one still needs much of it.
func TestRingsTrim(t *testing.T) {
	g, err := NewRings(twoRings(), NewMemBackend(), 0)
	must(t, err)
	put(t, g.At(1), 1, Entry{Body: make([]byte, trimLive+1)})
	must(t, g.Commit(1, nil))
	g.sinceMeta, g.sinceJournal = trimAfter, trimAfter
	if due := g.At(0).dueTrim(); !due.meta || due.journal {
		t.Errorf("%+v although the other ring needs the journal", due)
	}
	_, err = g.At(1).DropBelow(1)
	must(t, err)
	g.sinceMeta, g.sinceJournal = trimAfter, trimAfter
	if due := g.At(0).dueTrim(); !due.meta || !due.journal || g.sinceJournal != 0 {
		t.Errorf("%+v when nobody needs the journal", due)
	}
}

// TestDamagedRings: what a start finds damaged is that ring's, under its own keys.
func TestDamagedRings(t *testing.T) {
	opts := []Options{testOptions, {Width: 1000, Slots: 4, Space: 'w'}}
	for name, c := range map[string]struct {
		damage func(m *MemBackend)
		want   string
	}{
		"whole":              {func(*MemBackend) {}, ""},
		"bitmap, no mark":    {func(m *MemBackend) { delete(m.meta, "w.mark.0"); delete(m.families, RunName{Space: 'w'}) }, "bitmap and no mark"},
		"bitmap gone":        {func(m *MemBackend) { delete(m.meta, "w.bits.0") }, "bitmap of 0 bytes"},
		"mark's name":        {func(m *MemBackend) { m.meta["w.mark.x"] = m.meta["w.mark.0"] }, `damaged mark "w.mark.x"`},
		"bitmap's name":      {func(m *MemBackend) { m.meta["w.bits.00"] = m.meta["w.bits.0"] }, `damaged bitmap "w.bits.00"`},
		"floor":              {func(m *MemBackend) { m.meta["w.floor"] = []byte{1} }, "damaged floor"},
		"family":             {func(m *MemBackend) { delete(m.families, RunName{Space: 'w'}) }, "its family is not there"},
		"family of the main": {func(m *MemBackend) { delete(m.families, RunName{}) }, "its family is not there"},
		"journal":            {func(m *MemBackend) { m.journal[journalKey('w', 2)] = []byte{7} }, "journal of batch 2"},
	} {
		m := NewMemBackend()
		g, err := NewRings(opts, m, 0)
		must(t, err)
		for batch := uint64(1); batch <= 2; batch++ {
			for _, r := range g.rings {
				put(t, r, 1, Entry{Time: int64(batch-1) * 1000})
			}
			must(t, g.Commit(batch, nil))
		}
		for _, r := range g.rings {
			sealBucket(t, r, 0)
		}
		c.damage(m)
		if _, err = NewRings(opts, m, 2); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, expected one with %q", name, err, c.want)
		}
	}
}
