package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"joinbench/buckets"
	"joinbench/capture"
	"joinbench/config"
	"joinbench/core"
	"joinbench/internal/oracle"
	"joinbench/projection"
	"joinbench/results"
)

// stopped is a join that was run with NoDrain, and where it came to rest.
type stopped struct {
	stats *results.Counters
	wm    [2]int64
	kept  [2][]byte             // of each file the lines that were read
	next  [2]map[int32][2]int64 // by partition: place and event time of the first record that was not
}

// runToRest is Join, which looks at the engine before it is closed.
func (s *scene) runToRest(jc JoinConfig) (r stopped, err error) {
	j, err := newFileJoin(jc)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	if err := errors.Join(j.openInputs(context.Background()), j.prepareState()); err != nil {
		return r, err
	}
	if r.stats, err = j.run(context.Background()); err != nil {
		return r, err
	}
	r.wm = j.state.engine.Levels(false).Watermarks
	for side, in := range j.inputs {
		places := map[int32]int64{}
		for i, p := range in.Partitions() {
			places[p] = j.state.engine.Place(core.Side(side), i)
		}
		path := []string{jc.A, jc.B}[side]
		r.kept[side], r.next[side] = s.split(in, readFile(s.t, path), places, j.c.spec[side])
	}
	return r, nil
}

// split gives the lines of a file that lie before their partition's place, and what comes next in each partition.
func (s *scene) split(in *capture.Input, file []byte, places map[int32]int64, spec *projection.Spec) ([]byte, map[int32][2]int64) {
	drop := map[int64]bool{} // line starts
	next := map[int32][2]int64{}
	for p, place := range places {
		c := in.NewCursor(p, capture.Position(place))
		rec := make([]projection.Record, 1)
		for {
			var arena []byte
			n, err := c.Read(rec, &arena)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				s.t.Fatal(err)
			}
			end := int64(c.PositionAfter(n - 1))
			start := int64(bytes.LastIndexByte(file[:end-1], '\n') + 1)
			drop[start] = true
			if _, ok := next[p]; !ok {
				var rows projection.Rows
				spec.NewDecoder().Append(&rows, &rec[0])
				next[p] = [2]int64{start, rows.Time[0]}
			}
		}
	}
	var kept []byte
	for at := 0; at < len(file); {
		end := len(file)
		if i := bytes.IndexByte(file[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		if !drop[int64(at)] {
			kept = append(kept, file[at:end]...)
		}
		at = end
	}
	return kept, next
}

// TestNoDrainStopsWhereTimeStands: without a drain the end of the files closes nothing. What was read has joined as if the
// files ended there, what waits is counted, every A that was given up is over by rule 10, and every record that was not
// read had to wait by rules 12 and 13. A second run on the same directory finds nothing to do.
func TestNoDrainStopsWhereTimeStands(t *testing.T) {
	n := 16
	if testing.Short() {
		n = 10
	}
	all := variants()
	for i := range n {
		seed := *oracleSeed + 3000 + uint64(i)
		cardinality := []string{oracle.OneToOne, oracle.OneToMany}[i%2]
		v := all[i*variantStride%len(all)]
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			s := newScene(t, seed, cardinality, v)
			jc := s.join("run", v)
			jc.NoDrain, jc.StateDir = true, s.path("state")
			r, err := s.runToRest(jc)
			if err != nil {
				t.Fatalf("%s: %v", v, err)
			}
			s.checkRest(v, cardinality, &r)
			files := s.snapshot()
			again, err := Join(context.Background(), jc)
			if err != nil {
				t.Fatalf("%s: again: %v", v, err)
			}
			same(t, "again", again, r.stats)
			for path, data := range files {
				if !bytes.Equal(readFile(t, path), data) {
					t.Errorf("%s: the second run changed %s", v, path)
				}
			}
		})
	}
}

func (s *scene) checkRest(v variant, cardinality string, r *stopped) {
	t := s.t
	cfg, _, _, format := oracle.RandomWorkload(oracle.NewRand(s.seed))
	cfg.Cardinality = cardinality
	want, err := oracle.Expect(cfg, r.kept[core.A], r.kept[core.B], format)
	if err != nil {
		t.Fatal(err)
	}
	lines := s.lines(s.path("run-out"))
	if err := want.CheckReachable(lines); err != nil {
		t.Fatalf("%s: of what was read: %v", v, err)
	}
	pending := r.stats.A.Pending
	r.stats.A.Pending = 0 // checkFates wants that of a drain
	checkFates(t, v, "a", &r.stats.A, want.CountersA)
	checkFates(t, v, "b", &r.stats.B, want.CountersB)
	r.stats.A.Pending = pending
	before, after, grace := ms(s.conf.Window.Before), ms(s.conf.Window.After), ms(s.conf.Grace)

	waiting, err := want.StillWaiting(lines, s.lines(s.path("run-unmatched")), s.topicA(), s.topicB())
	if err != nil {
		t.Fatalf("%s: %v", v, err)
	}
	width, slots := ms(s.conf.Width()), int64(s.conf.State.Buckets)
	floor, swept := int64(-1<<62), int64(0) // of the bucket that is due next, A that are closed
	if r.wm[core.B] > 0 {
		floor = buckets.EpochOf(r.wm[core.B]-after-grace, width)
	}
	for _, a := range want.AcceptedA() {
		if buckets.EpochOf(a.Time, width) == floor && r.wm[core.B] > a.Time+after+grace {
			swept++
		}
	}
	if n := int64(len(waiting)); cardinality == oracle.OneToOne && (pending < n || pending > n+swept) {
		t.Errorf("%s: %d pending, but %d A are neither in a pair nor unmatched, and %d are closed whose bucket is there", v, pending, n, swept)
	}
	stays := map[[2]int64]bool{}
	for _, a := range waiting {
		stays[[2]int64{int64(a.Partition), a.Offset}] = true
	}
	for _, a := range want.Waiting(lines) {
		if !stays[[2]int64{int64(a.Partition), a.Offset}] && r.wm[core.B] <= a.Time+after+grace {
			t.Errorf("%s: given up although B stand at %d, and the window with grace ends at %d: %+v", v, r.wm[core.B], a.Time+after+grace, *a)
		}
	}
	soonest := int64(1 << 62)
	for p, next := range r.next[core.B] {
		soonest = min(soonest, next[1])
		if due := r.wm[core.A] - before - grace; next[1] < due {
			t.Errorf("%s: partition %d of B waits at time %d, but everything before %d is due", v, p, next[1], due)
		}
	}
	oldest := buckets.EpochOf(r.wm[core.A]-grace, width)
	for _, a := range want.AcceptedA() { // those that have paired too: their bucket is not due to drop
		if epoch := buckets.EpochOf(a.Time, width); epoch >= floor {
			oldest = min(oldest, epoch)
		}
	}
	for p, next := range r.next[core.A] {
		if epoch := buckets.EpochOf(next[1], width); next[1] <= soonest+ms(s.conf.Spread()) && epoch-slots < oldest {
			t.Errorf("%s: partition %d of A waits at time %d; it is within max_spread of B at %d, and the ring has room", v, p, next[1], soonest)
		}
	}
}

// TestNoDrainWithoutOtherSide: a side without a record has no time yet, so nothing of the other one closes or asks.
func TestNoDrainWithoutOtherSide(t *testing.T) {
	v := variant{tasks: 2, buckets: 8, batch: 3, filter: "fuse16"}
	for _, other := range []string{"", "\n", "not json\n\n"} {
		for side := range 2 {
			t.Run(fmt.Sprintf("%q/%s", other, core.Side(side)), func(t *testing.T) {
				s := newScene(t, 21, oracle.OneToOne, v)
				if s.format == capture.Value && other != "" {
					t.Skip("in format value every line is of partition 0")
				}
				writeFile(t, s.path([]string{"b.ndjson", "a.ndjson"}[side]), []byte(other))
				jc := s.join("run", v)
				jc.NoDrain, jc.StateDir = true, s.path("state")
				r, err := s.runToRest(jc)
				if err != nil {
					t.Fatal(err)
				}
				if n := r.stats.UnmatchedA + r.stats.UnmatchedB; n != 0 {
					t.Errorf("%d events were given up, though the other side has no time", n)
				}
				if side == 0 && (r.stats.A.Accepted == 0 || r.stats.A.Pending != r.stats.A.Accepted) {
					t.Errorf("%d A accepted, %d pending: all should wait", r.stats.A.Accepted, r.stats.A.Pending)
				}
				if side == 1 && r.stats.B.Accepted != 0 {
					t.Errorf("%d B asked although no A came", r.stats.B.Accepted)
				}
			})
		}
	}
}

// TestNoDrainKeepsWhatIsNotOver: when B has ended max_spread holds no A back any more, and a partition that is far ahead of
// another must not take the slots of the ring that the other one's A, which are not over, still need.
func TestNoDrainKeepsWhatIsNotOver(t *testing.T) {
	conf := config.Default()
	conf.A.Key, conf.B.Key = []string{"@key"}, []string{"@key"}
	conf.Window.After, conf.Grace, conf.MaxSpread = 10*time.Second, 0, time.Millisecond
	conf.State.Buckets, conf.State.Tasks, conf.State.Sync = 2, 1, "none" // 10.001 s each
	if err := conf.Validate(); err != nil {
		t.Fatal(err)
	}
	line := func(partition, offset int, second int64) string {
		return fmt.Sprintf(`{"topic":"t","partition":%d,"offset":%d,"ts":%d,"key":"k%[3]d","payload":"{}"}`+"\n", partition, offset, second*1000)
	}
	dir := t.TempDir()
	s := &scene{t: t, dir: dir, conf: conf, format: capture.Kcat}
	// The bucket of second 115 has the slot of that of second 12.
	writeFile(t, s.path("a.ndjson"), []byte(line(0, 0, 115)+line(1, 0, 0)+line(1, 1, 1)+line(1, 2, 12)))
	writeFile(t, s.path("b.ndjson"), []byte(line(0, 0, 0)))
	jc := s.join("run", variant{inline: true})
	jc.NoDrain, jc.StateDir = true, s.path("state")
	r, err := s.runToRest(jc)
	if err != nil {
		t.Fatal(err)
	}
	// B stands at second 0. Its A is in a pair; the others may still find a B. The one at 115 must wait for the slot.
	if r.stats.Matches != 1 || r.stats.A.Accepted != 3 || r.stats.A.Pending != 2 || r.stats.UnmatchedA != 0 {
		t.Errorf("%d pairs, %d A accepted, %d pending, %d given up; want 1, 3, 2, 0", r.stats.Matches, r.stats.A.Accepted, r.stats.A.Pending, r.stats.UnmatchedA)
	}
	if next := r.next[core.A][0]; next != [2]int64{0, 115_000} {
		t.Errorf("of partition 0 the record %v comes next, want the one at time 115000", next)
	}
}
