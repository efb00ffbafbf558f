package ops

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"joinbench/results"
)

// span is a duration without the zeros at its end: 4h, 168h, 4h20m10s; a very long one in days.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= 30*day {
		return count(int(d/day), "day")
	}
	if d >= time.Second {
		d = d.Round(time.Second)
	} else {
		d = d.Round(time.Millisecond)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// count is a number of things: 1 broker, 3 brokers.
func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%s %s", results.Count(int64(n)), what)
}

func itoa(n int32) string { return strconv.Itoa(int(n)) }

// approx is a rate for people.
func approx(v float64) string {
	if v >= 10 {
		return results.Count(int64(math.Round(v)))
	}
	return fmt.Sprintf("%.2g", v)
}
