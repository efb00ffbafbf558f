package pipeline

import (
	"math"
	"math/rand/v2"
	"sort"
)

// Arrival is how intended times lie.
type Arrival string

// The arrivals.
const (
	Uniform Arrival = "uniform" // equally far apart
	Poisson Arrival = "poisson" // at random, as if nobody knew of the others
)

const (
	// poissonBlock is how many arrivals take exactly their time together: within it they lie as those of a Poisson process
	// of which one knows that so many came. So the rate is kept from block to block, and no error adds up.
	poissonBlock = 2048
	// poissonKept blocks are remembered: rows of a batch come partition by partition.
	poissonKept = 8
)

// schedule gives each B its intended time: a pure function of seed, rate, and the number of the B counted from first.
// It belongs to one goroutine.
type schedule struct {
	arrival Arrival
	rate    float64 // B a second
	seed    uint64
	first   int64 // index of the B that comes at start
	start   int64 // ns of the clock
	blocks  [poissonKept]poissonTimes
	source  rand.PCG
	random  *rand.Rand // of source
}

// poissonTimes are the arrivals of one block, in ns after its begin.
type poissonTimes struct {
	number int64 // 1 for the first block; 0: nothing here
	begin  int64 // ns after start
	at     [poissonBlock]int64
}

// at is the intended time of B j, which is not below first.
func (s *schedule) at(j int64) int64 {
	n := j - s.first
	if s.arrival != Poisson {
		return s.start + s.after(n)
	}
	b := s.block(n / poissonBlock)
	return s.start + b.begin + b.at[uint64(n)%poissonBlock]
}

// after is the time of n arrivals at the rate.
func (s *schedule) after(n int64) int64 { return int64(float64(n) * (1e9 / s.rate)) }

// due is the index of the first B whose time has not come.
func (s *schedule) due(now int64) int64 {
	if now < s.start {
		return s.first
	}
	n := int64(math.Min(float64(now-s.start)*(s.rate/1e9), 1<<52))
	if s.arrival == Poisson {
		return s.first + s.duePoisson(n/poissonBlock, now)
	}
	j := s.first + n
	for s.at(j) <= now { // rounding: one step, or none
		j++
	}
	for j > s.first && s.at(j-1) > now {
		j--
	}
	return j
}

// duePoisson is due, in the block k or one beside it, for the bounds are rounded.
func (s *schedule) duePoisson(k, now int64) int64 {
	for now >= s.start+s.after((k+1)*poissonBlock) {
		k++
	}
	for k > 0 && now < s.start+s.after(k*poissonBlock) {
		k--
	}
	at := &s.block(k).at
	into := now - s.start - s.after(k*poissonBlock)
	return k*poissonBlock + int64(sort.Search(poissonBlock, func(i int) bool { return at[i] > into }))
}

// block returns the arrivals of block k.
func (s *schedule) block(k int64) *poissonTimes {
	b := &s.blocks[uint64(k)%poissonKept]
	if b.number != k+1 {
		s.fill(b, k)
	}
	return b
}

// fill makes the arrivals of block k: sums of exponentially distributed gaps, stretched so that one gap more would end
// with the block.
func (s *schedule) fill(b *poissonTimes, k int64) {
	b.number, b.begin = k+1, s.after(k*poissonBlock)
	var sums [poissonBlock]float64
	s.source.Seed(s.seed, uint64(k))
	if s.random == nil {
		s.random = rand.New(&s.source)
	}
	r := s.random
	sum := 0.0
	for i := range sums {
		sum += r.ExpFloat64()
		sums[i] = sum
	}
	length := s.after((k+1)*poissonBlock) - b.begin
	stretch := float64(length) / (sum + r.ExpFloat64())
	for i := range sums {
		b.at[i] = min(int64(sums[i]*stretch), length-1)
	}
}
