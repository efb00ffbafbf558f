package core

import (
	"joinbench/buckets"
	"joinbench/fusefilter"
)

// When a group comes out, and as what (rule 19).

// taking puts groups together. What it hands out is valid until begin.
type taking struct {
	full   []Group // complete, or ended by a B
	closed []Group

	queue []owner // A that closed and whose groups have not come out, from next on
	next  int

	most     int // a part of the output is full with so many B in groups,
	mostRead int // or with so many bytes of them read from runs

	lists [][]byte // the B of all groups of this part of the batch, group by group
	read  copies   // entries of runs

	// Scratch of one fetch.
	sought []sought
	hashes []uint64
	hits   []fusefilter.Found
	rows   []uint32 // rows in RAM
	probes []buckets.Probe
	order  []uint32 // probes by their A
	touch  byte     // sum of what was read ahead, so that it is read
}

// owner is an A whose group is to come out.
type owner struct {
	epoch int64
	entry []byte
}

// sought is an A and where its B are.
type sought struct {
	collector
	arena, part uint32 // newest rows of the hash, as the indexes count them; NoRow: none
	from, to    int    // taking.rows, newest first
	runs        int    // taking.order: how many of its probes follow
}

const (
	// fetchAhead A are looked for together: their rows are cold, and these reads do not wait for each other.
	fetchAhead = 128
	// maxRead is taking.mostRead.
	maxRead = 8 << 20
	// keepCopied is the largest chunk of copies that is kept for the next batch.
	keepCopied = 1 << 20
)

func (t *taking) begin() {
	clear(t.full)
	clear(t.closed)
	if cap(t.lists) > 4*MaxMatches {
		t.lists = nil
	}
	clear(t.lists) // what they point at may be a chunk that goes
	t.full, t.closed, t.lists = t.full[:0], t.closed[:0], t.lists[:0]
	t.read.reset()
}

// forget drops what is queued.
func (t *taking) forget() {
	clear(t.queue)
	t.queue, t.next = t.queue[:0], 0
}

// isFull says that a part of the output is large enough.
func (t *taking) isFull() bool { return len(t.lists) >= t.most || t.read.bytes >= t.mostRead }

// completes says whether a B makes its group complete: it is the nth of those wanted, or the marker. No count (0) waits for
// the close.
func completes(how Collect, wanted, have uint32, marks bool) bool {
	switch how {
	case CollectCount:
		return wanted != 0 && have >= wanted
	case CollectMarker:
		return marks
	}
	return false
}

// meet collects a B that found an A and says whether the group came out, after which the A takes no more: the caller ends it.
// first says that the A had no B, and then kind is what its first pair would say of a null row; a NullFirst comes out with
// the group if that comes in the same batch, else by lateNulls.
func (g *groups) meet(f found, ref Ref, kind MatchKind, first bool) (out bool, err error) {
	c, err := g.collector(f.bucket.Epoch, f.entry)
	if err != nil {
		return false, err
	}
	have, err := g.add(f.bucket.Epoch, &c, ref, kind, first)
	if err != nil {
		return false, err
	}
	if completes(g.cfg.Collect, c.wanted, have, ref.Chunk.FlagsOf(ref.Row)&Marks != 0) {
		return true, g.takeOut(f, true)
	}
	if kind&NullFirst != 0 {
		f.entry = g.lateA.keep(f.entry)
		g.late = append(g.late, f)
	}
	return false, nil
}

// end lets the group of an A out that a B has ended (rule 18), as its close would. The A has collected some.
func (g *groups) end(f found) error { return g.takeOut(f, g.cfg.Collect == CollectTimeout) }

// takeOut puts out a group before its A closes, and uses up its B.
func (g *groups) takeOut(f found, complete bool) error {
	o := [1]owner{{f.bucket.Epoch, f.entry}}
	t := &g.take
	have := len(t.full)
	_, err := g.fetch(o[:], &t.full, true)
	if err == nil {
		t.full[have].Complete = complete
	}
	return err
}

// lateNulls adds the entries of A whose null row is due because their first B, of this batch, came too late, and that do not
// come with their group: that came out already, or does so in this batch, since they close below the limit. Call when all B
// have asked; the entries are valid until the next B is collected.
func (g *groups) lateNulls(dst [][]byte, closed int64) [][]byte {
	for _, f := range g.late {
		if !f.bucket.Ended(f.row) && buckets.TimeOf(f.entry) >= closed {
			dst = append(dst, f.entry)
		}
	}
	g.forgetLate()
	return dst
}

func (g *groups) forgetLate() {
	clear(g.late)
	g.late = g.late[:0]
	g.lateA.reset()
}

// due queues the group of an A that closes. It has collected B and was not ended; the entry stays valid until the batch ends.
func (g *groups) due(epoch int64, entry []byte) {
	g.take.queue = append(g.take.queue, owner{epoch, entry})
}

// found lists the groups that came out: complete ones, then those that closed. It is valid until begin.
func (g *groups) found() []Group { return append(g.take.full, g.take.closed...) }

// busy says that queued groups wait, and queued how many.
func (g *groups) busy() bool  { return g.queued() > 0 }
func (g *groups) queued() int { return len(g.take.queue) - g.take.next }

// isFull says that this part of the batch's output is large enough.
func (g *groups) isFull() bool { return g.take.isFull() }

// release puts out queued groups, in their order, until this part of the output is full or none is left.
func (g *groups) release() error {
	t := &g.take
	for g.busy() && !t.isFull() {
		list := t.queue[t.next:]
		n := 1
		for most := g.ahead(list[0].epoch); n < min(len(list), most) && list[n].epoch == list[0].epoch; n++ {
		}
		have := len(t.closed)
		done, err := g.fetch(list[:n], &t.closed, false)
		if err != nil {
			return err
		}
		for i := have; i < len(t.closed); i++ {
			t.closed[i].Complete = g.cfg.Collect == CollectTimeout
		}
		t.next += done
	}
	if !g.busy() {
		t.forget()
	}
	return nil
}

// ahead is how many A of a bucket are looked for together: what is read of runs at once is to stay within bounds.
func (g *groups) ahead(epoch int64) int {
	b := g.ring.At(epoch)
	if b == nil || b.Runs() == 0 {
		return fetchAhead
	}
	value := b.Bytes() / b.Entries() * buckets.ChunkEntries * int64(b.Runs()) // at most, on the average
	return int(min(max(int64(g.take.mostRead)/max(value, 1), 1), fetchAhead))
}
