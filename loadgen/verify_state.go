package loadgen

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
)

// Form of a verifier's state, little endian: version; i64 spurious and duplicated of each kind of lines, and reused; the
// ledgers, each i64 seen, below, done, then two lists, a u32 count and its elements: full pages (i64 number, i64 lines), pages
// (i64 number, left, want; bits); the strays, each a list of pages (i64 number; bytes); the list of wrong A (i64, bits).
const verifierState = 2

var errVerifierState = errors.New("loadgen: damaged state of a verifier")

func (v *Verifier) ledgers() []*ledger {
	return []*ledger{&v.pairs, &v.nullsA, &v.nullsB, &v.groups}
}

func (v *Verifier) strays() []*strays {
	return []*strays{&v.openNullsA, &v.openNullsB, &v.openGroups}
}

func (v *Verifier) totals() []*int64 {
	list := []*int64{&v.reused}
	for kind := range lineKinds {
		list = append(list, &v.spurious[kind], &v.duplicated[kind])
	}
	return list
}

// AppendState appends what the verifier knows; SetState of a verifier of the same workload and rules takes it over.
func (v *Verifier) AppendState(dst []byte) []byte {
	w := stateWriter{append(dst, verifierState)}
	for _, n := range v.totals() {
		w.i64(*n)
	}
	for _, l := range v.ledgers() {
		w.ledger(l)
	}
	for _, s := range v.strays() {
		w.count(len(s.pages))
		for _, n := range slices.Sorted(maps.Keys(s.pages)) {
			w.i64(n)
			w.dst = append(w.dst, s.pages[n][:]...)
		}
	}
	w.count(len(v.wrongA))
	for _, n := range slices.Sorted(maps.Keys(v.wrongA)) {
		w.i64(n)
		w.set(v.wrongA[n])
	}
	return w.dst
}

type stateWriter struct{ dst []byte }

func (w *stateWriter) i64(n int64) { w.dst = binary.LittleEndian.AppendUint64(w.dst, uint64(n)) }
func (w *stateWriter) count(n int) { w.dst = binary.LittleEndian.AppendUint32(w.dst, uint32(n)) }

func (w *stateWriter) set(bits *pageSet) {
	for _, x := range bits {
		w.dst = binary.LittleEndian.AppendUint64(w.dst, x)
	}
}

func (w *stateWriter) ledger(l *ledger) {
	for _, n := range []int64{l.seen, l.below, l.done} {
		w.i64(n)
	}
	w.count(len(l.full))
	for _, n := range slices.Sorted(maps.Keys(l.full)) {
		w.i64(n)
		w.i64(l.full[n])
	}
	w.count(len(l.pages))
	for _, n := range slices.Sorted(maps.Keys(l.pages)) {
		p := l.pages[n]
		w.i64(n)
		w.i64(p.left)
		w.i64(p.want)
		w.set(&p.bits)
	}
}

// SetState makes the verifier know what one of the same workload and rules knew.
func (v *Verifier) SetState(state []byte) error {
	r := stateReader{rest: state}
	if version := r.take(1); version == nil || version[0] != verifierState {
		return errVerifierState
	}
	now := v.t.NewVerifier()
	for _, n := range now.totals() {
		*n = r.i64()
	}
	for _, l := range now.ledgers() {
		r.ledger(l)
	}
	for _, s := range now.strays() {
		r.strays(s)
	}
	for range r.count(8 + 8*pageWords) {
		n, bits := r.i64(), new(pageSet)
		r.set(bits)
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

func (r *stateReader) set(bits *pageSet) {
	for i := range bits {
		bits[i] = uint64(r.i64())
	}
}

func (r *stateReader) ledger(l *ledger) {
	for _, n := range []*int64{&l.seen, &l.below, &l.done} {
		*n = r.i64()
	}
	for range r.count(16) {
		n := r.i64()
		l.full[n] = r.i64()
	}
	for range r.count(24 + 8*pageWords) {
		n, p := r.i64(), &page{left: r.i64(), want: r.i64()}
		r.set(&p.bits)
		l.pages[n] = p
	}
}

func (r *stateReader) strays(s *strays) {
	for range r.count(8 + 1<<pageBits) {
		n := r.i64()
		for i, code := range r.take(1 << pageBits) {
			if code != 0 {
				s.put(n<<pageBits+int64(i), code)
			}
		}
	}
}
