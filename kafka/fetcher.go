package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"joinbench/projection"
)

// Place is where a record lies in its topic.
type Place struct {
	Partition int32
	Offset    int64
}

// FetcherOptions are what a fetcher may keep.
type FetcherOptions struct {
	CacheBytes int64 // of fetched records, for those that ask for them or for their neighbours later
}

// FetcherStats count since the fetcher was made.
type FetcherStats struct {
	Fetched   int64 // records that were asked for and came from the topic
	CacheHits int64 // that were there from an earlier question
	Gone      int64 // that are not in the topic any more
	Requests  int64 // to brokers
	Bytes     int64 // of answers
	Cached    int64 // bytes of records that are kept now
}

// Fetcher reads single records of one topic by their places: those of a question in the order of the topic, neighbours with one
// request, all partitions and brokers at once. What comes with them (a broker sends whole batches) is kept, within bounds.
// Fetch is for one goroutine at a time; Stats for any.
type Fetcher struct {
	topic   string
	cl      *kgo.Client
	adm     *kadm.Client
	log     *slog.Logger
	unzip   kgo.Decompressor
	cache   stretchCache
	leaders *leaders // nil: to be asked for

	backoff   [2]time.Duration // the first, the longest
	perRecord float64          // bytes that an offset takes in the log, as seen
	perBatch  float64          // bytes of a batch

	fetched, hits, gone, requests, bytes, cached atomic.Int64
}

const (
	fetchesAtOnce = 8
	// runBytes is about what a run fetches at most.
	runBytes = 1 << 20
	// gapBytes is how much that nobody asked for lies between two records that are fetched together: it costs less than another request.
	gapBytes = 32 << 10
	// runsPerRequest bounds what one answer holds.
	runsPerRequest = 8

	backoffLeast, backoffMost = 20 * time.Millisecond, 2 * time.Second
	// emptyTries is how often an answer without anything must come before the records that it should hold are thought gone: a
	// broker may answer like that for want of time.
	emptyTries = 3
	// beyondTries is the same for offsets behind the end of the log, where a leader that is new in office may not be yet. It is 6.5 s at least.
	beyondTries = 10
	// unknownTries is how often a topic is looked for that is not there.
	unknownTries = 10
)

// NewFetcher makes a fetcher, which connects when it is first asked. The caller closes it.
func NewFetcher(o Options, topic string, f FetcherOptions) (*Fetcher, error) {
	cl, err := o.dial()
	if err != nil {
		return nil, err
	}
	return &Fetcher{topic: topic, cl: cl, adm: kadm.NewClient(cl), log: o.log(), unzip: kgo.DefaultDecompressor(),
		cache: stretchCache{max: f.CacheBytes}, backoff: [2]time.Duration{backoffLeast, backoffMost}, perRecord: 512, perBatch: 16 << 10}, nil
}

// Close ends the connections.
func (f *Fetcher) Close() { f.cl.Close() }

// Stats counts.
func (f *Fetcher) Stats() FetcherStats {
	return FetcherStats{Fetched: f.fetched.Load(), CacheHits: f.hits.Load(), Gone: f.gone.Load(), Requests: f.requests.Load(),
		Bytes: f.bytes.Load(), Cached: f.cached.Load()}
}

// Fetch hands the record at each place to visit, with the place's number in places, in any order, from this goroutine; nil for a record
// that is not in its topic any more: retention or a deletion took it, compaction did, or there is a marker of a transaction. The record's
// bytes are valid until visit returns. Whether its transaction was committed is not asked. Brokers that cannot be reached, leaders that
// move and the like are waited for; an error is the context's, or one that trying again does not mend.
func (f *Fetcher) Fetch(ctx context.Context, places []Place, visit func(i int, rec *projection.Record)) error {
	q := question{f: f, places: places, visit: visit}
	q.order = make([]int, len(places))
	for i := range q.order {
		q.order[i] = i
	}
	slices.SortFunc(q.order, func(a, b int) int {
		return cmp.Or(cmp.Compare(places[a].Partition, places[b].Partition), cmp.Compare(places[a].Offset, places[b].Offset))
	})
	runs := q.plan()
	for wait := f.backoff[0]; len(runs) > 0; {
		left, err := q.round(ctx, runs)
		if err != nil {
			return err
		}
		if q.trouble == nil {
			runs, wait = left, f.backoff[0]
			continue
		}
		f.log.Debug("kafka: fetching by offset: trying again", "topic", f.topic, "runs", len(left), "error", q.trouble)
		f.leaders = nil
		if err := pause(ctx, wait); err != nil {
			return err
		}
		runs, wait = left, min(2*wait, f.backoff[1])
	}
	return nil
}

// question is one call of Fetch.
type question struct {
	f       *Fetcher
	places  []Place
	order   []int // places by partition and offset
	visit   func(int, *projection.Record)
	trouble error // of the last round: something is to be tried again
}

// run is places of one partition, near each other, that are fetched together.
type run struct {
	partition int32
	order     []int // what is left of it; never empty
	tries     int   // that gave nothing, in a row and for the same reason
	why       error // the reason
}

// failed counts tries: what one reason has used up is not held against another.
func (r *run) failed(why error) int {
	if r.why != why {
		r.why, r.tries = why, 0
	}
	r.tries++
	return r.tries
}

// plan takes what the cache has, and makes runs of the rest.
func (q *question) plan() []*run {
	var runs []*run
	f := q.f
	var last *run
	gap := max(1, int64(gapBytes/f.perRecord))
	most := max(1, int64(runBytes/f.perRecord))
	for _, i := range q.order {
		p := q.places[i]
		if s := f.cache.find(p); s != nil {
			rec, there := s.record(p)
			f.hits.Add(1)
			q.tell(i, rec, there)
			continue
		}
		if last != nil && last.partition == p.Partition {
			first, prev := q.places[last.order[0]].Offset, q.places[last.order[len(last.order)-1]].Offset
			if p.Offset-prev <= gap && p.Offset-first < most {
				last.order = append(last.order, i)
				continue
			}
		}
		last = &run{partition: p.Partition, order: []int{i}}
		runs = append(runs, last)
	}
	return runs
}

// tell hands over a record, or that it is gone.
func (q *question) tell(i int, rec projection.Record, there bool) {
	if !there {
		q.f.gone.Add(1)
		q.visit(i, nil)
		return
	}
	q.visit(i, &rec)
}

// round asks once for each run, and returns what is left of them.
func (q *question) round(ctx context.Context, runs []*run) ([]*run, error) {
	q.trouble = nil
	asks, left, err := q.asks(ctx, runs)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	todo, answers := make(chan *ask), make(chan *ask)
	for range min(fetchesAtOnce, len(asks)) {
		go func() {
			for a := range todo {
				q.f.send(ctx, a)
				answers <- a
			}
		}()
	}
	go func() {
		for _, a := range asks {
			todo <- a
		}
		close(todo)
	}()
	for range asks {
		rest, e := q.take(ctx, <-answers)
		left = append(left, rest...)
		if e != nil && err == nil {
			err = e
			cancel()
		}
	}
	cancel()
	return left, err
}

// again notes that something is to be tried again.
func (q *question) again(err error) { q.trouble = cmp.Or(q.trouble, err) }

var errNothing = errors.New("the answer has no records")

// take deals with one answer: what is left of its runs.
func (q *question) take(ctx context.Context, a *ask) ([]*run, error) {
	if a.err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if errors.Is(explain(a.err), ErrFatal) {
			return nil, fmt.Errorf("fetching records of topic %s: %w", q.f.topic, explain(a.err))
		}
		q.again(a.err)
		return a.runs, nil
	}
	var left []*run
	for i, r := range a.runs {
		rest, err := q.settle(ctx, r, &a.parts[i], i == 0)
		if err != nil {
			return nil, err
		}
		if rest {
			left = append(left, r) // in their order: the first run of a request gets a batch of any length
		}
	}
	return left, nil
}

// settle deals with what came for one run, and says whether there is a rest of it. First: it had the broker's word that a
// batch of any length would come.
func (q *question) settle(ctx context.Context, r *run, p *part, first bool) (bool, error) {
	if p.err != nil {
		return q.refused(ctx, r, p)
	}
	f := q.f
	asked := q.places[r.order[0]].Offset
	if s := p.stretch; s != nil && s.next > asked {
		r.tries = 0
		f.perRecord = ease(f.perRecord, p.perRecord)
		f.perBatch = ease(f.perBatch, p.perBatch)
		f.cache.add(s)
		f.cached.Store(f.cache.size)
		q.upTo(r, s, s.next)
		return len(r.order) > 0, nil
	}
	if asked < p.end && !first { // no room was left for it
		return true, nil
	}
	if asked >= p.end {
		return q.beyond(r), nil
	}
	if r.failed(errNothing) < emptyTries {
		q.again(errNothing)
		return true, nil
	}
	q.upTo(r, nil, p.end) // nothing up to there is left
	return len(r.order) > 0, nil
}

// beyond deals with a run whose first place is behind the end of the log, and says whether there is a rest of it: when it was tried often
// enough, the log was cut behind the records, these and all that follow.
func (q *question) beyond(r *run) bool {
	if r.failed(kerr.OffsetOutOfRange) < beyondTries {
		q.again(kerr.OffsetOutOfRange)
		return true
	}
	q.upTo(r, nil, math.MaxInt64)
	return false
}

// upTo tells the places of a run below an offset, from a stretch; without one they are gone.
func (q *question) upTo(r *run, s *stretch, next int64) {
	for len(r.order) > 0 {
		i := r.order[0]
		p := q.places[i]
		if p.Offset >= next {
			return
		}
		var rec projection.Record
		var there bool
		if s != nil {
			rec, there = s.record(p)
		}
		if there {
			q.f.fetched.Add(1)
		}
		q.tell(i, rec, there)
		r.order = r.order[1:]
	}
}

// ease follows a measure.
func ease(have, seen float64) float64 { return have + (seen-have)/8 }
