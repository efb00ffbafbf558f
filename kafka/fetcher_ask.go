package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ask is one request to one broker: at most one run of each partition.
type ask struct {
	broker int32
	id     [16]byte // of the topic
	runs   []*run
	from   []int64 // where each begins
	most   []int32 // bytes for each
	// The answer.
	err   error
	parts []part // by run
}

// part is what came for one run.
type part struct {
	err                 error
	end                 int64    // high watermark
	stretch             *stretch // nil: no whole batch came
	perRecord, perBatch float64
}

// leaders are the brokers that have the partitions.
type leaders struct {
	id [16]byte
	of map[int32]int32 // -1: nobody has it now
}

// asks makes requests of runs; those whose partition has no leader now are left.
func (q *question) asks(ctx context.Context, runs []*run) (asks []*ask, left []*run, err error) {
	f := q.f
	if f.leaders == nil {
		if err := f.findLeaders(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, nil, ctx.Err()
			}
			if errors.Is(explain(err), ErrFatal) && !errors.Is(err, kerr.UnknownTopicOrPartition) {
				return nil, nil, fmt.Errorf("topic %s: %w", f.topic, explain(err))
			}
			q.again(err)
			return nil, runs, q.unknown(runs, err)
		}
	}
	open := map[int32]*ask{} // by broker, the one that is being filled
	for _, r := range runs {
		leader, ok := f.leaders.of[r.partition]
		if !ok || leader < 0 {
			q.again(kerr.LeaderNotAvailable)
			left = append(left, r)
			if ok {
				continue
			}
			if err := q.unknown([]*run{r}, kerr.UnknownTopicOrPartition); err != nil {
				return nil, nil, err
			}
			continue
		}
		a := open[leader]
		if a == nil || len(a.runs) == runsPerRequest || slices.ContainsFunc(a.runs, func(o *run) bool { return o.partition == r.partition }) {
			a = &ask{broker: leader, id: f.leaders.id}
			open[leader] = a
			asks = append(asks, a)
		}
		first, last := q.places[r.order[0]].Offset, q.places[r.order[len(r.order)-1]].Offset
		a.runs = append(a.runs, r)
		a.from = append(a.from, first)
		a.most = append(a.most, int32(min(f.perBatch+f.perRecord*float64(last-first+1), runBytes)))
	}
	return asks, left, nil
}

// unknown counts the tries of runs whose topic or partition is not there.
func (q *question) unknown(runs []*run, err error) error {
	if !errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil
	}
	for _, r := range runs {
		if r.failed(kerr.UnknownTopicOrPartition) >= unknownTries {
			return fmt.Errorf("topic %s, partition %d: %w", q.f.topic, r.partition, explain(err))
		}
	}
	return nil
}

// findLeaders asks which brokers have the partitions.
func (f *Fetcher) findLeaders(ctx context.Context) error {
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = kmsg.StringPtr(f.topic)
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, f.cl)
	if err != nil {
		return err
	}
	if len(resp.Topics) != 1 {
		return kerr.UnknownTopicOrPartition
	}
	if err := kerr.ErrorForCode(resp.Topics[0].ErrorCode); err != nil {
		return err
	}
	l := &leaders{id: resp.Topics[0].TopicID, of: map[int32]int32{}}
	for _, p := range resp.Topics[0].Partitions {
		l.of[p.Partition] = p.Leader
	}
	f.leaders = l
	return nil
}

// send asks and reads the answer. Any goroutine.
func (f *Fetcher) send(ctx context.Context, a *ask) {
	req := kmsg.NewPtrFetchRequest() // no session, and uncommitted records too: whoever asks knows the offsets
	req.MaxBytes = runsPerRequest * runBytes
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = f.topic, a.id
	for i, r := range a.runs {
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.FetchOffset, p.PartitionMaxBytes = r.partition, a.from[i], a.most[i]
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	f.requests.Add(1)
	kresp, err := f.cl.Broker(int(a.broker)).RetriableRequest(ctx, req)
	if err != nil {
		a.err = err
		return
	}
	resp := kresp.(*kmsg.FetchResponse)
	if a.err = kerr.ErrorForCode(resp.ErrorCode); a.err != nil {
		return
	}
	a.parts = make([]part, len(a.runs))
	for i, r := range a.runs {
		a.parts[i] = f.read(answerFor(resp, r.partition), a.from[i])
	}
}

func answerFor(resp *kmsg.FetchResponse, partition int32) *kmsg.FetchResponseTopicPartition {
	for t := range resp.Topics {
		for p := range resp.Topics[t].Partitions {
			if of := &resp.Topics[t].Partitions[p]; of.Partition == partition {
				return of
			}
		}
	}
	return nil
}

// read takes the records out of what came for one partition.
func (f *Fetcher) read(p *kmsg.FetchResponseTopicPartition, asked int64) part {
	if p == nil {
		return part{err: errNothing}
	}
	if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
		return part{err: err}
	}
	f.bytes.Add(int64(len(p.RecordBatches)))
	batches := 0
	fp, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{Topic: f.topic, Partition: p.Partition}, p, f.unzip,
		func(kgo.FetchBatchMetrics) { batches++ })
	out := part{end: p.HighWatermark}
	if next == 0 || batches == 0 {
		out.err = fp.Err
		return out
	}
	first := int64(binary.BigEndian.Uint64(p.RecordBatches)) // the batch's, which may begin before what was asked for
	out.stretch = newStretch(p.Partition, min(first, asked), next, fp.Records)
	out.perRecord = float64(len(p.RecordBatches)) / float64(max(1, next-first))
	out.perBatch = float64(len(p.RecordBatches)) / float64(batches)
	return out
}

// errDamaged is why what came could not be read.
var errDamaged = errors.New("the records cannot be read")

// refused deals with a partition's error, and says whether there is a rest of its run.
func (q *question) refused(ctx context.Context, r *run, p *part) (bool, error) {
	if errors.Is(p.err, kerr.OffsetOutOfRange) {
		return q.outOfRange(ctx, r)
	}
	if errors.Is(p.err, kerr.UnknownTopicOrPartition) || errors.Is(p.err, kerr.UnknownTopicID) || errors.Is(p.err, kerr.InconsistentTopicID) {
		q.again(p.err) // of a broker that has not heard yet; the topic itself is asked for before the next try
		return true, q.unknown([]*run{r}, kerr.UnknownTopicOrPartition)
	}
	var code *kerr.Error
	if errors.Is(explain(p.err), ErrFatal) || !errors.As(p.err, &code) {
		if code != nil || r.failed(errDamaged) >= emptyTries { // what cannot be read may have been damaged on its way
			return false, fmt.Errorf("fetching from topic %s, partition %d, offset %d: %w", q.f.topic, r.partition, q.places[r.order[0]].Offset, explain(p.err))
		}
	}
	q.again(p.err)
	return true, nil
}

// outOfRange asks what range there is: records before it are gone.
func (q *question) outOfRange(ctx context.Context, r *run) (bool, error) {
	starts, err := q.f.adm.ListStartOffsets(ctx, q.f.topic)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	start, ok := starts.Lookup(q.f.topic, r.partition)
	if err == nil && ok {
		err = start.Err
	}
	if err != nil || !ok {
		q.again(errors.Join(kerr.OffsetOutOfRange, err))
		return true, nil
	}
	if q.places[r.order[0]].Offset >= start.Offset {
		return q.beyond(r), nil
	}
	q.upTo(r, nil, start.Offset)
	return len(r.order) > 0, nil
}
