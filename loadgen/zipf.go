package loadgen

import (
	"math"
	"sort"
)

// Hot keys. With Config.Zipf some keys are asked for far more often than others, in two places where that is hard on a join:
//
//   - B without partner draw their key from as many absent keys as A are pending, by a Zipf distribution over these. The
//     hottest of a million is asked by one absent B in fifteen: what a filter says of it, right or wrong, it says every time.
//   - Duplicates draw the matched B that they repeat from a stretch of earlier ones, a Zipf distribution over these in an
//     order of their own. One-to-one they find their A consumed, again and again; one-to-many the A goes on pairing.
//
// A stretch is an eighth of After; the one that is drawn from is the last that has passed, so that which keys are hot
// changes with time. What is drawn is a function of the B's index, as everything is.

// zipf draws ranks 0 to n-1, rank r with a probability proportional to (r+1)^-s. Ranks from exactRanks on share it in
// bins of a thirty-second of an octave: within 3 % of their own.
type zipf struct {
	below  []uint64 // 2^63 times the probability of this bin and those before it
	starts []uint64 // first rank of each bin, and n
}

const (
	exactRanks = 64
	octaveBins = 32
	maxZipf    = 4
)

func newZipf(s float64, n uint64) *zipf {
	z := &zipf{}
	var sums []float64
	total := 0.0
	for start := uint64(0); start < n; {
		end := start + 1
		if start >= exactRanks {
			end += 1<<int(math.Log2(float64(start)))/octaveBins - 1
		}
		end = min(end, n)
		total += zipfMass(s, start, end)
		z.starts, sums = append(z.starts, start), append(sums, total)
		start = end
	}
	z.starts = append(z.starts, n)
	for _, sum := range sums {
		z.below = append(z.below, uint64(sum/total*(1<<63)))
	}
	z.below[len(z.below)-1] = 1 << 63
	return z
}

// zipfMass is the sum of (r+1)^-s over the ranks of a bin, of one with several by the integral over them.
func zipfMass(s float64, from, to uint64) float64 {
	if to-from == 1 {
		return math.Pow(float64(to), -s)
	}
	a, b := float64(from)+0.5, float64(to)+0.5
	if s == 1 {
		return math.Log(b / a)
	}
	return (math.Pow(b, 1-s) - math.Pow(a, 1-s)) / (1 - s)
}

// rank draws one by a hash.
func (z *zipf) rank(h uint64) uint64 {
	u := h >> 1
	bin := sort.Search(len(z.below)-1, func(i int) bool { return z.below[i] > u })
	return z.starts[bin] + below(mix(h), z.starts[bin+1]-z.starts[bin])
}

// hot is what a workload with hot keys draws from.
type hot struct {
	absent  *zipf
	stretch *zipf
	span    uint64 // matched B of a stretch
}

// newHot plans it. perMs is matched B per ms of event time.
func newHot(c Config, perMs float64) *hot {
	if c.Zipf == 0 {
		return nil
	}
	h := &hot{absent: newZipf(c.Zipf, uint64(c.Pending)), span: uint64(min(max(1, perMs*float64(ms(c.After))/8), 1<<20))}
	h.stretch = newZipf(c.Zipf, h.span)
	return h
}

// hotDuplicate returns the A that duplicate j at time t asks for; ok is false when its window would have ended.
func (g *Gen) hotDuplicate(j, t int64) (i int64, ok bool) {
	lane := j % g.b.lanes
	now := g.b.matched.blockOf(uint64(j / g.b.lanes))
	from, span := uint64(0), now // in the first stretch: what there was of it
	if past := now / g.hot.span; past > 0 {
		from, span = (past-1)*g.hot.span, g.hot.span
	}
	if span == 0 {
		return -1, false
	}
	rank := g.hot.stretch.rank(mix(uint64(j) + g.salt))
	k := from + below(mix(mix(from+rank<<32)^g.salt), span)
	for range 8*g.b.parts + 16 {
		// One-to-one the first must ask before this one does, so they are of one partition.
		if first := g.slotB(k, lane); g.cfg.OneToMany || first%g.b.parts == j%g.b.parts {
			if i, ok := g.pair(k, lane); ok {
				return i, t <= g.a.inTime(i)+g.after-2*g.a.grace
			}
		}
		if k == 0 {
			break
		}
		k--
	}
	return -1, false
}
