package core

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/zeebo/xxh3"

	"joinbench/buckets"
	"joinbench/fusefilter"
)

// Groups of collected B (rule 19). A B that found its A is kept until the group of that A comes out: with its nth B, with a
// marker, with an end (rule 18), or when the A closes. Kept is what a second ring of buckets keeps: B of an A lie in the
// bucket of the A's epoch, so that restart, undo, drop and spill are those of the A, with no code of their own.
//
// An entry of that ring is the B as it came, but for its key and its hash, which are about the A:
//
//   - The key says whose B it is (partition and offset of the A), the how-manieth, and what the group will say of a null row.
//   - The hash is one of the A itself and not of the join key. So a chain of the index, and the values of one hash in a run, are
//     the B of one A; by the join's hash 100,000 A of a hot key would share a chain, and each look would walk it. The upper
//     bits are the A's time in its bucket: A close in that order, so what they read of a run lies side by side in the file.
//   - The number makes a count free: a B finds the one before it at the head of the chain and takes the next number. It also
//     says whether the oldest B in RAM is the first of all, and then nobody asks the runs.
//
// Buckets of this ring are never sealed: an A collects until it is over, and so is its bucket soon after. What is short of
// memory spills (Ring.StartSpill). A group that came out before the close has its rows used, so that no spill writes them; of one
// that closes nothing is noted, since the watermarks say that it has come out (see release.go).

// Key of a collected B: u32 partition and i64 offset of its A, which are unique on that side, u32 its number in the group, u8 kind
// of the group; big endian. The number counts from 1 in the order in which the B asked; 0: older ones are in runs, and nobody
// has counted them. The kind is in the first B's.
const (
	ownerSize   = 4 + 8
	collectSize = ownerSize + 4 + 1
)

// timeBits are the bits of a hash that are the A's time in its bucket.
const timeBits = 24

// groups is what a task has collected. It belongs to the task's goroutine.
type groups struct {
	cfg  *Config
	ring *buckets.Ring
	help *helper                // the task's: writes and drops
	hash func(id []byte) uint64 // nil: hashOfA (tests)
	openIndexes
	key   [collectSize]byte
	late  []found // A whose first B came too late, in this batch: their null row is due
	lateA copies  // their entries
	take  taking
	stats *TaskStats // the task's: reads and spills count there
}

// newGroups is what a ring holds, which is at the batch of the commit record. The ring is the groups' from here on.
func newGroups(cfg *Config, ring *buckets.Ring, help *helper) *groups {
	g := &groups{cfg: cfg, ring: ring, help: help, stats: &TaskStats{}, take: taking{most: cfg.maxOutput(), mostRead: maxRead}}
	g.fillIndexes(ring)
	return g
}

// collector is an A as its group knows it.
type collector struct {
	id     [ownerSize]byte
	hash   uint64
	wanted uint32
}

func (g *groups) collector(epoch int64, entry []byte) (c collector, err error) {
	a, err := buckets.ParseEntry(entry)
	if err != nil {
		return c, err
	}
	binary.BigEndian.PutUint32(c.id[:], uint32(a.Partition))
	binary.BigEndian.PutUint64(c.id[4:], uint64(a.Offset))
	c.wanted = a.Wanted
	if g.hash != nil {
		copy(g.key[:], c.id[:]) // what a variable is called with would be on the heap
		c.hash = g.hash(g.key[:ownerSize])
	} else {
		c.hash = hashOfA(c.id[:], a.Time-epoch*g.cfg.Width, g.cfg.Width)
	}
	return c, nil
}

// hashOfA has the time in the bucket, in parts of the width, above a hash of the identity. An A that woke late may lie in a
// bucket that is not of its time.
func hashOfA(id []byte, at, width int64) uint64 {
	at = min(max(at, 0), width-1)
	return uint64(at<<timeBits/width)<<(64-timeBits) | xxh3.Hash(id)>>timeBits
}

// nth is how many B a group has with the one of this key, 0 if that is not known.
func nth(key []byte) uint32 { return binary.BigEndian.Uint32(key[ownerSize:]) }

// of says whether a B is one of this A.
func (c *collector) of(b *buckets.Entry) bool {
	return len(b.Key) == collectSize && bytes.Equal(b.Key[:ownerSize], c.id[:])
}

// add keeps a B with its A, and says how many that has now; that is known if groups are counted, else it may be 0.
// first says that the A had none, and then kind is what its group will say of a null row.
func (g *groups) add(epoch int64, c *collector, ref Ref, kind MatchKind, first bool) (have uint32, err error) {
	b, x, err := g.openBucket(epoch)
	if err != nil {
		return 0, err
	}
	if have, err = g.number(b, c, first); err != nil {
		return 0, err
	}
	copy(g.key[:], c.id[:])
	binary.BigEndian.PutUint32(g.key[ownerSize:], have)
	g.key[collectSize-1] = byte(kind)
	from, row := ref.Chunk, ref.Row
	at, err := g.ring.Append(b, c.hash, &buckets.Entry{SideB: true, Partition: from.Partition, Time: from.Time[row],
		Offset: from.Offset[row], Key: g.key[:], Body: from.BodyOf(row)})
	if err != nil {
		return 0, err
	}
	x.Insert(c.hash, at-b.Base())
	return have, nil
}

// number is that of the next B of a group.
func (g *groups) number(b *buckets.Bucket, c *collector, first bool) (uint32, error) {
	if first {
		return 1, nil
	}
	last, found := g.newest(b, partIndex{g.index[b.Slot], b.Base()}, c)
	if !found {
		last, found = g.newest(b, g.part[b.Slot], c)
	}
	switch {
	case found && last != 0:
		return last + 1, nil
	case found || b.Runs() > 0 && g.cfg.Collect != CollectCount:
		return 0, nil
	}
	last, err := g.newestInRuns(b, c)
	if err == nil && last == 0 {
		err = g.lost(b, c)
	}
	return last + 1, err
}

// lost is the error of a state in which an A has B that are not there.
func (g *groups) lost(b *buckets.Bucket, c *collector) error {
	return fmt.Errorf("bucket %d: the record of a at partition %d, offset %d has collected records of b, and they are not in the state: "+
		"its two halves are of different moments. Remove the directory and start anew", b.Epoch,
		int32(binary.BigEndian.Uint32(c.id[:])), int64(binary.BigEndian.Uint64(c.id[4:])))
}

// newest is the number of the last B of an A that an index knows.
func (g *groups) newest(b *buckets.Bucket, x partIndex, c *collector) (last uint32, found bool) {
	if x.OpenIndex == nil {
		return 0, false
	}
	for i, ok := x.Find(c.hash); ok; i, ok = x.Next(i) {
		if e, err := buckets.ParseEntry(b.Entry(x.base + i)); err == nil && c.of(&e) { // an arena holds what Append made of it
			return nth(e.Key), true
		}
	}
	return 0, false
}

// newestInRuns is the greatest number of a B of an A in runs, 0 if there is none: that of the last run that has any, since each
// run is of later rows than those before it.
func (g *groups) newestInRuns(b *buckets.Bucket, c *collector) (last uint32, err error) {
	t := &g.take
	t.probes = g.probeRuns(t.probes[:0], b, c.hash, 0)
	if err := g.lookup(t.probes); err != nil {
		return 0, err
	}
	for i := len(t.probes) - 1; i >= 0 && last == 0; i-- {
		err := g.eachInRun(t.probes[i], i, func(_ uint32, raw []byte) error {
			e, err := buckets.ParseEntry(raw)
			if err == nil && c.of(&e) {
				last = max(last, nth(e.Key))
			}
			return err
		})
		if err != nil {
			return 0, fmt.Errorf("bucket %d: %w", b.Epoch, err)
		}
	}
	return last, nil
}

func (g *groups) openBucket(epoch int64) (*buckets.Bucket, *fusefilter.OpenIndex, error) {
	b, err := g.ring.Bucket(epoch)
	if err != nil {
		return nil, nil, err
	}
	return b, g.indexOf(b), nil
}

// begin forgets what came out last: before each part of a batch.
func (g *groups) begin() { g.take.begin() }

// undo goes back to the last commit.
func (g *groups) undo() {
	g.begin()
	g.forgetLate()
	g.take.forget()
	g.undoRing(g.ring)
}
