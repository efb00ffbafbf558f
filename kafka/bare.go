package kafka

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Bare reads the committed records of a topic, in each partition those of its span, and does nothing with them: what the client by
// itself can do, with the settings of a Consumer. After each poll progress is told how many records there were so far, and how many
// bytes their keys and values have. It returns when all spans are read.
func Bare(ctx context.Context, o Options, topic string, of []Span, progress func(records, bytes int64)) error {
	grown := newGrowth(defaultFetchBytes)
	var records, bytes int64
	s := scan{topic: topic, spans: of, visit: func(r *kgo.Record) error {
		records++
		bytes += int64(len(r.Key) + len(r.Value))
		return nil
	}, polled: func(cl *kgo.Client) {
		if grown.measure() {
			cl.UpdateFetchMaxBytes(grown.limits())
		}
		progress(records, bytes)
	}}
	return s.run(ctx, o, fetchOpts(grown, kgo.ReadCommitted())...)
}

// Follow reads the committed records of a topic from its beginning on, as they come, until the context is done, which is no error.
// visit is called from this goroutine and must not keep the record.
func Follow(ctx context.Context, o Options, topic string, visit func(*kgo.Record)) error {
	opts, err := o.clientOpts()
	if err != nil {
		return err
	}
	cl, err := kgo.NewClient(append(opts, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(fetchWait))...)
	if err != nil {
		return err
	}
	defer cl.Close()
	for {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		for _, e := range fetches.Errors() {
			return fmt.Errorf("reading %s/%d: %w", e.Topic, e.Partition, e.Err)
		}
		fetches.EachRecord(visit)
	}
}
