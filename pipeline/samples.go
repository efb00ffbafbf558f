package pipeline

import (
	"slices"
	"time"

	"joinbench/results"
)

const (
	// sampleEvery is how often the meter asks RocksDB and the file system.
	sampleEvery = 500 * time.Millisecond
	// fineEvery and fineFor: a run that was resumed is looked at more closely at first, to see it come back.
	fineEvery = 100 * time.Millisecond
	fineFor   = 10 * time.Second
	// maxSamples is what a record keeps of a run, however long it is: then each two neighbours become one.
	maxSamples = 600
	// maxBatches is how many batches between two samples are looked at for their p99.
	maxBatches = 1 << 14
)

// The amounts of a sample.
const (
	rss = iota
	goHeap
	rocksDB
	arenas
	filters
	disk
	sampledLevels
)

// sample is what happened since the one before, and what is there at its end.
type sample struct {
	at, took               time.Duration // from the start of the run; since the sample before
	phase                  string
	readA, probes, lookups uint64
	asking                 time.Duration // of the task's goroutine on B
	seals                  uint64
	batchP99               time.Duration // 0: no batch
	pending                int64
	response               *percentiles         // nil where none was measured
	levels                 [sampledLevels]int64 // rss and goHeap are averages since the sample before
}

// samples of a run, oldest first.
type samples struct {
	list  []sample
	every time.Duration
	fine  time.Time // until then every fineEvery
	last  reading   // at the last sample

	batches []time.Duration // measured since the last sample
}

func newSamples(resumed bool) samples {
	s := samples{every: sampleEvery}
	if resumed {
		s.fine = time.Now().Add(fineFor)
	}
	return s
}

// due says whether it is time for one.
func (s *samples) due(now reading) bool {
	every := s.every
	if now.at.Before(s.fine) {
		every = min(every, fineEvery)
	}
	return now.at.Sub(s.last.at) >= every
}

func (s *samples) add(one sample, now reading) {
	s.list, s.last, s.batches = append(s.list, one), now, s.batches[:0]
	if len(s.list) >= maxSamples {
		s.thin()
	}
}

// thin makes one of each two neighbours of a phase, and from now on samples come half as often.
func (s *samples) thin() {
	out := s.list[:0]
	for i := 0; i < len(s.list); i++ {
		one := s.list[i]
		if i+1 < len(s.list) && s.list[i+1].phase == one.phase {
			i++
			one = one.with(&s.list[i])
		}
		out = append(out, one)
	}
	s.list, s.every = out, 2*s.every
}

// with joins a sample with the next one: what happened in both, and what was there at the end, on average for the two
// levels that are averages.
func (s sample) with(next *sample) sample {
	joined := *next
	if took := s.took + next.took; took > 0 {
		for _, which := range []int{rss, goHeap} {
			mean := (float64(s.levels[which])*s.took.Seconds() + float64(next.levels[which])*next.took.Seconds()) / took.Seconds()
			joined.levels[which] = int64(mean)
		}
	}
	joined.response = s.response.worse(next.response)
	joined.took += s.took
	joined.readA += s.readA
	joined.probes += s.probes
	joined.lookups += s.lookups
	joined.asking += s.asking
	joined.seals += s.seals
	joined.batchP99 = max(joined.batchP99, s.batchP99)
	return joined
}

// batch takes in how long a measured batch took. Of a very small batch size it keeps what fits.
func (s *samples) batch(before, now reading) {
	if s.batches == nil {
		s.batches = make([]time.Duration, 0, maxBatches)
	}
	if len(s.batches) < maxBatches {
		s.batches = append(s.batches, now.at.Sub(before.at)-(now.waited-before.waited))
	}
}

// batchP99 of those since the last sample, 0 without any.
func (s *samples) batchP99() time.Duration {
	if len(s.batches) == 0 {
		return 0
	}
	slices.Sort(s.batches)
	return s.batches[(len(s.batches)*99+99)/100-1]
}

// positive is nil where nothing was measured.
func positive(d time.Duration) *int64 {
	if d <= 0 {
		return nil
	}
	return new(int64(d))
}

// intervals are the samples as the record has them.
func (s *samples) intervals() []results.Interval {
	var out []results.Interval
	for i := range s.list {
		o := &s.list[i]
		level := func(which int) *int64 { return &o.levels[which] }
		out = append(out, results.Interval{TNs: int64(o.at), Phase: o.phase, Pending: o.pending,
			ProbesPerS: results.RatioF(float64(o.probes), o.took.Seconds()), APerS: results.RatioF(float64(o.readA), o.took.Seconds()),
			LookupsPerProbe: ratio(float64(o.lookups), float64(o.probes)), NsPerB: ratio(float64(o.asking), float64(o.probes)),
			Seals: int64(o.seals), BatchP99Ns: positive(o.batchP99),
			DiskBytes: level(disk), RSSBytes: level(rss), GoHeapBytes: level(goHeap), RocksDBBytes: level(rocksDB),
			ArenaBytes: level(arenas), FilterBytes: level(filters)})
		if o.response != nil {
			out[i].ResponseP50Ns, out[i].ResponseP99Ns = &o.response.p50, &o.response.p99
		}
	}
	return out
}

// repetitions cuts a phase into ten parts of as many samples; nil when it has fewer.
func (s *samples) repetitions(phase string) []results.Repetition {
	const parts = 10
	var of []*sample
	for i := range s.list {
		if one := &s.list[i]; one.phase == phase && one.took > 0 && one.probes > 0 {
			of = append(of, one)
		}
	}
	if len(of) < parts {
		return nil
	}
	var out []results.Repetition
	for part := range parts {
		var took, asking time.Duration
		var probes, lookups uint64
		for _, one := range of[len(of)*part/parts : len(of)*(part+1)/parts] {
			took, asking = took+one.took, asking+one.asking
			probes, lookups = probes+one.probes, lookups+one.lookups
		}
		out = append(out, results.Repetition{Probes: int64(probes), NsPerB: ratio(float64(asking), float64(probes)),
			ProbesPerS: results.RatioF(float64(probes), took.Seconds()), LookupsPerProbe: ratio(float64(lookups), float64(probes))})
	}
	return out
}
