package baseline

import (
	"errors"

	"joinbench/core"
)

// errNoChangelog is what the joiners of this package say to a sink that is a core.Ledger.
var errNoChangelog = errors.New("a baseline keeps no changelog")

// Null is a core.Joiner that counts what it is given and finds nothing. What a run with it takes is what generator,
// decoders and gate take.
type Null struct{ stats core.TaskStats }

// NewNull makes one.
func NewNull() *Null { return &Null{} }

// Begin implements core.Joiner.
func (n *Null) Begin() {}

// Store implements core.Joiner.
func (n *Null) Store(a []core.Rows) error {
	n.stats.Stored += count(a)
	return nil
}

// Ask implements core.Joiner.
func (n *Null) Ask(b []core.Rows) error {
	n.stats.Probes += count(b)
	return nil
}

func count(list []core.Rows) (rows uint64) {
	for _, r := range list {
		rows += uint64(len(r.Index()))
	}
	return rows
}

// Release implements core.Joiner.
func (n *Null) Release([2]core.Limits) error { return nil }

// More implements core.Joiner.
func (n *Null) More() bool { return false }

// GoOn implements core.Joiner.
func (n *Null) GoOn() error { return nil }

// Found implements core.Joiner.
func (n *Null) Found() core.Found { return core.Found{} }

// Undo implements core.Joiner.
func (n *Null) Undo() {}

// Changes implements core.Joiner: a state that is nowhere has no changelog.
func (n *Null) Changes([]core.Change) ([]core.Change, error) { return nil, errNoChangelog }

// Apply implements core.Joiner.
func (n *Null) Apply([]core.Change, [2]core.Limits) error { return errNoChangelog }

// Commit implements core.Joiner.
func (n *Null) Commit(uint64, []byte) error { return nil }

// WriteCommit implements core.Joiner.
func (n *Null) WriteCommit([]byte) error { return nil }

// Maintain implements core.Joiner.
func (n *Null) Maintain([2]core.Bounds) error { return nil }

// Quiesce implements core.Joiner.
func (n *Null) Quiesce() error { return nil }

// MarkDrained implements core.Joiner.
func (n *Null) MarkDrained() error { return nil }

// Close implements core.Joiner.
func (n *Null) Close(bool) error { return nil }

// Stats implements core.Joiner.
func (n *Null) Stats() *core.TaskStats { return &n.stats }

// Levels implements core.Joiner.
func (n *Null) Levels(bool) core.Levels { return core.Levels{} }

// Drops implements core.Joiner.
func (n *Null) Drops() []core.Drop { return nil }
