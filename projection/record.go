package projection

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
