package projection

// maxTime is 9999-12-31T23:59:59.999Z in ms, the last event time there is.
const maxTime = 253402300799999

// timeUnit is the unit of a time field.
type timeUnit uint8

const (
	unitMs timeUnit = iota
	unitUs
	unitNs
	unitS
	unitRFC3339
)

var timeUnits = map[string]timeUnit{"ms": unitMs, "us": unitUs, "ns": unitNs, "s": unitS, "rfc3339": unitRFC3339}

// finer says how many decimal digits a unit is finer than ms.
var finer = [...]int{unitMs: 0, unitUs: 3, unitNs: 6}

// parseTime reads a valid JSON value as an event time in ms, 0 to maxTime. Units finer than ms are cut. For
// all units but rfc3339 it must be an integer number, without fraction and exponent, however those would
// come out; for rfc3339 a string.
func (d *Decoder) parseTime(value []byte) (ms int64, ok bool) {
	unit := d.spec.timeUnit
	if unit == unitRFC3339 {
		if len(value) == 0 || value[0] != '"' {
			return 0, false
		}
		d.scratch = appendUnquoted(d.scratch[:0], value[1:len(value)-1])
		ms, ok = parseRFC3339(d.scratch)
	} else {
		ms, ok = parseInteger(value, unit)
	}
	return ms, ok && ms >= 0 && ms <= maxTime
}

// parseInteger reads an integer number in unit as ms. Cutting digits off the text, and not dividing, keeps
// nanoseconds up to the year 9999 (they need 68 bits) exact.
func parseInteger(value []byte, unit timeUnit) (ms int64, ok bool) {
	if len(value) == 2 && value[0] == '-' && value[1] == '0' {
		return 0, true // the one integer with a minus that is not negative
	}
	for _, c := range value {
		if c-'0' > 9 {
			return 0, false
		}
	}
	factor := int64(1)
	if unit == unitS {
		factor = 1000
	} else if cut := finer[unit]; cut >= len(value) {
		return 0, len(value) > 0
	} else {
		value = value[:len(value)-cut]
	}
	if len(value) > 15 { // JSON has no leading zeros: this is beyond maxTime
		return 0, false
	}
	for _, c := range value {
		ms = ms*10 + int64(c-'0')
	}
	return ms * factor, true // at most 10^18: no overflow
}

// parseRFC3339 reads "2006-01-02T15:04:05Z", with an offset ("+01:00") or a fraction of any length (cut to ms)
// if there is one; "t" and "z" may be small. A leap second is refused: ms since 1970 have no place for it.
func parseRFC3339(s []byte) (ms int64, ok bool) {
	if len(s) < len("2006-01-02T15:04:05Z") || s[4] != '-' || s[7] != '-' || s[10]|0x20 != 't' || s[13] != ':' || s[16] != ':' {
		return 0, false
	}
	year, month, day := digits(s[0:4]), digits(s[5:7]), digits(s[8:10])
	hour, minute, second := digits(s[11:13]), digits(s[14:16]), digits(s[17:19])
	if year < 0 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) ||
		hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59 {
		return 0, false
	}
	rest := s[19:]
	var fraction int64
	if rest[0] == '.' {
		end := skipDigits(rest, 1)
		if end == 1 || end == len(rest) {
			return 0, false
		}
		scale := int64(100)
		for _, c := range rest[1:end] {
			fraction += int64(c-'0') * scale
			scale /= 10
		}
		rest = rest[end:]
	}
	offset, ok := parseOffset(rest)
	seconds := int64(daysSince1970(year, month, day))*86400 + int64(hour*3600+minute*60+second) - int64(offset)
	return seconds*1000 + fraction, ok
}

// parseOffset reads "Z" or "+01:00" as seconds east of UTC.
func parseOffset(s []byte) (seconds int, ok bool) {
	if len(s) == 1 && s[0]|0x20 == 'z' {
		return 0, true
	}
	if len(s) != 6 || (s[0] != '+' && s[0] != '-') || s[3] != ':' {
		return 0, false
	}
	hours, minutes := digits(s[1:3]), digits(s[4:6])
	if hours < 0 || hours > 23 || minutes < 0 || minutes > 59 {
		return 0, false
	}
	seconds = hours*3600 + minutes*60
	if s[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}

// digits reads decimal digits only; -1 if there is anything else.
func digits(s []byte) int {
	n := 0
	for _, c := range s {
		if c-'0' > 9 {
			return -1
		}
		n = n*10 + int(c-'0')
	}
	return n
}

func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// daysSince1970 counts days of the Gregorian calendar, years 0 to 9999. Years run from March here, so that the
// leap day is the last of its year.
func daysSince1970(year, month, day int) int {
	if month <= 2 {
		year, month = year-1, month+12
	}
	year += 400 // keeps the divisions below free of negative numbers
	return 365*year + year/4 - year/100 + year/400 + (153*(month-3)+2)/5 + day - 1 - 719468 - 146097
}
