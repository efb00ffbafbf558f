//go:build !cgo

package buckets

import "errors"

// Shared stands for what the RocksDB backends of a process have in common.
type Shared struct{}

// SharedOptions are for the stores of a process.
type SharedOptions struct {
	Memory int64
	Tasks  int
	Bloom  bool
}

// NewShared returns a placeholder.
func NewShared(SharedOptions) *Shared { return &Shared{} }

// Close does nothing.
func (*Shared) Close() {}

var errNoCgo = errors.New("this binary was built without cgo, so RocksDB is not in it: build it with `make`, which sets CGO_ENABLED=1 and the paths")

// OpenRocks fails: the build has no RocksDB.
func OpenRocks(string, *Shared) (Backend, error) { return nil, errNoCgo }

// Build says that no RocksDB is linked in.
func Build() (version string, assertions bool) { return "none (built without cgo)", false }
