package compare

import (
	"math"
	"math/rand/v2"
	"slices"

	"joinbench/results"
)

// parts are the logarithms of what each part of the workload took in each run of the two builds that took turns.
//
// What other work on a machine does to CPU time only adds to it, to some runs as a whole and to some parts of the others. So of a part
// that runs have in common the least of them is taken, and of the parts' ratios the mean without a tenth at either end: what is worse in
// less than that share of parts is not seen.
//
// The tests are permutation tests (Fisher, The Design of Experiments, 1935, §21; Phipson and Smyth, Statistical Applications in
// Genetics and Molecular Biology 9, 2010, for those of drawn permutations): were the builds equal, the runs could be given to them in any way, so the p is the
// share of ways that give as much. Runs of a pair have more in common than others; that only makes the tests more careful.
type parts struct {
	base, fresh [][]float64 // by run; +Inf where a run does not know a part
}

// trim is the share of parts at either end that the mean leaves out. Of seven runs each of equal builds, both cores busy besides,
// estimates lay within 2.5 % in 98 of 100 draws, and the ratio of the sums over all parts within 5 %.
const trim = 0.1

// mostWays is up to how many ways of giving the runs to two builds all are gone through: those of seven pairs.
const mostWays = 3432

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

// ways are assignments of all runs, the base's first, to the base (true) or the fresh build. The first is the real one.
func (p *parts) ways(rng *rand.Rand, atLeast int) (out [][]bool) {
	n := len(p.base)
	real := make([]bool, 2*n)
	for i := range n {
		real[i] = true
	}
	out = append(out, real)
	if choose(2*n, n) <= mostWays {
		for next := slices.Clone(real); further(next); next = slices.Clone(next) {
			out = append(out, next)
		}
		return out
	}
	for len(out) <= max(atLeast, mostWays) {
		way := slices.Clone(real)
		rng.Shuffle(2*n, func(i, j int) { way[i], way[j] = way[j], way[i] })
		out = append(out, way)
	}
	return out
}

func choose(n, k int) float64 {
	c := 1.0
	for i := range k {
		c = c * float64(n-i) / float64(i+1)
	}
	return math.Round(c)
}

// further makes the next way of one: the last true that can goes one on, and those behind it follow. It is false after the last.
func further(way []bool) bool {
	trues := 0 // at the end
	for i := len(way) - 1; i >= 0; i-- {
		switch {
		case way[i] && i+1 < len(way) && !way[i+1]:
			way[i], way[i+1] = false, true
			for j := i + 2; j < len(way); j++ {
				way[j] = j < i+2+trues
			}
			return true
		case way[i]:
			trues++
		}
	}
	return false
}

// ratio is how the fresh build's logarithms differ from those of the base, as some way gives the runs to the two, with the base's made
// greater by shift first.
func (p *parts) ratio(way []bool, shift float64, scratch *[2][]float64) float64 {
	n, width := len(p.base), len(p.base[0])
	for i := range scratch {
		scratch[i] = slices.Grow(scratch[i][:0], width)[:width]
		for j := range scratch[i] {
			scratch[i][j] = math.Inf(1)
		}
	}
	for i, toBase := range way {
		run, by := p.base, shift
		if i >= n {
			run, by = p.fresh, 0
		}
		least := scratch[1]
		if toBase {
			least = scratch[0]
		}
		for j, v := range run[i%n] {
			least[j] = min(least[j], v+by)
		}
	}
	known := scratch[1][:0]
	for j, v := range scratch[1] {
		if d := v - scratch[0][j]; !math.IsInf(d, 0) && !math.IsNaN(d) {
			known = append(known, d)
		}
	}
	slices.Sort(known)
	cut := int(trim * float64(len(known)))
	sum := 0.0
	for _, d := range known[cut : len(known)-cut] {
		sum += d
	}
	return sum / float64(len(known)-2*cut)
}

// chances are how likely a ratio as high, and as low, as the real one is, were the fresh build exp(shift) times the base.
func (p *parts) chances(ways [][]bool, shift float64) (above, below float64) {
	var scratch [2][]float64
	real := p.ratio(ways[0], shift, &scratch)
	const same = 1e-9 // of sums in another order
	high, low := 1, 1
	for _, way := range ways[1:] {
		r := p.ratio(way, shift, &scratch)
		if r >= real-same {
			high++
		}
		if r <= real+same {
			low++
		}
	}
	n := float64(len(ways))
	return float64(high) / n, float64(low) / n
}
