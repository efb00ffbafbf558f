package pipeline

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/FastFilter/xorfilter"
	"github.com/zeebo/xxh3"

	"joinbench/loadgen"
)

const (
	// unitProbes is how many B keys the unit is measured over: far more than any cache of branches can learn.
	unitProbes = 1 << 20
	unitRounds = 7
)

// measureUnit measures what makes machines comparable: xxh3 of the key bytes plus one Contains of one plain 16-bit
// binary fuse filter over the A keys that wait when measuring starts, that is when B from asks, for each B key in turn.
// It returns the time of each round in ns a key. Its memory is given back before it returns.
func measureUnit(g *loadgen.Gen, from int64) ([]float64, error) {
	defer debug.FreeOSMemory()
	hashes := make([]uint64, 0, g.Config().Pending)
	key := []byte{'s'}
	g.Waiting(from, func(i int64) {
		key = g.AppendAKey(key[:1], i)
		hashes = append(hashes, xxh3.Hash(key))
	})
	if len(hashes) == 0 {
		hashes = append(hashes, 1)
	}
	filter, err := xorfilter.NewBinaryFuse[uint16](hashes)
	if err != nil {
		return nil, fmt.Errorf("measuring the unit: %w", err)
	}
	n := min(g.BCount()-from, unitProbes)
	keys, ends := make([]byte, 0, n*(int64(g.Config().KeyBytes)+1)), make([]uint32, 0, n)
	for j := range n {
		keys = g.AppendBKey(append(keys, 's'), from+j)
		ends = append(ends, uint32(len(keys)))
	}
	var rounds []float64
	found := 0
	for range unitRounds {
		start, at := time.Now(), uint32(0)
		for _, end := range ends {
			if filter.Contains(xxh3.Hash(keys[at:end])) {
				found++
			}
			at = end
		}
		rounds = append(rounds, float64(time.Since(start))/float64(n))
	}
	runtime.KeepAlive(found) // or the compiler drops what is measured
	return rounds, nil
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
