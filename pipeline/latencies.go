package pipeline

import (
	"errors"

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
		l.response = falling{newHistogram(), newHistogram()}
		l.lag = falling{newHistogram(), newHistogram()}
	}
	return l
}

func (l *latencies) reset() {
	l.service.Reset()
	for _, f := range []*falling{&l.response, &l.lag} {
		if f.total != nil {
			f.total.Reset()
			f.recent.Reset()
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

// falling takes latencies that fall from row to row, since all rows end at one moment and began one after the other: two
// histograms, one of all and one of what came since it was last folded into that.
type falling struct{ total, recent *hdrhistogram.Histogram }

// alike: latencies that differ by less than one part in 2^alike are recorded as one, that in their middle. The histogram
// itself is half as exact.
const alike = 10

// fall records n rows from B j on, each so many B after the one before, that all ended at one moment.
func (f *falling) fall(s *schedule, j, step, n, end int64) {
	perRow := 1e9 / s.rate * float64(step)
	for n > 0 {
		v := end - s.at(j)
		if v <= 0 { // and so are all that follow
			_ = f.recent.RecordValues(0, n)
			return
		}
		k, last := int64(1), v
		if near := v >> alike; near > 0 && n > 1 {
			for k = min(n, 1+int64(float64(near)/perRow)); k > 1; k /= 2 {
				if last = end - s.at(j+(k-1)*step); v-last <= near {
					break
				}
			}
			if k == 1 {
				last = v
			}
		}
		_ = f.recent.RecordValues(min(max(0, (v+last)/2), mostNs), k) // in range
		j += k * step
		n -= k
	}
}

// fold adds what is recent to the total, and forgets it as recent.
func (f *falling) fold() {
	if f.total == nil {
		return
	}
	f.total.Merge(f.recent)
	f.recent.Reset()
}
