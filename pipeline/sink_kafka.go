package pipeline

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"joinbench/core"
	"joinbench/internal/failpoint"
	"joinbench/kafka"
)

// kafkaSink writes results and side outputs to topics, and is the ledger of the engine: a batch is certain when Kafka has it (rule
// 24). In exactly-once its outputs, its changes and the offsets that it read are one transaction. At least once, the outputs are
// acknowledged first, then the changes, and the offsets follow when the state has the batch.
//
// Whatever goes wrong is one error, which wraps core.ErrAborted: what of the batch is in Kafka is not asked here. Who runs the engine
// makes a new producer, which ends what the old one left open, rewinds, and looks into the changelog. So there is one way back, that of
// a start, whether the batch was aborted, was fenced, or was committed and the answer got lost.
//
// It belongs to the engine's goroutine, but for what status asks.
type kafkaSink struct {
	rows
	ctx       context.Context // of requests; ends some time after the one that stops the join
	log       *slog.Logger
	status    *Status // told how long Kafka takes
	producer  *kafka.Producer
	changelog *kafka.Changelog // nil: none is kept
	member    *kafka.Member
	exactly   bool
	inputs    [2]string // topics
	topics    [4]string // results, late, dead, unmatched; "": none

	// engine says where the inputs are read on and which buckets there are; it is set before Run.
	engine *core.Engine
	parts  [2][]core.Partition

	book     sinkBook // of the batch in progress
	slab     recordSlab
	text     []byte // of a header
	object   []byte // of which the key is a field
	lost     bool   // rows are for the dead letters, for their A is not in its topic any more
	over     int    // bytes of a group's line that were let go, for it is too large for the topic
	buffered int    // bytes that may not be acknowledged
}

// sinkBook is the sink's part of the commit record.
type sinkBook struct {
	outputs, oversize uint64
	// before is an offset of the changelog before the batch that the record is of, and behind the one that came before it.
	before int64
	// marks are such offsets for each bucket that there is: before the batch that first wrote to it. What lies before all of
	// them is not needed any more.
	marks map[core.LiveEpoch]int64
}

const sinkVersion = 1

// append writes the book: u8 version, outputs, oversize, before, u32 marks, each {u8 space, i64 epoch, i64 offset}.
func (b *sinkBook) append(dst []byte) []byte {
	dst = append(dst, sinkVersion)
	for _, v := range []uint64{b.outputs, b.oversize, uint64(b.before)} {
		dst = binary.LittleEndian.AppendUint64(dst, v)
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(b.marks)))
	for _, e := range sortedMarks(b.marks) {
		dst = append(dst, e.Space)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(e.Epoch))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(b.marks[e]))
	}
	return dst
}

func sortedMarks(marks map[core.LiveEpoch]int64) []core.LiveEpoch {
	return slices.SortedFunc(maps.Keys(marks), func(x, y core.LiveEpoch) int {
		return cmp.Or(cmp.Compare(x.Space, y.Space), cmp.Compare(x.Epoch, y.Epoch))
	})
}

// parseBook reads what append wrote; nothing is the book of a new state.
func parseBook(state []byte) (sinkBook, error) {
	b := sinkBook{marks: map[core.LiveEpoch]int64{}}
	if len(state) == 0 {
		return b, nil
	}
	if len(state) < 29 || state[0] != sinkVersion {
		return b, fmt.Errorf("commit record with %d bytes about the topics that are written: another program made it", len(state))
	}
	le := binary.LittleEndian
	b.outputs, b.oversize, b.before = le.Uint64(state[1:]), le.Uint64(state[9:]), int64(le.Uint64(state[17:]))
	n := int(le.Uint32(state[25:]))
	if state = state[29:]; n < 0 || len(state) != 17*n {
		return b, fmt.Errorf("commit record with %d bytes about %d buckets of the changelog", len(state), n)
	}
	for range n {
		b.marks[core.LiveEpoch{Space: state[0], Epoch: int64(le.Uint64(state[1:]))}] = int64(le.Uint64(state[9:]))
		state = state[17:]
	}
	return b, nil
}

// Restore implements core.Sink.
func (s *kafkaSink) Restore(state []byte) error {
	var err error
	s.book, err = parseBook(state)
	s.slab.renew()
	s.buffered, s.over = 0, 0
	return err
}

// State implements core.Sink. That what Results wrote has left the process is for Settle to see.
func (s *kafkaSink) State(dst []byte) ([]byte, error) {
	if s.changelog == nil {
		return s.book.append(dst), nil
	}
	s.book.before = s.changelog.End()
	live := s.engine.LiveEpochs(nil)
	marks := make(map[core.LiveEpoch]int64, len(live))
	for _, e := range live {
		at, ok := s.book.marks[e]
		if !ok {
			at = s.book.before
		}
		marks[e] = at
	}
	s.book.marks = marks
	return s.book.append(dst), nil
}

// needed is the offset before which the changelog is not needed any more.
func (b *sinkBook) needed() int64 {
	least := b.before
	for _, at := range b.marks {
		least = min(least, at)
	}
	return least
}

// Settle implements core.Ledger.
func (s *kafkaSink) Settle(n uint64, changes []core.Change, record []byte) error {
	began := time.Now()
	if err := s.settle(n, changes, record); err != nil {
		return s.aborted(fmt.Errorf("batch %d: %w", n, err))
	}
	s.status.settled(time.Since(began))
	s.slab.reset()
	s.buffered = 0
	return nil
}

func (s *kafkaSink) aborted(err error) error { return fmt.Errorf("%w: %w", core.ErrAborted, err) }

func (s *kafkaSink) settle(n uint64, changes []core.Change, record []byte) error {
	if err := s.member.Err(); err != nil {
		return err
	}
	if err := s.producer.Begin(); err != nil {
		return err
	}
	if err := failpoint.Hit(failpoint.KafkaOutputs); err != nil {
		return err
	}
	if !s.exactly || s.changelog == nil {
		// The changes say that the outputs are out.
		if err := s.producer.Flush(s.ctx); err != nil {
			return err
		}
	}
	if err := s.writeChanges(n, changes, record); err != nil {
		return err
	}
	if !s.exactly {
		return nil
	}
	if err := failpoint.Hit(failpoint.KafkaOffsets); err != nil {
		return err
	}
	if err := s.producer.AddOffsets(s.ctx, s.member.Metadata(), s.offsets(n)); err != nil {
		return err
	}
	if err := failpoint.Hit(failpoint.KafkaEndBefore); err != nil {
		return err
	}
	if err := s.producer.End(s.ctx); err != nil {
		return err
	}
	return failpoint.Hit(failpoint.KafkaEndAfter)
}

// writeChanges writes the batch to the changelog.
func (s *kafkaSink) writeChanges(n uint64, changes []core.Change, record []byte) error {
	if s.changelog == nil {
		return nil
	}
	if err := failpoint.Hit(failpoint.KafkaChangelogBefore); err != nil {
		return err
	}
	list := make([]kafka.Change, len(changes))
	for i, c := range changes {
		list[i] = kafka.Change(c)
	}
	s.changelog.Write(s.ctx, s.producer, &kafka.Batch{N: n, Tasks: s.engine.Tasks(), Changes: list, Record: record})
	if err := s.producer.Flush(s.ctx); err != nil {
		return err
	}
	s.changelog.Written(s.producer)
	return failpoint.Hit(failpoint.KafkaChangelogAfter)
}

// offsets are where the inputs are read on, with the number of the batch.
func (s *kafkaSink) offsets(n uint64) map[string]map[int32]kafka.Committed {
	all := map[string]map[int32]kafka.Committed{}
	meta := fmt.Sprintf("batch %d", n)
	for side, parts := range s.parts {
		of := map[int32]kafka.Committed{}
		for i, p := range parts {
			if place := s.engine.Place(core.Side(side), i); place > 0 {
				of[p.ID] = kafka.Committed{Offset: place, Metadata: meta}
			}
		}
		if len(of) > 0 {
			all[s.inputs[side]] = of
		}
	}
	return all
}

// Kept implements core.Ledger: at least once, the offsets may follow. That they could not be committed costs nothing: the state says
// itself where to read on.
func (s *kafkaSink) Kept(n uint64) error {
	if s.exactly {
		return nil
	}
	if err := failpoint.Hit(failpoint.KafkaCommitBefore); err != nil {
		return err
	}
	if err := s.member.CommitOffsets(s.ctx, s.offsets(n)); err != nil {
		if lost := s.member.Err(); lost != nil {
			return errors.Join(err, lost)
		}
		s.log.Warn("the group's offsets could not be committed; they will be with the next batch", "batch", n, "error", err)
	}
	return failpoint.Hit(failpoint.KafkaCommitAfter)
}
