package pipeline

import (
	"strconv"

	"joinbench/buckets"
	"joinbench/core"
	"joinbench/projection"
)

// event is one side of an output.
type event struct {
	key  []byte // typed join key; empty: none
	time int64  // ms
	body []byte // as the decoder made it

	partition int32
	offset    int64
}

func eventOf(r core.Ref) event {
	c := r.Chunk
	return event{c.Key(r.Row), c.Time[r.Row], c.BodyOf(r.Row), c.Partition, c.Offset[r.Row]}
}

// parseEvent is the event of an entry's bytes.
func parseEvent(raw []byte) (event, error) {
	e, err := buckets.ParseEntry(raw)
	return eventOfEntry(&e), err
}

func eventOfEntry(e *buckets.Entry) event { return event{e.Key, e.Time, e.Body, e.Partition, e.Offset} }

// lines makes the JSON lines of results (rule 23). Each method appends one line, or a part of one, to dst. It belongs to one
// goroutine.
//
// The fields of a line stand in this order: key, ts, a, b, corrected, complete, got, wanted.
type lines struct {
	spec    [2]*projection.Spec
	key     recordKey
	scratch []byte
}

// head begins a line: key, time, and the name of the first side.
func (l *lines) head(dst, key []byte, ts int64) []byte {
	dst = append(dst, `{"key":`...)
	dst = projection.AppendKey(dst, key)
	dst = append(dst, `,"ts":`...)
	dst = strconv.AppendInt(dst, ts, 10)
	return append(dst, `,"a":`...)
}

// pair is a pair; ts is the greater of the two times.
func (l *lines) pair(dst []byte, a, b *event, corrected bool) []byte {
	dst = l.head(dst, a.key, max(a.time, b.time))
	dst = l.spec[core.A].AppendOutput(dst, a.body)
	dst = append(dst, `,"b":`...)
	dst = l.spec[core.B].AppendOutput(dst, b.body)
	return appendTail(dst, corrected)
}

func appendTail(dst []byte, corrected bool) []byte {
	if corrected {
		dst = append(dst, `,"corrected":true`...)
	}
	return append(dst, "}\n"...)
}

// null is the row of an event that has no partner.
func (l *lines) null(dst []byte, side core.Side, e *event) []byte {
	dst = l.head(dst, e.key, e.time)
	if side == core.A {
		dst = l.spec[core.A].AppendOutput(dst, e.body)
		return append(dst, ",\"b\":null}\n"...)
	}
	dst = append(dst, `null,"b":`...)
	dst = l.spec[core.B].AppendOutput(dst, e.body)
	return append(dst, "}\n"...)
}

// tombstone takes back the null row of an A, under the key that row has.
func (l *lines) tombstone(dst []byte, a *event) []byte {
	var out [2][]byte
	if l.key.field != nil {
		l.scratch = l.spec[core.A].AppendOutput(l.scratch[:0], a.body)
		out[core.A] = l.scratch
	}
	dst = append(dst, `{"key":`...)
	dst = l.key.of(dst, a.key, out)
	return append(dst, ",\"retract\":true}\n"...)
}

// groupHead is a group's line up to its first B; last is the greatest time of its B.
func (l *lines) groupHead(dst []byte, a *event, last int64) []byte {
	dst = l.head(dst, a.key, max(a.time, last))
	dst = l.spec[core.A].AppendOutput(dst, a.body)
	return append(dst, `,"b":[`...)
}

// groupItem is the nth B of a group, from 0.
func (l *lines) groupItem(dst []byte, n int, body []byte) []byte {
	if n > 0 {
		dst = append(dst, ',')
	}
	return l.spec[core.B].AppendOutput(dst, body)
}

// groupTail is the rest of a group's line.
func (l *lines) groupTail(dst []byte, g *core.Group) []byte {
	dst = append(dst, ']')
	if g.Kind&core.Corrected != 0 {
		dst = append(dst, `,"corrected":true`...)
	}
	if g.Complete {
		return append(dst, ",\"complete\":true}\n"...)
	}
	dst = append(dst, `,"complete":false,"got":`...)
	dst = strconv.AppendInt(dst, int64(len(g.B)), 10)
	if g.Wanted > 0 {
		dst = append(dst, `,"wanted":`...)
		dst = strconv.AppendUint(dst, uint64(g.Wanted), 10)
	}
	return append(dst, "}\n"...)
}
