package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"joinbench/config"
	"joinbench/core"
	"joinbench/kafka"
	"joinbench/loadgen"
)

// LoadConfig says which part of a generated workload goes into the topics of a join, and how.
type LoadConfig struct {
	Profile *config.Profile // validated, its join by ValidateServe too
	Kafka   kafka.Options
	Sides   [2]bool // A, B: which of them are loaded
	// From and To are the B that are loaded, and the A that come before the same B; To 0: to the end. So parts follow each other.
	From, To  int64
	Rate      float64 // records of both sides a second, from the first B on; 0: as fast as it goes
	Producers int     // partitions are dealt out to them
	// Transactional writes in transactions. AbortShare of them are written twice: first in one that is aborted.
	Transactional bool
	AbortShare    float64
	Compression   string // of kafka.Compressions
	Progress      *Progress
	Warn          func(format string, args ...any)
}

// LoadReport is what a Load did.
type LoadReport struct {
	Fingerprint  string     `json:"workload_fingerprint"`
	From         int64      `json:"from_b"`
	To           int64      `json:"to_b"` // the B before this, and the A that come with them
	A            LoadedSide `json:"a"`
	B            LoadedSide `json:"b"`
	Bytes        int64      `json:"bytes"` // of keys and values
	Transactions int64      `json:"transactions"`
	Aborted      int64      `json:"aborted"` // of these
	DurationNs   int64      `json:"duration_ns"`
	PerSec       float64    `json:"records_per_s"`
	// With a rate, in whole ms since 1970: record n of the part, counted from its first B on in the order of event time, was
	// meant for start + n/rate. Lag is how much later it was handed to the client.
	StartedMs  int64   `json:"started_ms"`
	OfferedPer float64 `json:"offered_per_s"`
	LagMaxNs   int64   `json:"schedule_lag_max_ns"`

	due func(j int64) time.Time // when B j was meant to be handed over; nil without a rate
}

// LoadedSide is what was written of a side.
type LoadedSide struct {
	Topic      string  `json:"topic"`
	Records    int64   `json:"records"` // that count: aborted ones do not
	Aborted    int64   `json:"aborted_records"`
	Partitions []int64 `json:"partitions"` // records of each
}

// load is a Load under way.
type load struct {
	LoadConfig
	gen    *loadgen.Gen
	topics [2]string
	parts  [2]int64
	// bounds are the indexes of the part: of A from what comes before B From, or from 0.
	bounds [2][2]int64
	step   int64 // B of a portion

	history sync.WaitGroup // of the A before the first B: pacing begins when all producers have them
	begin   sync.Once
	start   time.Time // of the pace
	lagMax  atomic.Int64

	counts   [2][]atomic.Int64
	aborted  [2]atomic.Int64
	txns     atomic.Int64
	failures atomic.Int64 // transactions that were aborted
}

const (
	loadPortion = 16 << 10 // B, and the A that come before them: what producers hand over in turn, and a transaction
	// A paced portion is what comes within this time, so that a record is late by no more than that on purpose.
	pacedPortion = 5 * time.Millisecond
)

// Load fills the topics of a join with generated records: record i of a side in the partition that the generator says, in the
// order of the generator, with its event time as the record's time. Topics that are not there are created. It ends early when
// ctx does. It starts goroutines, and has ended them when it returns.
func Load(ctx context.Context, c LoadConfig) (*LoadReport, error) {
	l, err := newLoad(c)
	if err != nil {
		return nil, err
	}
	if err := l.prepare(ctx); err != nil {
		return nil, err
	}
	l.Progress.Total.Store(l.records())
	started := time.Now()
	if err := l.run(ctx); err != nil {
		return nil, err
	}
	took := time.Since(started)
	if l.Transactional {
		if err := l.settle(ctx); err != nil {
			return nil, err
		}
	}
	return l.report(took), nil
}

// markersWait is how long brokers may take to write the ends of transactions that they have committed.
const markersWait = time.Minute

// settle waits until what was loaded can be read. A join that is drained next would end before the last transactions, and the next
// part would not find the end of this one.
func (l *load) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, markersWait)
	defer cancel()
	for side, topic := range l.topics {
		if !l.Sides[side] {
			continue
		}
		if err := kafka.AwaitCommitted(ctx, l.Kafka, topic); err != nil {
			return err
		}
	}
	return nil
}

func newLoad(c LoadConfig) (*load, error) {
	g, err := newGenerator(c.Profile)
	if err != nil {
		return nil, err
	}
	l := &load{LoadConfig: c, gen: g.gen, topics: [2]string{c.Profile.Join.A.Topic, c.Profile.Join.B.Topic}, step: loadPortion}
	conf := g.gen.Config()
	l.parts = [2]int64{int64(conf.PartitionsA), int64(conf.PartitionsB)}
	if l.To == 0 {
		l.To = g.gen.BCount()
	}
	if l.From < 0 || l.To > g.gen.BCount() || l.From >= l.To {
		return nil, usage("--from", "B from %d to %d are none of the %d that there are: 0 <= from < to", l.From, l.To, g.gen.BCount())
	}
	l.bounds = loadBounds(g.gen, l.From, l.To)
	for s := range l.counts {
		l.counts[s] = make([]atomic.Int64, l.parts[s])
	}
	l.Producers = int(min(int64(max(1, l.Producers)), max(l.parts[core.A], l.parts[core.B])))
	if l.Rate > 0 {
		perB := float64(l.bounds[core.B][1]-l.bounds[core.B][0]) / float64(l.scheduled(l.To))
		l.step = min(loadPortion, max(1, int64(l.Rate*perB*pacedPortion.Seconds())))
	}
	return l, nil
}

// usage is a fault in what was asked for.
func usage(flag, format string, args ...any) error {
	return &config.Error{Faults: []config.Fault{{Key: flag, Message: flag + ": " + fmt.Sprintf(format, args...)}}}
}

// loadBounds are the indexes of a part: B from..to-1, and the A that come before these and not before those of the last part.
func loadBounds(g *loadgen.Gen, from, to int64) [2][2]int64 {
	a := [2]int64{0, g.DueA(to)}
	if from > 0 {
		a[0] = g.DueA(from)
	}
	return [2][2]int64{core.A: a, core.B: {from, to}}
}

// placesBefore counts the records of a side in each partition whose index is below n.
func placesBefore(g *loadgen.Gen, side core.Side, n int64) []int64 {
	cut := g.Whole(n, n)
	if side == core.B {
		return cut.B
	}
	if g.LeftOut() > 0 { // all of which lie before B 0
		for i := range min(n, g.DueA(0)) {
			if !g.HasA(i) {
				p, _ := g.PlaceA(i)
				cut.A[p]--
			}
		}
	}
	return cut.A
}

// noRetention keeps what is loaded: its times are those of the generator's streams, and a topic that keeps a week would
// throw it away.
var noRetention = map[string]string{"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete"}

// prepare has the topics as the part needs them: there, with the generator's partitions, and filled up to where the part begins.
func (l *load) prepare(ctx context.Context) error {
	for side, topic := range l.topics {
		if !l.Sides[side] {
			continue
		}
		spans, err := kafka.Spans(ctx, l.Kafka, topic)
		if err != nil {
			return err
		}
		if spans == nil {
			if err := kafka.CreateTopic(ctx, l.Kafka, topic, int(l.parts[side]), noRetention); err != nil {
				return err
			}
			spans = make([]kafka.Span, l.parts[side])
		} else if err := l.warnRetention(ctx, topic); err != nil {
			return err
		}
		if err := l.checkSpans(core.Side(side), spans); err != nil {
			return err
		}
	}
	return nil
}

// warnRetention says that records are about to be deleted for their age, or for their number.
func (l *load) warnRetention(ctx context.Context, topic string) error {
	c, err := kafka.Describe(ctx, l.Kafka, topic)
	if err != nil {
		return err
	}
	for _, key := range []string{"retention.ms", "retention.bytes"} {
		if v := c.Topics[topic].Settings[key]; v != "" && v != "-1" {
			l.Warn("topic %s has %s=%s, and records have the times of the workload, long past: the broker may delete them any time; "+
				"set %s=-1, or let load create the topic", topic, key, v, key)
		}
	}
	return nil
}

func (l *load) checkSpans(side core.Side, spans []kafka.Span) error {
	topic := l.topics[side]
	if int64(len(spans)) != l.parts[side] {
		return usage("--partitions", "topic %s has %d partitions, and the workload has %d: give --partitions %[2]d, or name another topic",
			topic, len(spans), l.parts[side])
	}
	for p, want := range placesBefore(l.gen, side, l.bounds[side][0]) {
		s := spans[p]
		// Markers and aborted records take offsets, so with transactions more than the records is right.
		if s.Start > 0 || s.End < want || s.End > want && (want == 0 || !l.Transactional) {
			return usage("--from", "topic %s, partition %d has the offsets %d to %d, and this part begins with record %d of it: load the parts one after "+
				"another, each once, or name another topic", topic, p, s.Start, s.End, want)
		}
	}
	return nil
}

// run has the producers write, each its partitions.
func (l *load) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	feeders := make([]*feeder, l.Producers)
	var err error
	for n := range feeders {
		if feeders[n], err = newFeeder(l, n); err != nil {
			return err
		}
		defer feeders[n].loader.Close()
	}
	l.history.Add(len(feeders))
	var all sync.WaitGroup
	errs := make([]error, len(feeders))
	for n, f := range feeders {
		all.Go(func() {
			if errs[n] = f.run(ctx); errs[n] != nil {
				cancel(errs[n]) // the others are of no use
			}
		})
	}
	all.Wait()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return errors.Join(errs...)
}

// records counts those of the part, aborted ones apart.
func (l *load) records() (n int64) {
	for s, b := range l.bounds {
		if l.Sides[s] {
			n += b[1] - b[0]
		}
	}
	if l.Sides[core.A] && l.From == 0 {
		n -= l.gen.LeftOut()
	}
	return n
}

// scheduled counts the records that come in time order from the part's first B on, before B j.
func (l *load) scheduled(j int64) (n int64) {
	if l.Sides[core.A] {
		n += l.gen.DueA(j) - l.gen.DueA(l.From)
	}
	if l.Sides[core.B] {
		n += j - l.From
	}
	return n
}

// dueAt is when B j is meant to come.
func (l *load) dueAt(j int64) time.Time {
	return l.start.Add(time.Duration(float64(l.scheduled(j)) / l.Rate * float64(time.Second)))
}

// await waits until the portion that begins with B j is due.
func (l *load) await(ctx context.Context, j int64) error {
	if l.Rate <= 0 {
		return nil
	}
	l.begin.Do(func() {
		l.history.Wait()
		l.start = time.Now()
	})
	early := time.Until(l.dueAt(j))
	for lag := int64(-early); ; {
		most := l.lagMax.Load()
		if lag <= most || l.lagMax.CompareAndSwap(most, lag) {
			break
		}
	}
	if early <= 0 {
		return ctx.Err()
	}
	return wait(ctx, early)
}

func (l *load) report(took time.Duration) *LoadReport {
	r := &LoadReport{Fingerprint: l.gen.Fingerprint(), From: l.From, To: l.To, Transactions: l.txns.Load(), Aborted: l.failures.Load(),
		DurationNs: took.Nanoseconds(), OfferedPer: l.Rate, LagMaxNs: l.lagMax.Load()}
	if l.Rate > 0 {
		r.StartedMs = l.start.UnixMilli()
		r.due = l.dueAt
	}
	c := l.gen.Config()
	for s, side := range []*LoadedSide{&r.A, &r.B} {
		*side = LoadedSide{Topic: l.topics[s], Aborted: l.aborted[s].Load(), Partitions: make([]int64, l.parts[s])}
		for p := range side.Partitions {
			side.Partitions[p] = l.counts[s][p].Load()
			side.Records += side.Partitions[p]
		}
		r.Bytes += (side.Records + side.Aborted) * int64(c.KeyBytes+c.RecordBytes)
	}
	r.PerSec = float64(r.A.Records+r.A.Aborted+r.B.Records+r.B.Aborted) / took.Seconds()
	return r
}
