package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Changelog is one partition with everything that batches did to a unit's state, in order. What is written goes through the
// unit's producer, so that it is in the same transaction as the outputs. It belongs to one goroutine.
type Changelog struct {
	Topic     string
	Partition int32

	opts Options
	end  int64 // behind the last frame that was read or acknowledged
}

// NewChangelog makes a handle.
func NewChangelog(o Options, topic string, partition int32) *Changelog {
	return &Changelog{Topic: topic, Partition: partition, opts: o}
}

// frameBytes is how large a frame is at most: half of what topics take unless told otherwise, and large enough that what a record
// costs by itself is nothing.
const frameBytes = 512 << 10

// End is an offset behind all batches that were read or acknowledged, and not behind any that comes later.
func (c *Changelog) End() int64 { return c.end }

// Write produces the frames of a batch; Flush of the producer says whether they are there. The bytes are copied.
func (c *Changelog) Write(ctx context.Context, p *Producer, b *Batch) {
	size := min(frameBytes, p.MaxBytes(c.Topic))
	writeBatch(b, p.life, size, func(value []byte) {
		r := &Record{Topic: c.Topic, Partition: c.Partition, Value: value}
		p.cl.Produce(ctx, r, func(r *kgo.Record, err error) {
			p.done(r, err)
			if err == nil {
				p.noteOffset(r.Offset)
			}
		})
	})
}

// Written is called after a Flush without error, to move End behind what Write produced.
func (c *Changelog) Written(p *Producer) {
	if last := p.takeOffset(); last >= c.end {
		c.end = last + 1
	}
}

// TailProgress is told how far reading a changelog has come: offsets read, and the one to reach.
type TailProgress func(at, end int64)

// lastStable is how often is asked whether a transaction that somebody else left open has ended.
const lastStable = 500 * time.Millisecond

// Bounds are the first offset of the partition and that behind its last record. Records of transactions that are not finished
// are waited for: whoever calls has taken over its own transactional id before, so that these are somebody else's; waiting is
// told of them.
func (c *Changelog) Bounds(ctx context.Context, waiting func(open int64)) (start, end int64, err error) {
	cl, err := c.opts.dial()
	if err != nil {
		return 0, 0, err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	if start, err = c.listed(adm.ListStartOffsets(ctx, c.Topic)); err != nil {
		return 0, 0, err
	}
	if end, err = c.listed(adm.ListEndOffsets(ctx, c.Topic)); err != nil {
		return 0, 0, err
	}
	for {
		stable, err := c.listed(adm.ListCommittedOffsets(ctx, c.Topic))
		if err != nil {
			return 0, 0, err
		}
		if stable >= end {
			return start, end, nil
		}
		if waiting != nil {
			waiting(stable)
		}
		if err := pause(ctx, lastStable); err != nil {
			return 0, 0, err
		}
	}
}

func (c *Changelog) listed(all kadm.ListedOffsets, err error) (int64, error) {
	if err == nil {
		o, ok := all.Lookup(c.Topic, c.Partition)
		if ok && o.Err == nil {
			return o.Offset, nil
		}
		if err = o.Err; err == nil {
			err = kerr.UnknownTopicOrPartition
		}
	}
	return 0, fmt.Errorf("changelog %s/%d: %w", c.Topic, c.Partition, explain(err))
}

// Read hands over the batches between two offsets, in order, and moves End behind them. A batch that was never finished, or
// whose transaction was aborted, is none. The batch is fn's.
func (c *Changelog) Read(ctx context.Context, from, end int64, progress TailProgress, fn func(*Batch) error) error {
	c.end = max(from, end)
	if from >= end {
		return nil
	}
	opts, err := c.opts.clientOpts()
	if err != nil {
		return err
	}
	opts = append(opts,
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), // the last offset may be that of a transaction's end
		kgo.FetchMaxBytes(16<<20), kgo.FetchMaxPartitionBytes(8<<20), kgo.MaxConcurrentFetches(1),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{c.Topic: {c.Partition: kgo.NewOffset().At(from)}}))
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	defer cl.Close()
	var a assembler
	for at := from; at < end; {
		fetches := cl.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, e := range fetches.Errors() {
			err := explain(e.Err)
			if errors.Is(err, ErrFatal) {
				return fmt.Errorf("reading changelog %s/%d: %w", c.Topic, c.Partition, err)
			}
			c.opts.log().Warn("the changelog cannot be read, trying again", "topic", c.Topic, "partition", c.Partition, "error", err)
		}
		for it := fetches.RecordIter(); !it.Done(); {
			r := it.Next()
			if r.Offset >= end {
				at = end
				break
			}
			at = r.Offset + 1
			if r.Attrs.IsControl() {
				continue
			}
			b, err := a.add(r.Offset, r.Value)
			if err == nil && b != nil {
				err = fn(b)
			}
			if err != nil {
				return fmt.Errorf("changelog %s/%d: %w", c.Topic, c.Partition, err)
			}
		}
		if progress != nil {
			progress(at, end)
		}
	}
	return nil
}

// Trim has the broker delete what lies before an offset.
func (c *Changelog) Trim(ctx context.Context, offset int64) error {
	cl, err := c.opts.dial()
	if err != nil {
		return err
	}
	defer cl.Close()
	var at kadm.Offsets
	at.AddOffset(c.Topic, c.Partition, offset, -1)
	resp, err := kadm.NewClient(cl).DeleteRecords(ctx, at)
	if err == nil {
		err = resp.Error()
	}
	if err != nil {
		return fmt.Errorf("cutting changelog %s/%d before offset %d: %w", c.Topic, c.Partition, offset, explain(err))
	}
	return nil
}
