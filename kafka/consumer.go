package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Earliest, as an offset, is the first one that the partition still has.
const Earliest int64 = -2

// NoEnd, as the end of a reader: it has none.
const NoEnd int64 = -1

// ErrClosed is what a reader answers when it, or its consumer, was closed.
var ErrClosed = errors.New("kafka: the reader is closed")

// ConsumerOptions are what a consumer may hold and how it reads. Zero values stand for the defaults.
type ConsumerOptions struct {
	// ReadUncommitted hands over records of transactions that are open or were aborted. Else a partition is read up to the
	// first open transaction.
	ReadUncommitted bool
	// FetchMaxBytes is what one answer of a broker may hold, 8 MiB; a partition's part of it is an eighth of that. Both count what is
	// held here: of what is compressed, less is asked for. A single batch of records that is larger is sent whole.
	FetchMaxBytes int32
	// QueueBytes is from where on a partition is not fetched until half of that was read; 8 MiB. What a consumer holds in
	// all is at most a queue, a partition's part of an answer, and the answer that is being read for each partition, and an
	// answer for each broker.
	QueueBytes int64
	// Gap is told of offsets from `from` to below `to` that are lost: they were to be read, and the partition begins behind
	// them. Any goroutine of the consumer; it must not call the consumer.
	Gap func(topic string, partition int32, from, to int64)
	// Watch is how often the topics are looked at; 30 s.
	Watch time.Duration
}

const (
	defaultFetchBytes = 8 << 20
	defaultQueueBytes = 8 << 20
	defaultWatch      = 30 * time.Second
	partitionShare    = 8 // of an answer
	leastAsked        = 16 << 10
	// fetchWait is how long a broker that has nothing holds back its answer. A partition whose queue has room again is asked for
	// only in the next question, so this is what it may wait for the others.
	fetchWait = 100 * time.Millisecond
	// askTimeout is how long a question about topics or offsets may take.
	askTimeout = 30 * time.Second
)

// Consumer reads partitions. One goroutine polls the client and fills the readers' queues; what is fetched changes only between two
// of its polls, so that nothing that was fetched for one position comes after another was set.
type Consumer struct {
	cl   *kgo.Client
	adm  *kadm.Client
	opt  ConsumerOptions
	log  *slog.Logger
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	grown *growth

	changes chan func()                        // for the polling goroutine to do between two polls
	poll    atomic.Pointer[context.CancelFunc] // ends the poll that runs, or the next one
	done    chan struct{}                      // closed when no poll will come any more

	mu      sync.Mutex
	readers map[topicPartition]*Reader
	topics  map[string]kadm.TopicDetail // as they were when they were opened
	failed  error                       // that of all readers
}

type topicPartition struct {
	topic     string
	partition int32
}

// NewConsumer makes a consumer and asks the brokers something, so that what is wrong with the address or with who we are is told
// here.
func NewConsumer(ctx context.Context, o Options, c ConsumerOptions) (*Consumer, error) {
	if c.FetchMaxBytes <= 0 {
		c.FetchMaxBytes = defaultFetchBytes
	}
	if c.QueueBytes <= 0 {
		c.QueueBytes = defaultQueueBytes
	}
	if c.Watch <= 0 {
		c.Watch = defaultWatch
	}
	opts, err := o.clientOpts()
	if err != nil {
		return nil, err
	}
	isolation := kgo.ReadCommitted() // the client's default is to read uncommitted
	if c.ReadUncommitted {
		isolation = kgo.ReadUncommitted()
	}
	grown := newGrowth(c.FetchMaxBytes)
	cl, err := kgo.NewClient(append(opts, fetchOpts(grown, isolation)...)...)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	if err := reach(ctx, cl, o); err != nil {
		cl.Close()
		return nil, err
	}
	k := &Consumer{cl: cl, adm: kadm.NewClient(cl), opt: c, grown: grown, log: o.log(), changes: make(chan func(), 16), done: make(chan struct{}),
		readers: map[topicPartition]*Reader{}, topics: map[string]kadm.TopicDetail{}}
	k.ctx, k.stop = context.WithCancel(context.Background())
	k.wg.Go(k.watch)
	go k.run(k.renewPoll())
	return k, nil
}

// fetchOpts are how partitions are fetched.
func fetchOpts(grown *growth, isolation kgo.IsolationLevel) []kgo.Opt {
	total, part := grown.limits()
	return []kgo.Opt{
		kgo.FetchIsolationLevel(isolation),
		kgo.KeepControlRecords(),                    // positions move over markers (see the package comment)
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), // what is out of range is for us to say: the default goes on elsewhere
		kgo.FetchMaxBytes(total),                    // 50 MiB by default, of each broker
		kgo.FetchMaxPartitionBytes(part),
		kgo.FetchMaxWait(fetchWait), // 5 s by default
		kgo.WithHooks(grown),
	}
}

// reach asks the brokers something.
func reach(ctx context.Context, cl *kgo.Client, o Options) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := cl.Ping(ctx); err != nil {
		return fmt.Errorf("kafka: brokers %s: %w", o, err)
	}
	return nil
}

// Close ends all readers and waits for the goroutines.
func (c *Consumer) Close() {
	// The client (1.22.3) touches its fetch sessions while it closes: there should be nothing left to fetch by then.
	_ = c.between(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		parts := map[string][]int32{}
		for of := range c.readers {
			parts[of.topic] = append(parts[of.topic], of.partition)
		}
		c.cl.RemoveConsumePartitions(parts)
	})
	c.stop()
	<-c.done
	c.wg.Wait()
	c.fail(ErrClosed)
	c.cl.Close()
}

// EndOffsets are the offsets at which partitions end: behind the last record that may be read, which is before the first open
// transaction unless uncommitted records are read.
func (c *Consumer) EndOffsets(ctx context.Context, topics ...string) (map[string]map[int32]int64, error) {
	ask := c.adm.ListCommittedOffsets
	if c.opt.ReadUncommitted {
		ask = c.adm.ListEndOffsets
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	listed, err := ask(ctx, topics...)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("kafka: where topics end: %w", explain(err))
	}
	ends := map[string]map[int32]int64{}
	listed.Each(func(o kadm.ListedOffset) {
		if ends[o.Topic] == nil {
			ends[o.Topic] = map[int32]int64{}
		}
		ends[o.Topic][o.Partition] = o.Offset
	})
	return ends, nil
}

// Open reads a partition from an offset on: one that is or was in the log, or Earliest. With an end, which may be one that has
// no record, its reader is through there. A partition that has a reader gets a new one, and the old one is closed.
func (c *Consumer) Open(ctx context.Context, topic string, partition int32, offset, end int64) (*Reader, error) {
	if err := c.know(ctx, topic, partition); err != nil {
		return nil, err
	}
	if offset == Earliest {
		start, _, err := c.span(ctx, topic, partition)
		if err != nil {
			return nil, err
		}
		offset = start
	}
	r := newReader(c, topicPartition{topic, partition}, offset, end)
	err := c.between(func() {
		c.mu.Lock()
		old := c.readers[r.of]
		c.readers[r.of] = r
		failed := c.failed
		c.mu.Unlock()
		if old != nil {
			c.unfetch(r.of)
			old.fail(ErrClosed)
		}
		if failed != nil {
			r.fail(failed)
			return
		}
		if !r.through() {
			c.fetch(r.of, offset)
		}
	})
	return r, err
}

// know makes sure that a partition is there, and notes what its topic is like.
func (c *Consumer) know(ctx context.Context, topic string, partition int32) error {
	c.mu.Lock()
	t, known := c.topics[topic]
	c.mu.Unlock()
	if !known {
		var err error
		if t, err = c.describe(ctx, topic); err != nil {
			return err
		}
		c.mu.Lock()
		c.topics[topic] = t
		c.mu.Unlock()
	}
	if _, ok := t.Partitions[partition]; !ok {
		return &outcome{fmt.Errorf("kafka: topic %s has %d partitions, and no partition %d", topic, len(t.Partitions), partition), ErrFatal}
	}
	return nil
}

func (c *Consumer) describe(ctx context.Context, topic string) (kadm.TopicDetail, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	all, err := c.adm.ListTopics(ctx, topic)
	if err != nil {
		return kadm.TopicDetail{}, fmt.Errorf("kafka: topic %s: %w", topic, explain(err))
	}
	t := all[topic]
	if t.Err != nil {
		return t, fmt.Errorf("kafka: topic %s: %w", topic, explain(t.Err))
	}
	return t, nil
}

// span is the offset of the first record that a partition has, and the one behind its last.
func (c *Consumer) span(ctx context.Context, topic string, partition int32) (start, end int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var at [2]int64
	for i, ask := range []func(context.Context, ...string) (kadm.ListedOffsets, error){c.adm.ListStartOffsets, c.adm.ListEndOffsets} {
		listed, err := ask(ctx, topic)
		if err != nil {
			return 0, 0, fmt.Errorf("kafka: offsets of topic %s: %w", topic, explain(err))
		}
		o, ok := listed.Lookup(topic, partition)
		switch {
		case !ok:
			return 0, 0, fmt.Errorf("kafka: offsets of topic %s, partition %d: no answer", topic, partition)
		case o.Err != nil:
			return 0, 0, fmt.Errorf("kafka: offsets of topic %s, partition %d: %w", topic, partition, explain(o.Err))
		}
		at[i] = o.Offset
	}
	return at[0], at[1], nil
}

// between has the polling goroutine do something between two polls, and waits for it.
func (c *Consumer) between(do func()) error {
	done := make(chan struct{})
	select {
	case c.changes <- func() { do(); close(done) }:
		(*c.poll.Load())()
	case <-c.done:
		return ErrClosed
	}
	select {
	case <-done:
		return nil
	case <-c.done:
		return ErrClosed
	}
}

// renewPoll makes the context of the next polls. Who has something to do between two ends it.
func (c *Consumer) renewPoll() context.Context {
	ctx, cancel := context.WithCancel(c.ctx)
	c.poll.Store(&cancel)
	return ctx
}

// run polls, first with a context that renewPoll made.
func (c *Consumer) run(ctx context.Context) {
	defer close(c.done)
	for c.ctx.Err() == nil {
		if ctx.Err() != nil {
			ctx = c.renewPoll() // before the changes are done: one that comes later ends this one
		}
		c.change()
		f := c.cl.PollFetches(ctx)
		f.EachPartition(func(t kgo.FetchTopicPartition) {
			c.take(t.Topic, &t.FetchPartition)
		})
		if c.grown.measure() {
			c.cl.UpdateFetchMaxBytes(c.grown.limits())
		}
	}
	(*c.poll.Load())()
}

func (c *Consumer) change() {
	for {
		select {
		case do := <-c.changes:
			do()
		default:
			return
		}
	}
}

// take brings what was fetched of a partition, or what went wrong with it, to its reader. Polling goroutine.
func (c *Consumer) take(topic string, p *kgo.FetchPartition) {
	if p.Err != nil && p.Partition < 0 {
		c.takeError(topic, p.Err)
		return
	}
	of := topicPartition{topic, p.Partition}
	c.mu.Lock()
	r := c.readers[of]
	c.mu.Unlock()
	if r == nil {
		return // closed since it was fetched
	}
	switch {
	case p.Err == nil:
		r.put(p.Records)
	case errors.Is(p.Err, kerr.OffsetOutOfRange):
		c.unfetch(of)
		c.wg.Go(func() { c.relocate(r) })
	default: // the client tries again by itself where that helps
		c.unfetch(of)
		r.fail(fmt.Errorf("kafka: topic %s, partition %d: reading at offset %d: %w", topic, p.Partition, r.next, p.Err))
	}
}

// takeError deals with an error that is not that of one partition.
func (c *Consumer) takeError(topic string, err error) {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, kgo.ErrClientClosed): // of this poll
	case topic != "":
		c.failTopic(topic, fmt.Errorf("kafka: topic %s: %w", topic, err))
	default:
		c.fail(fmt.Errorf("kafka: %w", err))
	}
}

// fetch and unfetch tell the client. Polling goroutine.
func (c *Consumer) fetch(of topicPartition, offset int64) {
	c.cl.AddConsumePartitions(map[string]map[int32]kgo.Offset{of.topic: {of.partition: kgo.NewOffset().At(offset)}})
}

func (c *Consumer) unfetch(of topicPartition) {
	parts := map[string][]int32{of.topic: {of.partition}}
	c.cl.RemoveConsumePartitions(parts)
	c.cl.ResumeFetchPartitions(parts) // else whoever comes next finds it paused
}

// fail ends all readers, and those that come.
func (c *Consumer) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil {
		c.failed = err
	}
	for _, r := range c.readers {
		r.fail(err)
	}
}

func (c *Consumer) failTopic(topic string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for of, r := range c.readers {
		if of.topic == topic {
			r.fail(err)
		}
	}
}

// close takes a reader away.
func (c *Consumer) close(r *Reader) {
	r.fail(ErrClosed)
	// A consumer that is closed has nothing to take away.
	_ = c.between(func() {
		c.mu.Lock()
		mine := c.readers[r.of] == r
		if mine {
			delete(c.readers, r.of)
		}
		c.mu.Unlock()
		if mine {
			c.unfetch(r.of)
		}
	})
}
