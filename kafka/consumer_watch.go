package kafka

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// relocate finds out why an offset is out of range, and goes on where that loses nothing unsaid: at the log's start if the log
// was cut from below. An offset beyond the end is never made good: the log is not the one that was read.
func (c *Consumer) relocate(r *Reader) {
	for wait := relocateWait; ; wait = min(2*wait, 10*relocateWait) {
		at := r.wanted()
		start, end, err := c.span(c.ctx, r.of.topic, r.of.partition)
		switch {
		case c.ctx.Err() != nil:
			return
		case err != nil && fatal(err):
			r.fail(err)
			return
		case err != nil:
			c.log.Warn("kafka: an offset is out of range, and where the log begins cannot be told; asking again",
				"topic", r.of.topic, "partition", r.of.partition, "offset", at, "error", err)
		case at < start:
			c.log.Error("kafka: data is lost: the log begins behind the offset at which reading was to go on",
				"topic", r.of.topic, "partition", r.of.partition, "offset", at, "begins", start, "data_loss", start-at)
			if c.opt.Gap != nil {
				c.opt.Gap(r.of.topic, r.of.partition, at, start)
			}
			c.refetch(r, start)
			return
		case at > end:
			r.fail(fmt.Errorf("kafka: topic %s, partition %d: reading was to go on at offset %d, but the log ends at offset %d: "+
				"it is not the log that was read; was the topic deleted and made anew?", r.of.topic, r.of.partition, at, end))
			return
		default: // a replica that was behind
			c.refetch(r, at)
			return
		}
		if pause(c.ctx, wait) != nil {
			return
		}
	}
}

// relocateWait is how long the first wait before a question is asked again is.
const relocateWait = 500 * time.Millisecond

// refetch goes on at an offset, if the reader is still the one of its partition.
func (c *Consumer) refetch(r *Reader, offset int64) {
	// A consumer that is closed fetches nothing more.
	_ = c.between(func() {
		c.mu.Lock()
		mine := c.readers[r.of] == r
		c.mu.Unlock()
		if mine && r.skipTo(offset) {
			c.fetch(r.of, offset)
		}
	})
}

// fatal says whether asking again cannot help.
func fatal(err error) bool {
	var k *kerr.Error
	return errors.As(err, &k) && !k.Retriable
}

// watch looks at the topics now and then: whose partitions are more or others than those that are read is told by no fetch.
func (c *Consumer) watch() {
	tick := time.NewTicker(c.opt.Watch)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.ctx.Done():
			return
		}
		c.look()
	}
}

// look compares the topics with what they were like.
func (c *Consumer) look() {
	c.mu.Lock()
	topics := make([]kadm.TopicDetail, 0, len(c.topics))
	for _, t := range c.topics {
		topics = append(topics, t)
	}
	c.mu.Unlock()
	for _, was := range topics {
		is, err := c.describe(c.ctx, was.Topic)
		switch {
		case c.ctx.Err() != nil:
			return
		case errors.Is(err, kerr.UnknownTopicOrPartition), fatal(err):
			c.failTopic(was.Topic, err)
		case err != nil: // brokers that cannot be reached are told of where they are dialled
			c.log.Info("kafka: topic could not be looked at", "topic", was.Topic, "error", err)
		default:
			if err := changed(was, is); err != nil {
				c.failTopic(was.Topic, err)
			}
		}
	}
}

// changed says how a topic is no longer what it was.
func changed(was, is kadm.TopicDetail) error {
	switch {
	case was.ID != is.ID:
		return fmt.Errorf("kafka: topic %s was deleted and made anew (its id was %s and is %s): offsets of the old one mean nothing in it", was.Topic, was.ID, is.ID)
	case len(was.Partitions) != len(is.Partitions):
		return fmt.Errorf("kafka: topic %s had %d partitions and has %d: records of one key may lie in two partitions now; restart to read them all",
			was.Topic, len(was.Partitions), len(is.Partitions))
	}
	return nil
}
