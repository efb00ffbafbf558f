package projection

import (
	"encoding/binary"
	"math/bits"
)

// Documents of one stream name their members in much the same order again and again. So the scanner remembers the
// names it has seen and their order, and guesses the next one: one comparison then stands for finding the end
// of the name, checking it, and looking it up in the plan. And since the place of what follows no longer
// hangs on bytes just read, the processor runs ahead. doc.go has what it saves. After a wrong guess the order is
// taken up again where the name stands in it, so fields that come and go cost little.

const (
	maxKnown = 45  // longest name that is remembered, quotes and colon included: makes knownName one cache line
	maxOrder = 128 // names of a document that are guessed
	lookout  = 8   // how far ahead in the order a name that was not expected yet is looked for

	maxStrikes = 4   // documents in a row most of whose names came unexpected
	restFor    = 200 // documents that are read without guessing then
)

// knownName is a member name that was seen before.
type knownName struct {
	text   [maxKnown]byte // with its quotes and the colon right behind; without escapes, so valid by its bytes alone
	length uint8
	parent *node // the node of the object it is in, nil if no path goes there
	child  *node // its own node in the plan, nil if no path goes there
}

func (n *knownName) is(text []byte, parent *node) bool {
	return n.parent == parent && string(n.text[:n.length]) == string(text)
}

// knownNames is a cache of names, found by hash. Place 0 is never filled.
type knownNames struct {
	names [256]knownName
	order [maxOrder + lookout]uint8 // places of the names as they are expected; none (0) from maxOrder on
	next  int                       // in order; at maxOrder guessing ends

	hits, misses  int // in this document
	strikes, rest int // documents: see maxStrikes and restFor
}

// begin starts a document. Where names come in no order at all a document takes almost twice as long with
// guessing as without; so guessing rests after some such documents in a row.
func (k *knownNames) begin() {
	if k.misses <= k.hits {
		k.strikes = 0
	} else if k.strikes++; k.strikes == maxStrikes {
		k.strikes, k.rest = 0, restFor
		clear(k.order[:])
	}
	k.next, k.hits, k.misses = 0, 0, 0
	if k.rest > 0 {
		k.rest--
		k.next = maxOrder
	}
}

// guess says which name it is that begins at i. end is the position after its colon, or broken if it is not the
// name that is expected.
func (k *knownNames) guess(text []byte, i int, parent *node) (child *node, end int) {
	n := &k.names[k.order[k.next]]
	end = i + int(n.length)
	if n.length == 0 || end > len(text) || !n.is(text[i:end], parent) {
		return nil, broken
	}
	k.next++
	k.hits++
	return n.child, end
}

// learn remembers a name that was not guessed, and its place in the order. name is a valid string without
// escapes, with its quotes, and a colon.
func (k *knownNames) learn(name []byte, parent, child *node) {
	if len(name) > maxKnown || k.next == maxOrder {
		return
	}
	k.misses++
	place := k.place(name, parent)
	if n := &k.names[place]; !n.is(name, parent) {
		n.length = uint8(copy(n.text[:], name))
		n.parent, n.child = parent, child
	}
	for ahead, p := range k.order[k.next : k.next+lookout] {
		if p == place { // those between are left out in this document
			k.next = min(k.next+ahead+1, maxOrder)
			return
		}
	}
	copy(k.order[k.next+1:maxOrder], k.order[k.next:])
	k.order[k.next] = place
	k.next++
}

// place says where a name is, or where to put it: each has two neighbouring places, so that the names of a
// document seldom drive each other out. Its ends and its length tell names apart well enough.
func (k *knownNames) place(name []byte, parent *node) uint8 {
	h := uint64(len(name))
	if parent != nil {
		h += uint64(parent.id+1) << 8
	}
	if len(name) >= 8 {
		h ^= binary.LittleEndian.Uint64(name)
		h = bits.RotateLeft64(h*mixer, 29) ^ binary.LittleEndian.Uint64(name[len(name)-8:])
	} else {
		for _, c := range name {
			h = h<<8 ^ h>>56 ^ uint64(c)
		}
	}
	first := uint8(max(h*mixer>>56, 2)) // never 0, nor beside it
	second := first ^ 1
	if a, b := &k.names[first], &k.names[second]; b.is(name, parent) || (b.length == 0 && a.length > 0 && !a.is(name, parent)) {
		return second
	}
	return first
}

// mixer spreads what it multiplies over the top bits: 2^64 divided by the golden ratio.
const mixer = 0x9e3779b97f4a7c15
