package config

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	bareNumber = regexp.MustCompile(`^[-+]?[0-9]+(\.[0-9]*)?$`)
	daysPrefix = regexp.MustCompile(`^([0-9]{1,6})d(.*)$`)
	sizeForm   = regexp.MustCompile(`^([0-9]{1,19}(?:\.[0-9]{1,9})?) ?([A-Za-z]*)$`)
	rateForm   = regexp.MustCompile(`^([0-9]{1,19}(?:\.[0-9]{1,400})?) ?([A-Za-z]*)$`) // float64 needs up to 340 places
	plainYAML  = regexp.MustCompile(`^[A-Za-z$./][A-Za-z0-9_./$-]*$`)
	readAsElse = regexp.MustCompile(`(?i)^(null|true|false|yes|no|on|off|y|n|\.inf|\.nan|\.\d.*|-*|\.{3})$`)
)

// parseDuration reads a duration with its unit: Go's forms, and days ("1d", "1d12h").
func parseDuration(s string) (time.Duration, error) {
	if bareNumber.MatchString(s) {
		return 0, fmt.Errorf("%s needs a unit, for example %[1]sms, %[1]ss, %[1]sm or %[1]sh", s)
	}
	days, rest := time.Duration(0), s
	if m := daysPrefix.FindStringSubmatch(s); m != nil {
		n, _ := strconv.Atoi(m[1]) // at most six digits
		if n > int(maxDuration/(24*time.Hour)) {
			return 0, fmt.Errorf("%s is too long (at most %s)", s, formatDuration(maxDuration))
		}
		days, rest = time.Duration(n)*24*time.Hour, m[2]
		if rest == "" {
			return days, nil
		}
		if bareNumber.MatchString(rest) || rest[0] == '-' || rest[0] == '+' {
			rest = "?" // "1d5", "1d-2h"
		}
	}
	d, err := time.ParseDuration(rest)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration (a number with ms, s, m, h or d, for example 10s)", s)
	}
	if d > maxDuration { // so that the sum below cannot overflow
		return 0, fmt.Errorf("%s is too long (at most %s)", s, formatDuration(maxDuration))
	}
	return days + d, nil
}

// formatDuration is the shortest form that parseDuration reads back.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

var sizeUnits = map[string]int64{
	"B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}

// parseSize reads a number of bytes with its unit, like 256MiB.
func parseSize(s string) (int64, error) {
	if bareNumber.MatchString(s) {
		return 0, fmt.Errorf("%s needs a unit, for example %[1]sMiB", s)
	}
	n, err := scaled(s, sizeUnits)
	if err != nil {
		return 0, fmt.Errorf("%q is not a size (%w; units B, KiB, MiB, GiB, TiB, kB, MB, GB, TB)", s, err)
	}
	return n, nil
}

func formatSize(n int64) string {
	for _, u := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if n != 0 && n%sizeUnits[u] == 0 {
			return strconv.FormatInt(n/sizeUnits[u], 10) + u
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

var countUnits = map[string]int64{"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}

// parseCount reads a whole number, like 500k or 10M.
func parseCount(s string) (int64, error) {
	n, err := scaled(s, countUnits)
	if err != nil {
		return 0, fmt.Errorf("%q is not a count (%w; a whole number, for example 500, 500k, 10M or 1G)", s, err)
	}
	return n, nil
}

func formatCount(n int64) string {
	switch {
	case n != 0 && n%1e9 == 0:
		return strconv.FormatInt(n/1e9, 10) + "G"
	case n != 0 && n%1e6 == 0:
		return strconv.FormatInt(n/1e6, 10) + "M"
	case n != 0 && n%1e3 == 0:
		return strconv.FormatInt(n/1e3, 10) + "k"
	}
	return strconv.FormatInt(n, 10)
}

// scaled reads number and unit exactly; the product must be whole and fit int64.
func scaled(s string, units map[string]int64) (int64, error) {
	m := sizeForm.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("no number at its start")
	}
	unit, ok := units[m[2]]
	if !ok {
		return 0, fmt.Errorf("unknown unit %q", m[2])
	}
	r, ok := new(big.Rat).SetString(m[1])
	if !ok {
		return 0, fmt.Errorf("no number at its start")
	}
	r.Mul(r, new(big.Rat).SetInt64(unit))
	if !r.IsInt() || !r.Num().IsInt64() {
		return 0, fmt.Errorf("not a whole number, or too large")
	}
	return r.Num().Int64(), nil
}

// parseRate reads events a second, like 100k, 2M/s or 347.2.
func parseRate(s string) (float64, error) {
	text := strings.TrimSuffix(s, "/s")
	m := rateForm.FindStringSubmatch(text)
	if m != nil {
		if unit, ok := countUnits[m[2]]; ok {
			if f, err := strconv.ParseFloat(m[1], 64); err == nil {
				return f * float64(unit), nil
			}
		}
	}
	return 0, fmt.Errorf("%q is not a rate (events a second, for example 500, 100k or 2M/s)", s)
}

func formatRate(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return formatCount(int64(f))
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// parseRatio reads a share from 0 to 1, like 0.01 or 1%. The range is checked by the caller.
func parseRatio(s string) (float64, error) {
	text, div := s, 1.0
	if strings.HasSuffix(s, "%") {
		text, div = s[:len(s)-1], 100
	}
	if bareNumber.MatchString(text) && len(text) < 400 {
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return f / div, nil
		}
	}
	return 0, fmt.Errorf("%q is not a share (for example 0.01 or 1%%)", s)
}

func formatRatio(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// quote writes a string as a YAML scalar that also stands inside [] and {}, quoted unless it is surely plain.
func quote(s string) string {
	if plainYAML.MatchString(s) && !readAsElse.MatchString(s) {
		return s
	}
	return strconv.Quote(s)
}
