package projection

import "slices"

// Names lists the output names of the kept fields in their order; none if the whole value is kept. The caller owns them.
func (s *Spec) Names() []string { return slices.Clone(s.names) }

// Member finds one member of JSON objects by its name. It belongs to one goroutine.
type Member struct {
	scanner *scanner
	node    *node
}

// NewMember makes a Member for objects like those that Spec.AppendOutput prints.
func NewMember(name string) *Member {
	p := newPlan()
	at := p.add(Path{steps: []step{{name: name, index: -1}}})
	return &Member{newScanner(p), at}
}

// Find gives the member's value as it is written in an object, the first of several; nil if it is null or there is none, or
// if object is no JSON object. It points into object.
func (m *Member) Find(object []byte) []byte {
	if !m.scanner.scan(object) {
		return nil
	}
	at := m.scanner.spans[m.node.id]
	if !at.found() || object[at.from] == 'n' {
		return nil
	}
	return object[at.from:at.to]
}
