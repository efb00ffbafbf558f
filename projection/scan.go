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

	known   knownNames
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
	s.known.begin()
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
	inObject := false // what the container at depth is
	i := 0
value:
	if i = s.gap(text, i); i >= len(text) {
		return false
	}
	if at != nil {
		s.spans[at.id].from = i
	}
	switch c := text[i]; c {
	case '"':
		i, _ = skipString(text, i+1)
	case '{', '[':
		if depth++; depth > maxDepth {
			return false
		}
		inObject = c == '{'
		s.open(depth, inObject)
		if at != nil {
			liveDepth = depth
			s.live[depth], s.index[depth] = at, 0
			at = at.item(0) // of an array
		}
		if i = s.gap(text, i+1); i >= len(text) {
			return false
		}
		if text[i] == c+2 { // "}" and "]" come two after their openers
			goto closed
		}
		if inObject {
			goto member
		}
		goto value
	default:
		i = skipScalar(text, i)
	}
	if i == broken {
		return false
	}

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
	if text[i] != ',' {
		if (inObject && text[i] == '}') || (!inObject && text[i] == ']') {
			goto closed
		}
		return false
	}
	if i = s.gap(text, i+1); i >= len(text) {
		return false
	}
	if !inObject {
		at = nil
		if depth == liveDepth {
			s.index[depth]++
			at = s.live[depth].item(s.index[depth])
		}
		goto value
	}

member: // a member's name begins at i
	{
		var parent *node
		if depth == liveDepth {
			parent = s.live[depth]
		}
		var end int
		if at, end = s.known.guess(text, i, parent); end == broken {
			if at, end = s.memberName(text, i, parent); end == broken {
				return false
			}
		}
		if at != nil && s.spans[at.id].found() {
			at = nil // not the first of its name
		}
		i = end
		goto value
	}

closed: // the container at depth ends with the bracket at i
	i++
	at = nil
	if depth == liveDepth {
		at = s.live[depth]
		liveDepth--
	}
	depth--
	inObject = s.isObject(depth)
	goto ended
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

// memberName reads the name at i and the colon after it. It gives the node of that name in parent (which may be
// nil), and the position after the colon or broken.
func (s *scanner) memberName(text []byte, i int, parent *node) (child *node, end int) {
	if text[i] != '"' {
		return nil, broken
	}
	start := i
	i, escaped := skipString(text, start+1)
	if i == broken {
		return nil, broken
	}
	child = s.child(parent, text[start+1:i-1], escaped)
	if !escaped && i < len(text) && text[i] == ':' {
		s.known.learn(text[start:i+1], parent, child)
		return child, i + 1
	}
	if i = s.gap(text, i); i >= len(text) || text[i] != ':' {
		return nil, broken
	}
	return child, i + 1
}

// child gives the node of a member name as it stands in the document; nil if no path goes there.
func (s *scanner) child(parent *node, name []byte, escaped bool) *node {
	if parent == nil {
		return nil
	}
	if escaped {
		s.name = appendUnquoted(s.name[:0], name)
		name = s.name
	}
	return parent.named(name)
}
