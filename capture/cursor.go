package capture

import (
	"bytes"
	"fmt"
	"io"

	"joinbench/projection"
)

// batchBytes ends a read whose records have filled that much of the arena, so that a batch of long records
// stays small. One record is always read.
const batchBytes = 4 << 20

// Position is a place in an input: the byte at which the next line starts, 0 for the beginning. It counts
// in the content after decompression and means something only for the same content (Identity).
type Position int64

// Cursor reads the records of one partition in the order in which they lie in the file. It holds one window
// of the file (128 KiB; up to twice the longest line while that is larger). One goroutine at a time.
type Cursor struct {
	in        *Input
	partition int32
	runs      runs
	lines     lineReader
	env       envelope

	run     run      // at hand, empty before the first
	pos     int64    // where the next line is looked for
	line    int64    // its number
	base    Position // pos before the last read
	ends    []int64  // where each record of the last read ends
	err     error    // what the next read answers
	started bool
}

// NewCursor starts at the first record of the partition that begins at pos or after it; pos is 0 or a
// Position that a cursor of the same content gave out. A partition that has no lines is at its end at once.
// What is wrong with pos is told by the first Read.
func (in *Input) NewCursor(partition int32, pos Position) *Cursor {
	return &Cursor{
		in: in, partition: partition,
		runs:  runs{x: &in.index, p: in.index.parts[partition]},
		lines: in.reader(),
		pos:   int64(pos), base: pos,
	}
}

// Partition is the partition that the cursor follows.
func (c *Cursor) Partition() int32 { return c.partition }

// Read fills dst from its beginning and says how many records it read: more than zero and no error, or zero
// and io.EOF or what went wrong. Their bytes are appended to the arena and are valid until the caller
// reuses that; to reuse it, hand it in with length 0. It grows only while records are longer than before.
// Fewer than len(dst) records do not mean the end: a read also ends after 4 MiB of them.
func (c *Cursor) Read(dst []projection.Record, arena *[]byte) (int, error) {
	c.base, c.ends = c.Position(), c.ends[:0]
	mark := len(*arena)
	for n := range dst {
		if len(*arena)-mark >= batchBytes {
			break
		}
		if c.err == nil {
			c.err = c.read(&dst[n], arena)
		}
		if c.err != nil {
			break
		}
		c.ends = append(c.ends, c.pos)
	}
	if len(c.ends) == 0 && len(dst) > 0 {
		return 0, c.err
	}
	return len(c.ends), nil
}

// read reads one record.
func (c *Cursor) read(rec *projection.Record, arena *[]byte) error {
	if c.pos >= c.run.end {
		if err := c.advance(); err != nil {
			return err
		}
	}
	line, after, cut, err := c.lines.next(c.pos, c.run.end)
	if err != nil {
		return err
	}
	*arena = c.env.record(rec, c.in.format, line, cut, c.line, *arena)
	if rec.Partition != c.partition {
		return fmt.Errorf("%s: line %d: %w", c.in.what, c.line, errChanged)
	}
	c.pos = after
	c.line++
	return nil
}

// advance goes to the next run, at the start to the one that holds pos or follows it.
func (c *Cursor) advance() error {
	var ok bool
	var err error
	if c.started {
		c.run, ok, err = c.runs.step()
	} else {
		c.started = true
		c.run, ok, err = c.runs.seek(c.pos)
	}
	if err != nil {
		return err
	}
	if !ok {
		if c.pos < 0 || c.pos > c.in.id.Size {
			return c.badPosition()
		}
		c.run.end = c.pos // stay at the end
		return io.EOF
	}
	if c.pos > c.run.start {
		return c.enter()
	}
	c.pos, c.line = c.run.start, c.run.first
	return nil
}

// enter starts inside the run at hand: the lines before pos are counted.
func (c *Cursor) enter() error {
	buf := make([]byte, min(c.pos-c.run.start, windowBytes))
	c.line = c.run.first
	for at := c.run.start; at < c.pos; at += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), c.pos-at)]
		if _, err := c.in.f.ReadAt(buf, at); err != nil {
			return fmt.Errorf("%s: reading at byte %d: %w", c.in.what, at, err)
		}
		c.line += int64(bytes.Count(buf, []byte{'\n'}))
	}
	if buf[len(buf)-1] != '\n' {
		return c.badPosition()
	}
	return nil
}

func (c *Cursor) badPosition() error {
	return fmt.Errorf("%s: no line starts at byte %d, where reading was to go on; the file is not the one of the unfinished run: "+
		"give that one, or remove the state directory to start anew", c.in.what, c.pos)
}

// Position is the place behind the last record read; a new cursor from there reads what this one has not.
func (c *Cursor) Position() Position {
	if n := len(c.ends); n > 0 {
		return Position(c.ends[n-1])
	}
	return c.base
}

// PositionAfter is the place behind record i of the last read, 0 <= i < n. PositionAfter(-1) is the place
// before the first of them.
func (c *Cursor) PositionAfter(i int) Position {
	if i < 0 {
		return c.base
	}
	return Position(c.ends[i])
}
