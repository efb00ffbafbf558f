package capture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/zeebo/xxh3"
)

const (
	// windowBytes is how much of the file one reader holds. Beyond 64 KiB a pread costs its memory copy
	// and nothing else; twice that leaves room for lines of some KiB.
	windowBytes = 128 << 10
	// firstStep is the least that is read after a jump: a page, since less costs the same.
	firstStep = 4 << 10
	// readThrough is the gap between two places below which reading on counts as sequential, so that the
	// next read is twice as long: copying 64 KiB costs as much as a few system calls.
	readThrough = 64 << 10
	// keepBytes is the buffer that is kept after a long line; a longer one is given back when no more than
	// a quarter of this is needed.
	keepBytes = 1 << 20
	// maxLineBytes is the longest line that is read as a record.
	maxLineBytes = 64 << 20
	// cutBytes is how much of a longer line is handed out to be looked at.
	cutBytes = 64 << 10
)

// errChanged says that the content is no longer what the first pass saw.
var errChanged = errors.New("the file changed while it was read; leave input files alone during a run and start again")

// lineReader gives the lines of a file at given places through one moving window. It belongs to one
// goroutine; lines are valid until the next call.
type lineReader struct {
	f       io.ReaderAt
	path    string // for errors
	size    int64  // nothing is read beyond
	window  int    // bytes read at once when reading on
	maxLine int    // longer lines are cut

	start int64  // place of win in the file
	win   []byte // what is loaded
	buf   []byte // memory of win, from its first byte
	step  int    // bytes of the last read after a jump, doubled while places follow one another
	long  []byte // beginning of a cut line

	hash *xxh3.Hasher // if set, takes all bytes loaded; then reading must be sequential from 0
}

// next gives the line that starts at pos and the place after it. It ends at \n or at limit, which must be
// the end of a line; neither \n nor \r\n is part of it. cut says that the line is longer than maxLine and
// that only its beginning is handed out.
func (r *lineReader) next(pos, limit int64) (line []byte, after int64, cut bool, err error) {
	for scanned := 0; ; {
		have := r.loaded(pos, limit)
		if i := bytes.IndexByte(have[scanned:], '\n'); i >= 0 {
			n := scanned + i
			line, cut = r.trim(have[:n])
			return line, pos + int64(n) + 1, cut, nil
		}
		if scanned = len(have); int64(scanned) == limit-pos {
			line, cut = r.trim(have)
			return line, limit, cut, nil
		}
		if scanned > r.maxLine {
			return r.cutLine(have, pos, limit)
		}
		if err := r.load(pos, limit); err != nil {
			return nil, 0, false, err
		}
	}
}

// loaded is what the window holds from pos on, up to limit.
func (r *lineReader) loaded(pos, limit int64) []byte {
	if pos < r.start || pos >= r.start+int64(len(r.win)) {
		return nil
	}
	b := r.win[pos-r.start:]
	return b[:min(int64(len(b)), limit-pos)]
}

// trim takes the \r of a line's end off, and cuts a line that is too long.
func (r *lineReader) trim(line []byte) ([]byte, bool) {
	if len(line) > r.maxLine {
		return line[:min(r.maxLine, cutBytes)], true
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line, false
}

// cutLine keeps the beginning of a line that is too long and looks for its end without holding the rest.
func (r *lineReader) cutLine(have []byte, pos, limit int64) ([]byte, int64, bool, error) {
	beginning, _ := r.trim(have)
	r.long = append(r.long[:0], beginning...)
	pos += int64(len(have))
	for pos < limit {
		if err := r.load(pos, limit); err != nil {
			return nil, 0, false, err
		}
		have = r.loaded(pos, limit)
		if i := bytes.IndexByte(have, '\n'); i >= 0 {
			return r.long, pos + int64(i) + 1, true, nil
		}
		pos += int64(len(have))
	}
	return r.long, limit, true, nil
}

// load moves the window to pos: what it already holds from there on is kept, and more is read behind it.
// After a jump it reads what the run at hand has, at least a step; where the next places follow closely,
// each read is longer, so that short runs are read together with the gaps between them.
func (r *lineReader) load(pos, limit int64) error {
	end := r.start + int64(len(r.win))
	kept := 0
	if pos >= r.start && pos < end {
		kept = int(end - pos)
	}
	if pos >= r.start && pos <= end+readThrough {
		r.step = min(max(2*r.step, firstStep), r.window)
	} else {
		r.step = min(firstStep, r.window)
	}
	n := int(min(int64(r.window), limit-pos))
	n = min(max(n, r.step, kept), r.maxLine+r.window-kept) // a line longer than the window doubles it
	at := pos + int64(kept)
	n = int(min(int64(n), r.size-at))
	if n <= 0 { // limit is never beyond size, so there is always more to read
		return fmt.Errorf("%s: byte %d: %w", r.path, at, errChanged)
	}
	r.room(pos, kept, n)
	if m, err := r.f.ReadAt(r.buf[kept:kept+n], at); m < n {
		r.win = nil
		if err == nil || errors.Is(err, io.EOF) {
			err = errChanged
		}
		return fmt.Errorf("%s: reading at byte %d: %w", r.path, at, err)
	}
	if r.hash != nil {
		_, _ = r.hash.Write(r.buf[kept : kept+n]) // never fails
	}
	r.start, r.win = pos, r.buf[:kept+n]
	return nil
}

// room makes place for kept+n bytes and moves what is kept to the front.
func (r *lineReader) room(pos int64, kept, n int) {
	tail := r.win[len(r.win)-kept:]
	if need := kept + n; cap(r.buf) < need || cap(r.buf) > keepBytes && need <= keepBytes/4 {
		// A little more than asked: the part of a line that is kept varies from read to read.
		r.buf = slices.Grow([]byte(nil), need+firstStep)
	}
	r.buf = r.buf[:cap(r.buf)]
	copy(r.buf, tail)
}
