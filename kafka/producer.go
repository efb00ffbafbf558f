package kafka

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// Record is one for Produce. The producer keeps it and its bytes until Flush has returned, with or without an error.
type Record = kgo.Record

// Header of a record.
type Header = kgo.RecordHeader

// ProducerOptions say how a Producer writes.
type ProducerOptions struct {
	// TransactionalID, if not empty, makes transactions of what is written; a second producer with the same one fences the
	// first and ends what it left open.
	TransactionalID    string
	TransactionTimeout time.Duration
	// MaxBytes is how large a batch of records for a topic may be (max.message.bytes).
	MaxBytes map[string]int32
	// Numbered are the topics of whose records the partition is what Record.Partition says; others go by their key, as
	// Kafka's own clients do it (murmur2).
	Numbered []string
}

// Producer writes for one unit: records with all acknowledgements, in order, each once for as long as it lives. After an error of
// Flush or Commit only Close is left to do: what was written since the last Commit may be there or not, and whoever goes on makes
// a new one and looks. It belongs to one goroutine.
type Producer struct {
	cl       *kgo.Client
	txn      string // transactional id
	implicit bool   // the broker adds the group's offsets to the transaction without being asked (KIP-890)
	open     bool   // a transaction is
	max      map[string]int32
	life     uint64 // a number of its own, which its frames carry

	mu    sync.Mutex
	first error // the first record that failed
	last  int64 // the greatest offset of a changelog frame that was acknowledged, -1: none
}

// NewProducer connects and, with a transactional id, takes that over: what a producer that had it before left open is ended,
// so that nothing of it comes to light later.
func NewProducer(ctx context.Context, o Options, p ProducerOptions) (*Producer, error) {
	implicit, err := implicitOffsets(ctx, o, p)
	if err != nil {
		return nil, err
	}
	opts, err := o.clientOpts()
	if err != nil {
		return nil, err
	}
	opts = append(opts, producerOpts(p, implicit)...)
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, err
	}
	w := &Producer{cl: cl, txn: p.TransactionalID, implicit: implicit, max: p.MaxBytes, life: rand.Uint64(), last: -1}
	if _, _, err := cl.ProducerID(ctx); err != nil {
		cl.Close()
		if p.TransactionalID == "" {
			return nil, fmt.Errorf("asking for a producer id: %w", explain(err))
		}
		return nil, fmt.Errorf("taking over transactional id %q: %w", p.TransactionalID, explain(err))
	}
	return w, nil
}

// defaultMaxBytes is Kafka's own for topics about which nothing is known.
const defaultMaxBytes = 1_000_012

// bufferedBytes is how much waits for acknowledgement at most before Produce waits: records of a few hundred bytes fill requests of
// a megabyte long before that.
const bufferedBytes = 32 << 20

func producerOpts(p ProducerOptions, implicit bool) []kgo.Opt {
	opts := []kgo.Opt{
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerBatchCompression(kgo.Lz4Compression(), kgo.NoCompression()),
		kgo.ProducerLinger(0), // Flush follows
		kgo.MaxBufferedRecords(1 << 20),
		kgo.MaxBufferedBytes(bufferedBytes),
		kgo.RecordPartitioner(partitioner{byKey: kgo.StickyKeyPartitioner(nil), numbered: p.Numbered}),
		kgo.ProducerBatchMaxBytesFn(func(topic string) int32 {
			if n, ok := p.MaxBytes[topic]; ok {
				return n
			}
			return defaultMaxBytes
		}),
		kgo.MaxVersions(versions(implicit)),
	}
	if p.TransactionalID != "" {
		opts = append(opts, kgo.TransactionalID(p.TransactionalID), kgo.TransactionTimeout(p.TransactionTimeout))
	}
	return opts
}

// versions caps requests whose later versions name topics by id alone, or, for offsets in a transaction, mean that the broker
// adds them to it by itself.
func versions(implicit bool) *kversion.Versions {
	v := kversion.Stable()
	if implicit {
		v.SetMaxKeyVersion(kmsg.TxnOffsetCommit.Int16(), 5)
	} else {
		v.SetMaxKeyVersion(kmsg.TxnOffsetCommit.Int16(), 4)
	}
	return v
}

// implicitOffsets asks the cluster whether its transactions are those of KIP-890: offsets are added to one without a request
// of their own.
func implicitOffsets(ctx context.Context, o Options, p ProducerOptions) (bool, error) {
	if p.TransactionalID == "" {
		return false, nil
	}
	cl, err := o.dial()
	if err != nil {
		return false, err
	}
	defer cl.Close()
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "joinbench", "1"
	resp, err := req.RequestWith(ctx, cl)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		return false, explain(err)
	}
	for _, f := range resp.FinalizedFeatures {
		if f.Name == "transaction.version" && f.MaxVersionLevel >= 2 {
			return true, nil
		}
	}
	return false, nil
}

// partitioner sends records of some topics where they say, and others by key.
type partitioner struct {
	byKey    kgo.Partitioner
	numbered []string
}

func (p partitioner) ForTopic(topic string) kgo.TopicPartitioner {
	if slices.Contains(p.numbered, topic) {
		return kgo.ManualPartitioner().ForTopic(topic)
	}
	return p.byKey.ForTopic(topic)
}

// Begin begins a transaction unless one is open. Without a transactional id it does nothing.
func (p *Producer) Begin() error {
	if p.txn == "" || p.open {
		return nil
	}
	if err := p.cl.BeginTransaction(); err != nil {
		return explain(err)
	}
	p.open = true
	return nil
}

// Produce sends a record some time before the next Flush returns; it waits while too much is on the way. The first error is that
// of Flush.
func (p *Producer) Produce(ctx context.Context, r *Record) {
	p.cl.Produce(ctx, r, p.done)
}

func (p *Producer) done(r *Record, err error) {
	if err == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.first == nil {
		p.first = fmt.Errorf("writing to topic %s: %w", r.Topic, explain(err))
	}
}

func (p *Producer) noteOffset(offset int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = max(p.last, offset)
}

func (p *Producer) takeOffset() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// Flush waits until everything is acknowledged.
func (p *Producer) Flush(ctx context.Context) error {
	if err := p.cl.Flush(ctx); err != nil {
		return fmt.Errorf("waiting for acknowledgements: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.first
}

// AddOffsets makes offsets a part of the open transaction, on behalf of a member of the group: it fails if the group knows
// better who reads.
func (p *Producer) AddOffsets(ctx context.Context, m Metadata, offsets map[string]map[int32]Committed) error {
	id, epoch, err := p.cl.ProducerID(ctx)
	if err != nil {
		return fmt.Errorf("offsets of group %s: %w", m.Group, explain(err))
	}
	if !p.implicit {
		req := kmsg.NewPtrAddOffsetsToTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = p.txn, id, epoch, m.Group
		err := patiently(ctx, func() error {
			resp, err := req.RequestWith(ctx, p.cl)
			if err != nil {
				return err
			}
			return kerr.ErrorForCode(resp.ErrorCode)
		})
		if err != nil {
			return fmt.Errorf("offsets of group %s: %w", m.Group, explain(err))
		}
	}
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = p.txn, id, epoch
	req.Group, req.MemberID, req.Generation = m.Group, m.MemberID, m.Generation
	if m.Instance != "" {
		req.InstanceID = &m.Instance
	}
	for topic, parts := range offsets {
		t := kmsg.NewTxnOffsetCommitRequestTopic()
		t.Topic = topic
		for partition, o := range parts {
			r := kmsg.NewTxnOffsetCommitRequestTopicPartition()
			r.Partition, r.Offset, r.LeaderEpoch, r.Metadata = partition, o.Offset, -1, &o.Metadata
			t.Partitions = append(t.Partitions, r)
		}
		req.Topics = append(req.Topics, t)
	}
	err = patiently(ctx, func() error {
		resp, err := req.RequestWith(ctx, p.cl)
		if err != nil {
			return err
		}
		for _, t := range resp.Topics {
			for _, r := range t.Partitions {
				if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
					return fmt.Errorf("%s/%d: %w", t.Topic, r.Partition, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("offsets of group %s: %w", m.Group, explain(err))
	}
	return nil
}

// End commits the open transaction, which has at least one record. After an error nobody knows whether it did.
func (p *Producer) End(ctx context.Context) error {
	if err := p.cl.EndTransaction(ctx, kgo.TryCommit); err != nil {
		return fmt.Errorf("committing the transaction: %w", explain(err))
	}
	p.open = false
	return nil
}

// MaxBytes is how large a record for a topic can be; what a batch needs around it is taken off.
func (p *Producer) MaxBytes(topic string) int {
	n, ok := p.max[topic]
	if !ok {
		n = defaultMaxBytes
	}
	return int(n) - batchOverhead
}

// batchOverhead is what a batch of one record has around key, value and headers (61 bytes of the batch, at most 40 of the record).
const batchOverhead = 128

// concurrentWait is how long a transaction that the broker still ends is waited for between two tries.
const concurrentWait = 20 * time.Millisecond

// patiently repeats a request while the broker is still busy with the transaction before.
func patiently(ctx context.Context, fn func() error) error {
	for {
		err := fn()
		if !errors.Is(err, kerr.ConcurrentTransactions) {
			return err
		}
		if err := pause(ctx, concurrentWait); err != nil {
			return err
		}
	}
}

// Close gives up what is not committed. An open transaction is aborted, if the broker answers before the context ends; else the
// next producer with the same id ends it, or its timeout does.
func (p *Producer) Close(ctx context.Context) {
	if p.open {
		if err := p.cl.AbortBufferedRecords(ctx); err == nil {
			_ = p.cl.EndTransaction(ctx, kgo.TryAbort)
		}
	}
	p.cl.Close()
}
