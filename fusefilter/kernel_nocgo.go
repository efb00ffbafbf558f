//go:build !cgo

package fusefilter

func probeLanes(l *Lanes, ask uint64, hashes []uint64, out []Hit) int {
	return goProbeLanes(l, ask, hashes, out)
}

func probeTable[T fingerprint](t *table[T], _ int, mask uint64, hashes []uint64, out []Hit) int {
	return goProbeTable(t, mask, hashes, out)
}

func findOpen(x *OpenIndex, hashes []uint64, out []Found) int { return goFindOpen(x, hashes, out) }
