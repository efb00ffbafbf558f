package projection

// This file is the lenient scan. It goes only as far as it must to find what the plan asks for, and what it
// passes on the way is skipped by quotes and brackets, unchecked. What is taken out must be checked after it.

// scanLoose finds the values of the plan as scan does, without judging the rest: their spans may hold
// anything. It ends early when all are found. It also ends at the first place where it cannot go on; then
// absent tells what is missing from what lies beyond.
func (s *scanner) scanLoose(text []byte) {
	s.reset()
	s.missing = s.plan.wanted
	s.looseValue(text, skipSpace(text, 0), s.plan.nodes[0])
}

// looseValue finds what lies in the value at i; end is the position after it, or broken. It calls itself only
// along paths of the plan, so never deeper than those are long.
func (s *scanner) looseValue(text []byte, i int, at *node) (end int) {
	if i >= len(text) {
		return broken
	}
	s.spans[at.id].from = i
	switch c := text[i]; {
	case c == '{' && len(at.names) > 0:
		end = s.looseObject(text, i+1, at)
	case c == '[' && len(at.items) > 0:
		end = s.looseArray(text, i+1, at)
	default:
		end = skipLoose(text, i)
	}
	if end == broken {
		s.spans[at.id].from = broken
		return broken
	}
	s.spans[at.id].to = end
	if at.wanted {
		s.missing--
	}
	return end
}

// looseObject starts after the brace. With nothing missing any more it stops where it is: nobody needs to know
// where the objects around end, or they would be missing.
func (s *scanner) looseObject(text []byte, i int, at *node) (end int) {
	if i = skipSpace(text, i); i < len(text) && text[i] == '}' {
		return i + 1
	}
	for i < len(text) && text[i] == '"' {
		child, end := s.known.guess(text, i, at)
		if end == broken {
			if child, end = s.memberName(text, i, at); end == broken {
				child, end = nil, skipLooseName(text, i) // a name that is no string is nobody's
			}
		}
		if end == broken {
			return broken
		}
		i = skipSpace(text, end)
		if child != nil && !s.spans[child.id].found() {
			i = s.looseValue(text, i, child)
		} else {
			i = skipLoose(text, i)
		}
		if i == broken || s.missing == 0 {
			return i
		}
		if i = skipSpace(text, i); i < len(text) && text[i] == '}' {
			return i + 1
		}
		if i >= len(text) || text[i] != ',' {
			return broken
		}
		i = skipSpace(text, i+1)
	}
	return broken
}

// looseArray starts after the bracket.
func (s *scanner) looseArray(text []byte, i int, at *node) (end int) {
	if i = skipSpace(text, i); i < len(text) && text[i] == ']' {
		return i + 1
	}
	for index := 0; i < len(text); index++ {
		if child := at.item(index); child != nil {
			i = s.looseValue(text, i, child)
		} else {
			i = skipLoose(text, i)
		}
		if i == broken || s.missing == 0 {
			return i
		}
		if i = skipSpace(text, i); i < len(text) && text[i] == ']' {
			return i + 1
		}
		if i >= len(text) || text[i] != ',' {
			return broken
		}
		i = skipSpace(text, i+1)
	}
	return broken
}

// absent says that the document surely has no value for a node that scanLoose did not find: the innermost
// value around it that was found has come to its end, and is a valid one if it is a scalar.
func (s *scanner) absent(text []byte, at *node) bool {
	for at = at.parent; at != nil; at = at.parent {
		if around := s.spans[at.id]; around.found() {
			return opensContainer(text, around) || validScalar(text, around)
		}
	}
	return false
}

func opensContainer(text []byte, at span) bool {
	return at.from < at.to && (text[at.from] == '{' || text[at.from] == '[')
}

func validScalar(text []byte, at span) bool {
	return at.from < at.to && skipScalar(text[:at.to], at.from) == at.to
}

// dropBroken empties, in a loosely read document, the spans of kept fields that are no valid JSON, so that
// nothing invalid is printed. The loose scan does not note white space: what is kept is compacted in any case.
func (s *scanner) dropBroken(text []byte, keep []keepField, checker *scanner) {
	s.spaced = true
	for i := range keep {
		at := &s.spans[keep[i].node.id]
		if at.found() && !validScalar(text, *at) && !checker.scan(text[at.from:at.to]) {
			at.to = at.from
		}
	}
}

// skipLoose goes over a value by its quotes and brackets, of whatever kind these are. A scalar is what lies
// before the next comma, closing bracket or white space; it may be empty.
func skipLoose(text []byte, i int) int {
	open := 0
	for i < len(text) {
		switch c := text[i]; c {
		case '"':
			if i = skipLooseString(text, i+1); i == broken {
				return broken
			}
			if open == 0 {
				return i
			}
			continue
		case '{', '[':
			open++
		case '}', ']':
			if open == 0 {
				return i
			}
			if open--; open == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\n', '\r':
			if open == 0 {
				return i
			}
		}
		i++
	}
	if open > 0 {
		return broken
	}
	return i
}

// skipLooseName starts at the quote of a member name and ends after the colon.
func skipLooseName(text []byte, i int) int {
	if i = skipLooseString(text, i+1); i == broken {
		return broken
	}
	if i = skipSpace(text, i); i >= len(text) || text[i] != ':' {
		return broken
	}
	return i + 1
}

// skipLooseString starts after the opening quote and ends after the next one that is not escaped.
func skipLooseString(text []byte, i int) int {
	for i = skipPlain(text, i); i < len(text); i = skipPlain(text, i) {
		switch text[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
		i++
	}
	return broken
}
