package pipeline

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"joinbench/core"
	"joinbench/kafka"
	"joinbench/results"
)

// pacedRun is the open loop of a RunKafka: records come at a rate while serve joins them, and a consumer of the output notes when each
// result is there.
type pacedRun struct {
	*kafkaBench
	first  int64 // B that come at the rate are this and those behind it
	to     int64
	begun  time.Time // of the schedule
	filled time.Time // when its last record was written
	joined atomic.Int64
	lastAt atomic.Int64 // when joined last grew, in ns since the run started
	due    func(j int64) time.Time
	seen   atomic.Int64 // results

	// Of the goroutine that follows the output, until it has ended.
	arrived []arrival
}

// arrival is a result and when it was there, since the run started.
type arrival struct {
	part   int32
	offset int64 // of its last B
	at     time.Duration
}

const (
	// pacedHistory is the share of B that lie in the topic before the schedule begins: so both sides have a time in each partition.
	pacedHistory = 20
	// quietFor is how long nothing must have been joined until nothing more is expected: many commit intervals.
	quietFor  = 2 * time.Second
	lagEvery  = 250 * time.Millisecond
	lagPoints = 400 // at most
	pollPaced = 50 * time.Millisecond
)

// runPaced loads what waits, starts serve, and has the rest come at the rate.
func (k *kafkaBench) runPaced(ctx context.Context) error {
	all := k.gen.gen.BCount()
	p := &pacedRun{kafkaBench: k, first: max(1, all/pacedHistory), to: all}
	if k.Duration > 0 {
		p.to = p.first + max(1, int64(k.Rate*k.Duration.Seconds()))
	}
	if p.to > all {
		p.to = all
		k.warnings = append(k.warnings, fmt.Sprintf("the workload has B for %s of --duration %s: set the number of B, for example JOINBENCH_LOAD_B_EVENTS=20M",
			time.Duration(float64(all-p.first)/k.Rate*float64(time.Second)).Round(time.Millisecond), k.Duration))
	}
	if p.first >= p.to {
		return usage("--rate", "the workload has %d B: too few for an open loop", all)
	}
	k.topics = append(k.topics, k.Profile.Join.A.Topic, k.Profile.Join.B.Topic)
	if err := k.own(0); err != nil {
		return err
	}
	err := k.phase("load", func() (int64, error) { return p.fill(ctx, 0, p.first, 0, k.Progress) })
	if err != nil {
		return err
	}
	if err := kafka.CreateTopic(ctx, k.options, k.Profile.Join.Output.Topic, k.figures.Partitions, nil); err != nil {
		return err
	}
	if err := p.live(ctx); err != nil {
		return err
	}
	if err := k.phase("drain", func() (int64, error) { return p.drain(ctx) }); err != nil {
		return err
	}
	if err := k.verifyTo(ctx, 0, p.to); err != nil {
		return err
	}
	return p.latencies(ctx)
}

// fill loads B from..to and the A that come with them.
func (p *pacedRun) fill(ctx context.Context, from, to int64, rate float64, progress *Progress) (int64, error) {
	c := p.loadConfig()
	c.From, c.To, c.Rate, c.Progress = from, to, rate, progress
	r, err := Load(ctx, c)
	if err != nil {
		return 0, err
	}
	p.figures.Produced += r.A.Records + r.B.Records
	if rate > 0 {
		p.due = r.due
		if lag := time.Duration(r.LagMaxNs); lag > results.LagMost {
			p.warnings = append(p.warnings, fmt.Sprintf("the schedule was kept to %s at the worst: latency counts from the intended times all the same", lag.Round(time.Millisecond)))
		}
	}
	return r.A.Records + r.B.Records, nil
}

// live is the time while serve runs and records come.
func (p *pacedRun) live(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	wg.Go(func() {
		if err := kafka.Follow(ctx, p.options, p.Profile.Join.Output.Topic, p.take); err != nil {
			cancel(err)
		}
	})
	s, err := p.serve(func(point *servePoint) {
		if n := point.A + point.B; p.joined.Swap(n) != n {
			p.lastAt.Store(int64(time.Since(p.started)))
		}
	}, p.CPUProfile)
	if err != nil {
		return err
	}
	defer s.stop()
	wg.Go(func() { s.cancelOn(ctx, cancel) })
	if err := p.phase("catch up", func() (int64, error) { err := p.quiet(ctx, p.figures.Produced); return p.joined.Load(), err }); err != nil {
		return err
	}
	if err := p.phase("serve", func() (int64, error) { return p.schedule(ctx) }); err != nil {
		return err
	}
	cancel(nil)
	s.stop()
	p.measureLive(*s.points)
	return s.failure()
}

// schedule has the records come, and waits until they are joined.
func (p *pacedRun) schedule(ctx context.Context) (int64, error) {
	rate := p.Rate * p.perB()
	loaded := NewProgress("")
	p.begun = time.Now()
	before := p.figures.Produced
	watch, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	watching.Go(func() { p.watchLag(watch, before, loaded) })
	n, err := p.fill(ctx, p.first, p.to, rate, loaded)
	p.filled = time.Now()
	if err == nil {
		err = p.quiet(ctx, p.figures.Produced)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return n, err
}

// perB is how many records of both sides come with a B.
func (p *pacedRun) perB() float64 {
	g := p.gen.gen
	return 1 + float64(g.DueA(p.to)-g.DueA(p.first))/float64(p.to-p.first)
}

// quiet waits until so many records are joined, or nothing was for a while: what a later record must move time for has no end.
func (p *pacedRun) quiet(ctx context.Context, all int64) error {
	tick := time.NewTicker(pollPaced)
	defer tick.Stop()
	for since := time.Since(p.started); ; {
		n, last := p.joined.Load(), max(since, time.Duration(p.lastAt.Load()))
		if n >= all || n > 0 && time.Since(p.started)-last > quietFor {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// watchLag notes how far the join is behind what was written.
func (p *pacedRun) watchLag(ctx context.Context, before int64, loaded *Progress) {
	every := lagEvery
	tick := time.NewTicker(every)
	defer tick.Stop()
	var list []results.KafkaLag
	for {
		behind := before + loaded.A.Load() + loaded.B.Load() - p.joined.Load()
		list = append(list, results.KafkaLag{TNs: time.Since(p.begun).Nanoseconds(), Records: max(0, behind)})
		if len(list) > lagPoints { // every other one
			for i := range list[:lagPoints/2] {
				list[i] = list[2*i]
			}
			list = list[:lagPoints/2]
			every *= 2
			tick.Reset(every)
		}
		p.figures.Lag = list
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// take notes a result.
func (p *pacedRun) take(r *kafka.Record) {
	at := time.Since(p.started)
	p.seen.Add(1)
	for i := len(r.Headers) - 1; i >= 0; i-- {
		if r.Headers[i].Key != headerB {
			continue
		}
		if _, part, offset, ok := headerPlace(string(r.Headers[i].Value)); ok {
			p.arrived = append(p.arrived, arrival{part, offset, at})
		}
		return
	}
}

// drain lets out what still waits.
func (p *pacedRun) drain(ctx context.Context) (int64, error) {
	s, err := p.serve(func(*servePoint) {}, "", "--drain")
	if err != nil {
		return 0, err
	}
	if err := s.wait(ctx); err != nil {
		return 0, err
	}
	return p.took()
}

// latencies makes the histogram of what arrived: from when a B was meant to come to when its result was there.
func (p *pacedRun) latencies(ctx context.Context) error {
	at, err := findPlaces(ctx, p.options, p.gen.gen, core.B, p.Profile.Join.B.Topic, p.to)
	if err != nil {
		return err
	}
	h := newHistogram()
	for _, a := range p.arrived {
		j := at.index(a.part, a.offset)
		if j < p.first {
			continue
		}
		ns := (a.at - p.due(j).Sub(p.started)).Nanoseconds()
		if ns < 0 {
			p.figures.NegativeLatency++
		}
		if err := h.RecordValue(min(max(0, ns), mostNs)); err != nil {
			return err
		}
	}
	p.figures.Unanswered = max(0, p.results-p.seen.Load())
	p.e2e, err = results.Summarize(h)
	return err
}

// measureLive makes figures of the trace while the schedule ran, less its first tenth. What waits at its end for time to move on is not
// in what was achieved.
func (p *pacedRun) measureLive(points []servePoint) {
	p.noteMemory(points)
	p.offered = &results.Load{Mode: "open", Arrival: string(Uniform), CatchUp: string(Queue), OfferedPerS: &p.Rate}
	start := p.begun.Add(p.filled.Sub(p.begun) / 10).UnixNano()
	var from, to *servePoint
	for i := range points {
		switch at := &points[i]; {
		case at.At <= start:
			from = at
		case at.At <= p.filled.UnixNano():
			to = at
		}
	}
	if from == nil || to == nil {
		return
	}
	b := float64(to.B - from.B)
	p.offered.AchievedPerS = ratio(b*1e9, float64(to.At-from.At))
	p.cpu = ratio(float64(to.CPU-from.CPU)/1e3, b)
}
