package projection

import "strconv"

// Record is one raw record as a source hands it over. The slices belong to the source and are valid
// until its next read; whoever keeps something copies it.
type Record struct {
	Key       []byte // record key; nil is the null key, empty and non-nil is ""
	Value     []byte // payload; nil is the null payload (a tombstone)
	Timestamp int64  // record time in ms
	Partition int32
	Offset    int64
	Place     int64 // 1-based line in its file, 0 where there is none
	Damaged   bool  // the source could not read the envelope: Value is the raw line, the fate is Malformed
}

// Fate says what becomes of one record (rule 9: one fate for each). Decoding decides the first five; the
// rest depend on what was read before and are decided by the join.
type Fate uint8

// The fates, Accepted first.
const (
	Accepted  Fate = iota
	NullKey        // absent or null key: joins nothing, moves time
	BadKey         // object, array or boolean as key
	Malformed      // not one whole valid JSON value, a null payload, or a damaged envelope
	BadTime        // no usable event time
)

// String gives the name that counters and dead letters use.
func (f Fate) String() string {
	switch f {
	case Accepted:
		return "accepted"
	case NullKey:
		return "null_key"
	case BadKey:
		return "bad_key"
	case Malformed:
		return "malformed"
	case BadTime:
		return "bad_time"
	}
	return "fate(" + strconv.Itoa(int(f)) + ")"
}
