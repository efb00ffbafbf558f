package compare

import (
	"cmp"
	"math"
	"slices"

	"joinbench/results"
)

// differences are, part by part, those of the logarithms of the two runs of each pair that knows the part, the nearest to 0 first.
type differences [][]difference

type difference struct {
	pair int
	by   float64 // above 0: the fresh build took more
}

// differences have the base's runs made greater by a shift.
func (p *parts) differences(shift float64) differences {
	d := make(differences, len(p.base[0]))
	for part := range d {
		for pair := range p.base {
			by := p.fresh[pair][part] - p.base[pair][part] - shift
			if !math.IsNaN(by) && !math.IsInf(by, 0) {
				d[part] = append(d[part], difference{pair, by})
			}
		}
		slices.SortStableFunc(d[part], func(a, b difference) int { return cmp.Compare(math.Abs(a.by), math.Abs(b.by)) })
	}
	return d
}

// ratio is of the parts' medians over the pairs the mean without a tenth at either end.
func (d differences) ratio() float64 {
	var medians, by []float64
	for _, part := range d {
		by = by[:0]
		for _, x := range part {
			by = append(by, x.by)
		}
		if len(by) > 0 {
			medians = append(medians, median(by))
		}
	}
	return results.TrimmedMean(medians)
}

// ranks are Wilcoxon's signed ranks (Biometrics Bulletin 1, 1945) of each pair, summed up over the parts, all of which count as much: how
// far it speaks for a fresh build that takes more. Were its two runs to change places it would say the opposite. However far one is off, it
// counts no more than the number of pairs.
func (d differences) ranks(pairs int) []float64 {
	out := make([]float64, pairs)
	for _, part := range d {
		for from := 0; from < len(part); {
			to := from + 1
			for to < len(part) && math.Abs(part[to].by) == math.Abs(part[from].by) { // of equal ones each has their mean
				to++
			}
			rank := float64(from+1+to) / 2 / float64(len(part))
			for ; from < to; from++ {
				switch x := part[from]; {
				case x.by > 0:
					out[x.pair] += rank
				case x.by < 0:
					out[x.pair] -= rank
				}
			}
		}
	}
	return out
}
