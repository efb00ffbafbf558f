package core

import (
	"math/bits"
	"slices"
	"time"

	"github.com/zeebo/xxh3"
)

// router divides a batch among the tasks by hash. With one task there is nothing to divide, and the task hashes.
type router struct {
	hash   func(key []byte) uint64 // nil: xxh3
	parts  []taskPart
	shares []share
	batch  *batch
	first  []uint32 // position of the first B of each of the batch's slices
}

// taskPart is one task's part of a batch: rows with their hashes.
type taskPart struct {
	rows    [2][]slice
	from    []uint32         // for each slice of B, which of the batch's slices it is of
	changes []Change         // what the batch did to the task's state, or is to do (Engine.Apply)
	took    [2]time.Duration // by side, what dividing took of the task's goroutine
}

// share is the slices of a batch that one task hashes: the i-th of n each n-th, from i on. It has them divided by whose the rows
// are, so that each row is touched once, and what a task then reads lies side by side.
type share struct {
	by []divided // by task
}

// divided is one task's rows of a share, slice after slice.
type divided struct {
	rows   []uint32 // n of them, and room for a slice's
	hashes []uint64
	n      int
	ends   [2][]int // by side, for each slice of the share, where its rows end
}

// taskOf takes the top bits of the hash: filters and tables use the low ones.
func taskOf(hash uint64, tasks int) int {
	hi, _ := bits.Mul64(hash, uint64(tasks))
	return int(hi)
}

// split divides a batch with each: the tasks' goroutines do it, each a share of the rows. What it takes is theirs
// too (TaskStats).
func (r *router) split(b *batch, each func(func(i int))) {
	n := len(r.parts)
	if n == 1 {
		r.parts[0].rows = b.rows
		return
	}
	if r.shares == nil {
		r.shares = make([]share, n)
		for i := range r.shares {
			r.shares[i].by = make([]divided, n)
		}
	}
	r.batch, r.first = b, r.first[:0]
	pos := uint32(0)
	for _, s := range b.rows[B] {
		r.first = append(r.first, pos)
		pos += uint32(len(s.rows))
	}
	each(r.divide)
	for i := range r.parts {
		r.gather(i)
	}
}

// divide hashes the i-th share.
func (r *router) divide(i int) {
	by, n := r.shares[i].by, len(r.parts)
	for t := range by {
		d := &by[t]
		d.n, d.ends[A], d.ends[B] = 0, d.ends[A][:0], d.ends[B][:0]
	}
	for side := range r.batch.rows {
		start := time.Now()
		for k := i; k < len(r.batch.rows[side]); k += n {
			r.divideSlice(by, r.batch.rows[side][k])
			for t := range by {
				by[t].ends[side] = append(by[t].ends[side], by[t].n)
			}
		}
		r.parts[i].took[side] = time.Since(start)
	}
}

// divideSlice appends the rows of a slice to those of their tasks. No branch depends on whose a row is: with two tasks each second
// would be guessed wrong.
func (r *router) divideSlice(by []divided, s slice) {
	for t := range by {
		d := &by[t]
		if need := d.n + len(s.rows); need > len(d.rows) {
			more := 2*need - len(d.rows)
			d.rows, d.hashes = append(d.rows, make([]uint32, more)...), append(d.hashes, make([]uint64, more)...)
		}
	}
	c := s.chunk
	for _, row := range s.rows {
		var h uint64
		if r.hash == nil {
			h = xxh3.Hash(c.Key(row))
		} else {
			h = r.hash(c.Key(row))
		}
		d := &by[taskOf(h, len(by))]
		d.rows[d.n], d.hashes[d.n] = row, h
		d.n++
	}
}

// gather lists the rows of one task, in the order of the batch.
func (r *router) gather(task int) {
	p, n := &r.parts[task], len(r.parts)
	p.from = p.from[:0]
	for side := range p.rows {
		p.rows[side] = p.rows[side][:0]
		for k, s := range r.batch.rows[side] {
			d := &r.shares[k%n].by[task]
			from, to := d.begin(Side(side), k/n), d.ends[side][k/n]
			p.rows[side] = append(p.rows[side], slice{chunk: s.chunk, rows: d.rows[from:to], hashes: d.hashes[from:to]})
			if Side(side) == B {
				p.from = append(p.from, uint32(k))
			}
		}
	}
}

// begin is where the rows of a slice of a side begin.
func (d *divided) begin(side Side, k int) int {
	switch {
	case k > 0:
		return d.ends[side][k-1]
	case side == B && len(d.ends[A]) > 0:
		return d.ends[A][len(d.ends[A])-1]
	default:
		return 0
	}
}

// position is the place of a B among all B of the batch, by its place among those of a task: it puts the results in order
// again. Few B pair, so it is looked for.
func (r *router) position(task int, pos uint32) uint32 {
	p := &r.parts[task]
	for i, s := range p.rows[B] {
		if int(pos) < len(s.rows) {
			k := p.from[i]
			all := r.batch.rows[B][k].rows // ascending, as rows of a chunk are
			at, _ := slices.BinarySearch(all, s.rows[pos])
			return r.first[k] + uint32(at)
		}
		pos -= uint32(len(s.rows))
	}
	panic("core: a position beyond the batch")
}

// appendRow adds a row to the slice of its chunk.
func appendRow(list []slice, c *Chunk, row uint32) []slice {
	rows := rowsFor(&list, c)
	list[len(list)-1].rows = append(rows, row)
	return list
}

// rowsFor makes sure that the list ends with the slice of a chunk, and returns its rows; it takes over the rows arrays of
// earlier batches.
func rowsFor(list *[]slice, c *Chunk) []uint32 {
	l := *list
	n := len(l)
	switch {
	case n > 0 && l[n-1].chunk == c:
		return l[n-1].rows
	case n < cap(l):
		l = l[:n+1]
		l[n].chunk, l[n].rows, l[n].hashes = c, l[n].rows[:0], nil
	default:
		l = append(l, slice{chunk: c})
	}
	*list = l
	return l[n].rows
}
