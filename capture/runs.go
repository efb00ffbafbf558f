package capture

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"sort"
)

const (
	// runBytes is the longest run. A cursor that resumes inside a run counts the lines before its place,
	// so this bounds what that costs (well under a millisecond); a run is about 6 bytes of index.
	runBytes = 1 << 20
	// pageBytes is the size of an index page: what a cursor holds of the index when pages are in a file.
	pageBytes = 16 << 10
	// indexBytes is how much of the index stays in memory by default: some 5 million runs.
	indexBytes = 32 << 20
)

// run is a stretch of the file that holds whole lines of one partition.
type run struct {
	start, end int64 // bytes
	first      int64 // 1-based number of its first line
	lines      int64
}

// runIndex says where the lines of each partition lie. It is written by the first pass and read-only from
// then on, so cursors share it.
//
// Obvious would be a slice of runs. But in a file whose partitions alternate line by line, a run of 32 bytes
// for each line of 200 makes the index a sixth of the file. So runs are kept as differences (four varints,
// about 6 bytes), in pages that can be searched by their first run, and pages beyond the limit go to a file.
type runIndex struct {
	parts map[int32]*partRuns
	page  int // bytes after which a page is closed
	limit int // bytes of closed pages that stay in memory
	used  int
	dir   string   // where the file is made
	file  *os.File // pages beyond limit, nil while there are none
	size  int64    // of file
}

// partRuns are the runs of one partition, in file order.
type partRuns struct {
	partition int32
	lines     int64
	open      run    // being extended by the first pass
	pages     []page // closed
	tail      page   // being filled
	tailAt    run    // last run of tail, from which the next one is counted
}

// page is a piece of the index: runs as varints (bytes since the end of the run before, its own bytes,
// lines since the run before, its own lines). The first run counts from start and line of the page.
type page struct {
	start int64
	line  int64
	data  []byte // nil when it is in the file
	at    int64
	size  int
}

func (x *runIndex) part(partition int32) *partRuns {
	p := x.parts[partition]
	if p == nil {
		p = &partRuns{partition: partition}
		x.parts[partition] = p
	}
	return p
}

// extend adds a line to the partition: to its open run if the line follows that, else to a new one.
func (x *runIndex) extend(p *partRuns, start, end, number int64, most int64) error {
	p.lines++
	if p.open.lines > 0 && p.open.end == start && end-p.open.start <= most {
		p.open.end = end
		p.open.lines++
		return nil
	}
	if err := x.close(p); err != nil {
		return err
	}
	p.open = run{start: start, end: end, first: number, lines: 1}
	return nil
}

// close writes the open run down.
func (x *runIndex) close(p *partRuns) error {
	r := p.open
	if r.lines == 0 {
		return nil
	}
	p.open = run{}
	if len(p.tail.data) == 0 {
		p.tail = page{start: r.start, line: r.first, data: p.tail.data}
		p.tailAt = run{end: r.start, first: r.first}
	}
	last := p.tailAt
	d := p.tail.data
	d = binary.AppendUvarint(d, uint64(r.start-last.end))
	d = binary.AppendUvarint(d, uint64(r.end-r.start))
	d = binary.AppendUvarint(d, uint64(r.first-last.first-last.lines))
	d = binary.AppendUvarint(d, uint64(r.lines))
	p.tail.data, p.tailAt = d, r
	if len(d) < x.page {
		return nil
	}
	return x.closePage(p)
}

// closePage puts the tail among the pages, in memory or in the file.
func (x *runIndex) closePage(p *partRuns) error {
	pg := p.tail
	pg.size = len(pg.data)
	if x.used+pg.size <= x.limit {
		pg.data = slices.Clone(pg.data)
		x.used += pg.size
	} else {
		if err := x.spill(pg.data); err != nil {
			return err
		}
		pg.data, pg.at = nil, x.size-int64(pg.size)
	}
	p.pages = append(p.pages, pg)
	p.tail = page{data: p.tail.data[:0]} // its memory is for the next page
	return nil
}

// spill appends to the file. It has no name, so nothing is left behind however the process ends.
func (x *runIndex) spill(data []byte) (err error) {
	if x.file == nil {
		if x.file, err = unnamed(x.dir, "joinbench-index-*"); err != nil {
			return fmt.Errorf("index of an input file: %w", err)
		}
	}
	if _, err := x.file.WriteAt(data, x.size); err != nil {
		return fmt.Errorf("index of an input file in %s: %w; %s", x.dir, err, spaceHint)
	}
	x.size += int64(len(data))
	return nil
}

// finish ends the first pass.
func (x *runIndex) finish() error {
	for _, p := range x.parts {
		if err := x.close(p); err != nil {
			return err
		}
		if len(p.tail.data) > 0 {
			if err := x.closePage(p); err != nil {
				return err
			}
		}
		p.tail = page{}
	}
	return nil
}

// runs walks over the runs of one partition. It belongs to one goroutine.
type runs struct {
	x    *runIndex
	p    *partRuns // nil: a partition without lines
	next int       // page to be read after data
	data []byte    // rest of the page at hand
	buf  []byte    // memory for pages out of the file
	last run
}

// seek makes the next run the first one that ends beyond pos.
func (w *runs) seek(pos int64) (run, bool, error) {
	if w.p == nil {
		return run{}, false, nil
	}
	pages := w.p.pages
	w.next = max(0, sort.Search(len(pages), func(i int) bool { return pages[i].start > pos })-1)
	w.data = nil
	for {
		r, ok, err := w.step()
		if err != nil || !ok || r.end > pos {
			return r, ok, err
		}
	}
}

// step gives the next run, false after the last.
func (w *runs) step() (run, bool, error) {
	if w.p == nil {
		return run{}, false, nil
	}
	if len(w.data) == 0 {
		if w.next == len(w.p.pages) {
			return run{}, false, nil
		}
		if err := w.load(&w.p.pages[w.next]); err != nil {
			return run{}, false, err
		}
		w.next++
	}
	start := w.last.end + w.varint()
	end := start + w.varint()
	first := w.last.first + w.last.lines + w.varint()
	w.last = run{start: start, end: end, first: first, lines: w.varint()}
	return w.last, true, nil
}

func (w *runs) load(pg *page) error {
	w.last = run{end: pg.start, first: pg.line}
	if pg.data != nil {
		w.data = pg.data
		return nil
	}
	w.buf = slices.Grow(w.buf[:0], pg.size)[:pg.size]
	if _, err := w.x.file.ReadAt(w.buf, pg.at); err != nil {
		return fmt.Errorf("index of an input file in %s: %w", w.x.dir, err)
	}
	w.data = w.buf
	return nil
}

// varint takes the next number of the page. Pages are ours alone, so they are whole.
func (w *runs) varint() int64 {
	v, n := binary.Uvarint(w.data)
	w.data = w.data[n:]
	return int64(v)
}
