package buckets

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// The meta family is read back with the suspicion that something else wrote it, or that something is missing: what does
// not go together is refused by name, before it becomes a ring that looks whole and is not.

// markedEpoch is the epoch in the key of a mark or a bitmap, which must be written as this package writes it: of a key
// that only reads as the same number the value would stay when the bucket is dropped.
func markedEpoch(prefix, key string) (int64, error) {
	epoch, err := strconv.ParseInt(strings.TrimPrefix(key, prefix), 10, 64)
	if err != nil || key != prefix+strconv.FormatInt(epoch, 10) {
		return 0, fmt.Errorf("damaged %s %q: no name of an epoch", map[string]string{bucketMark: "mark", usedBits: "bitmap"}[prefix], key)
	}
	return epoch, nil
}

// sound checks the mark of a bucket against its bitmap, which is written with the mark and with every change after it. A run
// leaves out the rows that were used until then (none with keepUsed), so the runs have at least the rows that are not used now.
func (b *Bucket) sound(bitmap []byte, keepUsed bool) error {
	rows, used := int64(b.done), int64(0)
	if want := (rows + 63) / 64 * 8; int64(len(bitmap)) != want {
		return fmt.Errorf("bucket %d: bitmap of %d bytes for %d rows", b.Epoch, len(bitmap), rows)
	}
	for i := 0; i < len(bitmap); i += 8 {
		used += int64(bits.OnesCount64(binary.LittleEndian.Uint64(bitmap[i:])))
	}
	if tail := rows % 64; tail != 0 && binary.LittleEndian.Uint64(bitmap[len(bitmap)-8:])>>tail != 0 {
		return fmt.Errorf("bucket %d: bitmap with rows that the bucket has not", b.Epoch)
	}
	if n := b.Entries(); keepUsed && n != rows || n < rows-used {
		return fmt.Errorf("bucket %d: %d of %d rows are used, and its runs have %d", b.Epoch, used, rows, n)
	}
	return nil
}

// strayBitmaps refuses bitmaps of buckets that have no mark: one of a later bucket of that epoch would take them over.
func (r *Ring) strayBitmaps() error {
	return r.store.ScanMeta(usedBits, func(key string, _ []byte) error {
		epoch, err := markedEpoch(usedBits, key)
		if err != nil {
			return err
		}
		if r.At(epoch) == nil {
			return fmt.Errorf("bucket %d has a bitmap and no mark", epoch)
		}
		return nil
	})
}
