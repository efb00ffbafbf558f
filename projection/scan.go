package projection

// maxDepth is how deep objects and arrays may nest; the same bound as encoding/json's. What is open is kept
// as one bit a level, so no document can overflow a stack.
const maxDepth = 10000

// span is where a value lies in the document: text[from:to]. from < 0: not found.
type span struct{ from, to int }

func (s span) found() bool { return s.from >= 0 }

// scanner reads one document at a time and finds the values that its plan asks for. It belongs to one
// goroutine; the spans are valid until its next document.
type scanner struct {
	plan  *plan
	spans []span // by node id

	// spaced: there was white space between the parts of the document, so that values need compacting.
	spaced bool

	missing int                          // what scanLoose still looks for
	live    []*node                      // live[d]: the node of the container at depth d, while paths go on in it
	index   []int                        // index[d]: the element at hand of the array at depth d, if live
	objects [(maxDepth + 64) / 64]uint64 // bit d: the container at depth d is an object
	name    []byte                       // a member name with its escapes decoded
}

func newScanner(p *plan) *scanner {
	return &scanner{
		plan:  p,
		spans: make([]span, len(p.nodes)),
		live:  make([]*node, p.depth+2),
		index: make([]int, p.depth+2),
	}
}

func (s *scanner) reset() {
	for i := range s.spans {
		s.spans[i] = span{-1, -1}
	}
	s.spaced = false
}

// scan checks that text is one whole valid JSON value and notes the span of each value of the plan, in one
// pass. Of members of one name the first counts, at every level. After false the spans mean nothing.
//
// The containers that the plan goes into are always the outermost ones, without a gap: live[1..liveDepth]. So
// below them, where most of a document lies, following the plan costs one comparison a value.
func (s *scanner) scan(text []byte) bool {
	s.reset()
	at := s.plan.nodes[0] // the node of the value that comes next, nil if nobody asks for it
	depth, liveDepth := 0, 0
	i := 0
value:
	if i = s.gap(text, i); i >= len(text) {
		return false
	}
	if at != nil {
		s.spans[at.id].from = i
	}
	if c := text[i]; c != '{' && c != '[' {
		if i = skipScalar(text, i); i == broken {
			return false
		}
		goto ended
	} else {
		if depth++; depth > maxDepth {
			return false
		}
		s.open(depth, c == '{')
		if at != nil {
			liveDepth = depth
			s.live[depth], s.index[depth] = at, 0
		}
		if i = s.gap(text, i+1); i >= len(text) {
			return false
		}
		if text[i] == c+2 { // "}" and "]" come two after their openers
			goto closed
		}
		if c == '{' {
			goto member
		}
		if at != nil {
			at = at.item(0)
		}
		goto value
	}

member:
	{
		if text[i] != '"' {
			return false
		}
		start := i + 1
		end, escaped := skipString(text, start)
		if end == broken {
			return false
		}
		if i = s.gap(text, end); i >= len(text) || text[i] != ':' {
			return false
		}
		i++
		at = nil
		if depth == liveDepth {
			at = s.member(s.live[depth], text[start:end-1], escaped)
		}
		goto value
	}

closed:
	i++
	at = nil
	if depth == liveDepth {
		at = s.live[depth]
		liveDepth--
	}
	depth--

ended: // the value of at ends at i
	if at != nil {
		s.spans[at.id].to = i
	}
	i = s.gap(text, i)
	if depth == 0 {
		return i == len(text)
	}
	if i >= len(text) {
		return false
	}
	if isObject := s.isObject(depth); text[i] == ',' {
		if isObject {
			if i = s.gap(text, i+1); i >= len(text) {
				return false
			}
			goto member
		}
		i++
		at = nil
		if depth == liveDepth {
			s.index[depth]++
			at = s.live[depth].item(s.index[depth])
		}
		goto value
	} else if (isObject && text[i] == '}') || (!isObject && text[i] == ']') {
		goto closed
	}
	return false
}

// gap goes over white space between the parts of a document.
func (s *scanner) gap(text []byte, i int) int {
	if i < len(text) && text[i] > ' ' {
		return i
	}
	return s.spaces(text, i)
}

func (s *scanner) spaces(text []byte, i int) int {
	end := skipSpace(text, i)
	if end > i {
		s.spaced = true
	}
	return end
}

func (s *scanner) open(depth int, object bool) {
	bit := uint64(1) << (depth & 63)
	if object {
		s.objects[depth>>6] |= bit
	} else {
		s.objects[depth>>6] &^= bit
	}
}

func (s *scanner) isObject(depth int) bool { return s.objects[depth>>6]>>(depth&63)&1 != 0 }

// member gives the node of a member of the container at, nil if no path goes there or if a member of that
// name came before.
func (s *scanner) member(at *node, name []byte, escaped bool) *node {
	if escaped {
		s.name = appendUnquoted(s.name[:0], name)
		name = s.name
	}
	if child := at.named(name); child != nil && !s.spans[child.id].found() {
		return child
	}
	return nil
}
