package results

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Figures for people. All of them keep enough digits to compare two runs (three or four that count) and use one blank
// between number and unit.

// Count writes 1234567 as 1,234,567.
func Count(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	var b strings.Builder
	b.WriteString(sign)
	for i := range len(s) {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// significant writes v with n digits that count, without an exponent and without rounding away digits before the point.
func significant(v float64, n int) string {
	if v == 0 {
		return "0"
	}
	decimals := func(v float64) int {
		before := int(math.Floor(math.Log10(math.Abs(v)))) + 1
		return min(max(0, n-before), 12)
	}
	d := decimals(v)
	scale := math.Pow10(d)
	if rounded := math.Round(v*scale) / scale; rounded != 0 { // 9.999 becomes 10.0, not 10.00
		d = decimals(rounded)
	}
	return strconv.FormatFloat(v, 'f', d, 64)
}

// plain writes a number without a unit: four digits that count, zeros after them left out.
func plain(v float64) string {
	s := significant(v, 4)
	if strings.ContainsRune(s, '.') {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// fixed writes v with the given decimals and groups of thousands, for columns in which the points should stand below each other.
func fixed(v float64, decimals int) string {
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	whole, rest, _ := strings.Cut(s, ".")
	if n, err := strconv.ParseInt(whole, 10, 64); err == nil && math.Abs(v) >= 1000 {
		whole = Count(n)
	}
	if rest == "" {
		return whole
	}
	return whole + "." + rest
}

// times writes a factor: 97.64 ×.
func times(v float64) string {
	if math.Abs(v) >= 1000 {
		return fixed(v, 0) + " ×"
	}
	return significant(v, 4) + " ×"
}

// Percent writes a ratio of 0 to 1 as a percentage with four digits that count. What is not quite 100 % never reads 100 %.
func Percent(ratio float64) string {
	p := 100 * ratio
	for n := 4; ; n++ {
		s := significant(p, n)
		if v, _ := strconv.ParseFloat(s, 64); v != 100 || p == 100 || n == 15 {
			return s + " %"
		}
	}
}

// Bytes writes a size in binary units.
func Bytes(n int64) string {
	unit, name := byteUnit(n)
	return inByteUnit(n, unit, name)
}

func byteUnit(n int64) (unit float64, name string) {
	unit, name = 1, "B"
	for _, next := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if math.Abs(float64(n)) < unit*1024 {
			break
		}
		unit, name = unit*1024, next
	}
	return unit, name
}

func inByteUnit(n int64, unit float64, name string) string {
	if unit == 1 {
		return Count(n) + " B"
	}
	return significant(float64(n)/unit, 4) + " " + name
}

// Nanoseconds writes a duration: three digits that count up to a minute, minutes and seconds or hours and minutes above.
func Nanoseconds(ns float64) string {
	abs := math.Abs(ns)
	switch {
	case ns == 0:
		return "0 s"
	case abs >= float64(time.Hour):
		m := int64(ns / float64(time.Minute))
		return fmt.Sprintf("%d h %02d min", m/60, m%60)
	case abs >= float64(time.Minute):
		s := int64(ns / float64(time.Second))
		return fmt.Sprintf("%d min %02d s", s/60, s%60)
	case abs >= 0.9995e9: // what would round to 1000 ms reads 1.00 s
		return significant(ns/1e9, 3) + " s"
	case abs >= 0.9995e6:
		return significant(ns/1e6, 3) + " ms"
	case abs >= 0.9995e3:
		return significant(ns/1e3, 3) + " µs"
	}
	return significant(ns, 3) + " ns"
}

func nanos(ns int64) string { return Nanoseconds(float64(ns)) }

// Rate writes a number per second: 12.34 M/s.
func Rate(v float64) string {
	switch abs := math.Abs(v); {
	case abs >= 0.99995e9:
		return significant(v/1e9, 4) + " G/s"
	case abs >= 0.99995e6:
		return significant(v/1e6, 4) + " M/s"
	case abs >= 1e4:
		return significant(v/1e3, 4) + " k/s"
	}
	return significant(v, 4) + " /s"
}

// orDash writes what is known with f, and a dash for what is not.
func orDash[T any](v *T, f func(T) string) string {
	if v == nil {
		return "–"
	}
	return f(*v)
}

// sparkline draws values as a row of at most width blocks, scaled from the least to the greatest. More values than width
// are drawn as the greatest of each stretch. Equal values are a flat line at the bottom.
func sparkline(values []int64, width int) string {
	if len(values) == 0 || width < 1 {
		return ""
	}
	cells := min(width, len(values))
	low, high := values[0], values[0]
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	blocks := []rune("▁▂▃▄▅▆▇█")
	out := make([]rune, cells)
	for i := range out {
		from, to := i*len(values)/cells, (i+1)*len(values)/cells
		top := values[from]
		for _, v := range values[from:to] {
			top = max(top, v)
		}
		level := 0
		if high > low {
			level = int(float64(top-low)/float64(high-low)*float64(len(blocks)-1) + 0.5)
		}
		out[i] = blocks[level]
	}
	return string(out)
}
