//go:build cgo

package fusefilter

// #cgo CFLAGS: -O2
// #include "kernel.h"
import "C"

import "unsafe"

// pointers of the batch; hashes and out are not empty.
func cHashes(hashes []uint64) (*C.uint64_t, C.int64_t) {
	return (*C.uint64_t)(unsafe.SliceData(hashes)), C.int64_t(len(hashes))
}

func cHits(out []Hit) *C.jb_hit { return (*C.jb_hit)(unsafe.Pointer(unsafe.SliceData(out))) }

func cGeometry(g *geometry) *C.jb_geometry { return (*C.jb_geometry)(unsafe.Pointer(g)) }

func probeLanes(l *Lanes, ask uint64, hashes []uint64, out []Hit) int {
	h, n := cHashes(hashes)
	return int(C.jb_probe_lanes((*C.uint64_t)(unsafe.SliceData(l.rows)), C.uint32_t(l.words), C.uint32_t(l.kind.cellBits()),
		cGeometry(&l.geometry), C.uint64_t(ask), h, n, cHits(out)))
}

func probeTable[T fingerprint](t *table[T], bits int, mask uint64, hashes []uint64, out []Hit) int {
	h, n := cHashes(hashes)
	return int(C.jb_probe_table(unsafe.Pointer(unsafe.SliceData(t.cells)), C.uint32_t(bits), cGeometry(&t.geometry),
		C.uint64_t(mask), h, n, cHits(out)))
}

func findOpen(x *OpenIndex, hashes []uint64, out []Found) int {
	h, n := cHashes(hashes)
	return int(C.jb_find_open((*C.uint64_t)(unsafe.SliceData(x.tags)), (*C.uint32_t)(unsafe.Pointer(unsafe.SliceData(x.entries))),
		C.uint64_t(x.mult), C.uint32_t(x.shift), C.uint64_t(len(x.tags)-1), h, n,
		(*C.jb_found)(unsafe.Pointer(unsafe.SliceData(out)))))
}

// The structs of both languages are the same memory.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(Hit{})-C.sizeof_jb_hit]
	_ = [1]struct{}{}[unsafe.Sizeof(Found{})-C.sizeof_jb_found]
	_ = [1]struct{}{}[unsafe.Sizeof(geometry{})-C.sizeof_jb_geometry]
	_ = [1]struct{}{}[unsafe.Sizeof(entry{})-12]
)
