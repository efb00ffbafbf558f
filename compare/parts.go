package compare

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/aclements/go-moremath/stats"

	"joinbench/results"
)

// parts are the logarithms of what each part of the workload took in each run of the two builds that took turns.
//
// What other work on a machine does to CPU time only adds to it, to some runs as a whole and to some parts of the others. So of a part
// that runs have in common the least of them is taken, and of the parts' ratios the mean without a tenth at either end: what is worse in
// less than that share of parts is not seen. Where hardly a run is undisturbed (neighbours that keep the caches busy for minutes) the least is
// that of one lucky run, and the median over the runs says more: of the two what varies less is taken (ask).
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

// ordered is what all runs took of each part, the least first, with that of the base's runs made greater by a shift.
type ordered struct {
	runs  int // of both builds
	logs  []float64
	whose []uint16 // run of each
}

func (p *parts) order(shift float64) *ordered {
	n, width := len(p.base), len(p.base[0])
	l := &ordered{runs: 2 * n, logs: make([]float64, 0, 2*n*width), whose: make([]uint16, 0, 2*n*width)}
	took := func(run uint16, part int) float64 {
		if int(run) < n {
			return p.base[run][part] + shift
		}
		return p.fresh[int(run)-n][part]
	}
	runs := make([]uint16, 2*n)
	for i := range runs {
		runs[i] = uint16(i)
	}
	for part := range width {
		slices.SortFunc(runs, func(a, b uint16) int { return cmp.Compare(took(a, part), took(b, part)) })
		for _, run := range runs {
			l.logs, l.whose = append(l.logs, took(run, part)), append(l.whose, run)
		}
	}
	return l
}

// estimate is by what a build's runs stand for it, part by part.
type estimate int

const (
	byLeast  estimate = iota // the least of them
	byMiddle                 // their median
	estimates
)

func (e estimate) String() string { return [estimates]string{"least", "median"}[e] }

// scratch is for reuse.
type scratch struct {
	ratios [estimates][]float64 // of the parts
	took   []float64            // of a part: the base's, the least first, and then the fresh build's
	fresh  []int                // 1 of a run that a way gives to the fresh build, else 0
}

// ratios are how the fresh build's logarithms differ from those of the base, as some way gives the runs to the two.
func (l *ordered) ratios(way []bool, tmp *scratch) (out [estimates]float64) {
	n := l.runs / 2
	tmp.took = slices.Grow(tmp.took[:0], l.runs)[:l.runs]
	tmp.fresh = tmp.fresh[:0]
	for _, toBase := range way {
		of := 1
		if toBase {
			of = 0
		}
		tmp.fresh = append(tmp.fresh, of)
	}
	for e := range tmp.ratios {
		tmp.ratios[e] = tmp.ratios[e][:0]
	}
	for from := 0; from < len(l.logs); from += l.runs {
		// No branch depends on whose a run is: half of them would be guessed wrong.
		logs, whose, freshes := l.logs[from:from+l.runs], l.whose[from:from+l.runs], 0
		for i, log := range logs {
			of := tmp.fresh[whose[i]]
			tmp.took[(i-freshes)&(of-1)|(n+freshes)&-of] = log
			freshes += of
		}
		tmp.ratios[byLeast] = append(tmp.ratios[byLeast], tmp.took[n]-tmp.took[0])
		tmp.ratios[byMiddle] = append(tmp.ratios[byMiddle], tmp.took[n+(n-1)/2]-tmp.took[(n-1)/2])
	}
	for e := range out {
		out[e] = trimmed(tmp.ratios[e])
	}
	return out
}

// trimmed is the mean of what is known without a share of it at either end. It sorts them.
func trimmed(logs []float64) float64 {
	known := slices.DeleteFunc(logs, func(d float64) bool { return math.IsInf(d, 0) || math.IsNaN(d) })
	slices.Sort(known)
	cut := int(trim * float64(len(known)))
	sum := 0.0
	for _, d := range known[cut : len(known)-cut] {
		sum += d
	}
	return sum / float64(len(known)-2*cut)
}

// outcome is what the ways say with some shift.
type outcome struct {
	by           estimate
	ratio        float64 // of the real way
	above, below float64 // how likely a ratio as high, and as low, is, were the fresh build exp(shift) times the base
}

// ask takes the estimate that differs less among the ways. That depends on all runs together and not on whose they are, so the test stays exact.
func (p *parts) ask(ways [][]bool, shift float64) outcome {
	l := p.order(shift)
	var tmp scratch
	var all [estimates][]float64
	for _, way := range ways {
		for e, r := range l.ratios(way, &tmp) {
			all[e] = append(all[e], r)
		}
	}
	out := outcome{by: byLeast}
	if stats.StdDev(all[byMiddle]) < stats.StdDev(all[byLeast]) {
		out.by = byMiddle
	}
	out.ratio = all[out.by][0]
	const same = 1e-9 // of sums in another order
	for _, r := range all[out.by] {
		if r >= out.ratio-same {
			out.above++
		}
		if r <= out.ratio+same {
			out.below++
		}
	}
	out.above /= float64(len(ways))
	out.below /= float64(len(ways))
	return out
}
