package buckets

import (
	"fmt"
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
		what := "mark"
		if strings.HasSuffix(prefix, rowBits) {
			what = "bitmap"
		}
		return 0, fmt.Errorf("damaged %s %q: no name of an epoch", what, key)
	}
	return epoch, nil
}

// readBits takes over the bitmaps of a bucket whose mark was read, and checks both against each other: they are written with
// the mark and with every change after it. A run leaves out the rows that were over until then, so the runs have at least
// the rows that are not over now.
func (b *Bucket) readBits(v []byte) error {
	rows := int64(b.done)
	size := words(b.done) * 8
	if len(v) != size && !(b.keep && len(v) == 2*size) {
		return fmt.Errorf("bucket %d: bitmap of %d bytes for %d rows", b.Epoch, len(v), rows)
	}
	var over int64
	if b.used, over = readBits(v[:size]); b.keep {
		b.ended, over = readBits(v[size:])
	}
	for _, m := range []bitmap{b.used, b.ended} {
		if tail := rows % 64; tail != 0 && len(m) > 0 && m[len(m)-1]>>tail != 0 {
			return fmt.Errorf("bucket %d: bitmap with rows that the bucket has not", b.Epoch)
		}
	}
	if n := b.Entries(); n < rows-over {
		return fmt.Errorf("bucket %d: %d of %d rows are over, and its runs have %d", b.Epoch, over, rows, n)
	}
	b.live = int(rows - over)
	return nil
}

// strayBitmaps refuses bitmaps of buckets that have no mark: one of a later bucket of that epoch would take them over.
func (r *Ring) strayBitmaps() error {
	return r.store.ScanMeta(r.prefix+rowBits, func(key string, _ []byte) error {
		epoch, err := markedEpoch(r.prefix+rowBits, key)
		if err != nil {
			return err
		}
		if r.At(epoch) == nil {
			return fmt.Errorf("bucket %d has a bitmap and no mark", epoch)
		}
		return nil
	})
}
