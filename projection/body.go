package projection

// Bodies. With store: projection a body is the JSON text that an output line prints for the side, so pending
// entries outlive a change of the configuration. With store: full it is the whole value, and the kept fields
// are taken out of it when it is printed.

// wholeBody says that bodies are whole values.
func (s *Spec) wholeBody() bool { return s.full || len(s.keep) == 0 }

// appendBody appends the body of the record that was read last.
func (d *Decoder) appendBody(dst, value []byte) []byte {
	switch {
	case !d.spec.wholeBody():
		return d.scanner.appendKept(dst, value, d.spec.keep)
	case d.valid:
		return d.scanner.appendValue(dst, value, d.scanner.spans[0])
	case d.spec.full:
		return append(dst, value...)
	}
	return appendQuoted(dst, value) // lenient, and no JSON: text is all that it is
}

// appendKept appends an object of the kept fields that were found, in the order of the spec.
func (s *scanner) appendKept(dst, value []byte, keep []keepField) []byte {
	dst = append(dst, '{')
	first := len(dst)
	for i := range keep {
		span := s.spans[keep[i].node.id]
		if !span.found() || span.from == span.to {
			continue
		}
		if len(dst) > first {
			dst = append(dst, ',')
		}
		dst = s.appendValue(append(dst, keep[i].member...), value, span)
	}
	return append(dst, '}')
}

// appendValue appends a valid value as written, without the white space between its parts.
func (s *scanner) appendValue(dst, text []byte, at span) []byte {
	if c := text[at.from]; (c == '{' || c == '[') && s.spaced {
		return appendCompact(dst, text[at.from:at.to])
	}
	return append(dst, text[at.from:at.to]...)
}

// appendCompact appends valid JSON without the white space between its parts.
func appendCompact(dst, text []byte) []byte {
	from := 0
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			i, _ = skipString(text, i+1)
		case c <= ' ':
			dst = append(dst, text[from:i]...)
			i = skipSpace(text, i)
			from = i
		default:
			i++
		}
	}
	return append(dst, text[from:]...)
}

// bodyReader prints bodies of full events.
type bodyReader struct{ scanner, checker *scanner }

func (s *Spec) newBodyReader() *bodyReader {
	return &bodyReader{scanner: newScanner(s.keepPlan), checker: newScanner(newPlan())}
}

// AppendOutput appends to dst the JSON value that stands for this side ("a" or "b") in an output line, on one
// line, from a body that a decoder of such a spec stored. It works for bodies of a lenient and of a strict
// spec. Any goroutine may call it.
func (s *Spec) AppendOutput(dst, body []byte) []byte {
	if !s.full {
		return append(dst, body...)
	}
	r := s.readers.Get().(*bodyReader)
	defer s.readers.Put(r)
	valid := r.scanner.scan(body)
	if len(s.keepFull) == 0 {
		if !valid {
			return appendQuoted(dst, body)
		}
		return r.scanner.appendValue(dst, body, r.scanner.spans[0])
	}
	if !valid {
		r.scanner.scanLoose(body)
		r.scanner.dropBroken(body, s.keepFull, r.checker)
	}
	return r.scanner.appendKept(dst, body, s.keepFull)
}
