package core

import "math/bits"

// router divides a batch among the tasks by hash. With one task there is nothing to divide, and the task hashes.
type router struct {
	hash  func(key []byte) uint64
	parts []taskPart
}

// taskPart is one task's share of a batch. pos[i] is the place of its i-th B among all B of the batch, which puts
// the results in order again.
type taskPart struct {
	rows [2][]slice
	pos  []uint32
}

// taskOf takes the top bits of the hash: filters and tables use the low ones.
func taskOf(hash uint64, tasks int) int {
	hi, _ := bits.Mul64(hash, uint64(tasks))
	return int(hi)
}

func (r *router) split(b *batch) {
	if len(r.parts) == 1 {
		r.parts[0].rows = b.rows
		return
	}
	for i := range r.parts {
		p := &r.parts[i]
		p.rows[A], p.rows[B], p.pos = p.rows[A][:0], p.rows[B][:0], p.pos[:0]
	}
	pos := uint32(0)
	for _, side := range []Side{A, B} {
		for _, s := range b.rows[side] {
			c := s.chunk
			if len(c.Hash) < c.N {
				c.Hash = make([]uint64, c.N)
			}
			for _, row := range s.rows {
				h := r.hash(c.Key(row))
				c.Hash[row] = h
				p := &r.parts[taskOf(h, len(r.parts))]
				p.add(side, c, row)
				if side == B {
					p.pos = append(p.pos, pos)
					pos++
				}
			}
		}
	}
}

func (p *taskPart) add(side Side, c *Chunk, row uint32) {
	p.rows[side] = appendRow(p.rows[side], c, row)
}

// appendRow adds a row to the slice of its chunk, taking over the rows arrays of earlier batches.
func appendRow(list []slice, c *Chunk, row uint32) []slice {
	n := len(list)
	switch {
	case n > 0 && list[n-1].chunk == c:
		list[n-1].rows = append(list[n-1].rows, row)
	case n < cap(list):
		list = list[:n+1]
		list[n].chunk, list[n].rows = c, append(list[n].rows[:0], row)
	default:
		list = append(list, slice{c, []uint32{row}})
	}
	return list
}
