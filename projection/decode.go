package projection

// Decoder turns records into rows. It belongs to one goroutine; it keeps nothing of a record.
type Decoder struct {
	spec    *Spec
	scanner *scanner
	checker *scanner // checks single values of documents that were read loosely
	valid   bool     // the record at hand is one whole valid JSON value
	scratch []byte
	seenNow int64 // wall clock in ms when last read
	again   Rows  // the key of a record that is read again
}

// NewDecoder makes a decoder for one goroutine.
func (s *Spec) NewDecoder() *Decoder {
	return &Decoder{spec: s, scanner: newScanner(s.plan), checker: newScanner(newPlan())}
}

// Append decodes one record into one more row. It never fails: the row's fate says what came of it. Of
// several fates the first of Malformed, BadKey, BadTime, NullKey counts. The record's bytes are copied as far
// as the row needs them, and are not referred to after the return. Append allocates nothing once the
// rows have grown to the size of a batch.
func (d *Decoder) Append(rows *Rows, rec *Record) {
	fate := d.append(rows, rec)
	if d.spec.watches {
		d.noteWatched(rows, rec.Value, fate == Accepted)
	}
}

func (d *Decoder) append(rows *Rows, rec *Record) Fate {
	if rec.Damaged || rec.Value == nil || !d.read(rec) {
		rows.end(Malformed, 0)
		return Malformed
	}
	keys := len(rows.Keys)
	fate := d.appendKey(rows, rec)
	if fate == BadKey {
		rows.end(BadKey, 0)
		return BadKey
	}
	time, ok := d.time(rec)
	if !ok {
		rows.Keys = rows.Keys[:keys]
		rows.end(BadTime, 0)
		return BadTime
	}
	rows.Body = d.appendBody(rows.Body, rec.Value)
	rows.end(fate, time)
	return fate
}

// AppendBodyOf appends the body that Append stores for a record, if that is one with this typed key; false: it is not, or has no
// body under this spec, and nothing is appended. It is for a record that was read before: its time is not judged again.
func (d *Decoder) AppendBodyOf(dst []byte, rec *Record, key []byte) ([]byte, bool) {
	if rec.Damaged || rec.Value == nil || !d.read(rec) {
		return dst, false
	}
	d.again.Reset()
	if d.appendKey(&d.again, rec) != Accepted || string(d.again.Keys) != string(key) {
		return dst, false
	}
	return d.appendBody(dst, rec.Value), true
}

// read finds the values that the spec asks for; false is Malformed.
func (d *Decoder) read(rec *Record) bool {
	s, value := d.spec, rec.Value
	if !s.lenient {
		d.valid = d.scanner.scan(value)
		return d.valid
	}
	d.valid = false
	if s.wholeBody() { // the check that is skipped decides how the body is kept
		if d.valid = d.scanner.scan(value); d.valid {
			return true
		}
	}
	if skipSpace(value, 0) == len(value) {
		return false // no document at all
	}
	d.scanner.scanLoose(value)
	if !d.keySettled(rec) || (s.timeFrom == fromField && !d.settled(value, s.timeNode)) {
		return false
	}
	d.scanner.dropBroken(value, s.keep, d.checker)
	return true
}

// keySettled says whether a loosely read document tells what the key is.
func (d *Decoder) keySettled(rec *Record) bool {
	for _, k := range d.spec.key {
		switch {
		case k.node == nil && rec.Key != nil:
			return true
		case k.node == nil:
		case !d.settled(rec.Value, k.node):
			return false
		case d.scanner.spans[k.node.id].found():
			return true
		}
	}
	return true
}

// settled says that a node's value in a loosely read document is known: it is there and a valid scalar or a
// container (of no use as key and time, valid or not), or it is absent for sure.
func (d *Decoder) settled(value []byte, at *node) bool {
	if at := d.scanner.spans[at.id]; at.found() {
		return opensContainer(value, at) || validScalar(value, at)
	}
	return d.scanner.absent(value, at)
}

// appendKey appends the typed key: fate Accepted, NullKey or BadKey (then nothing is appended).
func (d *Decoder) appendKey(rows *Rows, rec *Record) Fate {
	for _, k := range d.spec.key {
		if k.node == nil {
			if rec.Key == nil {
				continue
			}
			rows.Keys = append(append(rows.Keys, tagString), rec.Key...)
			return Accepted
		}
		span := d.scanner.spans[k.node.id]
		if !span.found() {
			continue
		}
		return d.appendFieldKey(rows, rec.Value, span)
	}
	return NullKey
}

// appendFieldKey appends the typed key of the scalar there.
func (d *Decoder) appendFieldKey(rows *Rows, value []byte, at span) Fate {
	switch value[at.from] {
	case '"':
		rows.Keys = appendUnquoted(append(rows.Keys, tagString), value[at.from+1:at.to-1])
	case 'n':
		return NullKey
	case '{', '[', 't', 'f':
		return BadKey
	default:
		tag := byte(tagNumber)
		if d.spec.keyString {
			tag = tagString
		}
		rows.Keys = append(append(rows.Keys, tag), value[at.from:at.to]...)
	}
	return Accepted
}

// time gives the event time in ms; false is BadTime.
func (d *Decoder) time(rec *Record) (ms int64, ok bool) {
	s := d.spec
	switch s.timeFrom {
	case fromArrival:
		ms = s.now().UnixMilli()
		return ms, ms >= 0 && ms <= maxTime
	case fromRecord:
		ms = rec.Timestamp
		if ms < 0 || ms > maxTime {
			return 0, false
		}
		return ms, !s.checkSkew || !d.aheadOfClock(ms)
	}
	span := d.scanner.spans[s.timeNode.id]
	if !span.found() {
		return 0, false
	}
	if ms, ok = d.parseTime(rec.Value[span.from:span.to]); !ok || !s.checkSkew {
		return ms, ok
	}
	if rec.Timestamp < 0 { // a record without a time of its own
		return ms, !d.aheadOfClock(ms)
	}
	return ms, ms-rec.Timestamp <= s.maxSkew
}

// aheadOfClock says whether ms is more than max_skew ahead of the wall clock. Time does not go back, so the
// clock is read only for times that are ahead of its last reading.
func (d *Decoder) aheadOfClock(ms int64) bool {
	if ms-d.seenNow <= d.spec.maxSkew {
		return false
	}
	d.seenNow = d.spec.now().UnixMilli()
	return ms-d.seenNow > d.spec.maxSkew
}
