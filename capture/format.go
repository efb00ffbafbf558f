package capture

import (
	"bytes"
	"fmt"
)

// Format says what a line of a record file is.
type Format uint8

// The formats.
const (
	// Auto decides by the first line that is not blank: an envelope of kcat, else one of rpk, else Value.
	Auto Format = iota
	// Value: the line is the record's JSON value.
	Value
	// Kcat: a line of `kcat -J`. Required: topic (string), partition and offset (integers from 0), payload
	// (string, or null for a tombstone). Optional: ts (integer, ms; -1 when absent, as kcat leaves it out
	// when the broker knows none), key (string or null; null when absent).
	Kcat
	// Rpk: a line of `rpk topic consume --pretty-print=false`. Required: topic, partition, offset, timestamp
	// (integer, ms). Optional: key and value (string or null). rpk leaves a null out, so an absent value is
	// null; it leaves an empty key out too, which therefore reads as null. A value_size without a value is
	// what `--meta-only` prints: the value was not captured, so the line is Damaged.
	Rpk
)

var formatNames = [...]string{Auto: "auto", Value: "value", Kcat: "kcat", Rpk: "rpk"}

// String gives the name that ParseFormat reads.
func (f Format) String() string {
	if int(f) < len(formatNames) {
		return formatNames[f]
	}
	return fmt.Sprintf("Format(%d)", uint8(f))
}

// ParseFormat reads the value of a --format flag. The empty string is auto.
func ParseFormat(s string) (Format, error) {
	if s == "" {
		return Auto, nil
	}
	for f, name := range formatNames {
		if s == name {
			return Format(f), nil
		}
	}
	return Auto, fmt.Errorf("format %q is unknown: use auto, value, kcat or rpk", s)
}

// detect names the format of a file whose first non-blank line this is. A byte order mark does not hide
// the format of the lines after it; the line that carries it is still no JSON and is Damaged.
func detect(line []byte) Format {
	line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	var e envelope
	for _, f := range [...]Format{Kcat, Rpk} {
		if e.parse(line, f, nil) {
			return f
		}
	}
	return Value
}

// blank reports whether a line holds nothing but white space.
func blank(line []byte) bool {
	for _, c := range line {
		if c != ' ' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}
