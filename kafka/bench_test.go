package kafka

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"joinbench/projection"
)

// payments is a batch of n records of about a KB, as they go over the network.
func payments(n int) []byte {
	var records []byte
	for i := range n {
		value := fmt.Sprintf(`{"payment_ref":"PAY-%012d","status":"confirmed","amount":%d.5,"currency":"EUR","note":"%s","at":%d,"tags":["a","b"],"customer":{"id":%d,"name":"N. N."}}`,
			i, i, strings.Repeat("lorem ipsum ", 70), 1_700_000_000_000+i, i)
		r := kmsg.Record{OffsetDelta: int32(i), Key: fmt.Appendf(nil, "key-%08d", i), Value: []byte(value)}
		r.Length = int32(len(r.AppendTo(nil)) - 1)
		records = r.AppendTo(records)
	}
	raw := (&kmsg.RecordBatch{PartitionLeaderEpoch: -1, Magic: 2, LastOffsetDelta: int32(n - 1), FirstTimestamp: 1_700_000_000_000,
		MaxTimestamp: 1_700_000_000_000, ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: int32(n), Records: records}).AppendTo(nil)
	binary.BigEndian.PutUint32(raw[8:], uint32(len(raw)-12))
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	return raw
}

const benchParts = 4

func benchBroker(b *testing.B) *broker {
	return newBroker(b, kfake.SeedTopics(benchParts, "in"), kfake.SyntheticFetch(kfake.SyntheticBatch{Batch: payments(200)}))
}

// BenchmarkConsume reads records of 1 KB from four partitions of a broker in the same process, whose work is in all of the numbers:
// with nothing but the client, through readers, and through readers and decoders.
func BenchmarkConsume(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		k := benchBroker(b)
		cl := k.client(kgo.ConsumeTopics("in"))
		b.ReportAllocs()
		b.ResetTimer()
		for n := 0; n < b.N; {
			n += cl.PollFetches(context.Background()).NumRecords()
		}
		rate(b)
	})
	b.Run("reader", func(b *testing.B) {
		consume(b, func(recs []projection.Record) {})
	})
	b.Run("decoder", func(b *testing.B) {
		spec, err := projection.Compile(projection.SideSpec{Key: []string{"$.payment_ref"}, Time: "$.at", TimeUnit: "ms", Store: "projection",
			Keep: []projection.KeepField{{Path: "$.status"}, {Path: "$.amount"}}})
		if err != nil {
			b.Fatal(err)
		}
		var pool sync.Pool
		type decoder struct {
			*projection.Decoder
			rows projection.Rows
		}
		pool.New = func() any { return &decoder{Decoder: spec.NewDecoder()} }
		consume(b, func(recs []projection.Record) {
			d := pool.Get().(*decoder)
			defer pool.Put(d)
			d.rows.Reset()
			for i := range recs {
				d.Append(&d.rows, &recs[i])
			}
			if d.rows.Fate[0] != projection.Accepted {
				b.Error(d.rows.Fate[0])
			}
		})
	})
}

// consume reads b.N records, a goroutine a partition.
func consume(b *testing.B, do func([]projection.Record)) {
	k := benchBroker(b)
	c := k.consumer(k.options(), ConsumerOptions{})
	b.ReportAllocs()
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for p := range int32(benchParts) {
		r := mustOpen(b, c, "in", p, 0, NoEnd)
		wg.Go(func() {
			dst := make([]projection.Record, 1024)
			for left.Load() > 0 {
				n, err := r.Read(dst, nil)
				if err != nil {
					b.Error(err)
					return
				}
				do(dst[:n])
				left.Add(-int64(n))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	rate(b)
}

func rate(b *testing.B) { b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s") }
