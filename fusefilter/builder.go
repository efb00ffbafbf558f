package fusefilter

import (
	"errors"
	"fmt"
	"time"

	"github.com/FastFilter/xorfilter"
)

// ErrBuild is in the chain of every error of a build. The bucket that the filter was for stays *maybe*,
// and the build may be tried again.
var ErrBuild = errors.New("fusefilter: the filter could not be built")

// Builder builds filters and lanes and keeps its working memory (25 to 28 bytes a key of the largest filter, 45 to 50
// of the largest lane) for the next. The zero value is ready. One goroutine at a time.
type Builder struct {
	// Before, if set, is called before each build with what is to be built; an error it returns is the
	// build's result. It is for tests of what happens when a build fails.
	Before func(kind Kind, keys int) error

	fuse    xorfilter.BinaryFuseBuilder
	peel    peeling
	half    []uint64 // keys of one of two lanes
	cells8  []uint8  // of the lane being built
	cells16 []uint16
	cells32 []uint32
}

// Build makes a filter over the hashes, which are distinct. The slice may be reordered; the filter keeps
// nothing of it and shares no memory with the builder. Every hash is asked for before the filter is handed
// over, so a filter that exists has no false negatives; that is one more read of three cells a hash.
//
// No hashes make a filter that says *no* to everything; a kind that is not in RAM (None, Bloom) makes one that
// says *maybe* to everything and takes no memory.
func (b *Builder) Build(kind Kind, hashes []uint64) (*Filter, error) {
	start := time.Now()
	f := &Filter{kind: kind, keys: len(hashes)}
	if b.Before != nil {
		if err := b.Before(kind, len(hashes)); err != nil {
			return nil, fmt.Errorf("%w: %d hashes, %s: %w", ErrBuild, len(hashes), kind, err)
		}
	}
	if len(hashes) == 0 {
		return f, nil
	}
	var err error
	switch kind {
	case None, Bloom:
	case Fuse8:
		err = build(&f.t8, &b.fuse, hashes)
	case Fuse16:
		err = build(&f.t16, &b.fuse, hashes)
	case Fuse32:
		err = build(&f.t32, &b.fuse, hashes)
	default:
		err = errors.New("no such kind")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %d hashes, %s: %w", ErrBuild, len(hashes), kind, err)
	}
	f.took = time.Since(start)
	return f, nil
}

func build[T fingerprint](t *table[T], b *xorfilter.BinaryFuseBuilder, hashes []uint64) error {
	lib, err := xorfilter.BuildBinaryFuse[T](b, hashes)
	if err != nil {
		return err
	}
	t.take(&lib)
	var wrong T // branch-free: the bits that any hash left over
	for _, h := range hashes {
		wrong |= t.residue(mix(h, t.seed))
	}
	if wrong != 0 {
		return errors.New("it denies a hash it was built with")
	}
	return nil
}
