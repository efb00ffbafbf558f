package results

import (
	"math"
	"reflect"
	"slices"
	"testing"
)

// Published values: Newcombe, Statistics in Medicine 17 (1998), table I, method 3 (score without continuity correction).
func TestWilsonKnownValues(t *testing.T) {
	for _, c := range []struct {
		k, n      int64
		low, high float64
	}{
		{81, 263, 0.2553, 0.3662},
		{15, 148, 0.0624, 0.1605},
		{0, 20, 0.0000, 0.1611},
		{1, 29, 0.0061, 0.1718},
	} {
		ci := Wilson95(c.k, c.n)
		if ci == nil || math.Abs(ci[0]-c.low) > 5e-5 || math.Abs(ci[1]-c.high) > 5e-5 {
			t.Errorf("Wilson95(%d, %d) = %v, published [%v %v]", c.k, c.n, *ci, c.low, c.high)
		}
	}
}

// The ends of the score interval are, by definition, the p at which (p̂ - p)² = z² p (1 - p) / n.
func TestWilsonSolvesItsEquation(t *testing.T) {
	for _, n := range []int64{1, 10, 1_000, 4_949_987, 1 << 40} {
		for _, k := range []int64{0, 1, n / 4000, n / 2, n - 1, n} {
			low, high, ok := Wilson(k, n, z95)
			if !ok || low < 0 || high > 1 || low > high {
				t.Fatalf("Wilson(%d, %d) = %v %v %v", k, n, low, high, ok)
			}
			hat := float64(k) / float64(n)
			if low > hat || high < hat {
				t.Errorf("Wilson(%d, %d) = [%v %v] does not hold %v", k, n, low, high, hat)
			}
			for _, p := range []float64{low, high} {
				left, right := (hat-p)*(hat-p), z95*z95*p*(1-p)/float64(n)
				if math.Abs(left-right) > 1e-6*(left+right)+1e-25 {
					t.Errorf("Wilson(%d, %d): %v is no end: %v against %v", k, n, p, left, right)
				}
			}
		}
	}
	if low, _, _ := Wilson(0, 1000, z95); low != 0 {
		t.Errorf("the lower end of nothing is %v", low)
	}
	if _, high, _ := Wilson(1000, 1000, z95); high != 1 {
		t.Errorf("the upper end of everything is %v", high)
	}
}

func TestRatiosWithoutDenominator(t *testing.T) {
	if r := Ratio(1, 4); r == nil || *r != 0.25 {
		t.Errorf("Ratio(1, 4) = %v", r)
	}
	if Ratio(0, 0) != nil || Ratio(5, 0) != nil || RatioF(0, 0) != nil || RatioF(math.Inf(1), 2) != nil {
		t.Error("a ratio without a denominator is not nil")
	}
	if Known(math.NaN()) != nil || Known(math.Inf(-1)) != nil {
		t.Error("what is not finite is known")
	}
	for _, c := range [][2]int64{{0, 0}, {-1, 10}, {11, 10}, {0, -1}} {
		if Wilson95(c[0], c[1]) != nil {
			t.Errorf("%d of %d has an interval", c[0], c[1])
		}
	}
}

// Every float of a record stands behind a pointer: null can be told from 0, and NaN has a way out.
func TestEveryFloatIsNullable(t *testing.T) {
	var walk func(path string, typ reflect.Type)
	walk = func(path string, typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Float64, reflect.Float32:
			t.Errorf("%s is a plain float", path)
		case reflect.Array:
			if typ.Elem().Kind() == reflect.Float64 {
				t.Errorf("%s is a plain array of floats", path)
			}
		case reflect.Pointer:
			if k := typ.Elem().Kind(); k != reflect.Float64 && k != reflect.Array {
				walk(path, typ.Elem())
			}
		case reflect.Slice:
			walk(path+"[]", typ.Elem())
		case reflect.Struct:
			for i := range typ.NumField() {
				walk(path+"."+typ.Field(i).Name, typ.Field(i).Type)
			}
		}
	}
	walk("Record", reflect.TypeFor[Record]())
}

func TestFigures(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Count(0), "0"}, {Count(999), "999"}, {Count(1000), "1,000"}, {Count(-1234567), "-1,234,567"},
		{Count(math.MinInt64), "-9,223,372,036,854,775,808"},
		{Percent(0), "0 %"}, {Percent(0.01), "1.000 %"}, {Percent(0.000244), "0.02440 %"}, {Percent(1), "100.0 %"},
		{Percent(0.99999), "99.999 %"}, {Percent(0.9999999), "99.99999 %"}, {Percent(1.5), "150.0 %"},
		{Bytes(0), "0 B"}, {Bytes(1023), "1,023 B"}, {Bytes(1024), "1.000 KiB"}, {Bytes(367_001_600), "350.0 MiB"},
		{Bytes(-5 << 30), "-5.000 GiB"}, {Bytes(3 << 50), "3072 TiB"},
		{Nanoseconds(0), "0 s"}, {Nanoseconds(28.02), "28.0 ns"}, {Nanoseconds(7_210_000), "7.21 ms"},
		{Nanoseconds(999_999), "1.00 ms"}, {Nanoseconds(41.2e9), "41.2 s"}, {Nanoseconds(185e9), "3 min 05 s"},
		{Nanoseconds(7325e9), "2 h 02 min"},
		{Rate(0), "0 /s"}, {Rate(9876), "9876 /s"}, {Rate(182_481.7), "182.5 k/s"}, {Rate(12_345_678), "12.35 M/s"},
		{plain(0.0002440), "0.000244"}, {plain(100), "100"}, {plain(81.04), "81.04"}, {plain(123456), "123456"},
		{fixed(31_204, 1), "31,204.0"}, {fixed(81.04, 1), "81.0"}, {fixed(-1234.5, 0), "-1,234"}, {times(97.6389), "97.64 ×"},
		{times(1562.2), "1,562 ×"},
		{sparkline([]int64{0, 7, 3, 3}, 10), "▁█▄▄"}, {sparkline([]int64{5, 5}, 10), "▁▁"}, {sparkline(nil, 10), ""},
		{sparkline([]int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 2), "▄█"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestTrimmedMean(t *testing.T) {
	given := []float64{1e9, 3, 1, 2, 4, 5, 6, 7, 8, -1e9}
	values := slices.Clone(given)
	if got := TrimmedMean(values); got != 4.5 || !slices.Equal(values, given) {
		t.Errorf("%v of %v", got, values)
	}
	if got := TrimmedMean([]float64{1, 2, 6}); got != 3 { // a tenth of three is none
		t.Error(got)
	}
	if got := TrimmedMean(nil); !math.IsNaN(got) {
		t.Error(got)
	}
}
