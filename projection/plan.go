package projection

// plan is all the paths of one spec, laid over each other as a tree, so that one pass over a document finds
// every value asked for. It is immutable and shared by all decoders.
type plan struct {
	nodes  []*node // nodes[0] is the document itself
	depth  int     // containers that the longest path goes through
	wanted int     // nodes that a path ends at
}

// node is one place in a document that some path ends at or goes through.
type node struct {
	id     int
	parent *node
	wanted bool // a path ends here
	names  []nameChild
	items  []itemChild
}

type nameChild struct {
	name string
	node *node
}

type itemChild struct {
	index int
	node  *node
}

func newPlan() *plan { return &plan{nodes: []*node{{}}} }

// add puts a path into the plan and gives back the node at its end.
func (p *plan) add(path Path) *node {
	at := p.nodes[0]
	for _, s := range path.steps {
		next := at.child(s)
		if next == nil {
			next = &node{id: len(p.nodes), parent: at}
			p.nodes = append(p.nodes, next)
			if s.index < 0 {
				at.names = append(at.names, nameChild{s.name, next})
			} else {
				at.items = append(at.items, itemChild{s.index, next})
			}
		}
		at = next
	}
	if !at.wanted {
		at.wanted = true
		p.wanted++
	}
	p.depth = max(p.depth, len(path.steps))
	return at
}

func (n *node) child(s step) *node {
	if s.index >= 0 {
		return n.item(s.index)
	}
	return n.named([]byte(s.name))
}

func (n *node) item(index int) *node {
	for i := range n.items {
		if n.items[i].index == index {
			return n.items[i].node
		}
	}
	return nil
}

// named finds the child of a decoded name. Specs ask for a handful of names: comparing lengths first
// makes this cheaper than hashing.
func (n *node) named(name []byte) *node {
	for i := range n.names {
		if c := &n.names[i]; len(c.name) == len(name) && c.name == string(name) {
			return c.node
		}
	}
	return nil
}
