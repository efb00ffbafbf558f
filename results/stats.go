package results

import (
	"math"
	"reflect"
	"slices"
)

// z95 is the standard normal quantile of a two-sided 95 % interval; z999 that of 99.9 %.
const (
	z95  = 1.959963984540054
	z999 = 3.290526731491926
)

// Ratio is num ÷ den, or nil when den is zero.
func Ratio(num, den int64) *float64 {
	return RatioF(float64(num), float64(den))
}

// RatioF is num ÷ den, or nil when den is zero or the quotient is not finite.
func RatioF(num, den float64) *float64 {
	if den == 0 {
		return nil
	}
	return Known(num / den)
}

// TrimmedMean is the mean of what is left when a tenth of the values at either end is left out, NaN of nothing. The values stay as they are.
func TrimmedMean(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	cut, sum := len(values)/10, 0.0
	for _, v := range values[cut : len(values)-cut] {
		sum += v
	}
	return sum / float64(len(values)-2*cut)
}

// Known is a pointer to v, or nil when v is NaN or infinite: the way a measured float enters a record.
func Known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// Wilson is the score interval of Wilson (1927), without continuity correction, for k successes in n trials at the normal
// quantile z. Both ends lie in [0,1], the lower is exactly 0 for k = 0 and the upper exactly 1 for k = n. Unlike the usual
// p ± z·s it keeps its coverage for the rare events that false positives are. It returns ok = false unless 0 <= k <= n and
// n > 0.
func Wilson(k, n int64, z float64) (low, high float64, ok bool) {
	if n <= 0 || k < 0 || k > n {
		return 0, 0, false
	}
	N, p := float64(n), float64(k)/float64(n)
	den := 1 + z*z/N
	centre := (p + z*z/(2*N)) / den
	half := z / den * math.Sqrt(p*(1-p)/N+z*z/(4*N*N))
	low, high = max(0, centre-half), min(1, centre+half)
	if k == 0 { // the two terms are equal then, but need not round equally
		low = 0
	}
	if k == n {
		high = 1
	}
	return low, high, true
}

// Wilson95 is the 95 % interval of k in n, nil where there is none.
func Wilson95(k, n int64) *[2]float64 {
	low, high, ok := Wilson(k, n, z95)
	if !ok {
		return nil
	}
	return &[2]float64{low, high}
}

// normalize makes the struct that p points to fit for JSON, in place: pointers to NaN or infinity become nil (null), nil lists
// empty ones (so that scripts can always iterate). Every float of a record is behind a pointer; a test keeps that so.
func normalize(p any) { normalizeValue(reflect.ValueOf(p).Elem()) }

func normalizeValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		if holdsNonFinite(v.Elem()) {
			v.SetZero()
			return
		}
		normalizeValue(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				normalizeValue(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return // raw JSON, not a list
		}
		if v.IsNil() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		for i := range v.Len() {
			normalizeValue(v.Index(i))
		}
	}
}

// holdsNonFinite: is it a float, or an array of floats, that JSON has no form for?
func holdsNonFinite(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Float64:
		return Known(v.Float()) == nil
	case reflect.Array:
		for i := range v.Len() {
			if holdsNonFinite(v.Index(i)) {
				return true
			}
		}
	}
	return false
}
