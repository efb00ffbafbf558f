package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"joinbench/buckets"
	"joinbench/core"
	"joinbench/kafka"
)

// restoreState opens the state and brings it up to date. One that is older than what the changelog still has is made anew from it: a
// process with another directory went on and cut it.
func (u *unit) restoreState(ctx context.Context) error {
	for again := false; ; again = true {
		if err := u.openState(ctx); err != nil {
			return err
		}
		u.Status.opened(u)
		if !again {
			u.lag = u.watchEnds()
		}
		err := u.restore(ctx)
		if again || !errors.Is(err, errTooOld) {
			return err
		}
		u.Log.Warn("the state is made anew from the changelog", "directory", u.StateDir, "why", err)
		u.feed.Close()
		if err := errors.Join(u.state.closeStores(), u.state.writeMark(struct{}{})); err != nil {
			return err
		}
	}
}

// openState opens the databases of this group, or makes new ones, and the engine over them.
func (u *unit) openState(ctx context.Context) error {
	var have serveMark
	marked, err := u.state.readMark(&have)
	if err != nil || !marked && u.state.hasTasks() || marked && !u.state.fits(have.Tasks) {
		return fmt.Errorf("%s holds a state that no serve made: give another directory (--state-dir)", u.StateDir)
	}
	if have.Tasks > 0 && u.state.hasTasks() {
		u.tasks = u.Config.TaskCount(have.Tasks)
		if wrong := u.differs(have, u.mark()); wrong != "" {
			return fmt.Errorf("%s: %s", u.StateDir, wrong)
		}
	} else {
		if err := u.newTasks(ctx); err != nil {
			return err
		}
		if err := u.state.begin(marked, u.mark()); err != nil {
			return err
		}
	}
	u.c.core.ArenaBytes = arenaBytes(u.Config, u.tasks)
	if err := u.state.openStores(u.tasks, u.Config); err != nil {
		return err
	}
	if done, err := buckets.Drained(u.state.stores[0]); err != nil {
		return err
	} else if done {
		return u.errDrained()
	}
	u.input = &kafkaInput{consumer: u.consumer, topics: u.sink.inputs, parts: u.sink.parts}
	open := func(side core.Side, part int, place int64) (r liveReader, err error) {
		err = u.patiently(ctx, "where to read", func() error { r, err = u.input.open(side, part, place); return err })
		return r, err
	}
	u.feed = newLiveFeed(u.requests, u.c.spec, u.sink.parts, open, u.keepsRecords(),
		livePace{Linger: u.CommitInterval, Full: int64(u.BatchRecords)})
	if u.Trace != nil && u.tracer == nil {
		u.tracer = newTracer(u)
	}
	var sink core.Sink = u.sink
	if u.bodies != nil {
		sink = u.bodies
	}
	if err := u.state.start(u.c, watchedFeed{u.feed, u.Status}, sink); err != nil {
		return err
	}
	e := u.state.engine
	u.sink.engine, e.Observe = e, u.kept
	return nil
}

// keepsRecords says whether records may have to be passed on as they came.
func (u *unit) keepsRecords() bool {
	return u.sink.wants(toLate) || u.sink.wants(toDead) || u.sink.wants(toUnmatched)
}

// newTasks finds out how many tasks a state has that is to be made: those of the changelog, if it has anything.
func (u *unit) newTasks(ctx context.Context) error {
	u.tasks = u.Config.TaskCount(u.Cores)
	if u.changelog == nil {
		return nil
	}
	start, end, err := u.changelogBounds(ctx)
	if err != nil {
		return err
	}
	errFound := errors.New("found")
	written := 0
	err = u.changelog.Read(ctx, start, end, nil, func(b *kafka.Batch) error { written = b.Tasks; return errFound })
	if err != nil && !errors.Is(err, errFound) || written == 0 {
		return err
	}
	if u.Config.State.Tasks != 0 && u.Config.State.Tasks != written {
		return fmt.Errorf("the changelog %s was written with %d tasks, and state.tasks says %d: set it to %[2]d or auto, or take another group (kafka.group) to start anew",
			u.changelog.Topic, written, u.Config.State.Tasks)
	}
	u.tasks = written
	return nil
}

// changelogBounds are where the changelog begins and ends now. The producer has been taken over, so what is open in it is nobody's
// that this process knows.
func (u *unit) changelogBounds(ctx context.Context) (start, end int64, err error) {
	w := openWait{log: u.Log.With("topic", u.changelog.Topic, "partition", u.changelog.Partition), usual: u.TransactionTimeout + abortLooks}
	err = u.patiently(ctx, "the changelog's offsets", func() (err error) {
		start, end, err = u.changelog.Bounds(ctx, w.waits)
		return err
	})
	return start, end, err
}

// restore applies what the changelog has and the state has not, and holds the positions against the group's.
func (u *unit) restore(ctx context.Context) error {
	if u.changelog != nil {
		if err := u.applyTail(ctx); err != nil {
			return err
		}
	}
	u.input.fresh = u.state.engine.Batch() == 0
	if u.closed() && !u.Drain { // by a drain that was killed before it could say so
		return u.errDrained()
	}
	return u.checkOffsets(ctx)
}

// closed says whether the last batch was that of a drain.
func (u *unit) closed() bool {
	wm := u.state.engine.Watermarks()
	return wm[core.A] > farFuture && wm[core.B] > farFuture
}

// farFuture is behind all event times: the watermarks of a drain.
const farFuture = 1 << 60

// errTooOld is wrapped where the changelog was cut behind the state's last batch.
var errTooOld = errors.New("the state is too old")

func (u *unit) applyTail(ctx context.Context) error {
	e := u.state.engine
	start, end, err := u.changelogBounds(ctx)
	if err != nil {
		return err
	}
	from, had := start, e.Batch()
	if had > 0 {
		before := u.sink.book.before
		if end < before {
			return fmt.Errorf("the changelog %s ends at offset %d, and the state knows it up to %d: records of it were lost. Take another group (kafka.group) to start anew",
				u.changelog.Topic, end, before)
		}
		from = max(start, before)
	}
	said := time.Now()
	err = u.changelog.Read(ctx, from, end, func(at, end int64) {
		u.Status.change(func(n *ServeSnapshot) { n.RestoreAt, n.RestoreEnd = at-from, end-from })
		if now := time.Now(); now.Sub(said) > 5*time.Second {
			said = now
			u.Log.Info("restoring the state from the changelog", "done", at-from, "of", end-from, "batch", e.Batch())
		}
	}, func(b *kafka.Batch) error {
		if had > 0 && b.N > e.Batch()+1 {
			return fmt.Errorf("%w: it is at batch %d, and the changelog begins with batch %d", errTooOld, e.Batch(), b.N)
		}
		list := make([]core.Change, len(b.Changes))
		for i, c := range b.Changes {
			list[i] = core.Change(c)
		}
		return e.Apply(b.N, list, b.Record)
	})
	if err != nil {
		return err
	}
	if n := e.Batch() - had; n > 0 && had > 0 {
		u.Log.Info("the state took over what it lacked from the changelog", "batches", n, "batch", e.Batch())
	} else if n > 0 {
		u.Log.Info("the state was made from the changelog", "batch", e.Batch(), "pending", e.Levels(false).Pending)
	}
	return nil
}

// checkOffsets holds where the state reads on against what the group has committed. Exactly-once they come from one transaction, so
// they are equal, unless the state or the group's offsets are not those of one another.
func (u *unit) checkOffsets(ctx context.Context) error {
	var all map[string]map[int32]kafka.Committed
	if err := u.patiently(ctx, "the group's offsets", func() (err error) { all, err = u.member.Committed(ctx); return err }); err != nil {
		return err
	}
	e, exactly := u.state.engine, u.sink.exactly
	if e.Batch() == 0 && len(all) > 0 {
		if exactly {
			return fmt.Errorf("group %s has committed offsets, and neither %s nor the changelog has a state: what waits for its partner would be lost. "+
				"Bring the changelog back; or take another group (kafka.group) to join both topics from their beginning", u.Config.Kafka.Group, u.StateDir)
		}
		u.Log.Warn("the group has committed offsets and there is no state: both topics are joined from their beginning, and results come again",
			"group", u.Config.Kafka.Group)
		return nil
	}
	for side, parts := range u.sink.parts {
		topic := u.topics[side].Name
		for i, p := range parts {
			place := e.Place(core.Side(side), i)
			c, ok := all[topic][p.ID]
			if !ok || c.Offset == place {
				continue // offsets that were not committed for long are forgotten by the broker, which says nothing about the state
			}
			if !exactly {
				u.Log.Info("the state says where to read on, the group's offset is another", "topic", topic, "partition", p.ID, "state", place, "group", c.Offset)
				continue
			}
			return fmt.Errorf("topic %s, partition %d: the state reads on at offset %d (batch %d), and group %s has committed %d (%s): they are not of one transaction. "+
				"If the group's offsets were set by hand, set them back; if the state is that of another time, remove %s to have it made anew from the changelog; "+
				"or take another group (kafka.group) to start anew", topic, p.ID, place, e.Batch(), u.Config.Kafka.Group, c.Offset, c.Metadata, u.StateDir)
		}
	}
	return nil
}

// sizeBatches makes batches small while buckets are asked without their filters, as after a start on local state: each B reads every
// bucket of its window then, and the first B of a large batch would wait for all of its reads (recoveryBatch). With 5 million A that
// wait a batch of 32,768 B took 1.6 s, and the first B came 4.5 s after the start.
func (u *unit) sizeBatches(e *core.Engine) {
	small := min(u.BatchRecords, recoveryBatch)
	u.c.core.BatchSize = u.BatchRecords
	if e.Levels(false).Unfiltered > 0 {
		u.c.core.BatchSize = small
	}
}

// kept is the engine's Observe.
func (u *unit) kept(e *core.Engine) error {
	if u.c.core.BatchSize < u.BatchRecords {
		u.sizeBatches(e)
	}
	u.Status.batch(u)
	u.tracer.point()
	if u.trimmer != nil {
		u.trimmer.ask(u.sink.book.needed())
	}
	return nil
}

// run joins until the context is done, or the inputs are drained.
func (u *unit) run(ctx context.Context) error {
	e := u.state.engine
	running := Running
	if u.Drain {
		running = Draining
	}
	u.Log.Info("running", "group", u.Config.Kafka.Group, "delivery", u.Config.Delivery, "tasks", u.tasks, "state", u.StateDir, "batch", e.Batch(),
		"started_in", time.Since(u.started).Round(time.Millisecond), "join", u.Config.Brief())
	u.reporter = startReporter(u.Status, u.Log)
	u.sizeBatches(e)
	u.tracer.point()
	var tries retries
	for {
		u.Status.copy(u)
		u.Status.set(running)
		err := u.runUntilLost(ctx)
		if !errors.Is(err, core.ErrAborted) { // else it holds what was undone, until the rewind
			u.Status.copy(u)
		}
		switch {
		case err == nil:
			return u.drained()
		case ctx.Err() != nil && !errors.Is(err, core.ErrAborted) && interrupted(err):
			u.Log.Info("stopped", "batch", e.Batch())
			return nil
		case errors.Is(err, kafka.ErrFatal):
			return err
		case ctx.Err() != nil && errors.Is(err, core.ErrAborted):
			u.Log.Warn("stopped; Kafka did not take the last batch, which the next start reads again", "batch", e.Batch(), "error", err)
			return nil
		case !errors.Is(err, core.ErrAborted) && u.member.Err() == nil:
			return err
		}
		if lost := u.member.Err(); lost != nil && !errors.Is(err, core.ErrAborted) {
			err = lost
		}
		if err := tries.next(ctx, e.Batch(), err); err != nil {
			return err
		}
		if err := u.startOver(ctx, err); err != nil {
			return unlessStopped(ctx, err)
		}
	}
}

// runUntilLost runs the engine for as long as the group knows this member.
func (u *unit) runUntilLost(ctx context.Context) error {
	defer u.Status.rest()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		select {
		case <-u.member.Lost():
			cancel()
		case <-ctx.Done():
		}
	})
	return u.state.engine.Run(ctx)
}

// retries sees to it that a unit does not start over for ever without a batch.
type retries struct {
	batch  uint64
	count  int
	fenced int
}

// fencedLimit is how often in a row a producer may be fenced: once is a transaction that took too long, and twice somebody else who
// was just leaving.
const fencedLimit = 4

// retryWait grows up to a few seconds with each try that brought no batch.
const (
	retryWait    = 100 * time.Millisecond
	retryWaitMax = 5 * time.Second
)

func (r *retries) next(ctx context.Context, batch uint64, why error) error {
	if batch != r.batch {
		*r = retries{batch: batch}
	}
	if errors.Is(why, kafka.ErrFenced) {
		if r.fenced++; r.fenced >= fencedLimit {
			return fmt.Errorf("another process writes for the same group and instance, and takes the transactional id away each time, or every transaction takes "+
				"longer than its timeout: stop the other one, or raise --transaction-timeout: %w", why)
		}
	}
	r.count++
	if r.count == 1 {
		return nil
	}
	return wait(ctx, min(retryWaitMax, retryWait<<min(r.count, 10)))
}

// startOver is the one way back after anything that went wrong between Kafka and us: it ends what the producer may have left
// open, goes back to the last batch that the state has, and takes over what Kafka has beyond it.
func (u *unit) startOver(ctx context.Context, why error) error {
	u.Status.aborted(why)
	u.Log.Warn("a batch was undone; going on from the last one that is certain", "batch", u.state.engine.Batch(), "error", why)
	u.Status.set(Restoring)
	u.closeProducer()
	if u.member.Err() != nil {
		u.member.Close()
		if err := u.patiently(ctx, "joining the group", func() error { return u.join(ctx) }); err != nil {
			return err
		}
	}
	if err := u.renewProducer(ctx); err != nil {
		return err
	}
	if err := u.state.engine.Rewind(); err != nil {
		return err
	}
	if err := u.restore(ctx); err != nil {
		if errors.Is(err, errTooOld) { // this process has cut nothing that it needs
			err = fmt.Errorf("another process writes for the same group and went on while this one stood still: %w", err)
		}
		return err
	}
	return nil
}

// renewProducer makes the producer, which takes over the transactional id, if there is one, and ends what was open under it.
func (u *unit) renewProducer(ctx context.Context) error {
	return u.patiently(ctx, "the producer", func() error {
		c, err := kafka.Describe(ctx, u.options, u.topicNames()...)
		if err != nil {
			return err
		}
		o := kafka.ProducerOptions{MaxBytes: map[string]int32{}}
		for name, t := range c.Topics {
			o.MaxBytes[name] = t.MaxBytes
		}
		if u.changelog != nil {
			o.Numbered = []string{u.changelog.Topic}
		}
		if u.sink.exactly {
			o.TransactionalID, o.TransactionTimeout = u.unit(), u.TransactionTimeout
		}
		u.sink.producer, err = kafka.NewProducer(ctx, u.options, o)
		return err
	})
}

// closeProducerWait is how long the broker may take to abort what is open; else the next producer does it.
const closeProducerWait = 2 * time.Second

func (u *unit) closeProducer() {
	ctx, cancel := context.WithTimeout(context.Background(), closeProducerWait)
	defer cancel()
	u.sink.producer.Close(ctx)
}

// patiently tries something that asks the brokers until it works, or will not work however often it is tried.
func (u *unit) patiently(ctx context.Context, what string, fn func() error) error {
	for n := 0; ; n++ {
		err := fn()
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil || errors.Is(err, kafka.ErrFatal) || errors.Is(err, kafka.ErrOtherMember) {
			return err
		}
		u.Status.failed(err)
		u.Log.Warn("the brokers do not answer as they should; trying again", "asked_for", what, "error", err)
		if err := wait(ctx, min(retryWaitMax, retryWait<<min(n, 10))); err != nil {
			return err
		}
	}
}

// drained marks a state that was read to its end.
func (u *unit) drained() error {
	e := u.state.engine
	if !e.Finished() {
		return errors.New("the join stopped before the end of its topics: please report this")
	}
	if err := e.Quiesce(); err != nil {
		return err
	}
	u.Log.Info("drained", "batch", e.Batch())
	return e.MarkDrained()
}
