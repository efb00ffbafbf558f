package fusefilter

import (
	"fmt"
	"math"
)

// Kind is the kind of filter that stands before the sealed buckets.
type Kind uint8

// The kinds. The zero value filters nothing, which is slow and never wrong.
const (
	None   Kind = iota // every bucket that holds something is *maybe*
	Fuse8              // binary fuse filter, 8-bit fingerprints
	Fuse16             // binary fuse filter, 16-bit fingerprints
)

var kindNames = [...]string{None: "none", Fuse8: "fuse8", Fuse16: "fuse16"}

// String is the name that ParseKind reads.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// ParseKind reads "none", "fuse8" or "fuse16".
func ParseKind(name string) (Kind, error) {
	for k, n := range kindNames {
		if n == name {
			return Kind(k), nil
		}
	}
	return None, fmt.Errorf("fusefilter: unknown filter kind %q (none, fuse8, fuse16)", name)
}

// PerFilter is the probability that one filter of this kind says *maybe* to a hash it was not built
// with: 2^-(bits of a fingerprint), whatever the number of keys. For None it is 1.
func PerFilter(k Kind) float64 {
	switch k {
	case Fuse8:
		return 1.0 / (1 << 8)
	case Fuse16:
		return 1.0 / (1 << 16)
	}
	return 1
}

// Predict is the probability that at least one of n filters of kind k says *maybe* to a hash that none of
// them was built with:
//
//	1 − (1 − p)^n     with p = PerFilter(k)
//
// This is what a probe pays that asks n sealed buckets without a summary.
func Predict(k Kind, n int) float64 {
	if n <= 0 {
		return 0
	}
	return -math.Expm1(float64(n) * math.Log1p(-PerFilter(k)))
}

// PredictSummary is the same with a summary of kind sum before `covered` of the filters, for a hash that
// is in none of the covered buckets, asked or not. Those in `alone` are asked in any case, the covered
// ones only when the summary lets the hash through:
//
//	1 − (1 − p)^alone × ( (1 − s) + s × (1 − p)^covered )     with s = PerFilter(sum)
func PredictSummary(k Kind, alone int, sum Kind, covered int) float64 {
	a, c := Predict(k, alone), Predict(k, covered)
	behind := PerFilter(sum) * c // the summary and one behind it both say maybe
	return a + (1-a)*behind
}
