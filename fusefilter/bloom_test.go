package fusefilter

import (
	"math"
	"math/bits"
	"testing"
)

// storeBloom is the bloom filter that RocksDB keeps in a table: lines of 512 bits; the upper half of a key's hash
// picks the line, the lower half six bits of it.
type storeBloom struct{ lines [][8]uint64 }

func (b *storeBloom) each(hash uint64, bit func(word *uint64, mask uint64)) {
	at, _ := bits.Mul32(uint32(hash>>32), uint32(len(b.lines)))
	for h, n := uint32(hash), 0; n < 6; n, h = n+1, h*0x9e3779b9 {
		p := h >> 23
		bit(&b.lines[at][p/64], 1<<(p%64))
	}
}

func (b *storeBloom) add(hash uint64) {
	b.each(hash, func(word *uint64, mask uint64) { *word |= mask })
}

func (b *storeBloom) has(hash uint64) bool {
	all := true
	b.each(hash, func(word *uint64, mask uint64) { all = all && *word&mask != 0 })
	return all
}

// The prediction for kind bloom is the rate of such a filter, and the figure that RocksDB gives for ten bits a key:
// 0.9535 % in theory, 0.957 % as implemented.
func TestBloomPrediction(t *testing.T) {
	rng := newRand(t)
	if p := PerFilter(Bloom); math.Abs(p-0.009535) > 0.000005 {
		t.Errorf("predicted %v", p)
	}
	keys, ask := fewer(400_000), fewer(2_000_000)
	b := &storeBloom{lines: make([][8]uint64, keys*BloomBits/512)}
	have := distinctHashes(rng, keys)
	for _, h := range have {
		b.add(h)
	}
	for _, h := range have {
		if !b.has(h) {
			t.Fatalf("the filter of the test denies %#x", h)
		}
	}
	got := 0
	for range ask {
		if b.has(rng.Uint64()) {
			got++
		}
	}
	lo, hi := fiveSigma(ask, PerFilter(Bloom))
	t.Logf("%d of %d, predicted %.0f to %.0f", got, ask, lo, hi)
	if float64(got) < 0.98*lo || float64(got) > 1.02*hi { // 2 %: RocksDB's formula is an estimate
		t.Errorf("%d of %d absent hashes pass, predicted %.0f to %.0f", got, ask, lo, hi)
	}
}

func TestInRAM(t *testing.T) {
	for _, k := range allKinds {
		f := mustBuild(t, new(Builder), k, []uint64{1, 2, 3})
		if k.InRAM() != (f.Bytes() > 0) || k.InRAM() != (k != None && k != Bloom) {
			t.Errorf("%s: in RAM %v, %d bytes", k, k.InRAM(), f.Bytes())
		}
	}
	if Kind(99).InRAM() {
		t.Error("a kind that does not exist is in RAM")
	}
}
