package buckets

import (
	"encoding/binary"
	"fmt"
)

// Has says which batches a store's own log still has, when its commit record is in another store. The end of the process
// leaves what both wrote; after a power cut each may lack its last second or more (SyncMode).
type Has struct {
	Last   uint64 // the last batch that it journaled: those of a commit record above it are lost
	Folded uint64 // the last batch that is part of runs, bitmaps or the floor: going back below it is impossible
}

// Journaled reads it; zero of a new store.
func Journaled(store Backend) (has Has, err error) {
	for key, n := range map[string]*uint64{metaJournaled: &has.Last, metaFolded: &has.Folded} {
		v, ok, err := store.Meta(key)
		if err != nil {
			return has, err
		}
		if ok && len(v) != 8 {
			return has, fmt.Errorf("damaged batch number %q", key)
		}
		if ok {
			*n = binary.LittleEndian.Uint64(v)
		}
	}
	return has, nil
}

// putFolded notes that what w writes holds every batch so far.
func (r *Ring) putFolded(w *Write) { w.putNumber(metaFolded, r.committed) }

func (w *Write) putNumber(key string, n uint64) {
	var v [8]byte
	binary.LittleEndian.PutUint64(v[:], n)
	w.put(key, v[:])
}
