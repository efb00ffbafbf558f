package kafka

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A Loader writes many records to partitions that they name themselves, each partition in the order in which Send was called. It
// is for filling topics: nothing waits for a single record. Methods belong to one goroutine, done is called from others.
type Loader struct {
	cl  *kgo.Client
	txn bool

	mu    sync.Mutex
	first error // the first record that failed
}

// LoaderOptions say how a Loader writes.
type LoaderOptions struct {
	TransactionalID string // with one, records are written in transactions
	Compression     string // of Compressions
	BufferedBytes   int    // that wait for acknowledgement at most before Send waits; 0: no limit
}

// Compressions are the names of the ways to compress batches.
var Compressions = []string{"none", "snappy", "lz4", "zstd", "gzip"}

// batchBytes is the most that goes into one batch of one partition: what brokers take without being told (message.max.bytes),
// and so large that its overhead is gone.
const batchBytes = 1_000_012

// NewLoader makes a loader. It connects when it is first used.
func NewLoader(o Options, l LoaderOptions) (*Loader, error) {
	opts, err := o.clientOpts()
	if err != nil {
		return nil, err
	}
	codecs := []kgo.CompressionCodec{kgo.NoCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression(), kgo.GzipCompression()}
	at := slices.Index(Compressions, l.Compression)
	if at < 0 {
		return nil, fmt.Errorf("kafka: compression %q is not known", l.Compression)
	}
	opts = append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(codecs[at], kgo.NoCompression()),
		kgo.ProducerBatchMaxBytes(batchBytes), kgo.MaxBufferedRecords(1<<20), kgo.RequiredAcks(kgo.AllISRAcks()))
	if l.BufferedBytes > 0 {
		opts = append(opts, kgo.MaxBufferedBytes(l.BufferedBytes))
	}
	if l.TransactionalID != "" {
		opts = append(opts, kgo.TransactionalID(l.TransactionalID))
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, err
	}
	return &Loader{cl: cl, txn: l.TransactionalID != ""}, nil
}

// Send sends a record to r.Partition. Record and bytes are the loader's until done has been called, once, from a goroutine of
// the client. The first error is that of Flush.
func (l *Loader) Send(ctx context.Context, r *kgo.Record, done func()) {
	l.cl.Produce(ctx, r, func(r *kgo.Record, err error) {
		if err != nil {
			l.failed(fmt.Errorf("writing to %s/%d: %w", r.Topic, r.Partition, err))
		}
		done()
	})
}

func (l *Loader) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == nil {
		l.first = err
	}
}

// Err is the first error of a record, nil if there was none so far.
func (l *Loader) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first
}

// Flush waits until all records are acknowledged.
func (l *Loader) Flush(ctx context.Context) error {
	if err := l.cl.Flush(ctx); err != nil {
		return err
	}
	return l.Err()
}

// Begin begins a transaction.
func (l *Loader) Begin() error { return l.cl.BeginTransaction() }

// End flushes and ends the transaction: what was written in it counts, or never did.
func (l *Loader) End(ctx context.Context, commit bool) error {
	if err := l.Flush(ctx); err != nil {
		return err
	}
	return l.cl.EndTransaction(ctx, kgo.TransactionEndTry(commit))
}

// Close ends the loader. Records that were not acknowledged are given up.
func (l *Loader) Close() { l.cl.Close() }
