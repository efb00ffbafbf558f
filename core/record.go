package core

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// commitVersion is the format of a commit record (version 2 counts more, version 3 early rows too):
//
//	u8 version, u64 batch, i64 watermarks of A and B, i64 floor, counters (fixed size),
//	for each side: u32 partitions, each {i32 id, i64 next offset, i64 M(p), i64 place},
//	the sink's state, to the end
const commitVersion = 3

var errCommit = errors.New("damaged commit record")

func (e *Engine) appendRecord(dst []byte) ([]byte, error) {
	g := e.gate
	dst = append(dst, commitVersion)
	dst = binary.LittleEndian.AppendUint64(dst, e.batch)
	for _, v := range []int64{g.wm[A], g.wm[B], g.floor[A]} {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(v))
	}
	c := e.Counters()
	dst = c.append(dst)
	for _, side := range g.parts {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(side)))
		for i := range side {
			p := &side[i]
			dst = binary.LittleEndian.AppendUint32(dst, uint32(p.ID))
			for _, v := range []int64{p.next, p.m, p.place} {
				dst = binary.LittleEndian.AppendUint64(dst, uint64(v))
			}
		}
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

// restore takes over a commit record and returns the sink's part of it.
func (e *Engine) restore(record []byte) (sink []byte, err error) {
	if e.batch, err = CommittedBatch(record); err != nil || len(record) == 0 {
		return nil, err
	}
	if len(record) < 33 {
		return nil, fmt.Errorf("%w: cut short", errCommit)
	}
	g := e.gate
	for i, v := range []*int64{&g.wm[A], &g.wm[B], &g.floor[A]} {
		*v = int64(binary.LittleEndian.Uint64(record[9+8*i:]))
	}
	rest, err := e.base.decode(record[33:])
	if err != nil {
		return nil, err
	}
	for _, side := range g.parts {
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
	}
	return rest, nil
}
