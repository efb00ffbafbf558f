package kafka

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"joinbench/projection"
)

// BenchmarkFetch is the cost of one record of 300 bytes of four partitions with 400,000, in questions of 4,096: those that a window
// moves over (each fifth of a row of neighbours), and any of all. The broker runs in this process, so its cost is in it.
func BenchmarkFetch(b *testing.B) {
	const n, parts, ask = 400_000, 4, 4096
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(parts, "events"))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	o := Options{Brokers: c.ListenAddrs()}
	cl, err := kgo.NewClient(kgo.SeedBrokers(o.Brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic("events"),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerBatchMaxBytes(16<<10))
	if err != nil {
		b.Fatal(err)
	}
	defer cl.Close()
	for i := range n {
		cl.Produce(context.Background(), &kgo.Record{Partition: int32(i % parts), Key: fmt.Appendf(nil, "key-%08d", i),
			Value: fmt.Appendf(nil, `{"n":%d,"x":"%s"}`, i, strings.Repeat("x", 270)), Timestamp: time.UnixMilli(int64(i))}, nil)
	}
	if err := cl.Flush(context.Background()); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		pick func(r *rand.Rand, question, i int) int
	}{
		{"window", func(_ *rand.Rand, q, i int) int { return (q*ask*5/4 + i*5) % n }},
		{"random", func(r *rand.Rand, _, _ int) int { return r.IntN(n) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			f, err := NewFetcher(o, "events", FetcherOptions{CacheBytes: 64 << 20})
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			r := rand.New(rand.NewPCG(1, 1))
			places := make([]Place, ask)
			for q, left := 0, b.N; left > 0; q++ {
				m := min(left, ask)
				for i := range m {
					at := c.pick(r, q, i)
					places[i] = Place{int32(at % parts), int64(at / parts)}
				}
				if err := f.Fetch(context.Background(), places[:m], func(i int, rec *projection.Record) {
					if rec == nil {
						b.Fatal("gone")
					}
				}); err != nil {
					b.Fatal(err)
				}
				left -= m
			}
			s := f.Stats()
			b.ReportMetric(float64(s.Requests)/float64(b.N), "requests/rec")
			b.ReportMetric(float64(s.Bytes)/float64(b.N), "bytes/rec")
			b.ReportMetric(float64(s.CacheHits)/float64(b.N), "hits/rec")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rec/s")
		})
	}
}
