package kafka

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/zeebo/xxh3"
)

// A batch in a changelog partition is a row of frames, each the value of one record (format version 1, little endian):
//
//	u8 version (1), u8 flags, u8 space, u8 0, u32 task,
//	u64 life, u64 batch, u32 index of the frame in its batch, u32 number of tasks,
//	the piece of the change's journal, or of the commit record,
//	u64 checksum: xxh3 of all before it, seeded with the checksum of the frame before (0 for the first)
//
// A change is one or more frames, the last of them with lastPiece. The commit record comes behind the changes, in frames with
// commitRecord; lastPiece ends the batch. So a batch is whole if its frames are there from index 0 to that end and each checksum
// follows from the one before. Life is a number of the producer's own: frames of two lives are never put together.
const (
	frameVersion  = 1
	frameHeader   = 32
	frameChecksum = 8

	lastPiece    = 1 // flags
	commitRecord = 2
)

// Change is what one batch did to one ring of one task. What Journal says is not looked at.
type Change struct {
	Task    int
	Space   byte
	Journal []byte
}

// Batch is one batch of a changelog.
type Batch struct {
	N       uint64
	Tasks   int   // how many there are, be they in Changes or not
	Before  int64 // the offset of its first frame
	Changes []Change
	Record  []byte // the commit record
}

// ErrFrame is wrapped by every error about a record that is no frame.
var ErrFrame = errors.New("damaged changelog")

// frame is one record's value, taken apart. Piece is a part of it.
type frame struct {
	flags, space byte
	task, index  uint32
	tasks        uint32
	life, batch  uint64
	piece        []byte
	sum          uint64
}

// frames cuts batches into frames of at most size bytes.
type frames struct {
	size  int
	life  uint64
	batch uint64
	tasks uint32
	index uint32
	sum   uint64
	emit  func(value []byte)
}

// writeBatch hands over the frames of a batch, each in memory of its own.
func writeBatch(b *Batch, life uint64, size int, emit func(value []byte)) {
	w := frames{size: size, life: life, batch: b.N, tasks: uint32(b.Tasks), emit: emit}
	for _, c := range b.Changes {
		w.pieces(frame{task: uint32(c.Task), space: c.Space}, c.Journal)
	}
	w.pieces(frame{flags: commitRecord}, b.Record)
}

func (w *frames) pieces(f frame, data []byte) {
	for {
		n := min(len(data), w.size-frameHeader-frameChecksum)
		f.piece, data = data[:n], data[n:]
		if len(data) == 0 {
			f.flags |= lastPiece
			w.write(&f)
			return
		}
		w.write(&f)
	}
}

func (w *frames) write(f *frame) {
	dst := make([]byte, 0, frameHeader+len(f.piece)+frameChecksum)
	dst = append(dst, frameVersion, f.flags, f.space, 0)
	dst = binary.LittleEndian.AppendUint32(dst, f.task)
	dst = binary.LittleEndian.AppendUint64(dst, w.life)
	dst = binary.LittleEndian.AppendUint64(dst, w.batch)
	dst = binary.LittleEndian.AppendUint32(dst, w.index)
	dst = binary.LittleEndian.AppendUint32(dst, w.tasks)
	dst = append(dst, f.piece...)
	w.sum = xxh3.HashSeed(dst, w.sum)
	w.index++
	w.emit(binary.LittleEndian.AppendUint64(dst, w.sum))
}

// parseFrame takes a record's value apart. The checksum is not looked at, for it follows from the frame before.
func parseFrame(value []byte) (frame, error) {
	if len(value) < frameHeader+frameChecksum {
		return frame{}, fmt.Errorf("%w: a record of %d bytes is no frame", ErrFrame, len(value))
	}
	if value[0] != frameVersion {
		return frame{}, fmt.Errorf("%w: format version %d, this program reads %d", ErrFrame, value[0], frameVersion)
	}
	le := binary.LittleEndian
	f := frame{flags: value[1], space: value[2], task: le.Uint32(value[4:]), life: le.Uint64(value[8:]),
		batch: le.Uint64(value[16:]), index: le.Uint32(value[24:]), tasks: le.Uint32(value[28:])}
	if f.flags&^(lastPiece|commitRecord) != 0 || value[3] != 0 || f.tasks > maxTasks || f.task > maxTasks {
		return frame{}, fmt.Errorf("%w: a frame with flags %#x, task %d", ErrFrame, f.flags, f.task)
	}
	end := len(value) - frameChecksum
	f.piece, f.sum = value[frameHeader:end], le.Uint64(value[end:])
	return f, nil
}

const maxTasks = 1 << 16

// assembler puts batches together from frames in the order of the partition. Frames of several lives may lie between each other
// (without transactions, a request of a process that is gone may arrive late): each life's are put together by themselves. A batch
// whose frames do not go on was never finished, and is none; what is damaged is an error.
type assembler struct {
	open map[uint64]*assembly // by life
}

// assembly is a batch that is not whole yet.
type assembly struct {
	Batch
	next   uint32 // index of the next frame
	sum    uint64
	piece  bool // the last change goes on
	commit bool // the commit record has begun
}

// add takes the next record. If it completes a batch, that is returned; it is the caller's. The value is copied.
func (a *assembler) add(offset int64, value []byte) (*Batch, error) {
	f, err := parseFrame(value)
	if err != nil {
		return nil, fmt.Errorf("offset %d: %w", offset, err)
	}
	if a.open == nil {
		a.open = map[uint64]*assembly{}
	}
	b := a.open[f.life]
	if f.index == 0 {
		b = &assembly{Batch: Batch{N: f.batch, Tasks: int(f.tasks), Before: offset}}
		a.open[f.life] = b
	} else if b == nil || f.index != b.next || f.batch != b.N {
		delete(a.open, f.life) // the rest of a batch whose beginning was cut off
		return nil, nil
	}
	sum := xxh3.HashSeed(value[:len(value)-frameChecksum], b.sum)
	if sum != f.sum {
		return nil, fmt.Errorf("offset %d: %w: the checksum of batch %d is wrong", offset, ErrFrame, f.batch)
	}
	b.sum, b.next = f.sum, f.index+1
	whole, err := b.take(&f)
	if err != nil {
		return nil, fmt.Errorf("offset %d: %w: batch %d %w", offset, ErrFrame, f.batch, err)
	}
	if !whole {
		return nil, nil
	}
	for life, other := range a.open { // those of this number, or an earlier one, come too late
		if other.N <= b.N {
			delete(a.open, life)
		}
	}
	return &b.Batch, nil
}

// take adds a frame that belongs here, and says whether the batch is whole.
func (b *assembly) take(f *frame) (whole bool, err error) {
	last := f.flags&lastPiece != 0
	if f.flags&commitRecord != 0 {
		if b.piece && !b.commit {
			return false, errors.New("has half a change")
		}
		b.commit, b.piece = true, true
		b.Record = append(b.Record, f.piece...)
		return last, nil
	}
	if b.commit {
		return false, errors.New("has a change behind its commit record")
	}
	if !b.piece {
		b.Changes = append(b.Changes, Change{Task: int(f.task), Space: f.space})
	}
	c := &b.Changes[len(b.Changes)-1]
	if c.Task != int(f.task) || c.Space != f.space {
		return false, errors.New("mixes two changes")
	}
	c.Journal = append(c.Journal, f.piece...)
	b.piece = !last
	return false, nil
}
