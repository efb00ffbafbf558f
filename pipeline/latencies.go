package pipeline

import (
	"errors"
	"math/bits"

	"github.com/HdrHistogram/hdrhistogram-go"

	"joinbench/results"
)

// mostNs is what histograms go to: an hour. Longer counts as that.
const mostNs = 3_600_000_000_000

// newHistogram has three digits: 260 KB.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, mostNs, 3) }

// latencies of B: from when each was due to when the batch that took it was committed (response), from when that batch
// began (service), and from when it was due to when the source could hand it over (lag). A closed loop has service only.
type latencies struct {
	response, lag falling
	service       *hdrhistogram.Histogram
}

func newLatencies(open bool) latencies {
	l := latencies{service: newHistogram()}
	if open {
		l.response, l.lag = newFalling(), newFalling()
	}
	return l
}

func (l *latencies) reset() {
	l.service.Reset()
	for _, f := range []*falling{&l.response, &l.lag} {
		if f.total != nil {
			f.fold()
			f.total.Reset()
		}
	}
}

// serviceOf records that so many B were served in ns each: those of one batch.
func (l *latencies) serviceOf(ns, rows int64) {
	_ = l.service.RecordValues(min(max(0, ns), mostNs), rows) // in range
}

// record condenses all.
func (l *latencies) record() (*results.Latency, error) {
	l.response.fold()
	l.lag.fold()
	var out results.Latency
	var errs [3]error
	out.Response, errs[0] = results.Summarize(l.response.total)
	out.Service, errs[1] = results.Summarize(l.service)
	out.ScheduleLag, errs[2] = results.Summarize(l.lag.total)
	if out == (results.Latency{}) {
		return nil, errors.Join(errs[:]...)
	}
	return &out, errors.Join(errs[:]...)
}

// falling takes latencies that fall from row to row, since all rows end at one moment and began one after the other: a
// histogram of all, and one of what came since it was last folded into that.
type falling struct {
	total, recent *hdrhistogram.Histogram // recent is up to date after fold
	counts        *quickCounts
}

func newFalling() falling { return falling{newHistogram(), newHistogram(), &quickCounts{}} }

const (
	// alike: latencies that differ by less than one part in 2^alike are recorded as one, that in their middle.
	alike = 9
	// quickBits of a value decide where quickCounts counts it, so it is as exact as the histogram; values below
	// 2^quickBits ns have a place each.
	quickBits = 10
	quickTop  = 42 - quickBits // mostNs has 42 bits
)

// quickCounts is a histogram that takes 2 ns where the other takes 10.
type quickCounts struct {
	n [(quickTop + 1) << quickBits]uint32
}

func (c *quickCounts) add(v, n int64) {
	shift := max(0, bits.Len64(uint64(v))-quickBits)
	c.n[shift<<quickBits+int(v>>shift)&(1<<quickBits-1)] += uint32(n)
}

// move adds everything to a histogram, each at the middle of its place, and begins at zero.
func (c *quickCounts) move(to *hdrhistogram.Histogram) {
	for i, n := range c.n {
		if n == 0 {
			continue
		}
		shift := i >> quickBits
		v := int64(i & (1<<quickBits - 1))
		if shift > 0 {
			v = v<<shift + 1<<shift>>1
		}
		_ = to.RecordValues(min(v, mostNs), int64(n)) // in range
		c.n[i] = 0
	}
}

// fall records n rows from B j on, each so many B after the one before, that all ended at one moment.
func (f *falling) fall(s *schedule, j, step, n, end int64) {
	rowsPerNs := s.rate / 1e9 / float64(step)
	for n > 0 {
		v := end - s.at(j)
		if v <= 0 { // and so are all that follow
			f.counts.add(0, n)
			return
		}
		k, last := int64(1), v
		if near := v >> alike; near > 0 && n > 1 {
			for k = min(n, 1+int64(float64(near)*rowsPerNs)); k > 1; k >>= 1 {
				if last = end - s.at(j+(k-1)*step); v-last <= near {
					break
				}
				last = v
			}
		}
		f.counts.add(min(max(0, (v+last)>>1), mostNs), k)
		j += k * step
		n -= k
	}
}

// peek brings recent up to date.
func (f *falling) peek() *hdrhistogram.Histogram {
	if f.recent != nil {
		f.counts.move(f.recent)
	}
	return f.recent
}

// fold adds what is recent to the total, and forgets it as recent.
func (f *falling) fold() {
	if f.total == nil {
		return
	}
	f.total.Merge(f.peek())
	f.recent.Reset()
}
