package pipeline

import (
	"bytes"
	"testing"
)

// What a slab keeps for the next batch does not grow from batch to batch, whatever sizes come; and nothing that it gave in one batch
// lies over something else of it.
func TestRecordSlabKeepsWhatABatchNeeds(t *testing.T) {
	var s recordSlab
	kept := func() (n int) {
		for _, c := range s.bytes.full {
			n += cap(c)
		}
		return n
	}
	batch := func(large int) {
		var all, want [][]byte
		for i := range 40 {
			for _, n := range []int{10 + i, 100_000 + i, large} {
				b := bytes.Repeat([]byte{byte(len(all))}, n)
				want, all = append(want, b), append(all, s.copy(b))
			}
		}
		for i := range all {
			if !bytes.Equal(all[i], want[i]) {
				t.Fatalf("with %d bytes: what was copied as %d is not there any more", large, i)
			}
		}
		s.reset()
	}
	batch(1)
	first := kept()
	for large := keptBytes - 5; large < keptBytes+20; large++ {
		batch(large)
	}
	// Of what is as large as a chunk each takes one, and what follows it takes another.
	if got, most := kept(), max(first, 2*40*keptBytes); got > most {
		t.Errorf("%d bytes are kept after batches of all sizes, want at most %d", got, most)
	}
	if s.copy(nil) != nil || s.copy([]byte{}) == nil {
		t.Error("no bytes are something else than empty ones")
	}
}
