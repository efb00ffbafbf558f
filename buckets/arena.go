package buckets

import (
	"encoding/binary"
	"fmt"
)

// chunkSize is the unit in which arenas grow: a chunk is never moved or copied, so growth costs no pause and
// leaves no garbage, and emptied chunks go back to the ring's pool. With a limit on all arenas it is smaller: the last
// chunk of each bucket is half empty, and these halves must not be what fills the limit.
const (
	chunkSize    = 1 << 20
	minChunkSize = 1 << 10
)

func chunkFor(limit int64, slots int) int {
	if limit <= 0 {
		return chunkSize
	}
	return int(min(max(limit/int64(4*slots), minChunkSize), chunkSize))
}

// arena holds the rows of one open bucket: per row its hash and where its bytes lie. The bytes of a row are
// a u32 length and the entry, which is also how journal and SST hold them.
type arena struct {
	pool   *chunkPool
	chunks [][]byte // each of them append-only up to its capacity
	hashes []uint64
	refs   []uint64 // chunk index << 32 | offset of the length
}

// arenaMark is a place that truncate can go back to.
type arenaMark struct{ rows, chunks, tail int }

func (a *arena) rows() int { return len(a.hashes) }

func (a *arena) mark() arenaMark {
	m := arenaMark{rows: len(a.hashes), chunks: len(a.chunks)}
	if m.chunks > 0 {
		m.tail = len(a.chunks[m.chunks-1])
	}
	return m
}

// append copies the entry in and returns its row.
func (a *arena) append(hash uint64, e *Entry) uint32 {
	size := e.Size()
	chunk := a.room(size + 4)
	buf := a.chunks[chunk]
	a.refs = append(a.refs, uint64(chunk)<<32|uint64(len(buf)))
	a.hashes = append(a.hashes, hash)
	buf = binary.LittleEndian.AppendUint32(buf, uint32(size))
	a.chunks[chunk] = e.AppendTo(buf)
	return uint32(len(a.hashes) - 1)
}

// appendRaw is append for bytes that are an entry already (replay).
func (a *arena) appendRaw(hash uint64, entry []byte) uint32 {
	chunk := a.room(len(entry) + 4)
	buf := a.chunks[chunk]
	a.refs = append(a.refs, uint64(chunk)<<32|uint64(len(buf)))
	a.hashes = append(a.hashes, hash)
	buf = binary.LittleEndian.AppendUint32(buf, uint32(len(entry)))
	a.chunks[chunk] = append(buf, entry...)
	return uint32(len(a.hashes) - 1)
}

// size is what the rows hold in RAM, room to grow included.
func (a *arena) size() int64 {
	n := int64(cap(a.hashes)+cap(a.refs)) * 8
	for _, c := range a.chunks {
		n += int64(cap(c))
	}
	return n
}

// filled is what of it rows take.
func (a *arena) filled() int64 {
	n := int64(len(a.hashes)) * 16
	if last := len(a.chunks) - 1; last >= 0 {
		n += int64(last)*int64(a.pool.chunk) + int64(len(a.chunks[last]))
	}
	return n
}

// room returns the index of a chunk with n free bytes. What is larger than a chunk gets one of its own size.
func (a *arena) room(n int) int {
	if last := len(a.chunks) - 1; last >= 0 && cap(a.chunks[last])-len(a.chunks[last]) >= n {
		return last
	}
	a.chunks = append(a.chunks, a.pool.get(n))
	return len(a.chunks) - 1
}

// sized returns the row's bytes with the length in front; they are valid until release.
func (a *arena) sized(row uint32) []byte {
	ref := a.refs[row]
	b := a.chunks[ref>>32][uint32(ref):]
	return b[: 4+binary.LittleEndian.Uint32(b) : 4+binary.LittleEndian.Uint32(b)]
}

// touch reads a byte of each of a row's first two cache lines.
func (a *arena) touch(row uint32) byte {
	ref := a.refs[row]
	b := a.chunks[ref>>32][uint32(ref):]
	return b[0] ^ b[min(64, len(b)-1)]
}

// entry returns the row's entry; it is valid until release.
func (a *arena) entry(row uint32) []byte { return a.sized(row)[4:] }

// truncate goes back to a mark.
func (a *arena) truncate(m arenaMark) {
	a.hashes, a.refs = a.hashes[:m.rows], a.refs[:m.rows]
	for i := m.chunks; i < len(a.chunks); i++ {
		a.pool.put(a.chunks[i])
	}
	a.chunks = a.chunks[:m.chunks]
	if m.chunks > 0 {
		a.chunks[m.chunks-1] = a.chunks[m.chunks-1][:m.tail]
	}
}

// release gives the memory back to the pool; no row may be asked for afterwards.
func (a *arena) release() {
	a.pool.keep = max(len(a.chunks), a.pool.keep/2) // the next bucket of this task takes about as many
	a.truncate(arenaMark{})
	a.hashes, a.refs = nil, nil
}

// chunkPool keeps emptied chunks for the next bucket: a bucket's life frees and takes the same number.
type chunkPool struct {
	chunk int // bytes of a chunk
	free  [][]byte
	keep  int // chunks kept at most: those of the last bucket that was emptied
}

func (p *chunkPool) get(n int) []byte {
	if n > p.chunk {
		return make([]byte, 0, n)
	}
	if last := len(p.free) - 1; last >= 0 {
		c := p.free[last]
		p.free = p.free[:last]
		return c[:0]
	}
	return make([]byte, 0, p.chunk)
}

func (p *chunkPool) put(c []byte) {
	if cap(c) == p.chunk && len(p.free) < p.keep {
		p.free = append(p.free, c)
	}
}

func checkEntrySize(e *Entry) error {
	if n := e.Size(); n > maxEntrySize {
		return fmt.Errorf("entry of %d bytes (partition %d, offset %d) is over the limit of %d", n, e.Partition, e.Offset, maxEntrySize)
	}
	return nil
}
