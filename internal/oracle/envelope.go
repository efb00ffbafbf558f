package oracle

import (
	"bytes"
	"fmt"
	"strconv"
)

// record is one line of a record file.
type record struct {
	line      int // 1-based
	partition int32
	offset    int64
	key       *string // nil = null
	payload   *string // nil = null
	ts        *int64  // record time, ms; nil = absent
	damaged   bool    // the line is not of its format: the payload is the line, its place stands for partition and offset
}

// records splits a file into its records. The newline after the last line is optional; a line's carriage return is
// whitespace.
func records(file []byte, format string) ([]record, error) {
	var read func(line []byte, number int) record
	switch format {
	case "value":
		read = valueRecord
	case "kcat":
		read = func(line []byte, n int) record { return envelopeRecord(line, n, "ts", "payload") }
	case "rpk":
		read = func(line []byte, n int) record { return envelopeRecord(line, n, "timestamp", "value") }
	default:
		return nil, fmt.Errorf("unknown format %q", format)
	}
	lines := bytes.Split(file, []byte("\n"))
	if len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	recs := make([]record, len(lines))
	for i, line := range lines {
		recs[i] = read(line, i+1)
	}
	return recs, nil
}

// valueRecord: the line is the payload; key null, partition 0, offset = line number from 0, record time 0. (A blank line is
// no JSON value, so it turns out malformed without being asked for here.)
func valueRecord(line []byte, number int) record {
	payload, ts := string(line), int64(0)
	return record{line: number, offset: int64(number - 1), payload: &payload, ts: &ts}
}

// envelopeRecord reads a kcat or rpk line. It wants one JSON object with a partition and an offset; of the rest, what is
// absent is null, and what has another type makes the line damaged.
func envelopeRecord(line []byte, number int, tsName, payloadName string) record {
	raw := string(line)
	damaged := record{line: number, partition: -1, offset: int64(number - 1), payload: &raw, damaged: true}
	v, err := parseJSON(line)
	if err != nil || v.kind != '{' {
		return damaged
	}
	partition, ok1 := v.integer("partition")
	offset, ok2 := v.integer("offset")
	ts, ok3 := v.integer(tsName)
	key, ok4 := v.stringOrNull("key")
	payload, ok5 := v.stringOrNull(payloadName)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || partition == nil || offset == nil || *partition < 0 || *partition > 1<<31-1 || *offset < 0 {
		return damaged
	}
	return record{line: number, partition: int32(*partition), offset: *offset, key: key, payload: payload, ts: ts}
}

// integer reads an integer member; nil if it is absent or null, false if it is something else.
func (v value) integer(name string) (*int64, bool) {
	m, ok := v.member(name)
	if !ok || m.kind == 'n' {
		return nil, true
	}
	n, err := strconv.ParseInt(m.text, 10, 64)
	return &n, m.kind == '0' && err == nil
}

// stringOrNull reads a string member; nil if it is absent or null, false if it is something else.
func (v value) stringOrNull(name string) (*string, bool) {
	m, ok := v.member(name)
	if !ok || m.kind == 'n' {
		return nil, true
	}
	return &m.text, m.kind == '"'
}
