package loadgen

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
)

// Form of a verifier's state: version, then little endian i64 seen, done, spurious, duplicated, reused; then
// three lists, each a u32 count and its elements: full pages (i64), pages (i64, i64 left, bits), wrong A (i64, bits).
const verifierState = 1

var errVerifierState = errors.New("loadgen: damaged state of a verifier")

// AppendState appends what the verifier knows; SetState of a verifier of the same workload takes it over.
func (v *Verifier) AppendState(dst []byte) []byte {
	dst = append(dst, verifierState)
	i64 := func(n int64) { dst = binary.LittleEndian.AppendUint64(dst, uint64(n)) }
	count := func(n int) { dst = binary.LittleEndian.AppendUint32(dst, uint32(n)) }
	words := func(bits *[pageWords]uint64) {
		for _, w := range bits {
			dst = binary.LittleEndian.AppendUint64(dst, w)
		}
	}
	for _, n := range []int64{v.seen, v.done, v.spurious, v.duplicated, v.reused} {
		i64(n)
	}
	count(len(v.full))
	for _, n := range slices.Sorted(maps.Keys(v.full)) {
		i64(n)
	}
	count(len(v.pages))
	for _, n := range slices.Sorted(maps.Keys(v.pages)) {
		i64(n)
		i64(v.pages[n].left)
		words(&v.pages[n].bits)
	}
	count(len(v.wrongA))
	for _, n := range slices.Sorted(maps.Keys(v.wrongA)) {
		i64(n)
		words(v.wrongA[n])
	}
	return dst
}

// SetState makes the verifier know what one of the same workload knew.
func (v *Verifier) SetState(state []byte) error {
	r := stateReader{rest: state}
	if version := r.take(1); version == nil || version[0] != verifierState {
		return errVerifierState
	}
	now := v.g.NewVerifier()
	for _, n := range []*int64{&now.seen, &now.done, &now.spurious, &now.duplicated, &now.reused} {
		*n = r.i64()
	}
	for range r.count(8) {
		now.full[r.i64()] = true
	}
	for range r.count(16 + 8*pageWords) {
		n, p := r.i64(), &page{left: r.i64()}
		r.words(&p.bits)
		now.pages[n] = p
	}
	for range r.count(8 + 8*pageWords) {
		n, bits := r.i64(), new([pageWords]uint64)
		r.words(bits)
		now.wrongA[n] = bits
	}
	if r.short || len(r.rest) > 0 {
		return errVerifierState
	}
	*v = *now
	return nil
}

// stateReader reads a state; short says that it ended too early.
type stateReader struct {
	rest  []byte
	short bool
}

func (r *stateReader) take(n int) []byte {
	if r.short || len(r.rest) < n {
		r.short = true
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *stateReader) i64() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.LittleEndian.Uint64(b))
	}
	return 0
}

// count of elements of a size: never more than there is room for.
func (r *stateReader) count(size int) int {
	b := r.take(4)
	if b == nil {
		return 0
	}
	n := int(binary.LittleEndian.Uint32(b))
	if n > len(r.rest)/size {
		r.short = true
		return 0
	}
	return n
}

func (r *stateReader) words(bits *[pageWords]uint64) {
	for i := range bits {
		bits[i] = uint64(r.i64())
	}
}
