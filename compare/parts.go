package compare

import (
	"math"
	"math/rand/v2"

	"joinbench/results"
)

// parts are the logarithms of what each part of the workload took in each run of the two builds that took turns.
//
// The runs of a pair take turns of some milliseconds on one processor, so what other work on the machine does to CPU time it does to both:
// of each part the difference between the two of a pair varies less than a run does. Of it the median over the pairs is taken, as a run or
// a part of it may be disturbed alone, and of the parts the mean without a tenth at either end: what is worse in less than that share of
// parts is not seen.
//
// The tests are permutation tests (Fisher, The Design of Experiments, 1935, §21; Phipson and Smyth, Statistical Applications in
// Genetics and Molecular Biology 9, 2010, for those of drawn permutations) of signed ranks: were the builds equal, the two of a pair could
// change places, so the p is the share of ways to do so that say as much.
type parts struct {
	base, fresh [][]float64 // by run; +Inf where a run does not know a part
}

// mostWays is up to how many ways all are gone through: those of twelve pairs.
const mostWays = 4096

// add takes a pair. It is false, and nothing is taken, where the runs have no such parts in common.
func (p *parts) add(base, fresh *results.Record) bool {
	x, y := base.Cost.CPUParts, fresh.Cost.CPUParts
	if x == nil || y == nil || x.Probes != y.Probes || len(x.NsPerB) != len(y.NsPerB) || len(x.NsPerB) == 0 ||
		len(p.base) > 0 && len(p.base[0]) != len(x.NsPerB) {
		return false
	}
	p.base, p.fresh = append(p.base, logsOf(x)), append(p.fresh, logsOf(y))
	return true
}

func logsOf(c *results.CPUParts) []float64 {
	out := make([]float64, len(c.NsPerB))
	for i, v := range c.NsPerB {
		out[i] = math.Inf(1)
		if v != nil && *v > 0 {
			out[i] = math.Log(*v)
		}
	}
	return out
}

// ways are those in which pairs may have changed places (true). The first is the real one: none has.
func (p *parts) ways(rng *rand.Rand, atLeast int) (out [][]bool) {
	n, drawn := len(p.base), 1+max(atLeast, mostWays)
	if n < 63 && 1<<n <= mostWays {
		drawn = 0
		for w := range 1 << n {
			out = append(out, make([]bool, n))
			for i := range n {
				out[w][i] = w>>i&1 == 1
			}
		}
	}
	for w := range drawn {
		out = append(out, make([]bool, n))
		for i := range n {
			out[w][i] = w > 0 && rng.IntN(2) == 1
		}
	}
	return out
}

// ask says how likely it is that the pairs speak as much for a fresh build that takes more than exp(shift) times the base, and for one that
// takes less, were it just that: over the ways in which they can have changed places.
func (p *parts) ask(ways [][]bool, shift float64) (above, below float64) {
	ranks := p.differences(shift).ranks(len(p.base))
	sum := func(way []bool) (sum float64) {
		for pair, rank := range ranks {
			if way[pair] {
				rank = -rank
			}
			sum += rank
		}
		return sum
	}
	const same = 1e-9 // of sums in another order
	real := sum(ways[0])
	for _, way := range ways {
		s := sum(way)
		if s >= real-same {
			above++
		}
		if s <= real+same {
			below++
		}
	}
	return above / float64(len(ways)), below / float64(len(ways))
}
