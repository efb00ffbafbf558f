package oracle

import (
	"math"
	"slices"
)

// Where a join comes to rest whose input ends without a drain: which records it has read, and what time it is then (rules 7,
// 12 and 13). Reading goes on as long as any partition may; the end is the same whatever the order, as what one
// partition reads never keeps another one back.

// never and always are watermarks of a side without time, and of one that is over.
const (
	never  = math.MinInt64 / 4
	always = math.MaxInt64 / 4
)

// stop is how far a join has come.
type stop struct {
	read [2][]fated // in file order
	wm   [2]int64
}

// stops are the right places to stop: one, but where the ring decides and rule 13 leaves open how. An event waits whose
// bucket would displace one that is not due to drop. Whether it also waits for a bucket that is empty, but into which an
// event in time of a partition at its end could still come, is left open; and so is whether a bucket is there of which all
// events were closed when they were read, as that depends on which side was read first.
func (c *Config) stops(all [2][]fated) []stop {
	if !c.NoDrain {
		return []stop{{all, [2]int64{always, always}}}
	}
	var list []stop
	for i := range 4 {
		s := c.rest(all, i&1 == 0, i&2 == 0)
		same := func(o stop) bool { return len(o.read[0]) == len(s.read[0]) && len(o.read[1]) == len(s.read[1]) }
		if !slices.ContainsFunc(list, same) {
			list = append(list, s)
		}
	}
	return list
}

// rest reads until no partition may go on.
func (c *Config) rest(all [2][]fated, endedWaits, closedStays bool) stop {
	r := &reading{cfg: c, endedWaits: endedWaits, closedStays: closedStays}
	for s, list := range all {
		r.open(s, list)
	}
	for progress := true; progress; {
		progress = false
		for s := range r.parts {
			for _, p := range r.parts[s] {
				for !p.atEnd() && r.may(s, p.head()) {
					r.pass(s, p)
					progress = true
				}
			}
		}
	}
	out := stop{wm: [2]int64{r.watermark(0), r.watermark(1)}}
	for s, list := range all {
		read := map[int]bool{}
		for _, p := range r.parts[s] {
			for _, i := range p.records[:p.at] {
				read[i] = true
			}
		}
		for i, f := range list {
			if f.damaged || read[i] {
				out.read[s] = append(out.read[s], f)
			}
		}
	}
	return out
}

// reading is a join that is under way.
type reading struct {
	cfg         *Config
	endedWaits  bool // see stops
	closedStays bool
	parts       [2][]*part
	of          [2]map[int32]*part
	live        [2]map[int64]bool // epochs of buckets that got an event
}

// part is a partition that is being read.
type part struct {
	all     []fated
	records []int // where its records are in the file
	at      int   // the head: the first that is not read; it has a time, or the partition is at its end
	m       int64
}

func (r *reading) open(s int, list []fated) {
	r.of[s], r.live[s] = map[int32]*part{}, map[int64]bool{}
	for i, f := range list {
		if f.damaged {
			continue // of no partition
		}
		p := r.of[s][f.partition]
		if p == nil {
			p = &part{all: list, m: never}
			r.of[s][f.partition] = p
			r.parts[s] = append(r.parts[s], p)
		}
		p.records = append(p.records, i)
	}
	for _, p := range r.parts[s] {
		p.settle()
	}
}

func (p *part) atEnd() bool  { return p.at == len(p.records) }
func (p *part) head() *fated { return &p.all[p.records[p.at]] }

// settle passes over records that have no time for the join: they wait for nothing.
func (p *part) settle() {
	for !p.atEnd() && p.head().event == nil {
		p.at++
	}
}

// pass reads the head of a partition.
func (r *reading) pass(s int, p *part) {
	t := p.head().event.Time
	if p.head().fate == "accepted" && r.stored(s) && (r.closedStays || !r.closed(s, t)) {
		r.live[s][r.cfg.epoch(t)] = true
	}
	p.m = max(p.m, t)
	p.at++
	p.settle()
}

// watermark of one partition: the first event that is held back counts already (rule 7).
func (p *part) watermark() int64 {
	if p.atEnd() {
		return p.m
	}
	return max(p.m, p.head().event.Time)
}

// watermark of a side: none of its partitions ends.
func (r *reading) watermark(s int) int64 {
	if len(r.parts[s]) == 0 {
		return never
	}
	wm := int64(always)
	for _, p := range r.parts[s] {
		wm = min(wm, p.watermark())
	}
	return wm
}

// may says whether a partition of a side may read its head.
func (r *reading) may(s int, head *fated) bool {
	c, t := r.cfg, head.event.Time
	if s == 1 && c.Probe == Aligned { // rule 12
		return r.watermark(0) > t+c.Before.Milliseconds()+c.Grace.Milliseconds()
	}
	next := int64(always) // the other side's next event, rule 13
	for _, p := range r.parts[1-s] {
		if !p.atEnd() {
			next = min(next, p.head().event.Time)
		}
	}
	return t <= next+c.MaxSpread.Milliseconds() && (head.fate == "null_key" || !r.ringHolds(s, t))
}

// stored says whether events of a side wait in buckets.
func (r *reading) stored(s int) bool { return s == 0 || r.cfg.Probe == Wait }

func (c *Config) epoch(t int64) int64 {
	if c.Buckets == 0 {
		return 0
	}
	width := c.Width.Milliseconds()
	if t < 0 {
		t -= width - 1
	}
	return t / width
}

// ringHolds says whether the bucket of an event would take the place of one that is not due to drop (rule 13): it is not, as
// long as its newest possible event is not closed (rule 11).
func (r *reading) ringHolds(s int, t int64) bool {
	c := r.cfg
	if c.Buckets == 0 || !r.stored(s) {
		return false
	}
	if r.closed(s, t) {
		return false // it is stored nowhere
	}
	epoch, floor := c.epoch(t), int64(never)
	if wm := r.watermark(1 - s); wm > never {
		floor = c.epoch(wm - r.reach(s))
	}
	for e := range r.live[s] {
		if e < epoch && e >= floor && (epoch-e)%int64(c.Buckets) == 0 {
			return true
		}
	}
	lowest := int64(always)
	for _, p := range r.parts[s] {
		if p.watermark() > never && (!p.atEnd() || r.endedWaits) {
			lowest = min(lowest, p.watermark())
		}
	}
	return epoch-int64(c.Buckets) >= max(floor, c.epoch(lowest-c.Grace.Milliseconds()))
}

// closed says whether no event in time of the other side can match one of this time (rule 10).
func (r *reading) closed(s int, t int64) bool { return r.watermark(1-s) > t+r.reach(s) }

// reach is how long after its time an event of a side closes.
func (r *reading) reach(s int) int64 {
	return []int64{r.cfg.After.Milliseconds(), r.cfg.Before.Milliseconds()}[s] + r.cfg.Grace.Milliseconds()
}
