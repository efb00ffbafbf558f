package core

import (
	"math/bits"
	"slices"
	"time"

	"github.com/zeebo/xxh3"
)

// router divides a batch among the tasks by hash. With one task there is nothing to divide, and the task hashes.
type router struct {
	hash  func(key []byte) uint64 // nil: xxh3
	parts []taskPart
}

// taskPart is one task's share of a batch. pos[i] is the place of its i-th B among all B of the batch, which puts
// the results in order again.
type taskPart struct {
	rows [2][]slice
	pos  []uint32
	took [2]time.Duration // by side, what dividing took of the task's goroutine
}

// taskOf takes the top bits of the hash: filters and tables use the low ones.
func taskOf(hash uint64, tasks int) int {
	hi, _ := bits.Mul64(hash, uint64(tasks))
	return int(hi)
}

// split divides a batch with each: the tasks' goroutines do it, first each hashes its share of the rows, then each picks its
// own. What it takes is theirs too (TaskStats).
func (r *router) split(b *batch, each func(func(i int))) {
	n := len(r.parts)
	if n == 1 {
		r.parts[0].rows = b.rows
		return
	}
	for _, list := range b.rows {
		for _, s := range list { // here, since a chunk may be in several slices
			if c := s.chunk; len(c.Hash) < c.N {
				c.Hash = make([]uint64, c.N)
			}
		}
	}
	each(func(i int) { r.parts[i].hash(b, i, n, r.hash) })
	each(func(i int) { r.parts[i].pick(b, i, n) })
}

// hash fills Chunk.Hash of the i-th of n shares of the batch's rows.
func (p *taskPart) hash(b *batch, i, n int, hash func(key []byte) uint64) {
	for side := range b.rows {
		start := time.Now()
		for k, s := range b.rows[side] {
			c := s.chunk
			if k%n != i {
				continue
			}
			if hash == nil {
				for _, row := range s.rows {
					c.Hash[row] = xxh3.Hash(c.Key(row))
				}
				continue
			}
			for _, row := range s.rows {
				c.Hash[row] = hash(c.Key(row))
			}
		}
		p.took[side] = time.Since(start)
	}
}

// pick finds the rows of the i-th of n tasks. No branch depends on whose a row is: with two tasks each second would be
// guessed wrong.
func (p *taskPart) pick(b *batch, i, n int) {
	p.rows[A], p.rows[B], p.pos = p.rows[A][:0], p.rows[B][:0], p.pos[:0]
	pos := uint32(0)
	for side := range b.rows {
		start := time.Now()
		for _, s := range b.rows[side] {
			own := rowsFor(&p.rows[side], s.chunk)
			have := len(own)
			own = slices.Grow(own, len(s.rows)+1)[:have+len(s.rows)+1]
			k := have
			hashes := s.chunk.Hash
			if Side(side) == A {
				for _, row := range s.rows {
					own[k] = row
					k += equal(taskOf(hashes[row], n), i)
				}
			} else {
				at := len(p.pos)
				p.pos = slices.Grow(p.pos, len(s.rows)+1)[:at+len(s.rows)+1]
				list := p.pos[at:]
				for _, row := range s.rows {
					own[k], list[k-have] = row, pos
					k += equal(taskOf(hashes[row], n), i)
					pos++
				}
				p.pos = p.pos[:at+k-have]
			}
			p.rows[side][len(p.rows[side])-1].rows = own[:k]
		}
		p.took[side] += time.Since(start)
	}
}

// equal is 1 for equal numbers that are not negative, else 0.
func equal(a, b int) int { return int(uint64((a^b)-1) >> 63) }

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
		l[n].chunk, l[n].rows = c, l[n].rows[:0]
	default:
		l = append(l, slice{chunk: c})
	}
	*list = l
	return l[n].rows
}
