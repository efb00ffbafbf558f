package capture

import (
	"math"
	"slices"

	"joinbench/projection"
)

// DamagedPartition is the partition of records whose envelope could not be read. It is no partition of the
// topic: it has no time, and nothing must wait for it.
const DamagedPartition int32 = -1

// fields is a set of envelope fields.
type fields uint8

const (
	fieldTopic fields = 1 << iota
	fieldPartition
	fieldOffset
	fieldTime
	fieldKey
	fieldValue
	fieldValueSize
	fieldOther fields = 0

	kcatRequired = fieldTopic | fieldPartition | fieldOffset | fieldValue
	rpkRequired  = fieldTopic | fieldPartition | fieldOffset | fieldTime
)

// envelope reads one line of kcat or rpk. What it found of the strings lies in out, behind what the arena
// held before; nil stands for null and for absent.
type envelope struct {
	scanner
	seen      fields
	partition int32
	offset    int64
	time      int64
	topic     []byte
	key       []byte
	value     []byte
}

// parse reads the whole line and reports whether it is a valid envelope of that format. The strings are
// appended to the arena; e.out is the arena after it, to be kept when the answer is true.
func (e *envelope) parse(line []byte, f Format, arena []byte) bool {
	out := slices.Grow(arena, len(line)+slack)
	*e = envelope{scanner: scanner{b: line, out: out}, time: -1}
	if !e.take('{') {
		return false
	}
	if !e.take('}') { // an empty object falls through to the check for required fields
		for {
			if !e.member(f) {
				return false
			}
			if e.take('}') {
				break
			}
			if !e.take(',') {
				return false
			}
		}
	}
	e.space()
	return e.i == len(line) && e.complete(f)
}

// complete checks that nothing required is missing.
func (e *envelope) complete(f Format) bool {
	if f == Kcat {
		return e.seen&kcatRequired == kcatRequired
	}
	metaOnly := e.seen&(fieldValue|fieldValueSize) == fieldValueSize
	return e.seen&rpkRequired == rpkRequired && !metaOnly
}

// member reads one name with its value.
func (e *envelope) member(f Format) bool {
	e.space()
	mark := len(e.out)
	if !e.str() {
		return false
	}
	field := fieldOf(e.out[mark:], f)
	e.out = e.out[:mark]
	if !e.take(':') {
		return false
	}
	e.space()
	if field == fieldOther || e.seen&field != 0 { // unknown, or a duplicate: the first counts
		return e.skip(1)
	}
	e.seen |= field
	return e.field(field)
}

func fieldOf(name []byte, f Format) fields {
	switch string(name) {
	case "topic":
		return fieldTopic
	case "partition":
		return fieldPartition
	case "offset":
		return fieldOffset
	case "key":
		return fieldKey
	}
	if f == Kcat {
		switch string(name) {
		case "ts":
			return fieldTime
		case "payload":
			return fieldValue
		}
		return fieldOther
	}
	switch string(name) {
	case "timestamp":
		return fieldTime
	case "value":
		return fieldValue
	case "value_size":
		return fieldValueSize
	}
	return fieldOther
}

// field reads the value of a known field in the JSON type that it must have.
func (e *envelope) field(field fields) (ok bool) {
	switch field {
	case fieldTopic:
		e.topic, ok = e.text(false)
	case fieldKey:
		e.key, ok = e.text(true)
	case fieldValue:
		e.value, ok = e.text(true)
	case fieldPartition:
		var n int64
		n, ok = e.integer()
		ok = ok && n >= 0 && n <= math.MaxInt32
		e.partition = int32(n)
	case fieldOffset:
		e.offset, ok = e.integer()
		ok = ok && e.offset >= 0
	case fieldTime:
		e.time, ok = e.integer()
	default:
		ok = e.skip(1)
	}
	return ok
}

// text reads a string and keeps it in out; a null, where it may stand, is nil.
func (e *envelope) text(nullable bool) ([]byte, bool) {
	if nullable && e.peek() == 'n' {
		return nil, e.literal("null")
	}
	mark := len(e.out)
	if !e.str() {
		return nil, false
	}
	return e.out[mark:len(e.out):len(e.out)], true
}

// record turns a line into a record, appends the bytes it needs to the arena and returns that. cut says
// that the line was longer than the limit and that this is its beginning only.
func (e *envelope) record(rec *projection.Record, f Format, line []byte, cut bool, number int64, arena []byte) []byte {
	if f == Value {
		arena = raw(rec, line, arena)
		rec.Offset, rec.Place = number-1, number
		rec.Damaged = cut || blank(line)
		return arena
	}
	if cut || !e.parse(line, f, arena) {
		arena = raw(rec, line, arena)
		rec.Partition, rec.Offset, rec.Place = DamagedPartition, number-1, number
		rec.Timestamp, rec.Damaged = -1, true
		return arena
	}
	*rec = projection.Record{
		Key: e.key, Value: e.value, Timestamp: e.time,
		Partition: e.partition, Offset: e.offset, Place: number,
	}
	return e.out
}

// raw makes the line itself the value. An empty line is an empty value, not a null one.
func raw(rec *projection.Record, line, arena []byte) []byte {
	mark := len(arena)
	arena = append(slices.Grow(arena, len(line)+1), line...)
	*rec = projection.Record{Value: arena[mark:len(arena):len(arena)]}
	return arena
}
