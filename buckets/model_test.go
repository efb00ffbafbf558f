package buckets

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The model test drives a ring with random operations and keeps beside it what the ring should hold, as plain
// maps and slices. After each step both are compared.

// world is what a ring should hold.
type world struct {
	floor   int64
	buckets map[int64]*modelBucket
}

type modelBucket struct {
	state State
	rows  []modelRow
	done  int // rows below are in runs
	part  int // 0, or rows below it and not below done are being written
	runs  int
}

type modelRow struct {
	hash   uint64
	e      Entry
	bytes  string // encoded
	used   bool
	ended  bool // with KeepUsed
	atSeal bool // was over when the writing of its run started: not in it
	run    int  // the run that it is in, or will be
}

func (w world) clone() world {
	c := world{w.floor, map[int64]*modelBucket{}}
	for epoch, b := range w.buckets {
		c.buckets[epoch] = &modelBucket{b.state, slices.Clone(b.rows), b.done, b.part, b.runs}
	}
	return c
}

// reopened is the world after a restart: what was sealing is open again.
func (w world) reopened() world {
	c := w.clone()
	for _, b := range c.buckets {
		if b.state == Sealing {
			b.state = Open
		}
		b.part = 0
		for i := b.done; i < len(b.rows); i++ {
			b.rows[i].atSeal = false
		}
	}
	return c
}

// withHash lists what a lookup of a hash in a run should find, in the order of rule 2.
func (b *modelBucket) withHash(hash uint64, run int) []found {
	var rows []int
	for i, r := range b.rows[:b.done] {
		if r.hash == hash && r.run == run && !r.atSeal {
			rows = append(rows, i)
		}
	}
	slices.SortStableFunc(rows, func(i, j int) int {
		x, y := b.rows[i].e, b.rows[j].e
		return cmp.Or(cmp.Compare(x.Time, y.Time), cmp.Compare(x.Partition, y.Partition), cmp.Compare(x.Offset, y.Offset))
	})
	var out []found
	for _, i := range rows {
		out = append(out, found{uint32(i), b.rows[i].bytes})
	}
	return out
}

// over says whether a row is, in the ring of the run.
func (m *modelRun) over(r modelRow) bool { return r.ended || r.used && !m.opt.KeepUsed }

// hashes are the distinct ones of a run; without those for which leave says so.
func (b *modelBucket) hashes(run int, leave func(modelRow) bool) []uint64 {
	var out []uint64
	for _, r := range b.rows[:b.done] {
		if r.run == run && !r.atSeal && !(leave != nil && leave(r)) {
			out = append(out, r.hash)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (m *modelRun) randomEntry(epoch int64) (uint64, Entry) {
	key := m.rng.IntN(300)
	hash := uint64(key%200) * 0x9e3779b97f4a7c15 // some keys share their hash
	if m.chance(15) {
		hash = m.hot
	}
	e := Entry{SideB: m.chance(30), Wanted: uint32(max(0, m.rng.IntN(7)-3)), Spec: uint16(m.rng.IntN(3)), Partition: int32(m.rng.IntN(4)),
		Time: epoch*m.opt.Width + m.rng.Int64N(20)*50, Offset: m.rng.Int64N(1000),
		Key: fmt.Appendf(nil, "skey-%d", key), Body: filled(m.rng.IntN(120), m.rng.Uint64())}
	switch n := m.rng.IntN(2000); {
	case n == 0:
		e.Body = filled(chunkSize+m.rng.IntN(1000), m.rng.Uint64())
	case n < 10:
		e.Key = filled(8192, m.rng.Uint64())
	case n < 40:
		e.Body = filled(m.rng.IntN(20_000), m.rng.Uint64())
	case n < 60:
		e.Key, e.Body = nil, nil
	}
	return hash, e
}

func (m *modelRun) append() {
	epoch := m.lo + m.rng.Int64N(int64(m.opt.Slots))
	b, err := m.ring.Bucket(epoch)
	if mb := m.now.buckets[epoch]; mb != nil && mb.state != Open {
		if err == nil {
			m.t.Fatalf("bucket %d took an entry although it is no longer open", epoch)
		}
		m.counts["refused"]++
		return
	}
	must(m.t, err)
	hash, e := m.randomEntry(epoch)
	row, err := m.ring.Append(b, hash, &e)
	must(m.t, err)
	mb := m.now.buckets[epoch]
	if mb == nil {
		mb = &modelBucket{}
		m.now.buckets[epoch] = mb
	}
	if int(row) != len(mb.rows) {
		m.t.Fatalf("row %d of bucket %d, expected %d", row, epoch, len(mb.rows))
	}
	mb.rows = append(mb.rows, modelRow{hash: hash, e: e, bytes: string(e.AppendTo(nil))})
	m.counts["append"]++
	if m.chance(5) {
		m.useRow(epoch, len(mb.rows)-1)
	}
}

func (m *modelRun) useRow(epoch int64, row int) {
	mb := m.now.buckets[epoch]
	if got := m.ring.Use(m.ring.At(epoch), uint32(row)); got == mb.rows[row].used {
		m.t.Fatalf("Use of row %d of bucket %d: %v", row, epoch, got)
	}
	mb.rows[row].used = true
	m.counts["use "+stateName(mb.state)]++
}

func (m *modelRun) endRow(epoch int64, row int) {
	mb := m.now.buckets[epoch]
	if got := m.ring.End(m.ring.At(epoch), uint32(row)); got == m.over(mb.rows[row]) {
		m.t.Fatalf("End of row %d of bucket %d: %v", row, epoch, got)
	}
	if m.opt.KeepUsed {
		mb.rows[row].ended = true
	} else {
		mb.rows[row].used = true
	}
	m.counts["end "+stateName(mb.state)]++
}

func stateName(s State) string { return [...]string{"open", "sealing", "sealed"}[s] }

// epochs are those of the live buckets, sorted so that a seed tells the whole story.
func (m *modelRun) epochs() []int64 { return slices.Sorted(maps.Keys(m.now.buckets)) }

func (m *modelRun) use() {
	if epochs := m.epochs(); len(epochs) > 0 {
		epoch := epochs[m.rng.IntN(len(epochs))]
		rows := len(m.now.buckets[epoch].rows)
		for range 1 + m.rng.IntN(8) {
			if m.chance(70) {
				m.useRow(epoch, m.rng.IntN(rows))
			} else {
				m.endRow(epoch, m.rng.IntN(rows))
			}
		}
	}
}

// wrongBuckets asks for buckets that the ring has to refuse.
func (m *modelRun) wrongBuckets() {
	if m.now.floor > -1<<62 {
		if _, err := m.ring.Bucket(m.now.floor - 1); err == nil {
			m.t.Fatalf("a bucket below the floor %d", m.now.floor)
		}
	}
	for epoch := range m.now.buckets {
		if _, err := m.ring.Bucket(epoch + int64(m.opt.Slots)); !errors.Is(err, ErrDisplaces) {
			m.t.Fatalf("bucket %d in the slot of %d: %v", epoch+int64(m.opt.Slots), epoch, err)
		}
	}
}

// inBatch makes the random changes of one batch.
func (m *modelRun) inBatch() {
	n := m.rng.IntN(60)
	if m.chance(10) {
		n = 0
	}
	for range n {
		if m.chance(85) {
			m.append()
		} else {
			m.use()
		}
	}
	if m.chance(10) {
		m.wrongBuckets()
	}
}

func (m *modelRun) startSeal() {
	epochs := m.epochs()
	if m.sealing != nil || len(epochs) == 0 {
		return
	}
	epoch := epochs[m.rng.IntN(len(epochs))]
	for _, e := range epochs {
		if b := m.now.buckets[e]; b.state == Open && b.runs > 0 && m.chance(30) {
			epoch = e // one that was spilled is rare
		}
	}
	mb := m.now.buckets[epoch]
	if mb.state != Open {
		return
	}
	spill := m.chance(60)
	if m.chance(15) { // nothing left of it: it gets no family
		for row := range mb.rows {
			m.endRow(epoch, row)
		}
		m.commit(true)
	}
	mb.part = len(mb.rows)
	for i := mb.done; i < mb.part; i++ {
		mb.rows[i].atSeal, mb.rows[i].run = m.over(mb.rows[i]), mb.runs
	}
	var job *SealJob
	done := make(chan struct{})
	if spill {
		job = m.ring.StartSpill(m.ring.At(epoch))
		m.counts["spill"]++
	} else {
		mb.state = Sealing
		job = m.ring.StartSeal(m.ring.At(epoch))
	}
	m.sealing, m.sealDone = job, done
	m.queue(func() error {
		defer close(done)
		return job.Run()
	})
	m.counts["seal"]++
}

func (m *modelRun) finishSeal() {
	if m.sealing == nil {
		return
	}
	<-m.sealDone
	epoch := m.sealing.Bucket().Epoch
	drop, err := m.ring.FinishSeal(m.sealing)
	must(m.t, err)
	job := m.sealing
	m.sealing = nil
	mb := m.now.buckets[epoch]
	if mb == nil {
		m.counts["dropped while sealing"]++
		if drop != nil {
			m.queue(drop.Run)
		}
		return
	}
	if drop != nil {
		m.t.Fatalf("bucket %d is in the ring, and its family is to be dropped", epoch)
	}
	if mb.state == Sealing {
		mb.state = Sealed
	} else if mb.runs > 0 {
		m.counts["spilled again"]++
	}
	mb.done, mb.part = mb.part, 0
	want := mb.hashes(mb.runs, nil)
	if !slices.Equal(job.Hashes, want) || job.Wrote() != (len(want) > 0) {
		m.t.Fatalf("bucket %d: SealJob.Hashes has %d, expected %d", epoch, len(job.Hashes), len(want))
	}
	if len(want) == 0 {
		m.counts["nothing to write"]++
		return
	}
	for run, older := range job.Older {
		if !slices.Equal(older, mb.hashes(run, nil)) {
			m.t.Fatalf("bucket %d: SealJob.Older of run %d has %d hashes", epoch, run, len(older))
		}
	}
	if len(job.Older) != mb.runs {
		m.t.Fatalf("bucket %d: SealJob.Older of %d runs, expected %d", epoch, len(job.Older), mb.runs)
	}
	mb.runs++
}

func (m *modelRun) drop() {
	m.lo += m.rng.Int64N(3)
	if m.sealing != nil && m.chance(30) {
		m.lo = max(m.lo, m.sealing.Bucket().Epoch+1)
	}
	floor := m.lo
	jobs, err := m.ring.DropBelow(floor)
	must(m.t, err)
	m.now.floor = max(m.now.floor, floor)
	gone := 0
	for epoch := range m.now.buckets {
		if epoch < floor {
			delete(m.now.buckets, epoch)
			gone++
		}
	}
	if len(jobs) != gone || !slices.IsSortedFunc(jobs, func(x, y *DropJob) int { return cmp.Compare(x.Epoch, y.Epoch) }) {
		m.t.Fatalf("floor %d: %d drop jobs for %d buckets", floor, len(jobs), gone)
	}
	for _, job := range jobs {
		if m.chance(80) { // the others never get to it: their families are strays of the next start
			m.queue(job.Run)
		}
	}
	m.counts["drop"] += gone
}

func (m *modelRun) maintain() {
	must(m.t, m.ring.Maintain())
	m.kit.flush(m.t, m.chance(40), m.chance(40))
	m.counts["maintain"]++
}

// checkReopened holds a store against the model after a start: nothing is kept of what is gone.
func (m *modelRun) checkReopened(store Backend) {
	if m.ring.Committed() != m.batch {
		m.t.Fatalf("Committed %d, expected %d", m.ring.Committed(), m.batch)
	}
	for _, prefix := range []string{bucketMark, rowBits} {
		prefix = spacePrefix(m.opt.Space) + prefix
		must(m.t, store.ScanMeta(prefix, func(key string, _ []byte) error {
			epoch, err := strconv.ParseInt(strings.TrimPrefix(key, prefix), 10, 64)
			if mb := m.now.buckets[epoch]; mb == nil || mb.state != Sealed && mb.done == 0 {
				return fmt.Errorf("meta has %q: %v", key, err)
			}
			return err
		}))
	}
	have, want := map[RunName]bool{}, map[RunName]bool{}
	for _, f := range store.Families() {
		if f.Name().Space == m.opt.Space {
			have[f.Name()] = true
		}
	}
	for epoch, mb := range m.now.buckets {
		for run := range mb.runs {
			want[RunName{m.opt.Space, epoch, run}] = true
		}
	}
	if !maps.Equal(have, want) {
		m.t.Fatalf("families of %v after a start, expected %v", have, want)
	}
}

func (m *modelRun) betweenBatches() {
	switch n := m.rng.IntN(100); {
	case n < 15:
		m.startSeal()
	case n < 35:
		m.finishSeal()
	case n < 45:
		m.drop()
	case n < 55:
		m.maintain()
	default:
		return
	}
	m.saved = m.now.clone()
}

// check compares ring and model.
func (m *modelRun) check() {
	m.t.Helper()
	pending := 0
	for epoch, mb := range m.now.buckets {
		pending += m.checkBucket(epoch, mb)
	}
	if m.ring.Pending() != pending {
		m.t.Fatalf("Pending %d, expected %d", m.ring.Pending(), pending)
	}
	if m.ring.Floor() != m.now.floor {
		m.t.Fatalf("Floor %d, expected %d", m.ring.Floor(), m.now.floor)
	}
	for slot := range m.opt.Slots {
		if b := m.ring.AtSlot(slot); b != nil && m.now.buckets[b.Epoch] == nil {
			m.t.Fatalf("bucket %d in slot %d should not be there", b.Epoch, slot)
		}
	}
	m.checkLookups()
}

func (m *modelRun) checkBucket(epoch int64, mb *modelBucket) (live int) {
	m.t.Helper()
	b := m.ring.At(epoch)
	if b == nil {
		m.t.Fatalf("bucket %d is missing", epoch)
	}
	want := map[uint32]string{}
	for row, r := range mb.rows {
		if b.Used(uint32(row)) != r.used || b.Ended(uint32(row)) != m.over(r) {
			m.t.Fatalf("bucket %d row %d: used %v, ended %v; expected %v, %v", epoch, row, b.Used(uint32(row)), b.Ended(uint32(row)), r.used, m.over(r))
		}
		if !m.over(r) {
			want[uint32(row)] = r.bytes
		}
	}
	live = len(want)
	if b.State() != mb.state || b.Rows() != len(mb.rows) || b.Live() != live {
		m.t.Fatalf("bucket %d: state %d, %d rows, %d live; expected %d, %d, %d", epoch, b.State(), b.Rows(), b.Live(), mb.state, len(mb.rows), live)
	}
	if b.Writing() != (mb.part > 0) || int(b.Base()) != max(mb.done, mb.part) {
		m.t.Fatalf("bucket %d: writing %v, arena from row %d; rows %d are in runs, up to %d in writing", epoch, b.Writing(), b.Base(), mb.done, mb.part)
	}
	for row := mb.done; row < len(mb.rows); row++ {
		r := mb.rows[row]
		if row >= int(b.Base()) && b.Hashes()[row-int(b.Base())] != r.hash || string(b.Entry(uint32(row))) != r.bytes {
			m.t.Fatalf("bucket %d row %d: another hash or entry", epoch, row)
		}
	}
	if mb.done == 0 {
		return live
	}
	if !m.chance(30) { // a family costs a scan
		return live
	}
	must(m.t, m.ring.EachLive(b, func(row uint32, entry []byte) error {
		if want[row] != string(entry) {
			m.t.Fatalf("bucket %d: EachLive gave row %d with another entry, or twice, or one that is over", epoch, row)
		}
		delete(want, row)
		return nil
	}))
	if len(want) > 0 {
		m.t.Fatalf("bucket %d: EachLive left out %d rows", epoch, len(want))
	}
	return live
}

// checkLookups reads some hashes that are there and some that are not, of all sealed buckets in one call.
func (m *modelRun) checkLookups() {
	m.t.Helper()
	var probes []Probe
	var want [][]found
	for _, epoch := range m.epochs() {
		mb, b := m.now.buckets[epoch], m.ring.At(epoch)
		if b.Runs() != mb.runs || b.Empty() != (mb.runs == 0) {
			m.t.Fatalf("bucket %d: %d runs, expected %d", epoch, b.Runs(), mb.runs)
		}
		for run := range mb.runs {
			hashes := mb.hashes(run, nil)
			for _, h := range []uint64{m.hot, m.rng.Uint64(), 0, ^uint64(0), hashes[m.rng.IntN(len(hashes))], hashes[m.rng.IntN(len(hashes))]} {
				probes = append(probes, Probe{Hash: h, Slot: uint16(b.Slot), Run: uint16(run)})
				want = append(want, mb.withHash(h, run))
			}
		}
		if m.chance(5) {
			m.checkScan(epoch, false)
			m.checkScan(epoch, true)
		}
		if m.chance(10) {
			m.checkClose(epoch)
		}
	}
	m.rng.Shuffle(len(probes), func(i, j int) {
		probes[i], probes[j] = probes[j], probes[i]
		want[i], want[j] = want[j], want[i]
	})
	got, err := lookupAll(m.ring, slices.Clone(probes))
	must(m.t, err)
	for i, p := range probes {
		if !slices.Equal(got[i], want[i]) {
			m.t.Fatalf("hash %x in slot %d, run %d: %d entries, expected %d (or another order)", p.Hash, p.Slot, p.Run, len(got[i]), len(want[i]))
		}
		m.counts["looked up"] += len(got[i])
	}
}

func (m *modelRun) checkScan(epoch int64, live bool) {
	m.t.Helper()
	b, mb := m.ring.At(epoch), m.now.buckets[epoch]
	scan := m.ring.ScanHashes(b)
	if live {
		scan = m.ring.ScanLive(b)
	}
	must(m.t, scan.Run())
	if len(scan.Hashes) != mb.runs {
		m.t.Fatalf("bucket %d: scan of %d runs, expected %d", epoch, len(scan.Hashes), mb.runs)
	}
	leave := map[bool]func(modelRow) bool{true: m.over}[live]
	for run, hashes := range scan.Hashes {
		if want := mb.hashes(run, leave); !slices.Equal(hashes, want) {
			m.t.Fatalf("bucket %d, run %d, live %v: scan has %d, expected %d", epoch, run, live, len(hashes), len(want))
		}
	}
}

// checkClose reads what is left in a bucket, all at once or in parts.
func (m *modelRun) checkClose(epoch int64) {
	m.t.Helper()
	b, mb := m.ring.At(epoch), m.now.buckets[epoch]
	what, limit := UnusedRows, int64(0)
	if m.chance(50) {
		what = LiveRows
	}
	if m.chance(70) {
		limit = 1 + m.rng.Int64N(20_000)
	}
	var want []found
	for row, r := range mb.rows[:mb.done] {
		if !r.atSeal && !m.over(r) && (what == LiveRows || !r.used) {
			want = append(want, found{uint32(row), r.bytes})
		}
	}
	slices.SortFunc(want, func(x, y found) int {
		return cmp.Or(compareEntries([]byte(x.entry), []byte(y.entry)), cmp.Compare(x.row, y.row))
	})
	got, parts := readClose(m.t, m.ring, b, what, limit)
	if !slices.Equal(got, want) {
		m.t.Fatalf("bucket %d, rows %d, limit %d: %d rows are left, expected %d, or others", epoch, what, limit, len(got), len(want))
	}
	m.counts["closed"] += len(got)
	if parts > 1 {
		m.counts["closed in parts"]++
	}
}
