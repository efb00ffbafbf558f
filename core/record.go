package core

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"joinbench/buckets"
)

// commitVersion is the format of a commit record (version 2 counts more, version 3 early rows too, and has Gate.back, version 4 the slots that are
// taken):
//
//	u8 version, u64 batch, i64 watermarks of A and B, counters (fixed size),
//	for each side: u32 partitions, each {i32 id, i64 next offset, i64 M(p), i64 place},
//	               u32 buckets, each {i64 epoch, i64 Gate.back of it}, by epoch,
//	               u32 slots that are taken, each {i64 epoch}, by slot,
//	the sink's state, to the end
//
// What is closed, over and sealed follows from the watermarks. A slot may be taken and its bucket hold nothing, for what came into it
// paired at once; whether another event waits for the slot must not depend on a restart. Which partitions are idle is not in it: a new life listens anew, and
// watermarks do not go back for that.
const commitVersion = 4

var errCommit = errors.New("damaged commit record")

// appendRecord makes the commit record of batch n, in which gate and counters are.
func (e *Engine) appendRecord(dst []byte, n uint64) ([]byte, error) {
	g := e.gate
	dst = append(dst, commitVersion)
	dst = binary.LittleEndian.AppendUint64(dst, n)
	for _, v := range g.wm {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(v))
	}
	c := e.Counters()
	dst = c.append(dst)
	for s, side := range g.parts {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(side)))
		for i := range side {
			p := &side[i]
			dst = binary.LittleEndian.AppendUint32(dst, uint32(p.ID))
			for _, v := range []int64{p.next, p.m, p.place} {
				dst = binary.LittleEndian.AppendUint64(dst, uint64(v))
			}
		}
		dst = appendBack(dst, g.back[s])
		dst = appendLive(dst, g.live[s])
	}
	return e.sink.State(dst)
}

// CommittedBatch reads the batch number of a commit record; 0 of none.
func CommittedBatch(record []byte) (uint64, error) {
	if len(record) == 0 {
		return 0, nil
	}
	if len(record) < 9 || record[0] != commitVersion {
		return 0, fmt.Errorf("%w: version", errCommit)
	}
	return binary.LittleEndian.Uint64(record[1:]), nil
}

// restored is what a commit record says beside what the gate takes from it.
type restored struct {
	batch    uint64
	counters Counters
	sink     []byte // its part of the record, into which it points
}

// restore brings the gate, which is at its beginning, to a commit record.
func (e *Engine) restore(record []byte) (r restored, err error) {
	if r.batch, err = CommittedBatch(record); err != nil || len(record) == 0 {
		return r, err
	}
	if len(record) < 25 {
		return r, fmt.Errorf("%w: cut short", errCommit)
	}
	g := e.gate
	for i, v := range []*int64{&g.wm[A], &g.wm[B]} {
		*v = int64(binary.LittleEndian.Uint64(record[9+8*i:]))
	}
	rest, err := r.counters.decode(record[25:])
	if err != nil {
		return r, err
	}
	r.sink, err = g.restoreParts(rest)
	return r, err
}

// restoreParts takes over what a commit record says of partitions and buckets, and returns the rest.
func (g *Gate) restoreParts(rest []byte) (_ []byte, err error) {
	for s, side := range g.parts {
		if len(rest) < 4 {
			return nil, fmt.Errorf("%w: partitions", errCommit)
		}
		n := int(binary.LittleEndian.Uint32(rest))
		rest = rest[4:]
		if n != len(side) || len(rest) < n*28 {
			return nil, fmt.Errorf("%w: %d partitions, the input has %d", errCommit, n, len(side))
		}
		for i := range side {
			p := &side[i]
			if id := int32(binary.LittleEndian.Uint32(rest)); id != p.ID {
				return nil, fmt.Errorf("%w: partition %d, the input has %d", errCommit, id, p.ID)
			}
			for k, v := range []*int64{&p.next, &p.m, &p.place} {
				*v = int64(binary.LittleEndian.Uint64(rest[4+8*k:]))
			}
			rest = rest[28:]
		}
		if rest, err = takeBack(g.back[s], rest); err == nil {
			rest, err = takeLive(g.live[s], rest)
		}
		if err != nil {
			return nil, err
		}
	}
	return rest, nil
}

func appendBack(dst []byte, back map[int64]int64) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(back)))
	if len(back) == 0 {
		return dst
	}
	for _, epoch := range slices.Sorted(maps.Keys(back)) {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(epoch))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(back[epoch]))
	}
	return dst
}

// takeBack fills an empty map.
func takeBack(back map[int64]int64, from []byte) (rest []byte, err error) {
	if len(from) < 4 {
		return nil, fmt.Errorf("%w: buckets", errCommit)
	}
	n := int(binary.LittleEndian.Uint32(from))
	if from = from[4:]; len(from) < 16*n {
		return nil, fmt.Errorf("%w: %d buckets with earlier events", errCommit, n)
	}
	last := int64(math.MinInt64)
	for range n {
		epoch, by := int64(binary.LittleEndian.Uint64(from)), int64(binary.LittleEndian.Uint64(from[8:]))
		if epoch <= last || by <= 0 {
			return nil, fmt.Errorf("%w: bucket %d has events of %d buckets before", errCommit, epoch, by)
		}
		back[epoch], last, from = by, epoch, from[16:]
	}
	return from, nil
}

func appendLive(dst []byte, live []int64) []byte {
	at := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	n := uint32(0)
	for _, epoch := range live {
		if epoch != noEpoch {
			dst = binary.LittleEndian.AppendUint64(dst, uint64(epoch))
			n++
		}
	}
	binary.LittleEndian.PutUint32(dst[at:], n)
	return dst
}

// takeLive fills slots that are free.
func takeLive(live []int64, from []byte) (rest []byte, err error) {
	if len(from) < 4 {
		return nil, fmt.Errorf("%w: slots", errCommit)
	}
	n := int(binary.LittleEndian.Uint32(from))
	if from = from[4:]; len(from) < 8*n {
		return nil, fmt.Errorf("%w: %d slots are taken", errCommit, n)
	}
	last := -1
	for range n {
		epoch := int64(binary.LittleEndian.Uint64(from))
		slot := buckets.SlotOf(epoch, len(live))
		if epoch == noEpoch || slot <= last {
			return nil, fmt.Errorf("%w: bucket %d in slot %d, behind slot %d", errCommit, epoch, slot, last)
		}
		live[slot], last, from = epoch, slot, from[8:]
	}
	return from, nil
}
