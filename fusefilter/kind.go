package fusefilter

import (
	"fmt"
	"math"
	"strings"
)

// Kind is the kind of filter that stands before the sealed buckets.
type Kind uint8

// The kinds. The zero value filters nothing, which is slow and never wrong.
const (
	None   Kind = iota // every bucket that holds something is *maybe*, and its table is read
	Fuse8              // binary fuse filter, 8-bit fingerprints
	Fuse16             // binary fuse filter, 16-bit fingerprints
	Fuse32             // binary fuse filter, 32-bit fingerprints
	Bloom              // RocksDB's own filter in the sealed tables: for this package every bucket is *maybe*
)

var kindNames = [...]string{None: "none", Fuse8: "fuse8", Fuse16: "fuse16", Fuse32: "fuse32", Bloom: "bloom"}

// String is the name that ParseKind reads.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// ParseKind reads a name: "none", "fuse8", "fuse16", "fuse32" or "bloom".
func ParseKind(name string) (Kind, error) {
	for k, n := range kindNames {
		if n == name {
			return Kind(k), nil
		}
	}
	return None, fmt.Errorf("fusefilter: unknown filter kind %q (%s)", name, strings.Join(kindNames[:], ", "))
}

// InRAM says whether filters of this kind are built here and asked before the store. Of the others, None and
// Bloom, there is never one to build: Build makes a filter that says *maybe*, and a slot that gets it stays
// *maybe*.
func (k Kind) InRAM() bool { return k == Fuse8 || k == Fuse16 || k == Fuse32 }

// cellBits is the width of a fingerprint in bits, 0 of kinds without.
func (k Kind) cellBits() int {
	switch k {
	case Fuse8:
		return 8
	case Fuse16:
		return 16
	case Fuse32:
		return 32
	}
	return 0
}

// BloomBits is the number of bits a key of the store's filter that PerFilter(Bloom) is about.
const BloomBits = 10

// PerFilter is the probability that one filter of this kind says *maybe* to a hash it was not built
// with: 2^-(bits of a fingerprint), whatever the number of keys. For None it is 1.
//
// For Bloom it is what RocksDB expects of its full filter with BloomBits bits a key, whose keys are spread
// over cache lines of 512 bits and set six bits each (FastLocalBloomImpl in util/bloom_impl.h): 0.953 %.
func PerFilter(k Kind) float64 {
	switch k {
	case Fuse8:
		return 1.0 / (1 << 8)
	case Fuse16:
		return 1.0 / (1 << 16)
	case Fuse32:
		return 1.0 / (1 << 32)
	case Bloom:
		return bloomRate
	}
	return 1
}

var bloomRate = cacheLocalBloom(BloomBits, 6, 512)

// cacheLocalBloom is the false-positive rate of a bloom filter each of whose keys sets its bits within one
// line. How many keys share a line varies; RocksDB takes the mean of the rates one standard deviation above
// and below the average, and so does this.
func cacheLocalBloom(bitsPerKey, probes, line float64) float64 {
	rate := func(keys float64) float64 { return math.Pow(1-math.Exp(-probes*keys/line), probes) }
	mean := line / bitsPerKey
	return (rate(mean+math.Sqrt(mean)) + rate(mean-math.Sqrt(mean))) / 2
}

// Predict is the probability that at least one of n filters of kind k says *maybe* to a hash that none of
// them was built with:
//
//	1 − (1 − p)^n     with p = PerFilter(k)
//
// This is what a probe pays that asks n sealed buckets, whether their filters stand alone or in lanes.
func Predict(k Kind, n int) float64 {
	if n <= 0 {
		return 0
	}
	return -math.Expm1(float64(n) * math.Log1p(-PerFilter(k)))
}
