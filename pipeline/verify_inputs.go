package pipeline

import (
	"bytes"
	"context"
	"fmt"
	"sort"

	"joinbench/core"
	"joinbench/kafka"
	"joinbench/loadgen"
)

// places says which record of the generator's lies at an offset of a topic. Record n of a partition is the nth committed one;
// where nothing else took offsets, that is offset n. Markers and aborted records take some, and then the topic is read.
type places struct {
	gen   *loadgen.Gen
	side  core.Side
	topic string
	parts int64
	count []int64   // records of each partition
	runs  [][]run   // of each partition
	gaps  [][]int64 // of A with a steady start: the slots of each partition that have no record
}

// run is a stretch of records with offsets that follow each other.
type run struct{ offset, number int64 }

// findPlaces reads a topic as far as it needs to. It also looks whether the topic holds the workload: where it does not, every
// result would be wrong, and nobody would know why.
func findPlaces(ctx context.Context, o kafka.Options, g *loadgen.Gen, side core.Side, topic string, below int64) (*places, error) {
	spans, err := kafka.Spans(ctx, o, topic)
	if err != nil {
		return nil, err
	}
	if spans == nil {
		return nil, fmt.Errorf("there is no topic %s", topic)
	}
	p := &places{gen: g, side: side, topic: topic, count: placesBefore(g, side, below)}
	p.parts = int64(len(p.count))
	if len(spans) != len(p.count) {
		return nil, usage("--partitions", "topic %s has %d partitions, and the workload has %d", topic, len(spans), len(p.count))
	}
	p.findGaps()
	whole := true
	for part, n := range p.count {
		p.runs = append(p.runs, []run{{}})
		whole = whole && spans[part] == kafka.Span{End: n}
	}
	look := &comparer{places: p, w: g.NewWriter(), value: make([]byte, g.Config().RecordBytes)}
	if !whole {
		return p, look.readAll(ctx, o, spans)
	}
	for part, n := range p.count { // one record of each is enough to tell another workload
		look.number = append(look.number, max(0, n-1))
		spans[part].Start = look.number[part]
	}
	return p, kafka.Scan(ctx, o, topic, spans, look.visit)
}

func (p *places) findGaps() {
	if p.side != core.A || p.gen.LeftOut() == 0 {
		return
	}
	p.gaps = make([][]int64, p.parts)
	for i := range p.gen.DueA(0) {
		if !p.gen.HasA(i) {
			p.gaps[i%p.parts] = append(p.gaps[i%p.parts], i/p.parts)
		}
	}
}

// index is the record at an offset, -1 if there is none that counts.
func (p *places) index(part int32, offset int64) int64 {
	if part < 0 || int64(part) >= p.parts {
		return -1
	}
	runs := p.runs[part]
	at := sort.Search(len(runs), func(x int) bool { return runs[x].offset > offset }) - 1
	if at < 0 {
		return -1
	}
	number := runs[at].number + offset - runs[at].offset
	if number >= p.count[part] || at+1 < len(runs) && number >= runs[at+1].number {
		return -1
	}
	return p.record(part, number)
}

// slots is how many slots of the generator's partition lie before an offset: up to the last of the records there.
func (p *places) slots(part int32, offset int64) int64 {
	runs := p.runs[part]
	at := sort.Search(len(runs), func(x int) bool { return runs[x].offset > offset }) - 1
	if at < 0 {
		return 0
	}
	n := min(runs[at].number+offset-runs[at].offset, p.count[part])
	if at+1 < len(runs) {
		n = min(n, runs[at+1].number)
	}
	if n == 0 {
		return 0
	}
	return p.record(part, n-1)/p.parts + 1
}

// record is record number n of a partition.
func (p *places) record(part int32, n int64) int64 {
	if p.gaps != nil {
		gaps := p.gaps[part]
		n += int64(sort.Search(len(gaps), func(x int) bool { return gaps[x]-int64(x) > n }))
	}
	return n*p.parts + int64(part)
}

// comparer holds what a topic has against what the generator makes.
type comparer struct {
	*places
	w      *loadgen.Writer
	value  []byte
	made   bool
	number []int64 // of each partition, the record that comes next
}

// readAll reads the whole topic and notes where offsets do not follow each other.
func (c *comparer) readAll(ctx context.Context, o kafka.Options, spans []kafka.Span) error {
	c.number = make([]int64, c.parts)
	next := make([]int64, c.parts) // the offset at which the run would go on
	for part, s := range spans {
		if s.Start > 0 {
			return fmt.Errorf("topic %s, partition %d begins with offset %d: what was before is gone, and what is left cannot be verified", c.topic, part, s.Start)
		}
	}
	err := kafka.Scan(ctx, o, c.topic, spans, func(r *kafka.Record) error {
		if c.number[r.Partition] >= c.count[r.Partition] {
			return usage("--to", "topic %s, partition %d holds more than the %d records of this workload: were parts loaded twice, or more than this?",
				c.topic, r.Partition, c.count[r.Partition])
		}
		if r.Offset != next[r.Partition] {
			c.runs[r.Partition] = append(c.runs[r.Partition], run{r.Offset, c.number[r.Partition]})
		}
		next[r.Partition] = r.Offset + 1
		return c.visit(r)
	})
	if err != nil {
		return err
	}
	for part, n := range c.number {
		if n < c.count[part] {
			return usage("--to", "topic %s, partition %d holds %d of the %d records of this workload: load the rest, or name with --to what was loaded",
				c.topic, part, n, c.count[part])
		}
	}
	return nil
}

// visit compares a record with the next one of its partition.
func (c *comparer) visit(r *kafka.Record) error {
	i := c.record(r.Partition, c.number[r.Partition])
	key, at := putRecord(c.w, c.side, c.value, i, c.made)
	c.made = true
	if !bytes.Equal(key, r.Key) || !bytes.Equal(c.value, r.Value) || at != r.Timestamp.UnixMilli() {
		return usage("--seed", "topic %s, partition %d, offset %d is not record %d of this workload: give profile, seed, counts and join as they were loaded",
			c.topic, r.Partition, r.Offset, c.number[r.Partition])
	}
	c.number[r.Partition]++
	return nil
}
