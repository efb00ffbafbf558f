package pipeline

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"joinbench/core"
	"joinbench/kafka"
	"joinbench/projection"
)

// bufferedLimit is how many bytes of one batch wait for their acknowledgement before the batch waits for them: a hot key has a
// million pairs (rule 20).
const bufferedLimit = 32 << 20

// Headers of what is written. A result has one for each event that it is made of, topic/partition/offset, under the name of the side;
// so a group has several of b.
const (
	headerSource = "source"
	headerReason = "reason"
	headerBytes  = "bytes"
	oversize     = "oversize" // reason
)

// lostResults is Results for what goes to the dead-letter topic, if there is one: the A of these are not in their topic any more, and
// their bodies are left out. It is not counted as output.
func (s *kafkaSink) lostResults(out *core.Output) error {
	s.lost = true
	defer func() { s.lost = false }()
	return s.Results(out)
}

// row implements outlet.
func (s *kafkaSink) row(r *row) error {
	line := bytes.TrimSuffix(r.line, []byte("\n"))
	size := s.over + len(line)
	s.over = 0
	at, err := r.time()
	if err != nil {
		return err
	}
	key := s.keyOf(r)
	rec, err := s.newRecord(r)
	if err != nil {
		return err
	}
	to := toResults
	if s.lost {
		to = toDead
		rec.Headers = append(rec.Headers, kafka.Header{Key: headerReason, Value: []byte(reasonDeleted)})
	}
	rec.Topic, rec.Timestamp = s.topics[to], time.UnixMilli(at)
	around := len(key)
	for _, h := range rec.Headers {
		around += headerOverhead + len(h.Key) + len(h.Value)
	}
	if size+around > s.producer.MaxBytes(rec.Topic) {
		return s.tooLarge(rec, key, size)
	}
	rec.Key = s.slab.copy(key)
	if !r.tombstone || s.lost {
		rec.Value = s.slab.copy(line)
	}
	if !s.lost {
		s.book.outputs++
	}
	return s.send(rec, size+around)
}

const headerOverhead = 8 // of a header, beside its name and value

// piece implements outlet: the beginning of a group's line is kept, unless there is no topic for so long a line.
func (s *kafkaSink) piece(line []byte) ([]byte, error) {
	if s.over == 0 && len(line) <= s.producer.MaxBytes(s.topics[toResults]) {
		return line, nil
	}
	s.over += len(line)
	return line[:0], nil
}

// newRecord has the headers of a row.
func (s *kafkaSink) newRecord(r *row) (*kafka.Record, error) {
	n := 2
	if r.group != nil {
		n += len(r.group.B)
	}
	if s.lost {
		n++
	}
	rec := s.slab.record(n + 2) // two more if it is too large
	for side, e := range [2]*event{r.a, r.b} {
		if e != nil {
			s.source(rec, core.Side(side).String(), core.Side(side), e)
		}
	}
	if r.group == nil {
		return rec, nil
	}
	for _, raw := range r.group.B {
		e, err := parseEvent(raw)
		if err != nil {
			return nil, err
		}
		s.source(rec, core.B.String(), core.B, &e)
	}
	return rec, nil
}

// source adds a header that names an event.
func (s *kafkaSink) source(rec *kafka.Record, name string, side core.Side, e *event) {
	s.text = append(s.text[:0], s.inputs[side]...)
	s.text = strconv.AppendInt(append(s.text, '/'), int64(e.partition), 10)
	s.text = strconv.AppendInt(append(s.text, '/'), e.offset, 10)
	rec.Headers = append(rec.Headers, kafka.Header{Key: name, Value: s.slab.copy(s.text)})
}

// keyOf is the record's key: the bytes of the join key, or of the field that output.key names, a string without its quotes. It is
// valid until the next row. A row of an event without a key has none.
func (s *kafkaSink) keyOf(r *row) []byte {
	e := r.a
	if e == nil {
		e = r.b
	}
	if k := &s.lines.key; k.field != nil {
		of := [2]*event{r.a, r.b}[k.side]
		if of != nil {
			s.object = s.spec[k.side].AppendOutput(s.object[:0], of.body)
			if v := k.field.Find(s.object); v != nil {
				return unquoted(v)
			}
		}
	}
	if len(e.key) == 0 {
		return nil
	}
	return e.key[1:]
}

// unquoted is a JSON string's own bytes; anything else is what it is.
func unquoted(v []byte) []byte {
	if v[0] != '"' {
		return v
	}
	if bytes.IndexByte(v, '\\') < 0 {
		return v[1 : len(v)-1]
	}
	var text string
	if json.Unmarshal(v, &text) != nil {
		return v
	}
	return []byte(text)
}

// tooLarge is for a result that no broker takes: it goes to the dead-letter topic without its body (rule 23).
func (s *kafkaSink) tooLarge(rec *kafka.Record, key []byte, size int) error {
	s.book.oversize++
	s.log.Warn("a result is larger than the topic takes (max.message.bytes); it goes to topics.dead without its body, if there is one",
		"topic", rec.Topic, "bytes", size, "limit", s.producer.MaxBytes(rec.Topic), "key", string(key[:min(len(key), 100)]))
	if !s.wants(toDead) {
		return nil
	}
	rec.Topic, rec.Key = s.topics[toDead], s.slab.copy(key)
	return s.withoutBody(rec, oversize, size)
}

// withoutBody sends a record to the dead-letter topic that says why its value is left out, and as many of its headers and of its key as
// the topic takes.
func (s *kafkaSink) withoutBody(rec *kafka.Record, reason string, size int) error {
	limit := s.producer.MaxBytes(rec.Topic) / 2
	rec.Key = rec.Key[:min(len(rec.Key), limit)]
	total := 0
	for i, h := range rec.Headers {
		if total += headerOverhead + len(h.Key) + len(h.Value); total > limit {
			rec.Headers = rec.Headers[:i]
			break
		}
	}
	rec.Headers = append(rec.Headers, kafka.Header{Key: headerReason, Value: []byte(reason)},
		kafka.Header{Key: headerBytes, Value: strconv.AppendInt(nil, int64(size), 10)})
	rec.Value = []byte{}
	return s.send(rec, len(rec.Key)+total)
}

// wants implements outlet.
func (s *kafkaSink) wants(to int) bool { return s.topics[to] != "" }

// side implements outlet: the record as it came, and in headers where it came from and why.
func (s *kafkaSink) side(to int, side core.Side, from *projection.Record, reason string) error {
	rec := s.slab.record(3)
	rec.Topic, rec.Timestamp = s.topics[to], time.UnixMilli(max(from.Timestamp, 0))
	s.source(rec, headerSource, side, &event{partition: from.Partition, offset: from.Offset})
	size := len(from.Key) + len(from.Value)
	if size+sideHeaders > s.producer.MaxBytes(rec.Topic) {
		rec.Key = s.slab.copy(from.Key)
		return s.withoutBody(rec, reason+", "+oversize, size)
	}
	rec.Headers = append(rec.Headers, kafka.Header{Key: headerReason, Value: s.slab.copy([]byte(reason))})
	rec.Key, rec.Value = s.slab.copy(from.Key), s.slab.copy(from.Value)
	return s.send(rec, size)
}

// sideHeaders is more than the headers of such a record take: a topic's name has 249 characters at most.
const sideHeaders = 400

// send hands a record to the producer.
func (s *kafkaSink) send(rec *kafka.Record, size int) error {
	if err := s.producer.Begin(); err != nil {
		return s.aborted(err)
	}
	s.producer.Produce(s.ctx, rec)
	if s.buffered += size; s.buffered < bufferedLimit {
		return nil
	}
	if err := s.producer.Flush(s.ctx); err != nil {
		return s.aborted(err)
	}
	s.slab.reset()
	s.buffered = 0
	return nil
}
