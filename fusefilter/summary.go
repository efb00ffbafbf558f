package fusefilter

import (
	"errors"
	"fmt"
	"math/bits"
)

// Cover names the buckets a summary is to be built over, as they are at this moment. It is a value: the
// task takes it from its Set and hands it to the goroutine that builds. When the summary is installed
// later, a slot whose bucket has changed in between is not covered: its keys are not in the summary, and
// a *no* for them would be wrong.
type Cover struct {
	set   *Set // only compared, never read
	mask  uint64
	epoch [MaxSlots]uint64
	keys  int // of the largest bucket covered
}

// Mask has the bits of the slots to cover. It may be 0; then there is nothing to build.
func (c *Cover) Mask() uint64 { return c.mask }

// Summary is one filter over the keys of several sealed buckets. It is immutable and owns its memory.
type Summary struct {
	filter *Filter
	cover  Cover
}

// Filter is the summary's filter, for its size and build time.
func (s *Summary) Filter() *Filter { return s.filter }

// BuildSummary makes a summary over the hashes, which are distinct and are the union of *all* hashes of
// every bucket in the cover. It runs beside the hot path, in the goroutine of the builder; the slice may
// be reordered and is not kept. Errors are those of Build, and a union that is smaller than one of the
// buckets it is to cover.
func (b *Builder) BuildSummary(kind Kind, union []uint64, cover Cover) (*Summary, error) {
	switch {
	case !kind.InRAM():
		return nil, fmt.Errorf("%w: a summary needs a kind that filters", ErrBuild)
	case cover.mask == 0:
		return nil, fmt.Errorf("%w: a summary needs sealed buckets to cover", ErrBuild)
	case len(union) < cover.keys:
		return nil, fmt.Errorf("%w: a summary of %d hashes cannot cover a bucket of %d", ErrBuild, len(union), cover.keys)
	}
	f, err := b.Build(kind, union)
	if err != nil {
		return nil, err
	}
	if f.keys == 0 {
		return nil, fmt.Errorf("%w: %w", ErrBuild, errors.New("a summary needs hashes"))
	}
	return &Summary{filter: f, cover: cover}, nil
}

// Cover takes down those slots of the mask that a summary could cover now: the ones with a filter, whose
// buckets are sealed and will get no more keys.
func (s *Set) Cover(mask uint64) Cover {
	c := Cover{set: s, mask: mask & s.filtered, epoch: s.epoch}
	for m := c.mask; m != 0; m &= m - 1 {
		c.keys = max(c.keys, s.filters[bits.TrailingZeros64(m)].keys)
	}
	return c
}

// InstallSummary puts the summary before the filters in place of the one before. It returns the slots that
// it covers: those of its cover whose bucket is still the same. 0 means that it was not installed: none is
// left, the set was made without a summary, or the cover was taken from another set.
func (s *Set) InstallSummary(sum *Summary) uint64 {
	if !s.summarise || sum.cover.set != s {
		return 0
	}
	covered := sum.cover.mask
	for m := covered; m != 0; m &= m - 1 {
		slot := bits.TrailingZeros64(m)
		if sum.cover.epoch[slot] != s.epoch[slot] {
			covered &^= 1 << slot
		}
	}
	if covered != 0 {
		s.sum, s.covered = sum.filter, covered
	}
	return covered
}

// SetSummary switches the summary on or off. Off drops the installed one.
func (s *Set) SetSummary(on bool) {
	s.summarise = on
	if !on {
		s.sum, s.covered = nil, 0
	}
}

// Summary is the filter of the installed summary and the slots it covers, nil and 0 without one.
func (s *Set) Summary() (*Filter, uint64) { return s.sum, s.covered }
